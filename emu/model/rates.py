"""The rates of one product, peak and effective, from profiles.toml (the sources stand there)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from emu.soc import SocProfile
from emu.soc.profile import Numbers, shared_numbers

#: The product on which the shares of the peaks and the floor were fitted.
MEASURED_ON = "Ascend910B2"


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What the time model knows of a product. Bandwidths in bytes per ns (= GB/s), times in ns.

    "Effective" is peak times a share that was fitted on one product (MEASURED_ON) and is assumed for every other.
    """

    soc: SocProfile
    #: Fitted: no launch is shorter.
    floor_ns: float
    hbm_peak: float
    l2_peak: float
    #: Effective: what a vector kernel reaches; in L2 no less than in HBM.
    hbm: float
    l2: float
    #: FLOAT operations per ns: half the FLOAT16 lanes of all vector cores, one operation per lane and cycle.
    vector: float
    #: One direction of the host link, and between two devices.
    link: float
    peer: float

    @property
    def source(self) -> str:
        """Where the floor and the shares of the peaks come from, in words."""
        return "fitted" if self.soc.name == MEASURED_ON else f"assumed: fitted on {MEASURED_ON}"

    @property
    def l2_source(self) -> str:
        """The same of the L2 rate."""
        return "assumed: no less than HBM's" if self.l2 == self.hbm else self.source

    @property
    def cores(self) -> int:
        """Vector cores, or the AI cores of a product that has none."""
        return self.soc.vector_cores or self.soc.ai_cores


@cache
def rates(soc: SocProfile) -> Rates:
    """The rates of a product. ValueError names a number that its profile lacks, or that is not above 0."""
    numbers = Numbers(soc.rates, f"for {soc.name}")

    def by_cycle(name: str) -> float:
        return numbers[name] * soc.ai_cores * soc.core_mhz / 1000

    fitted = shared_numbers("fitted")
    hbm_peak = numbers["hbm_gbs"] if "hbm_gbs" in numbers else by_cycle("ddr_rate")
    l2_peak = by_cycle("l2_rate")
    cores = soc.vector_cores or soc.ai_cores
    link = numbers["pcie_gbs"]
    hbm = hbm_peak * fitted["hbm_share"]
    return Rates(
        soc=soc,
        floor_ns=fitted["floor_ns"],
        hbm_peak=hbm_peak,
        l2_peak=l2_peak,
        hbm=hbm,
        l2=max(l2_peak * fitted["l2_share"], hbm),  # what leaves L2 passes through it
        vector=numbers["lanes_fp16"] / 2 * cores * soc.core_mhz / 1000,
        link=link,
        peer=numbers.get("hccs_gbs", link),
    )
