"""Kill the daemon and its jobs at every kind of boundary and compare what they then believe with the exchange's books.

`python -m bench.crash [--size KILLS] [--seed S] [--only CASE]`: each case is an account of its own at the emulator,
which runs in a process of its own and goes wrong at random (see FAULTS). The daemon (bench/lives.py) serves it for
three sessions and is ended by SIGKILL at boundaries drawn uniformly from those that it and its jobs cross: before or
after a commit (the table of jobs, intents, outcomes, fills, closes, decisions), before or after an HTTP request. A kill
within a job takes the job alone, the daemon alone (the kernel then ends the job, as for any daemon's), or both at once.
A daemon that was killed is started again at once, or minutes, hours or a day later: what it missed is done or skipped
by each job's policy. Once a life has done everything, the exchange's orders, fills, cash and positions are compared
with the store's, and the table of jobs with the calendar. Kinds of boundary that uniform draws hit fewer than 30 times
are drawn on purpose until they have 30.

Exit code 0 when no order was sent twice, no fill was lost or booked twice, cash and positions agree to the cent, no
session was left unjudged, no job unfinished, and nothing halted.

Over 400 lines, because drawing the kills and comparing the books share what a case is.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from queue import Empty
from typing import Any, get_args

import requests

from bench.boundaries import Boundaries, Kill, Takes
from bench.campaign import Campaign, arguments
from bench.lives import (
    ACCOUNT,
    CASH,
    STRIDE,
    WARM,
    Case,
    Clock,
    days_of,
    evening,
    live,
    lived,
    market,
    preload,
    prepare,
)
from oomrl.adapters.database import Store
from oomrl.adapters.database.engine import open_engine
from oomrl.adapters.database.place import FILE, RUN
from oomrl.calendar import Calendar
from oomrl.daemon.schedule import TASKS
from oomrl.daemon.service import run_of
from oomrl.domain.ledger import Book
from oomrl.domain.reconciliation import Policy
from oomrl.domain.records import JobState
from oomrl.exchange.tape import Tape
from oomrl.testing import calendar_tapes

#: Each kind of boundary is hit at least this often.
LEAST = 30
#: From this many kills on, rare kinds of boundary are drawn on purpose too.
WHOLE = 200
#: The fewest and most kills of one case, and the lives after which it counts as stuck.
FEWEST, MANY, LIVES = 4, 10, 20
#: Boundaries that kills of a case are drawn from: a few more than most cases cross, so that each is as likely.
MOST = 700
#: Where states are kept: what a killed process has written stays there as on a disk, which is waited for a lot.
MEMORY = Path("/dev/shm")
#: Minutes for which the daemon stays away after it was killed.
AWAY = (0,) * 12 + (1, 5, 30, 300, 1_500)

FAULTS = """
seed = {seed}
[[fault]]
kind = "accepted_then_504"
endpoint = "POST /v2/orders"
probability = 0.2
[[fault]]
kind = "html_502"
probability = 0.02
[[fault]]
kind = "html_502"
applied = true
probability = 0.01
[[fault]]
kind = "reset"
probability = 0.02
[[fault]]
kind = "reset"
applied = true
probability = 0.02
[[fault]]
kind = "rate_limited"
probability = 0.01
[[fault]]
kind = "partial_fill"
probability = 0.2
[[fault]]
kind = "cancel_ignored"
probability = 0.05
[[fault]]
kind = "cancel_late"
probability = 0.1
[[fault]]
kind = "cancel_then_fill"
probability = 0.1
[[fault]]
kind = "unknown_enum"
endpoint = "GET /v2/orders"
field = "status"
probability = 0.02
"""


def compared(books: dict[str, Any], store: Store) -> dict[str, Any]:
    """Compare the exchange's own books with the store's, and say what differs."""
    with store.read() as view:
        fills = view.ledger.entries(RUN)
        wanted = {o.client_order_id: abs(o.shares) for day in _days(books) for o in view.orders.decided_on(RUN, day)}
        booked = {line.fill.id.split("::")[-1]: line for line in view.placements.booked(RUN, list(wanted))}
        cash = view.ledger.cash(RUN, Book.BOTH)
        known = {p.client_order_id for p in view.placements.of_orders(RUN, list(wanted))}
        halting = [m for _, m in view.placements.mismatches(RUN) if m.policy is Policy.HALT]
    filled: Counter[str] = Counter()
    working: Counter[str] = Counter()
    foreign = 0
    for order in books["orders"]:
        name = order["client_order_id"]
        foreign += name not in known
        filled[_order(name)] += Decimal(order["filled_qty"])
        working[_order(name)] += order["open"]
    # An exchange that fills an order which it has told cancelled breaks its word; what it fills then was sent once.
    ended = {order["id"]: order["canceled_at"] for order in books["orders"] if order["canceled_at"]}
    broken = [fill for fill in books["fills"] if fill["order_id"] in ended and fill["at"] > ended[fill["order_id"]]]
    for fill in broken:
        filled[_order(fill["client_order_id"])] -= Decimal(fill["qty"])
    twice = sum(filled[name] > wanted.get(name, 0) or working[name] > 1 for name in filled)
    there = {fill["id"]: fill for fill in books["fills"]}
    same = all(
        (booked[key].fill.qty, booked[key].fill.price) == (Decimal(fill["qty"]), Decimal(fill["price"]))
        for key, fill in there.items()
        if key in booked
    )
    held: Counter[str] = Counter()
    for line in fills:
        if line.book is Book.BOTH and line.symbol:
            held[line.symbol] += line.shares
    positions = {symbol: shares for symbol, shares in held.items() if shares}
    theirs = {symbol: Decimal(shares) for symbol, shares in books["positions"].items()}
    wrong = {
        s: str(positions.get(s, 0) - theirs.get(s, 0))
        for s in {*positions, *theirs}
        if positions.get(s, 0) != theirs.get(s, 0)
    }
    traded = sum(line.client_order_id is not None and line.shares != 0 for line in fills)
    return {
        "orders": len(books["orders"]),
        "fills": len(there),
        "duplicate_orders": twice + foreign,
        "filled_after_cancel": len(broken),
        "lost_fills": len(there.keys() ^ booked.keys()) + abs(traded - len(there)) + (not same),
        "positions_wrong": wrong,
        "cash_difference": str(Decimal(books["cash"]) - cash),
        "mismatches": [str(mismatch) for mismatch in halting],
    }


def served(sessions: list[date] | tuple[date, ...], store: Store) -> dict[str, Any]:
    """Compare the table of jobs, and what they left, with what came due in a case's sessions since the account began.

    A daemon that is killed before its very first commit has not begun.
    """
    with store.read() as view:
        begun = view.runs.get(run_of(ACCOUNT))
        table = {(job.job, job.session): job for job in view.jobs.all(run_of(ACCOUNT))}
        marked = [mark.day for mark in view.sessions.marks(RUN)]
    assert begun is not None
    hours = [hours for hours in Calendar().hours if hours.day in sessions]
    due = [(t.name, h.day) for h in hours for t in TASKS if not t.weekly and t.due(h) >= begun.started_at]
    ended = {JobState.DONE, JobState.SKIPPED}
    lost = [key for key in due if key not in table or table[key].state not in ended]
    judged = [key for key in due if key[0] == "judge" and key in table]
    lost += [key for key in judged if key[1] not in marked or table[key].state is not JobState.DONE]
    skipped = [job.job for job in table.values() if job.state is JobState.SKIPPED]
    return {
        "lost_jobs": [f"{job} of {day}" for job, day in lost],
        "doubled_sessions": len(marked) - len(set(marked)),
        "skipped": dict(Counter(skipped)),
        "tries": sum(job.attempts for job in table.values()),
    }


def _days(books: dict[str, Any]) -> list[date]:
    names = {_order(order["client_order_id"]) for order in books["orders"]}
    return sorted({datetime.strptime(name.split("-")[1], "%Y%m%d").date() for name in names})  # noqa: DTZ007 - a date


def _order(client_order_id: str) -> str:
    return client_order_id.split(".")[0]


def judged(case: Case, tape: Tape, url: str, folder: Path, template: Path) -> dict[str, Any]:
    """Let a case live and die as it shall, and return what was found."""
    state = folder / "state"
    state.mkdir(parents=True)
    shutil.copy(template, state / FILE)
    sessions = days_of(case, tape)
    prepare(case, tape, url, state)
    chance = random.Random(f"{case.seed}/away")
    boundaries = Boundaries(folder)
    halts: list[str] = []
    with requests.Session() as admin:
        admin.trust_env = False

        def told(path: str, **body: Any) -> None:
            admin.post(f"{url}/admin/{path}", json=body, timeout=60).raise_for_status()

        Clock(url).wait(start_of(case.number, tape))
        told("reset", cash=str(CASH))
        told("faults", toml=FAULTS.format(seed=case.seed))
        for _ in range(LIVES):
            ended = lived(partial(live, case, sessions[-1], url, folder))
            if ended >= 0:
                break
            told("clock", by=60 * chance.choice(AWAY))
        if ended:
            halts.append((folder / "stuck").read_text("utf-8") if ended == 3 else f"ended with {ended}")
        # What the books say is read without faults; the case has ended.
        books = admin.get(f"{url}/admin/books", timeout=60).json()
    with Store(open_engine(state / FILE, durable=False)) as store:
        found = {**compared(books, store), **served(tuple(sessions), store)}
    kinds = Counter(boundaries.lines())
    struck = boundaries.struck()
    facts = {
        "case": case.id,
        "kills": [kill["kind"] for kill in struck],
        "took": [kill["took"] for kill in struck],
        "halts": [*halts, *found.pop("mismatches")],
        "crossed": sum(kinds.values()),
        **found,
    }
    if not faults_of(facts):
        for inside in (path for path in folder.rglob("*") if path.is_dir()):
            inside.chmod(0o755)  # what is checked out cannot be written, not by its owner either
        shutil.rmtree(folder)
    return {"seed": case.seed, "kinds": dict(kinds), "facts": facts}


def start_of(number: int, tape: Tape) -> datetime:
    """Return when a case begins: the evening before its first session."""
    return evening(Calendar(), tape.days[WARM + number * STRIDE - 1])


def faults_of(facts: dict[str, Any]) -> int:
    """Return how much of what must hold a case breaks."""
    counted = sum(len(facts[name]) for name in ("halts", "positions_wrong", "lost_jobs"))
    counted += facts["duplicate_orders"] + facts["lost_fills"] + facts["doubled_sessions"]
    return counted + (Decimal(facts["cash_difference"]) != 0)


def drawn(number: int, seed: int) -> Case:
    """Return a case that is killed at uniformly drawn boundaries."""
    chance = random.Random(f"{seed}/{number}")
    many = chance.randint(FEWEST, MANY)
    kills = tuple(Kill(chance.randint(1, MOST), takes=chance.choice(get_args(Takes))) for _ in range(many))
    return Case(number, chance.randrange(2**31), kills)


def aimed(number: int, seed: int, kinds: list[str]) -> Case:
    """Return a case that is killed at an early boundary of each of some kinds."""
    chance = random.Random(f"{seed}/{number}/{'/'.join(kinds)}")
    kills = [Kill(chance.randint(1, 2), kind, chance.choice(get_args(Takes))) for kind in kinds]
    return Case(number, chance.randrange(2**31), tuple(kills), "+".join(kinds))


def work(kills: int, seed: int, most: int, first: int, step: int, aim: str, results: Any) -> None:
    """Run every `step`-th case until enough lives were killed, each result into a queue.

    One process, one exchange. `step` 0 runs the first case alone, aimed at kinds of boundary where they are named.
    """
    os.environ |= {"APCA_API_KEY_ID": "key", "APCA_API_SECRET_KEY": "secret"}
    preload()
    with tempfile.TemporaryDirectory(prefix="oomrl-crash-", dir=MEMORY if MEMORY.is_dir() else None) as place:
        folder = Path(place)
        tape = market(seed, most)
        template = folder / "template.db"
        Store.open(template, durable=False).close()
        file = folder / "tape.parquet"
        calendar_tapes.write(tape, file, tape.days[-1])
        with _exchange(file, tape.days[WARM + first * STRIDE]) as url:
            hit: Counter[str] = Counter()
            seen: Counter[str] = Counter()
            done, number = 0, first
            share = -(-LEAST // max(step, 1))
            clock = Clock(url)
            while number < most:
                if clock.now() > start_of(number, tape):
                    number += step  # the case before was away for so long that this one's sessions have begun
                    continue
                short = [kind for kind in sorted(seen) if hit[kind] < share <= seen[kind]]
                if aim:
                    case = aimed(number, seed, aim.split("+"))
                elif done < kills:
                    case = drawn(number, seed)
                elif short and kills * step >= WHOLE:
                    at = number % len(short)
                    case = aimed(number, seed, (short[at:] + short[:at])[:MANY])
                else:
                    break
                found = judged(case, tape, url, folder / str(case.number), template)
                found["aimed"] = bool(case.aim)
                hit.update(found["facts"]["kills"])
                seen.update(found["kinds"])
                done += len(found["facts"]["kills"])
                results.put((first, done, found))
                if not step:
                    break
                number += step
    results.put((first, None, None))


@contextmanager
def _exchange(tape: Path, start: date) -> Iterator[str]:
    command = [sys.executable, "-m", "oomrl", "exchange", "serve", "--tape", str(tape), "--port", "0", "--json"]
    command += ["--from", start.isoformat(), "--rules", "paper", "--rate-limit", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def campaign(size: int, seed: int, out: Path, only: str | None = None, beside: int = 1) -> int:
    """Run cases in `beside` processes until `size` lives were killed; return the exit code."""
    spawn = get_context("spawn")
    results: Any = spawn.Queue()
    number, _, aim = (only or "").partition("@")
    names, step = ([int(number)], 0) if only else (list(range(beside)), beside)
    most = int(number) + 1 if only else size + 300
    each = -(-size // len(names))
    given = [(each, seed, most, first, step, aim, results) for first in names]
    # No daemons in multiprocessing's sense: those may have no children.
    workers = [spawn.Process(target=work, args=some) for some in given]
    for worker in workers:
        worker.start()
    made = Campaign("crash", size, seed, out)
    hits, took, seen, total, skipped = Counter[str](), Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    uniform, wrong, cash = 0, 0, Decimal(0)
    running, kills = set(names), dict.fromkeys(names, 0)
    while running:
        try:
            first, done, found = results.get(timeout=120)
        except Empty:
            dead = [n for n, w in zip(names, workers, strict=True) if n in running and not w.is_alive()]
            for name in dead:
                print(f"The process of the cases from {name} on ended without a result.", file=sys.stderr)
                running.discard(name)
            wrong += len(dead)
            continue
        if found is None:
            running.discard(first)
            continue
        facts = found["facts"]
        wrong += faults_of(facts)
        made.add(facts.pop("case"), found["seed"], **facts)
        kills[first] = done
        hits.update(facts["kills"])
        took.update(facts["took"])
        skipped.update(facts["skipped"])
        uniform += 0 if found["aimed"] else len(facts["kills"])
        seen.update(found["kinds"])
        cash += abs(Decimal(facts["cash_difference"]))
        for name in ("duplicate_orders", "lost_fills", "orders", "fills", "filled_after_cancel", "tries", "crossed"):
            total[name] += facts[name]
        for name in ("positions_wrong", "halts", "lost_jobs"):
            total[name] += len(facts[name])
        if len(made.rows) % 10 == 0:
            print(f"{sum(kills.values())} of {size} kills in {len(made.rows)} cases, {wrong} wrong", file=sys.stderr)
    for worker in workers:
        worker.join()
    rare = {kind: hits[kind] for kind in seen if seen[kind] >= LEAST and hits[kind] < LEAST}
    keys = {
        "duplicate_orders": total["duplicate_orders"],
        "lost_fills": total["lost_fills"],
        "cash_difference": str(cash),
        "positions_wrong": total["positions_wrong"],
        "lost_jobs": total["lost_jobs"],
        "halts": total["halts"],
        "kills": sum(hits.values()),
        "drawn_uniformly": uniform,
        "kills_took": dict(sorted(took.items())),
        "cases": len(made.rows),
        "boundaries_crossed": total["crossed"],
        "orders": total["orders"],
        "fills": total["fills"],
        "filled_after_cancel": total["filled_after_cancel"],
        "jobs_tried": total["tries"],
        "jobs_skipped_by_policy": dict(sorted(skipped.items())),
        "kinds": len(seen),
        "kinds_short_of_30": rare,
        "kills_by_boundary": dict(sorted(hits.items())),
    }
    whole = only is not None or size < WHOLE or (not rare and uniform >= size)
    return made.finish(wrong == 0 and whole, **keys)


def main() -> int:
    parser = arguments("crash", 1_000, "lives to kill")
    parser.add_argument("--only", help="one case by its id, such as 17")
    asked = parser.parse_args()
    return campaign(asked.size, asked.seed, asked.out, asked.only, max(1, asked.workers or 1))


if __name__ == "__main__":
    sys.exit(main())
