"""The wheel that `make dist` makes."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import partita

HERE = Path(__file__).resolve().parents[1]


class Wheel(unittest.TestCase):
    def test_it_is_repeatable_and_whole(self) -> None:
        made = []
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run([sys.executable, HERE / "wheel.py", folder], check=True, stdout=subprocess.DEVNULL)
                (wheel,) = Path(folder).iterdir()
                made.append((wheel.name, wheel.read_bytes()))
                # It works from where it lies, as an archive on the path, without the source tree.
                program = "import partita; print(partita.__version__, partita.__file__)"
                said = subprocess.run(
                    [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(wheel)!r}); {program}"],
                    check=True,
                    capture_output=True,
                    text=True,
                ).stdout.split()
                self.assertEqual(said[0], partita.__version__)
                self.assertIn(".whl", said[1])
                with zipfile.ZipFile(wheel) as archive:
                    names = set(archive.namelist())
                    record = archive.read(f"partita-{partita.__version__}.dist-info/RECORD").decode()
                self.assertEqual({line.split(",")[0] for line in record.splitlines()}, names)
                sources = {f"partita/{path.name}" for path in (HERE / "partita").glob("*.py")}
                self.assertLessEqual(sources, names)
        self.assertEqual(made[0], made[1])

    def test_its_version_is_the_command_s(self) -> None:
        manifest = (HERE.parent / "Cargo.toml").read_text(encoding="utf-8")
        found = re.search(r'^\[workspace\.package\]\nversion = "(.*)"', manifest, re.MULTILINE)
        assert found is not None
        self.assertEqual(found[1], partita.__version__)
