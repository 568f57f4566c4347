from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from oomrl.adapters.database import Conflict, Store
from oomrl.domain.records import (
    Act,
    CapitalEvent,
    CapitalKind,
    CapitalState,
    Deployment,
    DeploymentKind,
    Job,
    JobState,
    Loss,
    OrderEvent,
    OrderState,
    Prompt,
    PromptStatus,
    Proposal,
    ProposalStatus,
    Review,
    RunStatus,
    StoredAttestation,
    StoredDiagnostic,
    StoredFill,
    StoredVerdict,
)
from oomrl.errors import Halt, Mistake
from tests.integration.database import builders as build
from tests.integration.database.builders import AT, RUN

LOSS = Loss("loss-1", RUN, build.FIRST, "diagnose", "principal_loss", 0.11, 0.10, AT, {"window": [1, 2]})
DIAGNOSTIC = StoredDiagnostic("diag-1", "loss-1", RUN, build.FIRST, {"event": "X", "parts": {"market": -1.5}}, AT)
PROMPT = Prompt("coder-1-abc", RUN, "diag-1", "coder", 1, "Mend it: \u2014 ```", AT, version="coder/1")
PROPOSAL = Proposal(
    "prop-1", "d" * 64, RUN, "diag-1", 1, "offline", "r" * 64, "b" * 64, AT, "--- a/x\n+++ b/x\n", repairs=("fences",)
)
VERDICT = StoredVerdict("v" * 64, "prop-1", RUN, "pass", "b" * 64, "t" * 64, {"findings": []}, AT)
REVIEW = Review("rev-1", "prop-1", RUN, "Ann", Act.APPROVE, "fine", "b" * 64, "t" * 64, "v" * 64, AT)


@pytest.fixture
def store(store: Store) -> Store:
    with store.begin() as work:
        work.runs.start(build.run())
        work.losses.save(LOSS)
        work.losses.save_diagnostic(DIAGNOSTIC)
        work.prompts.ask(PROMPT)
        work.proposals.save(PROPOSAL)
        work.proposals.save_verdict(VERDICT)
        work.proposals.save_review(REVIEW)
    return store


def test_everything_comes_back_as_it_went_in(store: Store) -> None:
    with store.read() as view:
        assert view.runs.get(RUN) == build.run() and view.runs.all() == [build.run()]
        assert view.losses.all(RUN) == [LOSS] and view.losses.get(RUN, "loss-1") == LOSS
        assert view.losses.diagnostics(RUN) == [DIAGNOSTIC]
        assert view.prompts.all(RUN) == [PROMPT]
        assert view.proposals.all(RUN) == [PROPOSAL]
        assert view.proposals.verdict(RUN, "prop-1") == VERDICT
        assert view.proposals.reviews(RUN, "prop-1") == [REVIEW]


def test_everything_may_be_written_twice(store: Store) -> None:
    later = AT + timedelta(hours=1)
    with store.begin() as work:
        assert not work.runs.start(replace(build.run(), started_at=later))
        assert not work.losses.save(replace(LOSS, at=later))
        assert not work.losses.save_diagnostic(replace(DIAGNOSTIC, at=later))
        assert not work.prompts.ask(replace(PROMPT, asked_at=later))
        assert not work.proposals.save(replace(PROPOSAL, at=later))
        assert not work.proposals.save_verdict(replace(VERDICT, at=later))
        assert not work.proposals.save_review(replace(REVIEW, at=later))


@pytest.mark.parametrize(
    ("shelf", "method", "record"),
    [
        ("runs", "start", replace(build.run(), seed=8)),
        ("losses", "save", replace(LOSS, value=0.2)),
        ("losses", "save_diagnostic", replace(DIAGNOSTIC, payload={"event": "Y"})),
        ("losses", "save_diagnostic", replace(DIAGNOSTIC, id="diag-2")),
        ("prompts", "ask", replace(PROMPT, text="other")),
        ("proposals", "save", replace(PROPOSAL, logic_patch="other")),
        ("proposals", "save_verdict", replace(VERDICT, outcome="refuse")),
        ("proposals", "save_review", replace(REVIEW, act=Act.REJECT)),
    ],
)
def test_nothing_may_be_written_otherwise(store: Store, shelf: str, method: str, record: object) -> None:
    with pytest.raises(Conflict), store.begin() as work:
        getattr(getattr(work, shelf), method)(record)


def test_reviews_of_one_instant_keep_their_order(store: Store) -> None:
    others = [replace(REVIEW, id=f"rev-{name}", reviewer=name) for name in ("Zoe", "Bob", "Mia", "Cid")]
    for one in others:
        with store.begin() as work:
            work.proposals.save_review(one)
    with store.read() as view:
        assert view.proposals.reviews(RUN) == [REVIEW, *others]


def test_rows_without_their_ground_are_refused(store: Store) -> None:
    with pytest.raises(Halt, match="fit together"), store.begin() as work:
        work.prompts.ask(replace(PROMPT, id="p2", diagnostic="nowhere"))
    with pytest.raises(Halt, match="fit together"), store.begin() as work:
        work.proposals.save_verdict(replace(VERDICT, digest="w" * 64, proposal="nowhere"))


def test_a_run_ends_with_its_figures(store: Store) -> None:
    with store.begin() as work:
        work.runs.finish(RUN, RunStatus.FINISHED, {"sharpe": 0.5, "missing": None})
    with store.read() as view:
        ended = view.runs.get(RUN)
    assert ended is not None
    assert ended.status is RunStatus.FINISHED and ended.result == {"sharpe": 0.5, "missing": None}


def test_a_mandate_is_drafted_then_confirmed(store: Store) -> None:
    with store.begin() as work:
        work.losses.set_mandate(RUN, "diag-1", "Trade less.", "analyst", confirmed=False)
        work.losses.set_mandate(RUN, "diag-1", "Trade weekly.", "Ann", confirmed=True)
        work.losses.set_status(RUN, "diag-1", "solved")
    with store.read() as view:
        found = view.losses.diagnostic(RUN, "diag-1")
        assert view.losses.diagnostics(RUN, "open") == []
    assert found is not None and (found.mandate, found.mandate_by, found.confirmed) == ("Trade weekly.", "Ann", True)
    with pytest.raises(Mistake, match="nowhere"), store.begin() as work:
        work.losses.set_status(RUN, "nowhere", "solved")


def test_a_prompt_is_answered_once_and_billed(store: Store) -> None:
    with store.begin() as work:
        assert [prompt.id for prompt in work.prompts.pending(RUN)] == [PROMPT.id]
        assert work.prompts.answer(RUN, PROMPT.id, "a diff", AT, "m-1", 1200, 34, Decimal("0.00123456"), "length")
        assert not work.prompts.answer(RUN, PROMPT.id, "a diff", AT, "m-1", 1200, 34, Decimal("0.00123456"))
        assert work.prompts.pending(RUN) == []
    with pytest.raises(Conflict, match="one reply"), store.begin() as work:
        work.prompts.answer(RUN, PROMPT.id, "another", AT, "m-1")
    with pytest.raises(Mistake, match="nowhere"), store.begin() as work:
        work.prompts.answer(RUN, "nowhere", "a diff", AT, "m-1")
    with store.read() as view:
        answered = view.prompts.get(RUN, PROMPT.id)
        assert view.prompts.bill(RUN) == (1200, 34, Decimal("0.00123456"))
    assert answered is not None and answered.cost == Decimal("0.00123456") and answered.answered_at == AT
    assert answered.finish == "length"


def test_a_withdrawn_prompt_takes_no_reply(store: Store) -> None:
    with store.begin() as work:
        work.prompts.close(RUN, PROMPT.id, PromptStatus.WITHDRAWN, "the loss was endowed away")
    with pytest.raises(Mistake, match="withdrawn"), store.begin() as work:
        work.prompts.answer(RUN, PROMPT.id, "a diff", AT, "m-1")


def test_a_proposal_moves_through_its_states(store: Store) -> None:
    with store.begin() as work:
        work.proposals.set_status(RUN, "prop-1", ProposalStatus.PASSED, "t" * 64)
    with store.read() as view:
        assert view.proposals.all(RUN, status=ProposalStatus.PROPOSED) == []
        found = view.proposals.get(RUN, "prop-1")
    assert found == replace(PROPOSAL, status=ProposalStatus.PASSED, result_tree="t" * 64)
    with pytest.raises(Mistake, match="nowhere"), store.begin() as work:
        work.proposals.set_status(RUN, "nowhere", ProposalStatus.PASSED)


def test_deployments_form_one_line(store: Store) -> None:
    first = Deployment(RUN, 1, "a" * 64, "", DeploymentKind.START, build.FIRST, AT)
    second = Deployment(RUN, 2, "b" * 64, "a" * 64, DeploymentKind.DEPLOY, build.FIRST, AT, "prop-1", "because")
    with store.begin() as work:
        assert work.deployments.save(first) and work.deployments.save(second)
        assert not work.deployments.save(second) and not work.deployments.save(first)
    with store.read() as view:
        assert view.deployments.current(RUN) == second and view.deployments.all(RUN) == [first, second]
    with pytest.raises(Halt, match="deployment 3"), store.begin() as work:
        work.deployments.save(replace(second, sequence=4))
    with pytest.raises(Halt, match="which trades"), store.begin() as work:
        work.deployments.save(replace(second, sequence=3, base="c" * 64))


def test_out_of_money_is_left_by_an_endowment_alone(store: Store) -> None:
    def event(key: str, kind: CapitalKind, amount: str = "0") -> CapitalEvent:
        return CapitalEvent(key, RUN, kind, build.FIRST, AT, Decimal(amount), "Ann", f"reason of {key}")

    with store.begin() as work:
        assert work.capital.save(event("start", CapitalKind.ENDOW, "1000.00"))
        assert not work.capital.save(event("start", CapitalKind.ENDOW, "1000.00"))
        work.capital.save(event("halt", CapitalKind.HALT))
        assert work.capital.state(RUN) == CapitalState(Decimal("1000.00"), True, "reason of halt", False)
        work.capital.save(event("out", CapitalKind.OUT_OF_MONEY))
        work.capital.save(event("resume", CapitalKind.RESUME))
        state = work.capital.state(RUN)
        assert state.out_of_money and not state.halted and not state.may_trade
        work.capital.save(event("more", CapitalKind.ENDOW, "500.00"))
        assert work.capital.state(RUN) == CapitalState(Decimal("1500.00"), False, "", False)
    with pytest.raises(Conflict), store.begin() as work:
        work.capital.save(event("start", CapitalKind.ENDOW, "2000.00"))


def test_the_attestation_chain_takes_only_the_next_link(store: Store) -> None:
    first = StoredAttestation(1, "1" * 64, "", "deploy", "rev", "{}", AT)
    second = StoredAttestation(2, "2" * 64, "1" * 64, "deploy", "rev", "{}", AT)
    with store.begin() as work:
        assert work.attestations.append(first) and work.attestations.append(second)
        assert not work.attestations.append(first)
        assert work.attestations.head() == second and work.attestations.all() == [first, second]
    for wrong in (replace(second, sequence=4), replace(second, sequence=3), replace(first, envelope="forged")):
        with pytest.raises(Conflict), store.begin() as work:
            work.attestations.append(wrong)


def test_a_broker_s_order_lives_through_its_events(store: Store) -> None:
    batch = build.orders(0)
    name = batch.ids[0]
    fill = StoredFill(name, 1, build.day(1), "S0", Decimal("1.5"), Decimal("10.1234"), Decimal("-15.19"))
    with store.begin() as work:
        work.orders.save(RUN, batch, None)
    with store.begin() as work:
        assert work.orders.move(RUN, OrderEvent(name, 1, AT, "accepted", {"broker_id": "x"}), OrderState.WORKING)
        assert not work.orders.move(RUN, OrderEvent(name, 1, AT, "accepted", {"broker_id": "x"}), OrderState.WORKING)
        assert work.orders.add_fill(RUN, fill) and not work.orders.add_fill(RUN, fill)
        work.orders.move(RUN, OrderEvent(name, 2, AT, "fill"), OrderState.FILLED)
    with store.read() as view:
        stored = view.orders.get(RUN, name)
        assert stored is not None and stored.state is OrderState.FILLED
        assert view.orders.fills(RUN) == [fill]
        assert [event.kind for event in view.orders.events(RUN, name)] == ["accepted", "fill"]
    with pytest.raises(Halt, match="stay filled"), store.begin() as work:
        work.orders.move(RUN, OrderEvent(name, 3, AT, "cancelled"), OrderState.CANCELLED)
    with pytest.raises(Halt, match="durable first"), store.begin() as work:
        work.orders.move(RUN, OrderEvent("unknown", 1, AT, "accepted"), OrderState.WORKING)
    with pytest.raises(Conflict), store.begin() as work:
        work.orders.add_fill(RUN, replace(fill, price=Decimal("10.12")))


def test_instants_keep_their_moment_and_need_a_zone(store: Store) -> None:
    tokyo = datetime(2020, 1, 3, 6, 0, tzinfo=timezone(timedelta(hours=9)))
    with store.begin() as work:
        work.losses.save(replace(LOSS, id="loss-tokyo", at=tokyo))
    with store.read() as view:
        found = view.losses.get(RUN, "loss-tokyo")
    assert found is not None and found.at == tokyo and found.at.tzinfo is UTC
    with pytest.raises(Exception, match="aware instant"), store.begin() as work:
        work.losses.save(replace(LOSS, id="loss-naive", at=datetime(2020, 1, 3)))  # noqa: DTZ001


def test_looking_changes_nothing(store: Store) -> None:
    try:
        with store.read() as view:
            view.losses.set_status(RUN, "diag-1", "solved")
    except Halt as error:
        assert "read-only" in str(error)
    with store.read() as view:
        assert view.losses.diagnostics(RUN, "open") == [DIAGNOSTIC]


def test_a_job_is_done_once_for_a_session(store: Store) -> None:
    job = Job(RUN, "rebalance", build.FIRST, AT)
    with store.begin() as work:
        assert work.jobs.plan(job) and not work.jobs.plan(job)
        assert work.jobs.unfinished(RUN) == [job]
        assert work.jobs.start(job, AT)
    with store.begin() as work:
        assert work.jobs.start(job, AT + timedelta(minutes=1)), "a job whose worker died starts again"
        work.jobs.end(job, JobState.DONE, AT + timedelta(minutes=2), "3 orders")
        assert not work.jobs.start(job, AT)
        work.jobs.end(job, JobState.FAILED, AT)
        assert not work.jobs.plan(job) and work.jobs.unfinished(RUN) == []
    with store.read() as view:
        (done,) = view.jobs.all(RUN)
    assert (done.state, done.attempts, done.note) == (JobState.DONE, 2, "3 orders")


def test_a_lease_has_one_holder_until_it_runs_out(store: Store) -> None:
    life = timedelta(seconds=30)
    with store.begin() as work:
        first = work.leases.take("lead", "one", AT, life)
        assert first is not None and first.term == 1
        assert work.leases.take("lead", "two", AT + timedelta(seconds=29), life) is None
        renewed = work.leases.take("lead", "one", AT + timedelta(seconds=29), life)
        assert renewed is not None and renewed.term == 1
        work.leases.demand(first, AT + timedelta(seconds=58))
    with pytest.raises(Halt, match="took over"), store.begin() as work:
        work.leases.demand(first, AT + timedelta(seconds=59))
    with store.begin() as work:
        second = work.leases.take("lead", "two", AT + timedelta(seconds=60), life)
        assert second is not None and second.term == 2
        assert work.leases.take("lead", "one", AT + timedelta(seconds=61), life) is None
    with pytest.raises(Halt, match="took over"), store.begin() as work:
        work.leases.demand(first, AT + timedelta(seconds=61))
    with store.begin() as work:
        work.leases.release(second, AT + timedelta(seconds=62))
        third = work.leases.take("lead", "one", AT + timedelta(seconds=63), life)
    assert third is not None and third.term == 3
