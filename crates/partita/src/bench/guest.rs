//! The guest whose instructions are counted: the same files and the same work on whatever it runs.

use super::mark::Mark;
use system::image::archive::{TooLarge, Writer};

/// The guest's first process.
const INIT: &str = include_str!("../../../../guests/bench");
/// Memory of the guest, in MiB.
pub const MEMORY: u64 = 512;
/// A block of the disk that is read, in bytes.
pub const BLOCK: usize = 4096;
/// Blocks of that disk: 32 MiB.
const BLOCKS: usize = 8192;

/// Options of every kernel, a host's too: print only errors, stay where it was linked, and leave the
/// hart's counters alone, which its driver for them would stop.
pub const KERNEL_OPTIONS: &str = "console=ttyS0 quiet nokaslr initcall_blacklist=pmu_sbi_devinit";

/// The disk whose reads are counted: zeros without a file behind them, and in the machine's own time a quarter of a
/// millisecond from one read to the next. So the guest waits for each read, and how long does not depend on the
/// computer on which QEMU runs, as it would with a file.
pub const ZEROS_DRIVE: &str =
    "driver=null-co,size=96M,read-zeroes=on,if=none,throttling.iops-total=4000";

/// How much work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Amount {
    /// Loops of hackbench (4 groups of 10 processes).
    pub loops: u64,
    /// Blocks of 64 KiB whose SHA-256 is computed.
    pub blocks: u64,
    /// Random reads of 4 KiB at depth 1.
    pub reads: u64,
}

impl Amount {
    /// Amount of work for the figures of the documentation.
    pub const WHOLE: Self = Self {
        loops: 100,
        blocks: 160,
        reads: 20_000,
    };
    /// Enough to see whether anything has changed much.
    pub const QUICK: Self = Self {
        loops: 20,
        blocks: 32,
        reads: 4000,
    };

    /// The guest's command line.
    pub fn command_line(self) -> String {
        let Self {
            loops,
            blocks,
            reads,
        } = self;
        format!(
            "{KERNEL_OPTIONS} partita.loops={loops} partita.blocks={blocks} partita.reads={reads}"
        )
    }
}

/// The guest's initial RAM disk: that of `partita images`, with the marks and its own first process on top, which
/// Linux unpacks one after the other.
///
/// # Errors
/// Never, with files of this size.
pub fn initrd(base: &[u8]) -> Result<Vec<u8>, TooLarge> {
    let mut archive = Writer::new();
    archive.folder("marks")?;
    for mark in Mark::ALL {
        archive.file(&format!("marks/{}", mark.name()), 0o755, &mark.program())?;
    }
    archive.file("init", 0o755, INIT.as_bytes())?;
    Ok([base, &archive.finish()].concat())
}

/// The disk that is read. Each block consists of its own offset on the disk, so that a read shows whether it brought
/// the right block, and all of it.
pub fn pattern_disk() -> Vec<u8> {
    let offsets = (0..BLOCKS).map(|block| (block * BLOCK) as u64);
    offsets
        .flat_map(|offset| offset.to_le_bytes().repeat(BLOCK / size_of::<u64>()))
        .collect()
}
