//! The control and status registers of a hart.

pub mod field;
mod pmp;
mod triggers;
pub mod warl;

pub use crate::base::Interrupt;
pub use pmp::{Pmp, PmpCheck};
pub use riscv::csr::number;
pub use triggers::{INFO as TRIGGER_INFO, Matched, Triggers};

use serde::{Deserialize, Serialize};

use field::{hstatus, status};
use riscv::csr::address_translation::{VMID_MAX, VMID_SHIFT};

/// misa's bit of V, which harts with a vector unit have.
pub const MISA_V: u64 = 1 << (b'V' - b'A');

/// misa: RV64 with A, C, D, F, H, I, M, S and U. None of them can be switched off.
pub const MISA: u64 = 2 << 62
    | 1
    | 1 << (b'C' - b'A')
    | 1 << (b'D' - b'A')
    | 1 << (b'F' - b'A')
    | 1 << (b'H' - b'A')
    | 1 << (b'I' - b'A')
    | 1 << (b'M' - b'A')
    | 1 << (b'S' - b'A')
    | 1 << (b'U' - b'A');

/// How many hardware performance counters there are besides cycle, time and instret.
pub const HPM_COUNTERS: usize = 29;

/// The state behind the CSRs, as the specification divides it. Fields that are computed when they
/// are read (mip's interrupt levels, SD, aliases) are not here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Csrs {
    pub fflags: u64,
    pub frm: u64,
    pub ssp: u64,
    /// ELP: the next instruction must be a landing pad.
    pub landing_pad_expected: bool,

    pub mstatus: u64,
    pub medeleg: u64,
    pub mideleg: u64,
    pub mie: u64,
    /// mip.SSIP, STIP, SEIP, VSSIP and hvip.VSTIP, VSEIP as software wrote them.
    pub mip: u64,
    pub mtvec: u64,
    pub mcounteren: u64,
    pub menvcfg: u64,
    pub mseccfg: u64,
    pub mvien: u64,
    /// mvip's bits for interrupts that mvien gives to supervisors.
    pub delivered: u64,
    /// sie's bits for the same.
    pub delivered_enabled: u64,
    pub mcountinhibit: u64,
    pub mcyclecfg: u64,
    pub minstretcfg: u64,
    pub mscratch: u64,
    pub mepc: u64,
    pub mcause: u64,
    pub mtval: u64,
    pub mtval2: u64,
    pub mtinst: u64,
    pub miselect: u64,
    pub pmp: Pmp,
    pub triggers: Triggers,
    pub mhpmevent: [u64; HPM_COUNTERS],

    pub stvec: u64,
    pub scounteren: u64,
    pub senvcfg: u64,
    pub sscratch: u64,
    pub sepc: u64,
    pub scause: u64,
    pub stval: u64,
    pub satp: u64,
    pub stimecmp: u64,
    pub siselect: u64,

    pub hstatus: u64,
    pub hedeleg: u64,
    pub hideleg: u64,
    pub hcounteren: u64,
    pub hgeie: u64,
    pub htimedelta: u64,
    pub henvcfg: u64,
    pub htval: u64,
    pub htinst: u64,
    pub hgatp: u64,
    pub hvictl: u64,
    pub hvien: u64,
    /// hvip's bits for interrupts that exist for guests alone (hvien).
    pub injected: u64,
    /// vsie's bits for the same.
    pub injected_enabled: u64,

    pub vsstatus: u64,
    pub vstvec: u64,
    pub vsscratch: u64,
    pub vsepc: u64,
    pub vscause: u64,
    pub vstval: u64,
    pub vsatp: u64,
    pub vstimecmp: u64,
    pub vsiselect: u64,

    pub mstateen: [u64; 4],
    pub hstateen: [u64; 4],

    /// Offset from the hart's own counts to get mcycle, minstret, mhpmcounter3 and so
    /// on; the value itself while the counter is inhibited.
    pub counter_bases: [u64; HPM_COUNTERS + 3],
    /// Values of the counters at the last check for overflows.
    pub counters_seen: [u64; HPM_COUNTERS + 3],
}

impl Csrs {
    /// The state after reset.
    #[must_use]
    pub fn new() -> Self {
        Self {
            fflags: 0,
            frm: 0,
            ssp: 0,
            landing_pad_expected: false,
            mstatus: 0,
            medeleg: 0,
            mideleg: field::interrupt::HYPERVISOR,
            mie: 0,
            mip: 0,
            mtvec: 0,
            mcounteren: 0,
            menvcfg: 0,
            mseccfg: 0,
            mvien: 0,
            delivered: 0,
            delivered_enabled: 0,
            mcountinhibit: 0,
            mcyclecfg: 0,
            minstretcfg: 0,
            mscratch: 0,
            mepc: 0,
            mcause: 0,
            mtval: 0,
            mtval2: 0,
            mtinst: 0,
            miselect: 0,
            pmp: Pmp::default(),
            triggers: Triggers::default(),
            mhpmevent: [0; HPM_COUNTERS],
            stvec: 0,
            scounteren: 0,
            senvcfg: 0,
            sscratch: 0,
            sepc: 0,
            scause: 0,
            stval: 0,
            satp: 0,
            stimecmp: u64::MAX,
            siselect: 0,
            hstatus: 0,
            hedeleg: 0,
            hideleg: 0,
            hcounteren: 0,
            hgeie: 0,
            htimedelta: 0,
            henvcfg: 0,
            htval: 0,
            htinst: 0,
            hgatp: 0,
            hvictl: 0,
            hvien: 0,
            injected: 0,
            injected_enabled: 0,
            vsstatus: 0,
            vstvec: 0,
            vsscratch: 0,
            vsepc: 0,
            vscause: 0,
            vstval: 0,
            vsatp: 0,
            vstimecmp: u64::MAX,
            vsiselect: 0,
            mstateen: [0; 4],
            hstateen: [0; 4],
            counter_bases: [0; HPM_COUNTERS + 3],
            counters_seen: [0; HPM_COUNTERS + 3],
        }
    }

    /// hgatp.VMID.
    #[must_use]
    pub const fn vmid(&self) -> u16 {
        (self.hgatp >> VMID_SHIFT & VMID_MAX) as u16
    }

    /// hstatus.VGEIN.
    #[must_use]
    pub const fn vgein(&self) -> u8 {
        ((self.hstatus & hstatus::VGEIN) >> hstatus::VGEIN_SHIFT) as u8
    }

    /// Tests whether floating point is off for the mode: FS of mstatus, and of vsstatus if V = 1.
    #[inline]
    #[must_use]
    pub const fn float_is_off(&self, virtualized: bool) -> bool {
        self.mstatus & status::FS == 0 || (virtualized && self.vsstatus & status::FS == 0)
    }

    /// Tests whether vectors are off for the mode: VS of mstatus, and of vsstatus if V = 1.
    #[inline]
    #[must_use]
    pub const fn vectors_are_off(&self, virtualized: bool) -> bool {
        self.mstatus & status::VS == 0 || (virtualized && self.vsstatus & status::VS == 0)
    }

    /// Notes that vector state has changed.
    #[inline]
    pub const fn set_vector_dirty(&mut self, virtualized: bool) {
        self.mstatus |= status::VS;
        if virtualized {
            self.vsstatus |= status::VS;
        }
    }

    /// Notes that floating-point state has changed.
    #[inline]
    pub const fn set_float_dirty(&mut self, virtualized: bool) {
        self.mstatus |= status::FS;
        if virtualized {
            self.vsstatus |= status::FS;
        }
    }
}

impl Default for Csrs {
    fn default() -> Self {
        Self::new()
    }
}
