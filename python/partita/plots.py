"""Figures by matplotlib."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .frames import Row, library


def axes(given: Any) -> Any:
    """The axes to draw on: those that are given, or new ones."""
    if given is not None:
        return given
    pyplot = library("matplotlib.pyplot", "plots")
    return pyplot.subplots(layout="constrained")[1]


def label(row: Row, keys: Iterable[str]) -> str:
    """What was varied in a run."""
    return ", ".join(f"{key}={row[key]}" for key in keys if row[key] is not None) or "the system file"


def by_setting(rows: Iterable[Row], measure: str, keys: list[str]) -> tuple[dict[str, list[float]], str]:
    """The values of a measure by what was varied, and the measure's unit.

    Raises `KeyError` if no run has the measure.
    """
    values: dict[str, list[float]] = {}
    unit = ""
    for row in rows:
        if row["measure"] == measure:
            values.setdefault(label(row, keys), []).append(row["value"])
            unit = row["unit"]
    if not values:
        raise KeyError(f"no run has a measure {measure}")
    return values, unit


def points(rows: Iterable[Row], measure: str, keys: list[str], on: Any) -> Any:
    """A dot for each run, in a column for each setting, and a line at each column's median."""
    values, unit = by_setting(rows, measure, keys)
    plot = axes(on)
    for place, found in enumerate(values.values()):
        plot.plot([place] * len(found), found, "o", alpha=0.5, color="C0")
        plot.hlines(median(found), place - 0.25, place + 0.25, color="C1")
    plot.set_xticks(range(len(values)), list(values))
    plot.set_ylabel(f"{measure} ({unit})" if unit else measure)
    return plot


def lines(rows: Iterable[Row], measure: str, over: str, keys: list[str], on: Any) -> Any:
    """A line for each setting: the median over the quantity, with a band from the least to the most."""
    series: dict[str, dict[float, list[float]]] = {}
    unit = ""
    for row in rows:
        if row["measure"] == measure and row[over] is not None:
            name = label(row, keys)
            series.setdefault(name, {}).setdefault(float(row[over]), []).append(row["value"])
            unit = row["unit"]
    if not series:
        raise KeyError(f"no run has a measure {measure}")
    plot = axes(on)
    for name, values in series.items():
        places = sorted(values)
        (line,) = plot.plot(places, [median(values[place]) for place in places], "o-", label=name)
        least, most = ([kind(values[place]) for place in places] for kind in (min, max))
        plot.fill_between(places, least, most, color=line.get_color(), alpha=0.2)
    plot.set_xlabel(over)
    plot.set_ylabel(f"{measure} ({unit})" if unit else measure)
    plot.legend()
    return plot


def median(values: list[float]) -> float:
    """The middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
