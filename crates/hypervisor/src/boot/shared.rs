//! Devices that VMs share, disks and switches: built before the VMs, and assigned to each as devices of its own.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::keys;
use abi::system::{
    Allocation, Placement, SHARE, ServedDisk, SliceDescription, Slot, SwitchDescription,
    SystemDescription, VmDescription, VmName,
};
use scheduler::VmId;

use crate::boot::error::AssembleError;
use crate::devices::irq::SourceNumber;
use crate::devices::serve::{Exported, ServingDevice};
use crate::devices::virtio::backend::balloon::Balloon;
use crate::devices::virtio::backend::disk::served::{Place, RING_BYTES, TABLE_BYTES};
use crate::devices::virtio::backend::disk::slice::{IDENTITY, Part, Slice};
use crate::devices::virtio::backend::disk::{
    Disk, DiskNumber, FLUSH, QUEUE_BYTES, READ_ONLY, SLICE_BYTES,
};
use crate::devices::virtio::backend::switch::frame::Address;
use crate::devices::virtio::backend::switch::port::Port;
use crate::devices::virtio::backend::switch::uplink::{self, Card, Uplink};
use crate::devices::virtio::backend::switch::{PortPlace, Switch};
use crate::devices::virtio::client::Client;
use crate::devices::virtio::driver::{Driver, ServerNumber};
use crate::devices::virtio::queue::device::AREA;
use crate::devices::virtio::transport::{MmioTransport, VirtioDevice};
use crate::memory::address::{HostPhysical, PAGE_SIZE};
use crate::memory::frames::{FrameOwner, Frames};
use crate::system::poll_schedule;
use crate::system::slots::TheBoard;
use crate::vm::hardware::{ServedMemory, UnplacedDevice, UnplacedServing};
use board::Board;

/// A VM that serves disks.
#[derive(Debug)]
struct Serving {
    server: usize,
    client: Client,
    exported: Vec<Exported>,
    memory: Vec<ServedMemory>,
}

/// Shared devices.
#[derive(Debug)]
pub struct Shared {
    pub disks: Vec<Disk>,
    pub switches: Vec<Arc<Switch>>,
    /// The slots that the disks are in.
    slots: Vec<Slot>,
    /// Number of the first disk that a VM serves: behind those of the board.
    first_served: usize,
    /// VMs that serve disks, whose devices are not made yet.
    serving: Vec<Serving>,
    /// Ports of switches, by VM.
    ports: Vec<Vec<UnplacedDevice>>,
    /// Longest time between two polls of a queue, in ticks.
    patience: u64,
    /// Number of devices made so far.
    clients: usize,
}

impl Shared {
    /// Starts the shared devices.
    ///
    /// # Errors
    /// [`AssembleError`].
    pub fn start(
        description: &SystemDescription<'_>,
        board: &Board,
        frames: &mut Frames,
    ) -> Result<Self, AssembleError> {
        let slots = description.disks.to_vec();
        let mut disks = Vec::with_capacity(slots.len());
        for slot in &slots {
            disks.push(disk(*slot, board, frames)?);
        }
        let mut shared = Self {
            first_served: disks.len(),
            serving: Vec::new(),
            disks,
            switches: Vec::new(),
            slots,
            ports: description.vms.iter().map(|_| Vec::new()).collect(),
            patience: poll_schedule::patience(0, board.timebase_hertz.into()),
            clients: 0,
        };
        for (number, switch) in (0..).zip(&description.switches) {
            shared.switch(number, *switch, &description.vms, (board, frames))?;
        }
        for served in &description.served {
            let vm = description.vms.get(served.server.index());
            let vm = vm.ok_or(AssembleError::TooManySharing)?;
            shared.serve(served, vm.name, frames)?;
        }
        Ok(shared)
    }

    /// Makes a VM's devices of shared disks and switches.
    ///
    /// # Errors
    /// [`AssembleError`].
    pub fn devices_of(
        &mut self,
        (id, vm): (VmId, &VmDescription<'_>),
        frames: &mut Frames,
    ) -> Result<Vec<UnplacedDevice>, AssembleError> {
        let owner = FrameOwner::Vm(id);
        let mut devices: Vec<UnplacedDevice> = Vec::new();
        let no_room = || AssembleError::Areas { vm: vm.name };
        for (number, slice) in (1..).zip(vm.slices.iter()) {
            let client = self.client()?;
            let slice = self.slice((vm, number), &slice, client, (owner, frames))?;
            devices.push(device(client, slice, (owner, frames)).ok_or_else(no_room)?);
        }
        if vm.get(keys::BALLOON) {
            let client = self.client()?;
            devices.push(device(client, Balloon::new(), (owner, frames)).ok_or_else(no_room)?);
        }
        if let Some(ports) = self.ports.get_mut(id.index()) {
            devices.append(ports);
        }
        Ok(devices)
    }

    /// Makes a disk that a VM serves.
    fn serve(
        &mut self,
        served: &ServedDisk,
        name: VmName,
        frames: &mut Frames,
    ) -> Result<(), AssembleError> {
        let server = served.server.index();
        let place = self.serving.iter().position(|known| known.server == server);
        let place = match place {
            Some(place) => place,
            None => {
                let client = self.client()?;
                self.serving.push(Serving {
                    server,
                    client,
                    exported: Vec::new(),
                    memory: Vec::new(),
                });
                self.serving.len() - 1
            }
        };
        let owner = (0..).map_while(VmId::new).nth(server).map(FrameOwner::Vm);
        let mut give = |bytes| {
            let given = frames.give(owner?, bytes, PAGE_SIZE);
            given.filter(|given| given.size() == bytes)
        };
        let no_room = || AssembleError::Areas { vm: name };
        let ring = give(RING_BYTES).ok_or_else(no_room)?;
        let tables = give(TABLE_BYTES).ok_or_else(no_room)?;
        let disk = DiskNumber(self.disks.len());
        let Some(serving) = self.serving.get_mut(place) else {
            return Ok(());
        };
        let place = Place {
            server: ServerNumber(server),
            client: serving.client,
            ring,
            tables,
        };
        let (name, sectors) = (served.name, served.sectors);
        serving.exported.push(Exported {
            disk,
            name,
            sectors,
        });
        serving.memory.push(ServedMemory { ring, tables });
        let disk = Disk::served(place, sectors, &TheBoard(None));
        self.disks.push(disk);
        Ok(())
    }

    /// Makes the device of a VM that serves disks.
    pub fn serving_device(&mut self, vm: VmId) -> Option<UnplacedServing> {
        let of_vm = |serving: &Serving| serving.server == vm.index();
        let place = self.serving.iter().position(of_vm)?;
        let serving = self.serving.swap_remove(place);
        Some(UnplacedServing {
            client: serving.client,
            device: Box::new(ServingDevice::new(serving.exported)),
            disks: serving.memory,
        })
    }

    fn client(&mut self) -> Result<Client, AssembleError> {
        let client = Client::new(self.clients).ok_or(AssembleError::TooManySharing)?;
        self.clients += 1;
        Ok(client)
    }

    /// Adds a switch, with a port for each VM that is to have one.
    fn switch(
        &mut self,
        number: u8,
        switch: SwitchDescription,
        vms: &[VmDescription<'_>],
        (board, frames): (&Board, &mut Frames),
    ) -> Result<(), AssembleError> {
        let uplink = switch.uplink.map(|slot| uplink(slot, board, frames));
        let uplink = uplink.transpose()?;
        // The card's address distinguishes the ports of this computer from those of others on the same network.
        let card = uplink.as_ref().and_then(|(uplink, _)| uplink.address());
        let [_, _, _, computer @ ..] = card.map_or([0; 6], |address| address.0);
        let (mut with_port, mut places) = (Vec::new(), Vec::new());
        for (vm, _) in (0..).zip(vms).filter(|(_, vm)| vm.ports.contains(&number)) {
            with_port.push(usize::from(vm));
            places.push(PortPlace {
                address: Address::of_port(computer, number, vm),
                client: self.client()?,
            });
        }
        let bytes = Switch::bytes(places.len(), uplink.is_some()).max(PAGE_SIZE);
        let memory = frames.give(FrameOwner::Hypervisor, bytes, PAGE_SIZE);
        let memory = memory.ok_or(AssembleError::Inboxes)?;
        let clients: Vec<Client> = places.iter().map(|place| place.client).collect();
        let switch = Arc::new(Switch::new(places, uplink, memory));
        for (port, (vm, client)) in with_port.into_iter().zip(clients).enumerate() {
            if let Some(ports) = self.ports.get_mut(vm)
                && let Some(port) = Port::new(Arc::clone(&switch), port)
            {
                let made = device(client, port, (FrameOwner::Hypervisor, frames));
                ports.push(made.ok_or(AssembleError::Inboxes)?);
            }
        }
        self.switches.push(switch);
        Ok(())
    }

    fn slice(
        &mut self,
        (vm, number): (&VmDescription<'_>, usize),
        slice: &SliceDescription,
        client: Client,
        (owner, frames): (FrameOwner, &mut Frames),
    ) -> Result<Slice, AssembleError> {
        let place = slice.disk as usize;
        let slot = self.slots.get(place).map_or(0, |slot| slot.0);
        let is_served = place >= self.first_served;
        let outside = |sectors| AssembleError::SliceOutside {
            vm: vm.name,
            slot,
            sectors,
        };
        let disk = self.disks.get_mut(place).ok_or_else(|| outside(0))?;
        let behind = disk.sectors().checked_sub(slice.first);
        let behind = behind.filter(|behind| *behind > 0 && slice.sectors <= *behind);
        let behind = behind.ok_or_else(|| outside(disk.sectors()))?;
        let memory = frames.give(owner, SLICE_BYTES, PAGE_SIZE);
        let memory = memory.ok_or(AssembleError::Areas { vm: vm.name })?;
        let share = match vm.allocation {
            Allocation::Shared { share } => share,
            // Such a VM has no share of the harts; of a disk it has as much as a VM with a middling one.
            Allocation::Dedicated { harts } => 10 * harts.len() as u32,
        };
        let share = share.clamp(*SHARE.start(), *SHARE.end());
        let mut identity = [0; IDENTITY];
        let kind = if is_served { "served" } else { "slice" };
        let text = alloc::format!("partita-{kind}-{number}");
        identity
            .iter_mut()
            .zip(text.bytes())
            .for_each(|(to, from)| *to = from);
        Ok(Slice::new(Part {
            disk: DiskNumber(place),
            slice: disk.add(client, memory, share),
            first: slice.first,
            sectors: if slice.sectors == 0 {
                behind
            } else {
                slice.sectors
            },
            segments: disk.segments(),
            read_only: slice.read_only || disk.has(READ_ONLY),
            flushes: disk.has(FLUSH),
            in_pages: vm.get(keys::PLACEMENT) == Placement::Paged,
            patience: self.patience,
            identity,
        }))
    }
}

/// Emulated device with a page for its registers; `None` if there is no memory for the page.
fn device(
    client: Client,
    backend: impl VirtioDevice + 'static,
    (owner, frames): (FrameOwner, &mut Frames),
) -> Option<UnplacedDevice> {
    let page = frames.give(owner, PAGE_SIZE, PAGE_SIZE)?;
    Some(UnplacedDevice {
        client,
        device: Box::new(MmioTransport::new(backend, Some(page))),
        page,
    })
}

/// Driver of the device that the board has in a slot.
fn driver(slot: Slot, board: &Board) -> Result<Driver, AssembleError> {
    let device = board.virtio.get(usize::from(slot.0));
    let device = device.ok_or(AssembleError::NoSharedSlot { slot: slot.0 })?;
    Ok(Driver {
        registers: HostPhysical::new(device.base),
        source: SourceNumber(device.source),
    })
}

/// Starts the card in a slot, which is to be the uplink of a switch.
fn uplink(slot: Slot, board: &Board, frames: &mut Frames) -> Result<(Uplink, Card), AssembleError> {
    let driver = driver(slot, board)?;
    let memory = frames.give(FrameOwner::Hypervisor, uplink::BYTES, AREA);
    let memory = memory.ok_or(AssembleError::Inboxes)?;
    Uplink::start(driver, memory, &TheBoard(None)).map_err(|error| AssembleError::Uplink {
        slot: slot.0,
        error,
    })
}

/// Starts the disk in a slot.
fn disk(slot: Slot, board: &Board, frames: &mut Frames) -> Result<Disk, AssembleError> {
    let refused = |error| AssembleError::SharedDisk {
        slot: slot.0,
        error,
    };
    let driver = driver(slot, board)?;
    let area = frames.give(FrameOwner::Hypervisor, QUEUE_BYTES, PAGE_SIZE);
    let area = area.ok_or(AssembleError::Stacks)?;
    Disk::start(driver, area, &TheBoard(None)).map_err(refused)
}
