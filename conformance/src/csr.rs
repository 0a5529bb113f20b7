//! CSR numbers (AIA, chapter 2; privileged ISA) and accesses that may trap.

use crate::trap;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$doc])* pub const $name: usize = $number;)*
    };
}

numbers! {
    /// mstatus.
    MSTATUS = 0x300;
    /// medeleg.
    MEDELEG = 0x302;
    /// mideleg.
    MIDELEG = 0x303;
    /// mie.
    MIE = 0x304;
    /// mvien: which virtual interrupts are active for supervisor level.
    MVIEN = 0x308;
    /// mvip: virtual interrupts for supervisor level.
    MVIP = 0x309;
    /// menvcfg.
    MENVCFG = 0x30a;
    /// mstateen0.
    MSTATEEN0 = 0x30c;
    /// mip.
    MIP = 0x344;
    /// miselect.
    MISELECT = 0x350;
    /// mireg.
    MIREG = 0x351;
    /// mtopei.
    MTOPEI = 0x35c;
    /// mtopi.
    MTOPI = 0xfb0;
    /// sie.
    SIE = 0x104;
    /// sip.
    SIP = 0x144;
    /// stimecmp.
    STIMECMP = 0x14d;
    /// siselect.
    SISELECT = 0x150;
    /// sireg.
    SIREG = 0x151;
    /// stopei.
    STOPEI = 0x15c;
    /// stopi.
    STOPI = 0xdb0;
    /// vsie.
    VSIE = 0x204;
    /// vsip.
    VSIP = 0x244;
    /// vsiselect.
    VSISELECT = 0x250;
    /// vsireg.
    VSIREG = 0x251;
    /// vstopei.
    VSTOPEI = 0x25c;
    /// vstopi.
    VSTOPI = 0xeb0;
    /// hstatus.
    HSTATUS = 0x600;
    /// hideleg.
    HIDELEG = 0x603;
    /// hie.
    HIE = 0x604;
    /// hgeie.
    HGEIE = 0x607;
    /// hvien.
    HVIEN = 0x608;
    /// hvictl.
    HVICTL = 0x609;
    /// hstateen0.
    HSTATEEN0 = 0x60c;
    /// hip.
    HIP = 0x644;
    /// hvip.
    HVIP = 0x645;
    /// hviprio1.
    HVIPRIO1 = 0x646;
    /// hgeip.
    HGEIP = 0xe12;
}

/// Exception codes.
pub const ILLEGAL: u64 = 2;
/// See above.
pub const VIRTUAL: u64 = 22;

/// An access: the value read, or the cause of the exception that it raised.
pub type Access = Result<u64, u64>;

fn outcome(value: u64) -> Access {
    trap::taken().map_or(Ok(value), |trap| Err(trap.cause))
}

/// csrr.
pub fn read<const CSR: usize>() -> Access {
    trap::clear();
    let value: u64;
    // SAFETY: the CSRs of these programs hold nothing that Rust depends on; an access that raises
    // an exception is skipped by the trap handler, and then the value is not looked at.
    unsafe { core::arch::asm!("li {0}, 0", "csrr {0}, {1}", out(reg) value, const CSR) };
    outcome(value)
}

/// csrrw: the value before.
pub fn swap<const CSR: usize>(value: u64) -> Access {
    trap::clear();
    let old: u64;
    // SAFETY: as for `read`.
    unsafe {
        core::arch::asm!("csrrw {0}, {1}, {2}", inlateout(reg) 0_u64 => old, const CSR, in(reg) value);
    }
    outcome(old)
}

/// csrw.
pub fn write<const CSR: usize>(value: u64) -> Access {
    trap::clear();
    // SAFETY: as for `read`.
    unsafe { core::arch::asm!("csrw {0}, {1}", const CSR, in(reg) value) };
    outcome(value)
}

/// csrs.
pub fn set<const CSR: usize>(bits: u64) -> Access {
    trap::clear();
    // SAFETY: as for `read`.
    unsafe { core::arch::asm!("csrs {0}, {1}", const CSR, in(reg) bits) };
    outcome(bits)
}

/// csrc.
pub fn clear<const CSR: usize>(bits: u64) -> Access {
    trap::clear();
    // SAFETY: as for `read`.
    unsafe { core::arch::asm!("csrc {0}, {1}", const CSR, in(reg) bits) };
    outcome(bits)
}

/// An indirectly accessed register: *iselect, then a read of *ireg.
pub fn read_indirect<const SELECT: usize, const REGISTER: usize>(select: u64) -> Access {
    write::<SELECT>(select)?;
    read::<REGISTER>()
}

/// An indirectly accessed register: *iselect, then a write of *ireg.
pub fn write_indirect<const SELECT: usize, const REGISTER: usize>(
    select: u64,
    value: u64,
) -> Access {
    write::<SELECT>(select)?;
    write::<REGISTER>(value)
}
