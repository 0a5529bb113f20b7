//! Effect of each step on a computer.

use std::vec::Vec;

use scheduler::{HartId, VcpuNumber};

use super::super::{
    Backing, Departure, Route, attach, deliver, detach, handle_guest_file_interrupts, poll_files,
    reset, serve, synchronised, unwatch_files, watch_waiter,
};
use super::computer::Computer;
use super::world::{COUNTED, ENABLED, Hart, Message, NOISE, OF_SOURCE, World};
use crate::interrupts::softfile::{Identity, State};

/// One step that something in the computer can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// A hart without a vCPU takes one.
    Dispatch(HartId, VcpuNumber),
    /// The hart watches a vCPU that waits there, from before it enters the guest.
    Watch(HartId, VcpuNumber),
    /// Its guest is entered.
    Enter(HartId),
    /// The guest is left for a reason that has nothing to do with interrupts.
    Exit(HartId),
    /// The hart attends to what interrupts it.
    Attend(HartId),
    /// The hart looks into its files, as it does now and then.
    Poll(HartId),
    Leave(HartId, Departure),
    /// A guest sends a message to a vCPU, by one of the translations that its hart may use.
    Send {
        by: HartId,
        to: VcpuNumber,
        through: Backing,
        identity: Identity,
    },
    /// The guest on the hart takes an interrupt.
    Claim(HartId, Identity),
    /// The guest sets what it should not, in its file: all identities above the first 64.
    Meddle(HartId),
    /// The guest disables all identities.
    Disable(HartId),
    /// The board's source sends.
    Fire,
    /// The oldest message on its way from the board's APLIC arrives.
    Arrive(HartId),
    /// The guest routes the board's source to another of its vCPUs.
    Reroute(VcpuNumber),
    /// A VM, none of whose vCPUs runs, begins a new life.
    Reset(u16),
}

impl Step {
    /// Takes the step.
    pub(super) fn take(self, computer: &Computer) {
        let change = |change: &dyn Fn(&mut World)| change(&mut computer.world.borrow_mut());
        match self {
            Self::Dispatch(hart, vcpu) => dispatch(computer, hart, vcpu),
            Self::Watch(hart, vcpu) => {
                let bits = watch_waiter(&computer.on(hart), vcpu);
                change(&|world| world.harts[hart.index()].watched_waiters |= bits);
            }
            Self::Enter(hart) => change(&|world| world.enter(hart)),
            Self::Exit(hart) => change(&|world| world.harts[hart.index()].in_guest = false),
            Self::Attend(hart) => handle_interrupts(computer, hart),
            Self::Poll(hart) => poll_files(&computer.on(hart)),
            Self::Leave(hart, departure) => leave(computer, hart, departure),
            Self::Send {
                by,
                to,
                through,
                identity,
            } => send(computer, by, (to, through), identity),
            Self::Claim(hart, identity) => claim(computer, hart, identity),
            Self::Meddle(hart) => change(&|world| meddle(world, hart)),
            Self::Disable(hart) => disable(computer, hart),
            Self::Fire => fire(computer),
            Self::Arrive(hart) => change(&|world| arrive(world, hart)),
            Self::Reroute(vcpu) => reroute(computer, vcpu),
            Self::Reset(vm) => reset_vm(computer, vm),
        }
    }
}

/// Gives the hart to the vCPU.
fn dispatch(computer: &Computer, hart: HartId, vcpu: VcpuNumber) {
    let change = |change: &dyn Fn(&mut World)| change(&mut computer.world.borrow_mut());
    change(&|world| {
        world.harts[hart.index()].vcpu = Some(vcpu);
        world.vcpus[vcpu.index()].departure = None;
        world.vcpus[vcpu.index()].woken = false;
    });
    let given = attach(&computer.on(hart), vcpu);
    let kept = computer.kept[vcpu.index()].lock();
    change(&|world| world.check_attached(hart, vcpu, given, &kept));
}

/// Leaves the guest and handles all interrupts of the hart.
fn handle_interrupts(computer: &Computer, hart: HartId) {
    let change = |change: &dyn Fn(&mut World)| change(&mut computer.world.borrow_mut());
    change(&|world| world.harts[hart.index()].in_guest = false);
    let port = computer.on(hart);
    let pending = computer.world.borrow().interrupting(hart);
    handle_guest_file_interrupts(&port, pending);
    let take = |flag: fn(&mut Hart) -> &mut bool| {
        let mut world = computer.world.borrow_mut();
        std::mem::take(flag(&mut world.harts[hart.index()]))
    };
    if take(|hart| &mut hart.kicked) {
        serve(&port);
    }
    if take(|hart| &mut hart.synchronised) {
        synchronised(&port);
    }
}

/// Takes the vCPU off its hart.
fn leave(computer: &Computer, hart: HartId, departure: Departure) {
    let change = |change: &dyn Fn(&mut World)| change(&mut computer.world.borrow_mut());
    let vcpu = computer.world.borrow().hart(hart).vcpu;
    let Some(vcpu) = vcpu else { return };
    detach(&computer.on(hart), vcpu, departure);
    let watched_waiters = computer.world.borrow().hart(hart).watched_waiters;
    unwatch_files(&computer.on(hart), watched_waiters);
    change(&|world| world.harts[hart.index()].watched_waiters = 0);
    change(&|world| {
        let left = &mut world.harts[hart.index()];
        left.vcpu = None;
        left.in_guest = false;
        left.declared = None;
        left.reach.clear();
        world.vcpus[vcpu.index()].departure = Some(departure);
    });
}

/// Sends to the vCPU and the place of its file that the sender has mapped.
fn send(computer: &Computer, by: HartId, (to, through): (VcpuNumber, Backing), identity: Identity) {
    let change = |change: &dyn Fn(&mut World)| change(&mut computer.world.borrow_mut());
    if identity == COUNTED {
        change(&|world| world.vcpus[to.index()].counted = true);
    }
    match through {
        Backing::File { hart, file } => change(&|world| {
            if identity == NOISE {
                world.surprises = world.surprises.saturating_sub(1);
            }
            world.hardware_mut(hart, file).pending[0] |= identity.bit();
        }),
        Backing::Memory => {
            change(&|world| world.harts[by.index()].in_guest = false);
            deliver(&computer.on(by), to, identity);
        }
    }
}

/// Claims the identity in the guest of the hart.
fn claim(computer: &Computer, hart: HartId, identity: Identity) {
    let change = |change: &dyn Fn(&mut World)| change(&mut computer.world.borrow_mut());
    let Some(vcpu) = computer.world.borrow().hart(hart).vcpu else {
        return;
    };
    let mut kept = computer.kept[vcpu.index()].lock();
    match kept.file_on(hart) {
        Some(file) => change(&|world| {
            world.hardware_mut(hart, file).pending[0] &= !identity.bit();
        }),
        None => kept.state.pending &= !identity.bit(),
    }
    change(&|world| {
        let vcpu = &mut world.vcpus[vcpu.index()];
        let sent = match identity {
            COUNTED => &mut vcpu.counted,
            OF_SOURCE => &mut vcpu.of_source,
            _ => return,
        };
        if !std::mem::take(sent) {
            world.broken = Some("a guest takes an interrupt that nobody sent");
        }
    });
}

/// Sets bits of the file that the guest has no right to.
fn meddle(world: &mut World, hart: HartId) {
    world.surprises = world.surprises.saturating_sub(1);
    if let Some(file) = world.own_file(hart) {
        let file = world.hardware_mut(hart, file);
        file.pending[1] = u64::MAX;
        file.enabled[1] = u64::MAX;
    }
}

/// Disables all identities of the guest on the hart.
fn disable(computer: &Computer, hart: HartId) {
    let change = |change: &dyn Fn(&mut World)| change(&mut computer.world.borrow_mut());
    let Some(vcpu) = computer.world.borrow().hart(hart).vcpu else {
        return;
    };
    let mut kept = computer.kept[vcpu.index()].lock();
    match kept.file_on(hart) {
        Some(file) => change(&|world| world.hardware_mut(hart, file).enabled[0] = 0),
        None => kept.state.enabled = 0,
    }
    change(&|world| {
        world.surprises = world.surprises.saturating_sub(1);
        world.vcpus[vcpu.index()].enabled = 0;
    });
}

/// Raises the board's source.
fn fire(computer: &Computer) {
    let change = |change: &dyn Fn(&mut World)| change(&mut computer.world.borrow_mut());
    let Some((to, place)) = computer.world.borrow().source else {
        return;
    };
    change(&|world| world.vcpus[to.index()].of_source = true);
    match place {
        Backing::File { hart, file } => change(&|world| {
            let message = Message::ToFile(file);
            world.harts[hart.index()].in_flight.push(message);
        }),
        Backing::Memory => {
            let first = HartId::new(0).unwrap();
            deliver(&computer.on(first), to, OF_SOURCE);
        }
    }
}

/// Delivers the oldest message in flight to the hart.
fn arrive(world: &mut World, hart: HartId) {
    let message = world.harts[hart.index()].in_flight.remove(0);
    match message {
        Message::Synchronisation => world.harts[hart.index()].synchronised = true,
        Message::ToFile(file) => {
            world.hardware_mut(hart, file).pending[0] |= OF_SOURCE.bit();
        }
    }
}

/// Routes the board's source to the vCPU.
fn reroute(computer: &Computer, vcpu: VcpuNumber) {
    let change = |change: &dyn Fn(&mut World)| change(&mut computer.world.borrow_mut());
    for kept in &computer.kept {
        kept.lock().remove_route(1);
    }
    let mut kept = computer.kept[vcpu.index()].lock();
    kept.add_route(Route {
        source: 1,
        identity: OF_SOURCE,
    });
    let place = kept.backing();
    change(&|world| {
        world.surprises = world.surprises.saturating_sub(1);
        world.source = Some((vcpu, place));
    });
}

/// Resets all vCPUs of the VM.
fn reset_vm(computer: &Computer, vm: u16) {
    let change = |change: &dyn Fn(&mut World)| change(&mut computer.world.borrow_mut());
    let all: Vec<VcpuNumber> = computer.world.borrow().vcpu_ids().collect();
    let of = |vcpu: &VcpuNumber| computer.world.borrow().vcpu(*vcpu).vm == vm;
    let first = HartId::new(0).unwrap();
    for vcpu in all.into_iter().filter(of).collect::<Vec<_>>() {
        reset(&computer.on(first), vcpu);
        // The new guest sets its file up at once.
        computer.kept[vcpu.index()].lock().state = State {
            enabled: ENABLED,
            delivery: true,
            ..State::default()
        };
        change(&|world| {
            let vcpu = &mut world.vcpus[vcpu.index()];
            vcpu.counted = false;
            vcpu.of_source = false;
            vcpu.enabled = ENABLED;
            vcpu.departure = None;
            vcpu.woken = false;
        });
    }
    change(&|world| world.surprises = world.surprises.saturating_sub(1));
}
