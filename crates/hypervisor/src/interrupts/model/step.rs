//! What each step does to a computer.

use std::vec::Vec;

use scheduler::{HartId, VcpuNumber};

use super::super::{
    Backing, Departure, Route, attach, attend, begin_to_hear, deliver, detach, end_hearing, look,
    reset, serve, synchronised,
};
use super::computer::Computer;
use super::world::{COUNTED, ENABLED, Hart, Message, NOISE, OF_SOURCE, World};
use crate::interrupts::softfile::{Identity, State};

/// One step that something in the computer can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// A hart without a vCPU takes one.
    Dispatch(HartId, VcpuNumber),
    /// It hears of a vCPU that waits there, from before it enters the guest.
    Hear(HartId, VcpuNumber),
    /// Its guest is entered.
    Enter(HartId),
    /// The guest is left for a reason that has nothing to do with interrupts.
    Exit(HartId),
    /// The hart attends to what interrupts it.
    Attend(HartId),
    /// The hart looks into its files, as it does now and then.
    Look(HartId),
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
    /// Does it.
    pub(super) fn take(self, computer: &Computer) {
        let change = |change: &dyn Fn(&mut World)| change(&mut computer.world.borrow_mut());
        match self {
            Self::Dispatch(hart, vcpu) => {
                change(&|world| {
                    world.harts[hart.index()].vcpu = Some(vcpu);
                    world.vcpus[vcpu.index()].departure = None;
                    world.vcpus[vcpu.index()].woken = false;
                });
                let given = attach(&computer.on(hart), vcpu);
                let kept = computer.kept[vcpu.index()].lock();
                change(&|world| world.check_attached(hart, vcpu, given, &kept));
            }
            Self::Hear(hart, vcpu) => {
                let bits = begin_to_hear(&computer.on(hart), vcpu);
                change(&|world| world.harts[hart.index()].heard |= bits);
            }
            Self::Enter(hart) => change(&|world| world.enter(hart)),
            Self::Exit(hart) => change(&|world| world.harts[hart.index()].in_guest = false),
            Self::Attend(hart) => {
                change(&|world| world.harts[hart.index()].in_guest = false);
                let port = computer.on(hart);
                let pending = computer.world.borrow().interrupting(hart);
                attend(&port, pending);
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
            Self::Look(hart) => look(&computer.on(hart)),
            Self::Leave(hart, departure) => {
                let vcpu = computer.world.borrow().hart(hart).vcpu;
                let Some(vcpu) = vcpu else { return };
                detach(&computer.on(hart), vcpu, departure);
                let heard = computer.world.borrow().hart(hart).heard;
                end_hearing(&computer.on(hart), heard);
                change(&|world| world.harts[hart.index()].heard = 0);
                change(&|world| {
                    let left = &mut world.harts[hart.index()];
                    left.vcpu = None;
                    left.in_guest = false;
                    left.declared = None;
                    left.reach.clear();
                    world.vcpus[vcpu.index()].departure = Some(departure);
                });
            }
            Self::Send {
                by,
                to,
                through,
                identity,
            } => {
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
            Self::Claim(hart, identity) => {
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
            Self::Meddle(hart) => change(&|world| {
                world.surprises = world.surprises.saturating_sub(1);
                if let Some(file) = world.own_file(hart) {
                    let file = world.hardware_mut(hart, file);
                    file.pending[1] = u64::MAX;
                    file.enabled[1] = u64::MAX;
                }
            }),
            Self::Disable(hart) => {
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
            Self::Fire => {
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
            Self::Arrive(hart) => change(&|world| {
                let message = world.harts[hart.index()].in_flight.remove(0);
                match message {
                    Message::Synchronisation => world.harts[hart.index()].synchronised = true,
                    Message::ToFile(file) => {
                        world.hardware_mut(hart, file).pending[0] |= OF_SOURCE.bit();
                    }
                }
            }),
            Self::Reroute(vcpu) => {
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
            Self::Reset(vm) => {
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
        }
    }
}
