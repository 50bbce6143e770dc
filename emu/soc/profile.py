"""The frozen SocProfile and its reader."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


#: What a product's own line may say about its rates.
_RATES = frozenset({"hbm_gbs", "ddr_rate"})


@dataclass(frozen=True, kw_only=True)
class SocProfile:
    """One product, as aclrtGetSocName names it. Sizes in bytes, clocks in MHz; the sources stand in profiles.toml."""

    name: str
    #: NpuArch: decides the arithmetic (dav_1001, dav_2002, dav_2201, dav_3002, dav_3510).
    arch: str
    #: Short SoC version that operators' tables use: Ascend910, Ascend310P, Ascend910B, Ascend910_93, Ascend310B, Ascend950.
    family: str
    #: The name under which the operator documents list it.
    product: str
    ai_cores: int
    cube_cores: int
    vector_cores: int
    hbm_bytes: int
    l2_bytes: int
    core_mhz: int
    ub_bytes: int
    #: Bytes that aclrtMalloc adds before it rounds up to 32 (0 on 950).
    malloc_padding: int
    max_streams: int
    max_events: int
    bf16: bool
    #: Overflow modes that the arch has, the default first: "infnan", "saturation".
    overflow_modes: tuple[str, ...]
    #: Default limit of one kernel's execution in seconds.
    op_timeout_s: int
    #: Code of an asynchronous kernel fault: vector core (507035) or, where there is none, AI core (507015).
    fault_code: int
    #: Peak rates by name, as profiles.toml has them; :func:`emu.model.rates` reads them and misses none silently.
    rates: Mapping[str, float] = field(default_factory=dict, compare=False)

    @property
    def saturates(self) -> bool:
        """True where the default overflow mode is saturation."""
        return self.overflow_modes[0] == "saturation"


@lru_cache(maxsize=1)
def _raw() -> dict[str, Any]:
    with (files("emu.soc") / "profiles.toml").open("rb") as file:
        return tomllib.load(file)


class Numbers(dict[str, float]):
    """Numbers of profiles.toml by name; ValueError names one that is missing, or is no number above 0. ``where`` they stand."""

    def __init__(self, values: Mapping[str, float], where: str) -> None:
        super().__init__(values)
        self._where = where
        for name, value in values.items():
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < float("inf"):
                raise ValueError(f"profiles.toml: {name} {where} is {value!r}, not a number above 0, so no time can be simulated")

    def __missing__(self, name: str) -> float:
        raise ValueError(f"profiles.toml has no {name} {self._where}, so no time can be simulated")


def shared_numbers(section: str) -> dict[str, float]:
    """The numbers that hold for every product: "fitted" (the time model's) or "host" (microseconds of one call)."""
    return Numbers(_raw().get(section, {}), f"in [{section}]")


@lru_cache(maxsize=1)
def _tables() -> dict[str, dict[str, Any]]:
    raw = _raw()
    table: dict[str, dict[str, Any]] = {}
    for family, entry in raw["family"].items():
        shared = {"family": family, **entry}
        socs = shared.pop("soc")
        rates = shared.pop("rates", {})
        for name, line in socs.items():
            own = {k: v for k, v in line.items() if k not in _RATES}
            table[name] = {**shared, **own, "rates": {**rates, **{k: v for k, v in line.items() if k in _RATES}}}
    return table


@lru_cache(maxsize=1)
def known_socs() -> tuple[str, ...]:
    """Every SoC name, in the order of profiles.toml."""
    return tuple(_tables())


@cache
def profile(name: str) -> SocProfile:
    """The profile of one SoC.

    Raises ValueError for one that is not known, with the nearest names, or with a family's SoCs for the family's name.
    """
    table = _tables()
    if name not in table:
        members = [soc for soc, values in table.items() if values["family"] == name]
        if members:
            raise ValueError(f"unknown SoC {name!r}: it is a family of products; its SoCs: {', '.join(members)}")
        near = get_close_matches(name, table, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(table)}"
        raise ValueError(f"unknown SoC {name!r}: {hint}")
    values = dict(table[name])
    values["overflow_modes"] = tuple(values["overflow_modes"])
    return SocProfile(name=name, **values)
