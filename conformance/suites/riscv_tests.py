"""Builds riscv-tests' programs of the instruction set.

It needs riscv64-unknown-elf-gcc, and picolibc's headers (picolibc-riscv64-unknown-elf) for the programs with virtual memory.
"""

import os
import re
import subprocess
from pathlib import Path

from sources import cache, checkout, commit_of, submodule

HEADERS = Path("/usr/lib/picolibc/riscv64-unknown-elf/include")


def build():
    """The folder with the programs, and the names of those that the assembler does not know."""
    source = checkout("riscv-tests")
    checkout("riscv-test-env", submodule(source, "env"), source / "env")
    work = cache() / f"riscv-tests-{commit_of('riscv-tests')}"
    work.mkdir(exist_ok=True)
    command = ["make", "-k", f"-j{os.cpu_count()}", "-f", source / "isa/Makefile", f"src_dir={source}/isa", "XLEN=64"]
    # Headers of a C library, for the programs with virtual memory.
    if HEADERS.is_dir():
        command.append(f"RISCV_GCC=riscv64-unknown-elf-gcc -isystem {HEADERS}")
    # Listings are not wanted.
    command.append("RISCV_OBJDUMP=true")
    done = subprocess.run([str(part) for part in command], cwd=work, capture_output=True, text=True, errors="replace")
    missing = re.findall(r"(rv64\w+-[pv]-\w+)\] Error", done.stderr)
    for listing in work.glob("*.dump"):
        listing.unlink()
    return work, missing
