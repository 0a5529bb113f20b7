//! Page that a guest reads in place of its device's registers.
//!
//! It is mapped without the right to write, so that loads do not leave the guest and stores do. The value that a load would return is written
//! there whenever it changes.

use super::{CONFIGURATION_BYTES, MmioTransport, VirtioDevice};
use crate::devices::trapped::VirtioContext;
use crate::devices::virtio::{register, status};
use crate::memory::guest::HostMemory;

/// Registers that a load reads, except the interrupt status.
const SHOWN: [u64; 13] = [
    register::MAGIC,
    register::VERSION,
    register::DEVICE_ID,
    register::VENDOR_ID,
    register::DEVICE_FEATURES,
    register::QUEUE_SIZE_MAX,
    register::QUEUE_READY,
    register::STATUS,
    *register::SHARED_MEMORY.start(),
    *register::SHARED_MEMORY.start() + 4,
    *register::SHARED_MEMORY.start() + 8,
    *register::SHARED_MEMORY.end(),
    register::CONFIGURATION_GENERATION,
];

impl<D: VirtioDevice> MmioTransport<D> {
    /// Writes the whole page, so that nothing of its memory's former contents remains.
    #[cold]
    pub(super) fn show_first(&self, context: &dyn VirtioContext) {
        if let Some(page) = self.page {
            context.memory().host.zero(page);
        }
        self.show_configuration(context);
        self.show(context);
    }

    /// Shows the registers, without the configuration space.
    #[cold]
    #[inline(never)]
    pub(super) fn show(&self, context: &dyn VirtioContext) {
        if self.page.is_some() {
            for register in SHOWN {
                self.set(register, self.load_word(register, context), context);
            }
        }
        self.show_interrupts(context);
    }

    /// Shows the configuration space.
    #[cold]
    #[inline(never)]
    pub(super) fn show_configuration(&self, context: &dyn VirtioContext) {
        let Some(page) = self.page else { return };
        for offset in 0..CONFIGURATION_BYTES {
            let place = page.skip(register::CONFIGURATION + offset);
            let byte = self.device.configuration(offset);
            context.memory().host.set_byte(place, byte);
        }
    }

    /// Shows the changes by work on the queues.
    #[inline]
    pub(super) fn show_progress(&self, context: &dyn VirtioContext) {
        match self.driver.status & status::NEEDS_RESET {
            0 => self.show_interrupts(context),
            _ => self.show(context),
        }
    }

    /// Shows the interrupt status.
    #[inline]
    pub(super) fn show_interrupts(&self, context: &dyn VirtioContext) {
        self.set(
            register::INTERRUPT_STATUS,
            self.driver.interrupt_status,
            context,
        );
    }

    /// Sets a word of the page.
    #[inline]
    fn set(&self, register: u64, word: u32, context: &dyn VirtioContext) {
        if let Some(page) = self.page {
            let place = page.skip(register);
            context.memory().host.set_word(place, word.to_le());
        }
    }
}
