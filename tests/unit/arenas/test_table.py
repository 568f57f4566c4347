"""The page of the arenas' campaign: every player, best first, and plainly what does not hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.arena_table import page
from oomrl.arenas.registry import find
from oomrl.arenas.runner import ordering

PUBLISHED = {"heuristic": 0.4084}


def record() -> dict[str, Any]:
    arena = find("committee")
    short = replace(arena, tasks={"guided_allocation": arena.tasks["guided_allocation"]})
    found = ordering(short, "train", 3)
    return {
        "size": 3,
        "seed": 7,
        "holds": {"published": True, "ordering": False},
        "committee_v1": {"heuristic": 0.408401},
        "ordering": {"committee": {"train": found.to_json()}},
        "semantic": {"committee": [{"check": "headroom", "passed": False, "measured": {}}]},
        "steps_per_second": {"committee": 12_345},
        "ladder": {},
        "noise": None,
    }


def test_every_player_stands_in_the_page_best_first_with_what_the_heuristic_has_over_it() -> None:
    told = record()
    scores = told["ordering"]["committee"]["train"]["scores"]
    section = page(told, PUBLISHED).partition("## committee\n")[2]
    rows = [line.split(" | ") for line in section.splitlines() if line.count("|") == 4]
    shown = {row[0].removeprefix("| "): row for row in rows if row[0].removeprefix("| ") in scores}
    assert list(shown) == sorted(scores, key=lambda name: -scores[name]["mean"])
    assert set(shown) == set(find("committee").probes) | set(find("committee").policies)
    gap = told["ordering"]["committee"]["train"]["heuristic_minus"]["churn"]
    assert shown["churn"][2].startswith(f"{gap['mean']:.4f} ({gap['low']:.4f} to {gap['high']:.4f})")
    assert shown["heuristic"][2].startswith("the oracle over it: ")


def test_what_does_not_hold_is_said() -> None:
    text = page(record(), PUBLISHED)
    assert "| ordering | **no** |" in text and "| published | yes |" in text
    assert "Semantic checks: 1, failed: headroom." in text
    assert "| heuristic | 0.4084 | 0.4084 |" in text and "12,345 steps a second" in text
