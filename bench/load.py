"""The page under load: a long history in the store, each page's time, and what the loop's writes feel of it.

`--size` is the number of ledger rows; there is a proposal for each hundred of them. The page is served by its own
process, as in service, over a real socket; the loop's writes are sessions of 20 lines, committed as the loop does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import httpx
import numpy as np
from sqlalchemy import insert

from bench.campaign import Campaign, arguments
from oomrl.adapters.accounts import Accounts
from oomrl.adapters.database.bulk import insert_columns
from oomrl.adapters.database.tables import diagnostics, ledger, losses, proposals, verdicts
from oomrl.domain.people import Person, Right, Role
from oomrl.settings import WebSettings
from tests.states import AT, FIRST, RUN, MadeUp, made_up, session

#: What must hold: 95 of 100 answers of each page within this, in milliseconds.
MOST_MS = 100.0
PASSWORD = "correct horse battery"
SESSIONS = 2_500


def main() -> int:
    parser = arguments("load", 1_000_000, "rows of the ledger; a proposal for each hundred")
    parser.add_argument("--requests", type=int, default=100, help="requests a page")
    asked = parser.parse_args()
    campaign = Campaign("load", asked.size, asked.seed, asked.out)
    folder = Path(tempfile.mkdtemp(prefix="oomrl-load-"))
    try:
        made = made_up(folder / "state", sessions=SESSIONS)
        paths = fill(made, asked.size, np.random.default_rng(asked.seed))
        accounts = Accounts(made.store, WebSettings(), lambda: datetime.now(UTC))
        secret = accounts.invite(Person("root", frozenset(Right), "host"), "ada", Role.ADMIN)
        accounts.accept(secret, "", PASSWORD, "")
        alone = writes(made, 100, SESSIONS)
        with_page, pages = measure(made, paths, asked.requests)
        made.store.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for path, (milliseconds, cpu) in pages.items():
        figures = {"p50_ms": _at(milliseconds, 50), "p95_ms": _at(milliseconds, 95), "cpu_ms": round(cpu, 1)}
        campaign.add(path, asked.seed, **figures)
    worst = max(_at(milliseconds, 95) for milliseconds, _ in pages.values())
    return campaign.finish(
        worst <= MOST_MS,
        p95_ms=worst,
        cpu_ms=round(max(cpu for _, cpu in pages.values()), 1),
        write_p95_ms={"alone": _at(alone, 95), "under_load": _at(with_page, 95), "worst": round(max(with_page), 1)},
        processors=os.cpu_count(),
        load_average=round(os.getloadavg()[0], 1),
    )


def fill(made: MadeUp, size: int, chance: np.random.Generator) -> list[str]:
    """Write the history, and return the pages to ask for."""
    made.loss()
    first = made.proposal()
    risky = made.tree["strategy.toml"].replace(b"exposure = 0.98", b"exposure = 0.9")
    waiting = made.proposal(attempt=2, changes={"strategy.toml": risky})
    symbols = [f"NAME{number}" for number in range(500)]
    each = max(size // SESSIONS, 1)
    with made.store.begin() as work:
        run = work.runs.key(RUN)
        for number in range(SESSIONS):
            day = FIRST + timedelta(days=number)
            picked = [symbols[n] for n in chance.integers(0, len(symbols), each)]
            columns = {
                "run_id": run,
                "key": [f"{day}-{n:05d}/fill/1" for n in range(each)],
                "day": [day] * each,
                "kind": "buy",
                "book": "both",
                "amount": (-chance.integers(1, 10_000_000, each)).tolist(),
                "symbol": picked,
                "shares": (chance.integers(1, 1_000, each) * 10**9).tolist(),
                "price": 50 * 10**9,
                "client_order_id": [f"{day}-{n:05d}" for n in range(each)],
                "note": "",
            }
            insert_columns(work.connection, ledger, columns, each)
        _proposals(made, work, max(size // 100, 2), first.id, run)
    return [
        "/", "/proposals", "/proposals?status=refused", f"/proposals/{waiting.id}", f"/proposals/{first.id}",
        "/diagnostics/diag-1", "/account", "/account/positions", "/account/orders", "/account/fills",
        "/account/shortfall", "/account/ledger", "/account/ledger?symbol=NAME7", "/account/ledger?words=nowhere",
        "/account/bills", "/account/settings", "/account/audit", "/account/arenas", "/account/losses", "/revisions",
        f"/revisions/{made.revision}", "/me", "/people",
    ]  # fmt: skip


def _proposals(made: MadeUp, work: object, count: int, like: str, run: int) -> None:
    """Copy one refused proposal `count` times, each ten with a loss of their own."""
    connection = work.connection  # type: ignore[attr-defined]
    proposal = connection.execute(proposals.select().where(proposals.c.id == like)).mappings().one()
    verdict = connection.execute(verdicts.select().where(verdicts.c.proposal == like)).mappings().one()
    loss = connection.execute(losses.select()).mappings().first()
    diagnostic = connection.execute(diagnostics.select()).mappings().first()
    rows: dict[str, list[dict[str, object]]] = {"losses": [], "diagnostics": [], "proposals": [], "verdicts": []}
    for number in range(count):
        name = f"diag-many-{number // 10}"
        if number % 10 == 0:
            rows["losses"].append({**loss, "id": f"loss-many-{number // 10}"})
            rows["diagnostics"].append(
                {**diagnostic, "id": name, "loss": f"loss-many-{number // 10}", "status": "exhausted"}
            )
        digest = f"{number:064x}"
        at = AT + timedelta(minutes=number)
        changed = {"id": f"proposal-many-{number}", "diagnostic": name, "digest": digest, "at": at, "status": "refused"}
        rows["proposals"].append({**proposal, **changed, "attempt": number % 10 + 1})
        judged = {"digest": digest, "proposal": changed["id"], "outcome": "refuse"}
        rows["verdicts"].append({**verdict, **judged})
    for table in (losses, diagnostics, proposals, verdicts):
        connection.execute(insert(table), rows[table.name])


def measure(made: MadeUp, paths: list[str], count: int) -> tuple[list[float], dict[str, tuple[list[float], float]]]:
    """Ask for each page `count` times while a writer goes on; return its commits' and the pages' milliseconds."""
    stop, written = threading.Event(), list[float]()
    server = subprocess.Popen(
        [sys.executable, "-m", "oomrl", "page", "--state", str(made.state), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OOMRL_WEB__REQUESTS_A_MINUTE": "1000000"},
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().rpartition(": ")[2].strip().rstrip("/")
        with httpx.Client(base_url=url, timeout=600) as http:
            form = re.search(r'name="form" value="([^"]+)"', http.get("/login").text)
            assert form is not None
            http.post("/login", data={"name": "ada", "password": PASSWORD, "form": form[1]})
            word = re.search(r'name="csrf" value="([^"]+)"', http.get("/me").text)
            assert word is not None, "Expected to be logged in"
            for path in paths:
                if path.startswith("/proposals/"):
                    http.post(f"{path}/look", data={"csrf": word[1]})
                http.get(path)  # the first request of a page reads what later ones remember
            writer = threading.Thread(target=_write_until, args=(made, stop, written))
            writer.start()
            pages = {path: _ask(http, path, count, server.pid) for path in paths}
            stop.set()
            writer.join()
    finally:
        stop.set()
        server.terminate()
        server.wait()
    return written, pages


def _ask(http: httpx.Client, path: str, count: int, pid: int) -> tuple[list[float], float]:
    milliseconds, before = [], _cpu(pid)
    for _ in range(count):
        begun = time.perf_counter()
        answer = http.get(path)
        milliseconds.append((time.perf_counter() - begun) * 1_000)
        assert answer.status_code == 200, (path, answer.status_code)
    return milliseconds, (_cpu(pid) - before) * 1_000 / count


def writes(made: MadeUp, count: int, first: int) -> list[float]:
    """Commit sessions as the loop does, and return the milliseconds of each commit."""
    found = []
    for number in range(first, first + count):
        found.append(_commit(made, number))
    return found


def _write_until(made: MadeUp, stop: threading.Event, written: list[float]) -> None:
    number = SESSIONS + 1_000
    while not stop.wait(0.1):
        written.append(_commit(made, number))
        number += 1


def _commit(made: MadeUp, number: int) -> float:
    record = session(number)
    lines = tuple(replace(record.entries[0], key=f"{record.day}/{n}", amount=Decimal("-1.00")) for n in range(20))
    begun = time.perf_counter()
    with made.store.begin() as work:
        work.sessions.save(RUN, replace(record, entries=lines))
    return (time.perf_counter() - begun) * 1_000


def _cpu(pid: int) -> float:
    """Return the seconds that a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _at(values: list[float], share: float) -> float:
    return round(float(np.percentile(values, share)), 1) if values else 0.0


if __name__ == "__main__":
    sys.exit(main())
