#![doc = include_str!("TRAPPED.md")]

use core::fmt;

use abi::monitor::{Event, ExitCause};

use crate::devices::irq::{Effect, SourceNumber, Sources};
use crate::devices::virtio::backend::disk::{Disk, DiskNumber};
use crate::devices::virtio::client::Client;
use crate::devices::virtio::driver::Board;
use crate::hart::decode::Width;
use crate::memory::address::{GuestRegion, HostPhysical, HostRegion};
use crate::memory::guest::Memory;

/// Register and width of a load or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// In bytes, from the base of the device's range.
    pub offset: u64,
    /// Number of bytes. They need not be aligned, and may reach beyond the range.
    pub width: Width,
}

/// The device cannot take a store now, and nothing has happened. The guest repeats the store after others have had the hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WouldBlock;

/// Names no more than the trait: a supertrait would keep the code of every device's `Debug` in the image.
impl fmt::Debug for dyn TrappedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrappedDevice")
    }
}

/// A device whose registers trap, emulated for one VM.
pub trait TrappedDevice: Send {
    /// Exit cause under which accesses to the device are counted.
    fn cause(&self) -> ExitCause;

    /// Value of the guest's load; bits above the load's width are dropped.
    fn load(&mut self, access: Access, context: &dyn DeviceContext) -> u64;

    /// Takes the guest's store. `value` has zeros above the store's width.
    ///
    /// # Errors
    /// [`WouldBlock`].
    fn store(
        &mut self,
        access: Access,
        value: u64,
        context: &dyn DeviceContext,
    ) -> Result<(), WouldBlock>;

    /// Polls the device: an event may have come that the device waits for.
    fn poll(&mut self, context: &dyn DeviceContext);

    /// Polls the device at or after the time of its last [`VirtioContext::poll_by`].
    fn timer_expired(&mut self, context: &dyn DeviceContext) {
        let _ = context;
    }

    /// Level of the device's interrupt line.
    fn irq_level(&self) -> bool;

    /// Resets the device to the state after power-on. None of the VM's vCPUs runs.
    fn reset(&mut self, context: &dyn DeviceContext);

    /// Visits all of the guest's memory that operations in flight may still access. Nothing is begun or ended meanwhile.
    fn for_each_in_flight(&self, context: &dyn DeviceContext, visit: &mut dyn FnMut(HostRegion)) {
        let _ = (context, visit);
    }

    /// Returns true if no operation in flight reaches the guest's memory. None of the VM's vCPUs runs, and nothing more is begun.
    fn is_quiescent(&mut self, context: &dyn DeviceContext) -> bool {
        let _ = context;
        true
    }
}

/// Environment of the devices of a VM.
pub trait DeviceContext {
    /// Puts a byte onto the VM's console.
    ///
    /// # Errors
    /// [`WouldBlock`], if the console has no room for it.
    fn print(&self, byte: u8) -> Result<(), WouldBlock>;

    /// Takes the next byte that was typed for the VM.
    fn take_input(&self) -> Option<u8>;

    /// Value of the board's timer, in nanoseconds, modulo 2^64.
    fn timer(&self) -> u64;

    /// The board's interrupt sources.
    fn sources(&self) -> &dyn Sources;

    /// Carries out an effect of the VM's APLIC on the board, or for a vCPU.
    fn apply(&self, effect: Effect);

    /// Context of virtio devices: the guest's memory and the board's devices; `None` in tests without them.
    fn virtio(&self) -> Option<&dyn VirtioContext> {
        None
    }
}

/// Further environment of a virtio device: the guest's memory, and the registers of a device of the board.
pub trait VirtioContext {
    /// The guest's memory, and the host's.
    fn memory(&self) -> Memory<'_>;

    /// Loads a register of a device; `None` where the device answers with a fault. Reads of memory afterwards see the device's
    /// earlier writes.
    fn load_register(&self, at: HostPhysical, width: Width) -> Option<u64>;

    /// Counts an event of the VM, so many times.
    fn count(&self, event: Event, times: u32);

    /// Makes a level-sensitive source of the board, which was served, send again if its line is still high.
    fn resample(&self, source: SourceNumber);

    /// The time, in ticks of the board's timebase.
    fn time(&self) -> u64;

    /// Returns true if the guest is known to do other work than to wait for its device: the hart has just left the only vCPU of the VM, and
    /// that did not wait for an interrupt.
    fn is_guest_busy(&self) -> bool {
        false
    }

    /// Sets the time at which the device with this source is polled [again](TrappedDevice::timer_expired).
    fn poll_by(&self, source: SourceNumber, at: u64);

    /// Sets a register of a device, which sees what was written to memory before. A store that faults has no effect.
    fn store_register(&self, at: HostPhysical, width: Width, value: u64);

    /// Locks a disk that VMs share, and passes it to `act`. Does nothing if there is no disk of this number.
    fn with_disk(&self, disk: DiskNumber, act: &mut dyn FnMut(&mut Disk, &dyn Board));

    /// Begins to take these pages of the guest's memory back. Returns false, and changes nothing, if that is impossible, or earlier pages are
    /// not done, for which [`gives_back`](Self::gives_back) is true.
    fn give_back(&self, pages: GuestRegion) -> bool {
        let _ = pages;
        false
    }

    /// Returns true if the guest is giving pages back. It goes on when the device's present access is over.
    fn gives_back(&self) -> bool {
        false
    }

    /// Pages that the guest is asked to give away by its balloon.
    fn asked_pages(&self) -> u32 {
        0
    }

    /// Notes how many pages the guest has given away, by its own account.
    fn note_given_pages(&self, pages: u32) {
        let _ = pages;
    }

    /// Marks a device of another VM, which [polls](TrappedDevice::poll) when this VM's devices are released.
    fn notify_client(&self, client: Client);
}
