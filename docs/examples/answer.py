"""Answer the prompts of a manual run by a script, as a person or a coding agent would: an example to start from.

    python docs/examples/answer.py STATE -- oomrl simulate --model manual --state STATE [more options]

Runs the command, answers every prompt that waits by its role, and runs it again until nothing waits. This one drafts
the rules' own mandate again, declines to write tests, and escalates every repair: put your own answers in `answer`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def answer(role: str, prompt: str) -> str:
    """Return the reply to a prompt: JSON for analyst and critic, a unified diff or an escalation for the others."""
    if role == "analyst":
        mandate = "Cut what the loss was made of, and keep the signal and the exposure."
        return json.dumps({"root_cause": "as the diagnostic ranks it", "mandate": mandate, "confidence": "low"})
    if role == "critic":
        return json.dumps({"summary": "Nothing found.", "objections": []})
    if role == "test_author":
        return "NO NEW TESTS: this example writes none."
    return "ESCALATE: this example repairs nothing; put a diff here."


def oomrl(*arguments: str) -> str:
    """Run a command of oomrl and return what it printed."""
    command = [sys.executable, "-m", "oomrl", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(state: str, simulate: list[str]) -> None:
    """Go on until the run ends, or waits for something that is no prompt."""
    while True:
        told = json.loads(oomrl(*simulate, "--json"))
        if told.get("waiting") != "prompt":
            print(json.dumps(told, indent=1))
            return
        for row in json.loads(oomrl("prompts", "--state", state, "--json")):
            with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
                file.write(answer(row["role"], Path(row["file"]).read_text("utf-8")))
                file.flush()
                oomrl("reply", row["id"], file.name, "--state", state)
            print(f"answered {row['id']}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[sys.argv.index("--") + 2 :])
