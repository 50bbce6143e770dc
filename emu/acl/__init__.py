"""Face 1, the runtime half: pyACL's names and conventions over the simulated device.

The name of a function is C's in snake case under ``acl``, ``acl.rt`` or ``acl.util``; handles and addresses are ints; outputs come first,
the code last; wrong argument types or counts raise TypeError. ``emu.install()`` makes ``import acl`` find this package.
"""

from __future__ import annotations

from emu import backend as _backend
from emu.acl import rt as rt
from emu.acl import util as util
from emu.acl._general import *  # noqa: F403
from emu.acl.rt._device import get_soc_name as get_soc_name  # pyACL has aclrtGetSocName under acl

_backend.follow()
