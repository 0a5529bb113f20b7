//! The interrupt files of this hart's IMSIC: its own supervisor-level file and its guest files.
//!
//! Numbers and layout: Advanced Interrupt Architecture, chapter 3 ("Incoming MSI Controller") for the indirectly
//! accessed registers, chapter 6 for hstatus.VGEIN selecting the file that vsiselect and vsireg reach.

use riscv::imsic::select::{EIDELIVERY, EIE, EITHRESHOLD};

use super::csr::{self, number};

/// With 64-bit registers only the even-numbered eip and eie registers exist.
const ARRAY_STEP: u64 = 2;

/// A guest file of this hart, selected for access. The hypervisor's hstatus.VGEIN and vsiselect are restored on drop.
#[derive(Debug)]
pub struct Selected {
    /// hstatus, where it named another file.
    status: Option<u64>,
    selector: u64,
}

impl Selected {
    /// Selects guest file `file` (1..=GEILEN) of this hart.
    #[inline]
    #[must_use]
    pub fn new(file: u8) -> Self {
        let selector = csr::read::<{ number::VSISELECT }>();
        let status = csr::read::<{ number::HSTATUS }>();
        let field = u64::from(file) << csr::hstatus::VGEIN_SHIFT & csr::hstatus::VGEIN;
        let changes = status & csr::hstatus::VGEIN != field;
        if changes {
            // SAFETY: VGEIN has an effect only on VS-level registers and on guests, and none runs on this hart now.
            unsafe { csr::write::<{ number::HSTATUS }>(status & !csr::hstatus::VGEIN | field) };
        }
        Self {
            status: changes.then_some(status),
            selector,
        }
    }

    #[inline]
    fn select(&self, register: u64) {
        // SAFETY: vsiselect only chooses what vsireg reaches; its value is put back on drop.
        unsafe { csr::write::<{ number::VSISELECT }>(register) };
    }

    /// Reads the register behind `register` (a value of vsiselect).
    #[inline]
    #[must_use]
    pub fn read(&self, register: u64) -> u64 {
        self.select(register);
        csr::read::<{ number::VSIREG }>()
    }

    /// Writes it.
    #[inline]
    pub fn write(&self, register: u64, value: u64) {
        self.select(register);
        // SAFETY: vsireg reaches the guest file that was selected, which no guest uses now.
        unsafe { csr::write::<{ number::VSIREG }>(value) };
    }

    /// Sets bits of it, and loses none that arrives at the same time.
    #[inline]
    pub fn set(&self, register: u64, bits: u64) {
        self.select(register);
        // SAFETY: as for `write`.
        unsafe { csr::set::<{ number::VSIREG }>(bits) };
    }

    /// Clears bits of it and no others.
    #[inline]
    pub fn clear(&self, register: u64, bits: u64) {
        self.select(register);
        // SAFETY: as for `write`.
        unsafe { csr::clear::<{ number::VSIREG }>(bits) };
    }
}

impl Drop for Selected {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the former values are put back.
        unsafe {
            csr::write::<{ number::VSISELECT }>(self.selector);
            if let Some(status) = self.status {
                csr::write::<{ number::HSTATUS }>(status);
            }
        }
    }
}

/// Prepares the hart's own supervisor-level file: identities 1 to `last` enabled and delivered.
pub fn open_own_file(last: u32) {
    // SAFETY: interrupts of this file are only taken where sie.SEIE and a handler are in place.
    unsafe {
        csr::write::<{ number::SISELECT }>(EITHRESHOLD);
        csr::write::<{ number::SIREG }>(0);
        for array in 0..=u64::from(last / 64) {
            csr::write::<{ number::SISELECT }>(EIE + array * ARRAY_STEP);
            csr::write::<{ number::SIREG }>(if array == 0 { !1 } else { !0 });
        }
        csr::write::<{ number::SISELECT }>(EIDELIVERY);
        csr::write::<{ number::SIREG }>(1);
    }
}

/// Claims the most urgent interrupt of the hart's own file: its identity, or nothing.
#[must_use]
pub fn claim() -> Option<u32> {
    // SAFETY: a write of any value to stopei claims what it shows (AIA, "Top external interrupt CSRs").
    let top = unsafe { csr::swap::<{ number::STOPEI }>(0) };
    let identity = (top >> 16) as u32 & 0x7ff;
    (identity != 0).then_some(identity)
}

/// Number of guest files of this hart: the writable bits of hgeie (GEILEN).
#[must_use]
pub fn guest_files() -> u8 {
    // SAFETY: bits set in hgeie raise SGEI only where sie.SGEIE is set, and the register is cleared again at once.
    let bits = unsafe {
        csr::write::<{ number::HGEIE }>(!0);
        let bits = csr::read::<{ number::HGEIE }>();
        csr::write::<{ number::HGEIE }>(0);
        bits
    };
    (bits >> 1).count_ones() as u8
}
