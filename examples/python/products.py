"""One call on every product: where do the bits differ?"""

import ml_dtypes
import numpy as np

import emu
from emu.soc import known_socs, profile

emu.configure(strict_products=False)
rng = np.random.default_rng(0)
y = rng.uniform(-1.75, 2, 4096).astype(np.float16)
g = rng.standard_normal(4096).astype(np.float16)

first = {}  # one product for each architecture
for name in known_socs():
    first.setdefault(profile(name).arch, name)
results = {arch: emu.ops.selu_backward(g, y, soc=name) for arch, name in first.items()}
base = results["dav_2201"]
for arch, out in results.items():
    print(
        f"{arch} {first[arch]:<18} differs from dav_2201 in {np.count_nonzero(out.view(np.uint16) != base.view(np.uint16))} of {out.size}"
    )

wide = emu.ops.softmax_backward(np.ones((1, 4096), ml_dtypes.bfloat16), np.ones((1, 4096), ml_dtypes.bfloat16), -1)
print("BF16 softmax gradient of ones over 4096:", wide[0, 0])
