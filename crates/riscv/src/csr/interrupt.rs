//! Major interrupts as bits of mip, mie, mideleg and of the registers of the other modes that look like them (sections
//! "Machine Interrupt Registers", "Hypervisor Interrupt Registers").

use crate::interrupt;

/// Supervisor software interrupt.
pub const SSI: u64 = 1 << interrupt::SUPERVISOR_SOFTWARE;
/// VS software interrupt.
pub const VSSI: u64 = 1 << interrupt::VIRTUAL_SUPERVISOR_SOFTWARE;
/// Machine software interrupt.
pub const MSI: u64 = 1 << interrupt::MACHINE_SOFTWARE;
/// Supervisor timer interrupt.
pub const STI: u64 = 1 << interrupt::SUPERVISOR_TIMER;
/// VS timer interrupt.
pub const VSTI: u64 = 1 << interrupt::VIRTUAL_SUPERVISOR_TIMER;
/// Machine timer interrupt.
pub const MTI: u64 = 1 << interrupt::MACHINE_TIMER;
/// Supervisor external interrupt.
pub const SEI: u64 = 1 << interrupt::SUPERVISOR_EXTERNAL;
/// VS external interrupt.
pub const VSEI: u64 = 1 << interrupt::VIRTUAL_SUPERVISOR_EXTERNAL;
/// Machine external interrupt.
pub const MEI: u64 = 1 << interrupt::MACHINE_EXTERNAL;
/// Supervisor guest external interrupt.
pub const SGEI: u64 = 1 << interrupt::SUPERVISOR_GUEST_EXTERNAL;
/// Local counter-overflow interrupt (Sscofpmf).
pub const LCOFI: u64 = 1 << interrupt::COUNTER_OVERFLOW;
