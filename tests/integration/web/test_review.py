"""What an approval needs, what makes it void, and what becomes of a reviewer's words."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from datetime import date

import pytest

from oomrl.adapters.desk import Desk
from oomrl.adapters.reviewer import StoredReviews
from oomrl.domain.people import RIGHTS, Forbidden, Person, Role
from oomrl.domain.records import (
    Act,
    Deployment,
    DeploymentKind,
    Prompt,
    PromptStatus,
    Proposal,
    ProposalStatus,
    Review,
    StoredVerdict,
)
from oomrl.errors import Mistake, Refused
from oomrl.review import Bound
from oomrl.settings import ReviewSettings
from oomrl.stages import Waiting
from tests.integration.web.conftest import Page
from tests.states import AT, RUN, MadeUp

ANN, BOB = (Person(name, RIGHTS[Role.REVIEWER]) for name in ("ann", "bob"))
OLGA = Person("olga", RIGHTS[Role.OPERATOR])
ADA = Person("ada", RIGHTS[Role.ADMIN], "token")


@pytest.fixture
def desk(page: Page) -> Desk:
    return page.site.desk


@pytest.fixture
def made(page: Page) -> MadeUp:
    return page.made


def risky(made: MadeUp, attempt: int = 1, **more: object) -> Proposal:
    toml = made.tree["strategy.toml"].replace(b"exposure = 0.98", b"exposure = 0.9")
    return made.proposal(attempt=attempt, changes={"strategy.toml": toml}, **more)  # type: ignore[arg-type]


def loop_says(desk: Desk, proposal: Proposal, rules: ReviewSettings | None = None) -> Review | Waiting:
    """Return what the loop would do with a proposal now."""
    with desk.store.read() as view:
        verdict = view.proposals.verdict(RUN, proposal.id)
    assert verdict is not None
    reviews = StoredReviews(RUN, desk.store, desk.repository, desk.now, automatic=False, rules=rules or desk.rules)
    return reviews.review(proposal, verdict, desk.repository.head())


def test_one_person_is_enough_for_an_ordinary_change(desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal()
    assert loop_says(desk, proposal) == Waiting("review", proposal.id)
    desk.look(ANN, proposal.id)
    given = desk.decide(ANN, proposal.id, Act.APPROVE, "reads well")
    assert loop_says(desk, proposal) == given
    assert desk.case(ANN, proposal.id).proposal.status is ProposalStatus.APPROVED


def test_risk_takes_two_different_people(desk: Desk, made: MadeUp) -> None:
    proposal = risky(made)
    case = desk.look(ANN, proposal.id)
    assert (case.risk.name, case.risk.approvals, case.risk.because) == ("risk", 2, ("parameters.exposure",))
    desk.decide(ANN, proposal.id, Act.APPROVE, "less at risk")
    with pytest.raises(Refused, match="not recorded before"):
        desk.decide(ANN, proposal.id, Act.APPROVE, "less at risk")
    assert loop_says(desk, proposal) == Waiting("review", proposal.id)
    desk.look(BOB, proposal.id)
    desk.decide(BOB, proposal.id, Act.APPROVE, "agreed")
    assert isinstance(loop_says(desk, proposal), Review)


def test_one_person_in_two_spellings_is_one(desk: Desk, made: MadeUp) -> None:
    proposal = risky(made)
    for name in ("ann", "Ann"):
        person = replace(ANN, name=name)
        desk.look(person, proposal.id)
        desk.decide(person, proposal.id, Act.APPROVE, f"as {name}")
    assert loop_says(desk, proposal) == Waiting("review", proposal.id)


@pytest.mark.parametrize("author", ["ann", "Ann", "manual <ann>", "manual <bob>, manual <ann>"])
def test_the_proposer_never_approves_as_person_or_by_token(desk: Desk, made: MadeUp, author: str) -> None:
    proposal = made.proposal(author=author)
    for person in (ANN, replace(ANN, how="token")):
        desk.look(person, proposal.id)
        with pytest.raises(Refused, match="proposer"):
            desk.decide(person, proposal.id, Act.APPROVE, "mine")


def test_an_approval_needs_the_diff_opened_by_the_same_person(desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal()
    desk.look(BOB, proposal.id)
    with pytest.raises(Refused, match="opened"):
        desk.decide(ANN, proposal.id, Act.APPROVE, "blind")


def test_an_approval_needs_a_reason_and_every_blocking_remark_settled(desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal()
    desk.look(ANN, proposal.id)
    note = desk.comment(BOB, proposal.id, "nice", blocking=False)
    remark = desk.comment(BOB, proposal.id, "why?", "src/strategy/ranks.py", 3)
    with pytest.raises(Mistake, match="reason"):
        desk.decide(ANN, proposal.id, Act.APPROVE, " ")
    with pytest.raises(Refused, match="why"):
        desk.decide(ANN, proposal.id, Act.APPROVE, "ok")
    desk.resolve(BOB, proposal.id, remark.id, "resolved")
    assert not note.stands_in_the_way
    desk.decide(ANN, proposal.id, Act.APPROVE, "ok")


def test_each_objection_of_the_critic_is_answered_or_dismissed(desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal()
    reply = '{"summary": "s", "objections": [{"severity": "major", "text": "It fits the past", "path": "", "line": 0}]}'
    critic = Prompt("critic-1", RUN, "diag-1", "critic", 1, "attack", AT, status=PromptStatus.ANSWERED, reply=reply)
    with desk.store.begin() as work:
        work.prompts.ask(critic)
    case = desk.look(ANN, proposal.id)
    objection = case.blocking[0]
    assert objection.text == "It fits the past"
    with pytest.raises(Refused, match="fits the past"):
        desk.decide(ANN, proposal.id, Act.APPROVE, "ok")
    with pytest.raises(Mistake):
        desk.resolve(ANN, proposal.id, objection.id, "resolved")
    with pytest.raises(Mistake, match="answer"):
        desk.resolve(ANN, proposal.id, objection.id, "dismissed", "")
    desk.resolve(ANN, proposal.id, objection.id, "answered", "Held-back windows agree.")
    desk.decide(ANN, proposal.id, Act.APPROVE, "ok")


def test_a_request_for_changes_resets_votes_and_ends_the_revision(page: Page, desk: Desk, made: MadeUp) -> None:
    proposal = risky(made)
    desk.look(ANN, proposal.id)
    desk.decide(ANN, proposal.id, Act.APPROVE, "fine")
    page.clock.on(seconds=1)
    desk.decide(BOB, proposal.id, Act.REQUEST_CHANGES, "say why 0.9")
    assert desk.case(ANN, proposal.id).votes == []
    said = loop_says(desk, proposal)
    assert isinstance(said, Review) and said.act is Act.REQUEST_CHANGES
    for act in (
        lambda: desk.decide(ANN, proposal.id, Act.APPROVE, "still"),
        lambda: desk.comment(ANN, proposal.id, "x"),
    ):
        with pytest.raises(Refused):
            act()


def test_a_new_revision_shows_the_diff_from_the_one_sent_back(page: Page, desk: Desk, made: MadeUp) -> None:
    first = made.proposal()
    desk.decide(ANN, first.id, Act.REQUEST_CHANGES, "say why")
    source = made.tree["src/strategy/ranks.py"]
    both = source + b"\n# attempt 1\n# because ranks are stable\n"
    second = made.proposal(attempt=2, changes={"src/strategy/ranks.py": both})
    browser = page.as_("ann")
    browser.act(f"/proposals/{second.id}/look")
    since = browser.get(f"/proposals/{second.id}?against={first.id}&view=unified").text
    diff = since.partition('id="diff"')[2].partition('id="compared"')[0]
    assert diff.count('class="new"') == 1 and "because ranks are stable" in diff
    whole = browser.get(f"/proposals/{second.id}?view=unified&against=base").text
    assert whole.partition('id="diff"')[2].partition('id="compared"')[0].count('class="new"') == 3
    assert desk.case(ANN, second.id).votes == []


def test_changed_lines_that_no_test_reaches_and_mutants_that_survive_are_shown(page: Page, made: MadeUp) -> None:
    text = page.as_("ann").get(f"/proposals/{made.proposal().id}").text
    measured = text.partition('id="measured"')[2].partition('id="objections"')[0]
    assert "7 of 7" in measured and "3 of 4" in measured and "<td>3</td>" in measured
    assert "src/strategy/ranks.py:3" in measured and "a &lt;= b" in measured


def test_the_steps_of_the_lock_are_shown(page: Page, made: MadeUp) -> None:
    for number, (verdict, steps) in enumerate((("pass", "accepted"), ("refuse", "refused, abandoned")), 1):
        text = page.as_("ann").get(f"/proposals/{made.proposal(attempt=number, verdict=verdict).id}").text
        assert f"The lock&#39;s steps: locked, logic genesis, {steps}." in text.replace("'", "&#39;")


def test_the_replay_s_curves_stand_in_numbers_too(page: Page, made: MadeUp) -> None:
    text = page.as_("ann").get(f"/proposals/{made.proposal().id}").text
    numbers = text.partition("The numbers of both charts")[2].partition("</table>")[0]
    assert numbers.count("<tr>") == 1 + 30 and f"{1.001**30:.4f}" in numbers


def test_a_replayed_approval_is_refused_with_the_difference(page: Page, desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal()
    browser = page.as_("ann")
    browser.act(f"/proposals/{proposal.id}/look")
    seen = desk.case(ANN, proposal.id).now
    form = {"act": "approve", "reason": "ok", "base_tree": seen.base_tree, "result_tree": seen.result_tree}
    with desk.store.begin() as work:
        newer = StoredVerdict("e" * 64, proposal.id, RUN, "pass", seen.base_tree, seen.result_tree, {}, AT)
        work.proposals.save_verdict(replace(newer, at=page.clock()))
    answer = browser.act(f"/proposals/{proposal.id}/decide", **form, verdict=seen.verdict)
    assert answer.status_code == 409
    assert f"verdict was {seen.verdict[:12]}, is {'e' * 12}" in answer.text
    empty = browser.act(f"/proposals/{proposal.id}/decide", act="approve", reason="ok")
    assert empty.status_code == 409 and "base tree was none" in empty.text


def test_an_approval_is_void_once_another_tree_is_deployed(desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal()
    desk.look(ANN, proposal.id)
    desk.decide(ANN, proposal.id, Act.APPROVE, "ok")
    made.repository.commit(made.revision, {"src/strategy/ranks.py": b"# another\n"}, "another", AT)
    assert loop_says(desk, proposal) == Waiting("review", proposal.id)
    with pytest.raises(Refused, match="base tree was"):
        desk.decide(BOB, proposal.id, Act.APPROVE, "late", seen=Bound("", "", ""))


def test_a_veto_is_final(desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal()
    desk.decide(BOB, proposal.id, Act.REJECT, "no")
    desk.look(ANN, proposal.id)
    with pytest.raises(Refused, match="final"):
        desk.decide(ANN, proposal.id, Act.APPROVE, "yes")


def test_nothing_that_the_gate_refused_is_approved(desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal(verdict="refuse")
    desk.look(ANN, proposal.id)
    with pytest.raises(Refused, match="verdict of pass"):
        desk.decide(ANN, proposal.id, Act.APPROVE, "I know better")


def test_freezes_and_windows_hold_a_deployment_back_but_not_the_approval(desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal()
    desk.look(ANN, proposal.id)
    desk.decide(ANN, proposal.id, Act.APPROVE, "ok")
    freeze = desk.freeze(OLGA, date(2020, 1, 1), date(2020, 12, 31), "year end")
    assert loop_says(desk, proposal) == Waiting("window", proposal.id)
    desk.lift(OLGA, freeze.id)
    assert isinstance(loop_says(desk, proposal), Review)
    assert desk.now().strftime("%a") == "Mon"
    assert loop_says(desk, proposal, ReviewSettings(windows=("tue-fri",))) == Waiting("window", proposal.id)
    assert isinstance(loop_says(desk, proposal, ReviewSettings(windows=("tue-fri", "mon 12:00-13:00"))), Review)


def test_a_rollback_is_a_new_commit_with_the_old_tree(desk: Desk, made: MadeUp) -> None:
    tree = made.repository.tree_id(made.revision)
    with pytest.raises(Mistake, match="nothing to roll back"):
        desk.rollback(OLGA, "a drill")
    new = made.repository.commit(made.revision, {"src/strategy/ranks.py": b"# another\n"}, "another", AT)
    with desk.store.begin() as work:
        work.deployments.save(Deployment(RUN, 2, new, made.revision, DeploymentKind.DEPLOY, AT.date(), AT))
    back = desk.rollback(OLGA, "a drill")
    assert made.repository.tree_id(back) == tree and back not in (new, made.revision)


def test_a_loss_for_which_no_attempt_passed_stays_in_the_queue(page: Page, desk: Desk, made: MadeUp) -> None:
    made.proposal(verdict="refuse")
    assert "Losses without an answer" not in page.as_("ann").get("/").text
    with desk.store.begin() as work:
        work.losses.set_status(RUN, "diag-1", "exhausted")
    assert "/diagnostics/diag-1" in page.as_("ann").get("/").text.partition("Losses without an answer")[2]


def test_a_mandate_answers_an_escalation(desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal(status=ProposalStatus.ESCALATED)
    with desk.store.begin() as work:
        work.losses.set_status(RUN, "diag-1", "escalated")
    desk.set_mandate(ANN, "diag-1", "Trade less.")
    with desk.store.read() as view:
        found = view.losses.diagnostic(RUN, "diag-1")
        assert view.proposals.get(RUN, proposal.id).status is ProposalStatus.SUPERSEDED  # type: ignore[union-attr]
    assert found is not None and (found.mandate, found.mandate_by, found.status) == ("Trade less.", "ann", "open")


def test_a_mandate_is_not_changed_under_a_prompt_that_is_out(desk: Desk, made: MadeUp) -> None:
    with desk.store.begin() as work:
        work.prompts.ask(Prompt("p", RUN, "diag-1", "coder", 1, "text", AT))
    with pytest.raises(Refused, match="answer it first"):
        desk.set_mandate(ANN, "diag-1", "Trade less.")


def test_an_account_is_endowed_in_cents_and_resumed_only_with_money(desk: Desk) -> None:
    from decimal import Decimal

    from oomrl.domain.records import CapitalKind

    for amount in ("0", "-1", "0.001", "1e16"):
        with pytest.raises(Mistake):
            desk.capital(OLGA, CapitalKind.ENDOW, "more", Decimal(amount))
    desk.capital(OLGA, CapitalKind.ENDOW, "more", Decimal("1000.50"))
    desk.capital(ADA, CapitalKind.HALT, "stop")
    with desk.store.read() as view:
        state = view.capital.state(RUN)
    assert (state.endowed, state.halted) == (Decimal("1000.50"), True)


def test_a_blocking_remark_after_the_approvals_holds_the_deployment_until_it_is_settled(
    desk: Desk, made: MadeUp
) -> None:
    proposal = made.proposal()
    desk.look(ANN, proposal.id)
    desk.decide(ANN, proposal.id, Act.APPROVE, "reads well")
    stop = desk.comment(OLGA, proposal.id, "stop: the tape of that week is wrong")
    assert loop_says(desk, proposal) == Waiting("review", proposal.id)
    desk.resolve(BOB, proposal.id, stop.id, "resolved")
    assert isinstance(loop_says(desk, proposal), Review)


def test_neither_the_proposer_nor_an_operator_settles_what_somebody_else_asked(desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal(author="manual <ann>")
    asked = desk.comment(BOB, proposal.id, "why?")
    with pytest.raises(Refused, match="somebody else than the proposer"):
        desk.resolve(ANN, proposal.id, asked.id, "resolved")
    with pytest.raises(Forbidden):
        desk.resolve(OLGA, proposal.id, asked.id, "resolved")
    own = desk.comment(ANN, proposal.id, "a note to myself")
    desk.resolve(ANN, proposal.id, own.id, "resolved")
    assert [remark.id for remark in desk.case(BOB, proposal.id).blocking] == [asked.id]


def test_a_look_by_a_token_is_no_look_of_a_person(desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal()
    token = replace(ANN, how="token")
    assert not desk.look(token, proposal.id).looked
    with pytest.raises(Refused, match="opened before"):
        desk.decide(token, proposal.id, Act.APPROVE, "reads well")
    desk.look(ANN, proposal.id)
    assert desk.decide(token, proposal.id, Act.APPROVE, "reads well").act is Act.APPROVE


@pytest.mark.parametrize("other", [Act.REQUEST_CHANGES, Act.REJECT])
def test_of_two_decisions_at_once_the_second_knows_the_first(desk: Desk, made: MadeUp, other: Act) -> None:
    proposals = [made.proposal(attempt=number) for number in range(1, 7)]
    for proposal in proposals:
        desk.look(ANN, proposal.id)
        begin = threading.Barrier(2)

        def act(person: Person, what: Act, proposal: Proposal = proposal, begin: threading.Barrier = begin) -> None:
            begin.wait()
            with contextlib.suppress(Refused):
                desk.decide(person, proposal.id, what, "so it is")

        threads = [threading.Thread(target=act, args=asked) for asked in ((ANN, Act.APPROVE), (BOB, other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        last = {
            Act.REQUEST_CHANGES: ProposalStatus.CHANGES_REQUESTED, Act.REJECT: ProposalStatus.REJECTED
        }[other]  # fmt: skip
        case = desk.case(ANN, proposal.id)
        assert case.proposal.status is last
        assert case.reviews[-1].act is other


def test_what_was_rolled_back_is_not_come_back_to(desk: Desk, made: MadeUp) -> None:
    first = desk.repository.head()
    second = desk.repository.commit(first, {"src/strategy/ranks.py": b"# another\n"}, "another", AT)
    with desk.store.begin() as work:
        work.deployments.save(Deployment(RUN, 2, second, first, DeploymentKind.DEPLOY, AT.date(), AT))
    with pytest.raises(Refused, match="look again"):
        desk.rollback(OLGA, "it lost", seen=first)
    new = desk.rollback(OLGA, "it lost", seen=second)
    assert desk.repository.tree_id(new) == desk.repository.tree_id(first)
    with pytest.raises(Refused, match="look again"):
        desk.rollback(OLGA, "it lost", seen=second)
    with pytest.raises(Mistake, match="nothing to roll back"):
        desk.rollback(OLGA, "it lost")
