"""Systems as objects: what is checked, and what is written."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from unittest import mock

import partita
from partita import command, errors, table

from . import small

TREE = Path(__file__).resolve().parents[2]


class Systems(small.WithCache):
    def test_classes_are_those_of_the_schema(self) -> None:
        subprocess.run([sys.executable, TREE / "python/generate.py", "--check"], check=True)

    def test_all_mistakes_of_a_table_are_told(self) -> None:
        with self.assertRaises(errors.InvalidSystem) as raised:
            partita.Vm(vcpus=0, memory="much", share=True, kernel="k", io="quick")  # type: ignore[arg-type]
        for mistake in ("vcpus = 0", "1 to 64", "memory = 'much'", "share = True", "io = 'quick'", "direct, general, fast"):
            self.assertIn(mistake, str(raised.exception))

    def test_nested_tables_are_checked(self) -> None:
        vm: dict[str, Any] = {"vcpus": 1, "memory": "64 MiB", "share": 1, "kernel": "image:exerciser"}
        for key, value, mistake in (
            ("disks", [{"file": "d", "slot": 9}], "vm.a.disks[0].slot = 9"),
            ("network", [3], "vm.a.network[0]"),
            ("terminals", {"count": 1}, "vm.a.terminals.transactions: must be given"),
            ("colour", "blue", "vm.a.colour: there is no such key"),
        ):
            with self.assertRaises(errors.InvalidSystem) as raised:
                partita.System(harts=1, memory="1 GiB", vm={"a": {**vm, key: value}})  # type: ignore[dict-item]
            self.assertIn(mistake, str(raised.exception))

    def test_the_command_checks_the_whole(self) -> None:
        with self.assertRaises(errors.InvalidSystem) as raised:
            small.system(memory="2 MiB")
        self.assertIn("MiB", str(raised.exception))
        with self.assertRaises(errors.InvalidSystem) as raised:
            small.system().with_vm("one", kernel="no-such-kernel")
        self.assertIn("no-such-kernel", str(raised.exception))

    def test_a_system_cannot_be_changed(self) -> None:
        system = small.system()
        with self.assertRaises(dataclasses.FrozenInstanceError):
            system.harts = 99  # type: ignore[misc]
        with self.assertRaises(TypeError):
            system.vm["one"] = None  # type: ignore[index]
        self.assertEqual(pickle.loads(pickle.dumps(system)), system)

    def test_files_are_read_and_written(self) -> None:
        read = partita.System.read(TREE / "systems/exercises.toml")
        again = partita.System.read(read.file())
        self.assertEqual((read.name, read.text()), ("exercises", again.text()))
        self.assertEqual(read.vm["one"].share, 50)
        # A path begins at the folder of the file, wherever the file in the cache lies.
        folder = Path(self.cache.name, "own")
        folder.mkdir()
        (folder / "disk").write_bytes(bytes(4096))
        (folder / "s.toml").write_text(
            'harts = 1\nmemory = "1 GiB"\n[vm.a]\nvcpus = 1\nmemory = "64 MiB"\nshare = 1\nkernel = "image:exerciser"\n'
            'disks = [{ file = "disk" }]\n'
        )
        own = partita.System.read(folder / "s.toml")
        self.assertIn(f'file = "{folder.resolve()}/disk"', own.text())

    def test_text_is_the_same_as_toml_reads_it(self) -> None:
        document = {"a": 'quote " and \\ and \x7f \n ü', "l": [{"b": True}, 3], "t": {"x.y": {"n": 1}, "z": {}}}
        self.assertEqual(tomllib.loads(table.toml(document)), document)

    def test_a_missing_command_names_the_remedy(self) -> None:
        with mock.patch.dict(os.environ, {"PARTITA": "/no/such/partita"}):
            with self.assertRaises(errors.CommandNotFound) as raised:
                small.system()
        self.assertIn("set PARTITA", str(raised.exception))

    def test_errors_have_the_message_of_the_command(self) -> None:
        with self.assertRaises(errors.UsageError) as raised:
            command.call(["explain", "fame"])
        self.assertEqual(raised.exception.code, 2)
        self.assertIn("fame", str(raised.exception))
        self.assertFalse(str(raised.exception).startswith("partita:"))
