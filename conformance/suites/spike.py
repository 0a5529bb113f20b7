"""Spike, the RISC-V ISA simulator, built from its public source into the cache."""

import os
import shutil
from pathlib import Path

from sources import cache, checkout, commit_of, run


def install():
    """Folder that Spike is installed in: SPIKE, or one of the cache. Building takes ten minutes of a processor and more."""
    given = os.environ.get("SPIKE")
    folder = Path(given).resolve() if given else cache() / f"spike-{commit_of('riscv-isa-sim')}"
    if (folder / "bin" / "spike").exists():
        return folder
    if shutil.which("dtc") is None:
        raise SystemExit("Spike needs dtc: install device-tree-compiler")
    source = checkout("riscv-isa-sim")
    build = cache() / "build-spike"
    build.mkdir(exist_ok=True)
    print("building Spike", flush=True)
    without = ["--without-boost", "--without-boost-asio", "--without-boost-regex"]
    run([source / "configure", f"--prefix={folder}", *without, "CFLAGS=-O1", "CXXFLAGS=-O1"], cwd=build)
    run(["make", f"-j{os.cpu_count()}"], cwd=build)
    run(["make", "install"], cwd=build)
    shutil.rmtree(build)
    return folder
