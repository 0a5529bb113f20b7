//! What several words have to be for a vCPU to spin on.

use crate::hart::decode::Width;
use crate::hart::instruction::{Condition, MOST_CONDITIONS};
use crate::memory::address::HostPhysical;

/// The conditions of a wait for several words, each of which lies in the VM's memory.
#[derive(Clone, Debug, Default)]
pub struct Conditions([Option<Condition>; MOST_CONDITIONS]);

/// What is at `host`, with zeros above its width.
///
/// # Safety
/// `host` lies in a VM's memory and is aligned to `width`.
pub unsafe fn read(host: HostPhysical, width: Width) -> u64 {
    let host = host.raw();
    // SAFETY: the caller says so, and it is real memory whoever has it.
    unsafe {
        match width {
            Width::Byte => (host as *const u8).read_volatile().into(),
            Width::Half => (host as *const u16).read_volatile().into(),
            Width::Word => (host as *const u32).read_volatile().into(),
            Width::Double => (host as *const u64).read_volatile(),
        }
    }
}

impl Conditions {
    /// These.
    ///
    /// # Safety
    /// The place of each is the host's address of a word in a VM's memory, aligned to its width.
    #[must_use]
    pub const unsafe fn new(conditions: [Option<Condition>; MOST_CONDITIONS]) -> Self {
        Self(conditions)
    }

    /// Where the words are.
    pub fn into_places(self) -> impl Iterator<Item = HostPhysical> {
        let conditions = self.0.into_iter().flatten();
        conditions.map(|condition| HostPhysical::new(condition.place))
    }

    /// Whether all of them hold.
    #[must_use]
    pub fn hold(&self) -> bool {
        self.0.iter().flatten().all(|condition| {
            let host = HostPhysical::new(condition.place);
            // SAFETY: `new` was told that it lies in a VM's memory, aligned. Where the guest has given the page back, what is read is
            // a hint at most.
            condition.holds(unsafe { read(host, condition.width) })
        })
    }
}
