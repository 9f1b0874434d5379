"""Plots of a run, with matplotlib where it is installed."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Dict, List, Optional

from lockstep._library import Path


def metrics(run: Path) -> List[Dict[str, Any]]:
    """The lines of RUN/metrics.jsonl (docs/files.md): dicts with kind, step, time and what the kind has."""
    path = pathlib.Path(os.fspath(run)) / "metrics.jsonl"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: {os.fspath(run)} is not a run directory, or nothing was trained yet")
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def plot(run: Path, axes: Optional[Any] = None) -> Any:
    """Loss of steps and epochs, and accuracies, of a run; returns the matplotlib figure. `axes` is a pair to draw on."""
    rows = metrics(run)
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plot() needs matplotlib: pip install matplotlib") from None
    if axes is None:
        _, axes = pyplot.subplots(1, 2, figsize=(10, 4))
    left, right = axes
    for kind, field, axis, style, label in (
        ("step", "loss", left, "-", "training, steps"),
        ("test", "loss", left, "o--", "test"),
        ("epoch", "accuracy", right, "o-", "training"),
        ("test", "accuracy", right, "o--", "test"),
    ):
        found = [row for row in rows if row["kind"] == kind and row.get(field) is not None]
        if found:
            axis.plot([row["step"] for row in found], [row[field] for row in found], style, label=label)
    for axis, name in ((left, "loss"), (right, "accuracy")):
        axis.set_xlabel("step")
        axis.set_ylabel(name)
        if axis.lines:
            axis.legend()
    left.figure.suptitle(os.fspath(run))
    return left.figure
