//! The board's interrupt controller, of whatever kind.

use board::{Controller, Delivery};

use crate::devices::aplic::board::{AplicDriver, Target};
use crate::devices::irq::{SourceMode, SourceNumber, Sources};
use crate::devices::wired::{BoardRegisters, ControllerKind, WiredDriver};

/// Driver of the board's interrupt controller.
#[derive(Debug)]
pub enum BoardController {
    /// An APLIC that sends messages.
    Messages(AplicDriver),
    /// A controller that interrupts by wires.
    Wired(WiredDriver),
}

impl BoardController {
    /// Switches the controller on with every source off.
    #[must_use]
    pub fn new(controller: &Controller) -> Self {
        let by_wires = |kind, wired| Self::Wired(WiredDriver::new(kind, wired, BoardRegisters));
        match controller {
            Controller::Messages { aplic, .. } => Self::Messages(AplicDriver::new(aplic)),
            Controller::Direct(wired) => by_wires(ControllerKind::Aplic, wired),
            Controller::Plic(wired) => by_wires(ControllerKind::Plic, wired),
        }
    }

    /// The driver, if harts are interrupted by wires.
    #[must_use]
    #[inline]
    pub const fn wired(&self) -> Option<&WiredDriver> {
        match self {
            Self::Messages(_) => None,
            Self::Wired(driver) => Some(driver),
        }
    }

    /// Lets the calling hart, whose place this is, be interrupted by wires.
    pub fn open(&self, own: Delivery) {
        if let Self::Wired(driver) = self {
            driver.open(own);
        }
    }

    /// Gives `source` to the hypervisor itself, at `target`.
    pub fn take(&self, source: u32, target: Target) {
        self.enable(source, SourceMode::LevelHigh, target);
    }

    /// Enables `source` in this mode, sending to `target`. By wires every source is a level.
    #[inline(never)]
    pub fn enable(&self, source: u32, mode: SourceMode, target: Target) {
        match self {
            Self::Messages(driver) => driver.enable(source, mode, target),
            Self::Wired(driver) => driver.enable(source, target.hart_index()),
        }
    }

    /// Makes `source` send to `target` from now on. Earlier messages may still be in flight.
    pub fn send_to(&self, source: u32, target: Target) {
        match self {
            Self::Messages(driver) => driver.send_to(source, target),
            Self::Wired(driver) => driver.send_to(source, target.hart_index()),
        }
    }

    /// Configures the mode of a source, and disables it.
    pub fn silence(&self, source: u32, mode: SourceMode) {
        match self {
            Self::Messages(driver) => driver.silence(source, mode),
            Self::Wired(driver) => driver.silence(source),
        }
    }

    /// Makes a level-sensitive source that was served send its message again if its line is still high. By wires a source waits to be
    /// [completed](Self::complete) instead.
    #[inline]
    pub fn resample(&self, source: u32) {
        if let Self::Messages(driver) = self {
            driver.resample(source);
        }
    }

    /// Completes a source that was claimed and served. Messages need no completion.
    #[inline]
    pub fn complete(&self, source: u32) {
        if let Self::Wired(driver) = self {
            driver.complete(source);
        }
    }

    /// Sets or clears the pending bit of a source that sends messages, as the guest asked.
    pub fn set_pending(&self, source: u32, pending: bool) {
        if let Self::Messages(driver) = self {
            driver.set_pending(source, pending);
        }
    }

    /// Sends a message that arrives after all earlier ones. Returns false if that is impossible.
    pub fn send_message(&self, target: Target) -> bool {
        match self {
            Self::Messages(driver) => driver.send_message(target),
            Self::Wired(_) => false,
        }
    }
}

impl Sources for BoardController {
    fn pending(&self, source: SourceNumber) -> bool {
        match self {
            Self::Messages(driver) => driver.pending(source),
            Self::Wired(_) => false,
        }
    }

    fn rectified_input(&self, source: SourceNumber) -> bool {
        match self {
            Self::Messages(driver) => driver.rectified_input(source),
            Self::Wired(_) => false,
        }
    }
}
