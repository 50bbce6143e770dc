"""The directory bench/ is no installed package: the tests import it from the checkout."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from emu import config

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))


@pytest.fixture(autouse=True)
def same_settings() -> Iterator[None]:
    """The bench sets product and threads of the whole process: give them back."""
    before = config.current()
    yield
    config.configure(soc=before.soc, numerics=before.numerics, threads=before.threads)
