"""The notebooks, cell by cell, without anything that is not in the standard library."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import small

HERE = Path(__file__).resolve().parents[1] / "notebooks"


def code(notebook: Path) -> Iterator[str]:
    """The sources of the code cells."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


def execute(source: str, names: dict[str, Any], what: str) -> Any:
    """Executes a cell, and returns the value of its last line if that is an expression."""
    tree = ast.parse(source, what)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, what, "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), what, "exec"), names)
    return eval(compile(ast.Expression(last.value), what, "eval"), names)


class Notebooks(small.WithCache):
    def run_all(self, name: str) -> tuple[list[Any], list[str]]:
        """The value and the printed text of each code cell."""
        if importlib.util.find_spec("matplotlib") is not None:
            import matplotlib

            matplotlib.use("agg")
        names: dict[str, Any] = {"__name__": "__main__"}
        values, printed = [], []
        former = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for number, source in enumerate(code(HERE / name), 1):
                    text = io.StringIO()
                    with contextlib.redirect_stdout(text):
                        values.append(execute(source, names, f"{name}, cell {number}"))
                    printed.append(text.getvalue())
            finally:
                os.chdir(former)
        return values, printed

    def test_a_question_becomes_a_figure(self) -> None:
        values, printed = self.run_all("question-to-figure.ipynb")
        self.assertEqual(len(values), 10)
        self.assertIn("harts = 0: use a whole number", printed[3])
        self.assertGreater(values[4]["throughput"], 0)
        self.assertIn("spin=reservation", printed[6])
        self.assertIn("1 of 1 runs are equal to the last digit", printed[7])
        self.assertTrue("pip install" in printed[9] or values[9].get_xlabel() == "guest.hold")

    def test_notebooks_are_kept_without_results(self) -> None:
        for notebook in HERE.glob("*.ipynb"):
            for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
                self.assertFalse(cell.get("outputs"), notebook)
