//! The PLIC of a guest without interrupt files (RISC-V PLIC specification 1.0.0), with one source: a device's.

use core::sync::atomic::{AtomicBool, Ordering, fence};

use riscv::plic::{CLAIM, CONTEXT_STRIDE, ENABLE, ENABLE_STRIDE, PRIORITY, THRESHOLD};

use crate::arch::memory::{device_load32, device_store32};
use crate::arch::sync::Once;
use crate::board::{Slot, board};
use crate::harts::Hart;

/// Way of the source's interrupts.
#[derive(Debug)]
struct Route {
    slot: Slot,
    /// Address of a register that is 0 while the line is low, if the device has one.
    status: Option<u64>,
    /// Address of the claim register of the hart's context.
    claim: u64,
    identity: u64,
}

static ROUTE: Once<Route> = Once::new();
/// Set while the source is claimed and not completed.
static CLAIMED: AtomicBool = AtomicBool::new(false);

/// Has the PLIC send the interrupts of a device to a hart, where they count as `identity`. `status` is the address of a register that is 0 while the
/// device's line is low, if there is one. The first call stands.
pub fn route(slot: Slot, status: Option<u64>, hart: &Hart, identity: u64) {
    let (base, source, context) = (board().plic.0, u64::from(slot.source), hart.id());
    if base == 0 || !board().plic_context_is_hart {
        return;
    }
    ROUTE.set(Route {
        slot,
        status,
        claim: base + CLAIM + CONTEXT_STRIDE * context,
        identity,
    });
    device_store32(base + PRIORITY + 4 * source, 1);
    device_store32(base + THRESHOLD + CONTEXT_STRIDE * context, 0);
    let word = base + ENABLE + ENABLE_STRIDE * context + source / 32 * 4;
    device_store32(word, 1 << (source % 32));
}

/// Claims the source on its hart, and passes its identity to `take`. It is completed once its line is low: here, or when the device is acknowledged.
pub fn serve(mut take: impl FnMut(u64)) {
    let Some(route) = ROUTE.get() else {
        return;
    };
    while device_load32(route.claim) == route.slot.source {
        CLAIMED.store(true, Ordering::SeqCst);
        take(route.identity);
        fence(Ordering::SeqCst);
        if route.status.is_some_and(|at| device_load32(at) == 0) {
            complete();
        }
    }
}

/// Completes the source if it is claimed. Its line was low.
pub fn complete() {
    if let Some(route) = ROUTE.get()
        && CLAIMED.swap(false, Ordering::SeqCst)
    {
        device_store32(route.claim, route.slot.source);
    }
}
