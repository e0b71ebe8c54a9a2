"""OpenTelemetry: `running(company, telemetry=OpenTelemetry())`. Spans and metrics go where your SDK sends them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Counter, Histogram, MeterProvider, Observation
from opentelemetry.trace import StatusCode, TracerProvider

from papaver.ports.telemetry import Attribute

__all__ = ["OpenTelemetry"]

_SCOPE: Final = "papaver"


class OpenTelemetry:
    """`Telemetry` over the OpenTelemetry API, which does nothing until an SDK is set up.

    The providers are the global ones unless they are given. What is told has no header value, token, message text or
    User ID in it; a `client_id` is, which is a public URL.
    """

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
        self._meter = metrics.get_meter(_SCOPE, meter_provider=meter_provider)
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._gauges: dict[str, Callable[[], float]] = {}

    @contextmanager
    def span(self, name: str, **attributes: Attribute) -> Generator[_Span]:
        """A span of its own; what is raised in it is told by its class alone, for a message may say too much."""
        with self._tracer.start_as_current_span(
            name, attributes=_named(attributes), record_exception=False, set_status_on_exception=False
        ) as span:
            made = _Span(span)
            try:
                yield made
            except BaseException as error:
                made.fail(type(error).__name__)
                raise

    def count(self, name: str, value: int = 1, **attributes: Attribute) -> None:
        counter = self._counters.get(name)
        if counter is None:
            counter = self._counters[name] = self._meter.create_counter(name)
        counter.add(value, _named(attributes))

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        known = name in self._gauges
        self._gauges[name] = read
        if not known:
            self._meter.create_observable_gauge(name, [lambda options: self._observed(name, options)])

    def _observed(self, name: str, options: CallbackOptions) -> list[Observation]:
        return [Observation(self._gauges[name]())]

    def measure(self, name: str, seconds: float, **attributes: Attribute) -> None:
        histogram = self._histograms.get(name)
        if histogram is None:
            histogram = self._histograms[name] = self._meter.create_histogram(name, unit="s")
        histogram.record(seconds, _named(attributes))


class _Span:
    __slots__ = ("_span",)

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def note(self, **attributes: Attribute) -> None:
        self._span.set_attributes(_named(attributes))

    def fail(self, code: str) -> None:
        self._span.set_status(StatusCode.ERROR, code)
        self._span.set_attribute("error.type", code)


def _named(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {f"{_SCOPE}.{name}": value for name, value in attributes.items()}
