//! What a VM's trapped devices reach: its console, the board's interrupt sources, its vCPUs.

use core::cell::Cell;

use abi::monitor::Event;

use crate::devices::clock::nanoseconds;
use crate::devices::shared::disk::{Disk, DiskNumber};
use crate::devices::shared::{Board, Client, Clients};
use crate::devices::trapped::{NotNow, Outside, Reach};
use crate::devices::wires::{Destination, Effect, SourceNumber, SourceSetting, Sources};
use crate::hart::csr::{self, number};
use crate::hart::decode::Width;
use crate::hart::{self, instruction, unprivileged};
use crate::interrupts::Route;
use crate::memory::address::{GuestRegion, HostPhysical};
use crate::memory::guest::{Memory, TheHost};
use crate::memory::physical::Physical;
use crate::system::Hypervisor;
use crate::system::harts;
use crate::system::interrupt_port::{self, source_target};
use crate::system::slots::{self, TheBoard};
use crate::vm::Vm;

/// The world around the devices of a VM.
#[derive(Debug)]
pub struct Surroundings<'a> {
    pub system: &'a Hypervisor,
    pub vm: &'a Vm,
    /// The devices of other VMs for which there is something, if there are any: most exits tell nobody.
    told: Cell<Option<Clients>>,
}

impl<'a> Surroundings<'a> {
    /// The world around the devices of `vm`.
    #[must_use]
    pub const fn new(system: &'a Hypervisor, vm: &'a Vm) -> Self {
        Self {
            system,
            vm,
            told: Cell::new(None),
        }
    }

    /// The devices of other VMs for which there is something, if there are any.
    #[must_use]
    pub const fn told(&self) -> Option<Clients> {
        self.told.get()
    }
}

impl Outside for Surroundings<'_> {
    fn print(&self, byte: u8) -> Result<(), NotNow> {
        match self.vm.print_byte(byte) {
            true => Ok(()),
            false => Err(NotNow),
        }
    }

    fn typed(&self) -> Option<u8> {
        self.vm.typed()
    }

    fn timer(&self) -> u64 {
        nanoseconds(hart::time(), self.system.board.timebase_hertz)
    }

    fn sources(&self) -> &dyn Sources {
        &self.system.aplic
    }

    fn reach(&self) -> Option<&dyn Reach> {
        Some(self)
    }

    fn apply(&self, effect: Effect) {
        let Self { system, vm, .. } = self;
        match effect {
            Effect::Message(destination) => send(system, vm, destination),
            Effect::Set(route) => reroute(system, vm, route),
            Effect::SetPending(source) => system.aplic.set_pending(source.0, true),
            Effect::ClearPending(source) => system.aplic.set_pending(source.0, false),
        }
    }
}

impl Reach for Surroundings<'_> {
    fn memory(&self) -> Memory<'_> {
        Memory {
            guest: &self.vm.memory,
            host: TheHost::new(&Physical { zero_block: None }),
        }
    }

    fn device_load(&self, at: HostPhysical, width: Width) -> Option<u64> {
        slots::load_register(at, width)
    }

    fn count(&self, event: Event, times: u32) {
        let books = harts::current().accounts.of(self.vm.id);
        books.count_times(event, times.into());
    }

    fn served(&self, source: SourceNumber) {
        self.system.aplic.served(source.0);
    }

    fn time(&self) -> u64 {
        hart::time()
    }

    fn is_at_work(&self) -> bool {
        let is_only = self.system.vcpus_of(self.vm.id).len() == 1;
        is_only && harts::current().running.is_of(self.vm.id.get()) && !has_waited()
    }

    fn look_by(&self, source: SourceNumber, at: u64) {
        harts::current().due.look_by(source, at);
    }

    fn device_store(&self, at: HostPhysical, width: Width, value: u64) {
        slots::store_register(at, width, value);
    }

    fn with_disk(&self, disk: DiskNumber, act: &mut dyn FnMut(&mut Disk, &dyn Board)) {
        if let Some(disk) = self.system.disks.get(disk.0) {
            act(&mut disk.lock(), &TheBoard(Some(&self.system.aplic)));
        }
    }

    fn give_back(&self, pages: GuestRegion) -> bool {
        let memory = &self.vm.memory;
        let is_given = memory.comes_on_touch() && memory.region().covers(pages);
        is_given && self.vm.returning.lock().give(pages)
    }

    fn gives_back(&self) -> bool {
        self.vm.returning.lock().is_busy()
    }

    fn tell(&self, client: Client) {
        let mut told = self.told.get().unwrap_or_default();
        told.insert(client);
        self.told.set(Some(told));
    }
}

/// Whether the guest that was just left had executed WFI last, and so waited for an interrupt. It may have changed its code meanwhile: the answer
/// is for decisions that are right either way.
fn has_waited() -> bool {
    let before = csr::read::<{ number::SEPC }>().wrapping_sub(instruction::WFI_BYTES);
    unprivileged::fetch_instruction(before) == Some(instruction::WFI)
}

/// A byte was typed for the guest.
pub fn receive(system: &Hypervisor, vm: &Vm, byte: u8) {
    vm.keep_typed(byte);
    vm.chips.lock().look(&Surroundings::new(system, vm));
}

/// The VM's devices, and what is known of its guest, as after power-on. Says whether nothing is under way any more that reaches its
/// memory: then it is over.
#[must_use]
pub fn reset(system: &Hypervisor, vm: &Vm) -> bool {
    let outside = Surroundings::new(system, vm);
    let mut chips = vm.chips.lock();
    chips.reset(&outside);
    vm.forget_guest();
    chips.are_quiet(&outside)
}

/// Looks for interrupts of the VM's devices whose edge was missed.
pub fn recover_missed_edges(system: &Hypervisor, vm: &Vm) {
    let outside = Surroundings::new(system, vm);
    vm.chips.lock().recover_missed_edges(&outside);
}

#[inline(never)]
fn send(system: &Hypervisor, vm: &Vm, destination: Destination) {
    if let Some(vcpu) = system.vcpus_of(vm.id).get(destination.hart.0 as usize) {
        interrupt_port::deliver(system, vcpu, destination.identity);
    }
}

#[cold]
#[inline(never)]
fn reroute(system: &Hypervisor, vm: &Vm, route: SourceSetting) {
    let source = route.source.0;
    let target = route.destination.and_then(|to| {
        system
            .vcpus_of(vm.id)
            .get(to.hart.0 as usize)
            .map(|vcpu| (vcpu, to))
    });
    for vcpu in system.vcpus_of(vm.id) {
        if target.is_none_or(|(to, _)| to.id != vcpu.id) {
            vcpu.interrupts.lock().remove_route(source);
        }
    }
    match target {
        None => system.aplic.silence(source, route.mode),
        Some((vcpu, to)) => {
            let mut interrupts = vcpu.interrupts.lock();
            let route_here = Route {
                source,
                identity: to.identity,
            };
            interrupts.add_route(route_here);
            let target = source_target(system, route_here, vcpu, interrupts.backing());
            system.aplic.enable(source, route.mode, target);
        }
    }
}
