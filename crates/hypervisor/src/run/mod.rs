//! What every hart does for ever: ask the scheduler, run the vCPU it names, or wait.

pub mod attention;
pub mod exits;
pub mod in_place;
pub mod loading;
pub mod probe;
pub mod requests;
pub mod spin;
pub mod switch;
pub mod terms;
pub mod timer;

use core::sync::atomic::Ordering;

use abi::monitor::Event;
use scheduler::{Dispatch, Kicks, Leave, Left, Ticks, VcpuSet, VcpuState};

use crate::hart::csr::{self, number, status};
use crate::hart::{self, world};
use crate::memory::translations::Holders;
use crate::run::attention::attend;
use crate::run::exits::exit::{Exit, Next};
use crate::run::in_place::InPlace;
use crate::run::probe::Tests;
use crate::run::requests::carry_out_requests;
use crate::run::switch::renew_table;
use crate::run::terms::reconsider;
use crate::run::timer::{set_slice, set_timer};
use crate::system::costs;
use crate::system::harts::Hart;
use crate::system::lifecycle;
use crate::system::{Hypervisor, now};
use crate::vm::accounts::{self, Books};
use crate::vm::lifecycle::life::Begin;
use crate::vm::vcpu::{Registers, Vcpu};
use crate::vm::word::Word;

/// Runs this hart; never returns.
pub fn run(system: &'static Hypervisor, hart: &'static Hart) -> ! {
    hart.accounts.open();
    let mut holders = Holders::default();
    let mut left: Option<(&Vcpu, Left)> = None;
    loop {
        let mut probe = Tests { system, hart };
        let (kicks, stopped, decision) = {
            // All under one lock: it is what all harts meet at.
            let mut scheduler = system.scheduler.lock();
            let now = now();
            let leave = |(_, left)| scheduler.leave(hart.index, left, now);
            let kicks = left.map_or(Kicks::NONE, leave);
            let left = left.take().map(|(vcpu, _)| vcpu);
            let stopped = left.filter(|vcpu| scheduler.state(vcpu.id) == VcpuState::Stopped);
            let decision = scheduler.dispatch(hart.index, now, &mut probe);
            costs::spend(system.costs.of_pass(&decision));
            (kicks, stopped, decision)
        };
        system.kick(kicks);
        let kicks = match &decision {
            Dispatch::Run { kicks, .. } | Dispatch::Idle { kicks, .. } => *kicks,
        };
        system.kick(kicks);
        if let Some(vcpu) = stopped {
            lifecycle::vcpu_left(system, system.vm(vcpu.vm));
        }
        match decision {
            Dispatch::Run {
                vcpu,
                slice,
                trap_waits,
                ..
            } => {
                let vcpu = system.vcpu(vcpu);
                let terms = (slice, trap_waits);
                left = Some((vcpu, run_vcpu(system, hart, &mut holders, vcpu, terms)));
            }
            Dispatch::Idle { active: true, .. } => idle(system, hart, &Rest::Active),
            Dispatch::Idle {
                watch, poll: true, ..
            } => idle(system, hart, &Rest::Testing(watch)),
            Dispatch::Idle { .. } => idle(system, hart, &Rest::Asleep),
        }
    }
}

/// How an idle hart waits.
enum Rest {
    /// For an interrupt.
    Asleep,
    /// Also for something to happen to these vCPUs.
    Testing(VcpuSet),
    /// In a loop, for an interrupt or for a word of its own that says that something has happened.
    Active,
}

/// Waits for an interrupt, or what else ends the wait, and attends to it.
fn idle(system: &Hypervisor, hart: &Hart, how: &Rest) {
    hart.change.rest();
    hart.slice_end.store(u64::MAX, Ordering::Relaxed);
    set_timer(system, hart);
    hart.accounts.charge_scheduling();
    if !hart.take_ask() {
        match how {
            Rest::Asleep => hart::wait_for_interrupt(),
            Rest::Testing(watch) => probe::wait_with_tests(system, hart, *watch),
            Rest::Active => probe::wait_actively(system, hart),
        }
    }
    hart.accounts.charge_idle();
    attend(system, hart);
}

/// Runs a vCPU until it leaves this hart. The scheduler is still to be told.
fn run_vcpu(
    system: &Hypervisor,
    hart: &Hart,
    holders: &mut Holders,
    vcpu: &Vcpu,
    (slice, trap_waits): (Option<Ticks>, bool),
) -> Left {
    let vm = system.vm(vcpu.vm);
    let books = hart.accounts.of(vm.id);
    let began = now();
    let mut registers = vcpu.registers.lock();
    system.end_wait(vcpu, registers.cached.last_hart());
    vcpu.deadline.store(u64::MAX, Ordering::Relaxed);
    let word = vcpu.word.lock().take();
    match lifecycle::dispatched(system, vm, vcpu) {
        Begin::GoOn => {}
        // Nothing of its former life counts, so that its cached translations are dropped too.
        Begin::At { address, opaque } => {
            *registers = Registers::starting_at(address, u64::from(vcpu.index), opaque);
        }
        Begin::Load(run) => {
            let reason = loading::load(system, hart, vm, run, (began, slice), books);
            return left_without_guest(reason, began);
        }
        Begin::Leave => return left_without_guest(Leave::Stopped, began),
    }
    let last = registers.cached.last_hart();
    if last.is_some_and(|last| last != hart.index) {
        books.count(Event::Migration);
    }
    let file = switch::load(system, hart, holders, vm, vcpu, &mut registers);
    if file == 0 {
        books.count(Event::MemoryFile);
    }
    if let Some(word) = word {
        end_spin(books, &mut registers, word, file);
    }
    registers.context.hstatus = terms::hstatus(registers.context.hstatus, file, trap_waits);
    terms::set_pause_loops(hart, trap_waits);
    let ready = now();
    hart.change.enter(ready);
    set_slice(system, hart, ready, slice);
    costs::spend(system.costs.mode_change);
    books.count_dispatch();
    books.charge_scheduling();

    let exit = Exit {
        system,
        hart,
        vm,
        vcpu,
        registers: &mut registers,
        books,
    };
    let reason = stay(exit, began);

    let supervisor = !registers.context.in_user_mode();
    let open = !supervisor || csr::read::<{ number::VSSTATUS }>() & status::SIE != 0;
    // A vCPU that waits for a word is woken by an interrupt too, if it could take one.
    let waits = match reason {
        Leave::SelfWait => true,
        Leave::SpinOnWord | Leave::SpinForTurn => open,
        _ => false,
    };
    switch::unload(system, hart, vcpu, &mut registers, waits);
    let holder = registers.holder.take();
    let exits = registers.spinning.exits();
    if waits {
        vcpu.deadline
            .store(vm.host_deadline(&registers.supervisor), Ordering::Relaxed);
        system.begin_wait(hart, vcpu);
    }
    drop(registers);
    books.charge_scheduling();
    let end = now();
    hart.change.leave(end);
    Left {
        reason,
        ran: end - began,
        supervisor,
        open,
        holder,
        exits,
    }
}

/// A vCPU that had given its hart away because it waited for `word` is on a hart again.
fn end_spin(books: Books<'_>, registers: &mut Registers, word: Word, file: u8) {
    if word.was_seen_to_come() || word.has_come() {
        registers.spinning.has_come();
        return;
    }
    // An interrupt that it can take is a reason to run.
    let closed = csr::read::<{ number::VSSTATUS }>() & status::SIE == 0;
    let deaf = closed && !registers.context.in_user_mode();
    let enabled = csr::read::<{ number::VSIE }>();
    let pending = csr::read::<{ number::VSIP }>() & enabled;
    // hstatus.VGEIN does not name the vCPU's file yet.
    let external = file != 0 && csr::read::<{ number::HGEIP }>() >> file & 1 != 0;
    if deaf || pending == 0 && !(external && enabled & csr::interrupt::SEI != 0) {
        books.count(Event::FutileDispatch);
    } else {
        books.count(Event::SpinInterrupted);
        registers.spinning.interrupted();
    }
}

/// Enters the guest again and again, until there is a reason to leave.
fn stay(mut exit: Exit<'_>, began: Ticks) -> Leave {
    let Exit {
        system,
        hart,
        vm,
        vcpu,
        books,
        ..
    } = exit;
    let mut generation = None;
    loop {
        if hart.take_ask()
            && let Some(reason) = reconsider(system, hart, began, exit.registers)
        {
            return reason;
        }
        if generation != Some(vm.generation()) {
            generation = Some(renew_table(hart, vm, vcpu, exit.registers));
        }
        if !vcpu.enter_guest(hart.index) {
            carry_out_requests(vcpu, vcpu.take_requests());
            continue;
        }
        world::enter(&mut exit.registers.context);
        let left_at = accounts::clock();
        costs::spend(system.costs.mode_change);
        vcpu.leave_guest();
        let (cause, next) = exits::handle(&mut exit);
        if !matches!(next, Next::Leave(_)) {
            costs::spend(system.costs.mode_change);
        }
        books.charge_exit(left_at, cause);
        match next {
            Next::Resume => {}
            Next::Reconsider => {
                if let Some(reason) = reconsider(system, hart, began, exit.registers) {
                    return reason;
                }
            }
            Next::Wait => {
                let wait = InPlace {
                    system,
                    hart,
                    vm,
                    vcpu,
                    began,
                };
                if let Some(reason) = wait.wait(exit.registers) {
                    return reason;
                }
                generation = None;
            }
            Next::Leave(reason) => return reason,
        }
    }
}

/// A vCPU leaves whose guest has not run.
fn left_without_guest(reason: Leave, began: Ticks) -> Left {
    Left {
        reason,
        ran: now() - began,
        supervisor: true,
        open: true,
        holder: None,
        exits: 0,
    }
}
