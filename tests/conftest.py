"""What holds for every test."""

from __future__ import annotations

import signal

# A shell that starts a job in the background lets it ignore SIGINT, and every program that a test starts would inherit that: an
# interrupt could then not be tested. A handler is not inherited, so the programs get the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
