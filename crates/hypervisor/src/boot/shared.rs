//! What VMs share: built before the VMs, and given to each as devices of its own.

use alloc::boxed::Box;
use alloc::vec::Vec;

use abi::system::{
    Allocation, Placement, SHARE, SliceDescription, Slot, SystemDescription, VmDescription,
};

use crate::board::Board;
use crate::boot::error::AssembleError;
use crate::devices::shared::Client;
use crate::devices::shared::disk::slice::{IDENTITY, Part, Slice};
use crate::devices::shared::disk::{Disk, DiskNumber, FLUSH, QUEUE_BYTES, READ_ONLY, SLICE_BYTES};
use crate::devices::shared::front::Front;
use crate::devices::wires::SourceNumber;
use crate::memory::address::{HostPhysical, PAGE_SIZE};
use crate::memory::frames::{FrameOwner, Frames};
use crate::system::slots::TheBoard;
use crate::vm::hardware::SharingDevice;

/// What the VMs share.
#[derive(Debug)]
pub struct Shared {
    pub disks: Vec<Disk>,
    /// The slots that the disks are in.
    slots: Vec<Slot>,
    /// How many devices were made.
    clients: usize,
}

impl Shared {
    /// Starts what the system's VMs share.
    ///
    /// # Errors
    /// [`AssembleError`].
    pub fn start(
        description: &SystemDescription<'_>,
        board: &Board,
        frames: &mut Frames,
    ) -> Result<Self, AssembleError> {
        let slots = description.disks.to_vec();
        let disks = slots.iter().map(|slot| disk(*slot, board, frames));
        Ok(Self {
            disks: disks.collect::<Result<_, _>>()?,
            slots,
            clients: 0,
        })
    }

    /// The devices of a VM by which it shares something.
    ///
    /// # Errors
    /// [`AssembleError`].
    pub fn devices_of(
        &mut self,
        vm: &VmDescription<'_>,
        owner: FrameOwner,
        frames: &mut Frames,
    ) -> Result<Vec<SharingDevice>, AssembleError> {
        let slices = (1..).zip(&vm.slices);
        slices
            .map(|(number, slice)| {
                let client = Client::new(self.clients).ok_or(AssembleError::TooManySharing)?;
                self.clients += 1;
                let slice = self.slice((vm, number), slice, client, (owner, frames))?;
                let device: SharingDevice = (client, Box::new(Front::new(slice)));
                Ok(device)
            })
            .collect()
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
        let text = alloc::format!("partita-slice-{number}");
        identity
            .iter_mut()
            .zip(text.bytes())
            .for_each(|(to, from)| *to = from);
        Ok(Slice::new(Part {
            disk: DiskNumber(place),
            slice: disk.add(client, memory.base(), share),
            first: slice.first,
            sectors: if slice.sectors == 0 {
                behind
            } else {
                slice.sectors
            },
            read_only: slice.read_only || disk.has(READ_ONLY),
            flushes: disk.has(FLUSH),
            in_pages: vm.placement == Placement::Paged,
            identity,
        }))
    }
}

/// Starts the disk in a slot.
fn disk(slot: Slot, board: &Board, frames: &mut Frames) -> Result<Disk, AssembleError> {
    let refused = |error| AssembleError::SharedDisk {
        slot: slot.0,
        error,
    };
    let device = board.virtio.get(usize::from(slot.0)).copied();
    let device = device.ok_or(AssembleError::NoSharedSlot { slot: slot.0 })?;
    let area = frames.give(FrameOwner::Hypervisor, QUEUE_BYTES, PAGE_SIZE);
    let area = area.ok_or(AssembleError::Stacks)?;
    Disk::start(
        HostPhysical::new(device.base),
        SourceNumber(device.source),
        area.base(),
        &TheBoard(None),
    )
    .map_err(refused)
}
