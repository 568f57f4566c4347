from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from guardrails.patch import apply_patch, judge_patch, parse_patch
from guardrails.policy import Limits, parse_policy
from guardrails.tree import Tree
from oomrl.adapters.offline.parameters import read, write
from oomrl.adapters.offline.remedies import REMEDIES
from oomrl.adapters.offline_model import LABEL, OfflineModel
from oomrl.adapters.repository import read_folder
from oomrl.agents.drafts import read_critique, read_draft
from oomrl.agents.reply import Kind, read_reply
from oomrl.domain.causes import CauseCode
from oomrl.ports import Attempt, Context
from oomrl.testing import starts

SHIPPED = read_folder(Path(__file__).parents[3] / "strategy_repo")
POLICY = parse_policy(SHIPPED["policy.toml"])
BOUNDS = tomllib.loads(SHIPPED["policy.toml"].decode())["bounds"]
MODEL = OfflineModel()


def context(*causes: str, tree: dict[str, bytes] | None = None, **settings: object) -> Context:
    tree = dict(tree or SHIPPED)
    text = tree["strategy.toml"].decode()
    for key, value in settings.items():
        section = "strategy" if key in ("cadence", "warmup") else "parameters"
        text = write(text, f"{section}.{key}", value)  # type: ignore[arg-type]
    tree["strategy.toml"] = text.encode()
    ranked = [{"code": code, "share": 1.0 / (at + 2)} for at, code in enumerate(causes)]
    return Context({"diagnostics": {"causes": ranked}}, "Mend it.", tree, BOUNDS, ("src/**/*.py", "strategy.toml"))


def answers(given: Context, most: int = 3) -> list[str]:
    """Return the diffs of one attempt after the other, each refused, until the model escalates."""
    patches: list[str] = []
    for number in range(1, most + 1):
        earlier = tuple(Attempt(at, patch, ("GR1",)) for at, patch in enumerate(patches, 1))
        reply = MODEL.answer("id", "coder", "", replace(given, attempt=number, earlier=earlier))
        assert reply is not None and reply.text.startswith(f"({LABEL})") and reply.cost == 0
        answer = read_reply(reply.text, given.tree)
        if answer.kind is Kind.ESCALATE:
            return patches
        assert answer.kind is Kind.PATCH and answer.repairs == (), answer
        patches.append(answer.patch)
    return patches


def result(given: Context, patch: str) -> dict[str, bytes]:
    judged = judge_patch(Tree(given.tree), patch.encode(), "logic", POLICY)
    assert judged.findings == (), judged.findings
    assert judged.result is not None
    return dict(judged.result)


def test_churn_is_answered_by_trading_less_often() -> None:
    given = context("churn", cadence="daily", no_trade_band=0.0, keep_fraction=0.3)
    after = read(result(given, answers(given)[0])["strategy.toml"].decode())
    assert after == read(SHIPPED["strategy.toml"].decode())


def test_blindness_to_liquidity_is_answered_by_limits_on_size() -> None:
    given = context("blind_to_liquidity", max_participation=0.25, max_sessions=1, max_position_volume=5.0)
    after = read(result(given, answers(given)[0])["strategy.toml"].decode())
    assert after == read(SHIPPED["strategy.toml"].decode())


def test_a_fault_that_the_source_gives_away_is_mended_first_where_the_signal_is_blamed() -> None:
    ranks = SHIPPED["src/strategy/ranks.py"]
    tree = {**SHIPPED, "src/strategy/ranks.py": ranks.replace(b"rank(-features.recent", b"rank(features.recent")}
    given = context("wrong_signal", tree=tree)
    assert result(given, answers(given)[0]) == SHIPPED


@pytest.mark.parametrize("code", [code.value for code in CauseCode if code is not CauseCode.STRATEGY_FAILURE])
def test_every_cause_gets_different_admissible_patches(code: str) -> None:
    given = context(
        code, "churn", cadence="daily", no_trade_band=0.0, max_participation=0.25, max_weight=0.2, momentum_window=100
    )
    patches = answers(given)
    assert len(set(patches)) == len(patches) == 3
    for patch in patches:
        result(given, patch)


def test_a_program_error_goes_to_a_person_at_once() -> None:
    given = context("strategy_failure", cadence="daily")
    assert answers(given) == []


def test_when_everything_was_tried_the_mandate_goes_to_a_person() -> None:
    given = context("churn", cadence="daily", max_participation=0.25)
    patches = answers(given, most=50)
    assert 2 <= len(patches) == len(set(patches)) < 50


def test_the_demo_s_start_is_answered_in_settings_and_in_code() -> None:
    start = (Path(starts.__file__).parent / "phase1" / "start.patch").read_bytes()
    wide = Limits(patch_bytes=10**7, files=1000, hunks=1000, changed_lines=10**5)
    tree = dict(apply_patch(Tree(SHIPPED), parse_patch(start, wide, [])))
    given = context("churn", "wrong_signal", "blind_to_liquidity", tree=tree)
    code, weekly, together = answers(given)
    assert read(result(given, weekly)["strategy.toml"].decode())["strategy.cadence"] == "weekly"
    assert result(given, code)["strategy.toml"] == tree["strategy.toml"]
    after = result(given, together)
    shipped, repaired = read(SHIPPED["strategy.toml"].decode()), read(after["strategy.toml"].decode())
    assert repaired == shipped
    for step in (b"sizing.banded(", b"liquidity.within_reach(", b"liquidity.position_caps("):
        assert step in after["src/strategy/strategy.py"] and step not in tree["src/strategy/strategy.py"]
    assert b'"max_participation": parameters.max_participation' in after["src/strategy/liquidity.py"]


def test_causes_are_those_that_the_diagnostic_knows() -> None:
    assert set(REMEDIES) <= {code.value for code in CauseCode}


def test_the_same_context_has_the_same_answer_and_an_attempt_goes_on_without_memory() -> None:
    given = context("churn", cadence="daily", no_trade_band=0.0, max_weight=0.2)
    one = [MODEL.answer("a", "coder", "", replace(given, attempt=number)) for number in (1, 2, 3)]
    two = [MODEL.answer("b", "coder", "", replace(given, attempt=number)) for number in (1, 2, 3)]
    assert one == two
    assert len({reply.text for reply in one if reply}) == 3


def test_nothing_to_mend_is_escalated() -> None:
    tree = {path: data for path, data in SHIPPED.items() if path != "strategy.toml"}
    bare = Context({}, "", tree, BOUNDS, ())
    reply = MODEL.answer("a", "coder", "", bare)
    assert reply is not None
    assert read_reply(reply.text, tree).kind is Kind.ESCALATE


def test_every_role_is_answered_and_labelled() -> None:
    given = replace(context("churn"), earlier=(Attempt(1, "--- a/x\n+++ b/x\n-exposure = 1\n+exposure = 0.8\n", ()),))
    texts = {}
    for role in ("analyst", "critic", "test_author"):
        reply = MODEL.answer("a", role, "", given)
        assert reply is not None and LABEL in reply.text
        texts[role] = reply.text
    assert "Trade less often" in read_draft(texts["analyst"]).mandate
    assert [one.severity for one in read_critique(texts["critic"]).objections] == ["note", "major"]
    assert read_reply(texts["test_author"], {}).kind is Kind.ESCALATE
