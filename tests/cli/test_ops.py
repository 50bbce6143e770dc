"""emu ops: the support matrix and the assumptions."""

from __future__ import annotations

import json

import pytest

from emu.assumptions import all_assumptions
from emu.cli import _matrix
from emu.opdef.catalogue import OPERATORS, operator


def test_every_operator_and_family_is_a_cell(emu):
    ran = emu("ops", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert [op["name"] for op in found["operators"]] == [op.name for op in OPERATORS]
    for op in found["operators"]:
        assert set(op["products"]) == set(found["products"]) == set(_matrix.families())
    assert "Ascend910B1" in found["products"]["Ascend910B"]["socs"]
    assert found["products"]["Ascend950"]["arch"] == "dav_3510"


@pytest.mark.parametrize(
    ("operator", "family", "text"),
    [
        ("aclnnSeluBackward", "Ascend950", "document: not supported; cards: runs"),
        ("aclnnLogSigmoidBackward", "Ascend950", "document: not supported; cards: runs"),
        ("aclnnSoftmaxBackward", "Ascend950", "FLOAT FLOAT16 BF16"),
        ("aclnnSeluBackward", "Ascend310B", "document: not supported; cards: no kernel known"),
        ("aclnnLogSigmoidBackward", "Ascend310B", "document: not supported; cards: no kernel known"),
        ("aclnnSoftmaxBackward", "Ascend310B", "document: not supported; cards: no kernel known"),
        ("aclnnSeluBackward", "Ascend910B", "FLOAT FLOAT16 INT32 INT8 BF16"),
        ("aclnnSeluBackward", "Ascend310P", "FLOAT FLOAT16 INT32 INT8"),
        ("aclnnSeluBackward", "Ascend910", "FLOAT FLOAT16 INT32 INT8"),
        ("aclnnSoftmaxBackward", "Ascend910_93", "FLOAT FLOAT16 BF16"),
    ],
)
def test_cells_say_what_the_documents_say(emu, operator, family, text):
    found = json.loads(emu("ops", operator, "--json").out)["operators"]
    assert [op["name"] for op in found] == [operator]
    assert found[0]["products"][family]["text"] == text


def test_documents_list_exactly_what_is_not_refused():
    for op in OPERATORS:
        if op.document is not None:
            assert set(op.document) == set(_matrix.families()) - set(op.refused), op.name


def test_table_in_a_pipe_is_whole(emu_process):
    ran = emu_process("ops", COLUMNS="40")
    assert ran.code == 0
    for row in _matrix.rows():
        line = next(line for line in ran.out.splitlines() if f" {row[0]} " in line)
        for cell in row:
            assert f" {cell} " in line
    assert "\x1b" not in ran.out


def test_table_says_that_its_columns_are_families(emu):
    text = emu("ops", "selu").out
    assert "Columns are families" in text
    for family, socs in _matrix.families().items():
        assert f"{family}: {socs[0].name}" in text


def test_markdown_has_a_row_for_each_operator(emu):
    lines = emu("ops", "--markdown").out.splitlines()
    assert lines == _matrix.markdown().splitlines()
    assert len(lines) == 2 + len(OPERATORS)
    assert {line.count("|") for line in lines} == {len(_matrix.families()) + 2}


def test_some_operators_only(emu):
    ran = emu("ops", "softmax", "aclnnSelu")
    assert "aclnnSoftmax " in ran.out
    assert "aclnnSelu " in ran.out
    assert "aclnnLogSoftmax" not in ran.out


def test_unknown_operator_names_the_nearest(emu):
    ran = emu("ops", "selu_bakward")
    assert ran.code == 2
    assert "did you mean selu_backward" in ran.err


def test_every_assumption_that_a_declaration_names_is_described(emu):
    known = {a.name for a in all_assumptions()}
    for op in OPERATORS:
        assert set(op.assumptions) <= known, op.name
    assert len(known) == len(all_assumptions())


def test_assumptions_of_one_operator_are_its_own(emu):
    listed = json.loads(emu("ops", "selu_backward", "--assumptions", "--json").out)
    assert {a["name"] for a in listed} == set(operator("selu_backward").assumptions)
    assert all(a["operators"] == ["aclnnSeluBackward"] for a in listed)


def test_assumptions(emu):
    text = emu("ops", "--assumptions").out
    listed = json.loads(emu("ops", "--assumptions", "--json").out)
    assert [a["name"] for a in listed] == [a.name for a in all_assumptions()]
    for a in listed:
        assert f"\n{a['name']}: {a['text']}" in text
        assert a["default"] in a["values"]
    assert next(a for a in listed if a["name"] == "ws_950")["operators"] == [op.name for op in OPERATORS if op.tiling_bytes]
