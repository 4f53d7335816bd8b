"""The pages of the app in the order of the navigation; a page is one file plus one line here."""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    """A page: its file, title, icon and what its tooltip says."""

    file: str
    title: str
    icon: str
    help: str
    default: bool = False


PAGES = (
    Page("pages/explore.py", "Explore", ":material/scatter_plot:", "See the responses to one prompt as a map.", True),
    Page("pages/compare.py", "Compare", ":material/view_column:", "Read systems side by side and measure them."),
    Page("pages/lab.py", "Lab", ":material/science:", "Edit examples and a hint, generate, watch the map."),
    Page(
        "pages/generate.py", "Generate", ":material/bolt:", "Make a dataset in bulk, watch it grow, stop and go on."
    ),
    Page("pages/data.py", "Data", ":material/database:", "Open, check, export and delete datasets."),
    Page("pages/about.py", "About", ":material/info:", "What is measured, and where the models come from."),
)
