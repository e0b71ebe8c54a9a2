"""OpenTelemetry's own SDK, kept in memory."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from papaver.adapters.otel import OpenTelemetry

__all__ = ["Received"]


class Received:
    """An SDK that keeps what it is told."""

    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.telemetry = OpenTelemetry(
            tracer_provider=tracers, meter_provider=MeterProvider(metric_readers=[self._reader])
        )

    def metrics(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        """Name → its points: attributes, and the value or the count of a histogram."""
        data = self._reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: [
                (dict(point.attributes or {}), getattr(point, "value", getattr(point, "count", None)))
                for point in metric.data.data_points
            ]
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }
