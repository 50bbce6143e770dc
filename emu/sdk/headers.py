"""The C headers, written from the project's own tables: enumerations, codes, signatures, declarations of operators."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, IntFlag

from emu.opdef.catalogue import OPERATORS
from emu.sdk.signatures import Function, functions
from emu.status import AclnnStatus, Status
from emu.types import C_ENUMS, C_MACROS, C_NAMES

NOTICE = "/* Written by aclnn-emu (emu sdk build). Do not edit: the next build writes it again. */\n"

#: Opaque structures, and what stands behind each.
_BASE_STRUCTS = {
    "aclDataBuffer": "a piece of memory with its size",
    "aclCANNPackageVersion": "the version of a CANN package",
    "aclTensor": "a tensor descriptor",
    "aclScalar": "a host value",
    "aclIntArray": "a list of int64",
    "aclFloatArray": "a list of float",
    "aclBoolArray": "a list of bool",
    "aclTensorList": "a list of tensors, which it owns",
    "aclScalarList": "a list of scalars, which it owns",
    "aclOpExecutor": "what phase 1 hands to phase 2",
}
_RUNTIME_STRUCTS = {
    "aclrtExceptionInfo": "what is known of a failed task",
    "aclrtStreamConfigHandle": "attributes for a new stream",
    "aclrtMallocConfig": "attributes for an allocation",
    "aclrtPtrAttributes": "where an address lies",
    "aclrtMemPoolProps": "attributes for a memory pool",
}


def _enum(ctype: str, cls: type[IntEnum] | type[IntFlag], prefix: str) -> str:
    rows = []
    for name, member in cls.__members__.items():
        value = int(member)
        written = hex(value) if issubclass(cls, IntFlag) and value > 8 else str(value)
        rows.append(f"  {C_NAMES.get((ctype, name), prefix + name)} = {written}")
    return f"typedef enum {ctype} {{\n" + ",\n".join(rows) + f"\n}} {ctype};\n"


def _codes(members: Iterable[tuple[str, int]]) -> str:
    return "".join(f"static const int {name} = {int(value)};\n" for name, value in members)


def _structs(table: dict[str, str]) -> str:
    return "".join(f"typedef struct {name} {name}; /* {what} */\n" for name, what in table.items())


def _guard(path: str, includes: Iterable[str], body: str) -> str:
    """A whole header: include guard, includes, C linkage."""
    macro = path.upper().replace("/", "_").replace(".", "_") + "_"
    lines = "".join(f"#include {name}\n" for name in includes)
    return (
        f"{NOTICE}#ifndef {macro}\n#define {macro}\n\n{lines}\n"
        f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{body}\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n'
    )


def _prototypes(header: str) -> str:
    return "".join(f"ACL_FUNC_VISIBILITY {f.prototype};\n" for f in functions() if f.header == header)


def _base() -> str:
    """Types and codes: acl/acl_base_rt.h."""
    visible = '#ifndef ACL_FUNC_VISIBILITY\n#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))\n#endif\n\n'
    types = "typedef int aclError;\ntypedef int32_t aclnnStatus;\ntypedef uint16_t aclFloat16;\n\n"
    handles = "typedef void *aclrtStream;\ntypedef void *aclrtEvent;\ntypedef void *aclrtContext;\ntypedef void *aclrtMemPool;\n\n"
    macros = "".join(
        f"#define {prefix}{name} {hex(m) if issubclass(cls, IntFlag) else int(m)}u\n"
        for prefix, cls in C_MACROS.items()
        for name, m in cls.__members__.items()
    )
    enums = "\n".join(_enum(ctype, cls, prefix) for ctype, (cls, prefix) in C_ENUMS.items())
    calls = (
        "typedef void (*aclrtCallback)(void *userData);\ntypedef void (*aclrtHostFunc)(void *args);\n"
        "typedef void (*aclrtExceptionInfoCallback)(aclrtExceptionInfo *exceptionInfo);\n"
    )
    parts = [visible, types, handles, _structs(_BASE_STRUCTS | _RUNTIME_STRUCTS), "\n", calls, "\n", macros, "\n", enums]
    return "".join(parts)


def _split_codes() -> tuple[str, str]:
    """The codes of the outer layer, and those of the runtime layer."""
    runtime: list[tuple[str, int]] = []
    outer: list[tuple[str, int]] = []
    for name, member in Status.__members__.items():
        code = int(member)
        inner = name.startswith("ACL_RT_") or 107000 <= code < 108000 or 207000 <= code < 208000 or 507000 <= code < 508000
        (runtime if inner else outer).append((name, code))
    return _codes(outer), _codes(runtime)


def headers() -> dict[str, str]:
    """Path below include/ → text."""
    outer, runtime = _split_codes()
    std = ("<stdbool.h>", "<stddef.h>", "<stdint.h>")
    local = {
        "acl/error_codes/rt_error_codes.h": ((), runtime),
        "acl/acl_base_rt.h": ((*std, '"acl/error_codes/rt_error_codes.h"'), _base() + "\n" + outer),
        "acl/acl_base.h": (('"acl/acl_base_rt.h"',), _prototypes("acl/acl_base.h")),
        "acl/acl_rt.h": (('"acl/acl_base.h"',), _prototypes("acl/acl_rt.h")),
        "acl/acl.h": (('"acl/acl_base.h"', '"acl/acl_rt.h"'), ""),
        "aclnn/acl_meta.h": (('"acl/acl_base.h"',), _prototypes("aclnn/acl_meta.h")),
        "aclnn/aclnn_base.h": (
            ('"acl/acl_rt.h"', '"aclnn/acl_meta.h"'),
            "".join(f"#define {n} {int(v)}\n" for n, v in AclnnStatus.__members__.items()) + "\n" + _prototypes("aclnn/aclnn_base.h"),
        ),
    }
    texts = {path: _guard(path, includes, body) for path, (includes, body) in local.items()}
    for stem in dict.fromkeys(op.stem for op in OPERATORS):
        path = f"aclnnop/aclnn_{stem}.h"
        texts[path] = _guard(path, ('"aclnn/aclnn_base.h"',), _operators(stem, path))
    return texts


def _operators(stem: str, path: str) -> str:
    declared = {f.name: f for f in functions() if f.header == path}
    parts = []
    for op in OPERATORS:
        if op.stem == stem:
            first: Function = declared[op.name + "GetWorkspaceSize"]
            parts.append(
                f"/* {op.summary}\n   Phase 1 says how much workspace phase 2 needs; phase 2 enqueues the work on the stream. */\n"
                f"ACL_FUNC_VISIBILITY {first.prototype};\nACL_FUNC_VISIBILITY {declared[op.name].prototype};\n"
            )
    return "\n".join(parts)
