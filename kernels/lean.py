"""Numba's compiler without work that is thrown away.

To Numba each helper of a kernel is a function of its own: it is optimised and made machine code of, then linked into its caller, where it
is inlined and optimised again. With :func:`whole` the helpers of this package are only linked, and everything is optimised once, as a part
of the kernel. That takes half the time and gives code of the same speed. It reaches into Numba; where the parts that it needs
are not as it knows them, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

#: How the names of this package's functions begin in LLVM.
_OURS = f"_ZN{len(__package__)}{__package__}"


@contextmanager
def whole(kernel: str) -> Iterator[None]:
    """Inside, the helpers of the kernel of that name are compiled as parts of it alone. Holds Numba's compiler lock."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    with global_compiler_lock:
        codegen: Any = cpu_target.target_context.codegen()
        kinds = _kinds()
        if kinds is None or getattr(codegen, "_library_class", None) is not kinds[0]:
            yield
            return
        set_env = codegen.set_env

        def set_defined(name: str, env: Any) -> None:
            # The place for a function's environment, which kernels have no use for, comes with its machine code.
            if codegen._engine.is_symbol_defined(name):
                set_env(name, env)

        codegen._library_class = type("Part", (kinds[1],), {"kernel": kernel})
        codegen.set_env = set_defined
        try:
            yield
        finally:
            del codegen._library_class, codegen.set_env


@cache
def _kinds() -> tuple[Any, Any] | None:
    """Numba's library of a function and ours; None when Numba's is not as expected."""
    from numba.core import codegen

    numbas: Any = getattr(codegen, "JITCodeLibrary", None)
    needed = ("finalize", "_optimize_final_module", "_finalize_final_module", "get_defined_functions")
    if numbas is None or not all(hasattr(numbas, name) for name in needed):
        return None

    class Library(numbas):  # type: ignore[misc]
        """A helper's library is its code, not optimised, with that of the helpers that it calls."""

        kernel = ""
        helper = False

        def finalize(self) -> None:
            self.helper = self.name != self.kernel and all(_OURS in f.name for f in self.get_defined_functions())
            super().finalize()

        def _optimize_final_module(self) -> None:
            if not self.helper:
                super()._optimize_final_module()

        def _finalize_final_module(self) -> None:
            if self.helper:
                self._finalized = True  # and no machine code
            else:
                super()._finalize_final_module()

    return numbas, Library
