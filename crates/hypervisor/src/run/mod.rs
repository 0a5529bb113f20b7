//! Endless loop of every hart: ask the scheduler, run the vCPU it names, or wait.

pub mod begin;
pub mod debug_triggers;
pub mod exits;
pub mod guest_timer;
pub mod host_interrupts;
pub mod in_place;
pub mod loading;
pub mod poll;
pub mod probe;
pub mod registers;
pub mod requests;
pub mod shadow;
pub mod software_events;
pub mod spin;
pub mod steal_time;
pub mod switch;
pub mod terms;
pub mod timer;
pub mod translations;

use alloc::boxed::Box;
use core::sync::atomic::Ordering;

use abi::monitor::Event;
use scheduler::groups::{Access, NumberSet};
use scheduler::{Dispatch, Leave, Left, Ticks, VcpuNumber, VcpuSet};
use spinwait::PollReason;

use crate::hart::counters::hart_counters::HartCounters;
use crate::hart::csr::{self, number, status};
use crate::hart::{self, world};
use crate::heap;
use crate::memory::translations::vmid_table::VmidTable;
use crate::run::begin::{begin, has_enabled_interrupt};
use crate::run::exits::exit::{Exit, Next};
use crate::run::host_interrupts::handle_host_interrupts;
use crate::run::in_place::InPlace;
use crate::run::probe::Tests;
use crate::run::requests::carry_out_requests;
use crate::run::switch::renew_table;
use crate::run::terms::reconsider;
use crate::run::timer::{set_slice, set_timer, slice_is_over};
use crate::system::costs;
use crate::system::harts::Hart;
use crate::system::lifecycle;
use crate::system::monitor;
use crate::system::sharing;
use crate::system::{Hypervisor, now};
use crate::vm::accounts::{self, CpuTime};
use crate::vm::vcpu::{Vcpu, VcpuState};
use crate::vm::word::Word;

/// Runs this hart; never returns.
pub fn run(system: &'static Hypervisor, hart: &'static Hart) -> ! {
    hart.accounts.open();
    // Not on the stack, for the same reason as in `begin_life`.
    let tags = system.guest_translation.tags();
    let mut vmids = heap::permit(|| Box::new(VmidTable::new(system.purging, tags)));
    // The vCPU that had the hart last, and since when. The scheduler ignores the manner of leaving if it was told already.
    let mut last: Option<(&Vcpu, Ticks)> = None;
    let mut left = Left::new(Leave::Preempted, Ticks::ZERO);
    // vCPUs whose interrupt files this hart tests while it is idle, or watches while it runs another vCPU.
    let mut watched = NumberSet::EMPTY;
    let mut watches;
    loop {
        let mut probe = Tests { system, hart };
        let (now, stopped, decision, poll, (flow, again), displaced) = {
            // Under one lock at once, because all harts contend for it.
            let mut group = system.scheduler.lock_of(hart.index);
            let now = now();
            // A stay ends when the next one begins, so that all time is charged.
            left.ran = last.map_or(Ticks::ZERO, |(_, began)| now - began);
            let places = (system.scheduler.places(), system.load_bits());
            let (stopped, decision) =
                group.leave_and_dispatch((hart.index, &left), now, places, &mut probe);
            let poll = match decision {
                Dispatch::Run { slice, .. } => {
                    poll::poll_reason(group.scheduler_mut(), hart.index, slice.is_some())
                }
                Dispatch::Idle { .. } => None,
            };
            let watch = match decision {
                Dispatch::Run { .. } => group.scheduler_mut().waiters_to_watch(hart.index),
                Dispatch::Idle {
                    watch, poll: true, ..
                } => watch,
                Dispatch::Idle { .. } => VcpuSet::EMPTY,
            };
            watches = !watch.is_empty();
            if watches {
                group.name(watch, &mut watched);
            }
            costs::spend(system.costs.of_pass(&decision));
            let flow = match decision {
                // A local waiter may be ready before a migration ends.
                Dispatch::Idle { .. } => {
                    let longest = hart.switch_cost.round_trip();
                    system
                        .scheduler
                        .publish_idle(&group, hart.index, (now, longest))
                }
                Dispatch::Run { .. } => (system.scheduler.publish(&group), None),
            };
            let displaced = !group.displaced().is_empty();
            (now, stopped, decision, poll, flow, displaced)
        };
        let (Dispatch::Run { kicks, .. } | Dispatch::Idle { kicks, .. }) = decision;
        system.kick(kicks);
        system.follow(flow);
        if displaced {
            system.migrate_displaced(hart.index);
        }
        system.balance(now);
        if let Some((vcpu, _)) = last.take() {
            if stopped {
                lifecycle::vcpu_left(system, system.vm(vcpu.vm));
            }
            // The vCPU was saved and another one searched because it gave the hart away.
            hart.accounts.of(vcpu.vm).charge_scheduling();
        }
        match decision {
            Dispatch::Run {
                vcpu,
                slice,
                trap_waits,
                ..
            } => {
                let vcpu = system.vcpu(vcpu);
                let terms = Terms {
                    began: now,
                    slice,
                    trap_waits,
                    poll,
                };
                let heard = match watches {
                    true => probe::watch_waiters(system, hart, &watched),
                    false => 0,
                };
                left = run_vcpu(system, hart, &mut vmids, (vcpu, &terms));
                if heard != 0 {
                    probe::unwatch_waiters(system, hart, heard);
                }
                last = Some((vcpu, now));
            }
            Dispatch::Idle { active: true, .. } => idle(system, hart, &IdleWait::Active, again),
            Dispatch::Idle { poll: true, .. } => {
                idle(system, hart, &IdleWait::Testing(&watched), again)
            }
            Dispatch::Idle { .. } => idle(system, hart, &IdleWait::Asleep, again),
        }
    }
}

/// Terms of a vCPU's stay on the hart.
struct Terms {
    /// Beginning of the stay.
    began: Ticks,
    /// Length of the slice; `None` if no other vCPU wants the hart.
    slice: Option<Ticks>,
    /// Set if the guest's waits trap.
    trap_waits: bool,
    /// Reason to poll while the vCPU runs.
    poll: Option<PollReason>,
}

/// Manner in which an idle hart waits.
enum IdleWait<'a> {
    /// Wait for an interrupt.
    Asleep,
    /// Wait for an interrupt while testing for events of these vCPUs.
    Testing(&'a NumberSet),
    /// Poll for an interrupt, or for the hart's own word that another hart sets.
    Active,
}

/// Waits until an interrupt, the next poll or another event ends the wait, and handles it.
#[inline(never)]
fn idle(system: &Hypervisor, hart: &Hart, how: &IdleWait<'_>, again: Option<Ticks>) {
    hart.switch_cost.idle();
    let again = again.map_or(u64::MAX, Ticks::get);
    hart.slice_end.store(again, Ordering::Relaxed);
    set_timer(system, hart);
    hart.accounts.charge_scheduling();
    if !hart.take_must_reschedule() {
        system.begin_idle(hart);
        match how {
            IdleWait::Asleep => hart::wait_for_interrupt(),
            IdleWait::Testing(watch) => probe::wait_with_tests(system, hart, watch),
            IdleWait::Active => probe::wait_actively(system, hart),
        }
        system.end_idle(hart);
    }
    hart.accounts.charge_idle();
    handle_host_interrupts(system, hart);
    monitor::publish(system, hart);
}

/// Runs a vCPU until it leaves this hart, and returns how it left. The caller tells the scheduler.
#[inline(always)]
fn run_vcpu(
    system: &Hypervisor,
    hart: &Hart,
    vmids: &mut VmidTable,
    (vcpu, terms): (&Vcpu, &Terms),
) -> Left<VcpuNumber> {
    let vm = system.vm(vcpu.vm);
    let cpu_time = hart.accounts.of(vm.id);
    let mut state = vcpu.state.lock();
    system.end_wait(vcpu, &mut state);
    if lifecycle::has_dispatch_check(vcpu) {
        let since = (terms.began, terms.slice);
        let at = (vm, vcpu);
        if let Some(reason) = begin(system, hart, vmids, at, &mut state, since, cpu_time) {
            if vcpu.take_device_work() | vm.device_work.is_pending() {
                sharing::serve_marked(system, hart, vm);
            }
            return left_without_guest(reason);
        }
    }
    let last = state.cached.last_hart();
    if last.is_some_and(|last| last != hart.index) {
        cpu_time.count(Event::Migration);
    }
    let (file, generation) = switch::load(system, hart, vmids, (vm, vcpu), &mut state, cpu_time);
    if file == 0 {
        cpu_time.count(Event::MemoryResidentFile);
    }
    if core::mem::take(&mut state.waits_for_word)
        && let Some(word) = vcpu.word.lock().take()
    {
        end_spin(cpu_time, vcpu, &mut state, word, file);
    }
    state.context.hstatus = terms::hstatus(state.context.hstatus, file, terms.trap_waits);
    state.pauses = vm.pauses.begin();
    terms::set_pause_loops(hart, state.pauses, terms.trap_waits);
    let ready = now();
    if state.reports_steal_time {
        steal_time::enter(system, hart, vm, &mut state, ready);
    }
    hart.switch_cost.enter(ready);
    if let Some(reason) = terms.poll {
        let reason = reason.with_last(state.spins_undetected);
        hart.poll_timer
            .start(ready.get(), hart.switch_cost.mean().get(), reason);
    }
    set_slice(system, hart, ready, terms.slice);
    costs::spend(system.costs.mode_change);
    cpu_time.count_dispatch();
    cpu_time.charge_scheduling();

    let exit = Exit {
        system,
        hart,
        vm,
        vcpu,
        state: &mut state,
        cpu_time,
    };
    let reason = stay(exit, terms.began, generation, vmids);
    hart.poll_timer.stop();

    let supervisor = !state.context.in_user_mode();
    let open = !supervisor || csr::read::<{ number::VSSTATUS }>() & status::SIE != 0;
    // An interrupt wakes a vCPU that waits for a word too, if the vCPU could take it.
    let waits = match reason {
        Leave::SelfWait => true,
        Leave::SpinOnWord | Leave::SpinForTurn => open,
        _ => false,
    };
    if state.reports_steal_time {
        steal_time::leave(hart, vm, &mut state, reason, now());
    }
    switch::unload(system, hart, (vm, vcpu), &mut state, waits);
    if waits {
        let deadline = vm.host_deadline(&state.supervisor);
        hart.begin_wait(vcpu, &mut state, deadline);
    }
    let left = Left {
        cause: reason,
        // The time of this stay is known when the next one begins.
        ran: Ticks::ZERO,
        in_supervisor: supervisor,
        interrupts_enabled: open,
        holder: state.holder.take(),
        exits: state.spinning.exits(),
        round_trip: hart.switch_cost.round_trip(),
        for_others: hart.take_for_others(),
        by_others: Ticks::new(vm.device_work.take_by_others()),
    };
    drop(state);
    hart.switch_cost.leave(now());
    left
}

/// Ends the spin of a vCPU that had given its hart away to wait for `word`, and is on a hart again.
fn end_spin(cpu_time: CpuTime<'_>, vcpu: &Vcpu, state: &mut VcpuState, word: Word, file: u8) {
    if word.was_found_over() || word.is_over(|| vcpu.conditions.lock().hold()) {
        state.spinning.note_over();
        return;
    }
    // An interrupt that the vCPU can take is a reason to run.
    let closed = csr::read::<{ number::VSSTATUS }>() & status::SIE == 0;
    let deaf = closed && !state.context.in_user_mode();
    if deaf || !has_enabled_interrupt(file) {
        cpu_time.count(Event::FutileDispatch);
    } else {
        cpu_time.count(Event::SpinInterrupted);
        state.spinning.note_interrupt();
    }
}

/// Enters the guest repeatedly, until there is a reason to leave.
///
/// The vCPU uses its VM's table of this `generation`.
#[inline(always)]
fn stay(mut exit: Exit<'_>, began: Ticks, generation: u64, vmids: &VmidTable) -> Leave {
    let Exit {
        system,
        hart,
        vm,
        vcpu,
        cpu_time,
        ..
    } = exit;
    let mut generation = Some(generation);
    loop {
        if generation != Some(vm.generation()) {
            generation = Some(renew_table(system, hart, (vm, vcpu), vmids, exit.state));
        }
        if hart.take_must_reschedule() {
            if let Some(reason) = reconsider(system, hart, began, exit.state) {
                return reason;
            }
            // The hart may have set its own request: another group has work, so waits must trap here.
            continue;
        }
        if !vcpu.enter_guest(hart.index) {
            carry_out_requests(system, hart, (vm, vcpu), exit.state, vcpu.take_requests());
            continue;
        }
        exit.state.counters.enter_guest(&HartCounters);
        world::enter(&mut exit.state.context);
        let left_at = accounts::clock();
        exit.state.counters.leave_guest(&HartCounters);
        costs::spend(system.costs.mode_change);
        translations::left_guest(system);
        vcpu.leave_guest();
        let (cause, next) = exits::handle(&mut exit);
        if next == Next::Resume {
            costs::spend(system.costs.mode_change);
            cpu_time.charge_exit(left_at, cause);
            continue;
        }
        if !matches!(next, Next::Leave(_)) {
            costs::spend(system.costs.mode_change);
        }
        cpu_time.charge_exit(left_at, cause);
        match next {
            Next::Resume => {}
            Next::Reconsider => {
                monitor::publish(system, hart);
                // A vCPU that has used its whole slice leaves, and the scheduler is asked once.
                if slice_is_over(hart) {
                    return Leave::SliceEnd;
                }
                if hart.poll_timer.is_due(now().get())
                    && let Some(reason) = poll::poll(&mut exit)
                {
                    return reason;
                }
                if let Some(reason) = reconsider(system, hart, began, exit.state) {
                    return reason;
                }
            }
            Next::Wait if in_place::would_leave_at_once(system, hart) => return Leave::SelfWait,
            Next::Wait => {
                let wait = InPlace {
                    system,
                    hart,
                    vm,
                    vcpu,
                    began,
                };
                if let Some(reason) = wait.wait(exit.state) {
                    return reason;
                }
                generation = None;
            }
            Next::Leave(reason) => return reason,
        }
    }
}

/// Departure of a vCPU whose guest has not run.
fn left_without_guest(reason: Leave) -> Left<VcpuNumber> {
    Left {
        exits: 0,
        ..Left::new(reason, Ticks::ZERO)
    }
}
