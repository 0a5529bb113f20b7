//! Computers that a system runs on: QEMU's board, and the machine in this process.
//!
//! Both have the same board, boot the same hypervisor and the same system image, and are seen from outside through the
//! same [`Computer`]: a console and an end. [`crate::headless`] runs a system on the machine without a terminal, for whoever
//! wants figures alone.

pub(crate) mod board;
mod emulator;
mod error;
mod interface;
pub(crate) mod line;
mod process;
pub(crate) mod simulator;
mod uplink;

pub use ::machine::front::firmware;
pub use board::{Bridge, Chosen, Shift};
pub use error::ComputerError;
pub use interface::{Attendance, Computer, Early, End, GRACE, POWER_OFF_KEYS, Piece, Setup};
pub use process::Process;

use crate::qemu::Variant;
use std::sync::mpsc::Sender;

/// Which computer.
#[derive(Debug, Clone)]
pub enum ComputerKind {
    /// QEMU's virt board, in a process of its own.
    Qemu(Variant),
    /// The machine.
    Machine(Box<Chosen>),
}

/// Switches a computer on. What its console says goes to `output`, an empty piece at the end.
///
/// # Errors
/// The computer cannot be switched on; nothing has happened then.
pub fn start(
    kind: &ComputerKind,
    setup: &Setup<'_>,
    attendance: Attendance,
    output: Sender<Piece>,
) -> Result<Box<dyn Computer>, ComputerError> {
    match kind {
        ComputerKind::Qemu(variant) => emulator::start(setup, variant, output),
        ComputerKind::Machine(chosen) => {
            let (machine, users) = board::build(setup, chosen)?;
            simulator::start(machine, users, attendance, chosen.later_check(), output)
        }
    }
}
