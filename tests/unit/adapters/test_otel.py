"""Spans and metrics as OpenTelemetry's own SDK receives them."""

from __future__ import annotations

import pytest
from opentelemetry.trace import StatusCode

from papaver.adapters.otel import OpenTelemetry
from tests.house.telemetry import Received


def test_a_span_has_its_attributes_under_our_name() -> None:
    """Those it began with, and those that became known."""
    sdk = Received()
    with sdk.telemetry.span("papaver turn", attempt=1) as span:
        span.note(outcome="answered")
    (told,) = sdk.spans.get_finished_spans()
    assert told.name == "papaver turn"
    assert dict(told.attributes or {}) == {"papaver.attempt": 1, "papaver.outcome": "answered"}
    assert told.status.status_code is StatusCode.UNSET


def test_what_is_raised_in_a_span_is_told_by_its_class_alone() -> None:
    """A message of an error may hold what nobody outside may read."""
    sdk = Received()
    with pytest.raises(ValueError, match="dana's token"), sdk.telemetry.span("papaver turn"):
        raise ValueError("dana's token")
    (told,) = sdk.spans.get_finished_spans()
    assert (told.status.status_code, told.status.description) == (StatusCode.ERROR, "ValueError")
    assert told.events == ()
    assert "dana" not in told.to_json()


def test_counters_histograms_and_gauges() -> None:
    """Each is made once, and a gauge is read when it is asked for."""
    sdk = Received()
    for _ in range(2):
        sdk.telemetry.count("papaver.turns", outcome="answered")
        sdk.telemetry.measure("papaver.turn.duration", 0.5, outcome="answered")
    sdk.telemetry.gauge("papaver.held", lambda: 3)
    sdk.telemetry.gauge("papaver.held", lambda: 7)
    assert sdk.metrics() == {
        "papaver.turns": [({"papaver.outcome": "answered"}, 2)],
        "papaver.turn.duration": [({"papaver.outcome": "answered"}, 2)],
        "papaver.held": [({}, 7)],
    }


def test_without_an_sdk_nothing_happens() -> None:
    """The API alone does nothing, and costs little."""
    telemetry = OpenTelemetry()
    with telemetry.span("papaver turn") as span:
        span.fail("500")
    telemetry.count("papaver.turns")
