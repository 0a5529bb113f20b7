//! The board's supervisor-level APLIC, which turns the devices' wires into messages (AIA, chapter 4).
//!
//! A device that belongs to a VM sends straight to the guest file of the vCPU that the guest chose. While that vCPU
//! has no guest file, the message goes to a hart of the hypervisor, under an identity that stands for the source.

use riscv::aplic::register::{
    CLRIENUM, CLRIPNUM, DOMAINCFG, GENMSI, IN_CLRIP, SETIENUM, SETIP, SETIPNUM,
};
use riscv::aplic::{
    DOMAINCFG_DM, DOMAINCFG_IE, GENMSI_BUSY, GUEST_INDEX_SHIFT, HART_INDEX_SHIFT, register,
};

use crate::lock::{Mutex, place};

use crate::devices::irq::{SourceMode, SourceNumber, Sources};
use crate::hart::decode::Width;
use crate::hart::device;
use board::Aplic;

/// Base of the sourcecfg registers: that of source *i* is 4 *i* from here.
const SOURCECFG: u64 = register::SOURCECFG - 4;
/// Base of the target registers.
const TARGET: u64 = register::TARGET - 4;

/// Polls of the APLIC until it has sent a message. Sending takes one store of the APLIC's own.
const PATIENCE: u32 = 10_000;

/// Destination of a source's, or of genmsi's, message: a value of the `target` registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(u32);

impl Target {
    /// Identity `number` of the file of a hart itself, by its index at the IMSIC.
    #[must_use]
    pub fn hypervisor(imsic_index: u64, number: u32) -> Self {
        Self::guest(imsic_index, 0, number)
    }

    /// Hart's index at the controller.
    #[must_use]
    pub const fn hart_index(self) -> u32 {
        self.0 >> HART_INDEX_SHIFT
    }

    /// Identity `number` of guest file `file` of a hart.
    #[must_use]
    pub fn guest(imsic_index: u64, file: u8, number: u32) -> Self {
        let place = (imsic_index as u32) << HART_INDEX_SHIFT | u32::from(file) << GUEST_INDEX_SHIFT;
        Self(place | number)
    }
}

/// Driver of the board's APLIC.
#[derive(Debug)]
pub struct AplicDriver {
    base: u64,
    sources: u32,
    /// Held while a source's several registers are changed.
    change: Mutex<(), { place::SOURCE }>,
}

impl AplicDriver {
    /// Switches the domain on with every source off.
    #[must_use]
    pub fn new(aplic: &Aplic) -> Self {
        let aplic = Self {
            base: aplic.base,
            sources: aplic.sources,
            change: Mutex::new(()),
        };
        for source in 1..=aplic.sources {
            aplic.write(CLRIENUM, source);
            aplic.write(
                SOURCECFG + 4 * u64::from(source),
                SourceMode::Inactive.field(),
            );
        }
        aplic.write(DOMAINCFG, DOMAINCFG_IE | DOMAINCFG_DM);
        aplic
    }

    fn read(&self, offset: u64) -> u32 {
        // SAFETY: the offset lies in the control region that the board's device tree names; its registers are words.
        let word = unsafe { device::load(self.base + offset, Width::Word) };
        u32::from_le(word.unwrap_or(0) as u32)
    }

    fn write(&self, offset: u64, value: u32) {
        // SAFETY: as for `read`.
        let _ = unsafe { device::store(self.base + offset, Width::Word, value.to_le().into()) };
    }

    fn exists(&self, source: u32) -> bool {
        (1..=self.sources).contains(&source)
    }

    /// Makes a level-sensitive source that was served send again if its wire is still high.
    pub fn resample(&self, source: u32) {
        self.write(SETIPNUM, source);
    }

    /// Enables `source` in this mode, sending to `target`.
    pub fn enable(&self, source: u32, mode: SourceMode, target: Target) {
        if self.exists(source) {
            let _guard = self.change.lock();
            let register = TARGET + 4 * u64::from(source);
            // An active source must not send to its former target.
            self.write(register, target.0);
            self.write(SOURCECFG + 4 * u64::from(source), mode.field());
            // An active source keeps its target; an inactive one may have lost it (AIA, "Source configurations").
            self.write(register, target.0);
            self.write(SETIENUM, source);
        }
    }

    /// Makes `source` send to `target` from now on. Earlier messages may still be in flight.
    pub fn send_to(&self, source: u32, target: Target) {
        if self.exists(source) {
            let register = TARGET + 4 * u64::from(source);
            self.write(register, target.0);
            // The APLIC answers after it has taken the new target.
            let _ = self.read(register);
        }
    }

    /// Sends one message to a hart's own file. It arrives after all that the APLIC has sent to this hart before (AIA,
    /// "Generate MSI"). Returns false if the APLIC does not take it.
    pub fn send_message(&self, target: Target) -> bool {
        let _guard = self.change.lock();
        for _ in 0..PATIENCE {
            if self.read(GENMSI) & GENMSI_BUSY == 0 {
                self.write(GENMSI, target.0);
                return true;
            }
        }
        false
    }

    /// Configures the mode of a source, and disables it.
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

    fn bit(&self, registers: u64, source: u32) -> bool {
        self.exists(source)
            && self.read(registers + 4 * u64::from(source / 32)) >> (source % 32) & 1 != 0
    }
}

impl Sources for AplicDriver {
    fn pending(&self, source: SourceNumber) -> bool {
        self.bit(SETIP, source.0)
    }

    fn rectified_input(&self, source: SourceNumber) -> bool {
        self.bit(IN_CLRIP, source.0)
    }
}
