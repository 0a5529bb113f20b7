//! What every hart does for ever: ask the scheduler, run the vCPU it names, or wait.

pub mod change;
pub mod costs;
pub mod exits;
pub mod float;
pub mod harts;
pub mod in_place;
pub mod interrupt_port;
pub mod loading;
pub mod probe;
pub mod spin;
pub mod system;
pub mod translations;

use core::sync::atomic::Ordering;

use abi::monitor::{Event, ExitCause};
use scheduler::{Continue, Dispatch, Kicks, Leave, Left, Ticks, VcpuSet, VcpuState};

use crate::hart::capabilities::Capability;
use crate::hart::counters::hart_counters::{self, HartCounters};
use crate::hart::csr::{self, number, status};
use crate::hart::{self, custom, fence, interrupt_file, world};
use crate::interrupts::{self, Departure, GuestFile};
use crate::memory::translations::{HartFences, Holders};
use crate::operator;
use crate::run::exits::{Exit, Next};
use crate::run::harts::{Hart, identity};
use crate::run::in_place::InPlace;
use crate::run::interrupt_port::InterruptPort;
use crate::run::probe::Tests;
use crate::run::spin::Word;
use crate::run::system::{Hypervisor, now};
use crate::vm::Vm;
use crate::vm::accounts::{self, Books};
use crate::vm::lifecycle::{self, life::Begin};
use crate::vm::vcpu::{Registers, Vcpu, request};

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

/// So many interrupts of the hart's own file are attended to at once. What is left interrupts the guest again, after the
/// scheduler has been asked.
const CLAIMS: usize = 64;

/// Attends to whatever interrupts this hart has. Returns what the most telling of them was.
pub fn attend(system: &Hypervisor, hart: &Hart) -> ExitCause {
    let pending = csr::read::<{ number::SIP }>();
    let mut cause = ExitCause::HostTimer;
    // SGEI is pending and enabled in hip and hie alone, not in sip and sie.
    if csr::read::<{ number::HIP }>() & csr::interrupt::SGEI != 0 {
        let files = csr::read::<{ number::HGEIP }>() & csr::read::<{ number::HGEIE }>();
        interrupts::attend(&InterruptPort::new(system, hart), files);
        cause = ExitCause::GuestExternal;
    }
    if pending & csr::interrupt::SEI != 0 {
        cause = ExitCause::HostIpi;
        for identity in core::iter::from_fn(interrupt_file::claim).take(CLAIMS) {
            match identity {
                identity::KICK => {
                    interrupts::serve(&InterruptPort::new(system, hart));
                    interrupt_port::watch_as_wanted(system, hart);
                }
                identity::SYNCHRONISED => {
                    interrupts::synchronised(&InterruptPort::new(system, hart));
                }
                identity::UART => {
                    cause = ExitCause::HostExternal;
                    operator::serve(system);
                }
                _ => {
                    cause = ExitCause::HostExternal;
                    let source = identity.wrapping_sub(identity::DEVICE);
                    interrupt_port::deliver_source(system, source);
                }
            }
        }
    }
    if pending & csr::interrupt::LCOFI != 0 {
        // No guest's: those are noted where they are taken, and before their counters leave the hart.
        hart_counters::acknowledge();
    }
    if pending & csr::interrupt::STI != 0 {
        wake_expired(system, hart);
    }
    cause
}

/// Wakes the vCPUs that wait here and whose deadline has come.
fn wake_expired(system: &Hypervisor, hart: &Hart) {
    let time = hart::time();
    for vcpu in system.waiting_on(hart) {
        if vcpu.deadline.load(Ordering::Relaxed) <= time {
            vcpu.deadline.store(u64::MAX, Ordering::Relaxed);
            system::wake(system, vcpu.id);
        }
    }
    system.look_after_devices(time);
    if time >= hart.next_look.load(Ordering::Relaxed) {
        hart.next_look
            .store(time + system.look_interval(), Ordering::Relaxed);
        interrupts::look(&InterruptPort::new(system, hart));
    }
    set_timer(system, hart);
}

/// Sets the hart's timer to the end of the slice, to the earliest deadline of those that wait here, or to the next look
/// into the interrupt files where there is something to see.
pub fn set_timer(system: &Hypervisor, hart: &Hart) {
    let earliest = system
        .waiting_on(hart)
        .map(|vcpu| vcpu.deadline.load(Ordering::Relaxed))
        .min();
    let look = if earliest.is_some() || hart.files.forwards() {
        hart.next_look.load(Ordering::Relaxed)
    } else {
        u64::MAX
    };
    let end = hart.slice_end.load(Ordering::Relaxed).min(look);
    let earliest = earliest.unwrap_or(u64::MAX);
    // SAFETY: the timer interrupt is taken in guests only, or ends a WFI; `attend` handles it.
    unsafe { csr::write::<{ number::STIMECMP }>(earliest.min(end)) };
}

/// Starts a slice of `slice`, without an end where there is none.
pub fn set_slice(system: &Hypervisor, hart: &Hart, now: Ticks, slice: Option<Ticks>) {
    let end = slice.map_or(u64::MAX, |slice| (now + slice).get());
    hart.slice_end.store(end, Ordering::Relaxed);
    set_timer(system, hart);
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
    let file = load(system, hart, holders, (vm, vcpu), &mut registers, books);
    if file == 0 {
        books.count(Event::MemoryFile);
    }
    if let Some(word) = word {
        end_spin(books, &mut registers, word, file);
    }
    registers.context.hstatus = hstatus(registers.context.hstatus, file, trap_waits);
    set_pause_loops(hart, trap_waits);
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
    unload(system, hart, vcpu, &mut registers, waits);
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
            carry_out_requests(hart, vcpu, exit.registers, vcpu.take_requests());
            continue;
        }
        world::enter(&mut exit.registers.context);
        let left_at = accounts::clock();
        costs::spend(system.costs.mode_change);
        translations::left_guest(system);
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

/// Asks the scheduler whether the vCPU may stay, and on what terms.
pub fn reconsider(
    system: &Hypervisor,
    hart: &Hart,
    began: Ticks,
    registers: &mut Registers,
) -> Option<Leave> {
    let decision = system
        .scheduler
        .lock()
        .reconsider(hart.index, now() - began);
    follow(system, hart, decision, registers)
}

/// Does what the scheduler said about the vCPU of this hart.
pub fn follow(
    system: &Hypervisor,
    hart: &Hart,
    decision: Continue,
    registers: &mut Registers,
) -> Option<Leave> {
    match decision {
        Continue::Stay { slice, trap_waits } => {
            let old = registers.context.hstatus;
            let bit = csr::hstatus::VTW;
            registers.context.hstatus = if trap_waits { old | bit } else { old & !bit };
            set_pause_loops(hart, trap_waits);
            set_slice(system, hart, now(), slice);
            None
        }
        Continue::Leave(reason) => Some(reason),
    }
}

/// Makes sure that nothing older than the VM's table as it stands is used for this vCPU on this hart.
fn renew_table(hart: &Hart, vm: &Vm, vcpu: &Vcpu, registers: &mut Registers) -> u64 {
    let generation = loop {
        let generation = vm.generation();
        hart.set_running(vm.id.get(), generation);
        // Whoever changes the table raises the generation first and looks at what runs then; seeing the same one again
        // after having declared it means that he will see this hart.
        if vm.generation() == generation {
            break generation;
        }
    };
    let purge = registers.cached.renew(hart.index, generation);
    purge.carry_out(vcpu.tag, &mut HartFences);
    generation
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

/// Puts the vCPU's state onto the hart. Returns the guest interrupt file that it uses, 0 for none.
fn load(
    system: &Hypervisor,
    hart: &Hart,
    holders: &mut Holders,
    (vm, vcpu): (&Vm, &Vcpu),
    registers: &mut Registers,
    books: Books<'_>,
) -> u8 {
    // Where nobody else has run here since, and it has run nowhere else, all but two registers are still in place.
    let here = registers.cached.last_hart() == Some(hart.index);
    let in_place = here && hart.last_loaded() == Some(vcpu.id);
    if !in_place {
        // vsatp is 0 since the last vCPU left, so nothing is translated while hgatp changes.
        // SAFETY: hgatp confines guests; the table it names maps only what belongs to the VM.
        unsafe {
            csr::write::<{ number::HGATP }>(vm.table_register(vcpu.tag));
            csr::write::<{ number::HTIMEDELTA }>(vm.time_offset());
        }
    }
    let file = interrupts::attach(&InterruptPort::new(system, hart), vcpu.id);
    // Behind `attach`, which may change the table.
    translations::arrive(system, hart, holders, (vm, vcpu), registers, books);
    if in_place {
        registers.supervisor.arm();
    } else {
        registers.supervisor.load();
        hart.set_last_loaded(vcpu.id);
    }
    float::load(hart, vcpu.id, registers);
    registers.counters.load(&mut HartCounters);
    let file = file.map_or(0, GuestFile::number);
    if file == 0 {
        show_interrupts(vcpu);
    } else {
        // What is raised meanwhile leaves a request, which is carried out before the guest is entered.
        hide_memory_file();
    }
    file
}

/// Takes the vCPU's state off the hart.
fn unload(system: &Hypervisor, hart: &Hart, vcpu: &Vcpu, registers: &mut Registers, waits: bool) {
    registers.counters.unload(&mut HartCounters);
    let departure = match waits {
        true => Departure::Waits {
            watched: system.host_interrupts(),
        },
        false => Departure::Ready,
    };
    interrupts::detach(&InterruptPort::new(system, hart), vcpu.id, departure);
    translations::leave(hart, registers);
    registers.supervisor.save();
    float::unload(registers);
    hart.clear_running();
}

/// Carries out requests; the vCPU's registers are on this hart.
fn carry_out_requests(hart: &Hart, vcpu: &Vcpu, registers: &mut Registers, requests: u32) {
    if requests & request::FENCE_VIRTUAL != 0 {
        fence::guest_virtual_all();
        translations::fenced(hart, registers);
    }
    if requests & request::FENCE_INSTRUCTIONS != 0 {
        fence::instructions();
    }
    if requests & request::INTERRUPT != 0 {
        show_interrupts(vcpu);
    }
    if requests & request::NOTIFICATION != 0 {
        // SAFETY: hvip injects interrupts into the guest only.
        unsafe { csr::set::<{ number::HVIP }>(csr::interrupt::NOTIFICATION) };
    }
}

/// Makes hvip show the interrupts that the hypervisor holds for the vCPU.
pub fn show_interrupts(vcpu: &Vcpu) {
    // SAFETY: hvip injects interrupts into the guest only.
    unsafe {
        if vcpu.take_software_interrupt() {
            csr::set::<{ number::HVIP }>(csr::interrupt::VSSI);
        }
        // Without a guest file vstopi shows an external interrupt only if hvictl gives it a priority (AIA, "Virtual
        // supervisor top interrupt"); some implementations then show it whether or not it is pending.
        if vcpu.interrupts.lock().memory_file_asserts() {
            csr::set::<{ number::HVIP }>(csr::interrupt::VSEI);
            csr::write::<{ number::HVICTL }>(csr::hvictl::EXTERNAL_WITH_PRIORITY_1);
        } else {
            hide_memory_file();
        }
    }
}

/// Shows no interrupt of a file in memory.
fn hide_memory_file() {
    // SAFETY: as in `show_interrupts`.
    unsafe {
        csr::clear::<{ number::HVIP }>(csr::interrupt::VSEI);
        csr::write::<{ number::HVICTL }>(0);
    }
}

/// Pause loops exit where WRS.NTO traps.
fn set_pause_loops(hart: &Hart, exit: bool) {
    if hart.has(Capability::PauseLoopExit) {
        // SAFETY: the hart has the extension.
        unsafe { custom::set_pause_loops(exit) };
    }
}

fn hstatus(old: u64, file: u8, trap_waits: bool) -> u64 {
    let cleared = old & !(csr::hstatus::VTW | csr::hstatus::VGEIN);
    let file = u64::from(file) << csr::hstatus::VGEIN_SHIFT;
    cleared | file | if trap_waits { csr::hstatus::VTW } else { 0 }
}
