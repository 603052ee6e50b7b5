"""What cuDNN keeps and works in for recurrent layers.

It is not documented. The figures are from a grid of some hundred layers of PyTorch, and from 18
layers of TensorFlow, measured on an NVIDIA H200, driver 580.159.04, with cuDNN 9.19 and 9.27.
"""

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
RESERVED = {"LSTM": 5, "GRU": 6, "RNN": 1}
"""Numbers kept for the backward pass, for each step, example and hidden unit of a layer."""
FOR_DROPOUT = 2
"""More of them, between two layers."""
SMALL = {"LSTM": (192, 128), "GRU": (192, 128), "RNN": (384, 256)}
"""Hidden units up to which cuDNN uses an algorithm for small layers, forward and backward."""
OF_SMALL = {"LSTM": (16, 16), "GRU": (12, 14), "RNN": (4, 9)}
"""Extra numbers of workspace for it, at inference and in training, in 32 bits."""
FIXED = 8 << 20
"""Bytes of workspace for each layer and direction."""


class Recurrent(object):
    """Layers of one kind on top of each other. `dropout`: there is some between them. `copied`: the
    sequences have their batch first, and cuDNN works on copies of them, as for TensorFlow."""

    def __init__(
        self,
        kind: str,
        hidden: int,
        layers: int = 1,
        directions: int = 1,
        dropout: bool = False,
        train: bool = True,
        copied: bool = False,
    ) -> None:
        self.kind = kind
        self.hidden = hidden
        self.layers = layers
        self.directions = directions
        self.dropout = dropout and train
        self.train = train
        self.copied = copied

    def reserve(self, rows: int, number_bytes: int) -> int:
        """The bytes kept for the backward pass: of each layer, and between layers. `rows` are the
        steps of all examples."""
        between = 1 + (FOR_DROPOUT if self.dropout else 0)
        numbers = RESERVED[self.kind] * self.layers + between * (self.layers - 1)
        return rows * numbers * self.hidden * self.directions * number_bytes

    def workspace(
        self, rows: int, size: int, weights: int, number_bytes: int, forward: bool
    ) -> int:
        """The bytes of workspace of a pass. `size` is that of an input, `weights` a count."""
        hidden, both = self.hidden, self.directions == 2
        numbers = self.directions * (GATES[self.kind] + 1) * hidden + size
        numbers += 4 * hidden if both else 0
        if self.kind == "LSTM":
            numbers = max(numbers, 3 * self.directions * (hidden + size))
        if self.train and self.kind == "GRU":
            numbers += size
        if self.train and self.kind == "RNN":
            numbers += 2 * hidden + size
        if self.copied:
            numbers += size + 2 * hidden
        elif number_bytes == 4 and hidden <= SMALL[self.kind][0 if forward else 1]:
            numbers += OF_SMALL[self.kind][1 if self.train else 0] * hidden
        fixed = FIXED * self.layers * self.directions
        return (rows * numbers + weights) * number_bytes + fixed
