"""Count how many inputs change with each named assumption that an operator rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.cli._compare import comparison, show_differences

if TYPE_CHECKING:
    from emu.study.differ import Difference


def _show(op: str, found: tuple[list[Difference], list[str]], as_json: bool, markdown: bool) -> None:
    changes, single = found
    if changes or as_json:
        show_differences(op, changes, as_json, markdown)
    else:
        print("No assumption with another value applies to this operator in these data types on these products.")
    if single and not as_json and not markdown:
        print("One value only is known, nothing to compare: " + ", ".join(single))


command = comparison("diff_assumption", 1 << 18, "all", _show)
command.__doc__ = __doc__
