"""A state directory as a run leaves it, made in a second without trading: for tests of the page, and its load.

Everything goes through the real store and the real deployment repository; only the history is made up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from oomrl.adapters import patches
from oomrl.adapters.audit import Audit
from oomrl.adapters.database import Store
from oomrl.adapters.repository import Repository
from oomrl.adapters.starts import start_tree
from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.records import (
    Deployment,
    DeploymentKind,
    Loss,
    Mark,
    Prompt,
    PromptStatus,
    Proposal,
    ProposalStatus,
    Run,
    SessionRecord,
    StoredDiagnostic,
    StoredVerdict,
)
from tests import databases

RUN = "simulation"
FIRST = date(2020, 1, 2)
AT = datetime(2020, 1, 2, 21, 0, tzinfo=UTC)


@dataclass(frozen=True)
class MadeUp:
    """A state directory, open."""

    state: Path
    store: Store
    repository: Repository
    tree: Mapping[str, bytes]
    revision: str

    def loss(self, number: int = 1, **payload: Any) -> StoredDiagnostic:
        """Store a loss and its diagnostic."""
        day = FIRST + timedelta(days=number)
        name, text = f"loss-{number}", "Friction ran at 16 bps a side against 8 assumed"
        found = {
            "trigger": "execution_decay",
            "evidence": text,
            "window": {"first": FIRST.isoformat(), "last": day.isoformat(), "sessions": number + 1},
            "metrics": {"window_pnl": -12_345.67, "daily_pnl": -2_000.0},
            "diagnostics": {
                "root_cause": "churn",
                "module": "strategy.toml",
                "function": "cadence",
                "causes": [{"code": "churn", "share": 0.6, "evidence": "Turnover was high", "module": "strategy.toml",
                            "function": "cadence"}],
                "execution_log": [],
                "exceptions": [],
            },
            "decomposition": {"market": -2_000.0, "selection": -345.67, "spread": -10_000.0},
            "sessions": [{"day": day.isoformat(), "pnl": -2_000.0, "market": -500.0, "friction": 1_500.0}],
            "names": [{"symbol": "S0", "pnl": -2_000.0}],
        } | payload  # fmt: skip
        diagnostic = StoredDiagnostic(
            f"diag-{number}", name, RUN, day, found, AT, "Cut turnover to what the signal earns.", "rules", True
        )
        with self.store.begin() as work:
            work.losses.save(Loss(name, RUN, day, "loss", "execution_decay", 8.3, 5.0, AT, {"evidence": text}))
            work.losses.save_diagnostic(diagnostic)
        return diagnostic

    def proposal(
        self,
        diagnostic: str = "diag-1",
        attempt: int = 1,
        author: str = "offline",
        changes: Mapping[str, bytes] | None = None,
        verdict: str = "pass",
        patch: str | None = None,
        **more: Any,
    ) -> Proposal:
        """Store a proposal with a verdict; by default it changes one comment of the ranking."""
        after = dict(self.tree)
        if changes is None:
            source = self.tree["src/strategy/ranks.py"]
            changes = {"src/strategy/ranks.py": source + f"\n# attempt {attempt}\n".encode()}
        after |= changes
        text = patches.diff(self.tree, after) if patch is None else patch
        digest = hashlib.sha256(f"{diagnostic}/{attempt}/{text}".encode()).hexdigest()
        result = self.repository.preview(self.revision, dict(changes)) if patch is None else "0" * 64
        base = self.repository.tree_id(self.revision)
        prompt = Prompt(
            f"coder-{attempt}-{digest[:8]}", RUN, diagnostic, "coder", attempt, "What to do", AT, "coder/1",
            PromptStatus.ANSWERED, more.pop("reply", "A diff."), author, 1_200, 340, Decimal("0.01234567"), AT,
        )  # fmt: skip
        made = Proposal(
            id=more.pop("id", f"proposal-{attempt}-{digest[:12]}"),
            digest=digest,
            run=RUN,
            diagnostic=diagnostic,
            attempt=attempt,
            author=author,
            base_revision=self.revision,
            base_tree=base,
            at=AT + timedelta(minutes=attempt),
            logic_patch=text,
            result_tree=result if verdict == "pass" else "",
            explanation=more.pop("explanation", "Less churn."),
            prompt=prompt.id,
            status=ProposalStatus.PASSED if verdict == "pass" else ProposalStatus.REFUSED,
        )
        made = replace(made, **more)
        judged = StoredVerdict(
            hashlib.sha256(f"verdict/{made.id}".encode()).hexdigest(), made.id, RUN, verdict, base, made.result_tree,
            _payload(verdict), AT,
        )  # fmt: skip
        with self.store.begin() as work:
            work.prompts.ask(prompt)
            work.proposals.save(made)
            work.proposals.save_verdict(judged)
        return made


def made_up(state: Path, sessions: int = 12) -> MadeUp:
    """Make a state directory with some sessions on the shipped strategy; the caller closes its store."""
    state.mkdir(parents=True, exist_ok=True)
    store = Store.open(databases.place(state), durable=False)
    tree = start_tree("shipped")[0]
    repository = Repository.create(state / "strategy.git", tree, "Start: shipped", AT)
    revision = repository.head()
    with store.begin() as work:
        work.runs.start(Run(RUN, "simulation", {"settings": {"account": {"endowment": "1000000"}}}, 7, "tape", AT))
        work.deployments.save(Deployment(RUN, 1, revision, "", DeploymentKind.START, FIRST, AT, "", "shipped"))
        for number in range(sessions):
            work.sessions.save(RUN, session(number))
    Audit(state).catch_up(store, RUN)
    return MadeUp(state, store, repository, tree, revision)


def opened(state: Path) -> MadeUp:
    """Open a state directory that `made_up` made, or a copy of it."""
    repository = Repository(state / "strategy.git")
    revision, store = repository.head(), Store.open(databases.place(state), durable=False)
    return MadeUp(state, store, repository, repository.tree(revision), revision)


def session(number: int) -> SessionRecord:
    """Return a session's record: a mark, and two lines of the ledger."""
    day, equity = FIRST + timedelta(days=number), Decimal(1_000_000 - 1_000 * (number % 7) + 90 * number)
    mark = Mark(
        day=day,
        equity=equity,
        cash=Decimal("5000.00"),
        broker_cash=Decimal("5000.00"),
        pnl=Decimal("-910.00") if number % 7 else Decimal("6090.00"),
        benchmark=0.001 * (number % 3 - 1),
        drawdown=0.001 * (number % 7),
        parts={"market": Decimal("-500.00"), "spread": Decimal("-410.00")},
        turnover=0.2,
        friction=Decimal("410.00"),
    )
    lines = (
        Entry(f"{day}/buy", day, Kind.BUY, Book.BOTH, Decimal("-100.00"), "S0", Decimal(2), Decimal(50)),
        Entry(f"{day}/bill", day, Kind.MODEL_BILL, Book.ECONOMIC, Decimal("-0.01"), note="offline"),
    )
    return SessionRecord(mark=mark, entries=lines)


def _payload(outcome: str) -> dict[str, Any]:
    days = [(FIRST + timedelta(days=n)).isoformat() for n in range(30)]
    finding = {"code": "GR203", "path": "src/strategy/ranks.py", "line": 3, "reason": "Expected no import of os.",
               "fix": "Leave it out.", "layer": "static"}  # fmt: skip
    stages = [{"name": name, "status": "pass", "seconds": 0.1, "evidence": {}} for name in ("patch", "static", "tests")]
    if outcome != "pass":
        stages[1]["status"] = "refuse"
    ways = ("locked", "logic genesis", *(("accepted",) if outcome == "pass" else ("refused", "abandoned")))
    steps = [
        {"step": at, "event": event, "before": "", "after": "", "tree": "0" * 64} for at, event in enumerate(ways, 1)
    ]
    return {
        "schema": "oomrl.verdict/1",
        "outcome": outcome,
        "phases": {
            "logic": {
                "decision": outcome,
                "findings": [] if outcome == "pass" else [finding],
                "stages": stages,
                "sandbox": {"profile": "S3"},
                "coverage": {
                    "statements": 1.0,
                    "branches": 0.99,
                    "changed": {
                        "src/strategy/ranks.py": {
                            "statements": {"possible": 7, "missed": []},
                            "branches": {"possible": 4, "missed": [3]},
                        }
                    },
                },
                "mutation": {
                    "killed": 3,
                    "mutants": 4,
                    "survivors": [
                        {
                            "path": "src/strategy/ranks.py",
                            "line": 3,
                            "kind": "comparison",
                            "before": "a < b",
                            "after": "a <= b",
                        }
                    ],
                },
                "repairs": [],
                "transitions": steps,
            }
        },
        "promotion": {
            "promoted": outcome == "pass",
            "attempt": 1,
            "route": "net",
            "refusals": [],
            "alphas": {"net": 0.006},
            "tests": {
                "net": {"mean": 0.04, "low": 0.01, "high": 0.08, "p": 0.003, "sessions": 30, "t": 3.0, "block": 3}
            },
        },
        "comparison": {
            "days": days,
            "candidate": [0.001] * 30,
            "incumbent": [0.0005, -0.0004] * 15,
            "band_low": [0.99] * 30,
            "band_high": [1.01] * 30,
            "windows": [
                {"name": "before the loss", "held_back": True, "first": days[0], "last": days[24], "sessions": 25},
                {"name": "the loss", "held_back": False, "first": days[25], "last": days[29], "sessions": 5},
            ],
            "figures": {
                "candidate": {"sharpe": [1.2, 0.4, 2.0], "max_drawdown": [-0.1, -0.2, -0.05], "turnover": [3.0]},
                "incumbent": {"sharpe": [0.9, 0.1, 1.7], "max_drawdown": [-0.12, -0.22, -0.06], "turnover": [9.0]},
            },
        },
        "proposer_view": [] if outcome == "pass" else ["GR203 src/strategy/ranks.py:3 Expected no import of os."],
    }
