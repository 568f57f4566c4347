"""Where models are fitted: in the sandbox for a model's code, in this process for models of our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from oomrl.arenas.research import elasticnet
from oomrl.arenas.research.audit import find_leak
from oomrl.arenas.research.code_policy import review
from oomrl.arenas.research.panel import HORIZON, Panel
from oomrl.arenas.research.references import ReferenceModel, recognise
from oomrl.domain.market import Floats

#: The last third of the public rows: forecast by a fit that saw none of them, to count and correct tries.
VALIDATION_SHARE = 2 / 3


@dataclass(frozen=True, slots=True)
class Failure:
    """Say why a job gave no model: policy, convention, exception, leak, constant, timeout or sandbox."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Trained:
    """What a train job gives: forecasts of all public rows, and of the last third by a fit without it."""

    forecast: Floats
    validation: Floats
    rows: int
    features: tuple[str, ...]
    coefficients: tuple[float, ...]


class Laboratory(Protocol):
    """Fit a model's code. The same request gives the same answer."""

    def train(self, code: str, panel: Panel, rows: tuple[int, int], seed: int) -> Trained | Failure:
        """Audit and fit on a public panel, on the signal rows start..stop-1."""
        ...

    def forecast(self, code: str, panel: Panel) -> Floats | Failure:
        """Refit on all public rows, then forecast each later row from the rows up to it alone.

        Returns shape (days - public_days, names).
        """
        ...


def validation_start(panel: Panel) -> int:
    """Return the first public row that validation forecasts cover."""
    return int(panel.public_days * VALIDATION_SHARE)


def early_rows(panel: Panel, rows: tuple[int, int]) -> tuple[int, int]:
    """Return the training rows of the validation fit: the filter's own before the last third, else all of it."""
    cut = validation_start(panel)
    start, stop = rows[0], min(rows[1], cut)
    return (start, stop) if stop - start >= 60 else (0, cut)


def target_of(panel: Panel, start: int, stop: int) -> Floats:
    """Return what a fit learns: the return of row t+2 less that row's mean, in units of its deviation.

    NaN outside the rows start..stop-1, and where the return lies outside them: a fit that may not see row
    `stop` may not see its return either. Shape (public_days, names).
    """
    target = np.full((panel.public_days, len(panel.names)), np.nan)
    last = min(stop, panel.public_days) - HORIZON
    if last <= start:
        return target
    earned = panel.returns[start + HORIZON : last + HORIZON]
    centred = earned - earned.mean(axis=1, keepdims=True)
    target[start:last] = np.where(panel.tradable[start:last], centred / centred.std(), np.nan)
    return target


def is_flat(forecast: Floats) -> bool:
    """Say whether forecasts tell names apart on fewer than one row in five."""
    seen = np.where(np.isfinite(forecast), forecast, 0.0)
    return bool((seen.std(axis=1) > 1e-12).mean() < 0.2)


FLAT = Failure("constant", "Expected forecasts that tell names apart, were all alike; to trade nothing, abstain")


class ReferenceLaboratory:
    """Fit reference models of ours in this process; hand all other code to a sandbox, or refuse it.

    A reference model is recognised by its bytes (`references.recognise`); nothing else is ever run here.
    """

    def __init__(self, sandbox: Laboratory | None = None) -> None:
        self._sandbox = sandbox

    def train(self, code: str, panel: Panel, rows: tuple[int, int], seed: int) -> Trained | Failure:
        model = recognise(code, panel.fields)
        if model is None:
            return _unknown(code) if self._sandbox is None else self._sandbox.train(code, panel, rows, seed)
        names, features = _features(model, panel)
        fitted = _fit(model, features, target_of(panel, *rows))
        cut = validation_start(panel)
        early = _fit(model, features, target_of(panel, *early_rows(panel, rows)))
        forecast = fitted.predict(features)
        if is_flat(forecast):
            return FLAT
        return Trained(
            forecast,
            early.predict(features[cut:]),
            int(np.isfinite(target_of(panel, *rows)).sum()),
            names,
            tuple(fitted.coefficients.tolist()),
        )

    def forecast(self, code: str, panel: Panel) -> Floats | Failure:
        model = recognise(code, panel.fields)
        if model is None:
            return _unknown(code) if self._sandbox is None else self._sandbox.forecast(code, panel)
        _, features = _features(model, panel)
        public = features[: panel.public_days]
        fitted = _fit(model, public, target_of(panel, 0, panel.public_days))
        return fitted.predict(features[panel.public_days :])


def _features(model: ReferenceModel, panel: Panel) -> tuple[tuple[str, ...], Floats]:
    features = model.features(panel.columns)
    return tuple(features), elasticnet.stack(features)


def _fit(model: ReferenceModel, features: Floats, target: Floats) -> elasticnet.Fit:
    return elasticnet.fit(features, target, model.alpha, model.l1_ratio)


def _unknown(code: str) -> Failure:
    findings = review(code)
    if findings:
        return policy_failure(findings)
    return Failure("sandbox", "Expected a sandbox to run model code in, was none: only reference models run here")


def policy_failure(findings: Sequence[Any]) -> Failure:
    shown = "; ".join(f"line {finding.line}: {finding.message}" for finding in findings[:5])
    return Failure("policy", f"Expected code within the rules, was not: {shown}")


class Channel(Protocol):
    """Talk to one runner: a header and arrays out, a header and arrays back."""

    def ask(
        self, header: Mapping[str, Any], arrays: Mapping[str, Floats]
    ) -> tuple[Mapping[str, Any], Mapping[str, Floats]]:
        """Raise `ChannelFailure` when the runner died, hung or answered nonsense."""
        ...


class ChannelFailure(Exception):
    """The runner is of no use any more; `kind` is timeout or sandbox."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class _Refused(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class SandboxLaboratory:
    """Fit model code behind channels that end in a sandbox, one fresh runner a job."""

    def __init__(self, channels: Callable[[], AbstractContextManager[Channel]]) -> None:
        self._channels = channels

    def train(self, code: str, panel: Panel, rows: tuple[int, int], seed: int) -> Trained | Failure:
        return self._run(code, panel, lambda talk: _train(talk, panel, rows, seed))

    def forecast(self, code: str, panel: Panel) -> Floats | Failure:
        return self._run(code, panel, lambda talk: _stream(talk, panel))

    def _run(self, code: str, panel: Panel, job: Callable[[_Talk], Any]) -> Any:
        findings = review(code)
        if findings:
            return policy_failure(findings)
        try:
            with self._channels() as channel:
                talk = _Talk(channel, len(panel.names))
                talk({"op": "load", "code": code, "names": list(panel.names)}, {})
                return job(talk)
        except _Refused as refusal:
            return refusal.failure
        except ChannelFailure as failure:
            return Failure(failure.kind, str(failure))


class _Talk:
    def __init__(self, channel: Channel, names: int) -> None:
        self._channel, self._names = channel, names

    def __call__(
        self, header: Mapping[str, Any], arrays: Mapping[str, Floats]
    ) -> tuple[Mapping[str, Any], Mapping[str, Floats]]:
        reply, blocks = self._channel.ask(header, arrays)
        if reply.get("ok") is not True:
            kind = "convention" if reply.get("kind") == "convention" else "exception"
            raise _Refused(Failure(kind, str(reply.get("message", ""))[:500]))
        return reply, blocks

    def predict(self, fields: Mapping[str, Floats]) -> Floats:
        days = len(next(iter(fields.values())))
        return self._forecast(self({"op": "predict"}, fields)[1], (days, self._names))

    def append(self, row: Mapping[str, Floats]) -> Floats:
        return self._forecast(self({"op": "append"}, row)[1], (self._names,))

    @staticmethod
    def _forecast(blocks: Mapping[str, Floats], shape: tuple[int, ...]) -> Floats:
        answer = blocks.get("forecast")
        if answer is None or answer.shape != shape or np.isinf(answer).any():
            raise ChannelFailure("sandbox", f"Expected finite forecasts of shape {shape}, were none")
        return answer


def _train(talk: _Talk, panel: Panel, rows: tuple[int, int], seed: int) -> Trained:
    cut = validation_start(panel)
    early = {name: values[:cut] for name, values in panel.columns.items()}
    talk({"op": "fit"}, {**early, "target": target_of(panel, *early_rows(panel, rows))[:cut]})
    validation = talk.predict(panel.columns)[cut:]
    target = target_of(panel, *rows)
    reply, blocks = talk({"op": "fit"}, {**panel.columns, "target": target})
    forecast = talk.predict(panel.columns)
    if is_flat(forecast):
        raise _Refused(FLAT)
    leak = find_leak(talk.predict, panel.columns, forecast, seed)
    if leak is not None:
        raise _Refused(Failure("leak", leak.message))
    names = tuple(str(name)[:40] for name in reply.get("features", []))
    coefficients = blocks.get("coefficients", np.zeros(0))
    return Trained(forecast, validation, int(np.isfinite(target).sum()), names, tuple(coefficients.tolist()))


def _stream(talk: _Talk, panel: Panel) -> Floats:
    public = panel.public()
    talk({"op": "fit"}, {**public.columns, "target": target_of(panel, 0, panel.public_days)})
    talk({"op": "stream", "capacity": panel.days}, public.columns)
    return np.stack(
        [
            talk.append({name: values[t] for name, values in panel.columns.items()})
            for t in range(panel.public_days, panel.days)
        ]
    )
