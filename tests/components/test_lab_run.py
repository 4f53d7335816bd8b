"""The view of a run that goes on in another thread while it is drawn."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def _page() -> None:
    from typing import Any

    from components.lab_run import samples_view
    from core import lab
    from core.generation.base import Sampling

    class Ends(dict[int, Any]):
        """Growing texts of which each is finished as soon as somebody has looked for it."""

        def get(self, index: int, default: Any = None) -> Any:
            return self.pop(index, default)

        def __contains__(self, index: Any) -> bool:
            return self.pop(index, None) is not None

    spec = lab.Spec("p", "Why?", "Why?", "fake", "zero-shot", (1, 2), Sampling())
    run = lab.Run("r", spec, "2030-01-01")
    run.growing = Ends({0: ("because of", 2)})
    samples_view(run)


def test_a_sample_that_ends_while_it_is_drawn_is_drawn() -> None:
    app = AppTest.from_function(_page).run()
    assert not app.exception
    assert any("because of" in block.value for block in (*app.markdown, *app.text))
    assert len(app.caption) == 1
