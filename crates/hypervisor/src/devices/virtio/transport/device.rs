//! Interface between a virtio transport and its backends.

use core::fmt::Debug;

use crate::devices::trapped::{Access, VirtioContext, WouldBlock};
use crate::devices::virtio::queue::chain::QueueError;
use crate::devices::virtio::queue::layout::QueueLayout;
use crate::devices::virtio::register;
use crate::memory::address::HostRegion;

/// Queues that a device can have.
pub const MAX_QUEUES: usize = 4;
/// Bytes of registers and configuration.
pub const SIZE: u64 = 0x200;
/// Bytes of the configuration space.
pub const CONFIGURATION_BYTES: u64 = SIZE - register::CONFIGURATION;

/// The queues that the guest has made ready.
pub type Queues<Q> = [Option<Q>; MAX_QUEUES];

/// Result of work on queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Interrupt the guest: buffers were used.
    pub interrupt: bool,
    /// Set if the configuration has changed: the guest is interrupted for that.
    pub configuration_changed: bool,
    /// More could be done now. The guest repeats its store after others have had the hart.
    pub more: bool,
}

/// Ids that a driver finds a device by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Kind of the device (§5).
    pub device: u32,
    pub vendor: u32,
}

/// A queue that the guest makes ready.
#[derive(Clone, Copy, Debug)]
pub struct QueueSetup {
    pub number: usize,
    pub layout: QueueLayout,
    /// Features that the driver has chosen.
    pub features: u64,
}

/// The backend of a virtio device.
pub trait VirtioDevice: Debug + Send {
    /// A queue that is ready.
    type Queue: Debug + Send;

    /// Reads the device's properties, before a driver sees it. Also called after a reset of the VM.
    fn power_on(&mut self, context: &dyn VirtioContext) {
        let _ = context;
    }

    /// The device's ids.
    fn ids(&self) -> Ids;

    /// Features that the driver may choose from, those of queues and transports among them.
    fn features(&self) -> u64;

    /// Entries that a queue can have; 0 if there is no such queue.
    fn max_entries(&self, queue: usize) -> u16;

    /// A byte of the configuration space; 0 behind the end of the device's structure.
    fn configuration(&self, offset: u64) -> u8;

    /// Changes of the configuration, modulo 2^32.
    fn generation(&self) -> u32 {
        0
    }

    /// Updates the configuration when the driver reads the generation. Returns true if the configuration has changed.
    fn refresh_configuration(&mut self, context: &dyn VirtioContext) -> bool {
        let _ = context;
        false
    }

    /// Stores into the configuration, at an offset in it. Returns true if the configuration has changed.
    fn store_configuration(
        &mut self,
        access: Access,
        value: u64,
        context: &dyn VirtioContext,
    ) -> bool {
        let _ = (access, value, context);
        false
    }

    /// Sets the status. With FEATURES_OK the driver has chosen these `features` of the [offered](Self::features) ones. Returns the status that
    /// the driver reads.
    fn set_status(
        &mut self,
        status: u32,
        features: Option<u64>,
        context: &dyn VirtioContext,
    ) -> u32 {
        let _ = (features, context);
        status
    }

    /// Returns true if the device itself asks for a reset.
    fn needs_reset(&self, context: &dyn VirtioContext) -> bool {
        let _ = context;
        false
    }

    /// Makes a queue ready.
    ///
    /// # Errors
    /// [`QueueError`], if the size or the place of the queue is not allowed.
    fn create_queue(
        &mut self,
        setup: QueueSetup,
        context: &dyn VirtioContext,
    ) -> Result<Self::Queue, QueueError>;

    /// Stops a queue (§4.2.2, `QueueReady`): begins nothing new, and waits for chains in flight or takes them back. The queue is dropped once there
    /// is no more to do; until then this is called again.
    ///
    /// # Errors
    /// [`QueueError`]: the driver or the device broke the rules.
    fn stop_queue(
        &mut self,
        number: usize,
        queues: &mut Queues<Self::Queue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError>;

    /// Takes back a queue that a reset has ended: all that belongs to it stays the device's.
    fn release_queue(&mut self, number: usize, queue: Self::Queue) {
        let _ = (number, queue);
    }

    /// Handles a notification of a queue, or a ready driver whose queue may have chains. Reads a bounded number of descriptors.
    ///
    /// # Errors
    /// [`QueueError`]: the driver broke the rules.
    fn notify(
        &mut self,
        number: usize,
        queues: &mut Queues<Self::Queue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError>;

    /// Polls the device: an event may have come that it waits for. `more` has no meaning.
    ///
    /// # Errors
    /// [`QueueError`]: the driver or the device broke the rules.
    fn poll(
        &mut self,
        queues: &mut Queues<Self::Queue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError>;

    /// Polls like [`poll`](Self::poll) while the driver is not ready or the device is to be reset: no queue is touched.
    fn poll_idle(&mut self, context: &dyn VirtioContext) -> Progress {
        let _ = context;
        Progress::default()
    }

    /// Polls the device at the time of its last [`VirtioContext::poll_by`].
    ///
    /// # Errors
    /// [`QueueError`]: the driver or the device broke the rules.
    fn timer_expired(
        &mut self,
        queues: &mut Queues<Self::Queue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let _ = (queues, context);
        Ok(Progress::default())
    }

    /// Visits all of the guest's memory that operations in flight may still access.
    fn for_each_in_flight(
        &self,
        queues: &Queues<Self::Queue>,
        context: &dyn VirtioContext,
        visit: &mut dyn FnMut(HostRegion),
    ) {
        let _ = (queues, context, visit);
    }

    /// Resets the device. Operations that were not begun are dropped.
    ///
    /// # Errors
    /// [`WouldBlock`], while an operation in flight accesses the guest's memory.
    fn reset(&mut self, context: &dyn VirtioContext) -> Result<(), WouldBlock>;
}
