//! Interface between a virtio device and the transport.

use core::fmt;

use super::queue::{Broken, Chain, Queue};
use super::service::{Interrupt, Statistics};
use crate::device::{Context, Cycles};

pub use riscv::virtio::feature::{ACCESS_PLATFORM, EVENT_INDEX, INDIRECT_DESCRIPTORS, VERSION_1};

/// Context of one call of a model.
#[allow(missing_debug_implementations)]
pub struct Io<'a, 'b> {
    /// The device's virtqueues.
    pub queues: &'a mut [Queue],
    /// The machine.
    pub context: &'a mut Context<'b>,
    /// The features that driver and device agreed on.
    pub features: u64,
    /// Queues whose interrupts are due.
    pub(super) raised: Vec<u16>,
    /// Queue interrupts for later.
    pub(super) late: &'a mut Vec<(Cycles, u16)>,
}

impl Io<'_, '_> {
    /// The next chain of a queue, if there is one.
    ///
    /// # Errors
    /// [`Broken`] when the queue breaks the rules.
    pub fn pop(&mut self, queue: u16) -> Result<Option<Chain>, Broken> {
        match self.queues.get_mut(usize::from(queue)) {
            Some(queue) => queue.pop(self.context.memory),
            None => Ok(None),
        }
    }

    /// Gives a chain back with the number of bytes written to it.
    ///
    /// # Errors
    /// [`Broken`] when the queue breaks the rules.
    pub fn push(
        &mut self,
        queue: u16,
        chain: &Chain,
        written: u64,
        interrupt: Interrupt,
    ) -> Result<(), Broken> {
        let Some(own) = self.queues.get_mut(usize::from(queue)) else {
            return Ok(());
        };
        let written = u32::try_from(written).unwrap_or(u32::MAX);
        if own.push(chain, written, self.context.memory)? {
            match interrupt {
                Interrupt::Prompt if self.raised.contains(&queue) => {}
                Interrupt::Prompt => self.raised.push(queue),
                Interrupt::Late(by) => self.late.push((self.context.now.after(by), queue)),
                Interrupt::Lost => {}
            }
        }
        Ok(())
    }

    /// Time that the translation of a chain's addresses takes: the device asks for it when it takes the request, as part of its service.
    pub fn translate(&mut self, chain: &Chain) -> Cycles {
        for buffer in &chain.readable {
            let length = buffer.length.into();
            self.context.memory.prepare(buffer.address, length, false);
        }
        for buffer in &chain.writable {
            let length = buffer.length.into();
            self.context.memory.prepare(buffer.address, length, true);
        }
        self.context.memory.take_time()
    }

    /// The most chains that may be taken from a queue in one go: a driver that adds more while
    /// the device looks cannot hold it up.
    #[must_use]
    pub fn budget(&self, queue: u16) -> u16 {
        self.queues
            .get(usize::from(queue))
            .map_or(0, Queue::largest)
    }
}

/// A kind of virtio device.
pub trait Model: fmt::Debug {
    /// The device type (§5).
    fn device_id(&self) -> u32;

    /// The features offered by this kind; the transport adds those of all kinds.
    fn features(&self) -> u64;

    /// The largest size of each queue.
    fn queue_sizes(&self) -> Vec<u16>;

    /// The configuration space.
    fn configuration(&self) -> Vec<u8>;

    /// The driver wrote to the configuration space.
    fn configure(&mut self, _offset: u64, _size: u8, _value: u64) {}

    /// The driver reset the device.
    fn reset(&mut self);

    /// The driver has put chains in a queue, or made the device ready with chains in it.
    ///
    /// # Errors
    /// [`Broken`] when the driver breaks the rules.
    fn notify(&mut self, queue: u16, io: &mut Io<'_, '_>) -> Result<(), Broken>;

    /// Does what is due.
    ///
    /// # Errors
    /// [`Broken`] when the driver breaks the rules.
    fn tick(&mut self, io: &mut Io<'_, '_>) -> Result<(), Broken>;

    /// When there is something to do next.
    fn next_event(&self) -> Option<Cycles>;

    /// Draws from a new sequence from now on.
    fn reseed(&mut self, _seed: u64) {}

    /// Statistics of the device.
    fn statistics(&self) -> Statistics;
}
