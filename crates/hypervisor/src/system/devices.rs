//! Context of a VM's trapped devices: its console, the board's interrupt sources, its vCPUs.

use core::cell::Cell;
use core::sync::atomic::Ordering;

use abi::monitor::Event;

use crate::devices::clock::nanoseconds;
use crate::devices::irq::{Destination, Effect, HartIndex, SourceNumber, SourceSetting, Sources};
use crate::devices::trapped::{DeviceContext, VirtioContext, WouldBlock};
use crate::devices::virtio::backend::disk::{Disk, DiskNumber};
use crate::devices::virtio::client::{Client, Clients};
use crate::devices::virtio::driver::Board;
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
use crate::vm::vcpu::request;

/// Context of the devices of a VM.
#[derive(Debug)]
pub struct VmContext<'a> {
    pub system: &'a Hypervisor,
    pub vm: &'a Vm,
    /// Devices of other VMs to poll, if there are any: most exits notify none.
    notified: Cell<Option<Clients>>,
}

impl<'a> VmContext<'a> {
    /// Context of the devices of `vm`.
    #[must_use]
    pub const fn new(system: &'a Hypervisor, vm: &'a Vm) -> Self {
        Self {
            system,
            vm,
            notified: Cell::new(None),
        }
    }

    /// Devices of other VMs to poll, if there are any.
    #[must_use]
    pub const fn notified(&self) -> Option<Clients> {
        self.notified.get()
    }
}

impl DeviceContext for VmContext<'_> {
    fn print(&self, byte: u8) -> Result<(), WouldBlock> {
        match self.vm.print_byte(byte) {
            true => Ok(()),
            false => Err(WouldBlock),
        }
    }

    fn take_input(&self) -> Option<u8> {
        self.vm.typed()
    }

    fn timer(&self) -> u64 {
        nanoseconds(hart::time(), self.system.board.timebase_hertz)
    }

    fn sources(&self) -> &dyn Sources {
        &self.system.controller
    }

    fn virtio(&self) -> Option<&dyn VirtioContext> {
        Some(self)
    }

    fn apply(&self, effect: Effect) {
        let Self { system, vm, .. } = self;
        match effect {
            Effect::Message(destination) => send(system, vm, destination),
            Effect::Set(route) => reroute(system, vm, route),
            Effect::SetPending(source) => system.controller.set_pending(source.0, true),
            Effect::ClearPending(source) => system.controller.set_pending(source.0, false),
            Effect::External { hart, high } => set_irq_level(system, vm, hart, high),
            Effect::Complete(source) => system.controller.complete(source.0),
        }
    }
}

impl VirtioContext for VmContext<'_> {
    fn memory(&self) -> Memory<'_> {
        Memory {
            guest: &self.vm.memory,
            host: TheHost::new(&Physical { zero_block: None }),
        }
    }

    fn load_register(&self, at: HostPhysical, width: Width) -> Option<u64> {
        slots::load_register(at, width)
    }

    fn count(&self, event: Event, times: u32) {
        let cpu_time = harts::current().accounts.of(self.vm.id);
        cpu_time.count_times(event, times.into());
    }

    fn resample(&self, source: SourceNumber) {
        self.system.controller.resample(source.0);
    }

    fn time(&self) -> u64 {
        hart::time()
    }

    fn is_guest_busy(&self) -> bool {
        let is_only = self.system.vcpus_of(self.vm.id).len() == 1;
        is_only && harts::current().running.is_of(self.vm.id.get()) && !has_waited()
    }

    fn poll_by(&self, source: SourceNumber, at: u64) {
        harts::current().poll_schedule.poll_by(source, at);
    }

    fn store_register(&self, at: HostPhysical, width: Width, value: u64) {
        slots::store_register(at, width, value);
    }

    fn with_disk(&self, disk: DiskNumber, act: &mut dyn FnMut(&mut Disk, &dyn Board)) {
        if let Some(disk) = self.system.disks.get(disk.0) {
            act(&mut disk.lock(), &TheBoard(Some(&self.system.controller)));
        }
    }

    fn give_back(&self, pages: GuestRegion) -> bool {
        let memory = &self.vm.memory;
        let is_given = memory.is_demand_paged() && memory.region().covers(pages);
        is_given && self.vm.reclaim.lock().give(pages)
    }

    fn gives_back(&self) -> bool {
        self.vm.reclaim.lock().is_busy()
    }

    fn asked_pages(&self) -> u32 {
        self.vm.asked_pages.load(Ordering::Relaxed)
    }

    fn note_given_pages(&self, pages: u32) {
        self.vm.given_pages.store(pages, Ordering::Relaxed);
    }

    fn notify_client(&self, client: Client) {
        let mut notified = self.notified.get().unwrap_or_default();
        notified.insert(client);
        self.notified.set(Some(notified));
    }
}

/// Returns true if the guest that was just left had executed WFI last, and so waited for an interrupt. It may have changed its code meanwhile: the answer
/// is for decisions that are right either way.
fn has_waited() -> bool {
    let before = csr::read::<{ number::SEPC }>().wrapping_sub(instruction::WFI_BYTES);
    unprivileged::fetch_instruction(before) == Some(instruction::WFI)
}

/// Gives a typed byte to the guest.
pub fn receive(system: &Hypervisor, vm: &Vm, byte: u8) {
    vm.keep_typed(byte);
    vm.trapped_devices.lock().poll(&VmContext::new(system, vm));
}

/// Asks the guest to give so many pages away by its balloon, if it has one.
pub fn ask_pages(system: &Hypervisor, vm: &Vm, pages: u32) {
    vm.asked_pages.store(pages, Ordering::Relaxed);
    vm.trapped_devices.lock().poll(&VmContext::new(system, vm));
}

/// Resets the VM's devices, and the state of its guest, as after power-on. Returns true once no operation in flight reaches the
/// guest's memory: the reset is complete then.
#[must_use]
pub fn reset(system: &Hypervisor, vm: &Vm) -> bool {
    let context = VmContext::new(system, vm);
    let mut trapped = vm.trapped_devices.lock();
    trapped.reset(&context);
    vm.reset_guest();
    trapped.are_quiescent(&context)
}

/// Recovers missed edges of the VM's devices.
pub fn recover_missed_edges(system: &Hypervisor, vm: &Vm) {
    let context = VmContext::new(system, vm);
    vm.trapped_devices.lock().recover_missed_edges(&context);
}

#[inline(never)]
fn send(system: &Hypervisor, vm: &Vm, destination: Destination) {
    if let Some(vcpu) = system.vcpus_of(vm.id).get(destination.hart.0 as usize) {
        interrupt_port::deliver(system, vcpu, destination.identity);
    }
}

/// Sets the level of a vCPU's external interrupt, which its PLIC drives.
#[inline(never)]
fn set_irq_level(system: &Hypervisor, vm: &Vm, hart: HartIndex, high: bool) {
    let Some(vcpu) = system.vcpus_of(vm.id).get(hart.0 as usize) else {
        return;
    };
    vcpu.interrupts.lock().set_irq_level(high);
    if high {
        harts::current().accounts.of(vm.id).count_injected();
        interrupt_port::notify(system, vcpu);
    } else {
        // A vCPU that still sees the interrupt claims nothing.
        let _ = vcpu.post_request(request::INTERRUPT);
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
        None => {
            system.receivers.set(source, None);
            system.controller.silence(source, route.mode);
        }
        Some((vcpu, to)) => {
            system.receivers.set(source, Some(vcpu.id.index()));
            let mut interrupts = vcpu.interrupts.lock();
            let route_here = Route {
                source,
                identity: to.identity,
            };
            interrupts.add_route(route_here);
            let target = source_target(system, route_here, vcpu, interrupts.backing());
            system.controller.enable(source, route.mode, target);
        }
    }
}
