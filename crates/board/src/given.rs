//! Devices of the board that VMs are given by their paths in the board's device tree.
//!
//! [`give`] decides what each VM gets, or why it does not get it. The hypervisor asks when it assembles a system, and the command when it describes
//! a board, so that both say the same. A VM gets the whole pages of a device's registers, its interrupts, and a copy of its node in the guest's
//! tree ([`GivenDevices::write`]).

mod behind;
mod check;
mod confine;
mod copy;
mod depend;
mod needed;
mod refusal;
#[cfg(test)]
mod tests;

use alloc::string::String;
use alloc::vec::Vec;

use crate::guest_map::{CLOCK_BASE, CLOCK_SIZE, CLOCK_SOURCE};
use crate::tree::{Node, Tree};
use crate::{BoardDevice, Interrupts, Range, console, devices, interrupts};
pub use behind::Behind;
pub use refusal::{Fault, Reason, Refusal};

use behind::shares_ids;
use needed::Needed;
use refusal::fault;

/// Devices that a VM's description names, and what the VM has besides.
#[derive(Clone, Debug)]
pub struct Wish<'w> {
    /// Name of the VM.
    pub vm: &'w str,
    /// Paths in the board's device tree, with spaces between them.
    pub paths: &'w str,
    /// virtio-mmio slots that are the VM's, a bit each.
    pub slots: u32,
    /// vCPUs.
    pub vcpus: u32,
    /// The guest's memory.
    pub memory: MemoryOf,
    /// Set if no device may reach memory without an IOMMU between them.
    pub confined: bool,
    /// Devices that the hypervisor emulates for the VM.
    pub emulated: u64,
}

impl<'w> Wish<'w> {
    fn paths(&self) -> impl Iterator<Item = &'w str> + use<'w> {
        self.paths.split(' ').filter(|path| !path.is_empty())
    }
}

/// Place of a guest's memory, as far as devices are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOf {
    /// The guest's addresses are the computer's.
    TheBoard,
    /// The guest has its memory here, in one piece that lies elsewhere.
    At(Range),
    /// Single pages, which lie anywhere.
    Pages,
}

/// Devices that a VM was given.
#[derive(Clone, Debug, Default)]
pub struct GivenDevices<'t> {
    tree: Option<&'t Tree<'t>>,
    /// Places of the devices' nodes.
    devices: Vec<usize>,
    /// Places of the nodes of fixed clocks and regulators that the devices depend on.
    copies: Vec<usize>,
    /// Whole pages of registers, in the order of their addresses.
    pub pages: Vec<Range>,
    /// Interrupt sources, each once.
    pub sources: Vec<u32>,
    /// virtio-mmio slots among the devices, which the VM drives directly.
    pub slots: Vec<u8>,
    /// Places of the devices whose DMA goes through IOMMUs, which take the guest's addresses.
    confined: Vec<usize>,
    /// The ids of these devices at IOMMUs.
    pub behind: Vec<Behind>,
    /// Set if confined host bridges of PCI may send messages to the guest's interrupt files.
    pub sends_messages: bool,
    /// Paths of the devices whose DMA nothing confines.
    pub trusted: Vec<String>,
}

/// Facts of the board and wishes of all VMs.
struct Chooser<'t, 'w> {
    tree: &'t Tree<'t>,
    /// Start and number of sources of the controller that the hypervisor drives.
    controller: (u64, u32),
    has_files: bool,
    needed: Needed,
    console_source: Option<u32>,
    virtio: Vec<BoardDevice>,
    wishes: &'w [Wish<'w>],
    /// Slots that the hypervisor drives itself.
    shared: u32,
    /// The devices that were named: places of their nodes, with the numbers of their VMs.
    named: Vec<(usize, usize)>,
}

/// Gives the devices to the VMs that wish for them, in the order of the VMs. `shared` are the virtio-mmio slots that the hypervisor drives itself, a
/// bit each.
///
/// # Errors
/// All devices that cannot be given.
#[inline(never)]
pub fn give<'t>(
    tree: &'t Tree<'t>,
    wishes: &[Wish<'_>],
    shared: u32,
) -> Result<Vec<GivenDevices<'t>>, Vec<Refusal<'t>>> {
    let mut given: Vec<GivenDevices<'t>> = wishes.iter().map(|_| GivenDevices::default()).collect();
    if wishes.iter().all(|wish| wish.paths.is_empty()) {
        return Ok(given);
    }
    let (base, sources, has_files) = match interrupts::read(tree) {
        Interrupts::Messages {
            aplic: Some(aplic), ..
        } => (aplic.base, aplic.sources, true),
        Interrupts::Direct(wired) | Interrupts::Plic(wired) => (wired.base, wired.sources, false),
        Interrupts::Messages { .. } | Interrupts::Unknown => (0, 0, false),
    };
    let console = console::read(tree);
    let mut chooser = Chooser {
        tree,
        controller: (base, sources),
        has_files,
        needed: Needed::of(tree, console.as_ref().map(|uart| uart.path.as_str())),
        console_source: console.and_then(|uart| uart.source),
        virtio: devices::virtio(tree),
        wishes,
        shared,
        named: Vec::new(),
    };
    let mut refusals = Vec::new();
    let mut refuse = |wish: &Wish<'_>, path: &str, fault: Fault<'t>| {
        refusals.push(Refusal {
            vm: String::from(wish.vm),
            path: String::from(path),
            fault,
        });
    };
    for (vm, wish) in wishes.iter().enumerate() {
        for path in wish.paths() {
            match chooser.name(vm, path) {
                Ok(place) => chooser.named.push((place, vm)),
                Err(fault) => refuse(wish, path, fault),
            }
        }
    }
    for (place, vm) in &chooser.named {
        if let (Some(node), Some(wish), Some(own)) =
            (tree.at(*place), wishes.get(*vm), given.get_mut(*vm))
            && let Err(fault) = chooser.take(node, (*vm, wish), own)
        {
            refuse(wish, &node.path(), fault);
        }
    }
    let mut earlier: Vec<&Behind> = Vec::new();
    for (own, wish) in given.iter().zip(wishes) {
        if shares_ids(&own.behind, &earlier) {
            refuse(wish, wish.paths, fault("iommus", Reason::SharedId, ""));
        }
        earlier.extend(&own.behind);
    }
    match refusals.is_empty() {
        true => Ok(given),
        false => Err(refusals),
    }
}

impl<'t> Chooser<'t, '_> {
    /// Finds the device that a VM names. The whole node must be free, and all that is below it.
    fn name(&self, vm: usize, path: &str) -> Result<usize, Fault<'t>> {
        let node = self
            .tree
            .find(path)
            .ok_or_else(|| fault("devices", Reason::NoNode, ""))?;
        for (place, other) in &self.named {
            let Some(named) = self.tree.at(*place) else {
                continue;
            };
            if !named.is_in(node) && !node.is_in(named) {
                continue;
            }
            let name = self.wishes.get(*other).map_or("", |wish| wish.vm);
            return Err(match *other == vm {
                true => fault("devices", Reason::Twice, &named.path()),
                false => fault("devices", Reason::OtherVm, name),
            });
        }
        Ok(node.place())
    }

    /// Checks a device and adds it to what its VM is given.
    fn take(
        &self,
        node: Node<'t, 't>,
        (vm, wish): (usize, &Wish<'_>),
        given: &mut GivenDevices<'t>,
    ) -> Result<(), Fault<'t>> {
        self.check_node(node)?;
        let pages = self.pages(node)?;
        self.check_pages(&pages, vm)?;
        let is_master = !self.makes_no_dma(node);
        let behind = self.behind(node).filter(|behind| !behind.is_empty());
        if is_master {
            self.dma(node, wish, behind.is_some())?;
        }
        let beside = self.masters_beside(&pages, node);
        if let Some(other) = beside.first().filter(|_| wish.confined) {
            return Err(fault("reg", Reason::UnconfinedPage, other));
        }
        let registers = node.registers();
        let slot = self.virtio.iter().position(|device| {
            registers
                .first()
                .is_some_and(|range| range.start == device.base)
        });
        let slot = slot.filter(|_| node.is_compatible("virtio,mmio"));
        let mut sources = Vec::new();
        for part in node.subtree() {
            sources.extend(self.sources(part, node)?);
            self.depend(part, vm, &mut given.copies)?;
        }
        self.check_sources(&sources, vm)?;
        self.check_guest(&pages, wish)?;
        given.tree = Some(self.tree);
        match behind.filter(|_| is_master) {
            Some(behind) => {
                given.behind.extend(behind);
                given.confined.push(node.place());
            }
            None if is_master => given.trusted.push(node.path()),
            None => {}
        }
        given.trusted.extend(beside);
        if let Some(slot) = slot {
            given.slots.push(slot as u8);
            return Ok(());
        }
        given.devices.push(node.place());
        for range in pages {
            add_pages(&mut given.pages, range);
        }
        for source in sources {
            if !given.sources.contains(&source) {
                given.sources.push(source);
            }
        }
        Ok(())
    }
}

impl GivenDevices<'_> {
    /// Tests whether the DMA of the device with this path goes through an IOMMU that confines it.
    #[must_use]
    pub fn is_confined(&self, tree: &Tree<'_>, path: &str) -> bool {
        let node = tree.find(path);
        node.is_some_and(|node| self.confined.contains(&node.place()))
    }

    /// Tests whether the guest can have its emulated clock beside these devices.
    #[must_use]
    pub fn leaves_room_for_clock(&self) -> bool {
        let clock = Range {
            start: CLOCK_BASE,
            size: CLOCK_SIZE,
        };
        !self.sources.contains(&CLOCK_SOURCE)
            && !self.pages.iter().any(|pages| pages.overlaps(clock))
    }
}

/// Adds pages to a list without gaps or overlaps between neighbours, in the order of their addresses.
fn add_pages(pages: &mut Vec<Range>, mut range: Range) {
    pages.retain(|other| {
        let touches = other.start <= range.end() && range.start <= other.end();
        if touches {
            let start = other.start.min(range.start);
            let size = other.end().max(range.end()).saturating_sub(start);
            range = Range { start, size };
        }
        !touches
    });
    let place = pages.partition_point(|other| other.start < range.start);
    pages.insert(place, range);
}
