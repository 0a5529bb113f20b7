"""A study on several workers, some of which die: the same table as on one computer."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import signal
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import partita
from partita import cluster, errors

from . import small
from .test_laboratory import needs

VARY = {"spin": ["wopd", "wapd"]}


def dying(shard: cluster.Shard, attempt: int, mark: str) -> bytes:
    """Makes a shard, but the first to make the second shard kills its own process."""
    if shard.number == 2:
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return cluster.make_shard(shard, attempt)


class Dying:
    """A client one of whose workers dies once."""

    def __init__(self, client: Any, mark: str) -> None:
        self.client, self.mark = client, mark

    def submit(self, function: Any, shard: cluster.Shard, attempt: int) -> Any:
        assert function is cluster.make_shard
        return self.client.submit(dying, shard, attempt, self.mark)

    def __enter__(self) -> Dying:
        self.client.__enter__()
        return self

    def __exit__(self, *exception: Any) -> Any:
        return self.client.__exit__(*exception)


def pool() -> concurrent.futures.ProcessPoolExecutor:
    # A worker that was forked from a process with threads could wait for ever.
    return concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


class OnePlace(small.WithCache):
    def setUp(self) -> None:
        self.mark = str(Path(tempfile.mkdtemp(dir=self.cache.name), "mark"))

    def table(self, make: Any) -> tuple[str, bytes, bytes]:
        """The text and the files of a series, made in a cache of its own."""
        with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ, {"PARTITA_CACHE": cache}):
            made = make()
            return made.text, *((made.folder / f"figures.{end}").read_bytes() for end in ("csv", "parquet"))

    def alone(self) -> tuple[str, bytes, bytes]:
        return self.table(lambda: partita.compare(small.system(), VARY, seeds=2))

    def test_a_killed_worker_changes_no_byte(self) -> None:
        progress: list[tuple[int, int]] = []
        together = self.table(
            lambda: partita.study(
                small.system(),
                VARY,
                lambda: Dying(pool(), self.mark),
                seeds=2,
                shards=3,
                progress=lambda *counts: progress.append(counts),
            )
        )
        self.assertTrue(os.path.exists(self.mark))
        self.assertEqual(progress, [(1, 3), (2, 3), (3, 3)])
        self.assertEqual(together, self.alone())

    def test_an_executor_that_died_names_the_remedy(self) -> None:
        with self.assertRaises(errors.HostFailed) as raised, pool() as executor:
            self.table(lambda: partita.study(small.system(), VARY, Dying(executor, self.mark), seeds=1, shards=2))
        self.assertIn("a function that makes one", str(raised.exception))

    def test_a_mistake_is_not_tried_again(self) -> None:
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            submit = mock.Mock(side_effect=executor.submit)
            with self.assertRaises(errors.InvalidSystem):
                partita.study(small.system(), {"spin": ["x"]}, mock.Mock(spec=["submit"], submit=submit), seeds=1, shards=1)
            self.assertEqual(submit.call_count, 1)

    def test_another_build_is_refused(self) -> None:
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            with mock.patch.object(cluster, "build", side_effect=["here", "there"]):
                with self.assertRaises(errors.Mismatch):
                    partita.study(small.system(), VARY, executor, seeds=1, shards=1)
        with self.assertRaises(errors.Mismatch) as raised:
            cluster._nothing_is_missing(1, 4)
        self.assertIn("3 runs", str(raised.exception))
        cluster._nothing_is_missing(4, 4)

    @needs("distributed")
    def test_a_dask_cluster_with_a_killed_worker(self) -> None:
        import distributed

        with (
            distributed.LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=2, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,  # type: ignore[no-untyped-call]
        ):
            together = self.table(
                lambda: partita.study(small.system(), VARY, Dying(client, self.mark), seeds=2, shards=4)
            )
        self.assertTrue(os.path.exists(self.mark))
        self.assertEqual(together, self.alone())


if __name__ == "__main__":
    unittest.main()
