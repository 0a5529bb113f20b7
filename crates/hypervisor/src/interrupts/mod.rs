//! Where a vCPU's interrupts go: a guest interrupt file of the hart that runs it, or a file in memory.
//!
//! A running vCPU has, if its hart has one free, a guest file: siblings' and devices' messages reach it without an
//! exit. Files belong to harts, so a vCPU that is dispatched elsewhere gets another one; its page in the VM's G-stage
//! table then names the new file, and the old one forwards what still arrives in it (see `files`). Where there is no
//! file, the page is not mapped: messages trap and are kept in memory, and so are devices' messages, which the board's
//! APLIC then sends to the hypervisor.
//!
//! Locks are taken in this order: a vCPU's `interrupts`, the VM's table, a hart's `files`.

pub mod files;
pub mod softfile;

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::monitor::Event;
use scheduler::{HartId, VcpuId};

use crate::devices::aplic::SourceMode;
use crate::hart::csr::{self, number};
use crate::hart::interrupt_file::Selected;
use crate::interrupts::files::Owner;
use crate::interrupts::softfile::{Identity, InterruptFile, State};
use crate::run::harts::{self, Hart};
use crate::run::system::{self, Hypervisor};
use crate::vm::vcpu::{Vcpu, request};

/// Where messages to a vCPU are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backing {
    /// In memory: no guest file was free, or the vCPU has not run yet.
    #[default]
    Memory,
    /// In this guest file of this hart.
    File { hart: HartId, file: u8 },
}

/// A vCPU's interrupt file, and the board's sources that are wired to it.
#[derive(Debug, Default)]
pub struct Interrupts {
    pub backing: Backing,
    /// With backing in memory the whole state; else the settings, and what was pending, as the vCPU last left a hart.
    pub state: State,
    /// Sources of the board that send to this vCPU, with the identity that the guest chose.
    pub sources: Vec<Route>,
}

/// A source of the board's APLIC that a guest has routed to one of its vCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub source: u32,
    pub identity: Identity,
}

impl Interrupts {
    /// Back to the state after reset; the file, if there is one, stays and is cleared by [`reset`].
    fn forget(&mut self) {
        self.state = State::default();
        self.sources.clear();
    }

    /// True where an interrupt in memory is pending, enabled and above the threshold.
    #[must_use]
    pub fn memory_file_asserts(&self) -> bool {
        self.backing == Backing::Memory && InterruptFile::restore(self.state).interrupt()
    }
}

/// Gives `vcpu`, which is about to run on `hart` (this one), its interrupt file here. Returns the file's number, 0
/// where the file is in memory.
pub fn attach(system: &Hypervisor, hart: &Hart, vcpu: &Vcpu) -> u8 {
    let mut interrupts = vcpu.interrupts.lock();
    if let Backing::File { hart: home, file } = interrupts.backing
        && home == hart.index
    {
        watch(file, false);
        hart.waiting_files
            .fetch_and(!(1 << (file & 63)), Ordering::Relaxed);
        let pending = core::mem::take(&mut interrupts.state.pending);
        if pending != 0 {
            Selected::new(file).add_pending(pending);
        }
        return file;
    }
    let own = hart
        .files
        .lock()
        .iter()
        .find_map(|(file, owner)| match owner {
            Owner::Forwarder { vcpu: whose, .. } if whose == vcpu.id => Some(file),
            _ => None,
        });
    let mut fresh = own.or_else(|| hart.files.lock().allocate(vcpu.id));
    if fresh.is_none() && release_forwarders(system, hart, vcpu.id) {
        fresh = hart.files.lock().allocate(vcpu.id);
    }
    let former = interrupts.backing;
    let Some(file) = fresh else {
        if let Backing::File { .. } = former {
            interrupts.backing = Backing::Memory;
            hand_over(system, vcpu, &interrupts, former);
        }
        return 0;
    };
    {
        let selected = Selected::new(file);
        if own.is_none() {
            selected.clear(system.board.imsic.identities);
        }
        selected.restore(&interrupts.state);
        interrupts.state.pending = 0;
    }
    watch(file, false);
    hart.set_owner(file, Owner::Vcpu(vcpu.id));
    interrupts.backing = Backing::File {
        hart: hart.index,
        file,
    };
    hand_over(system, vcpu, &interrupts, former);
    file
}

/// Makes siblings and devices send to the new backing, and the old file, if there was one, forward.
fn hand_over(system: &Hypervisor, vcpu: &Vcpu, interrupts: &Interrupts, former: Backing) {
    let vm = system.vm(vcpu.vm);
    let page = page_of(system, interrupts.backing);
    let generation = vm.set_interrupt_page(vcpu.index, page);
    for route in &interrupts.sources {
        system.aplic.send_to(system, *route, interrupts.backing);
    }
    if let Backing::File { hart, file } = former
        && let Some(old) = system.harts.get(hart.index())
    {
        let owner = Owner::Forwarder {
            vcpu: vcpu.id,
            vm: vcpu.vm,
            generation,
            prepared: false,
        };
        old.waiting_files
            .fetch_and(!(1 << (file & 63)), Ordering::Relaxed);
        old.set_owner(file, owner);
        old.kick();
    }
}

fn page_of(system: &Hypervisor, backing: Backing) -> Option<u64> {
    match backing {
        Backing::Memory => None,
        Backing::File { hart, file } => system
            .harts
            .get(hart.index())
            .map(|hart| harts::file_page(&system.board, hart.board.imsic_index, file)),
    }
}

/// Notes what only this hart can read, when `vcpu` has left it; `waits` says that it waits for an interrupt.
pub fn detach(system: &Hypervisor, hart: &Hart, vcpu: &Vcpu, waits: bool) {
    let mut interrupts = vcpu.interrupts.lock();
    if let Backing::File { hart: home, file } = interrupts.backing
        && home == hart.index
    {
        let selected = Selected::new(file);
        interrupts.state = selected.settings();
        // What is pending goes along, so that the guest sees it wherever it runs next. What could wake a vCPU that
        // waits stays where hgeip shows it.
        let leaving = if waits { !interrupts.state.enabled } else { !0 };
        interrupts.state.pending = selected.take_pending(leaving);
        drop(selected);
        if waits {
            hart.waiting_files
                .fetch_or(1 << (file & 63), Ordering::Relaxed);
            if system.host_interrupts() {
                watch(file, true);
            }
        }
    }
}

/// Takes the vCPU's file away and forgets its interrupts: its VM starts anew. No vCPU of the VM may be running.
pub fn reset(system: &Hypervisor, vcpu: &Vcpu) {
    let mut interrupts = vcpu.interrupts.lock();
    let former = interrupts.backing;
    for route in &interrupts.sources {
        system.aplic.silence(route.source, SourceMode::Inactive);
    }
    interrupts.forget();
    if former != Backing::Memory {
        interrupts.backing = Backing::Memory;
        hand_over(system, vcpu, &interrupts, former);
    }
}

/// Delivers the message `identity` to `vcpu`, wherever its interrupts are kept, and wakes it if it waits.
pub fn deliver(system: &Hypervisor, vcpu: &Vcpu, identity: Identity) {
    let mut interrupts = vcpu.interrupts.lock();
    match page_of(system, interrupts.backing) {
        // The file's own hart sees it: the guest runs there, or hgeip shows it.
        Some(page) => harts::send_message(page, identity.number()),
        None => {
            interrupts.state.pending |= identity.bit();
            let asserts = interrupts.memory_file_asserts();
            drop(interrupts);
            if asserts {
                notify(system, vcpu);
            }
        }
    }
}

/// Makes the vCPU look at its interrupts: now if it runs, when it is dispatched if it waits.
pub fn notify(system: &Hypervisor, vcpu: &Vcpu) {
    if let Some(hart) = vcpu.ask(request::INTERRUPT)
        && let Some(hart) = system.harts.get(hart.index())
    {
        hart.kick();
    }
    system::wake(system, vcpu.id);
}

/// Sets or clears this hart's hgeie bit of `file`: with it set, a pending interrupt of the file raises SGEI here.
pub fn watch(file: u8, on: bool) {
    let bit = 1u64 << (file & 63);
    // SAFETY: SGEI is handled by `guest_external`, on this hart, outside of guests.
    unsafe {
        if on {
            csr::set::<{ number::HGEIE }>(bit)
        } else {
            csr::clear::<{ number::HGEIE }>(bit)
        }
    }
}

/// Sets hgeie as the wait policy wants it, for the vCPUs that wait on this hart, where the policy has changed.
pub fn watch_as_wanted(system: &Hypervisor, hart: &Hart) {
    let wanted = system.host_interrupts();
    if hart.watches.swap(wanted, Ordering::Relaxed) == wanted {
        return;
    }
    for vcpu in system.waiting_on(hart) {
        if let Backing::File { hart: home, file } = vcpu.interrupts.lock().backing
            && home == hart.index
        {
            watch(file, wanted);
        }
    }
}

/// An SGEI: vCPUs that wait here have interrupts, or forwarders have something to send on.
pub fn guest_external(system: &Hypervisor, hart: &Hart) {
    let pending = csr::read::<{ number::HGEIP }>() & csr::read::<{ number::HGEIE }>();
    let mut left = pending & !1;
    while left != 0 {
        let file = left.trailing_zeros() as u8;
        left &= left - 1;
        let owner = hart.files.lock().owner(file);
        match owner {
            Owner::Vcpu(vcpu) => {
                watch(file, false);
                let vm = system.vcpu(vcpu).vm;
                hart.accounts.of(vm).count(Event::HostInterrupt);
                system::wake(system, vcpu);
            }
            Owner::Forwarder { vcpu, .. } => forward(system, file, vcpu),
            Owner::Free => watch(file, false),
        }
    }
}

/// Looks into this hart's files themselves, instead of asking hgeip: wakes those that wait here and have something, and
/// sends on what is in forwarders.
///
/// hgeip should show everything at once. QEMU however changes it without a lock, from the hart that writes to a file and
/// from the one that owns it, and a bit can get lost there until the next message to the same file.
pub fn look_into_files(system: &Hypervisor, hart: &Hart) {
    serve_forwarders(system, hart);
    for vcpu in system.waiting_on(hart) {
        let asserts = match vcpu.interrupts.lock().backing {
            Backing::File { hart: home, file } if home == hart.index => {
                Selected::new(file).asserts()
            }
            _ => false,
        };
        if asserts {
            system::wake(system, vcpu.id);
        }
    }
}

/// Sends on what has arrived in a forwarder of this hart.
fn forward(system: &Hypervisor, file: u8, vcpu: VcpuId) {
    let pending = Selected::new(file).take_pending(!0);
    let Some(vcpu) = system.vcpus.get(vcpu.index()) else {
        return;
    };
    for identity in (1..64)
        .filter_map(Identity::new)
        .filter(|identity| pending & identity.bit() != 0)
    {
        let accounts = &harts::current().accounts;
        accounts.of(vcpu.vm).count(Event::Forwarded);
        deliver(system, vcpu, identity);
    }
}

/// Prepares this hart's new forwarders, sends on what is in them, and frees those to which nobody can send any more.
pub fn serve_forwarders(system: &Hypervisor, hart: &Hart) {
    let count = hart.files.lock().count();
    for file in 1..=count {
        let owner = hart.files.lock().owner(file);
        if let Owner::Forwarder {
            vcpu,
            vm,
            generation,
            prepared,
        } = owner
        {
            if !prepared {
                Selected::new(file).show_everything();
                watch(file, true);
                let owner = Owner::Forwarder {
                    vcpu,
                    vm,
                    generation,
                    prepared: true,
                };
                hart.set_owner(file, owner);
            }
            let quiet = prepared && !system.anyone_uses_older(vm, generation);
            forward(system, file, vcpu);
            if quiet {
                watch(file, false);
                Selected::new(file).clear(system.board.imsic.identities);
                hart.set_owner(file, Owner::Free);
            }
        }
    }
}

/// Frees what can be freed of this hart's forwarders without the lock of `busy`'s interrupts, which is held. True
/// where one was freed.
fn release_forwarders(system: &Hypervisor, hart: &Hart, busy: VcpuId) -> bool {
    let mut freed = false;
    let count = hart.files.lock().count();
    for file in 1..=count {
        let owner = hart.files.lock().owner(file);
        if let Owner::Forwarder { vcpu, vm, generation, prepared: true } = owner
            && vcpu != busy
            && !system.anyone_uses_older(vm, generation)
            // Only an empty file can go now: sending on would take another vCPU's lock while one is held.
            && Selected::new(file).is_empty()
        {
            watch(file, false);
            Selected::new(file).clear(system.board.imsic.identities);
            hart.set_owner(file, Owner::Free);
            freed = true;
        }
    }
    freed
}
