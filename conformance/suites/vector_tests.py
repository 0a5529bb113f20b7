#!/usr/bin/env python3
"""Builds chipsalliance's riscv-vector-tests for one length of the vector registers, as programs that check themselves.

    conformance/suites/vector_tests.py VLEN [EVERY [PATTERN]]

VLEN is 128, 256, 512 or 1024. Of each instruction's files every EVERYth is built, from the first on; all without it. PATTERN
is a regular expression for the instructions' names. All that the suite has for 128 bits takes a processor half an hour, and
more bits take longer. The suite's own steps are done: its generator makes programs of whose results Spike tells the values, its merger puts these values
into the programs, and Spike runs what comes out. It needs go, g++, clang and ld.lld from LLVM 18 on. `make conformance-all`
calls it and runs the programs on the machine.
"""

import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import subprocess

import spike
from sources import cache, checkout, commit_of, run, submodule

LENGTHS = (128, 256, 512, 1024)
# What the suite has and the machine has: without Zvfbfmin and Zvfbfwma.
MARCH = "rv64gcv_zvbb_zvbc_zfh_zvfh_zvkg_zvkned_zvknha_zvksed_zvksh"
# The suite's own level of testfloat3: 1 is the smaller.
FLOAT_LEVEL = 1

# Some instructions of each group, for lengths at which all would take hours.
SOME = """vle64.v vse32.v vlse16.v vsse64.v vluxei32.v vsoxei16.v vlseg3e32.v vsseg2e64.v vlm.v vsm.v vl4re32.v vs8r.v
vadd.vv vsub.vx vrsub.vi vwadd.vv vwsubu.wv vzext.vf4 vsext.vf8 vadc.vvm vmsbc.vxm vand.vv vsll.vi vnsra.wv vmseq.vv vmin.vx
vmul.vv vmulh.vv vdiv.vv vremu.vx vwmul.vv vmacc.vv vwmacc.vx vmerge.vvm vsadd.vv vaadd.vx vsmul.vv vssrl.vv vnclip.wi
vfadd.vv vfwmul.vv vfmacc.vf vfsqrt.v vfdiv.vv vfrsqrt7.v vfrec7.v vfclass.v vfcvt.x.f.v vfncvt.f.f.w vmfle.vv
vredsum.vs vwredsum.vs vfredosum.vs vfredusum.vs vmand.mm vcpop.m vfirst.m vmsbf.m viota.m vid.v vslideup.vx
vslide1down.vx vrgather.vv vrgatherei16.vv vcompress.vm vmv4r.v vclmul.vv vclmulh.vx vror.vi vwsll.vv vandn.vv vbrev.v vcpop.v
vaesem.vv vaeskf1.vi vsha2ch.vv vsm4r.vs vsm3c.vi vghsh.vv"""
SOME = "^(" + "|".join(re.escape(name) for name in SOME.split()) + ")$"


def clang():
    """The newest clang that is here."""
    names = ["clang", *(f"clang-{version}" for version in range(30, 17, -1))]
    for name in names:
        found = shutil.which(name)
        version = re.search(r"version (\d+)", run([found, "--version"])) if found else None
        if version and int(version[1]) >= 18:
            return found
    raise SystemExit("no clang of version 18 or newer is here: install clang-19 and lld-19")


def tools(source, simulator):
    """The suite's generator and merger, and its Spike that tells results."""
    build = source / "build"
    build.mkdir(exist_ok=True)
    if not (build / "pspike").exists():
        run(["go", "build", "-o", build / "generator"], cwd=source)
        run(["go", "build", "-o", build / "merger", "merger/merger.go"], cwd=source)
        libraries = [f"-L{simulator}/lib", "-lriscv", "-lfesvr"]
        headers = f"-I{simulator}/include"
        run(["g++", "-O1", "-std=c++20", headers, source / "pspike/pspike.cc", *libraries, "-o", build / "pspike"])
    return build


def generate(source, build, work, length, pattern):
    """Makes the first stage's programs, and says which there are."""
    stage, generated = work / "stage1", work / "generated"
    if not generated.exists() or generated.read_text() != pattern:
        shutil.rmtree(work, ignore_errors=True)
        stage.mkdir(parents=True)
        options = [f"-VLEN={length}", "-XLEN=64", "-split=10000", f"-testfloat3level={FLOAT_LEVEL}", f"-march={MARCH}"]
        options.append(f"-pattern={pattern}")
        run([build / "generator", *options, "-stage1output", stage, "-configs", source / "configs/"], cwd=source)
        generated.write_text(pattern)
    return sorted(path.stem for path in stage.glob("*.S"))


def chosen(names, every):
    """Every so-manyth of each instruction's files."""
    return [name for name in names if int(name.rsplit("-", 1)[1]) % every == 0]


class Builder:
    """Builds one program after the other."""

    def __init__(self, source, simulator, work, length):
        environment = source / "env/riscv-test-env/p"
        self.compile = [clang(), "--target=riscv64-unknown-elf", f"-march={MARCH}", "-mabi=lp64d", "-mcmodel=medany"]
        self.compile += ["-nostdlib", "-static", "-fuse-ld=lld", "-DENTROPY=0xdeadbeef", "-DLFSR_BITS=9"]
        self.compile += [f"-I{environment}", f"-I{source}/macros/general", f"-T{environment}/link.ld"]
        self.teller, self.spike = source / "build/pspike", simulator / "bin/spike"
        self.isa = f"--isa={MARCH}_zvl{length}b"
        self.work = work
        self.environment = {**os.environ, "LD_LIBRARY_PATH": f"{simulator}/lib"}

    def call(self, command):
        """Runs a command for at most two minutes; None if it failed."""
        command = [str(part) for part in command]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=self.environment)
        except subprocess.TimeoutExpired:
            return None
        return done.stdout if done.returncode == 0 else None

    def tell(self, name):
        """Writes the results that Spike tells of a program."""
        patch, program = self.work / "patches" / f"{name}.patch", self.work / "first" / name
        if patch.exists():
            return True
        if self.call([*self.compile, self.work / "stage1" / f"{name}.S", "-o", program]) is None:
            return False
        told = self.call([self.teller, self.isa, program])
        program.unlink()
        if told is not None:
            patch.write_text(told)
        return told is not None

    def finish(self, name):
        """Builds the program that checks itself; Spike has to pass it."""
        program = self.work / "programs" / name
        if program.exists():
            return True
        new = program.with_suffix(".o")
        if self.call([*self.compile, self.work / "stage2" / f"{name}.S", "-o", new]) is None:
            return False
        (self.work / "stage2" / f"{name}.S").unlink()
        if self.call([self.spike, self.isa, new]) is None:
            return False
        new.rename(program)
        return True


def merge(build, work, names):
    """Puts the results of these programs into them, by the suite's merger, which wants all of a folder."""
    part = work / "part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for name in names:
        (part / f"{name}.S").symlink_to(work / "stage1" / f"{name}.S")
    folders = ["-stage1output", part, "-stage2output", work / "stage2", "-stage2patch", work / "patches"]
    run([build / "merger", *folders])
    shutil.rmtree(part)


def build(length, every=1, pattern=".*"):
    """The folder with a length's programs, and the names of those that cannot be built or that Spike fails."""
    simulator = spike.install()
    source = checkout("riscv-vector-tests")
    environment = source / "env/riscv-test-env"
    checkout("riscv-test-env", submodule(source, "env/riscv-test-env"), environment)
    built = tools(source, simulator)
    work = cache() / f"vector-tests-{commit_of('riscv-vector-tests')}" / f"{length}"
    names = chosen(generate(source, built, work, length, pattern), every)
    for folder in ("first", "patches", "stage2", "programs"):
        (work / folder).mkdir(exist_ok=True)
    builder = Builder(source, simulator, work, length)
    missing = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        to_do = [name for name in names if not (work / "programs" / name).exists()]
        told = dict(zip(to_do, pool.map(builder.tell, to_do)))
        missing += [name for name in to_do if not told[name]]
        to_do = [name for name in to_do if told[name]]
        if to_do:
            merge(built, work, to_do)
        finished = dict(zip(to_do, pool.map(builder.finish, to_do)))
        missing += [name for name in to_do if not finished[name]]
    return work / "programs", missing


def main():
    if len(sys.argv) not in (2, 3, 4) or sys.argv[1] not in map(str, LENGTHS):
        sys.exit(__doc__)
    folder, missing = build(int(sys.argv[1]), *map(int, sys.argv[2:3]), *sys.argv[3:])
    for name in missing:
        print(f"{name}: cannot be built, or Spike fails it")
    print(f"{folder}: {len(list(Path(folder).iterdir()))} programs, {len(missing)} missing")


if __name__ == "__main__":
    main()
