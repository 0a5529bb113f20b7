"""What can go wrong, each with the message of the command and the remedy that it names."""

from __future__ import annotations


class PartitaError(Exception):
    """Base of all errors of this package."""


class CommandNotFound(PartitaError):
    """There is no `partita` command, or it cannot be started."""


class LibraryMissing(PartitaError, ImportError):
    """An optional library is not installed. The message says how to install it."""


class InvalidSystem(PartitaError, ValueError):
    """A system, or a part of one, has mistakes. The message lists all that were found, as `partita check` does."""


class CommandFailed(PartitaError):
    """The command ended with an exit code other than 0.

    `code` is the exit code, and `message` is what the command said on its standard error.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message or f"the command ended with exit code {self.code} and said nothing"


class UsageError(CommandFailed, ValueError):
    """An argument is wrong, or names a file that is not there (exit code 2)."""


class RunFailed(CommandFailed):
    """A VM failed or did not power off, or runs differ that should be equal (exit code 3)."""


class TimeLimit(CommandFailed, TimeoutError):
    """A run took longer than it may (exit code 4)."""


class HostFailed(CommandFailed):
    """A run could not be made, or an output could not be written (exit code 5)."""


class BrokenOff(CommandFailed):
    """The command was ended from outside: by a signal, or as exit code 130 says."""


class Mismatch(PartitaError):
    """Two computers of a study have different builds of the command, of the hypervisor or of a guest."""


def of_exit(code: int, message: str) -> PartitaError:
    """The error that an exit code of the command stands for."""
    if code == 1:
        return InvalidSystem(message)
    if code < 0 or code == 130:
        return BrokenOff(code, message)
    kinds = {2: UsageError, 3: RunFailed, 4: TimeLimit, 5: HostFailed}
    return kinds.get(code, CommandFailed)(code, message)
