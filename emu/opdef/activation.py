"""Declarations of the activations: Selu and LogSigmoid, forward and backward.

Facts: interface and order of the checks from the public operator documents and operator sources (ops-nn,
activation/*/op_api). Real cards check neither format nor rank of these operators, and LogSigmoidBackward's buffer
only for null.
"""

from __future__ import annotations

from emu.opdef.checks import dtype_supported, same_dtype, same_shape
from emu.opdef.spec import Flow, Operator, tensor_in, tensor_inout, tensor_out, tensor_unused

_DOCUMENTED = ("Ascend910_93", "Ascend910B", "Ascend310P", "Ascend910")
_RUNS_ON_950 = "runs (source, kernel and unit tests for the 950 are public)"
_NO_310B = "no kernel known"

SELU_BACKWARD = Operator(
    name="aclnnSeluBackward",
    stem="selu_backward",
    summary="Gradient of SELU from the forward result: g * (y + scale*alpha) on the negative branch, g * scale on the other.",
    params=(tensor_in("gradOutput", "grad"), tensor_in("result"), tensor_out("gradInput")),
    dtypes=("FLOAT", "FLOAT16", "INT32", "INT8", "BF16"),
    checks=(
        same_dtype("gradOutput", "result"),
        same_dtype("gradOutput", "gradInput"),
        dtype_supported("gradOutput", "result", "gradInput"),
        same_shape("gradOutput", "result"),
        same_shape("gradOutput", "gradInput"),
    ),
    empty=("gradOutput", "result"),
    flow=Flow(
        name="selu_backward",
        kind="elementwise",
        inputs=("gradOutput", "result"),
        output="gradInput",
        dtype_of="gradOutput",
    ),
    document=_DOCUMENTED,
    refused={"Ascend950": _RUNS_ON_950, "Ascend310B": _NO_310B},
    tiling_bytes={"Ascend950": 0},
    assumptions=("ws_950", "s32_f32_mode"),
)

LOG_SIGMOID_BACKWARD = Operator(
    name="aclnnLogSigmoidBackward",
    stem="logsigmoid_backward",
    summary="Gradient of log(sigmoid(x)): g / (1 + exp(x)). The buffer must not be null and is never read.",
    params=(tensor_in("gradOutput", "grad"), tensor_in("self"), tensor_unused("buffer"), tensor_out("gradInput")),
    dtypes=("FLOAT16", "FLOAT", "BF16"),
    checks=(
        dtype_supported("gradOutput"),
        dtype_supported("self"),
        same_dtype("gradOutput", "gradInput"),
        same_dtype("self", "gradInput"),
        same_shape("gradOutput", "gradInput"),
        same_shape("self", "gradInput"),
    ),
    empty=("gradOutput", "self"),
    flow=Flow(
        name="log_sigmoid_backward",
        kind="elementwise",
        inputs=("gradOutput", "self"),
        output="gradInput",
        dtype_of="gradOutput",
    ),
    contiguous_code=161001,
    document=_DOCUMENTED,
    refused={"Ascend950": _RUNS_ON_950, "Ascend310B": _NO_310B},
    tiling_bytes={"Ascend950": 16 << 20},
    assumptions=("elementary_rn", "div_rn", "exp_subnormal", "ws_950"),
)

SELU = Operator(
    name="aclnnSelu",
    stem="selu",
    summary="scale * x for x > 0, scale*alpha * (exp(x) - 1) otherwise.",
    params=(tensor_in("self"), tensor_out("out")),
    dtypes=("FLOAT", "FLOAT16", "INT32", "INT8", "BF16"),
    checks=(same_dtype("self", "out"), dtype_supported("self", "out"), same_shape("self", "out")),
    empty=("self",),
    flow=Flow(name="selu", kind="elementwise", inputs=("self",), output="out", dtype_of="self"),
    assumptions=("elementary_rn", "exp_subnormal", "forward_all_archs", "s32_f32_mode", "selu_int8"),
)

INPLACE_SELU = Operator(
    name="aclnnInplaceSelu",
    stem="selu",
    summary="aclnnSelu that overwrites its input.",
    params=(tensor_inout("selfRef", "self"),),
    dtypes=SELU.dtypes,
    checks=(dtype_supported("selfRef"),),
    empty=("selfRef",),
    flow=Flow(name="selu", kind="elementwise", inputs=("selfRef",), output="selfRef", dtype_of="selfRef"),
    assumptions=SELU.assumptions,
)

LOG_SIGMOID = Operator(
    name="aclnnLogSigmoid",
    stem="logsigmoid",
    summary="log(1 / (1 + exp(-x))).",
    params=(tensor_in("self"), tensor_out("out")),
    dtypes=("FLOAT16", "FLOAT", "BF16"),
    checks=(dtype_supported("self"), same_dtype("self", "out"), same_shape("self", "out")),
    empty=("self",),
    flow=Flow(name="log_sigmoid", kind="elementwise", inputs=("self",), output="out", dtype_of="self"),
    contiguous_code=161001,
    assumptions=("elementary_rn", "exp_subnormal", "forward_all_archs"),
)

LOG_SIGMOID_FORWARD = Operator(
    name="aclnnLogSigmoidForward",
    stem="logsigmoid_forward",
    summary="aclnnLogSigmoid with a second output, buffer, that is left untouched.",
    params=(tensor_in("self"), tensor_out("out"), tensor_unused("buffer", output=True)),
    dtypes=LOG_SIGMOID.dtypes,
    checks=LOG_SIGMOID.checks,
    empty=("self",),
    flow=LOG_SIGMOID.flow,
    contiguous_code=161001,
    assumptions=LOG_SIGMOID.assumptions,
)

OPERATORS = (SELU_BACKWARD, LOG_SIGMOID_BACKWARD, SELU, INPLACE_SELU, LOG_SIGMOID, LOG_SIGMOID_FORWARD)
