"""`python -m guardrails`: the gate on any repository. Exit 0 allowed, 1 refused, 2 could not."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from guardrails.attacks import CorpusError, campaign, read_corpus, sample
from guardrails.attacks.rows import Rows
from guardrails.attacks.table import table
from guardrails.attestation import (
    TRANSITION_PREDICATE,
    VERDICT_PREDICATE,
    AttestationError,
    Head,
    Log,
    Signer,
    statement,
)
from guardrails.checks.codes import codes, explain
from guardrails.environment import GateEnvironment
from guardrails.gate import check
from guardrails.policy import PolicyError, load_policy
from guardrails.ro_lock import Anchors
from guardrails.tree import Tree, TreeError
from guardrails.verdict import Verdict

ALLOWED, REFUSED, COULD_NOT = 0, 1, 2


class Trouble(Exception):
    """A person's mistake, or something absent: one line with the way out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.run
    try:
        return command(options)
    except (Trouble, PolicyError, TreeError, AttestationError, CorpusError, OSError) as error:
        print(f"could not: {error}", file=sys.stderr)
        return COULD_NOT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m guardrails", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    judge = commands.add_parser("check", help="judge one patch")
    _tree_options(judge)
    judge.add_argument("--patch", type=Path, required=True, help="the unified diff")
    judge.add_argument("--phase", choices=("logic", "tests"), required=True)
    judge.add_argument("--after", type=Path, help="a tests patch that comes before, as a pair")
    judge.add_argument("--seed", type=int, default=0)
    judge.add_argument("--attempt", type=int, default=0)
    judge.add_argument("--secret", type=Path, help="file with the secret behind hidden seeds; none: the seed alone")
    judge.add_argument("--python", type=Path, default=Path(sys.executable), help="interpreter with pytest, coverage")
    judge.add_argument("--worker-python", type=Path, help="interpreter with the dependencies only")
    judge.add_argument("--all", action="store_true", help="go on after the first refusal")
    judge.add_argument("--log", type=Path, help="attest the verdict in this log")
    judge.add_argument("--key", type=Path, help="signing key, made on demand (default: LOG.key)")
    judge.add_argument("--json", action="store_true")
    judge.set_defaults(run=_check)

    lock = commands.add_parser("lock", help="print the anchors of a tree: source, tests, and the rest")
    _tree_options(lock)
    lock.add_argument("--expect", type=Path, help="refuse where the tree differs from these anchors")
    lock.add_argument("--json", action="store_true")
    lock.set_defaults(run=_lock)

    verify = commands.add_parser("verify", help="check a log against its key and a head kept elsewhere")
    verify.add_argument("--log", type=Path, required=True)
    verify.add_argument("--key", type=Path, help="signing key (default: LOG.key)")
    verify.add_argument("--public", help="public key in hex instead")
    verify.add_argument("--head", help="N:SHA256 as it was kept")
    verify.add_argument("--json", action="store_true")
    verify.set_defaults(run=_verify)

    tell = commands.add_parser("explain", help="say what a finding code means")
    tell.add_argument("code", nargs="?", help="for example GR202; none lists all")
    tell.set_defaults(run=_explain)

    attack = commands.add_parser("attack", help="run a corpus of attacks against these layers")
    _tree_options(attack)
    attack.add_argument("--corpus", type=Path, required=True, help="folder of folders with attack.toml, patch.diff")
    attack.add_argument("--python", type=Path, default=Path(sys.executable))
    attack.add_argument("--worker-python", type=Path)
    attack.add_argument(
        "--ablate", type=int, default=0, help="so many a layer again without the layer that stopped them"
    )
    attack.add_argument("--rows", type=Path, help="file of what the same gate judged before; continued")
    attack.add_argument("--most", type=int, help="so many, drawn by the seed evenly from all classes")
    attack.add_argument("--seed", type=int, default=7)
    attack.add_argument("--jobs", type=int, default=2)
    attack.add_argument("--so-far", action="store_true", help="judge nothing: report what is in --rows")
    attack.add_argument("--out", type=Path, help="write the figures here as JSON")
    attack.add_argument("--table", type=Path, help="write the table here as Markdown")
    attack.add_argument("--json", action="store_true")
    attack.set_defaults(run=_attack)
    return parser


def _tree_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repo", type=Path, required=True, help="the repository's work tree")
    parser.add_argument("--policy", type=Path, required=True, help="its locked policy.toml")


def _check(options: argparse.Namespace) -> int:
    secret = options.secret.read_bytes() if options.secret else b""
    verdict = check(
        Tree.read(options.repo),
        options.patch.read_bytes(),
        options.phase,
        load_policy(options.policy),
        after=options.after.read_bytes() if options.after else None,
        seed=options.seed,
        attempt=options.attempt,
        secret=secret,
        environment=_environment(options),
        stop_at_first_refusal=not options.all,
    )
    if options.log:
        signer = Signer.open(options.key or options.log.with_suffix(".key"))
        subjects = {"base": verdict.base_tree, "result": verdict.result_tree or "0" * 64, "verdict": verdict.digest()}
        log = Log(options.log, signer)
        for step in verdict.transitions:
            log.append(statement({"tree": step["tree"]}, TRANSITION_PREDICATE, step))
        head = log.append(statement(subjects, VERDICT_PREDICATE, verdict.to_json()))
        print(f"head {head.text()}", file=sys.stderr)
    print(json.dumps(verdict.to_json(), indent=2) if options.json else _text(verdict))
    return {"pass": ALLOWED, "refuse": REFUSED}.get(verdict.decision, COULD_NOT)


def _environment(options: argparse.Namespace) -> GateEnvironment:
    return GateEnvironment(options.python, options.worker_python or options.python)


def _text(verdict: Verdict) -> str:
    lines = [f"{verdict.decision}: {verdict.phase} patch, {len(verdict.findings)} findings"]
    for item in verdict.findings:
        place = f"{item.path}:{item.line}: " if item.path else ""
        lines.append(f"  {item.code} {place}{item.reason}\n      {item.fix}")
    stages = ", ".join(f"{stage.name} {stage.status}" for stage in verdict.stages)
    return "\n".join([*lines, *(f"  repaired: {text}" for text in verdict.repairs), f"  stages: {stages}"])


def _lock(options: argparse.Namespace) -> int:
    anchors = vars(Anchors.of(Tree.read(options.repo), load_policy(options.policy)))
    if options.expect:
        held = json.loads(options.expect.read_text("utf-8"))
        changed = [name for name, digest in anchors.items() if held.get(name) != digest]
        print(json.dumps({"changed": changed}) if options.json else f"changed: {', '.join(changed) or 'nothing'}")
        return REFUSED if changed else ALLOWED
    print(json.dumps(anchors, indent=2))
    return ALLOWED


def _verify(options: argparse.Namespace) -> int:
    try:
        public = bytes.fromhex(options.public) if options.public else b""
        expected = Head.parse(options.head) if options.head else None
    except ValueError:
        raise Trouble(f"Expected a public key in hex, was {options.public!r}.") from None
    if not options.log.exists():
        raise Trouble(f"Expected a log at {str(options.log)!r}, was none.")
    keys = [public or Signer.open(options.key or options.log.with_suffix(".key"), create=False).public]
    try:
        head = Log(options.log, public=keys).verify(expected)
    except AttestationError as error:
        print(json.dumps({"whole": False, "reason": str(error)}) if options.json else f"broken: {error}")
        return REFUSED
    print(json.dumps({"whole": True, "head": head.text()}) if options.json else f"whole: head {head.text()}")
    return ALLOWED


def _explain(options: argparse.Namespace) -> int:
    if options.code is None:
        print("\n".join(f"{code}  {row.title}" for code, row in codes().items()))
        return ALLOWED
    try:
        print(explain(options.code), end="")
    except KeyError:
        raise Trouble(f"Expected a code of `explain`, was {options.code!r}.") from None
    return ALLOWED


def _attack(options: argparse.Namespace) -> int:
    tree, policy = Tree.read(options.repo), load_policy(options.policy)
    attacks = list(read_corpus(options.corpus))
    attacks = sample(attacks, options.most, options.seed) if options.most else attacks
    known = Rows(options.rows) if options.rows else None
    figures = campaign.run(
        attacks,
        tree,
        policy,
        _environment(options),
        seed=options.seed,
        ablate=options.ablate,
        jobs=options.jobs,
        told=lambda line: print(line, file=sys.stderr, flush=True),
        known=known,
        so_far=options.so_far,
    )
    page, data = table(figures), json.dumps(figures, indent=2)
    for place, text in ((options.table, page), (options.out, data + "\n")):
        if place:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
    print(data if options.json else page)
    return ALLOWED if figures["passed"] else REFUSED


if __name__ == "__main__":
    sys.exit(main())
