"""A system of virtual machines as an object, checked when it is made."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from . import command, errors
from .keys import SystemKeys
from .table import toml


@dataclasses.dataclass(frozen=True, kw_only=True)
class System(SystemKeys):
    """A system: harts, memory and VMs, with the keys of a system file.

    Each key is checked by itself, then `partita check` looks at the whole: an object is a system without mistakes, or
    `InvalidSystem` is raised with all of them.
    """

    name: str = "system"
    """Name of the system file, without `.toml`. Tables and results show it."""

    folder: Path | None = None
    """Folder that relative paths of kernels and disks begin from; the present one without it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name or set(self.name) & set("/\0") or self.name.startswith("."):
            raise errors.InvalidSystem(f"name = {self.name!r}: use the name of a file without its ending")
        object.__setattr__(self, "folder", Path(self.folder or ".").resolve())
        try:
            command.call(["check", self.file().name], folder=self.file().parent)
        except errors.UsageError as error:
            raise errors.InvalidSystem(error.message) from error

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Self:
        """Reads a system file.

        Raises `InvalidSystem` if it has mistakes, and `OSError` if it cannot be read.
        """
        path = Path(file)
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise errors.InvalidSystem(f"{path}: {error}") from error
        return cls.of(document, name=path.stem, folder=path.resolve().parent)

    def text(self) -> str:
        """The system file. Paths in it are absolute."""

        def absolute(path: str) -> str:
            return path if path.startswith("image:") else os.path.join(self.folder or "", path)

        return toml(self.document(absolute))

    def home(self) -> Path:
        """Folder of the cache for this system: its file and its results. The same system has the same folder."""
        digest = hashlib.sha256(self.text().encode()).hexdigest()[:16]
        folder = command.cache() / "python" / digest
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def file(self) -> Path:
        """The system file in the cache, written if it is not there."""
        return write(self.home(), self.name, self.text())

    def with_vm(self, name: str, **changes: Any) -> Self:
        """The same with other keys of one VM."""
        if name not in self.vm:
            raise errors.InvalidSystem(f"there is no VM {name}; the VMs are {', '.join(self.vm)}")
        vms = {**self.vm, name: self.vm[name].with_(**changes)}
        return self.with_(vm=vms)


def write(folder: Path, name: str, text: str) -> Path:
    """Writes a system file into a folder as a whole, so that others who write the same do no harm."""
    path = folder / f"{name}.toml"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        beside = folder / f".{name}.{os.getpid()}.new"
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    return path


def settings(changes: Mapping[str, Any]) -> list[str]:
    """The changes as the command's `--set` takes them: `{"spin": "wapd"}` is `spin="wapd"`.

    A text is quoted unless the key is one of a command line's words or of the machine's profile.
    """
    return [part for key, value in changes.items() for part in ("--set", f"{key}={setting(value)}")]


def setting(value: Any) -> str:
    """A value as `--set` and `--vary` take it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
