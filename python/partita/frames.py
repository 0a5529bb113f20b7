"""Rows as frames of the libraries that are there: pandas or Polars through Arrow, or plain lists."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import LibraryMissing

#: A figure of a run, or all figures of one, by the names of columns.
Row = dict[str, Any]


def library(name: str, extra: str) -> ModuleType:
    """Imports an optional library.

    Raises `LibraryMissing` with the remedy if it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise LibraryMissing(f"this needs {name.split('.')[0]}; install it by: pip install 'partita[{extra}]'") from error


def read(path: Path) -> Iterator[Row]:
    """The rows of a file that `--tidy` wrote as comma-separated values, one at a time."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            typed: Row = {key: value or None for key, value in row.items()}
            typed["unit"] = row["unit"]
            typed["seed"] = int(row["seed"])
            typed["steady"] = row["steady"] == "1"
            typed["value"] = float(row["value"])
            yield typed


def csv_names(path: Path) -> list[str]:
    """The names of the columns of a file of comma-separated values."""
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file))


def wide(rows: Iterator[Row]) -> Iterator[Row]:
    """A row for each run, with a column for each measure. The rows of a run stand together."""
    run: Row | None = None
    for row in rows:
        if run is None or run["run"] != row["run"]:
            if run is not None:
                yield run
            run = {key: value for key, value in row.items() if key not in ("measure", "unit", "value")}
        run[row["measure"]] = row["value"]
    if run is not None:
        yield run


def frame(parquet: Path, kind: str, *, is_wide: bool) -> Any:
    """The rows of a file of Parquet as a frame: `pandas`, `polars` or `arrow`.

    Arrow, or Polars, reads the file itself: no row passes through Python.
    """
    if kind == "polars":
        polars = library("polars", "polars")
        table = polars.read_parquet(parquet)
        if is_wide:
            index = [name for name in table.columns if name not in ("measure", "unit", "value")]
            table = table.pivot("measure", index=index, values="value", maintain_order=True)
        return table
    if kind not in ("pandas", "arrow"):
        raise ValueError(f"there is no kind of frame {kind!r}; use pandas, polars or arrow")
    if kind == "pandas":
        library("pandas", "pandas")
    table = library("pyarrow.parquet", "arrow" if kind == "arrow" else "pandas").read_table(parquet)
    if kind == "arrow" and is_wide:
        raise ValueError("an Arrow table has a row for each figure; take pandas or polars for a row for each run")
    if kind == "arrow":
        return table
    data = table.to_pandas()
    if is_wide:
        index = [name for name in data.columns if name not in ("measure", "unit", "value")]
        runs = data[index].drop_duplicates("run").set_index("run")
        data = runs.join(data.pivot(index="run", columns="measure", values="value"), validate="one_to_one").reset_index()
    return data
