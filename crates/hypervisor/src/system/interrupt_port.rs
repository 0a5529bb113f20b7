//! The hypervisor behind [`crate::interrupts`]: registers, messages, tables and kicks of one hart.

use core::cell::Cell;

use crate::lock::{Mutex, place};
use abi::monitor::Event;
use scheduler::{HartId, HartSet, VcpuNumber};

use crate::devices::aplic::board::Target;
use crate::devices::irq::SourceMode;
use crate::hart::csr::{self, number};
use crate::hart::interrupt_file::Selected;
use crate::hart::{self};
use crate::interrupts::port::{Register, Registers};
use crate::interrupts::softfile::Identity;
use crate::interrupts::{
    self, Backing, Generation, GuestFile, HartFiles, Interrupts, Port, Route, Sign,
};
use crate::system::costs;
use crate::system::harts::{self, Hart, identity};
use crate::system::{self, Hypervisor};
use crate::vm::accounts;
use crate::vm::vcpu::{Vcpu, request};

/// Calling hart, and the whole system.
#[derive(Debug)]
pub struct InterruptPort<'a> {
    system: &'a Hypervisor,
    hart: &'a Hart,
    /// Time at which it began to serve a forwarder.
    began: Cell<u64>,
}

impl<'a> InterruptPort<'a> {
    /// Port of `hart`, the calling hart.
    #[must_use]
    pub fn new(system: &'a Hypervisor, hart: &'a Hart) -> Self {
        Self {
            system,
            hart,
            began: Cell::new(0),
        }
    }

    /// Port of the calling hart.
    #[must_use]
    pub fn current(system: &'a Hypervisor) -> Self {
        Self::new(system, harts::current())
    }
}

impl Registers for Selected {
    #[inline]
    fn read(&self, register: Register) -> u64 {
        Self::read(self, register.select())
    }

    #[inline]
    fn write(&self, register: Register, value: u64) {
        Self::write(self, register.select(), value);
    }

    #[inline]
    fn set(&self, register: Register, bits: u64) {
        Self::set(self, register.select(), bits);
    }

    #[inline]
    fn clear(&self, register: Register, bits: u64) {
        Self::clear(self, register.select(), bits);
    }
}

impl Port for InterruptPort<'_> {
    type Registers<'a>
        = Selected
    where
        Self: 'a;

    fn here(&self) -> HartId {
        self.hart.index
    }

    fn last_identity(&self) -> u32 {
        let imsic = self.system.board.controller.imsic();
        imsic.map_or(0, |imsic| imsic.identities)
    }

    #[inline]
    fn select(&self, file: GuestFile) -> Selected {
        Selected::new(file.number())
    }

    fn watch(&self, file: GuestFile, on: bool) {
        watch(file, on);
    }

    fn files(&self, hart: HartId) -> Option<&HartFiles> {
        if hart == self.hart.index {
            return Some(&self.hart.files);
        }
        self.system.harts.get(hart.index()).map(|hart| &hart.files)
    }

    fn interrupts(&self, vcpu: VcpuNumber) -> Option<&Mutex<Interrupts, { place::INTERRUPTS }>> {
        let vcpu = self.system.vcpus.get(vcpu.index())?;
        Some(&vcpu.interrupts)
    }

    fn map_page(&self, vcpu: VcpuNumber, to: Backing) -> Generation {
        let vcpu = self.system.vcpu(vcpu);
        let page = match to {
            Backing::Memory => None,
            Backing::File { hart, file } => Some(self.system.hart(hart).guest_file_page(file)),
        };
        let vm = self.system.vm(vcpu.vm);
        Generation(vm.set_interrupt_page(vcpu.index, page))
    }

    fn send_source(&self, route: Route, vcpu: VcpuNumber, to: Backing) {
        let vcpu = self.system.vcpu(vcpu);
        let target = source_target(self.system, route, vcpu, to);
        self.system.controller.send_to(route.source, target);
    }

    fn silence_source(&self, route: Route) {
        self.system
            .controller
            .silence(route.source, SourceMode::Inactive);
    }

    #[inline]
    fn users_of_older(&self, vcpu: VcpuNumber, generation: Generation) -> HartSet {
        let vm = self.system.vcpu(vcpu).vm;
        let others = self.system.harts.iter();
        others
            .filter(|other| other.index != self.hart.index)
            .filter(|other| other.running.may_use_older(vm.get(), generation.0))
            .map(|other| other.index)
            .collect()
    }

    fn send(&self, hart: HartId, file: GuestFile, identity: Identity) {
        let page = self.system.hart(hart).guest_file_page(file);
        harts::send_message(page, identity.number());
        // The next hart that takes the vCPU's lock, and reads the file, must find the message there.
        hart::devices_before_memory();
    }

    #[inline]
    fn kick(&self, hart: HartId) {
        self.system.hart(hart).kick();
    }

    #[inline]
    fn notify(&self, vcpu: VcpuNumber) {
        notify(self.system, self.system.vcpu(vcpu));
    }

    fn wake(&self, vcpu: VcpuNumber, sign: Sign) {
        if sign == Sign::Interrupt {
            // The cost is spent first, so that it delays the wake-up.
            let vm = self.system.vcpu(vcpu).vm;
            let cpu_time = self.hart.accounts.of(vm);
            cpu_time.count(Event::HostInterrupt);
            if self.system.costs.host_interrupt != 0 {
                let began = accounts::clock();
                costs::spend(self.system.costs.host_interrupt);
                cpu_time.book_forwarding(began);
            }
        }
        match sign {
            Sign::Interrupt => system::interrupt_waiter(self.system, vcpu),
            Sign::Polled => system::wake(self.system, vcpu),
        }
    }

    fn synchronise(&self) -> bool {
        let target = Target::hypervisor(self.hart.delivery.index, identity::SYNCHRONISED);
        self.system.controller.send_message(target)
    }

    fn note_left(&self, vcpu: VcpuNumber, hart: HartId) {
        self.system.vcpu(vcpu).stale_files.note(hart);
    }

    fn begin_forwarding(&self) {
        self.began.set(accounts::clock());
    }

    #[inline]
    fn end_forwarding(&self, vcpu: VcpuNumber, messages: u32) {
        let cpu_time = self.hart.accounts.of(self.system.vcpu(vcpu).vm);
        for _ in 0..messages {
            cpu_time.count(Event::MsiForwarded);
        }
        cpu_time.book_forwarding(self.began.get());
    }
}

/// Target of the board's APLIC for `route`.
#[must_use]
pub fn source_target(system: &Hypervisor, route: Route, vcpu: &Vcpu, to: Backing) -> Target {
    let index = |hart: HartId| system.hart(hart).delivery.index;
    match to {
        Backing::File { hart, file } => {
            Target::guest(index(hart), file.number(), route.identity.number())
        }
        Backing::Memory => {
            let hart = system.interrupt_affinity.of_vm(vcpu.vm);
            let number = identity::DEVICE + route.source;
            Target::hypervisor(hart.map_or(0, index), number)
        }
    }
}

/// Delivers a message of the board's `source` to `vcpu`, if the source is routed there.
pub fn deliver_source(system: &Hypervisor, vcpu: &Vcpu, source: u32) {
    let route = vcpu.interrupts.lock().route_of(source);
    if let Some(route) = route {
        deliver(system, vcpu, route.identity);
    }
}

/// Delivers the message `identity` to `vcpu`, and counts it.
#[inline]
pub fn deliver(system: &Hypervisor, vcpu: &Vcpu, identity: Identity) {
    let port = InterruptPort::current(system);
    port.hart.accounts.of(vcpu.vm).count_injected();
    interrupts::deliver(&port, vcpu.id, identity);
}

/// Makes the vCPU see its interrupts: now if it runs, at its dispatch if it waits.
#[inline(never)]
pub fn notify(system: &Hypervisor, vcpu: &Vcpu) {
    kick_where_it_runs(system, vcpu);
    system::wake(system, vcpu.id);
}

/// Makes the vCPU see its interrupts now, if it runs.
#[inline]
pub fn kick_where_it_runs(system: &Hypervisor, vcpu: &Vcpu) {
    if let Some(hart) = vcpu.post_request(request::INTERRUPT) {
        system.hart(hart).kick();
    }
}

/// Sets or clears this hart's hgeie bit of `file`: with it set, a pending interrupt of the file raises SGEI here.
pub fn watch(file: GuestFile, on: bool) {
    // SAFETY: SGEI is handled by `run::attention`, on this hart, outside of guests.
    unsafe {
        if on {
            csr::set::<{ number::HGEIE }>(file.bit())
        } else {
            csr::clear::<{ number::HGEIE }>(file.bit())
        }
    }
}

/// Sets hgeie as the wait policy wants it, for the vCPUs that wait on this hart, where the policy has changed.
pub fn watch_as_wanted(system: &Hypervisor, hart: &Hart) {
    use core::sync::atomic::Ordering;
    let wanted = system.host_interrupts();
    if hart.watches.swap(wanted, Ordering::Relaxed) != wanted {
        for file in GuestFile::in_bits(hart.files.waiting()) {
            watch(file, wanted);
        }
    }
}
