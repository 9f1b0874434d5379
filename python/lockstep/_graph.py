"""Describe a model: a graph is built by calls that each add a layer and return its output."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from lockstep._arrays import pointer
from lockstep._binding import ffi
from lockstep._handle import Handle
from lockstep._library import c_text, check, lib, text
from lockstep._operators import ENUMS, Operators, Row
from lockstep._value import Value


class GraphFacts(NamedTuple):
    """Numbers about a finished graph: parameters, bytes of their gradients, floating-point operations of forward and
    backward per sample (and with the padding that kernels compute), layers."""

    parameters: int
    gradient_bytes: int
    flop_per_sample: float
    padded_flop_per_sample: float
    layers: int


class Node(NamedTuple):
    """A layer of a finished graph. `inputs` are numbers of nodes, -1 the graph's input; `shape` is (channels, height,
    width); `fused` names what follows inside the same node; `flop` is forward and backward per sample."""

    operator: str
    layer: str
    inputs: Tuple[int, ...]
    shape: Tuple[int, int, int]
    parameters: Tuple[str, ...]
    fused: str
    is_loss: bool
    flop: float


class Graph(Handle, Operators):
    """A model of your own.

        g = lockstep.Graph()
        x = g.input(1, 28, 28)
        x = g.conv2d(x, "conv1", out_channels=32, kernel=3, padding=1)
        x = g.max_pool2d(g.relu(x), kernel=2)
        g.finish(g.linear(x, "fc", out_features=10))
        model = lockstep.Model(g)

    Names of layers become names of parameters, "conv1.weight". The loss is softmax cross-entropy of what finish() is
    given, unless others were added.
    """

    _instead = "build it there"

    def __init__(self) -> None:
        """An empty graph; input() or text_input() comes first."""
        out = ffi.new("ls_graph **")
        check(lib.ls_graph_new(out))
        super().__init__(out[0], lib.ls_graph_free)
        self.finished = False

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<lockstep.Graph, closed>"
        if not self.finished:
            return "<lockstep.Graph, not finished>"
        return f"<lockstep.Graph: {self.facts().layers} layers, {self.facts().parameters} parameters>"

    def input(self, channels: int, height: int, width: int) -> Value:
        """The input: images (C, H, W)."""
        with self._turn() as graph:
            return self._value(lib.ls_input(graph, channels, height, width))

    def text_input(self, longest: int, masked: int = 0) -> Value:
        """The input: samples of up to `longest` tokens, of which up to `masked` are to be predicted."""
        with self._turn() as graph:
            return self._value(lib.ls_text_input(graph, longest, masked))

    def finish(self, output: Value, token_logits: Optional[Value] = None) -> Graph:
        """Close the graph: `output` is what it predicts, (classes, 1, 1). With `token_logits` it is for pretraining,
        and these are (vocabulary) per masked position. Returns the graph."""
        with self._turn() as graph:
            if token_logits is None:
                check(lib.ls_graph_finish(graph, self._of(output)[0]))
            else:
                check(lib.ls_graph_finish_pretraining(graph, self._of(output)[0], self._of(token_logits)[0]))
            self.finished = True
        return self

    def facts(self) -> GraphFacts:
        """Numbers of parameters, operations and layers of a finished graph."""
        if not self.finished:
            raise ValueError("the graph is not finished; call finish()")
        with self._turn() as graph:
            found = lib.ls_graph_describe(graph)
        return GraphFacts(*(getattr(found, field) for field in GraphFacts._fields))

    def nodes(self) -> List[Node]:
        """The layers of a finished graph, in the order in which they run."""
        if not self.finished:
            raise ValueError("the graph is not finished; call finish()")
        with self._turn() as graph:
            return nodes_of(graph)

    def _of(self, value: Any) -> Any:
        """The C struct of a value of this graph."""
        if not isinstance(value, Value):
            raise TypeError(f"a layer wants the output of another layer, not {type(value).__name__}")
        if value._graph is not self:
            raise ValueError("this value is of another graph")
        found = ffi.new("ls_value *")
        found.id = value._id
        return found

    def _value(self, value: Any) -> Value:
        """What a builder returned; its mistake is raised here."""
        with self._turn() as graph:
            check(lib.ls_graph_check(graph))
        return Value(self, value.id)

    def _add_value(self, function: str, inputs: List[Value], name: Optional[str], options: str, rows: List[Row]) -> Value:
        with self._turn() as graph:
            return self._value(self._call(graph, function, inputs, name, options, rows))

    def _add_loss(self, function: str, inputs: List[Value], name: Optional[str], options: str, rows: List[Row]) -> None:
        with self._turn() as graph:
            self._call(graph, function, inputs, name, options, rows)
            check(lib.ls_graph_check(graph))

    def _call(self, graph: Any, function: str, inputs: List[Value], name: Optional[str], options: str, rows: List[Row]) -> Any:
        """A builder of C takes graph, inputs, name where it has one, options where it has them."""
        arguments: List[Any] = [graph] + [self._of(value)[0] for value in inputs]
        kept: List[Any] = []
        if name is not None:
            arguments.append(c_text(name))
        if options:
            arguments += [ffi.new(f"{options} *", _fields(function, rows, kept)), ffi.sizeof(options)]
        return getattr(lib, function)(*arguments)


def nodes_of(graph: Any) -> List[Node]:
    """The layers of a finished graph of C."""
    found: List[Node] = []
    row = ffi.new("ls_graph_node *")
    while lib.ls_graph_node_at(graph, len(found), row):
        names = tuple(_parameter(graph, row.param[k]) for k in range(row.params))
        shape = (row.output.channels, row.output.height, row.output.width)
        found.append(Node(text(row.operator_name), text(row.layer), tuple(row.input[0 : row.inputs]), shape, names,
                          text(row.fused), bool(row.is_loss), row.flop))  # fmt: skip
    return found


def _parameter(graph: Any, index: int) -> str:
    row = ffi.new("ls_graph_param *")
    return text(row.name) if lib.ls_graph_param_at(graph, index, row) else ""


def _fields(function: str, rows: List[Row], kept: List[Any]) -> Dict[str, Any]:
    """Keyword arguments as fields of the struct; None leaves 0, the default."""
    fields: Dict[str, Any] = {}
    for field, kind, given, zero, argument in rows:
        operator = function[3:].replace("_sized", "")
        if given is None:
            continue
        if kind.startswith("enum "):
            choices = ENUMS[kind[5:]]
            if given not in choices:
                raise ValueError(f"{operator}: {argument}={given!r}; it is one of {', '.join(choices)}")
            fields[field] = choices[given]
        elif kind == "no":
            fields[field] = int(not given)
        elif kind == "bool":
            fields[field] = int(bool(given))
        elif kind == "str":
            kept.append(c_text(given))
            fields[field] = kept[-1]
        elif kind == "floats":
            kept.append(pointer(np.ascontiguousarray(given, dtype=np.float32), "float"))
            fields[field] = kept[-1]
        elif zero and given == 0:
            raise ValueError(f"{operator}: {argument}=0 is not possible; leave it out for the default ({zero})")
        else:
            fields[field] = given
    return fields
