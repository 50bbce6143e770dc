"""Declarations of the softmax family.

Facts: interface and order of the checks from the public operator documents and operator sources (ops-nn,
activation/softmax_grad/op_api and sisters). SoftmaxBackward never looks at the data type of ``out``: the result is
cast to it.
"""

from __future__ import annotations

from emu.opdef.checks import (
    castable,
    dim_in_range,
    dtype_supported,
    empty_skips_rest,
    max_rank,
    no_bf16_without_support,
    same_dtype,
    same_shape,
)
from emu.opdef.spec import Flow, Operator, attr_int64, tensor_in, tensor_out

_ORDER = ("tbe_row_order", "tbe_col_order", "wide_tile")

SOFTMAX_BACKWARD = Operator(
    name="aclnnSoftmaxBackward",
    stem="softmax_backward",
    summary="Gradient of softmax from the forward output: y * (g - sum(y * g)) along dim.",
    params=(tensor_in("gradOutput", "grad"), tensor_in("output"), attr_int64("dim"), tensor_out("out")),
    dtypes=("FLOAT", "FLOAT16", "BF16"),
    checks=(
        empty_skips_rest("gradOutput", "output", but="Ascend950"),
        no_bf16_without_support("gradOutput"),
        dtype_supported("gradOutput"),
        dtype_supported("output"),
        same_dtype("gradOutput", "output"),
        dim_in_range("dim", "gradOutput"),
        max_rank("gradOutput"),
        same_shape("gradOutput", "output"),
        same_shape("gradOutput", "out"),
    ),
    empty=("gradOutput", "output"),
    flow=Flow(
        name="softmax_backward",
        kind="rows",
        inputs=("gradOutput", "output"),
        output="out",
        dtype_of="gradOutput",
        dim="dim",
    ),
    document=("Ascend950", "Ascend910_93", "Ascend910B", "Ascend310P", "Ascend910"),
    refused={"Ascend310B": "no kernel known"},
    tiling_bytes={"Ascend950": 16 << 20},
    assumptions=(*_ORDER, "cast_targets", "ws_950"),
)

SOFTMAX = Operator(
    name="aclnnSoftmax",
    stem="softmax",
    summary="exp(x - max) / sum(exp(x - max)) along dim.",
    params=(tensor_in("self"), attr_int64("dim"), tensor_out("out")),
    dtypes=("FLOAT", "FLOAT16", "BF16", "DOUBLE"),
    checks=(
        empty_skips_rest("self", but="Ascend950"),
        dtype_supported("self"),
        dim_in_range("dim", "self"),
        max_rank("self"),
        same_shape("self", "out"),
    ),
    empty=("self",),
    flow=Flow(name="softmax", kind="rows", inputs=("self",), output="out", dtype_of="self", dim="dim"),
    assumptions=(*_ORDER, "elementary_rn", "div_rn", "exp_subnormal", "forward_all_archs", "softmax_f64", "cast_targets"),
)

LOG_SOFTMAX = Operator(
    name="aclnnLogSoftmax",
    stem="log_softmax",
    summary="x - max - log(sum(exp(x - max))) along dim; self is cast to out's data type first.",
    params=(tensor_in("self"), attr_int64("dim"), tensor_out("out")),
    dtypes=("FLOAT", "FLOAT16", "BF16", "DOUBLE"),
    checks=(
        dim_in_range("dim", "self"),
        dtype_supported("self"),
        castable("self", "out"),
        max_rank("self"),
        same_shape("self", "out"),
    ),
    empty=("self",),
    flow=Flow(name="log_softmax", kind="rows", inputs=("self",), output="out", dtype_of="out", dim="dim", cast_first="self"),
    assumptions=(*_ORDER, "elementary_rn", "exp_subnormal", "forward_all_archs", "softmax_f64", "cast_targets"),
)

LOG_SOFTMAX_BACKWARD = Operator(
    name="aclnnLogSoftmaxBackward",
    stem="log_softmax_backward",
    summary="Gradient of log-softmax from the forward output: g - exp(y) * sum(g) along dim.",
    params=(tensor_in("gradOutput", "grad"), tensor_in("output"), attr_int64("dim"), tensor_out("out")),
    dtypes=("FLOAT", "FLOAT16", "BF16"),
    checks=(
        dtype_supported("gradOutput", "output"),
        same_dtype("gradOutput", "output"),
        max_rank("gradOutput"),
        same_shape("gradOutput", "output"),
        same_shape("gradOutput", "out"),
        dim_in_range("dim", "gradOutput"),
    ),
    empty=("gradOutput", "output"),
    flow=Flow(
        name="log_softmax_backward",
        kind="rows",
        inputs=("gradOutput", "output"),
        output="out",
        dtype_of="gradOutput",
        dim="dim",
    ),
    assumptions=(*_ORDER, "elementary_rn", "exp_subnormal", "forward_all_archs", "cast_targets"),
)

OPERATORS = (SOFTMAX_BACKWARD, SOFTMAX, LOG_SOFTMAX, LOG_SOFTMAX_BACKWARD)
