"""Config: start values, validation, changes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import emu
from emu.config import Config

VARIABLES = ("EMU_SOC", "EMU_DEVICES", "EMU_NUMERICS", "EMU_SCHEDULE", "EMU_NUM_THREADS", "EMU_STRICT_PRODUCTS", "EMU_CACHE_DIR")


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_defaults() -> None:
    c = Config()
    assert (c.soc, c.devices, c.numerics, c.schedule, c.strict_products) == ("Ascend910B1", 8, "device", "async", True)
    assert c.threads >= 1
    assert c.cache_dir.endswith("aclnn-emu")


def test_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    values = ("Ascend310P3", "2", "document", "shuffle:5", "3", "0", str(tmp_path))
    for name, value in zip(VARIABLES, values, strict=True):
        monkeypatch.setenv(name, value)
    c = Config()
    assert (c.soc, c.devices, c.numerics, c.schedule, c.threads, c.strict_products, c.cache_dir) == (
        "Ascend310P3", 2, "document", "shuffle:5", 3, False, str(tmp_path),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("EMU_SOC", "Ascend910B9", "did you mean"), ("EMU_DEVICES", "many", "EMU_DEVICES"), ("EMU_STRICT_PRODUCTS", "perhaps", "EMU_STRICT")],
)
def test_a_bad_environment_names_the_variable_or_the_fix(monkeypatch: pytest.MonkeyPatch, name: str, value: str, text: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=text):
        Config()


@pytest.mark.parametrize(
    ("name", "value"),
    [("EMU_SOC", "Ascend910B9"), ("EMU_DEVICES", "abc"), ("EMU_DEVICES", "99"), ("EMU_SCHEDULE", "shuffle"), ("EMU_HOST", "-1"),
     ("EMU_NUMERICS", "both"), ("EMU_CLOCK", "sun"), ("EMU_BACKEND", "gpu")],
)  # fmt: skip
def test_a_bad_environment_names_its_variable_first(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"^{name}='{value}': "):
        Config()


def test_a_bad_argument_blames_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMU_DEVICES", "2")
    with pytest.raises(ValueError, match=r"^devices must be 1 to 64, not 0$"):
        Config(devices=0)


def test_a_family_is_no_soc() -> None:
    from emu.soc import known_socs, profile

    families = {profile(name).family for name in known_socs()} - set(known_socs())
    assert families == {"Ascend950", "Ascend310P", "Ascend910_93", "Ascend910", "Ascend310B"}
    for family in families:
        members = ", ".join(name for name in known_socs() if profile(name).family == family)
        with pytest.raises(ValueError, match=f"^unknown SoC '{family}': it is a family of products; its SoCs: {members}$"):
            profile(family)


@pytest.mark.parametrize(("given", "kept"), [(5, "5"), (2.5, "2.5"), ("cpp", "cpp")])
def test_host_may_be_a_number_of_microseconds(given: Any, kept: str) -> None:
    assert Config(host=given).host == kept


@pytest.mark.parametrize("given", [-1, float("nan"), True, None])
def test_host_that_is_no_time(given: Any) -> None:
    with pytest.raises(ValueError, match=r"^host must be"):
        Config(host=given)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"soc": "910B"}, "unknown SoC"), ({"devices": 0}, "1 to 64"), ({"devices": True}, "int"),
        ({"numerics": "documant"}, "did you mean 'document'"),
        ({"schedule": "shuffle"}, "needs a seed"), ({"schedule": "asink"}, "async"), ({"threads": 0}, "1 to 1024"),
        ({"strict_products": 1}, "bool"), ({"cache_dir": 3}, "path"),
    ],
)  # fmt: skip
def test_bad_values(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Config(**change)


def test_a_typo_gets_a_suggestion() -> None:
    with pytest.raises(TypeError, match="did you mean 'numerics'"):
        emu.configure(numeric="device")


def test_changes_keep_the_other_fields_and_the_config_is_frozen() -> None:
    before = emu.configure()
    try:
        after = emu.configure(numerics="document")
        assert after == dataclasses.replace(before, numerics="document")
        assert emu.configure(soc="Ascend310P3").numerics == "document"
        with pytest.raises(dataclasses.FrozenInstanceError):
            after.soc = "x"  # type: ignore[misc]
    finally:
        emu.configure(**{f.name: getattr(before, f.name) for f in dataclasses.fields(before)})
