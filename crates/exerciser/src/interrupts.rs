//! Interrupts: identities, what each means, and what is counted when one is taken.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::arch::memory::device_store32;
use crate::arch::{csr, imsic, team};
use crate::board::{Slot, board};
use crate::harts::Hart;
use crate::plic;
use riscv::aplic::source_mode::{EDGE1, LEVEL1};
use riscv::aplic::{DOMAINCFG_DM, DOMAINCFG_IE, HART_INDEX_SHIFT, register};

/// Identities that the exerciser uses: 1 to 63 exist in every interrupt file (AIA §3.1).
pub const IDENTITIES: usize = 64;

/// Identity: nothing but the end of a sleep.
pub const WAKE: u64 = 1;
/// Identity: fence the translation that the request names, and answer.
pub const SHOOT_DOWN: u64 = 2;
/// Identity: carry out the process that another hart asks for, and answer.
pub const SERVE: u64 = 3;
/// Identity: the block device of this hart.
pub const BLOCK: u64 = 4;
/// Identity: the real-time clock's alarm.
pub const ALARM: u64 = 5;
/// First of the identities that `ipi` sends, one a sender.
pub const FIRST_COUNTED: u64 = 8;

static SSTC: AtomicBool = AtomicBool::new(false);

/// Tests whether the timer is set by `stimecmp`.
pub fn has_sstc() -> bool {
    SSTC.load(Ordering::Relaxed)
}

/// Opens this hart's interrupt file and enables external, software and timer interrupts.
pub fn open() {
    let board = board();
    SSTC.store(board.has("sstc"), Ordering::Relaxed);
    if board.files.base != 0 {
        imsic::open(board.files.identities.min(IDENTITIES as u64 - 1));
    }
    crate::harts::set_timer(u64::MAX);
    csr::set_interrupt_enables(csr::EXTERNAL | csr::SOFTWARE);
}

/// Has a device's interrupts sent to a hart as an identity: by the APLIC (AIA chapter 4, MSI delivery), or by the PLIC where there are no interrupt
/// files. `status` is as for [`plic::route`].
pub fn route(slot: Slot, status: Option<u64>, is_level: bool, (hart, identity): (&Hart, u64)) {
    if board().files.base == 0 {
        return plic::route(slot, status, hart, identity);
    }
    let (aplic, source) = (board().aplic, u64::from(slot.source));
    if aplic == 0 || source == 0 {
        return;
    }
    let index = (hart.page() - board().files.base) / board().files.stride;
    let mode = if is_level { LEVEL1 } else { EDGE1 };
    device_store32(aplic + register::DOMAINCFG, DOMAINCFG_IE | DOMAINCFG_DM);
    device_store32(aplic + register::SOURCECFG + 4 * (source - 1), mode);
    let target = index << HART_INDEX_SHIFT | identity;
    device_store32(aplic + register::TARGET + 4 * (source - 1), target as u32);
    device_store32(aplic + register::SETIENUM, source as u32);
}

/// Tells the interrupt controller that the interrupt was seen: while its line is high, a level source sends another message only after
/// `setipnum_le` (AIA §4.7, §4.9.2).
pub fn end(slot: Slot, is_level: bool) {
    if board().aplic != 0 && is_level {
        device_store32(board().aplic + register::SETIPNUM_LE, slot.source);
    }
    plic::complete();
}

/// A timer interrupt: counted, and none follows until the timer is set anew.
pub fn timer() {
    let hart = team::current();
    hart.timer_taken.store(csr::time(), Ordering::Relaxed);
    hart.timers.fetch_add(1, Ordering::Release);
    if csr::time() >= STORM_END.load(Ordering::Relaxed) {
        crate::harts::set_timer(u64::MAX);
    }
}

/// Until when an expired timer stays expired, for the storm. Meanwhile a hart with open interrupts does
/// nothing but take them: the next comes before the first instruction after the return.
static STORM_END: AtomicU64 = AtomicU64::new(0);

/// Leaves every timer expired until `time`, in ticks.
pub fn keep_timer_expired_until(time: u64) {
    STORM_END.store(time, Ordering::Relaxed);
}

/// External interrupts: all that are pending, most urgent first.
pub fn external() {
    let hart = team::current();
    if board().files.base == 0 {
        return plic::serve(|identity| take(hart, identity));
    }
    loop {
        let identity = csr::claim_external();
        if identity == 0 {
            return;
        }
        take(hart, identity);
    }
}

/// Counts an interrupt and does what its identity stands for.
fn take(hart: &Hart, identity: u64) {
    match identity {
        SHOOT_DOWN => crate::exercises::translations::shoot_down(hart),
        SERVE => crate::exercises::work::serve(hart),
        _ => crate::exercises::ipi::serve(hart, identity),
    }
    if let Some(count) = hart.received.get(identity as usize) {
        count.fetch_add(1, Ordering::Release);
    }
}

/// A software interrupt: what was sent by SBI.
pub fn software() {
    csr::clear_software_interrupt();
    let hart = team::current();
    let called = hart.take_called();
    (0..IDENTITIES as u64)
        .filter(|identity| called >> identity & 1 == 1)
        .for_each(|identity| take(hart, identity));
}
