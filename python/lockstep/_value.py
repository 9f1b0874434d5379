"""Outputs of layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep._graph import Graph


class Value:
    """The output of a layer. Pass it to other layers of the same graph; `a + b` and `a * b` are element by element."""

    def __init__(self, graph: Graph, id: int) -> None:
        self._graph = graph
        self._id = id

    def __repr__(self) -> str:
        return f"<lockstep.Value {self._id} of {self._graph!r}>"

    def __add__(self, other: Value) -> Value:
        return self._graph.add(self, other)

    def __mul__(self, other: Value) -> Value:
        return self._graph.multiply(self, other)
