//! Operator's commands, carried out.

use alloc::string::{String, ToString};
use core::sync::atomic::Ordering;

use abi::keys::{self, PapersMethod, Row};
use abi::monitor::StopReason;
use abi::operator::command::Resource;
use abi::system::{HartSet, SpinMethod, TlbPurge, VmId, WaitMethod};
use scheduler::groups::Access;
use scheduler::{Allocation, WaitPolicy};

use crate::console;
use crate::console::answer;
use crate::console::terminal::{Command, Event, VmAction};
use crate::heap;
use crate::memory::address::PAGE_SIZE;
use crate::memory::translations;
use crate::system::Hypervisor;
use crate::system::allocation;
use crate::system::devices;
use crate::system::harts;
use crate::system::lifecycle;
use crate::system::monitor;
use crate::system::policy;
use crate::vm::Vm;
use crate::vm::lifecycle::life::{Ending, Originator};
use crate::vm::vcpu::Vcpu;

/// The board's UART wants attention.
pub fn serve(system: &Hypervisor) {
    monitor::continue_report(system);
    for event in console::serve() {
        match event {
            Event::ToVm(vm, byte) => {
                if let Some(vm) = system.vms.get(vm.index()) {
                    devices::receive(system, vm, byte);
                }
            }
            Event::PowerOff => {
                answer!("{}", abi::operator::POWERS_OFF);
                lifecycle::power_off(system);
            }
            // The console keeps what is typed until the report has ended.
            Event::Command(Command::Stats) => monitor::request_report(system, harts::current()),
            Event::Command(command) => {
                heap::permit(|| obey(system, command));
                console::end_answer();
            }
        }
    }
    system.resample_uart();
}

#[cold]
#[inline(never)]
fn obey(system: &Hypervisor, command: Command) {
    match command {
        Command::List => list(system),
        Command::Vm(action, vm) => with_vm(system, vm, |vm| act(system, action, vm)),
        Command::Resize(vm, to) => with_vm(system, vm, |vm| resize(system, vm, to)),
        Command::Share(vm, share) => with_vm(system, vm, |vm| {
            let result = system.set_share(vm.id, share);
            match result {
                Ok(()) => answer!("{}: share {share}", vm.settings.name),
                Err(error) => answer!("{}: {error}", vm.settings.name),
            }
        }),
        Command::Harts(vm, harts) => with_vm(system, vm, |vm| allocate(system, vm, harts)),
        Command::Spin(method) => match spin_refusal(system, method) {
            None => {
                system.set_spin(method);
                answer!("spin {method}");
            }
            Some(reason) => answer!("{reason}"),
        },
        Command::Wait(method) => match lacking(keys::WAIT.row(), method as u64) {
            None => {
                policy::set_wait(system, wait_policy(method));
                answer!("wait {method}");
            }
            Some(lacking) => answer!("{lacking}"),
        },
        Command::PauseLoops(vm, gap, window) => with_vm(system, vm, |vm| {
            vm.pauses.set(gap, window);
            answer!("{}: ple {gap} {window}", vm.settings.name);
        }),
        Command::TlbPurge(method) => match refusal(system, method) {
            None => {
                system.set_translations(method);
                answer!("tlb-purge {method}");
            }
            Some(reason) => answer!("tlb-purge {method}: {reason}"),
        },
        // Help is printed by the terminal itself, and the report by the last hart to have booked its time.
        Command::Help | Command::Stats => {}
    }
}

/// The method, if this build does not have it. `value` is the place of the word.
fn lacking(row: &'static Row, value: u64) -> Option<PapersMethod> {
    match cfg!(feature = "papers") {
        true => None,
        false => PapersMethod::of(row, value),
    }
}

/// Reason why the method for spinning vCPUs cannot be `method` here.
fn spin_refusal(system: &Hypervisor, method: SpinMethod) -> Option<String> {
    if let Some(lacking) = lacking(keys::SPIN.row(), method as u64) {
        return Some(lacking.to_string());
    }
    let is_gang = cfg!(feature = "papers") && method == SpinMethod::Gang;
    let is_refused = is_gang && system.count() > 1;
    is_refused.then(|| "spin gang: each hart has a run queue of its own".into())
}

/// Reason why translations cannot be dropped by `method` here.
fn refusal(system: &Hypervisor, method: TlbPurge) -> Option<String> {
    if let Some(lacking) = lacking(keys::TLB_PURGE.row(), method as u64) {
        return Some(lacking.to_string());
    }
    if let Some(needed) = translations::needed(method)
        && let Some(hart) = system.harts.iter().find(|hart| !hart.has(needed))
    {
        let name = needed.names()[0];
        return Some(alloc::format!("hart {} has no {name}", hart.board.id));
    }
    let may_move = |vcpu: &Vcpu| {
        let allowed = system.with_vcpu(vcpu.id, |group, vcpu| group.scheduler().allowed(vcpu));
        // One that shares may go to other groups too.
        let shares = system.scheduler.own_harts(vcpu.vm).is_empty();
        allowed.is_some_and(|allowed| allowed.count() > 1) || shares && system.count() > 1
    };
    let keeps = cfg!(feature = "papers") && method == TlbPurge::Keep;
    let moves = keeps && system.vcpus.iter().any(may_move);
    moves.then(|| "vCPUs go to other harts".into())
}

/// Gives a VM harts of its own, or lets it share as before.
fn allocate(system: &Hypervisor, vm: &Vm, harts: Option<HartSet>) {
    let to = match harts {
        None => Ok(Allocation::Shared {
            share: system.scheduler.share(vm.id),
        }),
        Some(harts) => {
            harts::of_board(&system.board, harts).map(|harts| Allocation::Dedicated { harts })
        }
    };
    let name = vm.settings.name;
    match to.map(|to| allocation::change(system, vm, to)) {
        Ok(Ok(())) => match harts {
            None => answer!("{name}: on shared harts"),
            Some(_) => answer!("{name}: on harts of its own"),
        },
        Ok(Err(error)) => answer!("{name}: {error}"),
        Err(hart) => answer!("{name}: there is no hart {}", hart.0),
    }
}

fn with_vm(system: &Hypervisor, vm: VmId, action: impl FnOnce(&Vm)) {
    if let Some(vm) = system.vms.get(vm.index()) {
        action(vm);
    }
}

fn act(system: &Hypervisor, action: VmAction, vm: &Vm) {
    let result = match action {
        VmAction::Start => lifecycle::start(system, vm),
        VmAction::Stop => {
            let ending = Ending::Stop(StopReason::Operator);
            lifecycle::end(system, vm, ending, Originator::Operator)
        }
        VmAction::Restart => lifecycle::restart(system, vm),
        VmAction::Pause => lifecycle::pause(system, vm),
        VmAction::Resume => lifecycle::resume(system, vm),
    };
    match result {
        Ok(()) => {
            // The lock must be free when the console's is taken.
            let state = vm.life_cycle.lock().state();
            answer!("{}: {state}", vm.settings.name);
        }
        Err(refusal) => answer!("{}: {refusal}", vm.settings.name),
    }
}

/// Lets a VM use more or less of what its description gives it.
fn resize(system: &Hypervisor, vm: &Vm, to: Resource) {
    let name = vm.settings.name;
    match to {
        Resource::Vcpus(count) => {
            let (all, limit) = (vm.vcpus.len(), count as usize);
            let started = vm.life_cycle.lock().set_limit(limit);
            match started {
                Some(started) => {
                    answer!("{name}: at most {count} of {all} vCPUs started; now {started}");
                }
                None => answer!("{name}: it has {all} vCPUs"),
            }
        }
        Resource::Memory(_) if !vm.settings.has_balloon => {
            answer!("{name}: it has no balloon");
        }
        Resource::Memory(mebibytes) => {
            let all = vm.memory.region().size();
            match all.checked_sub(u64::from(mebibytes) << 20) {
                Some(rest) => {
                    devices::ask_pages(system, vm, (rest / PAGE_SIZE) as u32);
                    answer!("{name}: asked to use {mebibytes} MiB of {}", all >> 20);
                }
                None => answer!("{name}: it has {} MiB", all >> 20),
            }
        }
    }
}

fn list(system: &Hypervisor) {
    let (wait, slice) = {
        let config = system.scheduler.config();
        let slice = config.slice.get().saturating_mul(1_000_000) / config.frequency.max(1);
        (config.wait, slice)
    };
    answer!(
        "spin {}, wait {}, time slice {slice} us",
        system.spin().name(),
        wait.name()
    );
    let free = system.pages.lock().free_bytes();
    answer!("{} MiB of memory free", free >> 20);
    for (number, vm) in system.vms.iter().enumerate() {
        let (state, restarts, limit) = {
            let life = vm.life_cycle.lock();
            (life.state(), life.restarts(), life.limit())
        };
        let vcpus = match vm.vcpus.len() {
            all if all == limit => alloc::format!("{all}"),
            all => alloc::format!("at most {limit} of {all}"),
        };
        // No lock may be held while the console's is taken.
        let harts = {
            let own = system.scheduler.own_harts(vm.id);
            if own.is_empty() {
                alloc::format!("share {}", system.scheduler.share(vm.id))
            } else {
                let names: alloc::vec::Vec<_> = own
                    .iter()
                    .filter_map(|hart| system.harts.get(hart.index()))
                    .map(|hart| alloc::format!("{}", hart.board.id))
                    .collect();
                alloc::format!("harts {}", names.join(","))
            }
        };
        // Demand-paged memory has no frame before its first touch.
        let mut resident = match vm.memory.pages().resident() {
            Some(bytes) => alloc::format!(", of which {} are there", bytes >> 20),
            None => String::new(),
        };
        let [asked, given] = [&vm.asked_pages, &vm.given_pages].map(|pages| {
            let pages = pages.load(Ordering::Relaxed);
            (u64::from(pages) * PAGE_SIZE) >> 20
        });
        if asked != 0 || given != 0 {
            resident += &alloc::format!(" ({given} of {asked} asked for are given back)");
        }
        answer!(
            "{} {:<16} {:<8} {harts}, {vcpus} vCPUs, {} MiB{resident} at {}, restarted {} times, heartbeat {}",
            number + 1,
            vm.settings.name.as_str(),
            state,
            vm.memory.region().size() >> 20,
            vm.memory.region().base(),
            restarts,
            vm.last_heartbeat()
        );
    }
}

/// The scheduler's policy for the description's method. An idle hart always waits in one instruction, so that
/// `active-wait` is `self-wait` by another name.
#[must_use]
pub fn wait_policy(method: WaitMethod) -> WaitPolicy {
    match method {
        WaitMethod::HostInterrupt => WaitPolicy::HostInterrupt,
        WaitMethod::HostInterruptAll => WaitPolicy::HostInterruptAll,
        WaitMethod::ActiveWaitAll => WaitPolicy::ActiveWaitAll,
        WaitMethod::SelfWaitAll => WaitPolicy::SelfWaitAll,
        WaitMethod::SelfWait | WaitMethod::ActiveWait => WaitPolicy::SelfWait,
    }
}
