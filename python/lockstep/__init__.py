"""Lockstep: train neural networks on CPUs; the trained weights have the same bits on any number of cores.

    import lockstep

    result = lockstep.train("cnn", "glyphs", samples=6000, run="runs/first")
    model = lockstep.Model.load("runs/first")
    print(result.fingerprint, model.predict(images, probabilities=True))

docs/python.md of the source tree has more.
"""

from lockstep._data import Dataset, DatasetRow, TextSample, datasets
from lockstep._download import download
from lockstep._errors import (
    ClosedError,
    Error,
    FileError,
    FormatError,
    InterruptedRunError,
    InvalidError,
    MismatchError,
    NotFoundError,
    NumericError,
    OutOfMemoryError,
    PeerError,
    UnsupportedError,
)
from lockstep._graph import Graph, GraphFacts, Node
from lockstep._library import version_text as _version_text
from lockstep._model import Model, ModelRow, Parameter, Parameters, models
from lockstep._plot import metrics, plot
from lockstep._safetensors import load_file
from lockstep._samples import Tokens
from lockstep._train import Checkpoint, Epoch, Evaluation, Setting, Step, TrainResult, evaluate, settings, train
from lockstep._trainer import EvalResult, Gradients, Position, Report, Trainer
from lockstep._value import Value

version: str = _version_text()
__version__ = version

__all__ = [
    "Checkpoint", "ClosedError", "Dataset", "DatasetRow", "Epoch", "Error", "EvalResult", "Evaluation", "FileError",
    "FormatError", "Gradients", "Graph", "GraphFacts", "InterruptedRunError", "InvalidError", "MismatchError", "Model", "ModelRow",
    "Node", "NotFoundError", "NumericError", "OutOfMemoryError", "Parameter", "Parameters", "PeerError", "Position", "Report",
    "Setting", "Step", "TextSample", "Tokens", "TrainResult", "Trainer", "UnsupportedError", "Value", "datasets", "download", "evaluate",
    "load_file", "metrics", "models", "plot", "settings", "train", "version",
]  # fmt: skip
