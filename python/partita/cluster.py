"""A series that many computers make: by Dask, by an executor of the standard library, or by whatever submits calls as they do."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import hashlib
import queue
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from . import command, errors
from .command import Progress
from .laboratory import Variations, compare_arguments, series
from .results import Series
from .system import System, setting, write


class Future(Protocol):
    """A call that a client makes, as Dask and `concurrent.futures` have it."""

    def result(self) -> Any:
        """The call's result, or its exception."""

    def add_done_callback(self, fn: Callable[[Any], Any], /) -> Any:
        """Calls `fn` when the call is done."""


class Client(Protocol):
    """What makes calls elsewhere: `distributed.Client`, or an executor of `concurrent.futures`."""

    def submit(self, fn: Callable[..., Any], /, *arguments: Any) -> Future:
        """Makes a call."""


@dataclass(frozen=True)
class Shard:
    """A part of a series, with all that a worker needs to make it."""

    verb: str
    name: str
    text: str
    arguments: tuple[str, ...]
    number: int
    of: int
    build: str
    """Hash of the command on the computer that asks."""


#: Errors of the command that come again on every computer.
_LASTING = (errors.InvalidSystem, errors.UsageError, errors.RunFailed, errors.TimeLimit, errors.Mismatch)


def build() -> str:
    """The hash of the command's file (SHA-256)."""
    with command.find().open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_shard(shard: Shard, attempt: int) -> bytes:
    """Makes the runs of a shard on a worker, and returns its file of results, compressed.

    `attempt` tells a second try of a shard from the first, as Dask answers for equal calls with the former result.
    """
    if build() != shard.build:
        raise errors.Mismatch(
            f"{command.find()}: a worker has another build of the partita command; install the same everywhere"
        )
    with tempfile.TemporaryDirectory(prefix=f"partita-{attempt}-") as place:
        folder = Path(place)
        file = write(folder, shard.name, shard.text)
        results = folder / "results.jsonl"
        part = ["--shard", f"{shard.number}/{shard.of}", "--results", str(results)]
        command.call([shard.verb, file.name, *shard.arguments, *part], folder=folder)
        return zlib.compress(results.read_bytes())


def study(
    system: System,
    vary: Variations,
    client: Client | Callable[[], Any],
    *,
    over: Variations | None = None,
    seeds: int | None = None,
    changes: Mapping[str, Any] | None = None,
    profile: str | Path | None = None,
    measures: Sequence[str] = (),
    timeout: int | None = None,
    options: Sequence[str] = (),
    shards: int = 16,
    in_flight: int = 64,
    tries: int = 3,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Series:
    """Makes a comparison, or a sweep if it is `over` a quantity, on the workers of a client.

    The tables and figures are those that `compare` or `sweep` gives on one computer, to the last byte.

    `client` is a `distributed.Client`, an executor of `concurrent.futures`, or a function without arguments that makes
    one, for those that do not outlive a dead worker. The series is cut into so many `shards`: a shard whose worker dies
    is made again, up to `tries` times. At most `in_flight` shards are with the client at a time, and `jobs` is how many
    runs a worker makes at a time. `progress` counts shards. Workers need this package and the same build of the command.

    Raises `Mismatch` if workers and this computer have different builds, and otherwise what `compare` raises.
    """
    arguments = compare_arguments(
        vary, seeds, changes=changes, profile=profile, measures=measures, timeout=timeout, options=options
    )
    verb, quantity = "compare", None
    if over is not None:
        ((quantity, values),) = over.items()
        verb = "sweep"
        arguments += ["--over", f"{quantity}={','.join(map(setting, values))}"]
    here = build()
    each = tuple([*arguments, "--jobs", str(jobs)])
    tasks = [Shard(verb, system.name, system.text(), each, number, shards, here) for number in range(1, shards + 1)]
    with tempfile.TemporaryDirectory(prefix="partita-study-", dir=system.home()) as place:
        parts = Path(place)
        for done, (shard, result) in enumerate(_Rounds(client, tasks, in_flight, tries).results(), 1):
            (parts / f"{shard.number:06}.jsonl").write_bytes(zlib.decompress(result))
            if progress is not None:
                progress(done, shards)
        results = system.home() / "results.jsonl"
        command.call(["results", "merge", results, *sorted(parts.iterdir())])
    return series(verb, system, arguments, over=quantity, results=results, progress=_nothing_is_missing)


def _nothing_is_missing(done: int, runs: int) -> None:
    """Progress of a table that needs no run any more: a run that is still to be made is one that no worker made."""
    if done < runs:
        raise errors.Mismatch(
            f"{runs - done} runs of the table are not among the results of the workers: their hypervisor or their guests "
            "differ from those of this computer; install the same everywhere"
        )


@dataclass
class _Rounds:
    """The shards of a study on their way through a client that may die."""

    source: Client | Callable[[], Any]
    tasks: list[Shard]
    in_flight: int
    tries: int
    attempts: collections.Counter[int] = field(default_factory=collections.Counter)

    def results(self) -> Iterator[tuple[Shard, bytes]]:
        """The shards with their results, as they end."""
        waiting = collections.deque(self.tasks)
        deaths = 0
        while waiting:
            before = len(waiting)
            with self._client() as client:
                yield from self._round(client, waiting)
            deaths = deaths + 1 if len(waiting) == before else 1
            if waiting and (hasattr(self.source, "submit") or deaths > self.tries):
                raise errors.HostFailed(
                    5, "the executor died with a worker; give study a function that makes one, so that it goes on with another"
                )

    def _client(self) -> contextlib.AbstractContextManager[Client]:
        if hasattr(self.source, "submit"):
            return contextlib.nullcontext(self.source)
        return self.source()  # type: ignore[no-any-return]

    def _round(self, client: Client, waiting: collections.deque[Shard]) -> Iterator[tuple[Shard, bytes]]:
        """Yields what this client makes, and leaves in `waiting` what it did not make before it died."""
        ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        running: dict[int, tuple[Shard, Future]] = {}
        left: list[Shard] = []
        is_alive = True
        number = 0
        while running or (is_alive and waiting):
            while is_alive and waiting and len(running) < self.in_flight:
                shard = waiting.popleft()
                try:
                    future = client.submit(make_shard, shard, self.attempts[shard.number])
                except concurrent.futures.BrokenExecutor:
                    left.append(shard)
                    is_alive = False
                    break
                number += 1
                running[number] = (shard, future)
                future.add_done_callback(functools.partial(_put, ended, number))
            if not running:
                break
            shard, future = running.pop(ended.get())
            try:
                yield shard, future.result()
            except concurrent.futures.BrokenExecutor:
                left.append(shard)
                is_alive = False
            except _LASTING:
                raise
            except Exception:
                self.attempts[shard.number] += 1
                if self.attempts[shard.number] >= self.tries:
                    raise
                waiting.append(shard)
        waiting.extendleft(reversed(left))


def _put(ended: queue.SimpleQueue[int], number: int, _: object) -> None:
    ended.put(number)
