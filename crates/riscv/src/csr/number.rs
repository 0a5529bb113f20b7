//! Numbers of the CSRs of RV64 (privileged architecture, section "CSR Listing"), under the names that they have there.
//!
//! Of an array of registers the first and the last have a name here.

/// Makes a constant of each number, and the table of all of them.
macro_rules! numbers {
    ($($(#[$section:meta])* { $($name:ident = $number:literal,)* })*) => {
        $($(#[allow(missing_docs, reason = "the name is the specification's")] pub const $name: u16 = $number;)*)*

        /// The numbers above with their names, in capital letters.
        pub const ALL: &[(u16, &str)] = &[$($(($name, stringify!($name)),)*)*];
    };
}

numbers! {
    /// "Currently allocated RISC-V unprivileged CSR addresses".
    {
        FFLAGS = 0x001, FRM = 0x002, FCSR = 0x003,
        VSTART = 0x008, VXSAT = 0x009, VXRM = 0x00a, VCSR = 0x00f,
        SSP = 0x011, SEED = 0x015, JVT = 0x017,
        CYCLE = 0xc00, TIME = 0xc01, INSTRET = 0xc02, HPMCOUNTER3 = 0xc03, HPMCOUNTER31 = 0xc1f,
        VL = 0xc20, VTYPE = 0xc21, VLENB = 0xc22,
    }
    /// "Currently allocated RISC-V supervisor-level CSR addresses".
    {
        SSTATUS = 0x100, SIE = 0x104, STVEC = 0x105, SCOUNTEREN = 0x106, SENVCFG = 0x10a,
        SSTATEEN0 = 0x10c, SSTATEEN3 = 0x10f, SCOUNTINHIBIT = 0x120,
        SSCRATCH = 0x140, SEPC = 0x141, SCAUSE = 0x142, STVAL = 0x143, SIP = 0x144,
        STIMECMP = 0x14d, SCTRCTL = 0x14e, SCTRSTATUS = 0x14f,
        SISELECT = 0x150, SIREG = 0x151, SIREG2 = 0x152, SIREG3 = 0x153,
        SIREG4 = 0x155, SIREG5 = 0x156, SIREG6 = 0x157, STOPEI = 0x15c, SCTRDEPTH = 0x15f,
        SATP = 0x180, SRMCFG = 0x181, SCONTEXT = 0x5a8, SCOUNTOVF = 0xda0, STOPI = 0xdb0,
    }
    /// "Currently allocated RISC-V hypervisor and VS CSR addresses".
    {
        HSTATUS = 0x600, HEDELEG = 0x602, HIDELEG = 0x603, HIE = 0x604, HTIMEDELTA = 0x605,
        HCOUNTEREN = 0x606, HGEIE = 0x607, HVIEN = 0x608, HVICTL = 0x609, HENVCFG = 0x60a,
        HSTATEEN0 = 0x60c, HSTATEEN1 = 0x60d, HSTATEEN3 = 0x60f,
        HTVAL = 0x643, HIP = 0x644, HVIP = 0x645, HVIPRIO1 = 0x646, HVIPRIO2 = 0x647,
        HTINST = 0x64a, HGATP = 0x680, HCONTEXT = 0x6a8, HGEIP = 0xe12,
        VSSTATUS = 0x200, VSIE = 0x204, VSTVEC = 0x205,
        VSSCRATCH = 0x240, VSEPC = 0x241, VSCAUSE = 0x242, VSTVAL = 0x243, VSIP = 0x244,
        VSTIMECMP = 0x24d, VSCTRCTL = 0x24e,
        VSISELECT = 0x250, VSIREG = 0x251, VSIREG2 = 0x252, VSIREG3 = 0x253,
        VSIREG4 = 0x255, VSIREG5 = 0x256, VSIREG6 = 0x257, VSTOPEI = 0x25c,
        VSATP = 0x280, VSTOPI = 0xeb0,
    }
    /// "Currently allocated RISC-V machine-level CSR addresses".
    {
        MVENDORID = 0xf11, MARCHID = 0xf12, MIMPID = 0xf13, MHARTID = 0xf14, MCONFIGPTR = 0xf15,
        MSTATUS = 0x300, MISA = 0x301, MEDELEG = 0x302, MIDELEG = 0x303, MIE = 0x304,
        MTVEC = 0x305, MCOUNTEREN = 0x306, MVIEN = 0x308, MVIP = 0x309, MENVCFG = 0x30a,
        MSTATEEN0 = 0x30c, MSTATEEN3 = 0x30f,
        MCOUNTINHIBIT = 0x320, MCYCLECFG = 0x321, MINSTRETCFG = 0x322, MHPMEVENT3 = 0x323, MHPMEVENT31 = 0x33f,
        MSCRATCH = 0x340, MEPC = 0x341, MCAUSE = 0x342, MTVAL = 0x343, MIP = 0x344,
        MTINST = 0x34a, MTVAL2 = 0x34b, MISELECT = 0x350, MIREG = 0x351, MTOPEI = 0x35c,
        PMPCFG0 = 0x3a0, PMPCFG2 = 0x3a2, PMPCFG4 = 0x3a4, PMPCFG6 = 0x3a6, PMPCFG8 = 0x3a8,
        PMPCFG10 = 0x3aa, PMPCFG12 = 0x3ac, PMPCFG14 = 0x3ae,
        PMPADDR0 = 0x3b0, PMPADDR1 = 0x3b1, PMPADDR2 = 0x3b2, PMPADDR7 = 0x3b7,
        PMPADDR15 = 0x3bf, PMPADDR16 = 0x3c0, PMPADDR63 = 0x3ef,
        MSECCFG = 0x747,
        TSELECT = 0x7a0, TDATA1 = 0x7a1, TDATA2 = 0x7a2, TDATA3 = 0x7a3, TINFO = 0x7a4,
        MCYCLE = 0xb00, MINSTRET = 0xb02, MHPMCOUNTER3 = 0xb03, MHPMCOUNTER31 = 0xb1f,
        MTOPI = 0xfb0,
    }
    /// Hardware that the papers propose, in the space for custom registers of hypervisor level (docs/reference/extensions.md).
    {
        HPLEGAP = 0x6c0, HPLEWINDOW = 0x6c1, HPURGE = 0x6c2, HLOCKHOLDER = 0x6c3,
    }
}

/// Base of the unprivileged counters: counter *n* is this number plus *n*.
pub const COUNTERS: u16 = CYCLE;

/// Number of CSRs that an instruction can name: 12 bits.
pub const COUNT: usize = 1 << 12;

/// Lowest privilege that may reach a register, bits 9:8 of its number: 0 is user, 1 supervisor, 2 hypervisor and VS, 3 machine
/// (section "CSR Address Mapping Conventions").
#[must_use]
pub const fn level(number: u16) -> u16 {
    number >> 8 & 3
}

/// Tests whether a register can only be read: bits 11:10 of its number are 3 (section "CSR Address Mapping Conventions").
#[must_use]
pub const fn is_read_only(number: u16) -> bool {
    number >> 10 == 3
}

/// Name of a register in capital letters, `None` for a number without one here.
#[must_use]
pub fn name(number: u16) -> Option<&'static str> {
    let found = ALL.iter().find(|(named, _)| *named == number);
    found.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_has_two_names() {
        for (index, (number, name)) in ALL.iter().enumerate() {
            for (other, another) in &ALL[index + 1..] {
                assert!(number != other && name != another, "{name} {another}");
            }
        }
    }

    #[test]
    fn level_agrees_with_first_letter() {
        for (number, name) in ALL {
            let expected = match (name.as_bytes(), *number) {
                // ssp belongs to user mode, and scontext and the rest to supervisor mode.
                (_, number) if number == SSP => 0,
                ([b'S', ..], number) if number != SEED => 1,
                ([b'V', b'S', ..], number) if number != VSTART => 2,
                ([b'H', b'P', b'M', ..], _) => 0,
                ([b'H', ..], _) => 2,
                ([b'M' | b'P', ..], _) => 3,
                // The trigger module, but for time.
                ([b'T', ..], number) if number != TIME => 3,
                _ => 0,
            };
            assert_eq!(level(*number), expected, "{name}");
        }
    }

    #[test]
    fn names_are_found_by_number() {
        assert_eq!(name(HGATP), Some("HGATP"));
        assert_eq!(name(0xfff), None);
    }
}
