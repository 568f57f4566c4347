"""Mutate functions of one module with cosmic-ray, and tell how each mutant ended and what the running of them took.

`python run_cosmic_ray.py FOLDER MODULE PROCESSES MOST SEED FUNCTION ...`, the normal forms of the mutants that another
tool makes as well on standard input, one a line: those are all tried, and of the others as many, drawn by the seed, as
make MOST (0: all). FOLDER is a copy of the strategy that may be written to. cosmic-ray changes the file on disk, so
each process has a copy and a session of its own, with its share of the mutants.
"""

import ast
import json
import os
import random
import shutil
import sys
import time
from multiprocessing import get_context
from pathlib import Path

from cosmic_ray.commands import execute, init
from cosmic_ray.config import deserialize_config
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.testing import run_tests
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import WorkerOutcome, WorkResult
from normal import normal_form

#: So many times as long as the tests take unchanged, a mutant may take.
PATIENCE = 10
SETTINGS = """
[cosmic-ray]
module-path = "{module}"
timeout = {timeout}
excluded-modules = []
test-command = "{python} -m pytest -x -q tests"
[cosmic-ray.distributor]
name = "local"
"""
SESSION = "session.sqlite"


def main(folder, module, processes, most, seed, functions, wanted):
    begun = time.perf_counter()
    os.chdir(folder)
    source = Path(module).read_text("utf-8")
    settings = deserialize_config(SETTINGS.format(module=module, timeout=60, python=sys.executable))
    with use_db(SESSION, WorkDB.Mode.create) as session:
        init([Path(module)], session, settings.operators_config)
        made = mutants_of(session, source, functions)
    shared = [job for job, (_, form) in made.items() if form in wanted]
    others = [job for job, (_, form) in made.items() if form not in wanted]
    room = max(0, most - len(shared)) if most else len(others)
    chosen = shared + random.Random(seed).sample(others, min(room, len(others)))
    random.Random(seed).shuffle(chosen)
    started = time.perf_counter()
    outcome, output = run_tests(settings.test_command, None)
    if outcome != "survived":
        raise SystemExit(f"Expected the tests to pass unchanged, was {output[-600:]}")
    timeout = max(PATIENCE * (time.perf_counter() - started), 10)
    text = SETTINGS.format(module=module, timeout=timeout, python=sys.executable)
    shares = [chosen[number::processes] for number in range(processes)]
    places = [Path(f"{folder}-{number}") for number in range(processes)]
    for place, share in zip(places, shares):
        shutil.copytree(folder, place)
        with use_db(str(place / SESSION), WorkDB.Mode.open) as session:
            left = [item.job_id for item in session.pending_work_items if item.job_id not in share]
            session.set_multiple_results(left, WorkResult(worker_outcome=WorkerOutcome.SKIPPED))
    context = get_context("fork")
    before = os.times()
    running = [context.Process(target=run, args=(place, text)) for place in places]
    for process in running:
        process.start()
    for process in running:
        process.join()
    after = os.times()
    found = []
    for place in places:
        with use_db(str(place / SESSION), WorkDB.Mode.open) as session:
            for item, result in session.completed_work_items:
                if result.worker_outcome != WorkerOutcome.SKIPPED:
                    function, form = made[item.job_id]
                    ended = "timeout" if result.output == "timeout" else result.test_outcome.value
                    found.append({"function": function, "form": form, "ended": ended})
        shutil.rmtree(place)
    told = {
        "seconds": after.elapsed - before.elapsed,
        "processor_seconds": sum(after[:4]) - sum(before[:4]),
        "whole_seconds": time.perf_counter() - begun,
        "made": len(made),
    }
    print(json.dumps(told | {"mutants": found}))


def mutants_of(session, source, functions):
    """Return, in the source's order, the function and the form of each mutant of a session that changes one of them."""
    rows = {
        node.name: range(node.lineno, node.end_lineno + 1)
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name in functions
    }
    made = {}
    items = [(item, *item.mutations) for item in session.work_items]
    for item, change in sorted(items, key=lambda pair: (pair[1].start_pos, pair[1].operator_name, pair[1].occurrence)):
        for name, lines in rows.items():
            if change.start_pos[0] in lines:
                changed = mutate_code(source, get_operator(change.operator_name)(), change.occurrence)
                try:
                    form = normal_form(changed, name)
                except SyntaxError:  # some of its mutants are no Python
                    form = f"{change.operator_name} {change.occurrence}: no syntax"
                made[item.job_id] = (name, form)
    return made


def run(place, text):
    """Try what is pending in a session: cosmic-ray's own command, in a folder of its own."""
    os.chdir(place)
    with use_db(SESSION, WorkDB.Mode.open) as session:
        execute(session, deserialize_config(text))


if __name__ == "__main__":
    asked = sys.argv[1:]
    main(*asked[:2], *map(int, asked[2:5]), asked[5:], frozenset(sys.stdin.read().splitlines()))
