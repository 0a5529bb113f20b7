//! The page that a guest reads in place of its device's registers.
//!
//! It is mapped without the right to write, so that loads do not leave the guest and stores do. What a load would show is written
//! there whenever it changes.

use super::Simulated;
use crate::devices::trapped::Reach;
use crate::devices::virtio::register;
use crate::memory::guest::HostMemory;
use crate::memory::owned::OwnedRegion;

/// The registers that a load shows something of, but for the interrupt status.
const SHOWN: [u64; 13] = [
    register::MAGIC,
    register::VERSION,
    register::DEVICE_ID,
    register::VENDOR_ID,
    register::DEVICE_FEATURES,
    register::QUEUE_SIZE_MOST,
    register::QUEUE_READY,
    register::STATUS,
    *register::SHARED_MEMORY.start(),
    *register::SHARED_MEMORY.start() + 4,
    *register::SHARED_MEMORY.start() + 8,
    *register::SHARED_MEMORY.end(),
    register::CONFIGURATION_GENERATION,
];

impl Simulated {
    /// Shows everything, and nothing of what the page's memory held before.
    pub(super) fn show_first(&mut self, reach: &dyn Reach) {
        if let Some(page) = self.means.page {
            reach.memory().host.zero(page);
        }
        self.copy_configuration(reach);
        self.show_configuration(reach);
        self.show(reach);
    }

    /// Shows what the registers read as, but for the device's configuration.
    #[cold]
    #[inline(never)]
    pub(super) fn show(&self, reach: &dyn Reach) {
        if let Some(page) = self.means.page {
            for register in SHOWN {
                let word = self.load_word(register, reach);
                set(page, register, word, reach);
            }
        }
        self.show_interrupts(reach);
    }

    /// Shows the interrupt status.
    #[inline]
    pub(super) fn show_interrupts(&self, reach: &dyn Reach) {
        if let Some(page) = self.means.page {
            set(
                page,
                register::INTERRUPT_STATUS,
                self.interrupt_status,
                reach,
            );
        }
    }

    /// Shows the copy of the device's configuration.
    #[cold]
    #[inline(never)]
    pub(super) fn show_configuration(&self, reach: &dyn Reach) {
        let Some(page) = self.means.page else { return };
        let place = page.skip(register::CONFIGURATION);
        reach.memory().host.copy(place, &self.configuration.bytes);
    }
}

/// Sets a word of the page.
fn set(page: OwnedRegion, register: u64, word: u32, reach: &dyn Reach) {
    reach
        .memory()
        .host
        .set_word(page.skip(register), word.to_le());
}
