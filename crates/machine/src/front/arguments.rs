//! Arguments of the command line.

use std::path::PathBuf;

use crate::checkpoint::Point;
use quantity::{Bytes, Duration};

/// Modes of simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ModeChoice {
    /// Every instruction takes a cycle.
    Functional,
    /// Costs by the profile's models.
    Timing,
}

const AFTER_HELP: &str = "\
On a terminal every key goes to the machine, Ctrl-C too; Ctrl-] and then q switches it off.

Exit codes:
  0    the machine powered off or asked for a reset, or the bare program ended with 0
  1..  the code that the program gave: by HTIF's tohost, the test finisher or an SBI call; 255 for more
  2    the command line has mistakes
  124  a limit was reached (--max-instructions, --max-cycles, --max-time, --timeout); the harts' state is shown
  125  the machine could not be started; nothing has run
  126  every hart waited and nothing would ever have woken one; the harts' state is shown
  130  the run was broken off

Examples:
  Debian's kernel on four harts, with a disk whose changes are thrown away:
    partita machine --harts 4 --memory '2 GiB' --kernel Image --initrd initrd --disk disk.raw --snapshot
  A bare program with its registers' end state, should it loop for ever:
    partita machine --bare program.elf --max-instructions 1000000
  The same boot measured, with the hardware monitor's figures:
    partita machine --kernel Image --initrd initrd --profile rocket-h --monitor figures.json";

/// Boots firmware and a kernel on the bare machine, or runs a bare-metal program.
#[derive(Debug, clap::Parser)]
#[command(name = "machine", after_help = AFTER_HELP)]
pub struct Arguments {
    /// Kernel: a raw Image or an ELF file.
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Initial RAM disk.
    #[arg(long, value_name = "FILE")]
    pub initrd: Option<PathBuf>,
    /// The kernel's command line.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub append: String,
    /// Firmware that runs in M-mode; without it, OpenSBI's fw_dynamic where distributions put it, or what
    /// PARTITA_FIRMWARE names.
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// A bare-metal ELF program to run in M-mode instead of firmware and kernel.
    #[arg(long, value_name = "ELF", conflicts_with_all = ["kernel", "initrd"])]
    pub bare: Option<PathBuf>,
    /// Number of harts.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub harts: u32,
    /// RAM, such as '2 GiB' or 512MiB; without a unit in MiB.
    #[arg(long, value_name = "SIZE", value_parser = memory, default_value = "1 GiB")]
    pub memory: Bytes,
    /// A disk: a raw image. What the machine writes goes to the file, which no other machine can use
    /// meanwhile. May be given many times.
    #[arg(long = "disk", value_name = "FILE")]
    pub disks: Vec<PathBuf>,
    /// Leaves the disks' files as they are: what is written is gone after the run.
    #[arg(long)]
    pub snapshot: bool,
    /// A disk behind a host bridge of PCI, as --disk. May be given many times.
    #[arg(long = "pci-disk", value_name = "FILE")]
    pub pci_disks: Vec<PathBuf>,
    /// A network card behind a host bridge of PCI, as --network.
    #[arg(long)]
    pub pci_network: bool,
    /// An IOMMU behind which the devices on PCI are.
    #[arg(long)]
    pub iommu: bool,
    /// A network card; at 10.0.2.2 somebody answers ARP and ping. It reaches neither host nor world.
    #[arg(long)]
    pub network: bool,
    /// A source of random numbers, which follow from the seed.
    #[arg(long)]
    pub rng: bool,
    /// A port of a virtio console, which writes to this file and hears nothing. May be given many times;
    /// the first is the console port, hvc0 to Linux.
    #[arg(long = "port", value_name = "FILE")]
    pub ports: Vec<PathBuf>,
    /// Guest interrupt files a hart.
    #[arg(long, value_name = "N")]
    pub guest_interrupt_files: Option<u8>,
    /// Measures: what instructions cost comes from this profile, the name of one that ships or a
    /// TOML file. Without it every instruction costs one cycle.
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// Mode of simulation; with a profile the default is timing. `functional` with a profile starts
    /// the profile's computer at a cycle an instruction, for a checkpoint that is measured later.
    #[arg(long, value_name = "MODE", value_enum)]
    pub mode: Option<ModeChoice>,
    /// Writes the hardware monitor's figures as JSON.
    #[arg(long, value_name = "FILE")]
    pub monitor: Option<PathBuf>,
    /// Seed of everything random.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Ends the run after this many instructions of all harts.
    #[arg(long, value_name = "N")]
    pub max_instructions: Option<u64>,
    /// Ends the run after this many cycles of machine time.
    #[arg(long, value_name = "N")]
    pub max_cycles: Option<u64>,
    /// Ends the run at this machine time, such as '10 s' or 500ms.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub max_time: Option<Duration>,
    /// Ends the run after this many seconds of the host's time; where it ends then depends on the host.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// Writes a checkpoint to the file of --checkpoint and ends the run, at the end of the quantum in
    /// which this happens: machine time reaches `cycles=N`, all harts together have retired
    /// `instructions=N`, or a console has shown `text=TEXT`.
    #[arg(long, value_name = "WHEN", requires = "checkpoint")]
    pub checkpoint_at: Option<Point>,
    /// Where to write the checkpoint; without --checkpoint-at, when the run reaches its limit.
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Goes on from a checkpoint instead of booting. What the machine is made of comes from there;
    /// a --seed gives it new start phases.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernel", "initrd", "bare", "ports", "harts", "memory", "append", "firmware", "network", "pci_network", "iommu", "rng", "guest_interrupt_files"])]
    pub restore: Option<PathBuf>,
    /// Writes what happens on the harts and in the devices as a timeline for Perfetto's viewer
    /// (Trace Event Format, JSON); some hundred bytes an event.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Waits for gdb on this port of the host's loopback address before the first instruction, 0 for
    /// any free port: `gdb -ex 'target remote :PORT'`.
    #[arg(long, value_name = "PORT")]
    pub gdb: Option<u16>,
    /// Writes the memory between begin_signature and end_signature to a file.
    #[arg(long, value_name = "FILE")]
    pub signature: Option<PathBuf>,
    /// Looks for fences that software leaves out: reports each first use of a page whose translation
    /// has changed since the hart last used it, with no fence in between. Slow.
    #[arg(long)]
    pub check_translations: bool,
    /// Executes everything by the interpreter, nothing by the host's own instructions: slower, and the same.
    #[arg(long)]
    pub interpret: bool,
    /// Prints how much was executed and how fast.
    #[arg(long)]
    pub statistics: bool,
}

fn memory(text: &str) -> Result<Bytes, String> {
    let mebibytes = text
        .parse()
        .ok()
        .and_then(|number: u64| number.checked_mul(1 << 20));
    mebibytes
        .map(Bytes)
        .or_else(|| Bytes::parse(text))
        .ok_or_else(|| {
            format!(
                "this is no size: use a number and one of {}",
                Bytes::units()
            )
        })
}

fn time(text: &str) -> Result<Duration, String> {
    Duration::parse(text).ok_or_else(|| {
        format!(
            "this is no time: use a number and one of {}",
            Duration::units()
        )
    })
}
