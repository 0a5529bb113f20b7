//! Required behaviour of each of the 4,096 CSR numbers, by the privileged specification.
//!
//! Bits 11:10 of a number are 3 where the register is read-only, bits 9:8 are the lowest privilege that
//! may reach it: 0 user, 1 supervisor, 2 hypervisor and VS, 3 machine (section "CSR Address Mapping
//! Conventions").

use riscv::csr::number::{COUNT, is_read_only, level};
use riscv::csr::number::{
    CYCLE, FCSR, FFLAGS, HCONTEXT, HEDELEG, HENVCFG, HGATP, HGEIE, HGEIP, HPMCOUNTER31, HSTATEEN0,
    HSTATEEN3, HSTATUS, HTINST, HTVAL, HVICTL, HVIEN, HVIP, HVIPRIO1, HVIPRIO2, JVT, SATP,
    SCONTEXT, SCOUNTEREN, SCOUNTINHIBIT, SCOUNTOVF, SCTRCTL, SCTRDEPTH, SCTRSTATUS, SEED, SENVCFG,
    SIE, SIP, SIREG, SIREG2, SIREG3, SIREG4, SIREG6, SISELECT, SRMCFG, SSCRATCH, SSP, SSTATEEN0,
    SSTATEEN3, SSTATUS, STIMECMP, STOPEI, STOPI, VCSR, VL, VLENB, VSATP, VSCTRCTL, VSIE, VSIP,
    VSIREG, VSIREG2, VSIREG3, VSIREG4, VSIREG6, VSISELECT, VSSCRATCH, VSSTATUS, VSTART, VSTIMECMP,
    VSTOPEI, VSTOPI, VSTVEC, VXRM,
};

/// The computer that the exerciser runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// The computer itself, in HS-mode.
    WithHypervisorExtension,
    /// The computer itself, in S-mode of harts without the H extension.
    WithoutHypervisorExtension,
    /// A virtual machine: VS-mode, and a device tree that offers no H extension.
    VirtualMachine,
}

/// Permitted outcome of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It completes.
    Completes,
    /// An illegal-instruction exception.
    ///
    /// In VS-mode the accesses of which [`is_virtual`] is true raise a virtual-instruction exception in
    /// HS-mode instead. A guest whose harts have no H extension must still see illegal-instruction: cause
    /// 22 does not exist on such a hart.
    Illegal,
    /// One of the two, as the implementation likes: an optional extension or a counter.
    Either,
}

/// The extension that brings a register, where it is not the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Always,
    With(&'static str),
    /// A counter, or a register whose reach depends on another's contents.
    Depends,
}

use Presence::{Always, Depends, With};

/// User and supervisor CSRs (table "Currently allocated RISC-V unprivileged / supervisor-level CSR
/// addresses"; AIA table 2.2; Sstc; Ssctr; Sscsrind; Ssqosid; Sdtrig).
const SUPERVISOR: &[(u16, u16, Presence)] = &[
    (FFLAGS, FCSR, Always),
    (VSTART, VXRM, With("v")),
    (VCSR, VCSR, With("v")),
    (SSP, SSP, With("zicfiss")),
    (SEED, SEED, With("zkr")),
    (JVT, JVT, With("zcmt")),
    (CYCLE, HPMCOUNTER31, Depends), // by scounteren and above
    (VL, VLENB, With("v")),
    (SSTATUS, SSTATUS, Always),
    (SIE, SCOUNTEREN, Always),
    (SENVCFG, SENVCFG, Always),
    (SSTATEEN0, SSTATEEN3, With("ssstateen")),
    (SCOUNTINHIBIT, SCOUNTINHIBIT, With("ssccfg")),
    (SSCRATCH, SIP, Always),
    (STIMECMP, STIMECMP, With("sstc")),
    (SCTRCTL, SCTRSTATUS, With("ssctr")),
    (SISELECT, SISELECT, With("ssaia")),
    (SIREG, SIREG, Depends), // by siselect
    (SIREG2, SIREG3, With("sscsrind")),
    (SIREG4, SIREG6, With("sscsrind")),
    (STOPEI, STOPEI, With("ssaia")),
    (SCTRDEPTH, SCTRDEPTH, With("ssctr")),
    (SATP, SATP, Always),
    (SRMCFG, SRMCFG, With("ssqosid")),
    (SCONTEXT, SCONTEXT, Depends), // Sdtrig has no name in the ISA string
    (SCOUNTOVF, SCOUNTOVF, With("sscofpmf")),
    (STOPI, STOPI, With("ssaia")),
];

/// Hypervisor and VS CSRs of RV64 (table "hypervisor and VS CSR addresses"; AIA table 2.3; others as above).
const HYPERVISOR: &[(u16, u16, Presence)] = &[
    (VSSTATUS, VSSTATUS, Always),
    (VSIE, VSTVEC, Always),
    (VSSCRATCH, VSIP, Always),
    (VSTIMECMP, VSTIMECMP, With("sstc")),
    (VSCTRCTL, VSCTRCTL, With("ssctr")),
    (VSISELECT, VSISELECT, With("ssaia")),
    (VSIREG, VSIREG, Depends), // by vsiselect
    (VSIREG2, VSIREG3, With("sscsrind")),
    (VSIREG4, VSIREG6, With("sscsrind")),
    (VSTOPEI, VSTOPEI, Depends), // by hstatus.VGEIN
    (VSATP, VSATP, Always),
    (HSTATUS, HSTATUS, Always),
    (HEDELEG, HGEIE, Always),
    (HVIEN, HVICTL, With("ssaia")),
    (HENVCFG, HENVCFG, Always),
    (HSTATEEN0, HSTATEEN3, With("ssstateen")),
    (HTVAL, HVIP, Always),
    (HVIPRIO1, HVIPRIO2, With("ssaia")),
    (HTINST, HTINST, Always),
    (HGATP, HGATP, Always),
    (HCONTEXT, HCONTEXT, Depends),
    (HGEIP, HGEIP, Always),
    (VSTOPI, VSTOPI, With("ssaia")),
];

/// Highest CSR number.
pub const LAST: u16 = COUNT as u16 - 1;

fn presence(table: &[(u16, u16, Presence)], number: u16) -> Option<Presence> {
    table
        .iter()
        .find(|(first, last, _)| (*first..=*last).contains(&number))
        .map(|(_, _, presence)| *presence)
}

/// Tests whether an access from VS-mode is one that raises virtual-instruction in HS-mode rather than
/// illegal-instruction: the register is there, and HS-mode would be let through.
#[must_use]
pub fn is_virtual(number: u16, writes: bool) -> bool {
    level(number) == 2
        && presence(HYPERVISOR, number).is_some()
        && !(writes && is_read_only(number))
}

/// Required outcome of an access to a CSR. `has` answers whether an extension is in the ISA string.
pub fn expected(
    host: Host,
    number: u16,
    writes: bool,
    user: bool,
    has: impl Fn(&str) -> bool,
) -> Expected {
    let level = level(number);
    if writes && is_read_only(number) || level == 3 || user && level > 0 {
        return Expected::Illegal;
    }
    let table = if level == 2 { HYPERVISOR } else { SUPERVISOR };
    if level == 2 && host != Host::WithHypervisorExtension {
        return Expected::Illegal;
    }
    match presence(table, number) {
        // Counters and `time` may be closed to user mode by scounteren.
        Some(Depends) => Expected::Either,
        Some(Always) => Expected::Completes,
        // The state-enable registers close what their extension opens (Smstateen): a hart may have the
        // extension and still refuse the register, so a listed extension promises nothing here.
        Some(With("ssstateen")) => Expected::Either,
        // Nothing closes scountovf to a virtual machine that is not told of it (Sscofpmf, "Supervisor Count Overflow");
        // its bits are 0 for counters that hcounteren closes.
        Some(With("sscofpmf")) if host == Host::VirtualMachine => Expected::Either,
        Some(With(extension)) if has(extension) => Expected::Completes,
        Some(With(_)) | None => Expected::Illegal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything(_: &str) -> bool {
        true
    }

    #[test]
    fn a_virtual_machine_reaches_nothing_above_supervisor() {
        for number in 0..=LAST {
            for writes in [false, true] {
                let expected = expected(Host::VirtualMachine, number, writes, false, everything);
                if level(number) >= 2 {
                    assert_eq!(expected, Expected::Illegal, "{number:#x}");
                }
            }
        }
    }

    #[test]
    fn what_the_specification_calls_virtual() {
        // The specification's own examples: hypervisor and VS CSRs that HS-mode could access.
        assert!(is_virtual(0x600, true) && is_virtual(0x280, false));
        assert!(is_virtual(0xe12, false), "hgeip can be read in HS-mode");
        assert!(!is_virtual(0xe12, true), "hgeip is read-only");
        assert!(!is_virtual(0x615, false), "htimedeltah is RV32's");
        assert!(!is_virtual(0x300, false) && !is_virtual(0x100, false));
    }

    #[test]
    fn user_mode_reaches_user_registers_only() {
        let user =
            |number, writes| expected(Host::VirtualMachine, number, writes, true, everything);
        assert_eq!(user(0x003, true), Expected::Completes);
        assert_eq!(user(0xc01, false), Expected::Either);
        assert_eq!(user(0xc01, true), Expected::Illegal);
        assert_eq!(user(0x100, false), Expected::Illegal);
    }

    #[test]
    fn unlisted_extensions_bring_no_register() {
        let bare = |number| expected(Host::VirtualMachine, number, false, false, |_| false);
        assert_eq!(bare(0x14d), Expected::Illegal);
        assert_eq!(bare(0x180), Expected::Completes);
    }
}
