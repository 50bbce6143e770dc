"""The rates of one product, peak and effective, from profiles.toml (the sources stand there)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from emu.soc import SocProfile
from emu.soc.profile import shared_numbers


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What the time model knows of a product. Bandwidths in bytes per ns (= GB/s), times in ns.

    "Effective" is peak times a share that was fitted on Ascend910B2 and is assumed for every other product.
    """

    soc: SocProfile
    #: Fitted: no launch is shorter.
    floor_ns: float
    hbm_peak: float
    l2_peak: float
    #: Effective: what a vector kernel reaches.
    hbm: float
    l2: float
    #: FLOAT operations per ns: half the FLOAT16 lanes of all vector cores, one operation per lane and cycle.
    vector: float
    #: One direction of the host link, and between two devices.
    link: float
    peer: float

    @property
    def cores(self) -> int:
        """Vector cores, or the AI cores of a product that has none."""
        return self.soc.vector_cores or self.soc.ai_cores


@cache
def rates(soc: SocProfile) -> Rates:
    """The rates of a product. ValueError names the field that its profile lacks."""

    def number(name: str) -> float:
        if name not in soc.rates:
            raise ValueError(f"{soc.name}: profiles.toml has no rate {name} for it, so no time can be simulated")
        return soc.rates[name]

    def by_cycle(name: str) -> float:
        return number(name) * soc.ai_cores * soc.core_mhz / 1000

    fitted = shared_numbers("fitted")
    hbm_peak = soc.rates["hbm_gbs"] if "hbm_gbs" in soc.rates else by_cycle("ddr_rate")
    l2_peak = by_cycle("l2_rate")
    cores = soc.vector_cores or soc.ai_cores
    link = number("pcie_gbs")
    return Rates(
        soc=soc,
        floor_ns=fitted["floor_ns"],
        hbm_peak=hbm_peak,
        l2_peak=l2_peak,
        hbm=hbm_peak * fitted["hbm_share"],
        l2=l2_peak * fitted["l2_share"],
        vector=number("lanes_fp16") / 2 * cores * soc.core_mhz / 1000,
        link=link,
        peer=soc.rates.get("hccs_gbs", link),
    )
