"""Runs and series on the machine, their figures, and runs made again."""

from __future__ import annotations

import importlib.util
import json
import unittest
from collections.abc import Callable
from typing import Any, ClassVar
from unittest import mock

import partita
from partita import errors

from . import small


def has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def needs(*libraries: str) -> Callable[[Any], Any]:
    """Skips a test where one of these optional libraries is not installed."""
    missing = [library for library in libraries if not has(library)]
    return unittest.skipIf(bool(missing), f"not installed: {', '.join(missing)}")


class OneRun(small.WithCache):
    def test_a_run_has_measures_and_repeats(self) -> None:
        run = partita.run(small.system(), changes={"spin": "wapd"}, seed=3)
        self.assertGreater(run.measures["throughput"], 0)
        self.assertEqual(run.report["point"]["changes"], ["spin=wapd"])
        self.assertIn({"measure": "throughput", "value": run.measures["throughput"]}, run.rows())
        self.assertIn("equal to the last digit", run.rerun())

    def test_a_failed_run_raises_what_the_command_says(self) -> None:
        system = small.system().with_vm("one", command_line="exercise=dancing")
        with self.assertRaises(errors.RunFailed) as raised:
            partita.run(system)
        self.assertEqual(raised.exception.code, 3)
        self.assertIn("one", str(raised.exception))

    def test_a_trace_is_two_files(self) -> None:
        trace = partita.trace(small.system(), length_ms=2)
        self.assertGreater(trace.timeline.stat().st_size, 1000)
        self.assertIn("<html", trace.page.read_text())


class Comparison(small.WithCache):
    series: ClassVar[partita.Series]
    progress: ClassVar[list[tuple[int, int]]]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.progress = []
        cls.series = partita.compare(
            small.system(),
            {"spin": ["wopd", "wapd"]},
            seeds=2,
            measures=["throughput"],
            progress=lambda done, whole: cls.progress.append((done, whole)),
        )

    def test_progress_reaches_the_end(self) -> None:
        self.assertEqual(self.progress[-1], (4, 4))
        self.assertEqual(self.progress, sorted(self.progress))

    def test_every_figure_is_a_row(self) -> None:
        rows = self.series.rows("throughput")
        self.assertEqual([(row["seed"], row["spin"]) for row in rows], [(0, "wopd"), (1, "wopd"), (0, "wapd"), (1, "wapd")])
        self.assertEqual(len({row["run"] for row in rows}), 4)
        self.assertEqual(self.series.keys, ["spin"])
        runs = self.series.runs()
        self.assertEqual([run["throughput"] for run in runs], [row["value"] for row in rows])
        self.assertIn("spin=wapd", str(self.series))

    def test_the_run_of_a_row_is_made_again(self) -> None:
        row = self.series.rows("throughput")[3]
        self.assertIn("1 of 1 runs are equal to the last digit", self.series.rerun(row))
        with self.assertRaises(errors.UsageError):
            self.series.rerun("00" * 32)
        # A record that was tampered with is found, and in this run alone.
        lines = self.series.results.read_text().splitlines()
        changed = []
        for line in lines:
            document = json.loads(line)
            if document.get("id") == row["run"]:
                document["outcome"]["finished"]["report"]["seconds"] += 1
            changed.append(json.dumps(document))
        results = self.series.results.with_name("tampered.jsonl")
        results.write_text("\n".join(changed) + "\n")
        tampered = partita.Series(self.series.folder, results, "")
        with self.assertRaises(errors.RunFailed) as raised:
            tampered.rerun(row)
        self.assertIn("seconds", str(raised.exception))
        self.assertIn("equal to the last digit", tampered.rerun(self.series.rows("throughput")[0]))

    def test_known_runs_are_not_made_again(self) -> None:
        before = self.series.results.read_bytes()
        done: list[tuple[int, int]] = []
        again = partita.compare(
            small.system(),
            {"spin": ["wopd", "wapd"]},
            seeds=2,
            measures=["throughput"],
            progress=lambda *counts: done.append(counts),
        )
        self.assertEqual((again.text, again.results.read_bytes()), (self.series.text, before))
        self.assertEqual(done, [(4, 4)])

    def test_a_missing_library_names_the_remedy(self) -> None:
        with mock.patch("importlib.import_module", side_effect=ImportError):
            calls: list[tuple[Callable[[], Any], str]] = [
                (lambda: self.series.frame("pandas"), "pandas"),
                (lambda: self.series.frame("polars"), "polars"),
                (self.series.plot, "plots"),
            ]
            for call, library in calls:
                with self.assertRaises(errors.LibraryMissing) as raised:
                    call()
                self.assertIn(f"pip install 'partita[{library}]'", str(raised.exception))
        with self.assertRaises(ValueError):
            self.series.frame("marble")

    def check_frame(self, rows: list[dict[str, object]]) -> None:
        self.assertEqual([row["throughput"] for row in rows], [row["value"] for row in self.series.rows("throughput")])
        self.assertEqual([row["spin"] for row in rows], ["wopd", "wopd", "wapd", "wapd"])
        self.assertIn("1 of 1", self.series.rerun(rows[0]))

    @needs("pandas", "pyarrow")
    def test_pandas(self) -> None:
        self.assertEqual(len(self.series.frame()), len(self.series.rows()))
        self.check_frame(self.series.frame(wide=True).to_dict("records"))

    @needs("polars")
    def test_polars(self) -> None:
        self.assertEqual(len(self.series.frame("polars")), len(self.series.rows()))
        self.check_frame(self.series.frame("polars", wide=True).to_dicts())

    @needs("pyarrow")
    def test_arrow(self) -> None:
        self.assertEqual(self.series.frame("arrow").num_rows, len(self.series.rows()))

    @needs("matplotlib")
    def test_plot_has_a_dot_a_run(self) -> None:
        import matplotlib

        matplotlib.use("agg")
        axes = self.series.plot("throughput")
        drawn = [value for line in axes.get_lines() for value in line.get_ydata()]
        self.assertEqual(drawn, [row["value"] for row in self.series.rows("throughput")])
        self.assertIn("completions/s", axes.get_ylabel())
        with self.assertRaises(KeyError):
            self.series.plot("fame")


class Sweep(small.WithCache):
    def test_a_sweep_has_its_quantity(self) -> None:
        sweep = partita.sweep(small.system(), {"vms": [1, 2]}, {"spin": ["wopd", "wapd"]}, seeds=1)
        rows = sweep.rows("throughput")
        self.assertEqual({(row["vms"], row["spin"]) for row in rows}, {(n, s) for n in "12" for s in ("wopd", "wapd")})
        self.assertEqual((sweep.keys, sweep.over), (["spin"], "vms"))
        if has("matplotlib"):
            import matplotlib

            matplotlib.use("agg")
            self.assertEqual(sweep.plot().get_xlabel(), "vms")
        with self.assertRaises(ValueError):
            partita.sweep(small.system(), {"vms": [1], "harts": [1]}, {})
