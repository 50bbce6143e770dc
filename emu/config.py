"""The one Config: frozen, documented, validated; :func:`configure` replaces the current one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from emu.soc import profile
from emu.status import AclError, Status

_TRUE = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"expected a whole number, got {text!r}") from None


def _parse_bool(text: str) -> bool:
    try:
        return _TRUE[text.strip().lower()]
    except KeyError:
        raise ValueError(f"expected 1 or 0, got {text!r}") from None


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


def _user_cache() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return str(Path(base) / "aclnn-emu")


def _option(env: str, default: Any, parse: Callable[[str], Any] = str) -> Any:
    """A field whose start value is ``env``'s, parsed, or ``default`` (called when it is a function)."""

    def start() -> Any:
        text = os.environ.get(env)
        if text is None or text == "":
            return default() if callable(default) else default
        try:
            return parse(text)
        except ValueError as error:
            raise ValueError(f"{env}={text!r}: {error}") from None

    return field(default_factory=start, metadata={"env": env, "start": start})


@dataclass(frozen=True, kw_only=True)
class Config:
    """What the emulator is at the moment. Each field starts from its environment variable, else from its default.

    Invalid values raise ValueError when the Config is made; one that came from the environment names its variable.
    """

    #: EMU_SOC: the product, as aclrtGetSocName names it. Default Ascend910B1 (Atlas A2).
    soc: str = _option("EMU_SOC", "Ascend910B1")
    #: EMU_DEVICES: how many devices the machine has, 1 to 64, before ASCEND_RT_VISIBLE_DEVICES hides some. Default 8.
    devices: int = _option("EMU_DEVICES", 8, _parse_int)
    #: EMU_NUMERICS: "device" (what the card computes) or "document" (the operator document's formula). Default device.
    numerics: str = _option("EMU_NUMERICS", "device")
    #: EMU_SCHEDULE: "eager", "async", "lazy" or "shuffle:SEED". Default async.
    schedule: str = _option("EMU_SCHEDULE", "async")
    #: EMU_NUM_THREADS: host threads that play the device's cores. Default: the CPUs that this process may use.
    threads: int = _option("EMU_NUM_THREADS", _cpus, _parse_int)
    #: EMU_CLOCK: what events and their elapsed times report, "simulated" (the device model's) or "wall". Default simulated.
    clock: str = _option("EMU_CLOCK", "simulated")
    #: EMU_HOST: simulated host time of one aclnn call, "none" (0), "cpp", "python" (typical ones), or microseconds,
    #: as text or as a number, which is kept as text. Default none.
    host: str = _option("EMU_HOST", "none")
    #: EMU_STRICT_PRODUCTS: refuse (561103) what the operator's document lists as an unsupported product. Default true.
    strict_products: bool = _option("EMU_STRICT_PRODUCTS", True, _parse_bool)
    #: EMU_CACHE_DIR: where compiled kernels are kept. Default: aclnn-emu in the user's cache directory.
    cache_dir: str = _option("EMU_CACHE_DIR", _user_cache)

    #: EMU_BACKEND: "emulator", or "cann" to let emu.acl and emu.aclnn call real libraries (see :mod:`emu.cann`). Default emulator.
    backend: str = _option("EMU_BACKEND", "emulator")
    #: EMU_CANN_PATH: where the libraries of the backend "cann" are; empty: ASCEND_HOME_PATH and LD_LIBRARY_PATH say it.
    cann_path: str = _option("EMU_CANN_PATH", "")

    def __post_init__(self) -> None:
        if isinstance(self.host, (int, float)) and not isinstance(self.host, bool):
            object.__setattr__(self, "host", str(self.host))
        for option in fields(self):
            value = getattr(self, option.name)
            try:
                _CHECKS[option.name](value)
            except ValueError as error:
                env = option.metadata["env"]
                if os.environ.get(env) and option.metadata["start"]() == value:
                    raise ValueError(f"{env}={os.environ[env]!r}: {error}") from None
                raise


#: The environment variable of each field.
VARIABLES: tuple[str, ...] = tuple(str(f.metadata["env"]) for f in fields(Config))


def _expect(value: object, kind: type | tuple[type, ...], name: str) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        wanted = kind.__name__ if isinstance(kind, type) else "a path"
        raise ValueError(f"{name} must be {wanted}, not {type(value).__name__}")


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        near = get_close_matches(str(value), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}{hint}")


def _check_schedule(value: object) -> None:
    _expect(value, str, "schedule")
    assert isinstance(value, str)
    name, _, seed = value.partition(":")
    if name == "shuffle":
        if not seed.isdigit():
            raise ValueError(f"schedule shuffle needs a seed, as in shuffle:7, not {value!r}")
        return
    _one_of("schedule", value, ("eager", "async", "lazy", "shuffle:SEED"))
    if value == "shuffle:SEED":
        raise ValueError("schedule shuffle:SEED: SEED stands for a number, as in shuffle:7")


def _check_host(value: object) -> None:
    from emu.runtime.clock import host_issue_ns

    _expect(value, str, "host")
    host_issue_ns(str(value))


def _check_soc(value: object) -> None:
    _expect(value, str, "soc")
    profile(str(value))


def _whole(name: str, most: int) -> Callable[[object], None]:
    def check(value: object) -> None:
        _expect(value, int, name)
        if not (isinstance(value, int) and 1 <= value <= most):
            raise ValueError(f"{name} must be 1 to {most}, not {value}")

    return check


def _kind(name: str, kind: type | tuple[type, ...]) -> Callable[[object], None]:
    return lambda value: _expect(value, kind, name)


def _choice(name: str, *known: str) -> Callable[[object], None]:
    return lambda value: _one_of(name, value, known)


#: What a value of each field must be.
_CHECKS: dict[str, Callable[[object], None]] = {
    "soc": _check_soc,
    "devices": _whole("devices", 64),
    "numerics": _choice("numerics", "device", "document"),
    "schedule": _check_schedule,
    "threads": _whole("threads", 1024),
    "clock": _choice("clock", "simulated", "wall"),
    "host": _check_host,
    "strict_products": _kind("strict_products", bool),
    "cache_dir": _kind("cache_dir", (str, os.PathLike)),
    "backend": _choice("backend", "emulator", "cann"),
    "cann_path": _kind("cann_path", (str, os.PathLike)),
}

_current: Config | None = None
#: Called with the new Config before it takes effect; raises AclError to refuse (the runtime: a device is open).
_guards: list[Callable[[Config, Config], None]] = []
_listeners: list[Callable[[Config], None]] = []


def current() -> Config:
    """The present Config (made from the environment at the first call)."""
    global _current
    if _current is None:
        _current = Config()
    return _current


def configure(**changes: Any) -> Config:
    """Change the named fields of the present Config and keep the others; returns the new one.

    Raises TypeError with a suggestion for a name that is no field, ValueError for a bad value, and
    :class:`emu.AclError` (500001) while a device is open: from its first aclrtSetDevice to its last aclrtResetDevice,
    or aclFinalize.
    """
    global _current
    names = [f.name for f in fields(Config)]
    for name in changes:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
            raise TypeError(f"configure() has no option {name!r}: {hint}")
    if "backend" in changes:
        import_module("emu.backend")  # it has a word in the change, and carries it out
    old = current()
    new = replace(old, **changes)
    for guard in _guards:
        guard(old, new)
    _current = new
    for listener in _listeners:
        listener(new)
    return new


def on_change(*, guard: Callable[[Config, Config], None] | None = None, then: Callable[[Config], None] | None = None) -> None:
    """Let another part of the emulator refuse a change, or follow one."""
    if guard is not None:
        _guards.append(guard)
    if then is not None:
        _listeners.append(then)


def device_open_error(device_id: int) -> AclError:
    """What :func:`configure` raises while a device is open."""
    return AclError(
        Status.ACL_ERROR_FAILURE,
        f"device {device_id} is open: call aclrtResetDevice({device_id}) or aclFinalize() before emu.configure()",
    )
