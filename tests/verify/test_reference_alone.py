"""The reference and the kernels do not use each other's code."""

from __future__ import annotations

import ast
from pathlib import Path

import emu_kernels

ROOT = Path(emu_kernels.__file__).parent
#: What a variant is, and which assumption it chooses: names without arithmetic.
SHARED = {"emu_kernels.variant", "emu_kernels.assumptions"}
STANDARD = {"__future__", "collections", "dataclasses", "fractions", "functools", "importlib", "itertools", "math", "types", "typing"}


def imports(file: Path) -> set[str]:
    """Modules that a file imports anywhere in it, with relative ones resolved."""
    package = ["emu_kernels", *file.parent.relative_to(ROOT).parts]
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            # `from package import name`: the name may be a module.
            whole = module in ("emu_kernels", "emu_kernels.reference", "emu_kernels.reference.operators", "emu_kernels.flows")
            found |= {f"{module}.{alias.name}" for alias in node.names} if whole else {module}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            name = node.args[0]
            # f"package.{name}": what is written out says which package.
            start = name.values[0] if isinstance(name, ast.JoinedStr) else name
            found.add(str(ast.literal_eval(start)) if isinstance(start, ast.Constant) else ast.unparse(name))
    return found


def test_reference_takes_nothing_of_the_kernels_but_names() -> None:
    files = sorted((ROOT / "reference").rglob("*.py"))
    assert len(files) >= 18
    seen: set[str] = set()
    for file in files:
        for name in imports(file):
            if name.startswith("emu_kernels.reference."):
                continue
            assert name in SHARED or name.split(".")[0] in {*STANDARD, "numpy", "gmpy2"}, (file.name, name)
            seen.add(name)
    assert seen >= SHARED
    for shared in SHARED:  # and those two bring no arithmetic with them
        assert imports(ROOT / f"{shared.rpartition('.')[2]}.py") <= {"__future__", "typing", *SHARED, "collections.abc"}


def test_no_kernel_takes_anything_of_the_reference() -> None:
    files = [f for f in sorted(ROOT.rglob("*.py")) if "reference" not in f.relative_to(ROOT).parts]
    assert len(files) > 20
    for file in files:
        assert not any("reference" in name for name in imports(file)), file.name


def test_imports_are_found() -> None:
    assert "emu_kernels.bits" in imports(ROOT / "flows" / "selu.py")
    assert "emu_kernels.double" in imports(ROOT / "flows" / "softmax.py")  # inside a function
