"""OpenTelemetry traces: a span for each job, and within it one for each verdict and each stage of the gate.

On where the standard variable OTEL_EXPORTER_OTLP_ENDPOINT names a collector (extra `otel`); elsewhere nothing is
imported. A job's own process continues the daemon's trace by TRACEPARENT. A collector that does not answer costs its
spans and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from importlib.metadata import version
from typing import Any

from oomrl.domain.records import Job, JobState, StoredVerdict
from oomrl.errors import Mistake

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PARENT = "TRACEPARENT"
#: Seconds that an export may take, and that the end of a process waits for one.
PATIENCE = 3.0


class Traces:
    """The spans of one process; without a collector each method does nothing."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._open: dict[tuple[str, str, date], Any] = {}
        self._provider: Any = None
        if any(environment.get(name) for name in ENDPOINTS):
            self._start(environment.get(PARENT, ""))

    def _start(self, parent: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise Mistake(f"{ENDPOINTS[0]}: OpenTelemetry is not installed. pip install 'oomrl[otel]'") from error
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._propagator = TraceContextTextMapPropagator()
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "oomrl", "service.version": version("oomrl")})
        )
        exporter = OTLPSpanExporter(timeout=PATIENCE)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, export_timeout_millis=PATIENCE * 1_000))
        self._tracer = self._provider.get_tracer("oomrl")
        self._parent = self._propagator.extract({"traceparent": parent}) if parent else None

    def began(self, job: Job) -> None:
        """Open the span of a job."""
        if self._provider is None:
            return
        told = {"oomrl.run": job.run, "oomrl.session": job.session.isoformat(), "oomrl.attempt": job.attempts + 1}
        account = job.run.removeprefix("daemon/")
        self._open[account, job.job, job.session] = self._tracer.start_span(f"job {job.job}", attributes=told)

    def ended(self, job: Job, state: JobState) -> None:
        """Close the span of a job. One that failed is marked as an error; its words stay in the log."""
        span = self._open.pop((job.run.removeprefix("daemon/"), job.job, job.session), None)
        if span is None:
            return
        from opentelemetry.trace import Status, StatusCode

        span.set_attribute("oomrl.state", state.value)
        if state is JobState.FAILED:
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def handed_on(self, account: str, job: str, session: date) -> dict[str, str]:
        """Return the variables by which a job's own process continues its span."""
        span = self._open.get((account, job, session))
        if span is None:
            return {}
        from opentelemetry.trace import set_span_in_context

        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, set_span_in_context(span))
        return {PARENT: carrier["traceparent"]}

    def judged(self, proposal: str, verdict: StoredVerdict, ended_ns: int) -> None:
        """Add the span of a verdict that was reached at `ended_ns`, and of each stage by its measured seconds."""
        if self._provider is None:
            return
        from opentelemetry.trace import set_span_in_context

        phases: Any = verdict.payload.get("phases") or {}
        stages = [(name, stage) for name, one in phases.items() for stage in one.get("stages") or ()]
        begun = ended_ns - sum(_nanoseconds(stage) for _, stage in stages)
        told = {"oomrl.proposal": proposal, "oomrl.verdict": verdict.digest, "oomrl.outcome": verdict.outcome}
        whole = self._tracer.start_span("gate", context=self._parent, start_time=begun, attributes=told)
        within = set_span_in_context(whole)
        for phase, stage in stages:
            told = {"oomrl.phase": phase, "oomrl.status": str(stage.get("status"))}
            name = f"gate {stage.get('name')}"
            span = self._tracer.start_span(name, context=within, start_time=begun, attributes=told)
            begun += _nanoseconds(stage)
            span.end(begun)
        whole.end(ended_ns)

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        if self._provider is not None:
            self._provider.force_flush(int(PATIENCE * 1_000))
            self._provider.shutdown()


def _nanoseconds(stage: Mapping[str, Any]) -> int:
    return int(float(stage.get("seconds") or 0.0) * 1e9)
