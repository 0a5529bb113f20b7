//! The benchmark: what the hypervisor costs, in instructions.
//!
//! QEMU with `-icount shift=0` and one hart counts instructions exactly. One guest, with the same kernel, initial RAM
//! disk, command line and disks, does the same work natively, under Partita and under KVM; the machine is stopped at
//! marks that the guest comes to, and the hart's own count of instructions is read there. So whatever is executed
//! between two marks counts, whoever executes it: the guest, the hypervisor or host below it, and the firmware. What
//! comes before the guest's first instruction, such as the start of KVM's host and of QEMU on it, does not.

mod debugger;
mod exit_latency;
mod footprint;
mod guest;
mod machine;
mod mark;
mod report;
mod tree;
mod vectors;

pub use exit_latency::measure_exit_latency;
pub use guest::Amount;
pub use machine::{Count, MachineError};
pub use report::{Report, Way};
pub use vectors::measure_vectors;

use footprint::Footprint;
use guest_images::{ImagesError, Progress};
use machine::Start;
use report::Figures;
use runner::computer::{ComputerError, Process, firmware};
use runner::qemu::{self, Boot, QemuError};
use runner::report::own_memory as parse_own_memory;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use system::cache::Cache;
use system::image::{self, ImageError, slots::Assignment};
use system::{Bytes, Document, Mistakes, System};

/// Memory of the machine under Partita and of that under KVM, in MiB: the guest's, and enough beside it.
const HOST_MEMORY: u64 = 2048;
/// Longest time from the start of QEMU until the hypervisor says how much memory it takes.
const START: Duration = Duration::from_secs(120);

/// Choice of what is measured, and how often.
#[derive(Debug, Clone)]
pub struct Options {
    /// How much work each guest does.
    pub amount: Amount,
    /// How often everything is measured.
    pub runs: usize,
    /// The ways to run the guest.
    pub ways: Vec<Way>,
    /// The hypervisor's ELF file.
    pub hypervisor: PathBuf,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// The hypervisor's file.
    #[error("{path} is no hypervisor: {error}", path = path.display())]
    Hypervisor {
        /// Which.
        path: PathBuf,
        /// Cause.
        error: object::Error,
    },
    /// The guest's images.
    #[error(transparent)]
    Images(#[from] ImagesError),
    /// The system image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The system.
    #[error("{0}")]
    System(#[from] Mistakes),
    /// QEMU.
    #[error(transparent)]
    Qemu(#[from] QemuError),
    /// The machine.
    #[error(transparent)]
    Computer(#[from] ComputerError),
    /// The firmware.
    #[error(transparent)]
    Firmware(#[from] firmware::NoFirmware),
    /// The board's device tree.
    #[error(transparent)]
    Tree(#[from] tree::TreeProblem),
    /// A machine.
    #[error("{way}: {error}")]
    Machine {
        /// How the guest was run.
        way: Way,
        /// Cause.
        error: MachineError,
    },
    /// A run beside Partita.
    #[error(transparent)]
    Beside(Box<runner::kvm::KvmError>),
    /// The hypervisor is silent.
    #[error("the hypervisor does not say how much memory it takes; its console says:\n{0}")]
    NoMemory(String),
}

impl From<image::archive::TooLarge> for BenchError {
    fn from(error: image::archive::TooLarge) -> Self {
        Self::Image(error.into())
    }
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> BenchError + '_ {
    move |error| BenchError::File {
        path: path.to_owned(),
        error,
    }
}

/// Measures everything.
///
/// # Errors
/// What could not be done and, where that helps, what to do about it.
pub fn measure(
    cache: &Cache,
    options: &Options,
    progress: &Progress,
) -> Result<Report, BenchError> {
    qemu::check()?;
    runner::images::ensure(
        cache,
        &["debian/kernel", "debian/initrd", "debian/disk"],
        progress,
    )?;
    let hypervisor = read(&options.hypervisor)?;
    let footprint = Footprint::read(&hypervisor).map_err(|error| BenchError::Hypervisor {
        path: options.hypervisor.clone(),
        error,
    })?;
    let folder = tempfile::tempdir().map_err(at(&std::env::temp_dir()))?;
    let files = Files::prepare(cache, folder.path(), options)?;

    progress.step("asking the hypervisor how much memory it takes");
    let memory = own_memory(cache, &files, options)?;
    let mut counts: Vec<(Way, Vec<Count>)> = Vec::new();
    for way in &options.ways {
        let (arguments, start) = match way {
            Way::Native => (native(cache, &files)?, Start::Native),
            Way::Partita => {
                let returns = footprint.returns.clone();
                (partita(cache, &files, options)?, Start::Hypervisor(returns))
            }
            Way::Kvm => (kvm(cache, &files, options, progress)?, Start::Nested),
        };
        let mut runs = Vec::new();
        for run in 1..=options.runs {
            progress.step(&format!("counting {way}, run {run} of {}", options.runs));
            let began = Instant::now();
            let (count, console) = machine::count(&arguments, &start, folder.path())
                .map_err(|error| BenchError::Machine { way: *way, error })?;
            progress.step(&format!("{way} took {} s", began.elapsed().as_secs()));
            keep_console(*way, &console);
            runs.push(count);
        }
        counts.push((*way, runs));
    }
    Ok(Report::new(Figures {
        amount: options.amount,
        counts,
        loaded: footprint.loaded,
        memory,
    }))
}

/// Keeps what the machine said where the user asked for it.
fn keep_console(way: Way, console: &str) {
    if let Some(folder) = std::env::var_os("PARTITA_BENCH_CONSOLES") {
        // It helps in the search for a fault, and the run needs it for nothing else.
        let _ = std::fs::write(Path::new(&folder).join(way.name()), console);
    }
}

/// The files of the guest.
#[derive(Debug)]
struct Files {
    folder: PathBuf,
    kernel: PathBuf,
    initrd: PathBuf,
    programs: PathBuf,
    pattern: PathBuf,
    zeros: PathBuf,
    command_line: String,
}

impl Files {
    fn prepare(cache: &Cache, folder: &Path, options: &Options) -> Result<Self, BenchError> {
        let debian = cache.folder().join("debian");
        let files = Self {
            folder: folder.to_owned(),
            kernel: debian.join("kernel"),
            initrd: folder.join("initrd"),
            programs: debian.join("disk"),
            pattern: folder.join("pattern"),
            zeros: folder.join("zeros"),
            command_line: options.amount.command_line(),
        };
        let initrd = guest::initrd(&read(&debian.join("initrd"))?)?;
        write(&files.initrd, &initrd)?;
        write(&files.pattern, &guest::pattern_disk())?;
        // Only its name is used.
        write(&files.zeros, &[])?;
        Ok(files)
    }

    /// A system with one VM that boots `kernel` and has both disks.
    fn system(&self, memory: u64, initrd: &Path, command_line: &str) -> Result<System, BenchError> {
        let [kernel, initrd, programs] = [&self.kernel, initrd, &self.programs].map(quoted);
        let [pattern, zeros] = [&self.pattern, &self.zeros].map(|path| quoted(path));
        let command_line = quoted_text(command_line);
        let text = format!(
            "harts = 1\nmemory = \"{memory} MiB\"\n[vm.guest]\nvcpus = 1\nmemory = \"{} MiB\"\nshare = 100\n\
             kernel = {kernel}\ninitrd = {initrd}\ncommand-line = {command_line}\n\
             disks = [{{ file = {programs} }}, {{ file = {pattern} }}, {{ file = {zeros} }}]\n",
            guest::MEMORY
        );
        self.read_system(text)
    }

    /// QEMU's arguments with the disk of zeros in the place of the file that stands for it.
    fn with_zeros(&self, arguments: Vec<OsString>) -> Vec<OsString> {
        let name = format!("file={},", self.zeros.display());
        let replace = |argument: OsString| match argument.to_string_lossy().strip_prefix(&name) {
            Some(options) => {
                let id = options.split(',').find(|option| option.starts_with("id="));
                format!("{},{}", guest::ZEROS_DRIVE, id.unwrap_or_default()).into()
            }
            None => argument,
        };
        arguments.into_iter().map(replace).collect()
    }

    /// Two VMs with four vCPUs each.
    fn two_vms(&self) -> Result<System, BenchError> {
        let [kernel, initrd] = [&self.kernel, &self.initrd].map(|path| quoted(path));
        let vm = |name: &str| {
            format!(
                "[vm.{name}]\nvcpus = 4\nmemory = \"{} MiB\"\nshare = 50\nkernel = {kernel}\ninitrd = {initrd}\n\
                 command-line = \"console=ttyS0 quiet\"\n",
                guest::MEMORY
            )
        };
        self.read_system(format!(
            "harts = 4\nmemory = \"{HOST_MEMORY} MiB\"\n{}{}",
            vm("one"),
            vm("two")
        ))
    }

    fn read_system(&self, text: String) -> Result<System, BenchError> {
        let document = Document::new(&self.folder.join("system.toml"), text, &[])?;
        Ok(System::read(&document)?)
    }
}

/// A path as a TOML string.
fn quoted(path: &Path) -> String {
    quoted_text(&path.display().to_string())
}

/// A text as a TOML string, whose escapes are those of JSON.
fn quoted_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The guest by itself: QEMU's arguments are those of a system, with the guest in the hypervisor's place.
fn native(cache: &Cache, files: &Files) -> Result<Vec<OsString>, BenchError> {
    let system = files.system(HOST_MEMORY, &files.initrd, &files.command_line)?;
    let memory = guest::MEMORY;
    let mut arguments = arguments(
        cache,
        files,
        system,
        memory,
        &files.initrd,
        &files.command_line,
    )?;
    let dump = files.folder.join("tree");
    // Of an option that is given twice, QEMU takes both parts.
    let mut command = arguments.clone();
    let destination = format!("dumpdtb={}", dump.display());
    command.extend(["-machine".into(), destination.into()]);
    let (sender, _receiver) = mpsc::channel();
    let process = Process::start(&command, sender).map_err(QemuError::Start)?;
    process.end(false).map_err(QemuError::Start)?;
    let tree = tree::without_devices(&read(&dump)?)?;
    write(&dump, &tree)?;
    arguments.extend(["-dtb".into(), dump.into()]);
    Ok(arguments)
}

/// The guest under KVM, whose host is in the hypervisor's place.
fn kvm(
    cache: &Cache,
    files: &Files,
    options: &Options,
    progress: &Progress,
) -> Result<Vec<OsString>, BenchError> {
    let base = guest_images::kvm_host::ensure(cache, progress)?;
    let initrd = files.folder.join("kvm-initrd");
    let mut archive = image::archive::Writer::new();
    archive.folder("guest")?;
    archive.file("guest/kernel", 0o644, &read(&files.kernel)?)?;
    archive.file("guest/initrd", 0o644, &read(&files.initrd)?)?;
    archive.file(
        "guest/command-line",
        0o644,
        options.amount.command_line().as_bytes(),
    )?;
    write(&initrd, &[read(&base)?, archive.finish()].concat())?;
    let system = files.system(HOST_MEMORY, &files.initrd, &files.command_line)?;
    let command_line = format!("{} partita.memory={}", guest::KERNEL_OPTIONS, guest::MEMORY);
    arguments(cache, files, system, HOST_MEMORY, &initrd, &command_line)
}

/// QEMU's arguments for the board of `system` with a Linux in the hypervisor's place.
fn arguments(
    cache: &Cache,
    files: &Files,
    mut system: System,
    memory: u64,
    initrd: &Path,
    command_line: &str,
) -> Result<Vec<OsString>, BenchError> {
    system.memory.value = Bytes(memory << 20);
    let boot = Boot {
        firmware: &firmware::find()?,
        hypervisor: &files.kernel,
        image: initrd,
    };
    let slots = Assignment::of(&system);
    let mut arguments = files.with_zeros(qemu::arguments(&system, &slots, boot, cache));
    arguments.extend(["-append".into(), command_line.into()]);
    Ok(arguments)
}

fn partita(cache: &Cache, files: &Files, options: &Options) -> Result<Vec<OsString>, BenchError> {
    let system = files.system(HOST_MEMORY, &files.initrd, &files.command_line)?;
    hypervised(cache, files, options, &system)
}

/// QEMU's arguments for a system under Partita.
fn hypervised(
    cache: &Cache,
    files: &Files,
    options: &Options,
    system: &System,
) -> Result<Vec<OsString>, BenchError> {
    let slots = Assignment::of(system);
    let image = files.folder.join("image");
    write(&image, &image::compose(system, &slots, cache, None)?)?;
    let boot = Boot {
        firmware: &firmware::find()?,
        hypervisor: &options.hypervisor,
        image: &image,
    };
    Ok(files.with_zeros(qemu::arguments(system, &slots, boot, cache)))
}

/// The memory in KiB that the hypervisor takes for itself with two VMs of four vCPUs, as it says at its start.
fn own_memory(cache: &Cache, files: &Files, options: &Options) -> Result<u64, BenchError> {
    let arguments = hypervised(cache, files, options, &files.two_vms()?)?;
    let (sender, receiver) = mpsc::channel();
    let start = |error| BenchError::Qemu(QemuError::Start(error));
    let process = Process::start(&arguments, sender).map_err(start)?;
    let began = Instant::now();
    let mut text = String::new();
    let found = loop {
        let left = START.saturating_sub(began.elapsed());
        match receiver.recv_timeout(left) {
            Ok(piece) if !piece.is_empty() => text += &String::from_utf8_lossy(&piece),
            _ => break None,
        }
        if let Some(memory) = parse_own_memory(&text) {
            break Some(memory);
        }
    };
    process.end(true).map_err(start)?;
    found.ok_or(BenchError::NoMemory(text))
}

fn read(path: &Path) -> Result<Vec<u8>, BenchError> {
    std::fs::read(path).map_err(at(path))
}

fn write(path: &Path, data: &[u8]) -> Result<(), BenchError> {
    std::fs::write(path, data).map_err(at(path))
}
