"""Declarations of the unary functions around one exp: Exp, Sigmoid and Gelu, and the in-place forms.

Facts: interface, accepted ranks and instruction order from the public operator documents and operator sources. Exp and
Sigmoid cast their result to ``out`` (Exp: any type that the result can be cast to); Gelu wants equal data types. More
than 8 dimensions are refused (161002).
"""

from __future__ import annotations

from emu.opdef.checks import castable, dtype_supported, max_rank, same_dtype, same_shape
from emu.opdef.spec import Flow, Operator, tensor_in, tensor_inout, tensor_out

_UNARY_FLOATS = ("FLOAT", "FLOAT16", "BF16")

# Real cards also take integers, BOOL, DOUBLE and complex numbers in Sigmoid and Exp. There is no kernel for them here: 161002.

SIGMOID = Operator(
    name="aclnnSigmoid",
    stem="sigmoid",
    summary="1 / (1 + exp(-x)); the result is cast to out's data type. FLOAT, FLOAT16 and BF16 only.",
    params=(tensor_in("self"), tensor_out("out")),
    dtypes=_UNARY_FLOATS,
    checks=(dtype_supported("self"), max_rank("self"), same_shape("self", "out")),
    empty=("self",),
    flow=Flow(name="sigmoid", kind="elementwise", inputs=("self",), output="out", dtype_of="self"),
    assumptions=("elementary_rn", "div_rn", "exp_subnormal", "forward_all_archs", "cast_targets"),
)

INPLACE_SIGMOID = Operator(
    name="aclnnInplaceSigmoid",
    stem="sigmoid",
    summary="aclnnSigmoid that overwrites its input.",
    params=(tensor_inout("selfRef", "self"),),
    dtypes=_UNARY_FLOATS,
    checks=(dtype_supported("selfRef"), max_rank("selfRef")),
    empty=("selfRef",),
    flow=Flow(name="sigmoid", kind="elementwise", inputs=("selfRef",), output="selfRef", dtype_of="selfRef"),
    assumptions=("elementary_rn", "div_rn", "exp_subnormal", "forward_all_archs"),
)

GELU = Operator(
    name="aclnnGelu",
    stem="gelu",
    summary="The tanh form x / (1 + exp(-1.5957691 * (x + 0.044715 * x**3))).",
    params=(tensor_in("self"), tensor_out("out")),
    dtypes=_UNARY_FLOATS,
    checks=(dtype_supported("self"), same_dtype("self", "out"), max_rank("self"), same_shape("self", "out")),
    empty=("self",),
    flow=Flow(name="gelu", kind="elementwise", inputs=("self",), output="out", dtype_of="self"),
    assumptions=("elementary_rn", "div_rn", "exp_subnormal", "forward_all_archs", "gelu_steps"),
)

EXP = Operator(
    name="aclnnExp",
    stem="exp",
    summary="exp(x); the result is cast to out's data type, a floating one. FLOAT, FLOAT16 and BF16 only.",
    params=(tensor_in("self"), tensor_out("out")),
    dtypes=_UNARY_FLOATS,
    checks=(dtype_supported("self"), castable("self", "out"), max_rank("self"), same_shape("self", "out")),
    empty=("self",),
    flow=Flow(name="exp", kind="elementwise", inputs=("self",), output="out", dtype_of="self"),
    assumptions=("elementary_rn", "exp_subnormal", "forward_all_archs", "exp_precision", "cast_targets"),
)

INPLACE_EXP = Operator(
    name="aclnnInplaceExp",
    stem="exp",
    summary="aclnnExp that overwrites its input.",
    params=(tensor_inout("selfRef", "self"),),
    dtypes=_UNARY_FLOATS,
    checks=(dtype_supported("selfRef"), max_rank("selfRef")),
    empty=("selfRef",),
    flow=Flow(name="exp", kind="elementwise", inputs=("selfRef",), output="selfRef", dtype_of="selfRef"),
    assumptions=("elementary_rn", "exp_subnormal", "forward_all_archs", "exp_precision"),
)

OPERATORS = (SIGMOID, INPLACE_SIGMOID, GELU, EXP, INPLACE_EXP)
