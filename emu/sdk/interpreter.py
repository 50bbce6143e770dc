"""What the libraries must know of this Python to start it from a program that is not Python."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path


def shared_library() -> Path | None:
    """This interpreter's libpython as a shared library; None when it was built without one."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
    names = [str(sysconfig.get_config_var(key) or "") for key in ("INSTSONAME", "LDLIBRARY")]
    names += [f"libpython{version}.so.1.0", f"libpython{version}.so"]
    places = [str(sysconfig.get_config_var(key) or "") for key in ("LIBDIR", "LIBPL")]
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    places += [f"{sys.base_prefix}/lib", f"{sys.base_prefix}/lib/{multiarch}", f"/usr/lib/{multiarch}"]
    for place in filter(None, places):
        for name in names:
            path = Path(place) / name
            if ".so" in name and path.is_file():
                return path.resolve()
    return None


def config_text() -> str:
    """The lines of ``aclnn_emu.conf``: executable, version, libpython, where modules and the two packages lie."""
    import emu_kernels

    import emu

    library = shared_library()
    lines = [
        f"executable={sys.executable}",
        f"version={sys.version_info.major}.{sys.version_info.minor}",
        f"libpython={library or ''}",
    ]
    for name, module in (("emu", emu), ("emu_kernels", emu_kernels)):
        lines.append(f"package={name}={Path(module.__file__ or '').resolve().parent}")
    # Directories that are packages, never the working directory or a script's own.
    own = {str(Path(sys.argv[0]).resolve().parent), ""}
    stdlib = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), str(Path(sysconfig.get_path("stdlib")) / "lib-dynload")}
    seen = [p for p in sys.path if p not in own and (p in stdlib or p.endswith((".zip", "-packages")) or "lib-dynload" in p)]
    wanted = dict.fromkeys([*seen, *sorted(stdlib), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    lines += [f"path={p}" for p in wanted if p]
    return "\n".join(lines) + "\n"
