//! A guest's interrupt controller: an APLIC that sends messages, on boards with interrupt files, and a PLIC on others.

use abi::monitor::ExitCause;

use crate::devices::aplic::Aplic;
use crate::devices::irq::SourceNumber;
use crate::devices::plic::Plic;
use crate::devices::trapped::{Access, DeviceContext};

/// A guest's interrupt controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Controller {
    /// An APLIC in front of the vCPUs' interrupt files.
    Aplic(Aplic),
    /// A PLIC with a wire to each vCPU.
    Plic(Plic),
}

impl Controller {
    /// Exit cause under which the guest's accesses are counted.
    #[must_use]
    #[inline]
    pub const fn cause(&self) -> ExitCause {
        match self {
            Self::Aplic(_) => ExitCause::MmioAplic,
            Self::Plic(_) => ExitCause::MmioPlic,
        }
    }

    /// Wires a source that the hypervisor drives by [`set_input`](Self::set_input).
    pub fn add_virtual(&mut self, number: SourceNumber) {
        match self {
            Self::Aplic(aplic) => aplic.add_virtual(number),
            Self::Plic(plic) => plic.add_virtual(number),
        }
    }

    /// Wires a source of the board.
    pub fn add_physical(&mut self, number: SourceNumber) {
        match self {
            Self::Aplic(aplic) => aplic.add_physical(number),
            Self::Plic(plic) => plic.add_physical(number),
        }
    }

    /// Sets the level of a virtual source's wire.
    #[inline]
    pub fn set_input(&mut self, number: SourceNumber, high: bool, context: &dyn DeviceContext) {
        let effect = &mut |effect| context.apply(effect);
        match self {
            Self::Aplic(aplic) => aplic.set_input(number, high, effect),
            Self::Plic(plic) => plic.set_input(number, high, effect),
        }
    }

    /// Raises a source of the board. An APLIC's sources never come to the hypervisor's hands.
    pub fn raise(&mut self, number: SourceNumber, context: &dyn DeviceContext) {
        if let Self::Plic(plic) = self {
            plic.raise(number, &mut |effect| context.apply(effect));
        }
    }

    /// Recovers missed edges of the board's sources. A PLIC has none: its sources are levels.
    pub fn recover_missed_edges(&mut self, context: &dyn DeviceContext) {
        if let Self::Aplic(aplic) = self {
            let sources = context.sources();
            aplic.recover_missed_edges(sources, &mut |effect| context.apply(effect));
        }
    }

    /// Resets the controller, wires kept.
    pub fn reset(&mut self, context: &dyn DeviceContext) {
        let effect = &mut |effect| context.apply(effect);
        match self {
            Self::Aplic(aplic) => aplic.reset(effect),
            Self::Plic(plic) => plic.reset(effect),
        }
    }

    /// Value of the guest's load.
    #[inline]
    pub fn load(&mut self, access: Access, context: &dyn DeviceContext) -> u64 {
        match self {
            Self::Aplic(aplic) => aplic.load(access, context),
            Self::Plic(plic) => plic.load(access, &mut |effect| context.apply(effect)),
        }
    }

    /// Takes the guest's store.
    #[inline]
    pub fn store(&mut self, access: Access, value: u64, context: &dyn DeviceContext) {
        match self {
            Self::Aplic(aplic) => aplic.store(access, value, context),
            Self::Plic(plic) => plic.store(access, value, &mut |effect| context.apply(effect)),
        }
    }
}
