"""A system that runs in a fraction of a second, and a cache of its own for each class of tests."""

from __future__ import annotations

import os
import tempfile
import unittest
from typing import ClassVar

import partita


def system(**changes: object) -> partita.System:
    """Two exercisers of two vCPUs on two harts that work for some milliseconds of machine time."""
    vm = partita.Vm(
        vcpus=2,
        memory="64 MiB",
        share=50,
        kernel="image:exerciser",
        command_line="exercise=work duration-ms=4 terminals=6 think-us=200 steps=5 compute=2000 hold=80 lock-count=1",
    )
    return partita.System(name="pair", harts=2, memory="1 GiB", vm={"one": vm, "two": vm}).with_(**changes)


class WithCache(unittest.TestCase):
    """Tests whose results are not those of other tests."""

    cache: ClassVar[tempfile.TemporaryDirectory[str]]
    former: ClassVar[str | None]

    @classmethod
    def setUpClass(cls) -> None:
        cls.cache = tempfile.TemporaryDirectory()
        cls.former = os.environ.get("PARTITA_CACHE")
        os.environ["PARTITA_CACHE"] = cls.cache.name

    @classmethod
    def tearDownClass(cls) -> None:
        if cls.former is None:
            del os.environ["PARTITA_CACHE"]
        else:
            os.environ["PARTITA_CACHE"] = cls.former
        cls.cache.cleanup()
