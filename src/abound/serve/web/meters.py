"""What the server counts: for Prometheus, and for the page."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily

from abound.serve.served import ServedModel

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.1, 0.25, 1.0, 5.0)

WINDOW = 60
"""Seconds that a rate is taken over."""


class Rate:
    """Events a second over the last minute.

    Examples
    --------
    >>> rate = Rate()
    >>> rate.count(30, now=100.5)
    >>> rate.per_second(now=110.0)
    0.5
    """

    def __init__(self) -> None:
        self._counts = [0] * WINDOW
        self._seconds = [-1] * WINDOW

    def count(self, n: int, now: float | None = None) -> None:
        """Count events.

        Parameters
        ----------
        n : int
            How many.
        now : float, optional
            Seconds of a clock that never goes back.
        """
        second = int(time.monotonic() if now is None else now)
        place = second % WINDOW
        if self._seconds[place] != second:
            self._seconds[place], self._counts[place] = second, 0
        self._counts[place] += n

    def per_second(self, now: float | None = None) -> float:
        """Return the rate.

        Parameters
        ----------
        now : float, optional
            As in `count`.

        Returns
        -------
        float
            Events a second.
        """
        second = int(time.monotonic() if now is None else now)
        recent = (n for at, n in zip(self._seconds, self._counts, strict=True) if at >= 0 and 0 <= second - at < WINDOW)
        return sum(recent) / WINDOW


class Meters:
    """All counters of one server.

    Parameters
    ----------
    models : mapping of str to ServedModel
        What is served.
    """

    def __init__(self, models: Mapping[str, ServedModel]) -> None:
        self.models = models
        self.rates = {name: Rate() for name in models}
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "abound_requests", "Requests by route and status.", ("route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "abound_request_seconds", "Time of a request.", ("route",), registry=self.registry, buckets=BUCKETS
        )
        self._suggested = Counter("abound_rows_ranked", "Rows ranked.", ("model",), registry=self.registry)
        self._children: dict[Any, Any] = {}
        self.registry.register(self)

    def saw_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request.

        Parameters
        ----------
        route : str
            The pattern of its address.
        status : int
            Its status.
        seconds : float
            How long it took.
        """
        key = (route, status)
        if key not in self._children:
            self._children[key] = self._requests.labels(route, str(status)), self._seconds.labels(route)
        counter, histogram = self._children[key]
        counter.inc()
        histogram.observe(seconds)

    def saw_rows(self, served: ServedModel, n: int) -> None:
        """Count rows that were ranked.

        Parameters
        ----------
        served : ServedModel
            By which model.
        n : int
            How many.
        """
        served.n_suggested += n
        self.rates[served.name].count(n)
        key = served.name
        if key not in self._children:
            self._children[key] = self._suggested.labels(key)
        self._children[key].inc(n)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Tell Prometheus about the models.

        Yields
        ------
        GaugeMetricFamily
            A number for each model.
        """
        found = {name: served.describe() for name, served in self.models.items()}
        for key, text in (("classes", "Classes."), ("features", "Features."), ("edges", "Weights.")):
            yield _gauge(f"abound_model_{key}", text, ((name, about[key]) for name, about in found.items()))
        for key, text in (("corrections", "Corrections in the journal."), ("waiting", "Entries not learned yet.")):
            yield _gauge(
                f"abound_journal_{key}", text, ((name, about["learning"][key]) for name, about in found.items())
            )

    def describe(self) -> list[Any]:
        """Register without asking the models."""
        return []

    def render(self) -> bytes:
        """Write all figures in Prometheus' format; with several workers those of all of them."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self.registry)
        everywhere = CollectorRegistry()
        multiprocess.MultiProcessCollector(everywhere)  # type: ignore[no-untyped-call]
        models = CollectorRegistry()
        models.register(self)
        return generate_latest(everywhere) + generate_latest(models)


def _gauge(name: str, text: str, values: Iterable[tuple[str, float]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["model"])
    for model, value in values:
        family.add_metric([model], value)
    return family
