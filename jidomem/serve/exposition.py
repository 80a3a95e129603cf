"""The text in which Prometheus reads figures (format 0.0.4): families of samples, each with its labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate

from jidomem.serve.measures import BOUNDS, Histogram

TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Labels, name -> value, and the figure they have.
Sample = tuple[Mapping[str, str], float]


def family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> str:
    """Return a family of counters or gauges, nothing where it has no samples."""
    lines = [f"{name}{_labels(labels)} {_figure(value)}\n" for labels, value in samples]
    return _head(name, kind, text) + "".join(lines) if lines else ""


def histograms(name: str, text: str, label: str, found: Mapping[str, Histogram]) -> str:
    """Return a family of histograms by the value of *label*; without a label the family has one."""
    lines = []
    for value, each in sorted(found.items()):
        labels = {label: value} if label else {}
        bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
        for bound, count in zip(bounds, accumulate(each.counts), strict=True):
            lines.append(f"{name}_bucket{_labels({**labels, 'le': bound})} {count}\n")
        lines.append(f"{name}_sum{_labels(labels)} {_figure(each.seconds)}\n")
        lines.append(f"{name}_count{_labels(labels)} {sum(each.counts)}\n")
    return _head(name, "histogram", text) + "".join(lines) if lines else ""


def _head(name: str, kind: str, text: str) -> str:
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _labels(labels: Mapping[str, str]) -> str:
    said = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{said}}}" if said else ""


def _escaped(value: str) -> str:
    r"""Return a label's value as it stands in quotes.

    >>> print(_escaped('a"b\n'))
    a\"b\n
    """
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _figure(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
