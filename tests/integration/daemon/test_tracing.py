"""Traces as a collector gets them: OTLP over a real socket, from the daemon and from a job's own process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from oomrl.daemon.children import Children
from oomrl.daemon.tracing import PATIENCE, Traces
from oomrl.domain.records import Job, JobState, StoredVerdict

JOB = Job("daemon/main", "gate", date(2024, 7, 2), datetime(2024, 7, 2, 22, tzinfo=UTC))
STAGES = [{"name": "patch", "status": "pass", "seconds": 0.5}, {"name": "tests", "status": "refuse", "seconds": 2.0}]
PAYLOAD = {"phases": {"logic": {"stages": STAGES}}}
VERDICT = StoredVerdict("v" * 64, "prop-1", "daemon/main", "refuse", "b" * 64, "", PAYLOAD, JOB.due_at)
#: What a job's process does with the span that it was handed.
CHILD = """
import json, os, time
from oomrl.daemon.tracing import Traces
from tests.integration.daemon.test_tracing import VERDICT
traces = Traces(os.environ)
traces.judged("prop-1", VERDICT, time.time_ns())
traces.close()
print(json.dumps({"done": True, "note": os.environ["TRACEPARENT"]}))
"""


class Collector:
    """Keep every span that is sent."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        told = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
                told.extend(s for r in sent.resource_spans for scope in r.scope_spans for s in scope.spans)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server.server_address[1]}"}

    def named(self, name: str) -> Any:
        (span,) = [span for span in self.spans if span.name == name]
        return span


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()
    thread = Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_a_job_is_a_span_and_its_process_hangs_the_gate_and_its_stages_below(
    collector: Collector, tmp_path: Path
) -> None:
    traces = Traces(collector.environment)
    children = Children(tmp_path, command=(sys.executable, "-c", CHILD), handed_on=traces.handed_on)
    traces.began(JOB)
    outcome = children("main", "gate", JOB.session)
    assert outcome.done, outcome
    traces.ended(JOB, JobState.FAILED)
    traces.close()
    job, gate, tests = collector.named("job gate"), collector.named("gate"), collector.named("gate tests")
    assert len({span.trace_id for span in collector.spans}) == 1
    assert gate.parent_span_id == job.span_id and tests.parent_span_id == gate.span_id
    assert tests.end_time_unix_nano - tests.start_time_unix_nano == 2_000_000_000
    assert tests.start_time_unix_nano == collector.named("gate patch").end_time_unix_nano
    told = {item.key: item.value.string_value for item in job.attributes}
    assert (told["oomrl.run"], told["oomrl.session"], told["oomrl.state"]) == ("daemon/main", "2024-07-02", "failed")
    assert {item.key: item.value.string_value for item in gate.attributes}["oomrl.outcome"] == "refuse"


def test_without_a_collector_nothing_is_kept_or_handed_on() -> None:
    traces = Traces({})
    traces.began(JOB)
    assert traces.handed_on("main", "gate", JOB.session) == {}
    traces.judged("prop-1", VERDICT, 1)
    traces.ended(JOB, JobState.DONE)
    traces.close()


def test_a_collector_that_is_gone_costs_its_spans_and_a_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    traces = Traces(os.environ)
    traces.began(JOB)
    traces.ended(JOB, JobState.DONE)
    begun = time.monotonic()
    traces.close()
    assert time.monotonic() - begun < 3 * PATIENCE
