"""Where the emulator meets the numerics package: loads it late and tells it where compiled kernels live."""

from __future__ import annotations

from types import ModuleType

from emu import config

_build: ModuleType | None = None


def build() -> ModuleType:
    """``emu_kernels.build``, with the present Config's cache directory. The first call imports numba."""
    global _build
    if _build is None:
        from emu_kernels import build as module

        module.set_cache_dir(str(config.current().cache_dir))
        config.on_change(then=lambda new: module.set_cache_dir(str(new.cache_dir)))
        _build = module
    return _build
