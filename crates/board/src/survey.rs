//! The facts of a board, and what the hypervisor takes of them.

use alloc::string::String;
use alloc::vec::Vec;

use crate::console::{self, Uart};
use crate::devices::{self, BoardDevice};
use crate::hart::{self, BoardHart};
use crate::interrupts::{self, Controller, Interrupts};
use crate::lack::Lack;
use crate::memory::{self, Bank};
use crate::range::Range;
use crate::tree::Tree;
use riscv::imsic::PAGE_BYTES;

/// Extension that every hart with interrupt files must have, beside H.
const SSAIA: &str = "ssaia";

/// Everything that the device tree tells.
#[derive(Clone, Debug)]
pub struct Survey {
    /// `model` of the root.
    pub model: Option<String>,
    /// Ticks of `time` in a second.
    pub timebase_hertz: Option<u32>,
    /// Usable harts.
    pub harts: Vec<BoardHart>,
    /// Banks of memory.
    pub memory: Vec<Bank>,
    /// Memory that is not free.
    pub reserved: Vec<Range>,
    /// The initial RAM disk.
    pub initrd: Option<Range>,
    /// Entropy of the firmware or its loader; empty where there is none.
    pub rng_seed: Vec<u8>,
    /// Interrupt controllers.
    pub interrupts: Interrupts,
    /// The console.
    pub uart: Option<Uart>,
    /// virtio-mmio slots, in the order of their addresses.
    pub virtio: Vec<BoardDevice>,
    /// Registers of the real-time clock (goldfish).
    pub clock: Option<u64>,
}

impl Survey {
    /// Collects the facts of a tree.
    #[must_use]
    #[inline(never)]
    pub fn read(tree: &Tree<'_>) -> Self {
        let root = tree.find("/");
        let seed = tree
            .find("/chosen")
            .and_then(|chosen| chosen.property("rng-seed"));
        Self {
            model: root.and_then(|root| root.text("model")).map(String::from),
            timebase_hertz: tree
                .find("/cpus")
                .and_then(|cpus| cpus.number("timebase-frequency"))
                .and_then(|hertz| u32::try_from(hertz).ok())
                .filter(|hertz| *hertz != 0),
            harts: hart::harts(tree),
            memory: memory::banks(tree),
            reserved: memory::reserved(tree),
            initrd: memory::initrd(tree),
            rng_seed: seed.map(<[u8]>::to_vec).unwrap_or_default(),
            interrupts: interrupts::read(tree),
            uart: console::read(tree),
            virtio: devices::virtio(tree),
            clock: devices::first(tree, "google,goldfish-rtc").map(|range| range.start),
        }
    }

    /// Harts whose ISA string names the hypervisor extension.
    pub fn harts_with_h(&self) -> impl Iterator<Item = &BoardHart> {
        self.harts.iter().filter(|hart| hart.extensions.has("h"))
    }

    /// All that the hypervisor needs and the tree does not name. Empty for a board that it can run on.
    #[must_use]
    pub fn lacks(&self) -> Vec<Lack> {
        let mut lacks = self.structural_lacks();
        if !self.harts.is_empty() && self.harts_with_h().next().is_none() {
            lacks.push(Lack::HypervisorExtension);
        }
        if matches!(self.interrupts, Interrupts::Messages { .. }) {
            let lacking = self
                .harts_with_h()
                .filter(|hart| !hart.extensions.has(SSAIA));
            let lacking: Vec<u64> = lacking.map(|hart| hart.id).collect();
            if !lacking.is_empty() {
                lacks.push(Lack::Extension(SSAIA, lacking));
            }
        }
        lacks
    }

    /// Parts without which no [`Board`] can be made. Extensions are left out: the hypervisor tries them.
    fn structural_lacks(&self) -> Vec<Lack> {
        let mut lacks = Vec::new();
        if self.timebase_hertz.is_none() {
            lacks.push(Lack::Timebase);
        }
        if self.harts.is_empty() {
            lacks.push(Lack::Harts);
        }
        if self.memory.is_empty() {
            lacks.push(Lack::Memory);
        }
        match &self.interrupts {
            Interrupts::Messages { aplic: None, .. } => lacks.push(Lack::Aplic),
            Interrupts::Messages { .. } | Interrupts::Direct(_) | Interrupts::Plic(_) => {}
            Interrupts::Unknown => lacks.push(Lack::Controller),
        }
        lacks
    }
}

/// A board that the hypervisor can use.
#[derive(Clone, Debug)]
pub struct Board {
    /// Ticks of `time` in a second.
    pub timebase_hertz: u32,
    /// Harts to which the interrupt controller leads.
    pub harts: Vec<BoardHart>,
    /// Banks of memory.
    pub memory: Vec<Range>,
    /// Memory of the firmware, the device tree and the initial RAM disk.
    pub reserved: Vec<Range>,
    /// The initial RAM disk.
    pub initrd: Option<Range>,
    /// Entropy of the firmware or its loader; empty where there is none.
    pub rng_seed: Vec<u8>,
    /// Interrupt controllers.
    pub controller: Controller,
    /// The console; without one, the firmware's is used.
    pub uart: Option<Uart>,
    /// virtio-mmio slots, in the order of their addresses.
    pub virtio: Vec<BoardDevice>,
    /// Registers of the real-time clock (goldfish).
    pub clock: Option<u64>,
}

impl Board {
    /// Takes what the hypervisor uses of a board whose tree lies at `location`.
    ///
    /// # Errors
    /// All that is missing.
    #[inline(never)]
    pub fn new(survey: Survey, location: Range) -> Result<Self, Vec<Lack>> {
        let lacks = survey.structural_lacks();
        let controller = Controller::of(survey.interrupts);
        let (Some(timebase_hertz), Some(controller), true) =
            (survey.timebase_hertz, controller, lacks.is_empty())
        else {
            return Err(lacks);
        };
        let mut harts = survey.harts;
        harts.retain(|hart| controller.delivery(hart).is_some());
        if harts.is_empty() {
            return Err([Lack::Harts].into());
        }
        let mut reserved = survey.reserved;
        reserved.push(location);
        reserved.extend(survey.initrd);
        Ok(Self {
            timebase_hertz,
            harts,
            memory: survey.memory.iter().map(|bank| bank.range).collect(),
            reserved,
            initrd: survey.initrd,
            rng_seed: survey.rng_seed,
            controller,
            uart: survey.uart,
            virtio: survey.virtio,
            clock: survey.clock,
        })
    }

    /// Tests whether all harts name an extension, in lower case.
    #[must_use]
    #[inline(never)]
    pub fn all_have(&self, extension: &str) -> bool {
        self.harts.iter().all(|hart| hart.extensions.has(extension))
    }

    /// Takes the harts out whose ISA string lacks the hypervisor extension (H), except `own`, and returns their ids.
    #[inline(never)]
    pub fn take_out_harts_without_h(&mut self, own: u64) -> Vec<u64> {
        let lacks = |hart: &BoardHart| hart.id != own && !hart.extensions.has("h");
        let lacking = self.harts.extract_if(.., |hart| lacks(hart));
        lacking.map(|hart| hart.id).collect()
    }

    /// Tests whether this virtio device's registers begin at a page in which no other virtio device has any.
    #[must_use]
    pub fn has_page_of_its_own(&self, device: BoardDevice) -> bool {
        let page = |base: u64| base / PAGE_BYTES;
        let in_page = self
            .virtio
            .iter()
            .filter(|other| page(other.base) == page(device.base));
        device.base.is_multiple_of(PAGE_BYTES) && device.size <= PAGE_BYTES && in_page.count() == 1
    }
}
