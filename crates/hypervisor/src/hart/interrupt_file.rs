//! The interrupt files of this hart's IMSIC: its own supervisor-level file and its guest files.
//!
//! Numbers and layout: Advanced Interrupt Architecture, chapter 3 ("Incoming MSI Controller") for the indirectly
//! accessed registers, chapter 6 for hstatus.VGEIN selecting the file that vsiselect and vsireg reach.

use super::csr::{self, number};
use crate::interrupts::softfile::State;

const DELIVERY: u64 = 0x70;
const THRESHOLD: u64 = 0x72;
const PENDING: u64 = 0x80;
const ENABLED: u64 = 0xC0;
/// With 64-bit registers only the even-numbered eip and eie registers exist.
const ARRAY_STEP: u64 = 2;

fn select(register: u64) {
    // SAFETY: vsiselect only chooses what vsireg reaches; the vCPU whose value it is has been saved by the caller.
    unsafe { csr::write::<{ number::VSISELECT }>(register) };
}

fn read(register: u64) -> u64 {
    select(register);
    csr::read::<{ number::VSIREG }>()
}

fn write(register: u64, value: u64) {
    select(register);
    // SAFETY: vsireg reaches the guest file that hstatus.VGEIN selects, or faults where it is 0; callers select first.
    unsafe { csr::write::<{ number::VSIREG }>(value) };
}

/// A guest file of this hart, selected for access. The hypervisor's hstatus.VGEIN and vsiselect are restored on drop.
#[derive(Debug)]
pub struct Selected {
    status: u64,
    selector: u64,
}

impl Selected {
    /// Selects guest file `file` (1..=GEILEN) of this hart.
    #[must_use]
    pub fn new(file: u8) -> Self {
        let selector = csr::read::<{ number::VSISELECT }>();
        let status = csr::read::<{ number::HSTATUS }>();
        let field = u64::from(file) << csr::hstatus::VGEIN_SHIFT & csr::hstatus::VGEIN;
        // SAFETY: VGEIN has an effect only on VS-level registers and on guests, and none runs on this hart now.
        unsafe { csr::write::<{ number::HSTATUS }>(status & !csr::hstatus::VGEIN | field) };
        Self { status, selector }
    }

    /// Everything but the pending bits, which stay in the file.
    #[must_use]
    pub fn settings(&self) -> State {
        State {
            pending: 0,
            enabled: read(ENABLED),
            delivery: read(DELIVERY) == 1,
            // Thresholds above the guest's last identity let all of them through, as 0 does.
            threshold: u8::try_from(read(THRESHOLD))
                .ok()
                .filter(|limit| *limit < 64)
                .unwrap_or(0),
        }
    }

    /// Writes the settings, and adds the pending bits to those that have arrived meanwhile.
    pub fn restore(&self, state: &State) {
        write(THRESHOLD, u64::from(state.threshold));
        write(ENABLED, state.enabled);
        self.add_pending(state.pending);
        write(DELIVERY, u64::from(state.delivery));
    }

    /// Sets the pending bits `bits` and leaves the others.
    pub fn add_pending(&self, bits: u64) {
        if bits != 0 {
            select(PENDING);
            // SAFETY: as for `write`; CSRRS sets bits and loses none that arrives at the same time.
            unsafe { csr::set::<{ number::VSIREG }>(bits) };
        }
    }

    /// True where nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        read(PENDING) == 0
    }

    /// True where something is pending, enabled and delivered; a threshold is not looked at.
    #[must_use]
    pub fn asserts(&self) -> bool {
        read(PENDING) & read(ENABLED) != 0 && read(DELIVERY) == 1
    }

    /// Takes those of the pending bits out of the file that are in `mask`.
    #[must_use]
    pub fn take_pending(&self, mask: u64) -> u64 {
        let pending = read(PENDING) & mask;
        if pending != 0 {
            // SAFETY: as for `write`; CSRRC clears only the bits that were seen, so that none is lost between.
            unsafe { csr::clear::<{ number::VSIREG }>(pending) };
        }
        pending
    }

    /// Makes every interrupt that arrives show in hgeip, whatever the guest had enabled.
    pub fn show_everything(&self) {
        write(THRESHOLD, 0);
        write(ENABLED, !1);
        write(DELIVERY, 1);
    }

    /// Empties the file: nothing pending, nothing enabled, for all `identities` that the hardware has.
    pub fn clear(&self, identities: u32) {
        write(DELIVERY, 0);
        write(THRESHOLD, 0);
        for array in 0..u64::from(identities / 64 + 1) {
            write(ENABLED + array * ARRAY_STEP, 0);
            write(PENDING + array * ARRAY_STEP, 0);
        }
    }
}

impl Drop for Selected {
    fn drop(&mut self) {
        // SAFETY: the former values are put back.
        unsafe {
            csr::write::<{ number::VSISELECT }>(self.selector);
            csr::write::<{ number::HSTATUS }>(self.status);
        }
    }
}

/// Prepares the hart's own supervisor-level file: identities 1 to `last` enabled and delivered.
pub fn open_own_file(last: u32) {
    // SAFETY: interrupts of this file are only taken where sie.SEIE and a handler are in place.
    unsafe {
        csr::write::<{ number::SISELECT }>(THRESHOLD);
        csr::write::<{ number::SIREG }>(0);
        for array in 0..=u64::from(last / 64) {
            csr::write::<{ number::SISELECT }>(ENABLED + array * ARRAY_STEP);
            csr::write::<{ number::SIREG }>(if array == 0 { !1 } else { !0 });
        }
        csr::write::<{ number::SISELECT }>(DELIVERY);
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

/// How many guest files this hart has: the writable bits of hgeie (GEILEN).
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
