//! The board's supervisor-level APLIC, which turns the devices' wires into messages (AIA, chapter 4).
//!
//! A device that belongs to a VM sends straight to the guest file of the vCPU that the guest chose. While that vCPU
//! has no guest file, the message goes to a hart of the hypervisor, under an identity that tells the source.

use spin::Mutex;

use crate::board::Board as Computer;
use crate::devices::aplic::{Board, SourceMode, SourceNumber};
use crate::interrupts::{self, Backing, Route};
use crate::run::harts::identity;
use crate::run::system::Hypervisor;

const DOMAINCFG: u64 = 0x0000;
const SOURCECFG: u64 = 0x0000;
const SETIP: u64 = 0x1C00;
const SETIPNUM: u64 = 0x1CDC;
const IN_CLRIP: u64 = 0x1D00;
const CLRIPNUM: u64 = 0x1DDC;
const SETIENUM: u64 = 0x1EDC;
const CLRIENUM: u64 = 0x1FDC;
const TARGET: u64 = 0x3000;

/// domaincfg: interrupts enabled, delivery by messages.
const DOMAIN_ENABLED: u32 = 1 << 8;
const DOMAIN_MESSAGES: u32 = 1 << 2;

/// target: the hart's index, the guest's number, the identity.
const TARGET_HART_SHIFT: u32 = 18;
const TARGET_GUEST_SHIFT: u32 = 12;

/// The board's APLIC.
#[derive(Debug)]
pub struct BoardAplic {
    base: u64,
    sources: u32,
    /// Held while a source's several registers are changed.
    change: Mutex<()>,
}

impl BoardAplic {
    /// Switches the domain on with every source off.
    #[must_use]
    pub fn new(board: &Computer) -> Self {
        let aplic = Self {
            base: board.aplic.base,
            sources: board.aplic.sources,
            change: Mutex::new(()),
        };
        for source in 1..=aplic.sources {
            aplic.write(CLRIENUM, source);
            aplic.write(
                SOURCECFG + 4 * u64::from(source),
                SourceMode::Inactive.field(),
            );
        }
        aplic.write(DOMAINCFG, DOMAIN_ENABLED | DOMAIN_MESSAGES);
        aplic
    }

    fn read(&self, offset: u64) -> u32 {
        // SAFETY: the offset lies in the control region that the board's device tree names; its registers are words.
        u32::from_le(unsafe { ((self.base + offset) as *const u32).read_volatile() })
    }

    fn write(&self, offset: u64, value: u32) {
        // SAFETY: as for `read`.
        unsafe { ((self.base + offset) as *mut u32).write_volatile(value.to_le()) };
    }

    fn exists(&self, source: u32) -> bool {
        (1..=self.sources).contains(&source)
    }

    /// Gives `source` to the hypervisor itself: identity `number` of the hart at `imsic_index`.
    pub fn take(&self, source: u32, imsic_index: u64, number: u32) {
        if self.exists(source) {
            let _guard = self.change.lock();
            self.write(
                SOURCECFG + 4 * u64::from(source),
                SourceMode::LevelHigh.field(),
            );
            self.write(
                TARGET + 4 * u64::from(source),
                (imsic_index as u32) << TARGET_HART_SHIFT | number,
            );
            self.write(SETIENUM, source);
        }
    }

    /// A level-sensitive source has been served: if its wire is still high, it sends again.
    pub fn served(&self, source: u32) {
        self.write(SETIPNUM, source);
    }

    /// Enables `source` as the guest has configured it, sending to `backing`.
    pub fn enable(&self, system: &Hypervisor, route: Route, mode: SourceMode, backing: Backing) {
        if self.exists(route.source) {
            self.send_to(system, route, backing);
            let _guard = self.change.lock();
            self.write(SOURCECFG + 4 * u64::from(route.source), mode.field());
            // An active source keeps its target; an inactive one may have lost it (AIA, "Source configurations").
            self.write(
                TARGET + 4 * u64::from(route.source),
                target(system, route, backing),
            );
            self.write(SETIENUM, route.source);
        }
    }

    /// Makes `route`'s source send to `backing` from now on.
    pub fn send_to(&self, system: &Hypervisor, route: Route, backing: Backing) {
        if self.exists(route.source) {
            self.write(
                TARGET + 4 * u64::from(route.source),
                target(system, route, backing),
            );
        }
    }

    /// Configures the mode of a source whose interrupts nobody receives.
    pub fn silence(&self, source: u32, mode: SourceMode) {
        if self.exists(source) {
            let _guard = self.change.lock();
            self.write(CLRIENUM, source);
            self.write(SOURCECFG + 4 * u64::from(source), mode.field());
        }
    }

    /// Sets or clears the pending bit of a source, as the guest asked.
    pub fn set_pending(&self, source: u32, pending: bool) {
        if self.exists(source) {
            self.write(if pending { SETIPNUM } else { CLRIPNUM }, source);
        }
    }

    /// The board sent a message of `source` to the hypervisor: it goes to the vCPU that the source is routed to.
    pub fn deliver(&self, system: &Hypervisor, source: u32) {
        let mut receiver = None;
        for vcpu in &system.vcpus {
            let routes = vcpu.interrupts.lock();
            if let Some(route) = routes.sources.iter().find(|route| route.source == source) {
                receiver = Some((vcpu, route.identity));
                break;
            }
        }
        if let Some((vcpu, identity)) = receiver {
            let accounts = &crate::run::harts::current().accounts;
            accounts.of(vcpu.vm).count_injected();
            interrupts::deliver(system, vcpu, identity);
        }
    }

    fn bit(&self, registers: u64, source: u32) -> bool {
        self.exists(source)
            && self.read(registers + 4 * u64::from(source / 32)) >> (source % 32) & 1 != 0
    }
}

impl Board for BoardAplic {
    fn pending(&self, source: SourceNumber) -> bool {
        self.bit(SETIP, source.0)
    }

    fn rectified_input(&self, source: SourceNumber) -> bool {
        self.bit(IN_CLRIP, source.0)
    }
}

fn target(system: &Hypervisor, route: Route, backing: Backing) -> u32 {
    let index = |hart: usize| {
        system
            .harts
            .get(hart)
            .map_or(0, |hart| hart.board.imsic_index as u32)
    };
    match backing {
        Backing::File { hart, file } => {
            index(hart.index()) << TARGET_HART_SHIFT
                | u32::from(file) << TARGET_GUEST_SHIFT
                | route.identity.number()
        }
        Backing::Memory => index(0) << TARGET_HART_SHIFT | (identity::DEVICE + route.source),
    }
}
