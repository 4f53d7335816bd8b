"""Figures as plotly specifications (plain dictionaries); they know nothing of Streamlit."""

from typing import Any

# In place of no data: a dictionary without a single trace is refused by plotly.
NO_TRACES: list[dict[str, Any]] = [{"type": "scatter", "x": [], "y": []}]

# The configuration of a figure that is only looked at: no toolbar, and the wheel scrolls the page.
STILL = {"displayModeBar": False, "scrollZoom": False}
