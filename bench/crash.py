"""Kill the service at every kind of boundary and compare what it then believes with the exchange's own books.

`python -m bench.crash [--size KILLS] [--seed S] [--only CASE]`: each case is an account of its own at the emulator that
runs in a process of its own and goes wrong at random (see FAULTS). The loop trades three sessions there through
alpaca-py and is ended by SIGKILL at a boundary drawn uniformly from those that it would cross: before or after a
commit, before or after an HTTP request. A second life goes on, in half of the cases to be killed as well, until one
ends by itself. Then the exchange's orders, fills, cash and positions are compared with the store's. Kinds of
boundary that uniform draws hit fewer than 30 times are drawn on purpose until they have 30.

Exit code 0 when no order was sent twice, no fill was lost or booked twice, cash and positions agree to the cent, and no
life halted.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
import requests

from bench.boundaries import Kill
from bench.campaign import Campaign, arguments
from bench.lives import CASH, RUN, SESSIONS, VARIANTS, WARM, Case, days_of, live, market
from oomrl.adapters.database import Store
from oomrl.adapters.database.engine import open_engine
from oomrl.domain.ledger import Book
from oomrl.exchange.tape import RECORDED, Tape

#: Each kind of boundary is hit at least this often.
LEAST = 30
#: From this many kills on, rare kinds of boundary are drawn on purpose too.
WHOLE = 200
#: Lives of one case before it counts as stuck.
LIVES = 8
#: The most boundaries that a first and a later life are drawn from; a life that ends before its draw is not killed.
FIRST, LATER = 130, 80

FAULTS = """
seed = {seed}
[[fault]]
kind = "accepted_then_504"
endpoint = "POST /v2/orders"
probability = 0.05
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
        marks = view.sessions.marks(RUN)
    closed = marks[-1].day if marks else date.min
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
        "closed": str(closed),
        "orders": len(books["orders"]),
        "fills": len(there),
        "duplicate_orders": twice + foreign,
        "filled_after_cancel": len(broken),
        "lost_fills": len(there.keys() ^ booked.keys()) + abs(traded - len(there)) + (not same),
        "positions_wrong": wrong,
        "cash_difference": str(Decimal(books["cash"]) - cash),
    }


def _days(books: dict[str, Any]) -> list[date]:
    names = {_order(order["client_order_id"]) for order in books["orders"]}
    return sorted({datetime.strptime(name.split("-")[1], "%Y%m%d").date() for name in names})  # noqa: DTZ007 - a date


def _order(client_order_id: str) -> str:
    return client_order_id.split(".")[0]


def judged(case: Case, tape: Tape, url: str, folder: Path, template: Path) -> dict[str, Any]:
    """Let a case live and die as it shall, and return what was found."""
    folder.mkdir(parents=True)
    shutil.copy(template, folder / "oomrl.db")
    admin = requests.Session()
    admin.trust_env = False
    begin, _, _ = days_of(case, tape)
    admin.post(f"{url}/admin/reset", json={"cash": str(CASH)}, timeout=60).raise_for_status()
    admin.post(f"{url}/admin/faults", json={"toml": FAULTS.format(seed=case.seed)}, timeout=60).raise_for_status()
    killed: list[str] = []
    kinds: Counter[str] = Counter()
    halts: list[str] = []
    counts: list[int] = []
    for life in range(LIVES):
        kill = case.kills[life] if life < len(case.kills) else None
        ended = _lived(partial(live, case, tape, url, folder, kill))
        told = json.loads((folder / "life.json").read_text("utf-8"))
        kinds.update(told["kinds"])
        counts.append(sum(told["kinds"].values()))
        if ended == -signal.SIGKILL:
            killed.append(told["killed"])
            continue
        if ended == 0:
            break
        halts.append((folder / "halt.txt").read_text("utf-8") if ended == 3 else f"exit {ended}")
        break
    # What the books say is read without faults; the case has ended.
    books = admin.get(f"{url}/admin/books", timeout=60).json()
    with Store(open_engine(folder / "oomrl.db", durable=False)) as store:
        found = compared(books, store)
    admin.close()
    facts = {"case": case.id, "kills": killed, "halts": halts, "crossed": counts, **found}
    bad = halts or found["duplicate_orders"] or found["lost_fills"] or found["positions_wrong"]
    if not bad and Decimal(found["cash_difference"]) == 0:
        shutil.rmtree(folder)
    return {"seed": case.seed, "kinds": dict(kinds), "facts": facts, "begin": str(begin)}


def _lived(run: Callable[[], int]) -> int:
    """Run one life in a forked process and return its exit code, negative for the signal that ended it."""
    child = os.fork()
    if not child:
        code = 70
        try:
            code = run()
        except BaseException:  # noqa: BLE001 - a child must never return into its parent's code
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def drawn(variant: str, number: int, seed: int) -> Case:
    """Return a case whose lives are killed at uniformly drawn boundaries."""
    chance = random.Random(f"{seed}/{variant}/{number}")
    kills = [Kill(chance.randint(1, FIRST))]
    if chance.random() < 0.5:
        kills.append(Kill(chance.randint(1, LATER)))
    return Case(variant, number, chance.randrange(2**31), tuple(kills))


def aimed(variant: str, number: int, seed: int, kind: str) -> Case:
    """Return a case whose first life is killed at an early boundary of one kind."""
    chance = random.Random(f"{seed}/{variant}/{number}/{kind}")
    return Case(variant, number, chance.randrange(2**31), (Kill(1, kind),))


def _share(kind: str, step: int) -> int:
    """Return how many hits of a kind one process owes: paper accounts have no lines of their own to commit."""
    return -(-LEAST // (step * (1 if "account lines" in kind else len(VARIANTS)))) if step else 0


def work(variant: str, kills: int, seed: int, most: int, first: int, step: int, aim: str, results: Any) -> None:
    """Run every `step`-th case of a variant until enough lives were killed, each result into a queue.

    One process, one exchange. `step` 0 runs the first case alone, aimed at a kind of boundary where one is named.
    """
    with tempfile.TemporaryDirectory(prefix="oomrl-crash-") as place:
        folder = Path(place)
        tape = market(seed, most)
        template = folder / "template.db"
        Store.open(template, durable=False).close()
        file = _parquet(tape, folder / "tape.parquet")
        with _exchange(file, tape.days[WARM + first * SESSIONS], variant) as url:
            hit: Counter[str] = Counter()
            seen: Counter[str] = Counter()
            done, number = 0, first
            while number < most:
                short = [kind for kind in sorted(seen) if hit[kind] < _share(kind, step) <= seen[kind]]
                if aim:
                    case = aimed(variant, number, seed, aim)
                elif done < kills:
                    case = drawn(variant, number, seed)
                elif short and kills * step * len(VARIANTS) >= WHOLE:
                    case = aimed(variant, number, seed, short[number % len(short)])
                else:
                    break
                found = judged(case, tape, url, folder / str(case.number), template)
                found["aimed"] = case.kills[0] is not None and case.kills[0].kind is not None
                hit.update(found["facts"]["kills"])
                seen.update(found["kinds"])
                done += len(found["facts"]["kills"])
                results.put(((variant, first), done, found))
                if not step:
                    break
                number += step
    results.put(((variant, first), None, None))


@contextmanager
def _exchange(tape: Path, start: date, variant: str) -> Iterator[str]:
    command = [sys.executable, "-m", "oomrl", "exchange", "serve", "--tape", str(tape), "--port", "0", "--json"]
    command += ["--from", start.isoformat(), "--rules", variant, "--rate-limit", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def _parquet(tape: Tape, place: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, names = np.nonzero(~np.isnan(tape.columns["close"]))
    table = {
        "symbol": [tape.symbols[n] for n in names],
        "date": [tape.days[n] for n in rows],
        **{column: tape.columns[column][rows, names] for column in RECORDED},
    }
    pq.write_table(pa.table(table), place)
    return place


def campaign(size: int, seed: int, out: Path, only: str | None = None, beside: int = 1) -> int:
    """Run both variants, each in `beside` processes, until `size` lives were killed; return the exit code."""
    spawn = get_context("spawn")
    results: Any = spawn.Queue()
    if only:
        variant, number = only.split("@")[0].rsplit("-", 1)
        names, step = [(variant, int(number))], 0
        most = int(number) + 1
    else:
        names, step = [(variant, first) for variant in VARIANTS for first in range(beside)], beside
        most = size + 300
    each = -(-size // len(names))
    aim = only.partition("@")[2] if only else ""
    given = [(variant, each, seed, most, first, step, aim, results) for variant, first in names]
    workers = [spawn.Process(target=work, args=some, daemon=True) for some in given]
    for worker in workers:
        worker.start()
    made = Campaign("crash", size, seed, out)
    total: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    uniform, seen, cash, halts = 0, Counter[str](), Decimal(0), 0
    running, kills = set(names), dict.fromkeys(names, 0)
    while running:
        try:
            variant, done, found = results.get(timeout=120)
        except Empty:
            dead = [v for v, w in zip(names, workers, strict=True) if v in running and not w.is_alive()]
            if dead:
                print(f"The process of {dead} ended without a result.", file=sys.stderr)
                halts += len(dead)
                running -= set(dead)
            continue
        if found is None:
            running.discard(variant)
            continue
        facts = found["facts"]
        made.add(facts.pop("case"), found["seed"], **facts)
        kills[variant] = done
        hits.update(facts["kills"])
        uniform += 0 if found["aimed"] else len(facts["kills"])
        seen.update(found["kinds"])
        halts += len(facts["halts"])
        cash += abs(Decimal(facts["cash_difference"]))
        for name in ("duplicate_orders", "lost_fills", "orders", "fills", "filled_after_cancel"):
            total[name] += facts[name]
        total["positions_wrong"] += len(facts["positions_wrong"])
        if len(made.rows) % 25 == 0:
            bad = total["duplicate_orders"] + total["lost_fills"] + total["positions_wrong"]
            told = f"{sum(kills.values())} of {size} kills in {len(made.rows)} cases, {bad} wrong, {halts} halts"
            print(told, file=sys.stderr, flush=True)
    for worker in workers:
        worker.join()
    rare = {kind: hits[kind] for kind in seen if seen[kind] >= LEAST and hits[kind] < LEAST}
    keys = {
        "duplicate_orders": total["duplicate_orders"],
        "lost_fills": total["lost_fills"],
        "cash_difference": str(cash),
        "positions_wrong": total["positions_wrong"],
        "halts": halts,
        "kills": sum(hits.values()),
        "drawn_uniformly": uniform,
        "cases": len(made.rows),
        "orders": total["orders"],
        "fills": total["fills"],
        "filled_after_cancel": total["filled_after_cancel"],
        "kills_by_boundary": dict(sorted(hits.items())),
    }
    whole = only is not None or size < WHOLE or (not rare and uniform >= size)
    clean = not (total["duplicate_orders"] or total["lost_fills"] or total["positions_wrong"] or cash or halts)
    return made.finish(clean and whole, **keys)


def main() -> int:
    parser = arguments("crash", 1_000, "lives to kill")
    parser.add_argument("--only", help="one case by its id, such as paper-17")
    asked = parser.parse_args()
    return campaign(asked.size, asked.seed, asked.out, asked.only, max(1, (asked.workers or 2) // 2))


if __name__ == "__main__":
    sys.exit(main())
