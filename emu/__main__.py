"""``python -m emu``: the command line."""

import sys

from emu.cli import main

if __name__ == "__main__":
    sys.exit(main())
