"""The rules of the house: linters, types, what may import what, and how long a file may be."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = ("app.py", "bench", "components", "core", "docs", "pages", "tests")
HEAVY = ("torch", "transformers", "sentence_transformers", "umap", "numba", "sklearn", "nltk", "ray", "vllm")
LONGEST_FILE, LONGEST_FUNCTION = 300, 40


def sources(*places: str) -> list[Path]:
    """The Python files below some folders of the project."""
    found: list[Path] = []
    for place in places:
        path = ROOT / place
        found += [path] if path.is_file() else sorted(path.rglob("*.py"))
    return found


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(node: ast.AST) -> Iterator[str]:
    """The modules that are imported anywhere below a node."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            yield from (alias.name for alias in inner.names)
        elif isinstance(inner, ast.ImportFrom) and inner.module and not inner.level:
            yield inner.module


def at_module_level(module: ast.Module) -> Iterator[str]:
    """The modules that are imported when a file is: outside functions, and not for type checkers only."""
    waiting: list[ast.AST] = list(module.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(node)
        waiting.extend(ast.iter_child_nodes(node))


def run(*command: str) -> str:
    """Run a tool of this Python's environment in the project; returns what it says, fails where it fails."""
    beside = Path(sys.executable).parent / command[0]
    program = str(beside) if beside.exists() else shutil.which(command[0])
    if program is None:
        pytest.fail(f"{command[0]} is not installed: pip install -r requirements-dev.txt")
    done = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_tool_has_no_complaint(command: str):
    run(*command.split())


@pytest.mark.parametrize("path", sources("core"), ids=name_of)
def test_core_knows_nothing_of_streamlit(path: Path):
    roots = {name.split(".")[0] for name in imports(tree(path))}
    assert not roots & {"streamlit", "components", "pages", "plotly", "bench", "tests"}


@pytest.mark.parametrize("path", sources("components/figures"), ids=name_of)
def test_figures_know_nothing_of_streamlit(path: Path):
    assert "streamlit" not in {name.split(".")[0] for name in imports(tree(path))}


@pytest.mark.parametrize("path", sources("app.py", "components", "core", "pages"), ids=name_of)
def test_heavy_libraries_load_at_first_use(path: Path):
    roots = {name.split(".")[0] for name in at_module_level(tree(path))}
    assert not roots & set(HEAVY)


_LOADED = f"print(sorted({{name.split('.')[0] for name in sys.modules}} & set({HEAVY!r})))"


def loaded_after(code: str, **env: str) -> str:
    """Which of the heavy libraries a fresh Python has loaded after some code."""
    whole = f"import sys\n{code}\n{_LOADED}"
    command = [sys.executable, "-c", whole]
    done = subprocess.run(
        command, cwd=ROOT, env={**_environment(), **env}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_importing_all_of_core_loads_nothing_heavy():
    names = [name_of(p)[:-3].replace("/", ".").removesuffix(".__init__") for p in sources("core")]
    names = [name for name in names if not name.endswith("__main__")]
    assert loaded_after("import " + ", ".join(names)) == "[]"


def test_the_first_screen_loads_nothing_heavy(tmp_path: Path):
    code = f"""
from streamlit.testing.v1 import AppTest
app = AppTest.from_file({str(ROOT / "app.py")!r}, default_timeout=60).run()
assert not app.exception, app.exception
assert app.get("plotly_chart"), "the first screen has no figure"
"""
    assert loaded_after(code, OVERTON_WORKSPACE=str(tmp_path)) == "[]"


@pytest.mark.parametrize("path", sources("app.py", "components", "core", "pages", "bench", "docs"), ids=name_of)
def test_files_and_functions_are_short(path: Path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    functions = [n for n in ast.walk(tree(path)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = {f.name: _lines(f) for f in functions if _lines(f) > LONGEST_FUNCTION}
    assert not long


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", sources("app.py", "components", "pages"), ids=name_of)
def test_nothing_is_rendered_as_html(path: Path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            assert "unsafe_allow_html" not in {k.arg for k in node.keywords}
            assert ast.unparse(node.func) not in (
                "st.html",
                "st.iframe",
                "st.components.v1.html",
                "components.v1.html",
            )


@pytest.mark.parametrize("path", sources("app.py", "components", "core", "pages", "bench", "docs"), ids=name_of)
def test_outside_tests_nothing_looks_beside_the_project(path: Path):
    assert "../shared" not in path.read_text(encoding="utf-8")


def test_every_dependency_is_pinned():
    for file in ("requirements.txt", "requirements-dev.txt", "requirements-ray.txt", "constraints.txt"):
        lines = [line.split("#")[0].strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
        for line in filter(None, lines):
            assert line.startswith(("-r ", "-c ")) or re.fullmatch(r"[A-Za-z0-9_.\[\]-]+==[^=*]+", line), (
                f"{file}: {line}"
            )


def test_the_readme_marks_the_command_that_ci_runs():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- test-command -->\n```\w*\n(.+?)\n```", readme, re.DOTALL)
    assert block is not None
    assert "pytest" in block[1]
    assert "<!-- test-command -->" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
