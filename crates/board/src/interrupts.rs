//! Interrupt controllers of the supervisor level.

use alloc::vec::Vec;

use crate::tree::{Node, Tree};
use crate::{BoardHart, Range};

/// Number of a hart's external interrupts of the supervisor level (privileged architecture, "Supervisor Interrupt Registers").
const SUPERVISOR_EXTERNAL: u32 = 9;
/// log2 of the bytes of an interrupt file.
const FILE_SHIFT: u32 = 12;
/// Guest interrupt files of a hart, at most: GEILEN is 63, and the hart's own file makes 64.
const MAX_GUEST_INDEX_BITS: u32 = 6;
/// Default of `riscv,group-index-shift`.
const GROUP_INDEX_SHIFT: u32 = 24;

/// The supervisor-level IMSIC: interrupt files of all harts, and their guest files behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imsic {
    /// One range a group of harts; the first group's first file is at the first range's start.
    pub ranges: Vec<Range>,
    /// log2 of the interrupt files of a hart, its own included.
    pub guest_index_bits: u32,
    /// Interrupt identities of a file.
    pub identities: u32,
    /// Files by hart, in the tree's order.
    files: Vec<File>,
}

/// Interrupt files of a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct File {
    controller: u32,
    place: FilePlace,
}

/// Where a hart's interrupt files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlace {
    /// Address of the hart's own file; its guest files follow.
    pub address: u64,
    /// The hart's index as an APLIC's `target` register has it: the group's number above the number in the group (AIA 4.9.1).
    pub index: u64,
}

/// An APLIC of the supervisor level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aplic {
    /// Start of the domain's registers.
    pub base: u64,
    /// Interrupt sources.
    pub sources: u32,
}

/// How devices' interrupts reach harts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupts {
    /// An IMSIC, with the APLIC that sends messages to the IMSIC where there is one.
    Messages {
        /// The interrupt files.
        imsic: Imsic,
        /// The APLIC.
        aplic: Option<Aplic>,
    },
    /// An APLIC that interrupts harts by wires.
    Direct(Aplic),
    /// A PLIC.
    Plic {
        /// Registers.
        registers: Range,
        /// Interrupt sources.
        sources: u32,
    },
    /// Nothing that the reader knows.
    Unknown,
}

impl Imsic {
    /// Address of the first interrupt file.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.ranges.first().map_or(0, |range| range.start)
    }

    /// Guest interrupt files of each hart.
    #[must_use]
    pub const fn guest_files(&self) -> u64 {
        (1 << self.guest_index_bits) - 1
    }

    /// Files of the hart, if the IMSIC has any.
    #[must_use]
    pub fn file(&self, hart: &BoardHart) -> Option<FilePlace> {
        let file = self
            .files
            .iter()
            .find(|file| file.controller == hart.controller);
        file.map(|file| file.place)
    }

    fn read(node: Node<'_, '_>) -> Option<Self> {
        let parents: Vec<u32> = node.cells("interrupts-extended").collect();
        let (parents, _) = parents.as_chunks::<2>();
        let supervisor = parents
            .first()
            .is_some_and(|[_, number]| *number == SUPERVISOR_EXTERNAL);
        let guest_index_bits = node.word("riscv,guest-index-bits").unwrap_or(0);
        if !supervisor || guest_index_bits > MAX_GUEST_INDEX_BITS {
            return None;
        }
        let ranges = node.registers();
        let groups = Groups {
            guest_index_bits,
            hart_index_bits: node
                .word("riscv,hart-index-bits")
                .unwrap_or_else(|| bits_for(parents.len())),
            group_index_bits: node.word("riscv,group-index-bits").unwrap_or(0),
            group_index_shift: node
                .word("riscv,group-index-shift")
                .unwrap_or(GROUP_INDEX_SHIFT),
        };
        let mut files = Vec::new();
        let addresses = addresses(&ranges, guest_index_bits);
        for ([controller, _], address) in parents.iter().zip(addresses) {
            files.push(File {
                controller: *controller,
                place: FilePlace {
                    address,
                    index: groups.index(address)?,
                },
            });
        }
        // A range too small for its harts leaves some without files.
        (files.len() == parents.len()).then_some(Self {
            ranges,
            guest_index_bits,
            identities: node.word("riscv,num-ids").unwrap_or(63),
            files,
        })
    }
}

/// Bits that number so many things.
const fn bits_for(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

/// Addresses of the harts' own files, range by range.
fn addresses(ranges: &[Range], guest_index_bits: u32) -> impl Iterator<Item = u64> {
    let step = 1_u64 << (FILE_SHIFT + guest_index_bits);
    ranges.iter().flat_map(move |range| {
        (0..range.size / step).map(move |index| range.start.saturating_add(index * step))
    })
}

/// Bits of an interrupt file's address (AIA 3.6).
struct Groups {
    guest_index_bits: u32,
    hart_index_bits: u32,
    group_index_bits: u32,
    group_index_shift: u32,
}

impl Groups {
    /// The hart's index at an APLIC. Absent where the bits do not fit an address.
    fn index(&self, address: u64) -> Option<u64> {
        let field = |shift: u32, bits: u32| {
            let mask = 1_u64.checked_shl(bits)? - 1;
            Some(address.checked_shr(shift)? & mask)
        };
        let hart = field(FILE_SHIFT + self.guest_index_bits, self.hart_index_bits)?;
        let group = field(self.group_index_shift, self.group_index_bits)?;
        Some(group.checked_shl(self.hart_index_bits)? | hart)
    }
}

impl Aplic {
    fn read(node: Node<'_, '_>) -> Option<Self> {
        Some(Self {
            base: node.registers().first()?.start,
            sources: node.word("riscv,num-sources").unwrap_or(0),
        })
    }
}

/// Tests whether an interrupt controller tells a supervisor level of any hart.
fn tells_supervisor(node: &Node<'_, '_>) -> bool {
    let cells: Vec<u32> = node.cells("interrupts-extended").collect();
    let (pairs, _) = cells.as_chunks::<2>();
    pairs
        .iter()
        .any(|[_, number]| *number == SUPERVISOR_EXTERNAL)
}

/// The supervisor level's interrupt controllers.
pub(crate) fn read(tree: &Tree<'_>) -> Interrupts {
    let found = tree
        .compatible("riscv,imsics")
        .find_map(|node| Some((node, Imsic::read(node)?)));
    if let Some((node, imsic)) = found {
        let handle = node.word("phandle");
        let sends_there =
            |aplic: &Node<'_, '_>| handle.is_some() && aplic.word("msi-parent") == handle;
        let aplic = tree
            .compatible("riscv,aplic")
            .find(sends_there)
            .and_then(Aplic::read);
        return Interrupts::Messages { imsic, aplic };
    }
    if let Some(aplic) = tree
        .compatible("riscv,aplic")
        .find(tells_supervisor)
        .and_then(Aplic::read)
    {
        return Interrupts::Direct(aplic);
    }
    let plic = ["riscv,plic0", "sifive,plic-1.0.0", "thead,c900-plic"]
        .into_iter()
        .find_map(|name| tree.compatible(name).find(tells_supervisor));
    match plic.and_then(|node| Some((node, *node.registers().first()?))) {
        Some((node, registers)) => Interrupts::Plic {
            registers,
            sources: node.word("riscv,ndev").unwrap_or(0),
        },
        None => Interrupts::Unknown,
    }
}
