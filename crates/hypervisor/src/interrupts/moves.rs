//! Moves of a vCPU's interrupts: when it comes to a hart, leaves it, and is reset.

use scheduler::VcpuNumber;

use super::forward::serve_for_a_file;
use super::table::{Forwarder, InFlight};
use super::{Backing, GuestFile, Interrupts, Port, ResetEpoch, file};
use crate::interrupts::softfile::State;

/// Gives `vcpu`, which is about to run on the port's hart, its interrupt file there. Returns the file, or nothing where
/// it is in memory.
#[inline(always)]
pub fn attach(port: &impl Port, vcpu: VcpuNumber) -> Option<GuestFile> {
    let here = port.here();
    let (files, kept) = (port.files(here)?, port.interrupts(vcpu)?);
    let mut interrupts = kept.lock();
    let Some(file) = interrupts.file_on(here) else {
        drop(interrupts);
        return move_here(port, vcpu);
    };
    if files.end_wait(file) {
        port.watch(file, false);
    }
    let pending = core::mem::take(&mut interrupts.state.pending);
    if pending != 0 {
        file::add_pending(&port.select(file), pending);
    }
    Some(file)
}

/// Gives a file of this hart, if one is free, to a vCPU whose interrupts are elsewhere or in memory.
#[inline(never)]
fn move_here(port: &impl Port, vcpu: VcpuNumber) -> Option<GuestFile> {
    let here = port.here();
    let (files, kept) = (port.files(here)?, port.interrupts(vcpu)?);
    let life = kept.lock().life;
    let taken = files.take(vcpu, life).or_else(|| {
        // No lock is held meanwhile. No other hart attaches this vCPU, and a vCPU that is about to run is not reset.
        serve_for_a_file(port);
        files.take(vcpu, life)
    });
    let mut interrupts = kept.lock();
    let former = interrupts.backing;
    let Some(taken) = taken else {
        if former != Backing::Memory {
            interrupts.backing = Backing::Memory;
            hand_over(port, vcpu, &mut interrupts, former);
        }
        return None;
    };
    {
        let registers = port.select(taken.file);
        file::restore(&registers, &interrupts.state);
    }
    interrupts.state.pending = 0;
    if taken.returned.is_some() {
        port.watch(taken.file, false);
    }
    interrupts.backing = Backing::File {
        hart: here,
        file: taken.file,
    };
    hand_over(port, vcpu, &mut interrupts, former);
    interrupts.fed_by_sources |= taken
        .returned
        .is_some_and(|in_flight| in_flight != InFlight::Nothing);
    Some(taken.file)
}

/// Makes siblings and devices send to the new backing, and the old file, if there was one, forward.
fn hand_over(port: &impl Port, vcpu: VcpuNumber, interrupts: &mut Interrupts, former: Backing) {
    let generation = port.map_page(vcpu, interrupts.backing);
    for route in &interrupts.routes {
        port.send_source(*route, vcpu, interrupts.backing);
    }
    if let Backing::File { hart, file } = former
        && let Some(old) = port.files(hart)
    {
        let in_flight = match interrupts.fed_by_sources {
            true => InFlight::Perhaps,
            false => InFlight::Nothing,
        };
        old.leave(
            file,
            Forwarder {
                vcpu,
                life: interrupts.life,
                generation,
                open: false,
                in_flight,
                forwards: 0,
                notified: false,
            },
        );
        port.note_left(vcpu, hart);
        port.kick(hart);
    }
    interrupts.fed_by_sources =
        interrupts.backing != Backing::Memory && !interrupts.routes.is_empty();
}

/// Manner in which a vCPU leaves its hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Departure {
    /// The vCPU is to run again.
    Ready,
    /// The vCPU waits for an interrupt; `watched` is set if an interrupt in its file interrupts the hypervisor (`hgeie`).
    Waits { watched: bool },
}

/// Saves the state that only this hart can read, when `vcpu` has left it.
#[inline(always)]
pub fn detach(port: &impl Port, vcpu: VcpuNumber, departure: Departure) {
    let here = port.here();
    let (Some(files), Some(kept)) = (port.files(here), port.interrupts(vcpu)) else {
        return;
    };
    let mut interrupts = kept.lock();
    let Some(file) = interrupts.file_on(here) else {
        return;
    };
    {
        let registers = port.select(file);
        let mut state = file::settings(&registers);
        // Pending interrupts go along, so that the guest sees them wherever it runs next. Those of a waiting vCPU
        // stay where hgeip shows them.
        let leaving = match departure {
            Departure::Ready => u64::MAX,
            Departure::Waits { .. } => !state.enabled,
        };
        state.pending = file::take_pending(&registers, leaving);
        interrupts.state = state;
    }
    if let Departure::Waits { watched } = departure {
        files.begin_wait(file);
        if watched {
            port.watch(file, true);
        }
    }
}

/// Takes the vCPU's file away and clears its interrupts: its VM restarts, or has stopped. No vCPU of the VM may be
/// running, and no device of it may send.
pub fn reset(port: &impl Port, vcpu: VcpuNumber) {
    let Some(kept) = port.interrupts(vcpu) else {
        return;
    };
    let mut interrupts = kept.lock();
    for route in interrupts.routes.drain(..) {
        port.silence_source(route);
    }
    interrupts.state = State::default();
    interrupts.irq_level = false;
    let former = core::mem::take(&mut interrupts.backing);
    if former != Backing::Memory {
        hand_over(port, vcpu, &mut interrupts, former);
    }
    // A forwarder of an epoch so long ago that the number comes again has been freed.
    interrupts.life = ResetEpoch(interrupts.life.0.wrapping_add(1));
}

/// Clears the `count` guest files of this hart, which has just started, and offers them.
pub fn open_hart(port: &impl Port, count: u8) {
    let numbers = (1..=count.min(GuestFile::MAX_NUMBER)).filter_map(GuestFile::new);
    for file in numbers {
        port.watch(file, false);
        file::clear(&port.select(file), port.last_identity());
    }
    if let Some(files) = port.files(port.here()) {
        files.open(count);
    }
}

/// Makes the board's sources of a vCPU whose interrupts are in memory send to the hypervisor anew: they may go to another
/// hart now.
pub fn send_sources_again(port: &impl Port, vcpu: VcpuNumber) {
    let Some(kept) = port.interrupts(vcpu) else {
        return;
    };
    let interrupts = kept.lock();
    if interrupts.backing == Backing::Memory {
        for route in &interrupts.routes {
            port.send_source(*route, vcpu, Backing::Memory);
        }
    }
}
