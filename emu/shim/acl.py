"""``acl`` for processes that a script under `emu run` starts: installing the emulator puts :mod:`emu.acl` in this module's place."""

import emu

emu.install()
