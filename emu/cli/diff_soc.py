"""Compare products: which inputs give other bits, and by how much."""

from __future__ import annotations

from emu.cli._compare import comparison, show_differences

command = comparison("diff_soc", 1 << 20, "FLOAT16 and BF16", show_differences)
command.__doc__ = __doc__
