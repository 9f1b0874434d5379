"""Lockstep: train neural networks on CPUs; the trained weights have the same bits on any number of cores.

    import lockstep

    result = lockstep.train("cnn", "glyphs", samples=6000, run="runs/first")
    model = lockstep.Model.load("runs/first")
    images, labels = lockstep.Dataset("glyphs", "test", samples=10).arrays()
    print(result.fingerprint, model.predict(images, probabilities=True))

train(), evaluate()     as the command `lockstep` does; settings() lists the keyword arguments
Model                   predict, read and set parameters, save, load, export to ONNX; models() lists the names
Graph                   a model of your own, layer by layer
Dataset                 data by name, from numpy arrays or from a Python class; datasets() lists the names
Trainer                 a training loop of your own: step(), backward(), update(), evaluate()
download()              fetch a dataset
metrics(), plot()       what a run has recorded
Error                   the class of all errors of the library

docs/python.md of the source tree explains them with examples.
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
