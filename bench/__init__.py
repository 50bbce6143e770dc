"""Measures the emulator against PyTorch, NumPy and the machine's own streaming limit: ``python -m bench``.

``cells`` says what is measured, ``work`` makes the inputs and knows the right results, ``competitors`` and ``limit`` are what is
timed, ``timing`` times them in turns; ``scaling``, ``latency``, ``processes`` and ``memory`` are the other questions;
``hampered`` finds what another process disturbed, ``targets`` judges, ``report`` prints and writes the page with the sentences of
``prose``; ``usage`` refuses what cannot work before anything is measured.
"""
