"""How long a launch or a copy would take on the card: never cycle-accurate, a floor plus the term that binds.

``rates`` reads a product's numbers, ``cost`` prices one launch or copy, ``calibration`` compares with published measurements.
Every result is simulated time.
"""

from emu.model.cost import Cost, copy_ns, step_cost
from emu.model.rates import Rates, rates

__all__ = ["Cost", "Rates", "copy_ns", "rates", "step_cost"]
