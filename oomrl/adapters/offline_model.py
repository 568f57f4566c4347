"""The offline model: a rule-based repairer, no language model, and it says so in all it writes.

It takes the diagnostic's causes in their order, has for each an ordered list of repairs, drops those that change
nothing, and answers attempt k with the k-th that is left. It knows finance's common sense and the policy's bounds;
it knows nothing of how faults are made. Where nothing is left it escalates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from oomrl.adapters import offline_parameters, offline_source
from oomrl.adapters.offline_parameters import Move
from oomrl.agents.diff import changes_to_diff
from oomrl.ports import Context, Reply

LABEL = "rule-based repairer, no language model"


@dataclass(frozen=True, slots=True)
class Repair:
    """Something to try: changes of parameters, or a rule over the source."""

    name: str
    why: str
    moves: tuple[Move, ...] = ()
    rule: offline_source.Rule | None = None


_SLOWER = Repair(
    "trade less often",
    "costs come from turnover: decide weekly, leave small differences alone, keep what still ranks well",
    (
        Move("strategy.cadence", "weekly"),
        Move("parameters.no_trade_band", 0.25, "up"),
        Move("parameters.keep_fraction", 0.45, "up"),
    ),
)
_WEEKLY = Repair("weekly cadence", "a daily decision pays the spread daily", (Move("strategy.cadence", "weekly"),))
_SLOW_SIGNALS = Repair(
    "slower signals",
    "fast signals turn the book over: lean on slow ones",
    (
        Move("strategy.cadence", "weekly"),
        Move("parameters.no_trade_band", 0.4, "up"),
        Move("parameters.keep_fraction", 0.6, "up"),
        Move("parameters.reversal_weight", 0.25, "down"),
        Move("parameters.momentum_weight", 1.0, "up"),
        Move("parameters.volatility_weight", 1.0, "up"),
        Move("parameters.momentum_window", 252, "up"),
        Move("parameters.volatility_window", 126, "up"),
    ),
)
_LIQUIDITY = Repair(
    "respect liquidity",
    "orders were too large for their markets: take a smaller share of volume, over more sessions, of liquid names",
    (
        Move("parameters.max_participation", 0.05, "down"),
        Move("parameters.max_sessions", 3, "up"),
        Move("parameters.min_dollar_volume", 3_000_000.0, "up"),
        Move("parameters.max_position_volume", 0.5, "down"),
        Move("parameters.liquidity_window", 42, "up"),
    ),
)
_COLLAR = Repair(
    "a limit on each order",
    "market orders paid any price: put a limit",
    (Move("parameters.limit_volatilities", 3.0, "up"),),
)
_WIDE_COLLAR = Repair(
    "a wider limit",
    "orders stayed unfilled at their limit: widen it",
    (Move("parameters.limit_volatilities", 5.0, "up"), Move("parameters.max_sessions", 5, "up")),
)
_DIVERSIFY = Repair(
    "spread the book",
    "single names carried the loss: cap each, hold more of them",
    (
        Move("parameters.max_weight", 0.06, "down"),
        Move("parameters.few_names_weight", 0.35, "down"),
        Move("parameters.max_holdings", 60, "up"),
        Move("parameters.hold_fraction", 0.3, "up"),
        Move("parameters.volatility_sizing", 1.0, "up"),
    ),
)
_DEFEND = Repair(
    "less market",
    "the market carried the loss: quieter names, smaller exposure",
    (
        Move("parameters.volatility_weight", 2.0, "up"),
        Move("parameters.volatility_sizing", 1.0, "up"),
        Move("parameters.exposure", 0.85, "down"),
    ),
)
_INVEST = Repair(
    "put idle cash to work", "cash lagged the market: raise the exposure", (Move("parameters.exposure", 0.98, "up"),)
)
_LONG_WINDOWS = Repair(
    "longer windows",
    "short windows measure noise",
    (
        Move("parameters.momentum_window", 252, "up"),
        Move("parameters.momentum_skip", 21, "up"),
        Move("parameters.volatility_window", 126, "up"),
        Move("parameters.reversal_window", 5, "up"),
    ),
)
_BALANCE = Repair(
    "balanced factors",
    "one factor dominated: weigh them evenly",
    (
        Move("parameters.momentum_weight", 1.0),
        Move("parameters.volatility_weight", 1.0),
        Move("parameters.reversal_weight", 0.5),
    ),
)
_SIGNS = Repair("factor signs", "a factor points the wrong way", rule=offline_source.factor_signs)
_ORDER = Repair("best first", "a selection takes the worst", rule=offline_source.best_first)
_DIRECTIONS = Repair("bounds", "a bound is applied the wrong way round", rule=offline_source.bound_directions)
_SOURCE = (_SIGNS, _ORDER, _DIRECTIONS)

#: Word in a cause (or in the decomposition's line) -> repairs in the order in which they are tried.
REMEDIES: tuple[tuple[tuple[str, ...], tuple[Repair, ...]], ...] = (
    (("churn", "turnover", "overtrad", "spread", "fees", "delay", "cost"), (_SLOWER, _SLOW_SIGNALS, _WEEKLY)),
    (("impact", "liquid", "participation", "capacity"), (_LIQUIDITY, _SLOWER, _COLLAR)),
    (("unfilled", "opportunity", "limit_price"), (_WIDE_COLLAR, _LIQUIDITY)),
    (("concentrat", "single_name", "name"), (_DIVERSIFY,)),
    (("cash",), (_INVEST,)),
    (
        ("sign", "selection", "signal", "stale", "factor"),
        (*_SOURCE, _LONG_WINDOWS, _BALANCE, _DIVERSIFY, _SLOW_SIGNALS),
    ),
    (("market", "beta", "exposure"), (_DEFEND, _DIVERSIFY)),
)
#: What is tried after the causes' own remedies, in case they were ranked wrongly.
LAST = (_SLOWER, _LIQUIDITY, *_SOURCE, _DIVERSIFY, _LONG_WINDOWS, _BALANCE, _DEFEND)


class OfflineModel:
    """Answer prompts by rules. Free, instant, the same for the same context."""

    name = "offline"

    def answer(self, prompt_id: str, role: str, prompt: str, context: Context) -> Reply | None:
        """Return a diff or an escalation for the coder, a draft for the analyst, remarks for the critic."""
        writers = {"coder": self._code, "analyst": self._analyse, "critic": self._criticise}
        writer = writers.get(role)
        if writer is None:
            return self._say("ESCALATE: this repairer writes no tests; the mandate needs a person or another model.")
        return self._say(writer(context))

    def _say(self, text: str) -> Reply:
        return Reply(f"({LABEL})\n\n{text}\n", self.name)

    def _code(self, context: Context) -> str:
        candidates = list(_candidates(context))
        tried = {attempt.patch for attempt in context.earlier}
        fresh = [candidate for candidate in candidates if candidate[1] not in tried]
        # Earlier attempts are counted by number too: a patch that was refused may come back in another wording.
        skip = max(0, context.attempt - 1 - (len(candidates) - len(fresh)))
        if len(fresh) <= skip:
            causes = ", ".join(ranked_causes(context.diagnostic)) or "none"
            return (
                f"ESCALATE: the mandate cannot be met by the rules of this repairer: for the causes ({causes}) "
                f"{len(candidates)} repairs within the policy were found and all were tried."
            )
        why, diff = fresh[skip]
        return f"{why}\n\n```diff\n{diff}```"

    def _analyse(self, context: Context) -> str:
        causes = ranked_causes(context.diagnostic)
        first = next(_repairs(causes))
        draft = {
            "root_cause": f"{causes[0] if causes else 'unknown'} ({LABEL}; largest part of the loss)",
            "mandate": f"{first.name[0].upper()}{first.name[1:]}: {first.why}.",
        }
        return "```json\n" + json.dumps(draft, indent=2) + "\n```"

    def _criticise(self, context: Context) -> str:
        patch = context.earlier[-1].patch if context.earlier else ""
        changed = [line for line in patch.split("\n") if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        remarks = [{"severity": "note", "text": f"{len(changed)} lines change; no rule of this critic reads meaning."}]
        if any("exposure" in line for line in changed):
            remarks.append(
                {"severity": "major", "text": "The exposure changes: smaller losses may be less investment."}
            )
        return (
            "```json\n" + json.dumps({"objections": remarks, "summary": f"{LABEL}: counted, not understood."}) + "\n```"
        )


def ranked_causes(diagnostic: Mapping[str, object]) -> list[str]:
    """Return the names of a diagnostic's causes, the likeliest first."""
    inner = diagnostic.get("diagnostics")
    places = [inner, diagnostic] if isinstance(inner, Mapping) else [diagnostic]
    names: list[str] = []
    for place in places:
        causes = place.get("causes")
        if isinstance(causes, list | tuple):
            for cause in causes:
                if isinstance(cause, Mapping):
                    name = next((cause[key] for key in ("cause", "name", "code", "id", "kind") if key in cause), None)
                else:
                    name = cause
                if isinstance(name, str):
                    names.append(name)
        root = place.get("root_cause")
        if isinstance(root, str):
            names.append(root)
    return list(dict.fromkeys(names))


def _repairs(causes: list[str]) -> Iterator[Repair]:
    seen: set[str] = set()
    for cause in causes:
        for words, remedies in REMEDIES:
            if any(word in cause.lower() for word in words):
                for repair in remedies:
                    if repair.name not in seen:
                        seen.add(repair.name)
                        yield repair
    for repair in LAST:
        if repair.name not in seen:
            seen.add(repair.name)
            yield repair


def _candidates(context: Context) -> Iterator[tuple[str, str]]:
    """Yield (why, diff) of every repair that changes something, in order, each diff once."""
    seen: set[str] = set()
    for repair in _repairs(ranked_causes(context.diagnostic)):
        changes, notes = _changes(repair, context)
        diff = changes_to_diff(context.tree, changes)
        if diff and diff not in seen:
            seen.add(diff)
            listed = "".join(f"\n- {note}" for note in notes)
            yield f"Repair: {repair.name}. Reason: {repair.why}.{listed}", diff


def _changes(repair: Repair, context: Context) -> tuple[dict[str, bytes | None], list[str]]:
    if repair.rule is not None:
        found, reasons = offline_source.repairs(context.tree, repair.rule)
        return dict(found), reasons
    file = context.parameters_file
    if file not in context.tree:
        return {}, []
    text = context.tree[file].decode("utf-8")
    notes = []
    for move in repair.moves:
        values = offline_parameters.read(text)
        if move.key not in values or move.key not in context.bounds:
            continue
        new = offline_parameters.moved(values[move.key], move, context.bounds[move.key])
        if new is not None:
            notes.append(f"{move.key}: {values[move.key]} to {new}")
            text = offline_parameters.write(text, move.key, new)
    return ({file: text.encode()} if notes else {}), notes
