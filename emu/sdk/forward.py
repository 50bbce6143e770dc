"""The C sources that are generated: the table of slots, and one forwarding function for each exported name."""

from __future__ import annotations

from collections.abc import Iterable

from emu.sdk.signatures import Function, functions
from emu.types import ITEMSIZE

#: Library → (what it exports, SONAME). The split names are small libraries of their own.
LIBRARIES: dict[str, str] = {
    "libascendcl.so": "ascendcl",
    "libacl_rt.so": "ascendcl",
    "libnnopbase.so": "nnopbase",
    "libopapi.so": "opapi",
    "libopapi_nn.so": "opapi",
    "libopapi_math.so": "",
}

#: What a function returns when there is no interpreter to ask; by C result type. Never what could be read as success.
_FAILED = {"aclError": "500000", "aclnnStatus": "561000", "uint32_t": "UINT32_MAX"}

_NUMBERS = ("aclGetViewShape", "aclGetStorageShape", "aclGetViewStrides")

#: Functions that need no interpreter. FLOAT16 as the runtime converts it: no infinities and no NaN on either side.
_IN_C = {
    "aclFloat16ToFloat": """{
  uint32_t exponent = (value >> 10) & 31u, fraction = value & 1023u;
  float magnitude = exponent == 0 ? (float)fraction * 0x1p-24f : (float)(fraction | 1024u) * 0x1p-25f * (float)(1u << exponent);
  return value & 0x8000u ? -magnitude : magnitude;
}""",
    "aclFloatToFloat16": """{
  uint32_t bits, sign, magnitude, kept, rest, half, drop;
  memcpy(&bits, &value, sizeof bits);
  sign = (bits >> 16) & 0x8000u;
  magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x477ff000u) return (aclFloat16)(sign | 0x7bffu); /* 65520 and more, infinity, NaN: 65504 */
  if (magnitude < 0x33000000u) return (aclFloat16)sign;             /* below half of the smallest */
  drop = magnitude < 0x38800000u ? 126u - (magnitude >> 23) : 13u;
  kept = magnitude < 0x38800000u ? (magnitude & 0x7fffffu) | 0x800000u : magnitude - (112u << 23);
  rest = kept & ((1u << drop) - 1u);
  half = 1u << (drop - 1u);
  kept >>= drop;
  if (rest > half || (rest == half && (kept & 1u))) kept++;
  return (aclFloat16)(sign | kept);
}""",
}


def _data_type_size() -> str:
    cases = "".join(f"    case {int(code)}: return {size};\n" for code, size in ITEMSIZE.items())
    return "{\n  switch ((int)dataType) {\n" + cases + "    default: return 0;\n  }\n}"


def table_c() -> str:
    """The core's table: names, types of the slots, and the slots, empty."""
    rows = "".join(f'  {{"{f.name}", "{f.abi}"}},\n' for f in functions())
    n = len(functions())
    return (
        f'#include "shim.h"\n\nconst struct emu_function emu_functions[] = {{\n{rows}}};\n'
        f"const int emu_count = {n};\nvoid *emu_slots[{n}];\n"
    )


def _body(index: int, f: Function) -> str:
    names = ", ".join(p.name for p in f.params)
    if f.name == "aclGetRecentErrMsg":
        return f"{{\n  return aclnn_emu_message({index});\n}}"
    if f.name == "aclDataTypeSize":
        return _data_type_size()
    if f.name in _IN_C:
        return _IN_C[f.name]
    if f.name in _NUMBERS:
        tensor, values, count = (p.name for p in f.params)
        return f"{{\n  return aclnn_emu_numbers({index}, (uintptr_t){tensor}, {values}, {count});\n}}"
    types = ", ".join(p.ctype for p in f.params) or "void"
    failed = _FAILED.get(f.result, "0")
    result = f.result if f.result.endswith("*") else f.result + " "
    # Local names that no parameter of an operator has.
    return (
        f"{{\n  typedef {f.result} (*emu_type)({types});\n  emu_type emu_call = (emu_type)EMU_SLOT({index});\n"
        f"  if (emu_call == NULL) return {failed};\n"
        f"  {result}emu_result = emu_call({names});\n  EMU_RETURNED();\n  return emu_result;\n}}"
    )


def forwarders_c(part: str) -> str:
    """The functions of one part ("ascendcl", "nnopbase", "opapi"), defined against the headers that the user includes."""
    chosen = [(i, f) for i, f in enumerate(functions()) if f.library == part]
    includes = "".join(f'#include "{h}"\n' for h in _unique(f.header for _, f in chosen))
    text = f'#include "shim.h"\n#include <string.h>\n{includes}\n'
    return text + "\n".join(f"{f.prototype} {_body(i, f)}\n" for i, f in chosen)


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
