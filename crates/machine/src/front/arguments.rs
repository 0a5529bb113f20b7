//! What the command line can say.

use std::path::PathBuf;

use crate::checkpoint::Point;

/// The gears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GearChoice {
    /// Every instruction takes a cycle.
    Fast,
    /// What the profile's models say.
    Measured,
}

/// Boots firmware and a kernel on the bare machine, or runs a bare-metal program.
#[derive(Debug, clap::Parser)]
#[command(name = "machine")]
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
    /// Firmware that runs in M-mode.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.bin"
    )]
    pub firmware: PathBuf,
    /// A bare-metal ELF program to run in M-mode instead of firmware and kernel.
    #[arg(long, value_name = "ELF", conflicts_with_all = ["kernel", "initrd"])]
    pub bare: Option<PathBuf>,
    /// Number of harts.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub harts: u32,
    /// RAM in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub memory: u64,
    /// Guest interrupt files a hart.
    #[arg(long, value_name = "N")]
    pub guest_files: Option<u8>,
    /// Measures: what instructions cost comes from this profile, the name of one that ships or a
    /// TOML file. Without it every instruction costs one cycle.
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// How time is accounted; with a profile the default is to measure. `fast` with a profile starts
    /// the profile's computer at a cycle an instruction, for a checkpoint that is measured later.
    #[arg(long, value_name = "GEAR", value_enum)]
    pub gear: Option<GearChoice>,
    /// Writes the hardware monitor's figures as JSON.
    #[arg(long, value_name = "FILE")]
    pub monitor: Option<PathBuf>,
    /// What everything random is computed from.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Ends the run after this many instructions of all harts.
    #[arg(long, value_name = "N")]
    pub max_instructions: Option<u64>,
    /// Ends the run after this many cycles of machine time.
    #[arg(long, value_name = "N")]
    pub max_cycles: Option<u64>,
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
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernel", "initrd", "bare"])]
    pub restore: Option<PathBuf>,
    /// Writes the memory between begin_signature and end_signature to a file.
    #[arg(long, value_name = "FILE")]
    pub signature: Option<PathBuf>,
    /// Looks for fences that software leaves out: reports each first use of a page whose translation
    /// has changed since the hart last used it, with no fence in between. Slow.
    #[arg(long)]
    pub check_translations: bool,
    /// Prints how much was executed and how fast.
    #[arg(long)]
    pub statistics: bool,
}
