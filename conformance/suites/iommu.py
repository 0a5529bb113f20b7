"""The reference model of the RISC-V IOMMU specification, built with our harness around it."""

import subprocess
from pathlib import Path

import sources

HARNESS = Path(__file__).resolve().parent.parent / "iommu" / "harness.c"


def build():
    """The program that runs the model; built once for each state of the harness."""
    library = sources.checkout("riscv-iommu") / "iommu_ref_model" / "libiommu"
    program = sources.cache() / f"iommu-model-{sources.commit_of('riscv-iommu')}"
    if program.exists() and program.stat().st_mtime > HARNESS.stat().st_mtime:
        return program
    files = sorted((library / "src").glob("*.c"))
    # The model's own warnings are its own.
    command = ["gcc", "-O1", "-w", "-I", library / "include", *files, HARNESS, "-o", program]
    subprocess.run([str(part) for part in command], check=True)
    return program


if __name__ == "__main__":
    print(build())
