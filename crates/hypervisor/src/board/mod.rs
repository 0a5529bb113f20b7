//! The board as its device tree describes it: harts, memory, interrupt controllers, the UART and the virtio slots.

pub mod isa;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use fdt::{Fdt, node::FdtNode};
use riscv::interrupt::SUPERVISOR_EXTERNAL;
use scheduler::{HartId, HartSet};

use crate::memory::address::PAGE_SIZE;
use crate::memory::gstage::offer::{HartRegister, Offer};
use crate::memory::shadow::offer::{SpaceOffer, VirtualSpace};
use crate::sort::sort_by_key;

/// A range of physical addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub size: u64,
}

impl Range {
    /// One past the last address.
    #[must_use]
    pub fn end(self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

/// One hart of the board.
#[derive(Clone, Debug)]
pub struct BoardHart {
    /// mhartid.
    pub id: u64,
    /// The hart's place in the supervisor-level IMSIC's list, which is the hart index of an APLIC's MSI target.
    pub imsic_index: u64,
    pub extensions: Extensions,
    /// Bytes that a cache-block management instruction works on, if the hart has these instructions.
    pub cache_block_size: Option<u32>,
    /// Bytes that cbo.zero clears, if the hart has it.
    pub zero_block_size: Option<u32>,
    /// The widest virtual memory that the hart has, as the device tree names it.
    pub mmu_type: String,
}

/// Extensions of the hart that the hypervisor uses or passes on.
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    /// Names as `riscv,isa-extensions` has them, without `h` and without extensions that only M-mode sees.
    names: Vec<String>,
}

impl Extensions {
    fn parse(node: &FdtNode<'_, '_>) -> Self {
        let mut names = Vec::new();
        if let Some(property) = node.property("riscv,isa-extensions") {
            for name in property.value.split(|byte| *byte == 0) {
                if let Ok(text) = core::str::from_utf8(name)
                    && !text.is_empty()
                {
                    names.push(String::from(text));
                }
            }
        } else if let Some(text) = node.property("riscv,isa").and_then(|p| p.as_str()) {
            names.extend(isa::from_string(text).into_iter().map(String::from));
        }
        Self { names }
    }

    /// Returns true if the hart has the extension `name` (lower case).
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|have| have == name)
    }

    /// All names, in the device tree's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

/// The supervisor-level IMSIC: interrupt files of all harts, one page each, and their guest files behind them.
#[derive(Clone, Copy, Debug)]
pub struct BoardImsic {
    pub base: u64,
    pub size: u64,
    pub guest_index_bits: u32,
    pub identities: u32,
}

/// The supervisor-level APLIC.
#[derive(Clone, Copy, Debug)]
pub struct AplicDescription {
    pub base: u64,
    pub sources: u32,
}

/// A device with registers and one wired interrupt.
#[derive(Clone, Copy, Debug)]
pub struct BoardDevice {
    pub base: u64,
    pub size: u64,
    pub source: u32,
}

/// The board.
#[derive(Clone, Debug)]
pub struct Board {
    pub timebase_hertz: u32,
    pub harts: Vec<BoardHart>,
    /// Modes and VMIDs of the first hart's hgatp. Another hart that has fewer is refused.
    pub translation: Offer,
    /// Modes and ASIDs of its vsatp.
    pub spaces: SpaceOffer,
    pub memory: Vec<Range>,
    /// Memory that the firmware keeps for itself, the device tree and the initrd.
    pub reserved: Vec<Range>,
    pub initrd: Option<Range>,
    /// Entropy that the firmware or its loader put into the device tree; empty if there is none.
    pub rng_seed: Vec<u8>,
    pub imsic: BoardImsic,
    pub aplic: AplicDescription,
    pub uart: BoardDevice,
    /// Virtio devices by slot number, in the order of their addresses.
    pub virtio: Vec<BoardDevice>,
    /// The real-time clock's registers.
    pub clock: Option<u64>,
}

/// Reason why a board cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardError {
    Malformed,
    Missing(&'static str),
}

impl fmt::Display for BoardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => write!(f, "the board's device tree cannot be read"),
            Self::Missing(what) => write!(
                f,
                "the board's device tree names no {what}, which Partita needs"
            ),
        }
    }
}

fn cells(node: &FdtNode<'_, '_>, name: &str) -> Option<Vec<u32>> {
    let value = node.property(name)?.value;
    Some(
        value
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| u32::from_be_bytes(*bytes))
            .collect(),
    )
}

fn word(node: &FdtNode<'_, '_>, name: &str) -> Option<u32> {
    cells(node, name)?.first().copied()
}

fn phandle(node: &FdtNode<'_, '_>) -> Option<usize> {
    node.property("phandle")?.as_usize()
}

fn compatible<'a>(tree: &'a Fdt<'a>, name: &'static str) -> impl Iterator<Item = FdtNode<'a, 'a>> {
    tree.all_nodes().filter(move |node| {
        node.compatible()
            .is_some_and(|list| list.all().any(|entry| entry == name))
            && node
                .property("status")
                .and_then(|p| p.as_str())
                .is_none_or(|status| status != "disabled")
    })
}

/// All ranges of a node's `reg`.
fn ranges<'a>(node: FdtNode<'_, 'a>) -> impl Iterator<Item = Range> + 'a {
    node.reg().into_iter().flatten().filter_map(|region| {
        Some(Range {
            start: region.starting_address as u64,
            size: region.size? as u64,
        })
    })
}

/// The first range of a node's `reg`: registers of a device.
fn range(node: &FdtNode<'_, '_>) -> Option<Range> {
    ranges(*node).next()
}

fn device(node: &FdtNode<'_, '_>) -> Option<BoardDevice> {
    let Range { start, size } = range(node)?;
    let source = *cells(node, "interrupts")?.first()?;
    Some(BoardDevice {
        base: start,
        size,
        source,
    })
}

/// The UART that the operator's terminal is on.
#[must_use]
pub fn uart(tree: &Fdt<'_>) -> Option<BoardDevice> {
    let node = compatible(tree, "ns16550a").next();
    node.as_ref().and_then(device)
}

impl Board {
    /// Takes the harts out whose ISA string lacks the hypervisor extension (H), except `own`, and returns their ids.
    pub fn take_out_harts_without_h(&mut self, own: u64) -> Vec<u64> {
        let lacks = |hart: &BoardHart| hart.id != own && !hart.extensions.has("h");
        let lacking = self.harts.extract_if(.., |hart| lacks(hart));
        lacking.map(|hart| hart.id).collect()
    }

    /// Checks that the device's registers begin a page, and that no other virtio device has registers in that page.
    #[must_use]
    pub fn has_page_of_its_own(&self, device: BoardDevice) -> bool {
        let page = |base: u64| base / PAGE_SIZE;
        let in_page = self
            .virtio
            .iter()
            .filter(|other| page(other.base) == page(device.base));
        device.base.is_multiple_of(PAGE_SIZE) && device.size <= PAGE_SIZE && in_page.count() == 1
    }

    /// Reads the device tree `tree`, which lies at `location`.
    ///
    /// # Errors
    /// [`BoardError`], naming the part that the hypervisor needs.
    pub fn read(tree: &Fdt<'_>, location: Range) -> Result<Self, BoardError> {
        let cpus = tree
            .find_node("/cpus")
            .ok_or(BoardError::Missing("/cpus"))?;
        let timebase_hertz = cpus
            .property("timebase-frequency")
            .and_then(|p| p.as_usize())
            .and_then(|hertz| u32::try_from(hertz).ok())
            .ok_or(BoardError::Missing("timebase-frequency"))?;

        let (imsic_node, parents) = compatible(tree, "riscv,imsics")
            .find_map(|node| {
                let list = cells(&node, "interrupts-extended")?;
                (list.get(1).copied()? == SUPERVISOR_EXTERNAL).then_some((node, list))
            })
            .ok_or(BoardError::Missing("supervisor-level IMSIC (riscv,imsics)"))?;
        let imsic_range = range(&imsic_node).ok_or(BoardError::Malformed)?;
        let word = |name| imsic_node.property(name).and_then(|p| p.as_usize());
        let imsic = BoardImsic {
            base: imsic_range.start,
            size: imsic_range.size,
            guest_index_bits: word("riscv,guest-index-bits").unwrap_or(0) as u32,
            identities: word("riscv,num-ids").unwrap_or(63) as u32,
        };

        let pages = (parents.len() as u64 / 2) << imsic.guest_index_bits;
        if imsic.guest_index_bits > 6 || imsic.size < pages << 12 {
            return Err(BoardError::Malformed);
        }
        let imsic_handle = phandle(&imsic_node).ok_or(BoardError::Malformed)?;
        let aplic_node = compatible(tree, "riscv,aplic")
            .find(|node| {
                node.property("msi-parent").and_then(|p| p.as_usize()) == Some(imsic_handle)
            })
            .ok_or(BoardError::Missing(
                "supervisor-level APLIC with MSI delivery (riscv,aplic)",
            ))?;
        let aplic = AplicDescription {
            base: range(&aplic_node).ok_or(BoardError::Malformed)?.start,
            sources: aplic_node
                .property("riscv,num-sources")
                .and_then(|p| p.as_usize())
                .unwrap_or(0) as u32,
        };

        let mut virtio: Vec<_> = compatible(tree, "virtio,mmio")
            .filter_map(|node| device(&node))
            .collect();
        sort_by_key(&mut virtio, |device| device.base);

        let memory = tree
            .all_nodes()
            .filter(|node| node.property("device_type").and_then(|p| p.as_str()) == Some("memory"))
            .flat_map(ranges)
            .collect();
        let mut reserved = Self::reserved(tree);
        reserved.push(location);
        let initrd = Self::initrd(tree);
        reserved.extend(initrd);

        Ok(Self {
            timebase_hertz,
            harts: Self::harts(&cpus, &parents),
            translation: Offer::find(&mut HartRegister),
            spaces: SpaceOffer::find(&mut VirtualSpace),
            memory,
            reserved,
            initrd,
            rng_seed: Self::rng_seed(tree),
            imsic,
            aplic,
            uart: uart(tree).ok_or(BoardError::Missing("UART (ns16550a)"))?,
            virtio,
            clock: compatible(tree, "google,goldfish-rtc")
                .find_map(|node| range(&node))
                .map(|range| range.start),
        })
    }

    fn harts(cpus: &FdtNode<'_, '_>, imsic_parents: &[u32]) -> Vec<BoardHart> {
        let pairs = imsic_parents.as_chunks::<2>().0;
        let mut harts = Vec::new();
        for cpu in cpus
            .children()
            .filter(|node| node.property("device_type").and_then(|p| p.as_str()) == Some("cpu"))
        {
            let usable = cpu
                .property("status")
                .and_then(|p| p.as_str())
                .is_none_or(|status| status == "okay");
            let id = cpu.property("reg").and_then(|p| p.as_usize());
            let controller = cpu
                .children()
                .find(|node| node.property("interrupt-controller").is_some());
            let handle = controller.as_ref().and_then(phandle);
            let (true, Some(id), Some(handle)) = (usable, id, handle) else {
                continue;
            };
            if let Some(index) = pairs
                .iter()
                .position(|[parent, _]| *parent as usize == handle)
            {
                harts.push(BoardHart {
                    id: id as u64,
                    imsic_index: index as u64,
                    extensions: Extensions::parse(&cpu),
                    cache_block_size: word(&cpu, "riscv,cbom-block-size"),
                    zero_block_size: word(&cpu, "riscv,cboz-block-size"),
                    mmu_type: cpu
                        .property("mmu-type")
                        .and_then(|p| p.as_str())
                        .unwrap_or("riscv,sv39")
                        .into(),
                });
            }
        }
        harts
    }

    fn reserved(tree: &Fdt<'_>) -> Vec<Range> {
        let mut found = Vec::new();
        if let Some(node) = tree.find_node("/reserved-memory") {
            found.extend(node.children().flat_map(ranges));
        }
        found.extend(tree.memory_reservations().map(|entry| Range {
            start: entry.address() as u64,
            size: entry.size() as u64,
        }));
        found
    }

    fn rng_seed(tree: &Fdt<'_>) -> Vec<u8> {
        let chosen = tree.find_node("/chosen");
        let seed = chosen.and_then(|chosen| chosen.property("rng-seed"));
        seed.map(|seed| seed.value.to_vec()).unwrap_or_default()
    }

    fn initrd(tree: &Fdt<'_>) -> Option<Range> {
        let chosen = tree.find_node("/chosen")?;
        let address = |name| {
            let value = chosen.property(name)?.value;
            match value.len() {
                4 => Some(u64::from(u32::from_be_bytes(value.try_into().ok()?))),
                8 => Some(u64::from_be_bytes(value.try_into().ok()?)),
                _ => None,
            }
        };
        let (start, end) = (address("linux,initrd-start")?, address("linux,initrd-end")?);
        (end > start).then(|| Range {
            start,
            size: end - start,
        })
    }

    /// The scheduler's names for these harts of the board.
    ///
    /// # Errors
    /// The first that the board does not have.
    pub fn harts_of(&self, harts: abi::system::HartSet) -> Result<HartSet, abi::system::HartId> {
        let mut set = HartSet::EMPTY;
        for wanted in harts.iter() {
            let index = self
                .harts
                .iter()
                .position(|hart| hart.id == u64::from(wanted.0));
            let id = index
                .and_then(|index| u16::try_from(index).ok())
                .and_then(HartId::new);
            set.insert(id.ok_or(wanted)?);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests;
