"""Small worlds, so that a test of the research arena takes milliseconds."""

from __future__ import annotations

import pytest

from oomrl.arenas.research.engine import ResearchEngine
from oomrl.arenas.research.synthetic import Level

SMALL = Level("small", 0.16, 4000.0, True, names=16, public_days=280, window_days=60, windows=3, gap=5)


@pytest.fixture
def small() -> Level:
    return SMALL


@pytest.fixture
def engine() -> ResearchEngine:
    return ResearchEngine(levels={"small": SMALL})


#: Smaller still: in the sandbox each job costs seconds to start.
TINY = Level("tiny", 0.16, 4000.0, True, names=10, public_days=260, window_days=30, windows=1, gap=5)
