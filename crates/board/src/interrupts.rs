//! Interrupt controllers of the supervisor level.

use alloc::vec::Vec;

use riscv::{aplic, plic};

use crate::tree::{Node, Tree};
use crate::{BoardHart, Range};

/// Number of a hart's external interrupts of the supervisor level (privileged architecture, "Supervisor Interrupt Registers").
const SUPERVISOR_EXTERNAL: u32 = 9;
/// log2 of the bytes of an interrupt file.
const FILE_SHIFT: u32 = 12;
/// Guest interrupt files of a hart, at most: GEILEN is 63, and the hart's own file makes 64.
const MAX_GUEST_INDEX_BITS: u32 = 6;
/// Wires that the registers of a controller have room for, at most: contexts of a PLIC, which are fewer than the hart indices of an APLIC.
const MAX_WIRES: u64 = plic::CONTEXTS as u64;
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

/// Place of a hart, by the handle of its local interrupt controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct File {
    controller: u32,
    place: Delivery,
}

/// Place at which a hart receives the board's interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Address of the hart's own interrupt file, which its guest files follow; of its interrupt delivery control structure, with an APLIC that
    /// interrupts by wires; of its context's threshold, with a PLIC.
    pub address: u64,
    /// The hart's index at the controller: as an APLIC's `target` register has it, the group's number above the number in the group (AIA 4.9.1);
    /// or the number of its context at a PLIC.
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
    Direct(Wired),
    /// A PLIC.
    Plic(Wired),
    /// Nothing that the reader knows.
    Unknown,
}

/// A controller that interrupts harts by wires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wired {
    /// Start of the registers.
    pub base: u64,
    /// Interrupt sources.
    pub sources: u32,
    /// Set for a PLIC whose claim register may name a wrong source while several are pending and enabled (UltraRISC's UR-CP100).
    pub has_claim_erratum: bool,
    /// Harts with a wire to their supervisor level.
    harts: Vec<File>,
}

/// The interrupt controllers that the hypervisor uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Controller {
    /// An IMSIC, and the APLIC that sends messages to the IMSIC.
    Messages {
        /// The interrupt files.
        imsic: Imsic,
        /// The APLIC.
        aplic: Aplic,
    },
    /// An APLIC that interrupts harts by wires.
    Direct(Wired),
    /// A PLIC.
    Plic(Wired),
}

impl Controller {
    /// The controllers, if the hypervisor can use them.
    pub(crate) fn of(found: Interrupts) -> Option<Self> {
        match found {
            Interrupts::Messages { imsic, aplic } => Some(Self::Messages {
                imsic,
                aplic: aplic?,
            }),
            Interrupts::Direct(wired) => Some(Self::Direct(wired)),
            Interrupts::Plic(wired) => Some(Self::Plic(wired)),
            Interrupts::Unknown => None,
        }
    }

    /// Number of the devices' interrupt sources.
    #[must_use]
    pub const fn sources(&self) -> u32 {
        match self {
            Self::Messages { aplic, .. } => aplic.sources,
            Self::Direct(wired) | Self::Plic(wired) => wired.sources,
        }
    }

    /// The interrupt files, where there are any.
    #[must_use]
    pub const fn imsic(&self) -> Option<&Imsic> {
        match self {
            Self::Messages { imsic, .. } => Some(imsic),
            Self::Direct(_) | Self::Plic(_) => None,
        }
    }

    /// Place at which the hart receives interrupts, if the controller has any for it.
    #[must_use]
    pub fn delivery(&self, hart: &BoardHart) -> Option<Delivery> {
        match self {
            Self::Messages { imsic, .. } => imsic.file(hart),
            Self::Direct(wired) | Self::Plic(wired) => {
                let mut harts = wired.harts.iter();
                let own = harts.find(|wire| wire.controller == hart.controller);
                own.map(|wire| wire.place)
            }
        }
    }
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
    pub fn file(&self, hart: &BoardHart) -> Option<Delivery> {
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
                place: Delivery {
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

/// PLICs with the claim erratum: by the core, and by the computer that has it. Their trees need not name another kind.
const CLAIM_ERRATUM: [&str; 2] = ["ultrarisc,cp100-plic", "ultrarisc,dp1000-plic"];

/// Registers of the wire with this index, from the start of the controller's.
type WireRegisters = fn(index: u64) -> u64;

fn delivery_structure(index: u64) -> u64 {
    aplic::register::IDC + aplic::IDC_BYTES * index
}

fn plic_context(index: u64) -> u64 {
    plic::THRESHOLD + plic::CONTEXT_STRIDE * index
}

impl Wired {
    /// Indices of the harts' wires.
    pub fn indices(&self) -> impl Iterator<Item = u64> + use<'_> {
        self.harts.iter().map(|wire| wire.place.index)
    }

    /// Reads a controller whose wires lead to a supervisor level of any hart.
    fn read(node: Node<'_, '_>, sources: &str, registers: WireRegisters) -> Option<Self> {
        let base = node.registers().first()?.start;
        let cells: Vec<u32> = node.cells("interrupts-extended").collect();
        let (wires, _) = cells.as_chunks::<2>();
        let mut harts = Vec::new();
        for (position, [controller, number]) in (0_u32..).zip(wires.iter().copied()) {
            // Without the property, wires and indices of harts have the same order.
            let index = node.cells("riscv,hart-indexes").nth(position as usize);
            let index = u64::from(index.unwrap_or(position));
            if number == SUPERVISOR_EXTERNAL && index < MAX_WIRES {
                let address = base.checked_add(registers(index))?;
                let place = Delivery { address, index };
                harts.push(File { controller, place });
            }
        }
        (!harts.is_empty()).then_some(Self {
            base,
            sources: node.word(sources).unwrap_or(0).min(plic::MAX_SOURCE),
            has_claim_erratum: CLAIM_ERRATUM.iter().any(|name| node.is_compatible(name)),
            harts,
        })
    }
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
    let names = [
        (true, "riscv,aplic"),
        (false, "riscv,plic0"),
        (false, "sifive,plic-1.0.0"),
        (false, "thead,c900-plic"),
        (false, CLAIM_ERRATUM[0]),
        (false, CLAIM_ERRATUM[1]),
    ];
    for (is_aplic, name) in names {
        let (sources, registers): (&str, WireRegisters) = match is_aplic {
            true => ("riscv,num-sources", delivery_structure),
            false => ("riscv,ndev", plic_context),
        };
        let mut nodes = tree.compatible(name);
        match nodes.find_map(|node| Wired::read(node, sources, registers)) {
            Some(wired) if is_aplic => return Interrupts::Direct(wired),
            Some(wired) => return Interrupts::Plic(wired),
            None => {}
        }
    }
    Interrupts::Unknown
}
