"""Figures as plotly specifications (plain dictionaries); they know nothing of Streamlit."""

from typing import Any

# In place of no data: a dictionary without a single trace is refused by plotly.
NO_TRACES: list[dict[str, Any]] = [{"type": "scatter", "x": [], "y": []}]
