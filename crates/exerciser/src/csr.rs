//! Required behaviour of each of the 4,096 CSR numbers, by the privileged specification.
//!
//! Bits 11:10 of a number are 3 where the register is read-only, bits 9:8 are the lowest privilege that
//! may reach it: 0 user, 1 supervisor, 2 hypervisor and VS, 3 machine (section "CSR Address Mapping
//! Conventions").

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
    (0x001, 0x003, Always), // fflags, frm, fcsr
    (0x008, 0x00a, With("v")),
    (0x00f, 0x00f, With("v")),
    (0x011, 0x011, With("zicfiss")),
    (0x015, 0x015, With("zkr")),
    (0x017, 0x017, With("zcmt")),
    (0xc00, 0xc1f, Depends), // cycle, time, instret, hpmcounters: scounteren and above
    (0xc20, 0xc22, With("v")),
    (0x100, 0x100, Always), // sstatus
    (0x104, 0x106, Always), // sie, stvec, scounteren
    (0x10a, 0x10a, Always), // senvcfg
    (0x10c, 0x10f, With("ssstateen")),
    (0x120, 0x120, With("ssccfg")),
    (0x140, 0x144, Always), // sscratch, sepc, scause, stval, sip
    (0x14d, 0x14d, With("sstc")),
    (0x14e, 0x14f, With("ssctr")),
    (0x150, 0x150, With("ssaia")),
    (0x151, 0x151, Depends), // sireg: by siselect
    (0x152, 0x153, With("sscsrind")),
    (0x155, 0x157, With("sscsrind")),
    (0x15c, 0x15c, With("ssaia")),
    (0x15f, 0x15f, With("ssctr")),
    (0x180, 0x180, Always), // satp
    (0x181, 0x181, With("ssqosid")),
    (0x5a8, 0x5a8, Depends), // scontext: Sdtrig has no name in the ISA string
    (0xda0, 0xda0, With("sscofpmf")),
    (0xdb0, 0xdb0, With("ssaia")),
];

/// Hypervisor and VS CSRs of RV64 (table "hypervisor and VS CSR addresses"; AIA table 2.3; others as above).
const HYPERVISOR: &[(u16, u16, Presence)] = &[
    (0x200, 0x200, Always), // vsstatus
    (0x204, 0x205, Always), // vsie, vstvec
    (0x240, 0x244, Always), // vsscratch to vsip
    (0x24d, 0x24d, With("sstc")),
    (0x24e, 0x24e, With("ssctr")),
    (0x250, 0x250, With("ssaia")),
    (0x251, 0x251, Depends), // vsireg: by vsiselect
    (0x252, 0x253, With("sscsrind")),
    (0x255, 0x257, With("sscsrind")),
    (0x25c, 0x25c, Depends), // vstopei: by hstatus.VGEIN
    (0x280, 0x280, Always),  // vsatp
    (0x600, 0x600, Always),  // hstatus
    (0x602, 0x607, Always),  // hedeleg, hideleg, hie, htimedelta, hcounteren, hgeie
    (0x608, 0x609, With("ssaia")),
    (0x60a, 0x60a, Always), // henvcfg
    (0x60c, 0x60f, With("ssstateen")),
    (0x643, 0x645, Always), // htval, hip, hvip
    (0x646, 0x647, With("ssaia")),
    (0x64a, 0x64a, Always),  // htinst
    (0x680, 0x680, Always),  // hgatp
    (0x6a8, 0x6a8, Depends), // hcontext
    (0xe12, 0xe12, Always),  // hgeip
    (0xeb0, 0xeb0, With("ssaia")),
];

/// Highest CSR number.
pub const LAST: u16 = 0xfff;

/// The lowest privilege that may reach a register, bits 9:8.
#[must_use]
pub const fn level(number: u16) -> u16 {
    number >> 8 & 3
}

/// Tests whether a register can only be read, bits 11:10.
#[must_use]
pub const fn is_read_only(number: u16) -> bool {
    number >> 10 == 3
}

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
