"""The back end "cann": the same :mod:`emu.acl` and :mod:`emu.aclnn`, calling real libraries through ctypes.

``emu.configure(backend="cann")`` or ``EMU_BACKEND=cann`` replaces every function of the two faces by one that calls the C function
of that name; signatures, argument checks and results stay the same. The libraries may be CANN's on a machine with an NPU, or the
emulator's own (``emu sdk build``). There is no way back by itself: a library that is missing is a :class:`LibraryError`, a function
that the libraries lack an :class:`emu.AclError`.

Names that were taken out of a face before the switch (``from emu.aclnn import aclnnSelu``) keep the back end of that moment.
"""

from __future__ import annotations

from emu.cann.libraries import Libraries, LibraryError, find

__all__ = ["Libraries", "LibraryError", "find"]
