"""Plots of a run, with matplotlib where it is installed."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Dict, List, Optional, Sequence, Tuple

from lockstep._library import Path

# The panels of plot(): what is on the y axis, and its lines: kind and field of the run's metrics, style, label.
PANELS: Dict[str, List[Tuple[str, str, str, str]]] = {
    "loss": [
        ("step", "loss", "-", "training, steps"),
        ("epoch", "loss", "o-", "training, epochs"),
        ("test", "loss", "o--", "test"),
    ],
    "accuracy": [("epoch", "accuracy", "o-", "training"), ("test", "accuracy", "o--", "test")],
    "accuracy of masked tokens": [
        ("step", "token_accuracy", "-", "training, steps"),
        ("test", "token_accuracy", "o--", "test"),
    ],
    "perplexity": [("test", "perplexity", "o--", "test")],
    "F1": [("test", "micro_f1", "o--", "micro, test"), ("test", "macro_f1", "s--", "macro, test")],
    "error": [("test", "mae", "o--", "mean absolute, test"), ("test", "rmse", "s--", "root mean square, test")],
    "R²": [("test", "r2", "o--", "test")],
}


def metrics(run: Path) -> List[Dict[str, Any]]:
    """The lines of RUN/metrics.jsonl (docs/files.md): dicts with kind, step, time and what the kind has."""
    path = pathlib.Path(os.fspath(run)) / "metrics.jsonl"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: {os.fspath(run)} is not a run directory, or nothing was trained yet")
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def plot(run: Path, axes: Optional[Sequence[Any]] = None) -> Any:
    """Draw what a run directory has recorded and return the matplotlib figure: its loss, and what its task has of
    accuracy, perplexity (language models), F1 (several labels), errors and R² (regression). `axes`: matplotlib axes
    to draw on, one per panel; panels beyond them are left out."""
    rows = metrics(run)
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plot() needs matplotlib: pip install matplotlib") from None
    panels = _panels(rows)
    if axes is None:
        _, grid = pyplot.subplots(1, len(panels), figsize=(5 * len(panels), 4), squeeze=False, layout="constrained")
        axes = list(grid[0])
    for axis, (name, lines) in zip(axes, panels.items()):
        for label, style, steps, values in lines:
            axis.plot(steps, values, style, label=label)
        axis.set_xlabel("step")
        axis.set_ylabel(name)
        if lines:
            axis.legend()
    axes[0].figure.suptitle(os.fspath(run))
    return axes[0].figure


def _panels(rows: List[Dict[str, Any]]) -> Dict[str, List[Any]]:
    """The panels that the run has lines for, and always the loss; lines as (label, style, steps, values)."""
    found: Dict[str, List[Any]] = {"loss": []}
    has_perplexity = any("perplexity" in row for row in rows)
    for name, lines in PANELS.items():
        if name == "accuracy of masked tokens" and has_perplexity:
            continue  # of a language model it is the accuracy
        for kind, field, style, label in lines:
            points = [(row["step"], row[field]) for row in rows if row["kind"] == kind and row.get(field) is not None]
            if points:
                found.setdefault(name, []).append((label, style, *zip(*points)))
    return found
