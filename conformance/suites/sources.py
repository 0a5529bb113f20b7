"""Where the public suites come from, and where their copies are kept.

A source is fetched by git from the project's public address at the commit that stands here. SOURCES=FOLDER names a folder
with copies instead: FOLDER/NAME is a checkout or a bare repository. Nothing is written into it.
"""

import os
import subprocess
from pathlib import Path

# Each source's public address and the commit that the documented tables are of.
SOURCES = {
    "riscv-isa-sim": ("https://github.com/riscv-software-src/riscv-isa-sim", "55b4658dbf574ba0b714083ec436ce2cb5be1998"),
    "riscv-tests": ("https://github.com/riscv-software-src/riscv-tests", "34e6b6d1e7936b526075432fb730d89148623484"),
    "riscv-test-env": ("https://github.com/riscv/riscv-test-env", None),
    "riscv-arch-test": ("https://github.com/riscv-non-isa/riscv-arch-test", "cd94912fed2aab75d7d5f115b441da0813fdce8d"),
    "riscv-vector-tests": ("https://github.com/chipsalliance/riscv-vector-tests", "b30515ed611177fd7688fc8129d877698237481a"),
    "riscv-iommu": ("https://github.com/riscv-non-isa/riscv-iommu", "14fd391692c9d0476ba966dbde6095cb5aa6048d"),
}


def cache():
    """Folder of all that is fetched and built: SUITES, or partita/suites in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("SUITES") or Path(home) / "partita" / "suites").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def commit_of(name):
    """Commit that a source's tables are of, in short."""
    return (SOURCES[name][1] or "")[:7]


def run(command, **more):
    """Runs a command; its output is shown only if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", **more)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(str(part) for part in command)}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def checkout(name, commit=None, into=None):
    """A checkout of a source at its commit, or at another one; fetched once."""
    address, usual = SOURCES[name]
    commit = commit or usual
    folder = into or cache() / "sources" / f"{name}-{commit[:7]}"
    if (folder / ".complete").exists():
        return folder
    copies = os.environ.get("SOURCES")
    origin = Path(copies).resolve() / name if copies else address
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        run(["git", "init", "--quiet", folder])
        run(["git", "-C", folder, "remote", "add", "origin", origin])
    run(["git", "-C", folder, "fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*"])
    run(["git", "-C", folder, "checkout", "--quiet", commit])
    (folder / ".complete").touch()
    return folder


def submodule(folder, path):
    """Commit of a submodule of a checkout."""
    return run(["git", "-C", folder, "ls-tree", "HEAD", path]).split()[2]
