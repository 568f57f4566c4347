"""A coding agent as the proposer: the package's own client, over pipes, against `oomrl mcp` as a process."""

from __future__ import annotations

import json
import os
import sys
from datetime import date
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from oomrl.adapters.database import Store
from oomrl.adapters.environments import shipped
from oomrl.adapters.manual_model import ManualModel
from oomrl.adapters.repository import Repository, read_folder
from oomrl.domain.records import Loss, Prompt, StoredDiagnostic
from tests import databases
from tests.integration.adapters.test_openai_model import CONTEXT
from tests.integration.database.builders import AT, RUN, run

DIFF = """Weekly is enough.

```diff
--- a/strategy.toml
+++ b/strategy.toml
@@ -{line},1 +{line},1 @@
-{old}
+{old}  # said
```
"""


def made(state: Path) -> dict[str, bytes]:
    tree = read_folder(shipped("strategy_repo"))
    Repository.create(state / "strategy.git", tree, "Start", AT)
    with Store.open(databases.place(state), durable=False) as store, store.begin() as work:
        work.runs.start(run())
        work.losses.save(Loss("loss-1", RUN, date(2020, 1, 2), "loss", "drawdown", 0.1, 0.05, AT))
        work.losses.save_diagnostic(StoredDiagnostic("diag-1", "loss-1", RUN, date(2020, 1, 2), {"ACME": 1}, AT))
        work.prompts.ask(Prompt("coder-1-abc", RUN, "diag-1", "coder", 1, "Mend it.", AT))
    ManualModel(state).answer("coder-1-abc", "coder", "Mend it.", CONTEXT)
    return tree


def test_an_agent_reads_and_answers_and_can_do_nothing_else(tmp_path: Path) -> None:
    tree = made(tmp_path)
    lines = tree["strategy.toml"].decode().split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith("cadence"))
    said: dict[str, Any] = {}

    async def talk() -> None:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "oomrl", "mcp", "--as", "ann", "--state", str(tmp_path)],
            env={**os.environ, **databases.environment(tmp_path)},
        )
        async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            said["tools"] = {tool.name for tool in (await session.list_tools()).tools}

            async def call(key: str, name: str, **given: str) -> None:
                answer = await session.call_tool(name, given)
                said[key] = (answer.isError, "\n".join(part.text for part in answer.content))  # type: ignore[union-attr]

            await call("losses", "losses")
            await call("masked", "diagnostic", id="diag-1")
            await call("prompts", "prompts")
            await call("source", "sources", path="strategy.toml")
            await call("outside", "sources", path="../../etc/passwd")
            await call("verdicts", "verdicts")
            await call("misfit", "submit_patch", prompt="coder-1-abc", reply=DIFF.format(line=at + 1, old="no such"))
            await call("unknown", "submit_patch", prompt="nothing", reply="x")
            whole = DIFF.format(line=at + 1, old=lines[at])
            await call("taken", "submit_patch", prompt="coder-1-abc", reply=whole)

    anyio.run(talk)
    assert said["tools"] == {"losses", "diagnostic", "prompts", "sources", "verdicts", "submit_patch"}
    assert json.loads(said["losses"][1])["diagnostic"] == "diag-1"
    assert said["masked"][0] and "ACME" not in said["masked"][1]
    assert "Mend it." in said["prompts"][1] and "cadence" in said["source"][1]
    assert said["outside"][0] and said["unknown"][0] and not said["verdicts"][0]
    assert said["misfit"][0] and "no such" in said["misfit"][1]
    assert not said["taken"][0]
    answered = ManualModel(tmp_path).answer("coder-1-abc", "coder", "Mend it.", CONTEXT)
    assert answered is not None and answered.model == "manual <ann>"  # who therefore may not approve
