"""What runs give: figures as rows and frames, tables, plots, and any run again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import command, frames, plots
from .frames import Row

#: Columns of every row; those between `steady` and `measure` are what was varied.
_FIXED = ("run", "system", "computer", "kind", "seed", "steady", "measure", "unit", "value")


@dataclass(frozen=True)
class Run:
    """One run of a system."""

    folder: Path
    """Folder with the report, `run.json`, and the system file beside it."""

    text: str
    """What the command printed."""

    @property
    def report(self) -> dict[str, Any]:
        """The whole report, as `partita run --json` writes it."""
        document: dict[str, Any] = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        return document

    @property
    def measures(self) -> dict[str, float]:
        """The measures by their names. `partita.explain(name)` says what one means."""
        measures: dict[str, float] = self.report["measures"]
        return measures

    @property
    def seconds(self) -> float:
        """Time that the run took on its computer."""
        return float(self.report["seconds"])

    def rows(self) -> list[Row]:
        """A row for each measure."""
        return [{"measure": name, "value": value} for name, value in self.measures.items()]

    def rerun(self) -> str:
        """Makes the run again, and returns what the command says: all figures are equal to the last digit.

        Raises `RunFailed` with every figure that differs.
        """
        return command.call(["rerun", "run.json"], folder=self.folder)


@dataclass(frozen=True)
class Series:
    """The runs of a comparison or a sweep."""

    folder: Path
    """Folder with the figures, `figures.csv` and `figures.parquet`, and the system file."""

    results: Path
    """The file with the results of all runs."""

    text: str
    """The tables that the command printed."""

    over: str | None = None
    """The quantity of a sweep."""

    def __str__(self) -> str:
        return self.text

    def __iter__(self) -> Iterator[Row]:
        """All figures, a row for each, read one at a time."""
        return frames.read(self.folder / "figures.csv")

    @property
    def keys(self) -> list[str]:
        """The keys that were varied, without the quantity of a sweep."""
        names = frames.csv_names(self.folder / "figures.csv")
        return [name for name in names if name not in _FIXED and name != self.over]

    def rows(self, measure: str | None = None) -> list[Row]:
        """All figures, or those of one measure, a row for each."""
        return [row for row in self if measure is None or row["measure"] == measure]

    def runs(self) -> list[Row]:
        """A row for each run, with a column for each measure."""
        return list(frames.wide(iter(self)))

    def frame(self, kind: str = "pandas", *, wide: bool = False) -> Any:
        """All figures as a frame of `pandas` or `polars`, or as a table of `arrow`.

        A row is a figure, or a run with a column for each measure if it is `wide`.

        Raises `LibraryMissing` if the library is not installed.
        """
        return frames.frame(self.folder / "figures.parquet", kind, is_wide=wide)

    def plot(self, measure: str = "throughput", *, axes: Any = None) -> Any:
        """Draws a measure by matplotlib, over the quantity of a sweep, and returns the axes."""
        if self.over is not None and self.over in frames.csv_names(self.folder / "figures.csv"):
            return plots.lines(self, measure, self.over, self.keys, axes)
        return plots.points(self, measure, self.keys, axes)

    def rerun(self, row: Mapping[str, Any] | str) -> str:
        """Makes the run of a row again, whether of a list, of pandas or of Polars (`named=True`), or the run with this hash.

        Returns what the command says. Raises `RunFailed` with every figure that differs.
        """
        run = str(row if isinstance(row, str) else row["run"])
        return command.call(["rerun", self.results, "--run", run], folder=self.folder)


@dataclass(frozen=True)
class Trace:
    """A recorded stretch of a run."""

    timeline: Path
    """The timeline, which ui.perfetto.dev opens."""

    page: Path
    """The essential as a page of HTML."""

    text: str
    """What the command printed."""
