"""A directory for PYTHONPATH in which ``import acl`` finds the emulator: `emu run` gives it to the processes that a script starts."""
