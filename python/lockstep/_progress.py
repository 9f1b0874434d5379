"""A progress bar: tqdm's where it is installed (in notebooks with its widget), else a line of text."""

from __future__ import annotations

import sys
import time
from typing import Any, Optional


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this."""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell, "get_ipython", lambda: None)().__class__.__name__ == "ZMQInteractiveShell"


def is_wanted() -> bool:
    """On terminals and in notebooks."""
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


class Progress:
    """Steps done of how many, with the loss. Nothing is drawn more often than every tenth of a second."""

    def __init__(self) -> None:
        self._bar: Optional[Any] = None
        self._drawn = 0.0
        self._width = 0

    def update(self, step: int, steps: int, loss: float) -> None:
        now = time.monotonic()
        if step < steps and now - self._drawn < 0.1:
            return
        self._drawn = now
        if self._bar is None:
            self._bar = _make_bar(steps)
        if self._bar is False:
            self._line(step, steps, loss)
        else:
            self._bar.set_postfix_str(f"loss {loss:.4f}", refresh=False)
            self._bar.update(step - self._bar.n)

    def _line(self, step: int, steps: int, loss: float) -> None:
        line = f"step {step} of {steps}, loss {loss:.4f}"
        print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)
        self._width = len(line)

    def close(self) -> None:
        if self._bar is False and self._width:
            print(file=sys.stderr)
        elif self._bar:
            self._bar.close()


def _make_bar(steps: int) -> Any:
    """tqdm's bar; False: there is none."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return False
    return tqdm(total=steps, unit="step", dynamic_ncols=True)
