"""The command: where it is, how it is called, and what it says while it works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from . import errors

#: What is called with the number of runs that are done and that of all runs.
Progress = Callable[[int, int], None]

#: A line of the command that tells how far a series is.
_DONE = re.compile(r"^(?:partita: )?(\d+) of (\d+) runs\b")


def find() -> Path:
    """The command: the one that the variable `PARTITA` names, the one on the `PATH`, or the one that was built in the
    source tree in which this package lies."""
    named = os.environ.get("PARTITA")
    if named:
        path = shutil.which(named)
        if path is None:
            raise errors.CommandNotFound(
                f"PARTITA={named}: there is no such program; set PARTITA to the path of the partita command"
            )
        return Path(path)
    found = shutil.which("partita")
    if found is not None:
        return Path(found)
    tree = Path(__file__).resolve().parents[2]
    for build in ("release", "debug"):
        built = tree / "target" / build / "partita"
        if built.is_file():
            return built
    raise errors.CommandNotFound(
        "the partita command is not on the PATH; install it by `make install` or its .deb, or set PARTITA to its path"
    )


def cache() -> Path:
    """The folder in which the command keeps images and results."""
    for name, below in (("PARTITA_CACHE", ""), ("XDG_CACHE_HOME", "partita")):
        if os.environ.get(name):
            return Path(os.environ[name], below)
    return Path.home() / ".cache" / "partita"


def call(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> str:
    """Runs the command with these arguments, and returns what it printed on its standard output.

    `folder` is the folder to run in. `progress` is called as the runs of a series end.

    Raises one of `partita.errors` with what the command said, if it ends with an exit code other than 0.
    """
    command = [str(find()), *(str(argument) for argument in arguments)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        try:
            child = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise errors.CommandNotFound(f"{command[0]}: {error.strerror}; set PARTITA to the partita command") from error
        said: list[str] = []
        with child:
            assert child.stderr is not None
            try:
                for line in child.stderr:
                    done = _DONE.match(line)
                    if done is None:
                        said.append(line)
                    elif progress is not None:
                        progress(int(done[1]), int(done[2]))
            except BaseException:
                # The command ends with whoever asked for it, also at KeyboardInterrupt. What it finished is kept.
                child.terminate()
                raise
        if child.returncode != 0:
            raise errors.of_exit(child.returncode, message(said))
        output.seek(0)
        return output.read()


def message(lines: Sequence[str]) -> str:
    """What the command said of a failure: its last lines, from the first that begins with its name, without the name."""
    notes = [line for line in lines if not line.startswith("partita: ") or " runs to make" not in line]
    text = "".join(notes).strip()
    return "\n".join(line.removeprefix("partita: ") for line in text.splitlines())


def print_progress(done: int, whole: int) -> None:
    """Shows progress on one line of the terminal or the notebook."""
    print(f"\r{done} of {whole} runs", end="\n" if done == whole else "", flush=True)
