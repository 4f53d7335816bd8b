"""Colours and shapes of systems: the same on every page, distinguishable without colour, calm on a projector."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

# Okabe and Ito's colour-blind-safe set, arranged by role; a role with more systems than colours goes on with
# shades, and shapes tell them apart as well.
_COLOURS = {
    "base": ("#E69F00", "#D55E00", "#B8860B", "#F0C05A"),
    "aligned": ("#1A7FC2", "#56B4E9", "#3B5BA5", "#88A9D8"),
    "in-context": ("#009E73", "#66C2A5", "#2F7F4F", "#9AD3B0", "#5AAE61", "#1B6B57"),
    "revised": ("#CC79A7", "#9E5A8F", "#E3A8C9", "#7B4B94"),
    "other": ("#7F7F7F", "#A6A6A6", "#5F6B73", "#B8B0A8"),
}
_SHAPES = {
    "base": ("circle", "circle-open", "circle-x", "circle-cross"),
    "aligned": ("square", "square-open", "square-x", "square-cross"),
    "in-context": ("diamond", "triangle-up", "diamond-open", "triangle-up-open", "diamond-tall", "triangle-down"),
    "revised": ("pentagon", "hexagon", "pentagon-open", "hexagon-open"),
    "other": ("cross", "x", "star", "star-open"),
}
# The same shapes as characters, for chips and captions.
_MARKS = {
    "circle": "●",
    "circle-open": "○",
    "circle-x": "⊗",
    "circle-cross": "⊕",
    "square": "■",
    "square-open": "□",
    "square-x": "⊠",
    "square-cross": "⊞",
    "diamond": "◆",
    "diamond-open": "◇",
    "diamond-tall": "⬧",
    "triangle-up": "▲",
    "triangle-up-open": "△",
    "triangle-down": "▼",
    "pentagon": "⬟",
    "pentagon-open": "⬠",
    "hexagon": "⬢",
    "hexagon-open": "⬡",
    "cross": "✚",
    "x": "✖",
    "star": "★",
    "star-open": "☆",
}
# Clusters take colours that no role uses first, so that the two readings are not confused.
CLUSTER_COLOURS = ("#4E79A7", "#F28E2B", "#59A14F", "#B07AA1", "#E15759", "#76B7B2", "#EDC948", "#9C755F", "#FF9DA7")
NO_CLUSTER = "#9A9A9A"
ROLE_COLOURS = {role: colours[0] for role, colours in _COLOURS.items()}
# A sequential scale that reads in both themes and for colour-blind people.
SCALE = "Viridis"


@dataclass(frozen=True)
class Style:
    """How one system looks: a colour, a plotly shape, and the shape as a character."""

    colour: str
    shape: str
    mark: str


def styles(roles: Mapping[str, str]) -> dict[str, Style]:
    """A style per system from its role and its place among the systems of that role."""
    seen: dict[str, int] = {}
    made = {}
    for system, role in roles.items():
        k = seen.get(role, 0)
        seen[role] = k + 1
        colours, shapes = _COLOURS[role], _SHAPES[role]
        shape = shapes[(k + k // len(colours)) % len(shapes)]  # shifted each round, so that no pair comes again soon
        made[system] = Style(colours[k % len(colours)], shape, _MARKS[shape])
    return made


_PATHS = {
    "circle": "<circle cx='8' cy='8' r='6'/>",
    "square": "<rect x='2.5' y='2.5' width='11' height='11'/>",
    "diamond": "<path d='M8 1 15 8 8 15 1 8Z'/>",
    "diamond-tall": "<path d='M8 0 12 8 8 16 4 8Z'/>",
    "triangle-up": "<path d='M8 2 15 14 1 14Z'/>",
    "triangle-down": "<path d='M8 14 15 2 1 2Z'/>",
    "pentagon": "<path d='M8 1 15 6.5 12.5 14.5 3.5 14.5 1 6.5Z'/>",
    "hexagon": "<path d='M4.5 2 11.5 2 15 8 11.5 14 4.5 14 1 8Z'/>",
    "cross": "<path d='M6 1h4v5h5v4h-5v5H6v-5H1V6h5Z'/>",
    "x": "<path d='M3 1 8 6 13 1 15 3 10 8 15 13 13 15 8 10 3 15 1 13 6 8 1 3Z'/>",
    "star": "<path d='M8 1 10 6 15.500 6 11 9.500 13 15 8 11.500 3 15 5 9.500 .5 6 6 6Z'/>",
}


@cache
def icon(style: Style) -> str:
    """The mark of a system as a Markdown image with its exact colour; may stand in any label."""
    shape, _, variant = style.shape.partition("-open")
    hollow = shape != style.shape
    name = shape if shape in _PATHS else shape.split("-")[0]
    fill = "none" if hollow or variant else style.colour
    inner = _PATHS[name]
    if style.shape.endswith(("-x", "-cross")):
        lines = "M4 4 12 12M12 4 4 12" if style.shape.endswith("-x") else "M8 3V13M3 8H13"
        inner += f"<path d='{lines}' stroke='white' stroke-width='1.5'/>"
    svg = (
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' width='16' height='16'>"
        f"<g fill='{fill}' stroke='{style.colour}' stroke-width='1.5'>{inner}</g></svg>"
    )
    return f"![{style.shape}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"
