"""Lockstep's models in PyTorch, with the same parameter names: for comparisons and golden files."""
import torchvision
from torch import nn


class Mlp(nn.Module):
    """784 -> 256 -> 128 -> classes, ReLU between."""

    def __init__(self, channels, size, classes):
        super().__init__()
        self.fc1 = nn.Linear(channels * size * size, 256)
        self.fc2 = nn.Linear(256, 128)
        self.fc3 = nn.Linear(128, classes)
        self.relu = nn.ReLU()

    def forward(self, x):
        x = self.relu(self.fc1(x.flatten(1)))
        return self.fc3(self.relu(self.fc2(x)))


class Cnn(nn.Module):
    """Two 3x3 convolutions with pooling and two linear layers: 421,642 parameters at 1x28x28 and 10 classes."""

    def __init__(self, channels, size, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.fc1 = nn.Linear(64 * (size // 4) ** 2, 128)
        self.fc2 = nn.Linear(128, classes)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        return self.fc2(self.relu(self.fc1(x.flatten(1))))


def build(name, channels=1, size=28, classes=10):
    """`size` is the height and width of the input; the ResNets take any. Initial weights are PyTorch's default, in the
    ResNets torchvision's."""
    if name == "mlp":
        return Mlp(channels, size, classes)
    if name == "cnn":
        return Cnn(channels, size, classes)
    model = getattr(torchvision.models, name)(weights=None, num_classes=classes)
    model.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
    nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")  # as torchvision's other convolutions
    return model


def start_as_lockstep(model, name):
    """Initial weights distributed as in src/models: the ResNets' are torchvision's; in mlp and cnn they are He's,
    N(0, sqrt(2 / fan_in)), biases start from 0 and so does the last layer."""
    if name not in ("mlp", "cnn"):
        return
    layers = [layer for layer in model.modules() if isinstance(layer, (nn.Conv2d, nn.Linear))]
    for layer in layers:
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
    nn.init.zeros_(layers[-1].weight)
