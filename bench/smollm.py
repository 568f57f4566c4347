"""`make smollm`: the whole loop against a small real model behind a real server, which writes few good patches.

N runs from the first loss of the demonstration, every other one held to JSON schemas by the server's grammar and the
others in plain text. Counted is what the loop survived: replies by what became of them, refusals of the gate, and that
nothing was asked or proposed twice and the bill is the sum of what the server counted. Exit code 0 when all that holds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench.campaign import Campaign, arguments
from oomrl.adapters import traffic
from oomrl.adapters.database import Store
from oomrl.adapters.database.place import FILE, RUN
from oomrl.agents.drafts import read_critique, read_draft
from oomrl.agents.problem import Unusable
from oomrl.agents.reply import read_reply
from oomrl.agents.roles import Role
from oomrl.domain.records import Prompt

SPAN = ("--start", "phase1", "--from", "2006-08-01", "--to", "2006-08-14")
#: Made-up prices, so that there is a bill.
READ, WRITTEN = Decimal(5), Decimal(20)
SETTINGS = """
[account]
endowment = 80_000_000

[model]
name = "smollm2"
base_url = "{url}"
prompt_price = {read}
completion_price = {written}
most_tokens = {most}
structured = {structured}
budgets = {{ analyst = 4500, test_author = 4500, coder = 4500, critic = 4500 }}

[endpoint]
timeout_seconds = 3600
"""


@contextmanager
def serving(python: Path) -> Iterator[str]:
    """Serve the model while the block lasts; yields the address."""
    command = [str(python), str(Path(__file__).with_name("smollm_server.py"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            address = next((line.strip() for line in server.stdout if line.startswith("http")), "")
            if not address:
                raise SystemExit("The model's server ended before it listened: run it by hand to see why.")
            yield address
        finally:
            server.stdin.close()
            server.wait(60)


def kind_of(prompt: Prompt) -> str:
    """Return what became of a reply: patch, escalate, a draft, or the problem that sent it back."""
    text = prompt.reply or ""
    try:
        if prompt.role == Role.ANALYST.value:
            return "escalate" if read_draft(text).escalate else "draft"
        if prompt.role == Role.CRITIC.value:
            return f"critique of {len(read_critique(text).objections)}"
    except Unusable as error:
        return f"unusable: {error.problem.value}"
    answer = read_reply(text, {}, prompt.finish)
    return answer.kind.value if answer.problem.value == "none" else f"unusable: {answer.problem.value}"


def survived(state: Path) -> dict[str, Any]:
    """Return what a run's store and cassettes say of it."""
    with Store.open(state / FILE) as store, store.read() as view:
        prompts, proposals = view.prompts.all(RUN), view.proposals.all(RUN)
        verdicts = view.proposals.verdicts(RUN)
        _, _, billed = view.prompts.bill(RUN)
        posted = sum(-entry.amount for entry in view.ledger.entries(RUN) if entry.key.startswith("model:"))
        deployed = len(view.deployments.all(RUN)) - 1
    answers = {
        prompt.id: [
            json.loads(exchange["response"]["body"])["usage"]
            for exchange in traffic.exchanges(traffic.cassette(state / traffic.FOLDER, prompt.id))
            if exchange.get("response", {}).get("status") == 200
        ]
        for prompt in prompts
    }
    used = [usage for counted in answers.values() for usage in counted]
    owed = sum(READ * usage["prompt_tokens"] + WRITTEN * usage["completion_tokens"] for usage in used) / 1_000_000
    told = [str(line) for verdict in verdicts for line in verdict.payload["proposer_view"]]  # type: ignore[attr-defined]
    codes = Counter(line.split(" ", 1)[0] for line in told)
    return {
        "replies": len(prompts),
        "by_role": dict(Counter(f"{prompt.role}: {kind_of(prompt)}" for prompt in prompts)),
        "proposals": len(proposals),
        "refused": sum(verdict.outcome != "pass" for verdict in verdicts),
        "findings": dict(codes),
        "deployed": deployed,
        "asked_twice": sum(len(counted) != 1 for counted in answers.values()),
        "proposed_twice": len(proposals) - len({(made.diagnostic, made.attempt) for made in proposals}),
        "tokens": sum(usage["prompt_tokens"] + usage["completion_tokens"] for usage in used),
        "bill": str(billed),
        "bill_difference": str(billed - owed),
        "ledger_difference": str(posted - billed),
    }


def run(url: str, seed: int, structured: bool, most: int, keep: Path) -> dict[str, Any]:
    """Run the loop once, as a person would; return what it survived."""
    with tempfile.TemporaryDirectory() as folder:
        settings, state = Path(folder) / "settings.toml", keep / f"seed-{seed}"
        told = {"url": url, "read": READ, "written": WRITTEN, "most": most, "structured": str(structured).lower()}
        settings.write_text(SETTINGS.format(**told), "utf-8")
        command = [sys.executable, "-m", "oomrl", "simulate", *SPAN, "--seed", str(seed), "--model", "openai"]
        command += ["--settings", str(settings), "--state", str(state), "--fresh"]
        done = subprocess.run(command, env=os.environ | {"OPENAI_API_KEY": "none-needed"}, check=False)
        verified = subprocess.run(
            [sys.executable, "-m", "oomrl", "audit", "verify", "--state", str(state)],
            stdout=subprocess.DEVNULL,
            check=False,
        )
    return {"exit": done.returncode, "audit": verified.returncode, "structured": structured, **survived(state)}


def holds(row: dict[str, Any]) -> bool:
    """Return whether the loop survived: it ended well, asked and proposed nothing twice, and its bill is right."""
    return (
        row["exit"] == row["audit"] == row["asked_twice"] == row["proposed_twice"] == 0
        and row["replies"] > 0
        and abs(Decimal(row["bill_difference"])) <= Decimal(row["replies"]) * Decimal("0.00000001")
        and abs(Decimal(row["ledger_difference"])) <= Decimal("0.005")
    )


def main(given: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = arguments("smollm", 2, "runs of the loop, every other one with structured replies")
    parser.add_argument("--server", type=Path, required=True, help="the interpreter that serves the model")
    parser.add_argument("--most-tokens", type=int, default=300, help="the longest reply")
    parser.add_argument("--keep", type=Path, default=Path("build/smollm"), help="where the runs' states are left")
    options = parser.parse_args(given)
    campaign = Campaign("smollm", options.size, options.seed, options.out)
    with serving(options.server) as url:
        for number in range(options.size):
            seed = options.seed + number
            campaign.add(f"run/{seed}", seed, **run(url, seed, number % 2 == 0, options.most_tokens, options.keep))
            print(json.dumps(campaign.rows[-1], indent=1), flush=True)
    rows = campaign.rows
    kinds: Counter[str] = Counter()
    for row in rows:
        kinds.update(row["by_role"])
    return campaign.finish(
        all(map(holds, rows)) and bool(rows),
        model="SmolLM2-135M-Instruct, Q4_1, by llama.cpp",
        replies=sum(row["replies"] for row in rows),
        by_role=dict(kinds),
        proposals=sum(row["proposals"] for row in rows),
        refused=sum(row["refused"] for row in rows),
        deployed=sum(row["deployed"] for row in rows),
        asked_twice=sum(row["asked_twice"] for row in rows),
        proposed_twice=sum(row["proposed_twice"] for row in rows),
        tokens=sum(row["tokens"] for row in rows),
        bill=str(sum(Decimal(row["bill"]) for row in rows)),
    )


if __name__ == "__main__":
    sys.exit(main())
