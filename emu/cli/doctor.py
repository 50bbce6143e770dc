"""Check what the emulator needs of this machine: Numba, the kernel cache, threads, CPU features, memory."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from emu import __version__
from emu.cli._common import AsJson, cache_problem, print_json, settings

#: What decides how fast the kernels can be; the bits are the same without them.
_FEATURES = {
    "x86_64": ("avx2", "fma", "f16c", "avx512f", "avx512fp16"),
    "aarch64": ("neon", "fullfp16", "bf16", "sve"),
}

#: Optional packages: name, a module that is quick to import, what for, the extra that brings it.
_OPTIONAL = (
    ("cffi", "_cffi_backend", "for C and C++ programs and python -m bench", "sdk"),
    ("gmpy2", "gmpy2", "for emu verify, emu study and python -m bench", "study"),
    ("matplotlib", "matplotlib", "for plots", "study"),
    ("dask", "dask", "for --scheduler of emu verify", "dask"),
)


#: Variables that are no settings of the Config: a trace, another terminal's view, and what the tests read.
_OTHER_VARIABLES = ("EMU_TRACE", "EMU_WATCH", "EMU_DOC_EXAMPLES", "EMU_OTHER_PYTHON")


@dataclass(frozen=True)
class Finding:
    """One line: ``state`` is ok, warn, fail, or none for an optional part that is missing; ``advice`` says what to do about it."""

    name: str
    state: str
    value: str
    advice: str = ""


def command(as_json: AsJson = False) -> None:
    """Check what the emulator needs of this machine: Numba, the kernel cache, threads, CPU features, memory."""
    import typer

    found = examine()
    bad = any(f.state == "fail" for f in found)
    if as_json:
        print_json({"ok": not bad, "findings": [asdict(f) for f in found]})
    else:
        for f in found:
            print(f"{f.state:<5} {f.name:<16} {f.value}")
            if f.advice:
                print(f"{'':<22} {f.advice}")
    if bad:
        raise typer.Exit(1)


def examine() -> list[Finding]:
    """Every finding. A check that breaks is a failure of what it checks, never of the command."""
    settings()
    found: list[Finding] = []
    for check in CHECKS:
        try:
            found.extend(check())
        except Exception as error:
            found.append(Finding(check.__name__.strip("_"), "fail", f"{type(error).__name__}: {error}"))
    return found


def _versions() -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    yield Finding("aclnn-emu", "ok", f"{__version__}, {Path(__file__).parents[1]}")
    for name in ("numpy", "numba", "llvmlite", "ml_dtypes", "typer", "rich"):
        try:
            yield Finding(name, "ok", version(name))
        except PackageNotFoundError:
            yield Finding(name, "fail", "not installed", f"pip install {name}")


def _optional() -> Iterator[Finding]:
    from importlib import import_module
    from importlib.metadata import version

    for package, module, use, extra in _OPTIONAL:
        try:
            import_module(module)
            yield Finding(package, "ok", f"{version(package)}, {use}")
        except ImportError:
            yield Finding(package, "none", f"optional: missing, pip install 'aclnn-emu[{extra}]'; {use}")


def _backend() -> Iterator[Finding]:
    config = settings()
    if config.backend != "cann":
        return
    from emu.cann.libraries import LibraryError, find

    try:
        yield Finding("back end cann", "ok", ", ".join(map(str, find(config.cann_path).files)))
    except LibraryError as error:
        text, _, advice = str(error).removeprefix("backend cann: ").partition(". ")
        yield Finding("back end cann", "fail", text, advice)


def _environment() -> Iterator[Finding]:
    """Variables that look like settings and are none: what is misspelt has no effect."""
    from difflib import get_close_matches

    from emu.config import VARIABLES

    known = (*VARIABLES, *_OTHER_VARIABLES)
    for name in sorted(n for n in os.environ if n.startswith("EMU_") and n not in known):
        near = get_close_matches(name, known, n=1)
        yield Finding("environment", "warn", f"{name} is no setting", f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}")


def _platform() -> Iterator[Finding]:
    machine = platform.machine()
    good = sys.platform.startswith("linux") and machine in _FEATURES
    advice = "" if good else "Linux on x86-64 or aarch64 is needed: the device's memory is built on its mmap."
    text = f"{platform.system()} {platform.release()} {machine}, Python {platform.python_version()}"
    yield Finding("platform", "ok" if good else "fail", text, advice)


def _cpu() -> Iterator[Finding]:
    from importlib import import_module

    binding = import_module("llvmlite.binding")
    features = binding.get_host_cpu_features()
    wanted = _FEATURES.get(platform.machine(), ())
    have = [name for name in wanted if features.get(name)]
    missing = [name for name in wanted if not features.get(name)]
    text = f"{binding.get_host_cpu_name()}: {' '.join(have) or 'none of the features looked for'}"
    yield Finding("CPU", "ok", text + (f" (without {' '.join(missing)}: slower at most, the bits are the same)" if missing else ""))


def _threads() -> Iterator[Finding]:
    wanted, usable = settings().threads, len(os.sched_getaffinity(0))
    advice = "More threads than CPUs only wait for each other: lower EMU_NUM_THREADS." if wanted > usable else ""
    yield Finding("threads", "warn" if advice else "ok", f"{wanted} for the simulated cores, {usable} CPUs usable", advice)


def _numba() -> Iterator[Finding]:
    from emu.kernel_cache import build

    kernel = build().strided_copy(4)
    how = {"cache": "taken from the cache", "compiled": "compiled"}[build().stats()[kernel.name]]
    yield Finding("kernels", "ok", f"a test kernel was {how} and can run")


def _cache() -> Iterator[Finding]:
    config = settings()
    problem = cache_problem(config)
    if problem is not None:
        text = f"not writable, every process compiles its kernels in memory ({problem})"
        yield Finding("kernel cache", "warn", text, "Set EMU_CACHE_DIR to a directory that you may write.")
        return
    files = [f.stat().st_size for f in Path(config.cache_dir).expanduser().rglob("*") if f.is_file()]
    yield Finding("kernel cache", "ok", f"{config.cache_dir}: {len(files)} kernels, {sum(files) / 1e6:.1f} MB; emu warmup fills it")


def _memory() -> Iterator[Finding]:
    from emu.runtime.memory import Memory
    from emu.soc import profile

    soc = profile(settings().soc)
    try:
        memory = Memory(soc, -1)
    except MemoryError as error:
        yield Finding("device memory", "fail", str(error), "Raise the limit: ulimit -v unlimited.")
        return
    total = memory.total
    memory.close()
    short = total < soc.hbm_bytes
    text = f"{total >> 20} MiB of address space for one {soc.name} ({soc.hbm_bytes >> 20} MiB)"
    advice = "The device is smaller than the real one: ulimit -v unlimited gives all of it." if short else ""
    yield Finding("device memory", "warn" if short else "ok", text, advice)


def _limits() -> Iterator[Finding]:
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    space = "unlimited" if limit == resource.RLIM_INFINITY else f"{limit >> 20} MiB"
    mode = _read("/proc/sys/vm/overcommit_memory")
    ram = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    yield Finding("host memory", "ok", f"{ram} MiB, address space {space}, overcommit mode {mode}")


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return "not known"


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _versions,
    _optional,
    _backend,
    _environment,
    _platform,
    _cpu,
    _threads,
    _numba,
    _cache,
    _memory,
    _limits,
)
