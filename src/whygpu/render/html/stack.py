"""The layers between a program and its GPU as a picture, each cause beside the layer it lies in."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.model.layers import Layer, LayerState
from whygpu.render.html.markup import Html, b, code, div, li, ol, p, span
from whygpu.render.html.parts import state_mark

_STATES: dict[LayerState, tuple[str, str]] = {
    "works": ("✓", "works"),
    "present": ("○", "present, not proven"),
    "wrong": ("✗", "broken here"),
    "attention": ("!", "look here"),
    "on-cpu": ("○", "on the CPU"),
    "follows": ("↓", "kept off the GPU"),
    "unknown": ("?", "cannot tell"),
    "not-asked": ("–", "not looked at"),
    "absent": ("·", "not there"),
}
"""The mark of each state, and what it means. Only what is proven to work has a tick."""


def stack(layers: Sequence[Layer]) -> Html:
    return ol(map(_layer, layers), kind="stack", aria_label="From the program down to the GPU")


def _layer(layer: Layer) -> Html:
    sign, meaning = _STATES[layer.state]
    box = div(
        div(
            state_mark(layer.state, sign),
            b(layer.title),
            span(meaning, kind="state"),
            kind="line",
        ),
        p(layer.text) if layer.text else None,
        kind=f"layer {layer.state}",
    )
    causes = [
        p(code(f"{root.code} {root.cause}"), f": {root.message}")
        for root in layer.causes
        if root.severity != "info"
    ]
    return li(box, div(causes, kind="beside") if causes else None)
