"""The laboratory: one run, a comparison, a sweep, a trace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import command
from .command import Progress
from .results import Run, Series, Trace
from .system import System, setting, settings

#: What is varied: the values of each key.
Variations = Mapping[str, Sequence[Any]]


def _place(system: System, what: Sequence[str]) -> Path:
    """The folder for what these arguments give of a system."""
    digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]
    folder = system.file().parent / digest
    folder.mkdir(exist_ok=True)
    return folder


def _common(profile: str | Path | None, timeout: int | None) -> list[str]:
    options: list[str] = []
    if profile is not None:
        is_file = str(profile).endswith(".toml")
        options += ["--profile", str(Path(profile).resolve()) if is_file else str(profile)]
    if timeout is not None:
        options += ["--timeout", str(timeout)]
    return options


def run(
    system: System,
    *,
    changes: Mapping[str, Any] | None = None,
    profile: str | Path | None = None,
    seed: int = 0,
    timeout: int | None = None,
    options: Sequence[str] = (),
) -> Run:
    """Runs a system once on the machine, to its end.

    `changes` are keys for this time, such as `{"vm.web.share": 30}`; `profile` says what instructions cost; `timeout` is
    in seconds of this computer; `options` are further options of `partita run`, which `partita run --help` lists.

    Raises one of `partita.errors` with what the command says.
    """
    arguments = [*settings(changes or {}), *_common(profile, timeout), "--seed", str(seed), *options]
    folder = _place(system, ["run", *arguments])
    file = system.file()
    report = folder / "run.json"
    text = command.call(["run", file.name, *arguments, "--json", report], folder=file.parent)
    return Run(folder, text)


def series(
    verb: str,
    system: System,
    arguments: Sequence[str],
    *,
    over: str | None = None,
    results: Path | None = None,
    progress: Progress | None = None,
) -> Series:
    """Runs `partita compare` or `partita sweep` with these arguments. Runs whose results are there are not made again."""
    folder = _place(system, [verb, *arguments])
    file = system.file()
    results = results or file.parent / "results.jsonl"
    tidy = ["--tidy", str(folder / "figures.csv"), "--tidy", str(folder / "figures.parquet")]
    text = command.call(
        [verb, file.name, *arguments, "--results", results, *tidy], folder=file.parent, progress=progress
    )
    return Series(folder, results, text, over)


def compare_arguments(
    vary: Variations,
    seeds: int | None,
    *,
    changes: Mapping[str, Any] | None = None,
    profile: str | Path | None = None,
    measures: Sequence[str] = (),
    timeout: int | None = None,
    options: Sequence[str] = (),
) -> list[str]:
    """The arguments of `partita compare`, and of `partita sweep` less its quantity."""
    arguments = settings(changes or {})
    for key, values in vary.items():
        arguments += ["--vary", f"{key}={','.join(map(setting, values))}"]
    if seeds is not None:
        arguments += ["--seeds", str(seeds)]
    if measures:
        arguments += ["--measure", ",".join(measures)]
    return [*arguments, *_common(profile, timeout), *options]


def compare(
    system: System,
    vary: Variations,
    *,
    seeds: int | None = None,
    changes: Mapping[str, Any] | None = None,
    profile: str | Path | None = None,
    measures: Sequence[str] = (),
    timeout: int | None = None,
    jobs: int | None = None,
    options: Sequence[str] = (),
    progress: Progress | None = None,
) -> Series:
    """Runs every combination of what is varied with many start phases.

    `vary` is such as `{"spin": ["wopd", "wapd"]}`; its keys are those of `partita compare --vary`. `seeds` is the number
    of start phases, `jobs` that of runs at a time. `progress` is called with the number of runs done and that of all,
    such as `partita.print_progress`.

    Raises one of `partita.errors` with what the command says.
    """
    arguments = compare_arguments(
        vary, seeds, changes=changes, profile=profile, measures=measures, timeout=timeout, options=options
    )
    return series("compare", system, [*arguments, *_jobs(jobs)], progress=progress)


def sweep(
    system: System,
    over: Variations,
    vary: Variations,
    *,
    seeds: int | None = None,
    changes: Mapping[str, Any] | None = None,
    profile: str | Path | None = None,
    measures: Sequence[str] = (),
    timeout: int | None = None,
    jobs: int | None = None,
    options: Sequence[str] = (),
    progress: Progress | None = None,
) -> Series:
    """Compares over one quantity, such as `{"guest.think-us": [0, 1000]}`, and finds where the conclusion turns over.

    The other arguments are those of `compare`.
    """
    (quantity, values), *others = over.items()
    if others:
        raise ValueError("a sweep is over one quantity; vary the others")
    arguments = compare_arguments(
        vary, seeds, changes=changes, profile=profile, measures=measures, timeout=timeout, options=options
    )
    arguments += ["--over", f"{quantity}={','.join(map(setting, values))}"]
    return series("sweep", system, [*arguments, *_jobs(jobs)], over=quantity, progress=progress)


def _jobs(jobs: int | None) -> list[str]:
    return [] if jobs is None else ["--jobs", str(jobs)]


def trace(
    system: System,
    *,
    start_ms: int = 0,
    length_ms: int = 100,
    changes: Mapping[str, Any] | None = None,
    profile: str | Path | None = None,
    seed: int = 0,
    timeout: int | None = None,
) -> Trace:
    """Records who had which hart when: `length_ms` milliseconds of machine time, `start_ms` after a vCPU first had a hart."""
    arguments = [*settings(changes or {}), *_common(profile, timeout), "--seed", str(seed)]
    arguments += ["--from", str(start_ms), "--length", str(length_ms)]
    folder = _place(system, ["trace", *arguments])
    file = system.file()
    timeline, page = folder / "timeline.pftrace", folder / "timeline.html"
    text = command.call(["trace", file.name, *arguments, "-o", timeline, "--report", page], folder=file.parent)
    return Trace(timeline, page, text)


def explain(measure: str) -> str:
    """What a measure means."""
    return command.call(["explain", measure]).strip()
