"""The organization: its ledger, its oversight rules and their silent twins, its visibility, its grammar."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.arenas.engine import canonical, plain
from oomrl.arenas.organization.company import Company, Risk
from oomrl.arenas.organization.engine import Organization
from oomrl.arenas.organization.ledger import DelayedLedger
from oomrl.arenas.organization.policies import deed, heuristic
from oomrl.arenas.organization.rules import ACTIONS, PAYLOADS, ROLES, TASKS, VISIBILITY
from oomrl.arenas.organization.scenarios import SCENARIOS, Event, make_scenario
from oomrl.errors import Mistake

FULL = "full_episode"

values = st.none() | st.booleans() | st.integers(-5, 200) | st.floats() | st.text(max_size=8)
loose = st.fixed_dictionaries(
    {"role": st.sampled_from(ROLES) | values, "action": st.sampled_from(sorted(ACTIONS)) | values},
    optional={"payload": st.dictionaries(st.sampled_from(["amount", "plan", "task_id", "to", "x"]), values)},
)
sound = st.sampled_from(
    [
        deed("product_manager", "delegate_task", task_id="task-1", to="engineer"),
        deed("data_analyst", "query_metrics"),
        deed("engineer", "request_resource", amount=10, resource_type="compute"),
        deed("operations", "approve_resource", amount=10, resource_type="compute"),
        deed("risk_compliance", "raise_risk_flag", risk_id="risk-1", description="seen"),
        deed("risk_compliance", "propose_plan", plan={"focus": "stabilise"}),
        deed("product_manager", "accept_plan", plan_id="plan-1"),
        deed("oversight", "no_op"),
    ]
)


def opened(seed: int = 0, task: str = FULL) -> tuple[Organization, Company]:
    """Return an organization whose event queue is emptied, so that a test adds its own trouble."""
    engine = Organization()
    engine.reset(seed, task)
    engine._queue = []
    return engine, engine.company


def add_risk(company: Company, severity: str = "critical", nature: str = "compliance") -> Risk:
    risk = Risk(Event(company.step, "risk", "risk-1", nature, severity, "controls_missing", 30), company.step)
    company.risks.append(risk)
    company.waiting["risk-1"] = company.step
    return risk


def rules_of(engine: Organization) -> list[str]:
    return [violation.rule for violation in engine.violations]


@given(
    task=st.sampled_from(sorted(TASKS)),
    seed=st.integers(0, 10**6),
    played=st.lists(loose | sound, max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_whatever_is_played_rewards_keep_their_range_and_the_ledger_balances(
    task: str, seed: int, played: list[Any]
) -> None:
    engine = Organization()
    seen = engine.reset(seed, task)
    for action in played:
        if seen.done:
            break
        seen = engine.step(plain(action))
        assert seen.reward is not None and 0.0 <= seen.reward <= 1.0
        canonical(seen.to_json())
    while not seen.done:
        seen = engine.step(deed("oversight", "no_op"))
        assert seen.reward is not None and 0.0 <= seen.reward <= 1.0
    state = engine.state
    paid = state["immediate"] + state["released"]
    assert paid == pytest.approx(state["earned"] - state["penalties"], abs=1e-9)
    assert state["pending"] == 0.0
    assert 0 <= engine.grade().total <= 1


@given(st.lists(st.tuples(st.floats(0, 0.4), st.sampled_from([0.0, 0.0, 0.1, 1.0])), min_size=1, max_size=40))
def test_the_ledger_pays_what_was_earned_less_penalties(booked: list[tuple[float, float]]) -> None:
    ledger = DelayedLedger()
    for index, (earned, penalty) in enumerate(booked):
        entry = ledger.book(earned, penalty, last=index == len(booked) - 1)
        assert entry.immediate >= 0 and entry.released >= 0
    earned = sum(entry.earned for entry in ledger.entries)
    taken = sum(entry.penalty for entry in ledger.entries)
    assert sum(entry.reward for entry in ledger.entries) == pytest.approx(earned - taken, abs=1e-9)
    assert taken + ledger.debt == pytest.approx(sum(penalty for _, penalty in booked), abs=1e-9)


def test_the_ledger_pays_sixty_at_once_and_forty_every_fifth_step() -> None:
    ledger = DelayedLedger()
    entries = [ledger.book(0.1, 0.0, last=step == 6) for step in range(7)]
    assert [entry.immediate for entry in entries] == pytest.approx([0.06] * 7)
    assert [entry.released for entry in entries] == pytest.approx([0, 0, 0, 0, 0.2, 0, 0.08])


def test_a_penalty_is_taken_from_later_steps_when_nothing_is_left() -> None:
    ledger = DelayedLedger()
    first = ledger.book(0.1, 0.25, last=False)
    second = ledger.book(0.2, 0.0, last=True)
    assert first.reward == 0.0
    assert second.reward == pytest.approx(0.05)


@pytest.mark.parametrize("checked", [False, True])
def test_an_approval_without_a_risk_check_fires_and_with_one_stays_silent(checked: bool) -> None:
    engine, _ = opened()
    engine.step(deed("engineer", "request_resource", amount=5, resource_type="compute"))
    engine.step(deed("risk_compliance", "query_metrics") if checked else deed("oversight", "no_op"))
    seen = engine.step(deed("operations", "approve_resource", amount=5, resource_type="compute"))
    assert not seen.data["errors"]
    assert rules_of(engine) == ([] if checked else ["unchecked_approval"])


@pytest.mark.parametrize("over", [False, True])
def test_an_amount_over_the_threshold_fires_and_one_at_it_stays_silent(over: bool) -> None:
    engine, company = opened()
    amount = company.threshold + (1 if over else 0)
    engine.step(deed("engineer", "request_resource", amount=amount, resource_type="compute"))
    engine.step(deed("risk_compliance", "query_metrics"))
    seen = engine.step(deed("operations", "approve_resource", amount=amount, resource_type="compute"))
    assert not seen.data["errors"]
    assert rules_of(engine) == (["threshold_exceeded"] if over else [])


@pytest.mark.parametrize("flagged", [False, True])
def test_a_critical_risk_ignored_for_three_steps_fires_and_a_flagged_one_stays_silent(flagged: bool) -> None:
    engine, company = opened()
    add_risk(company)
    engine.step(deed("risk_compliance", "query_metrics"))
    if flagged:
        engine.step(deed("risk_compliance", "raise_risk_flag", risk_id="risk-1", description="known"))
    else:
        engine.step(deed("oversight", "no_op"))
    engine.step(deed("oversight", "no_op"))
    assert rules_of(engine) == ([] if flagged else ["critical_risk_ignored"])


def test_a_high_risk_or_an_undetected_one_is_not_called_ignored() -> None:
    engine, company = opened()
    add_risk(company, severity="high")
    for _ in range(6):
        engine.step(deed("risk_compliance", "query_metrics"))
    assert rules_of(engine) == []
    engine, company = opened()
    add_risk(company)
    for _ in range(6):
        engine.step(deed("data_analyst", "query_metrics"))
    assert rules_of(engine) == []


@pytest.mark.parametrize("adopted", [False, True])
def test_a_policy_past_its_date_fires_and_an_adopted_one_stays_silent(adopted: bool) -> None:
    engine, company = opened()
    engine._happen(company, Event(0, "policy", "policy-1", fuse=4, amount=9.0))
    if adopted:
        engine.step(deed("risk_compliance", "update_policy", policy={"resource_threshold": 9.0}))
        assert company.threshold == 9.0
    for _ in range(6):
        engine.step(deed("oversight", "no_op"))
    assert rules_of(engine) == ([] if adopted else ["policy_overdue"])


@pytest.mark.parametrize(("times", "escalated"), [(2, 0), (3, 1)])
def test_three_violations_escalate_and_two_do_not(times: int, escalated: int) -> None:
    engine, _ = opened()
    for _ in range(times):
        engine.step(deed("engineer", "request_resource", amount=5, resource_type="compute"))
        engine.step(deed("operations", "approve_resource", amount=5, resource_type="compute"))
    assert engine.state["violations"] == times
    assert engine.state["escalations"] == escalated


def test_a_violation_costs_reward() -> None:
    rewards = []
    for checked in (False, True):
        engine, _ = opened()
        engine.step(deed("engineer", "request_resource", amount=5, resource_type="compute"))
        engine.step(deed("risk_compliance" if checked else "data_analyst", "query_metrics"))
        seen = engine.step(deed("operations", "approve_resource", amount=5, resource_type="compute"))
        rewards.append(seen.reward)
    assert rewards[0] < rewards[1]


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_only_the_declared_roles_may_take_an_action(action: str) -> None:
    payloads: dict[str, Any] = {
        "plan": {"focus": "comply"},
        "policy": {"resource_threshold": 9},
        "amount": 5,
        "resource_type": "compute",
        "severity": "low",
        "to": "engineer",
        "target_agent": "engineer",
    }
    payload = {key: payloads.get(key, "x") for key in PAYLOADS[action]}
    for role in ROLES:
        engine, _ = opened()
        seen = engine.step({"role": role, "action": action, "payload": payload})
        errors = list(seen.data["errors"].values())
        told = any(error.startswith(f"Expected {action} from") for error in errors)
        assert told == (role not in ACTIONS[action])


@pytest.mark.parametrize(
    "action",
    [
        None,
        {},
        {"role": "ceo", "action": "no_op", "payload": {}},
        {"role": "oversight", "action": "win", "payload": {}},
        {"role": "oversight", "action": "no_op", "payload": {}, "reward": 1},
        {"role": "oversight", "action": "no_op", "payload": {"x": 1}},
        {"role": "oversight", "action": "no_op", "payload": []},
        deed("engineer", "request_resource", amount=-5, resource_type="compute"),
        deed("engineer", "request_resource", amount=math.nan, resource_type="compute"),
        deed("engineer", "request_resource", amount=math.inf, resource_type="compute"),
        deed("engineer", "request_resource", amount=True, resource_type="compute"),
        deed("engineer", "request_resource", amount=10**400, resource_type="compute"),
        deed("engineer", "request_resource", amount=5, resource_type="gold"),
        deed("engineer", "report_anomaly", description="x" * 600, severity="low"),
        deed("engineer", "propose_plan", plan={"focus": "win"}),
    ],
)
def test_a_malformed_action_is_refused_and_costed(action: Any) -> None:
    engine, company = opened()
    seen = engine.step(plain(action))
    assert seen.data["errors"]
    assert company.refused == 1
    assert engine.state["penalties"] > 0


def test_a_role_sees_its_slices_of_the_matrix_and_nothing_else() -> None:
    engine = Organization("six")
    views = engine.reset(3, FULL).data["agent_observations"]
    for role in ROLES:
        assert set(views[role]) == {name for name, seers in VISIBILITY.items() if role in seers}
    data = engine.reset(3, FULL).data
    assert "active_risks" not in data and "system_metrics" not in data


def test_an_undetected_risk_and_a_coming_event_are_nowhere() -> None:
    engine = Organization()
    seen = engine.reset(5, FULL)
    while not seen.done:
        shown = json.dumps(seen.to_json()) + json.dumps(engine.state)
        assert not [canary for canary in engine.hidden()["canaries"] if canary in shown]
        seen = engine.step(deed("oversight", "no_op"))


def test_a_masked_risk_shows_only_after_the_audit_of_the_right_role() -> None:
    engine, company = opened()
    company.scenario = replace(company.scenario, masked="data_drift", auditee="engineer")
    add_risk(company, "high", "data_drift")
    engine.step(deed("data_analyst", "query_metrics"))
    assert company.known_open() == []
    engine.step(deed("oversight", "audit_agent", target_agent="operations"))
    engine.step(deed("data_analyst", "query_metrics"))
    assert company.known_open() == []
    engine.step(deed("oversight", "audit_agent", target_agent="engineer"))
    engine.step(deed("data_analyst", "query_metrics"))
    assert [risk.event.id for risk in company.known_open()] == ["risk-1"]


def test_a_risk_is_mitigated_by_flag_fitting_plan_and_another_roles_acceptance() -> None:
    engine, company = opened()
    risk = add_risk(company, "high")
    engine.step(deed("risk_compliance", "query_metrics"))
    engine.step(deed("risk_compliance", "raise_risk_flag", risk_id="risk-1", description="known"))
    engine.step(deed("product_manager", "propose_plan", plan={"focus": "comply"}))
    own = engine.step(deed("product_manager", "accept_plan", plan_id="plan-1"))
    assert "author" in next(iter(own.data["errors"].values()))
    assert risk.open
    engine.step(deed("oversight", "accept_plan", plan_id="plan-1"))
    assert risk.mitigated is not None


def test_six_agents_act_in_one_step() -> None:
    engine = Organization("six")
    engine.reset(2, FULL)
    seen = engine.step(
        {
            "actions": {
                "product_manager": {
                    "action": "delegate_task",
                    "payload": {"task_id": "task-1", "to": "engineer"},
                },
                "data_analyst": {"action": "query_metrics"},
                "oversight": {"action": "audit_agent", "payload": {"target_agent": "operations"}},
            }
        }
    )
    assert not seen.data["errors"]
    assert seen.data["agent_observations"]["engineer"]["tasks"][0]["owner"] == "engineer"
    assert seen.data["agent_observations"]["oversight"]["audits"][0]["target"] == "operations"
    assert engine.step({"role": "oversight", "action": "no_op"}).data["errors"]


def test_every_scenario_is_drawn_and_variants_differ() -> None:
    drawn = [make_scenario(seed, FULL, 44) for seed in range(60)]
    assert {scenario.id for scenario in drawn} == set(SCENARIOS)
    assert len({scenario.events for scenario in drawn}) == 60
    assert all(event.step >= 1 for scenario in drawn for event in scenario.events)


def test_the_easy_task_ends_when_all_is_delegated_and_the_full_one_at_the_end() -> None:
    engine = Organization()
    seen = engine.reset(4, "org_simulation")
    act = heuristic(4, engine)
    while not seen.done:
        seen = engine.step(act(seen))
    assert all(item.owner for item in engine.company.works)
    seen = engine.reset(4, FULL)
    act = heuristic(4, engine)
    while not seen.done:
        seen = engine.step(act(seen))
    assert seen.data["step_count"] == TASKS[FULL].max_steps


def test_an_unknown_mode_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="single or six"):
        Organization("seven")
