"""A reply that cannot be used goes back to whoever wrote it, with the reason: for every role, within its attempts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from oomrl.adapters.models import Models
from oomrl.adapters.opinions import of_analyst, of_critic
from oomrl.adapters.prompting import Patience, Prompting
from oomrl.adapters.proposer import NO_TESTS, AgentProposer
from oomrl.agents.roles import BUDGETS, Role
from oomrl.domain.records import Proposal, ProposalStatus
from oomrl.ports import Context, Reply
from tests import states
from tests.states import AT, RUN, MadeUp

DRAFT = json.dumps({"root_cause": "churn", "mandate": "Trade less.", "confidence": "low"})
CRITIQUE = json.dumps({"summary": "nothing", "objections": []})
MEND = """```diff
--- a/src/strategy/ranks.py
+++ b/src/strategy/ranks.py
@@ -1,1 +1,2 @@
{first}
+# Mended.
```"""


class Script:
    """Answer each role from a list of its own, and keep what was asked."""

    name, is_language_model = "script", True

    def __init__(self, **replies: list[str]) -> None:
        self.replies, self.asked = replies, []

    def answer(self, prompt_id: str, role: str, prompt: str, context: Context) -> Reply:
        self.asked.append((role, prompt))
        return Reply(self.replies[role].pop(0), self.name)

    def told(self, role: str) -> list[str]:
        return [prompt for asked, prompt in self.asked if asked == role]


@pytest.fixture
def made_up(tmp_path: Path) -> Iterator[MadeUp]:
    made = states.made_up(tmp_path / "state")
    yield made
    made.store.close()


def proposer(made: MadeUp, script: Script) -> AgentProposer:
    models = Models({Role(role): script for role in script.replies}, BUDGETS)
    patience = Patience(lambda seconds: None, lambda: 0.0)
    asking = Prompting(RUN, made.store, lambda: AT, Decimal(1), patience, lambda prompt: None)
    tape: Any = None  # nothing is masked here, so that no market is needed
    return AgentProposer(
        RUN, made.store, made.repository, models, asking, tape, lambda: AT,
        masked=False, seed=0, capital=1.0, refusal=str,
    )  # fmt: skip


def mend(made: MadeUp) -> str:
    return MEND.format(first=" " + made.tree["src/strategy/ranks.py"].decode().split("\n")[0])


def test_a_test_author_is_told_why_its_tests_were_not_used_and_the_coder_goes_on(made_up: MadeUp) -> None:
    wrong = "```diff\n--- a/tests/test_no_such.py\n+++ b/tests/test_no_such.py\n@@ -1,1 +1,1 @@\n-x\n+y\n```"
    script = Script(test_author=[wrong, "NO NEW TESTS: test_cap"], coder=[mend(made_up), mend(made_up)])
    agent, diagnostic = proposer(made_up, script), made_up.loss()
    first = agent.propose(diagnostic, 1, made_up.revision)
    assert isinstance(first, Proposal) and first.logic_patch and not first.tests_patch
    (told,) = [line for line in first.repairs if line.startswith(NO_TESTS)]
    assert "tests/test_no_such.py" in told
    with made_up.store.begin() as work:
        work.proposals.save(first)
    second = agent.propose(diagnostic, 2, made_up.revision)
    assert isinstance(second, Proposal) and not any(line.startswith(NO_TESTS) for line in second.repairs)
    for role in ("test_author", "coder"):
        one, two = script.told(role)
        assert NO_TESTS not in one and told in two and "# Mended." in two


def test_a_test_author_that_escalates_ends_the_attempt_before_the_coder_is_paid(made_up: MadeUp) -> None:
    script = Script(test_author=["ESCALATE: the mandate asks for two opposite things"], coder=[])
    found = proposer(made_up, script).propose(made_up.loss(), 1, made_up.revision)
    assert isinstance(found, Proposal) and found.status is ProposalStatus.ESCALATED
    assert found.explanation == "the mandate asks for two opposite things" and not script.told("coder")


def test_an_analyst_is_asked_again_with_the_reason_and_its_last_word_counts(made_up: MadeUp) -> None:
    script = Script(analyst=["It was churn.", DRAFT])
    agent, diagnostic = proposer(made_up, script), made_up.loss()
    drafted = agent.draft(diagnostic, made_up.revision)
    assert getattr(drafted, "mandate", "") == "Trade less."
    assert "Expected one JSON object" in script.told("analyst")[1]
    with made_up.store.read() as view:
        opinion = of_analyst(view, RUN, diagnostic.id)
    assert opinion is not None and opinion.draft is not None and opinion.draft.mandate == "Trade less."


def test_an_analyst_that_never_answers_in_form_leaves_the_mandate_of_the_rules(made_up: MadeUp) -> None:
    script = Script(analyst=["no"] * 3)
    agent, diagnostic = proposer(made_up, script), made_up.loss()
    assert agent.draft(diagnostic, made_up.revision) == diagnostic
    assert agent.draft(diagnostic, made_up.revision) == diagnostic and len(script.asked) == 3, "and is not asked anew"


def test_a_critic_is_asked_again_with_the_reason(made_up: MadeUp) -> None:
    script = Script(critic=["Looks good.", CRITIQUE])
    agent, diagnostic = proposer(made_up, script), made_up.loss()
    proposal = made_up.proposal(diagnostic.id)
    assert agent.criticise(diagnostic, proposal) is None
    assert "Expected one JSON object" in script.told("critic")[1]
    with made_up.store.read() as view:
        opinion = of_critic(view, proposal)
    assert opinion is not None and opinion.critique is not None and opinion.summary == "nothing"


def test_a_reply_of_any_size_does_not_fill_the_disk(made_up: MadeUp) -> None:
    script = Script(analyst=["x" * 5_000_000, DRAFT])
    agent, diagnostic = proposer(made_up, script), made_up.loss()
    assert getattr(agent.draft(diagnostic, made_up.revision), "mandate", "") == "Trade less."
    with made_up.store.read() as view:
        kept = [len(prompt.reply or "") for prompt in view.prompts.all(RUN, diagnostic.id)]
    assert max(kept) < 500_000
