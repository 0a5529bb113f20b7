//! How fast the machine is, beside QEMU counting instructions, in one run: `cargo bench --bench speed`.
//!
//! Times are the host's processor time of each process, so that other load on the host counts for
//! little, with start and end. The instructions of QEMU's runs are those of the machine's functional mode:
//! both run the same software.

#[path = "../tests/program/mod.rs"]
mod program;
#[path = "vectors/mod.rs"]
mod vectors;

use std::error::Error;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use program::{
    Register, add, addi, andi, auipc, beq, bne, elf, jal, jalr, ld, lui, mul, power_off, sd, slli,
    srli, xor,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The profile of timing mode.
const PROFILE: &str = "k3-class";
/// Rounds of the program, 21 or 22 instructions each: a little more than a billion in all.
const ROUNDS: u32 = 11_500 << 12;
/// Instructions measured while every hart is busy.
const BUSY: u64 = 2_000_000_000;
/// Text that the guests' first process prints before it begins to work.
const START: &str = "partita-guest start";
/// The same, as the machine is told where to write a checkpoint.
const MARKER: &str = "text=partita-guest start";
/// Clock ticks a second in /proc (proc(5): sysconf(_SC_CLK_TCK), 100 on Linux).
const TICKS: f64 = 100.0;

/// Random numbers, a table in memory, multiplications, calls, and branches that cannot be foreseen.
fn program() -> Vec<u32> {
    let (ra, rounds, seed, sum, odd, table): (Register, Register, _, _, _, _) =
        (1, 9, 10, 11, 12, 8);
    let (a, b, c) = (5, 6, 7);
    let start = [auipc(table, 1), lui(rounds, ROUNDS >> 12), addi(seed, 0, 1)];
    let round = [
        slli(a, seed, 13),
        xor(seed, seed, a),
        srli(a, seed, 7),
        xor(seed, seed, a),
        slli(a, seed, 17),
        xor(seed, seed, a),
        andi(b, seed, 0x7f8),
        add(b, b, table),
        ld(c, b, 0),
        add(c, c, seed),
        sd(c, b),
        mul(c, c, seed),
        add(sum, sum, c),
        jal(ra, 28), // the subroutine
        andi(a, seed, 1),
        beq(a, 0, 8),
        addi(odd, odd, 1),
        addi(rounds, rounds, -1),
        bne(rounds, 0, -72),
    ];
    let subroutine = [srli(a, sum, 3), xor(sum, sum, a), jalr(0, ra)];
    let mut words = [&start[..], &round, &[jal(0, 16)], &subroutine].concat();
    words.extend(power_off(a, b));
    words
}

/// Two neighbouring times of a process's `stat` together, in seconds. `first` counts from the field behind the name.
fn process_seconds(process: &str, first: usize) -> Outcome<f64> {
    let file = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&file)?;
    // The second field, the name in parentheses, may hold spaces.
    let rest = text.rsplit(')').next().ok_or_else(|| file.clone())?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |index: usize| -> Outcome<f64> {
        Ok(fields.get(index).ok_or_else(|| file.clone())?.parse()?)
    };
    Ok((ticks(first)? + ticks(first + 1)?) / TICKS)
}

/// Processor time in seconds that children have used which have ended: cutime and cstime, fields 16 and 17.
fn children_seconds() -> Outcome<f64> {
    process_seconds("self", 13)
}

/// Processor time in seconds that a process has used: utime and stime, fields 14 and 15.
fn own_seconds(process: u32) -> Outcome<f64> {
    process_seconds(&process.to_string(), 11)
}

/// Runs a command to its end; gives its processor time and what it said.
fn timed(command: &mut Command) -> Outcome<(f64, String)> {
    let before = children_seconds()?;
    let output = command.stdin(Stdio::null()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let seconds = children_seconds()? - before;
    match output.status.code() {
        // A limit of instructions ends a run with 124.
        Some(0 | 124) => Ok((seconds, errors)),
        _ => Err(format!("{command:?}: {}: {errors}", output.status).into()),
    }
}

/// One line of the table.
fn show(what: &str, on: &str, instructions: u64, seconds: f64, peak: Option<u64>) {
    let rate = instructions as f64 / seconds / 1e6;
    let memory = peak.map_or_else(|| "-".to_owned(), |mib| mib.to_string());
    println!("| {what} | {on} | {instructions} | {seconds:.2} | {rate:.0} | {memory} |");
}

/// Instructions and MiB of the host's memory at most, from the machine's statistics.
fn statistics(text: &str) -> Outcome<(u64, u64)> {
    let line = text.lines().find(|line| line.starts_with("machine: "));
    let line = line.ok_or_else(|| format!("no statistics: {text}"))?;
    let before = |unit: &str| -> Outcome<u64> {
        let (front, _) = line.split_once(unit).ok_or(unit)?;
        Ok(front.rsplit(' ').next().ok_or(unit)?.parse()?)
    };
    Ok((before(" instructions")?, before(" MiB")?))
}

/// QEMU, which counts instructions.
fn emulator(arguments: &[&str]) -> Command {
    let mut command = Command::new("qemu-system-riscv64");
    command
        .args([
            "-M",
            "virt,aia=aplic-imsic,aia-guests=7",
            "-nographic",
            "-no-reboot",
        ])
        .args(["-icount", "shift=0"])
        .args(arguments);
    command
}

/// Runs a command to its end; gives the processor time that it uses after it has printed a text.
fn timed_after(command: &mut Command, text: &str) -> Outcome<f64> {
    let before = children_seconds()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut output = child.stdout.take().ok_or("no output")?;
    let (mut printed, mut start) = (Vec::new(), None);
    let mut buffer = [0; 4096];
    loop {
        let count = output.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        printed.extend_from_slice(&buffer[..count]);
        if start.is_none() && String::from_utf8_lossy(&printed).contains(text) {
            start = Some(own_seconds(child.id())?);
        }
    }
    let status = child.wait()?;
    let start = start.ok_or_else(|| format!("ended with {status} before it said {text}"))?;
    Ok(children_seconds()? - before - start)
}

fn show_emulator(what: &str, instructions: u64, seconds: Outcome<f64>) {
    match seconds {
        Ok(seconds) => show(what, "QEMU -icount", instructions, seconds, None),
        Err(error) => println!("QEMU cannot be measured: {error}"),
    }
}

struct Bench {
    folder: PathBuf,
}

impl Bench {
    fn machine(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_machine"));
        command.args(arguments).arg("--statistics");
        command
    }

    /// Runs the machine in one mode and shows the line; gives the instructions.
    fn measure(&self, what: &str, arguments: &[&str], mode: &str) -> Outcome<u64> {
        let options = ["--profile", PROFILE, "--mode", mode];
        let (seconds, text) = timed(self.machine(arguments).args(options))?;
        let (instructions, peak) = statistics(&text)?;
        show(what, mode, instructions, seconds, Some(peak));
        Ok(instructions)
    }

    fn emulator(&self, what: &str, instructions: u64, arguments: &[&str]) {
        let measured = timed(&mut emulator(arguments)).map(|(seconds, _)| seconds);
        show_emulator(what, instructions, measured);
    }

    fn program(&self) -> Outcome<()> {
        let file = self.folder.join("program");
        std::fs::write(&file, elf(&program()))?;
        let file = path(&file)?;
        let arguments = ["--bare", file, "--memory", "16"];
        let what = "program, 1 hart";
        let instructions = self.measure(what, &arguments, "functional")?;
        self.measure(what, &arguments, "timing")?;
        self.emulator(what, instructions, &["-m", "128", "-bios", file]);
        Ok(())
    }

    fn boot(&self, images: &Path, harts: &str) -> Outcome<()> {
        let guest = Guest::new(images, "partita.workload=boot", harts)?;
        let what = format!("boot, harts: {harts}");
        let instructions = self.measure(&what, &guest.of_machine(), "functional")?;
        self.measure(&what, &guest.of_machine(), "timing")?;
        self.emulator(&what, instructions, &guest.of_emulator());
        Ok(())
    }

    /// Boots a guest in functional mode until its first process begins to work; gives the checkpoint.
    fn booted(&self, guest: &Guest, name: &str) -> Outcome<String> {
        let checkpoint = self.folder.join(name);
        let checkpoint = path(&checkpoint)?.to_owned();
        let mode = ["--profile", PROFILE, "--mode", "functional"];
        let end = ["--checkpoint-at", MARKER, "--checkpoint", &checkpoint];
        timed(
            self.machine(&guest.of_machine())
                .args(mode)
                .args(end)
                .stdout(Stdio::null()),
        )?;
        Ok(checkpoint)
    }

    /// Four harts that all have something to do, from one checkpoint in both modes; then a piece of the same work from
    /// its beginning to power-off, on QEMU too.
    fn busy(&self, images: &Path) -> Outcome<()> {
        let guest = Guest::new(images, "partita.workload=hackbench", "4")?;
        let checkpoint = self.booted(&guest, "busy")?;
        let instructions = BUSY.to_string();
        let limit = ["--max-instructions", &instructions];
        let arguments = [&["--restore", &checkpoint][..], &limit].concat();
        for mode in ["functional", "timing"] {
            self.measure("hackbench, 4 harts", &arguments, mode)?;
        }
        // What a restore costs that then does next to nothing.
        let arguments = ["--restore", &checkpoint, "--max-cycles", "1"];
        self.measure("restore of 1 GiB", &arguments, "functional")?;
        let once = "partita.workload=hackbench partita.seconds=0";
        let guest = Guest::new(images, once, "4")?;
        let checkpoint = self.booted(&guest, "once")?;
        let what = "hackbench once, 4 harts";
        let instructions = self.measure(what, &["--restore", &checkpoint], "functional")?;
        let measured = timed_after(&mut emulator(&guest.of_emulator()), START);
        show_emulator(what, instructions, measured);
        Ok(())
    }
}

/// A Debian guest.
struct Guest {
    kernel: String,
    initrd: String,
    append: String,
    harts: String,
}

impl Guest {
    fn new(images: &Path, workload: &str, harts: &str) -> Outcome<Self> {
        Ok(Self {
            kernel: path(&images.join("kernel"))?.to_owned(),
            initrd: path(&images.join("initrd"))?.to_owned(),
            append: format!("console=ttyS0 quiet {workload}"),
            harts: harts.to_owned(),
        })
    }

    fn of_machine(&self) -> [&str; 10] {
        [
            "--kernel",
            &self.kernel,
            "--initrd",
            &self.initrd,
            "--append",
            &self.append,
            "--harts",
            &self.harts,
            "--memory",
            "1024",
        ]
    }

    fn of_emulator(&self) -> [&str; 10] {
        [
            "-m",
            "1024",
            "-smp",
            &self.harts,
            "-kernel",
            &self.kernel,
            "-initrd",
            &self.initrd,
            "-append",
            &self.append,
        ]
    }
}

fn path(path: &Path) -> Outcome<&str> {
    Ok(path.to_str().ok_or("a path that is not text")?)
}

/// Where `partita images` leaves the Debian guest.
fn images() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("PARTITA_CACHE")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("partita")))
        .or_else(|| Some(variable("HOME")?.join(".cache/partita")))?;
    let images = cache.join("debian");
    images.join("kernel").is_file().then_some(images)
}

fn main() -> Outcome<()> {
    let folder = std::env::temp_dir().join(format!("machine-speed-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let bench = Bench { folder };
    if std::env::args().any(|argument| argument == "vectors") {
        let measured = vectors::measure(&bench.folder);
        std::fs::remove_dir_all(&bench.folder)?;
        return measured;
    }
    println!("| work | computer | instructions | host s | MIPS | MiB of the host at most |");
    println!("|---|---|---|---|---|---|");
    let measured = bench.program().and_then(|()| match images() {
        Some(images) => {
            bench.boot(&images, "1")?;
            bench.boot(&images, "4")?;
            bench.busy(&images)
        }
        None => {
            println!("No Debian guest is in the cache: run `partita images` first.");
            Ok(())
        }
    });
    let measured = measured.and_then(|()| vectors::measure(&bench.folder));
    std::fs::remove_dir_all(&bench.folder)?;
    measured
}
