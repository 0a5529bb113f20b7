//! The page that a guest reads in place of its device's registers.
//!
//! It is mapped without the right to write, so that loads do not leave the guest and stores do. What a load would show is written
//! there whenever it changes.

use super::Simulated;
use crate::devices::trapped::Reach;
use crate::devices::virtio::register;
use crate::hart::decode::Width;
use crate::memory::address::HostPhysical;
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

/// Where the configuration of a device ends at the latest: none of virtio 1.2 (§5) has more bytes.
const CONFIGURATION_END: u64 = register::CONFIGURATION + 0x100;

impl Simulated {
    /// Shows everything, and nothing of what the page's memory held before.
    pub(super) fn show_first(&self, reach: &dyn Reach) {
        if let Some(page) = self.means.page {
            reach.memory().host.zero(page);
        }
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

    /// Shows the device's configuration. The device tells when it changes, after which the guest reads it again.
    #[cold]
    #[inline(never)]
    pub(super) fn show_configuration(&self, reach: &dyn Reach) {
        let Some(page) = self.means.page else { return };
        for offset in register::CONFIGURATION..self.means.size.min(CONFIGURATION_END) {
            let at = HostPhysical::new(self.means.registers.raw().wrapping_add(offset));
            let byte = reach.device_load(at, Width::Byte) as u8;
            reach.memory().host.set_byte(page.skip(offset), byte);
        }
    }
}

/// Sets a word of the page.
fn set(page: OwnedRegion, register: u64, word: u32, reach: &dyn Reach) {
    reach
        .memory()
        .host
        .set_word(page.skip(register), word.to_le());
}
