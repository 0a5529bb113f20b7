"""Partita from Python: systems of RISC-V virtual machines that are composed, run and compared by the `partita` command.

    import partita

    system = partita.System.read("systems/exercises.toml")
    comparison = partita.compare(system, {"spin": ["wopd", "wapd"]}, seeds=10, progress=partita.print_progress)
    print(comparison)
    comparison.frame()
"""

from . import errors
from .cluster import study
from .command import print_progress
from .errors import PartitaError
from .keys import Card, Disk, Experiment, ServedDisk, SharedDisk, Slice, Switch, Terminals, Vm, VmExperiment
from .laboratory import compare, explain, run, sweep, trace
from .results import Run, Series, Trace
from .system import System
from .version import VERSION as __version__

__all__ = [
    "Card",
    "Disk",
    "Experiment",
    "PartitaError",
    "Run",
    "Series",
    "ServedDisk",
    "SharedDisk",
    "Slice",
    "Switch",
    "System",
    "Terminals",
    "Trace",
    "Vm",
    "VmExperiment",
    "__version__",
    "compare",
    "errors",
    "explain",
    "print_progress",
    "run",
    "study",
    "sweep",
    "trace",
]
