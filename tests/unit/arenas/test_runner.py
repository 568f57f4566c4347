"""Runs, orderings, certificates, pages and the Gymnasium face."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from guardrails.attestation import Signer
from oomrl.arenas import certificates, qualification, semantic
from oomrl.arenas.agents.scripted import Scripted
from oomrl.arenas.engine import Arena, Json
from oomrl.arenas.episode import play
from oomrl.arenas.faces.gymnasium_style import GymnasiumStyle
from oomrl.arenas.log import EpisodeLog, read
from oomrl.arenas.organization.transcript import structured_log
from oomrl.arenas.pages import episode_page, leaderboard_page
from oomrl.arenas.registry import find
from oomrl.arenas.runner import Ordering, list_arenas, make_agent, ordering, parse_seeds, run
from oomrl.arenas.statistics import interval, paired, sign_flip_p, student_quantile
from oomrl.errors import Mistake, Refused

SIGNER = Signer(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
NOW = datetime(2026, 1, 5, tzinfo=UTC)
BOTH = ("committee", "organization")


@pytest.fixture(scope="module", params=BOTH)
def measured(request: pytest.FixtureRequest) -> tuple[Arena, Ordering]:
    """Two tasks keep the test short; the campaign measures all of them on both splits."""
    arena = find(request.param)
    some = {name: arena.tasks[name] for name in list(arena.tasks)[::2]}
    return arena, ordering(replace(arena, tasks=some), "held_out", 20)


def test_probes_and_random_lie_below_the_heuristic_and_it_below_the_oracle(
    measured: tuple[Arena, Ordering],
) -> None:
    arena, order = measured
    assert len(arena.probes) >= 8
    assert all(gap.low > 0 for gap in order.above_floor.values()), order.above_floor
    assert order.below_oracle.low > 0
    assert order.holds


def test_advice_is_worth_something_in_the_committee() -> None:
    """The heuristic beats the same policy that asks and does not read, p < 0.01."""
    arena = find("committee")
    seeds = arena.seeds("train", 20)
    names = ("heuristic", "blinded")
    tasks = ["guided_allocation", "mandate_drift"]
    scores = [run(arena, Scripted(name), seeds, tasks).by_seed() for name in names]
    assert sign_flip_p([a - b for a, b in zip(*scores, strict=True)]) < 0.01


def test_every_semantic_check_passes(measured: tuple[Arena, Ordering]) -> None:
    arena, order = measured
    failed = [check for check in semantic.semantic_checks(arena, measured=order) if not check.passed]
    assert failed == []


@pytest.mark.parametrize("name", BOTH)
def test_five_thousand_steps_a_second_on_one_core(name: str) -> None:
    """Measured in processor time, best of three, resets included."""
    arena = find(name)
    actions = [
        {"action": "query_research"},
        {"action": "allocate", "allocation_template": "balanced_top3"},
        {"action": "hold"},
    ]
    if name == "organization":
        actions = [
            {"role": "data_analyst", "action": "query_metrics", "payload": {}},
            {"role": "oversight", "action": "no_op", "payload": {}},
        ]
    task = list(arena.tasks)[2]
    engine = arena.make()
    best = 0.0
    for attempt in range(3):
        steps, started = 0, time.process_time()
        for seed in range(25):
            observation = engine.reset(1000 * attempt + seed, task)
            while not observation.done:
                observation = engine.step(actions[steps % len(actions)])
                steps += 1
        best = max(best, steps / (time.process_time() - started))
    assert best >= 5000


def test_a_run_writes_a_log_an_episode_and_averages_tasks_by_seed(tmp_path: Path) -> None:
    arena = find("committee")
    result = run(arena, Scripted("equal_weight"), [1, 2], ["guided_allocation", "mandate_drift"], tmp_path)
    assert len(list(tmp_path.glob("*.jsonl"))) == 4
    assert len(result.by_seed()) == 2
    told = result.to_json()
    assert told["failures"] == 0
    assert told["score"]["mean"] == pytest.approx(sum(told["by_task"].values()) / 2)
    log = read((tmp_path / "committee-equal_weight-guided_allocation-1.jsonl").read_text().splitlines())
    assert log.head == result.episodes[0].log.head


def test_seeds_are_parsed_and_nonsense_is_a_mistake() -> None:
    assert parse_seeds("7,11,13") == [7, 11, 13]
    assert parse_seeds("0-3, 9") == [0, 1, 2, 3, 9]
    for text in ("", "a", "-1", "3-1", "1,1", "1-"):
        with pytest.raises(Mistake, match="Expected"):
            parse_seeds(text)


def test_an_agent_that_nobody_can_be_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="model"):
        make_agent("openai")
    with pytest.raises(Mistake, match="manual"):
        make_agent("manual")


def test_the_list_tells_tasks_policies_probes_and_limits() -> None:
    listed = {arena["name"]: arena for arena in list_arenas(BOTH)}
    assert set(listed) == set(BOTH)
    assert all(arena["limits"] and len(arena["probes"]) >= 8 for arena in listed.values())


def certificate(agent: str, results: Sequence[qualification.ArenaResult] | None = None) -> Json:
    """Certify a policy that plays one task of each arena; trials are labelled as what they are."""
    played = results or qualification.measure(Scripted(agent), BOTH, 5, ONE_TASK)
    return qualification.certify(agent, played, SIGNER.sign, NOW)


ONE_TASK = {"committee": ["guided_allocation"], "organization": ["org_simulation"]}


@pytest.fixture(scope="module")
def whole() -> list[qualification.ArenaResult]:
    """The oracle on every task of both arenas."""
    return qualification.measure(Scripted("oracle"), BOTH, 5)


def test_a_model_above_the_heuristic_gets_a_certificate_that_holds_until_it_expires(
    whole: list[qualification.ArenaResult],
) -> None:
    issued = certificate("oracle", whole)
    body = qualification.require(issued, SIGNER.public, "oracle", NOW + timedelta(days=29), BOTH)
    assert body["qualified"]
    with pytest.raises(Refused, match="expired"):
        qualification.require(issued, SIGNER.public, "oracle", NOW + timedelta(days=30), BOTH)
    with pytest.raises(Refused, match="certificate of other"):
        qualification.require(issued, SIGNER.public, "other", NOW, BOTH)
    with pytest.raises(Refused, match="research"):
        qualification.require(issued, SIGNER.public, "oracle", NOW)
    foreign = Signer(Ed25519PrivateKey.from_private_bytes(bytes(32))).public
    with pytest.raises(Refused, match="changed or foreign"):
        qualification.require(issued, foreign, "oracle", NOW, BOTH)
    issued["body"]["model"] = "other"
    with pytest.raises(Refused, match="changed or foreign"):
        qualification.require(issued, SIGNER.public, "other", NOW, BOTH)


def test_a_trial_and_other_rules_qualify_nobody(whole: list[qualification.ArenaResult]) -> None:
    committee, organization = whole
    less = (
        (replace(committee, tasks=committee.tasks[:1]), "every task"),
        (replace(committee, seeds=committee.seeds[:4]), "at least 5"),
        (replace(committee, seeds=tuple(range(5))), "held-out"),
        (replace(committee, version="1.9.0"), "committee 2.0.0"),
    )
    for changed, said in less:
        with pytest.raises(Refused, match=said):
            issued = certificate("oracle", [changed, organization])
            qualification.require(issued, SIGNER.public, "oracle", NOW, BOTH)


@pytest.mark.parametrize("broken", [{}, {"body": {}, "signature": 3}, {"body": {}, "signature": "!!"}])
def test_what_is_no_certificate_is_refused(broken: Json) -> None:
    with pytest.raises(Refused, match="Expected"):
        qualification.require(broken, SIGNER.public, "x", NOW)


def test_a_model_at_or_below_the_heuristic_is_not_qualified() -> None:
    for agent in ("random", "heuristic"):
        body = certificate(agent)["body"]
        assert not body["qualified"]
        assert not any(one["qualified"] for one in body["arenas"])


def test_a_certificate_below_the_heuristic_is_refused_by_name(whole: list[qualification.ArenaResult]) -> None:
    poor = replace(whole[1], difference={**whole[1].difference, "mean": 0.0})
    with pytest.raises(Refused, match="below the heuristic in organization$"):
        qualification.require(certificate("x", [whole[0], poor]), SIGNER.public, "x", NOW, BOTH)


def test_certificates_are_kept_by_subject_and_refused_in_one_line(
    whole: list[qualification.ArenaResult], tmp_path: Path
) -> None:
    model = {"provider": "openai", "name": "gpt-5", "base_url": "http://127.0.0.1:1/v1"}
    subject = certificates.subject_of(model)
    assert subject != certificates.subject_of({**model, "base_url": None})
    assert "none: run `oomrl qualify`" in certificates.standing(tmp_path, subject, True, NOW).refusal
    assert "rule-based" in certificates.standing(tmp_path, "offline", True, NOW).refusal
    signer = certificates.signer_of(tmp_path)
    path = certificates.save(tmp_path, qualification.certify(subject, whole, signer.sign, NOW))
    found = certificates.standing(tmp_path, subject, True, NOW)
    assert found.refusal == "Expected a certificate for every arena, was without research: run oomrl qualify"
    assert certificates.bodies_of(tmp_path)[0][1]["model"] == subject
    path.write_text("{", encoding="utf-8")
    assert certificates.bodies_of(tmp_path) == [(path.name, None)]
    assert "can be read" in certificates.standing(tmp_path, subject, True, NOW).refusal
    settings = {"loop": {"require_qualification": True}, "model": model}
    told = certificates.standing_of(tmp_path, settings, NOW)
    assert told.required and told.to_json()["qualified"] is False
    assert "\n" not in told.text and told.text.startswith(f"{subject}: not qualified (required).")


def test_students_quantile_agrees_with_tables() -> None:
    for freedom, expected in ((5, 2.571), (10, 2.228), (19, 2.093), (30, 2.042), (200, 1.972)):
        assert student_quantile(0.975, freedom) == pytest.approx(expected, abs=2e-3)


def test_intervals_and_flips() -> None:
    told = interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert (told.mean, told.low, told.high) == pytest.approx((3.5, 1.537, 5.463), abs=2e-2)
    assert interval([1.0]).low == -float("inf")
    assert paired([2.0, 3.0], [1.0, 2.0]).mean == 1.0
    assert sign_flip_p([0.1] * 12) < 0.001
    assert sign_flip_p([0.1, -0.1] * 6) > 0.3


def test_an_episodes_page_is_one_escaped_file_without_outside_hosts() -> None:
    arena = find("organization")
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"

    class Hostile:
        name = hostile

        def start(self, *_: object):  # type: ignore[no-untyped-def]
            return lambda observation: {
                "role": "engineer",
                "action": "report_anomaly",
                "payload": {"description": hostile, "severity": "low"},
            }

        def note(self) -> dict:  # type: ignore[type-arg]
            return {"said": hostile}

    page = episode_page(play(arena, Hostile(), 1, "org_simulation").log)
    assert "<script>alert" not in page and "<img" not in page
    assert page.count("<script>") == 1
    assert not re.search(r"<[^>]*(?:src|href)=(?!\"#s\d+\")|https?://|url\(", page)
    assert "default-src 'none'" in page
    assert page.count('<details class="step" id=') == 21


def test_a_failed_episodes_page_says_so() -> None:
    log = EpisodeLog()
    seen = {"data": {"a": 1}, "done": False, "reward": None, "parts": None}
    log.append(
        "start",
        {"arena": "x", "version": "1", "agent": "m", "seed": 1, "task": "t", "observation": seen},
    )
    grade = {"name": "score", "weight": 1.0, "total": 0.0}
    log.append(
        "end",
        {"score": 0.0, "grade": grade, "total_reward": 0.0, "refused": 0, "failure": "gone <away>"},
    )
    assert "gone &lt;away&gt;" in episode_page(log)


def test_the_leaderboard_ranks_agents_and_shows_certificates() -> None:
    arena = find("committee")
    runs = [run(arena, Scripted(name), [1, 2], ["guided_allocation"]) for name in ("no_op", "oracle")]
    page = leaderboard_page([one.to_json() for one in runs], [certificate("random")["body"]])
    assert page.index("oracle") < page.index("no_op")
    assert "<td>random</td><td>no</td>" in page


def test_the_gymnasium_face_plays_an_episode() -> None:
    env = GymnasiumStyle("committee")
    seen, info = env.reset(seed=3, options={"task": "guided_allocation"})
    act_on = env.policy("heuristic")
    assert info["task"] == "guided_allocation"
    assert env.action_space.contains({"action": "hold"})
    assert not env.action_space.contains({"weight": float("nan")})
    from oomrl.arenas.engine import Observation

    done, total = False, 0.0
    while not done:
        seen, reward, done, truncated, info = env.step(act_on(Observation(seen)))
        total += reward
        assert not truncated
    expected = play(find("committee"), Scripted("heuristic"), 3, "guided_allocation")
    assert info["score"] == expected.score
    assert total == pytest.approx(expected.total_reward)
    env.close()


def test_the_structured_log_has_start_step_and_end_lines() -> None:
    episode = play(find("organization"), Scripted("heuristic"), 42, "full_episode")
    lines = structured_log(episode, backend="inprocess", success_threshold=0.5).splitlines()
    assert lines[0] == ("[START] task=full_episode env=organization model=heuristic backend=inprocess seed=42")
    assert re.fullmatch(r"\[STEP\] step=1 action=\{.*\} reward=\d\.\d{4} done=False error=None", lines[1])
    assert re.fullmatch(r"\[END\] success=True steps=44 score=0\.\d{4} rewards=\[(\d\.\d{4}(, )?)+\]", lines[-1])
    assert len(lines) == 46
