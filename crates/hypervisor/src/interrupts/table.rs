//! Owners of a hart's guest interrupt files.
//!
//! A file cannot move with its vCPU. When a vCPU is dispatched on another hart it gets a file there; the old one stays
//! as a *forwarder* while siblings or devices may still send to it, and forwards arriving messages.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::lock::{Mutex, place};
use scheduler::VcpuNumber;

use super::guest_file::GuestFile;
use super::{Generation, ResetEpoch};

/// State of the messages that the board's APLIC has sent to a forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InFlight {
    /// No source of the board has sent to the file, or all its messages have arrived.
    Nothing,
    /// Messages may be in flight until the next synchronisation ends.
    Perhaps,
    /// Messages may be in flight until the present synchronisation ends.
    UntilSynchronised,
}

/// File that its vCPU has left for another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Forwarder {
    /// vCPU whose interrupts arrive here.
    pub vcpu: VcpuNumber,
    /// Reset epoch of the vCPU in which it had the file.
    pub life: ResetEpoch,
    /// A hart that uses no translation from before this generation of the VM's table cannot send here.
    pub generation: Generation,
    /// Set once the file's hart has taken the file over from the guest: only known identities show.
    pub open: bool,
    pub in_flight: InFlight,
    /// Number of times at which messages were forwarded.
    pub forwards: u8,
    /// Set once the harts that may still send here were kicked to renew their translations.
    pub notified: bool,
}

/// Owner of a guest file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Owner {
    /// No owner. Nothing is pending or enabled in the file, and no hart can send to it.
    #[default]
    Free,
    /// The vCPU keeps its interrupts in it.
    Vcpu(VcpuNumber),
    /// The vCPU has left it.
    Forwarder(Forwarder),
}

/// File that a vCPU was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub file: GuestFile,
    /// Messages in flight to the file, if it was the vCPU's own forwarder: the board's APLIC may have sent to it, and it may be watched.
    pub returned: Option<InFlight>,
}

/// The guest files of one hart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileTable {
    /// File n is at n - 1.
    owners: Vec<Owner>,
    /// The files that forward, a bit each.
    forwarders: u64,
    /// Set while a synchronisation with the board's APLIC is under way.
    synchronising: bool,
}

impl FileTable {
    /// A hart with so many files, at most [`GuestFile::MAX_NUMBER`], all free.
    #[must_use]
    pub fn new(count: u8) -> Self {
        let count = usize::from(count.min(GuestFile::MAX_NUMBER));
        Self {
            owners: alloc::vec![Owner::Free; count],
            forwarders: 0,
            synchronising: false,
        }
    }

    /// All files with their owners.
    pub fn iter(&self) -> impl Iterator<Item = (GuestFile, Owner)> {
        let files = (1..=GuestFile::MAX_NUMBER).filter_map(GuestFile::new);
        files.zip(self.owners.iter().copied())
    }

    /// Owner of `file`; a file that does not exist is free.
    #[must_use]
    #[inline]
    pub fn owner(&self, file: GuestFile) -> Owner {
        let place = usize::from(file.number()) - 1;
        self.owners.get(place).copied().unwrap_or_default()
    }

    #[inline]
    fn set(&mut self, file: GuestFile, owner: Owner) {
        if let Some(place) = self.owners.get_mut(usize::from(file.number()) - 1) {
            *place = owner;
            match owner {
                Owner::Forwarder(_) => self.forwarders |= file.bit(),
                Owner::Free | Owner::Vcpu(_) => self.forwarders &= !file.bit(),
            }
        }
    }

    fn forwarder(&self, file: GuestFile) -> Option<Forwarder> {
        match self.owner(file) {
            Owner::Forwarder(forwarder) => Some(forwarder),
            Owner::Free | Owner::Vcpu(_) => None,
        }
    }

    fn forwarders(&self) -> impl Iterator<Item = (GuestFile, Forwarder)> + use<'_> {
        GuestFile::in_bits(self.forwarders)
            .filter_map(|file| self.forwarder(file).map(|forwarder| (file, forwarder)))
    }

    /// Gives `vcpu` the forwarder that it left here in this epoch, or a free file.
    fn take(&mut self, vcpu: VcpuNumber, life: ResetEpoch) -> Option<Taken> {
        let own = self
            .forwarders()
            .find(|(_, forwarder)| forwarder.vcpu == vcpu && forwarder.life == life);
        let taken = match own {
            Some((file, forwarder)) => Taken {
                file,
                returned: Some(forwarder.in_flight),
            },
            None => Taken {
                file: self.iter().find(|(_, owner)| *owner == Owner::Free)?.0,
                returned: None,
            },
        };
        self.set(taken.file, Owner::Vcpu(vcpu));
        Some(taken)
    }
}

/// Owners of one hart's guest files, read by all harts.
///
/// The table's lock is the last of three (see the module), and is held for a few instructions: no access to a register,
/// no message and no other lock happens under it.
#[derive(Debug, Default)]
pub struct HartFiles {
    table: Mutex<FileTable, { place::FILES }>,
    /// Set while one of the files forwards.
    forwards: Shared<AtomicBool>,
    /// The files of vCPUs that wait for an interrupt on this hart, a bit each.
    waiting: AtomicU64,
}

/// Value that other harts read at each wait of a guest and that changes seldom: on a cache line of its own, so that it stays in their
/// caches.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shared<T>(T);

impl HartFiles {
    /// Sets the number of the hart's files. The hart itself has cleared them.
    pub fn open(&self, count: u8) {
        *self.table.lock() = FileTable::new(count);
    }

    /// Present owner of `file`.
    #[must_use]
    #[inline]
    pub fn owner(&self, file: GuestFile) -> Owner {
        self.table.lock().owner(file)
    }

    /// Number of the hart's files.
    #[must_use]
    pub fn count(&self) -> usize {
        self.table.lock().owners.len()
    }

    /// Returns true if one of the files forwards.
    #[must_use]
    pub fn forwards(&self) -> bool {
        self.forwards.0.load(Ordering::Acquire)
    }

    /// The files of vCPUs that wait for an interrupt on this hart, a bit each.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn begin_wait(&self, file: GuestFile) {
        self.waiting.fetch_or(file.bit(), Ordering::Relaxed);
    }

    /// Ends the wait of the file's vCPU; returns true if it waited.
    pub(super) fn end_wait(&self, file: GuestFile) -> bool {
        let waited = self.waiting() & file.bit() != 0;
        if waited {
            self.waiting.fetch_and(!file.bit(), Ordering::Relaxed);
        }
        waited
    }

    pub(super) fn take(&self, vcpu: VcpuNumber, life: ResetEpoch) -> Option<Taken> {
        self.change(|table| table.take(vcpu, life))
    }

    pub(super) fn leave(&self, file: GuestFile, forwarder: Forwarder) {
        self.end_wait(file);
        self.change(|table| table.set(file, Owner::Forwarder(forwarder)));
    }

    pub(super) fn free(&self, file: GuestFile) {
        self.change(|table| table.set(file, Owner::Free));
    }

    /// The files that forward, a bit each.
    pub(super) fn forwarders(&self) -> u64 {
        if self.forwards() {
            self.table.lock().forwarders
        } else {
            0
        }
    }

    /// Returns true if `vcpu` has left a file that was not opened since.
    #[inline]
    pub(super) fn has_unopened(&self, vcpu: VcpuNumber) -> bool {
        self.forwards() && self.forwards_unopened(vcpu)
    }

    #[cold]
    #[inline(never)]
    fn forwards_unopened(&self, vcpu: VcpuNumber) -> bool {
        let table = self.table.lock();
        let mut forwarders = table.forwarders();
        forwarders.any(|(_, forwarder)| forwarder.vcpu == vcpu && !forwarder.open)
    }

    pub(super) fn forwarder(&self, file: GuestFile) -> Option<Forwarder> {
        self.table.lock().forwarder(file)
    }

    /// Replaces the state of a forwarder. Only the file's own hart changes or ends it.
    pub(super) fn update(&self, file: GuestFile, forwarder: Forwarder) {
        self.change(|table| table.set(file, Owner::Forwarder(forwarder)));
    }

    /// Begins a synchronisation for every forwarder that needs one, unless one is under way. Returns true if the APLIC is
    /// to be asked.
    pub(super) fn begin_synchronisation(&self) -> bool {
        self.change(|table| {
            !table.synchronising && {
                table.synchronising =
                    table.turn_in_flight(InFlight::Perhaps, InFlight::UntilSynchronised);
                table.synchronising
            }
        })
    }

    /// Ends the present synchronisation.
    pub(super) fn end_synchronisation(&self) {
        self.change(|table| {
            table.synchronising = false;
            table.turn_in_flight(InFlight::UntilSynchronised, InFlight::Nothing);
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut FileTable) -> T) -> T {
        let mut table = self.table.lock();
        let result = change(&mut table);
        self.forwards
            .0
            .store(table.forwarders != 0, Ordering::Release);
        result
    }
}

impl FileTable {
    /// Turns one state of the messages in flight into another, in all forwarders. Returns true if there was one.
    fn turn_in_flight(&mut self, from: InFlight, to: InFlight) -> bool {
        let mut found = false;
        for owner in &mut self.owners {
            if let Owner::Forwarder(forwarder) = owner
                && forwarder.in_flight == from
            {
                forwarder.in_flight = to;
                found = true;
            }
        }
        found
    }
}

/// Conversions for the model checker, which keeps tables as plain data.
#[cfg(test)]
impl FileTable {
    pub(super) fn thaw(&self, waiting: u64) -> HartFiles {
        let files = HartFiles {
            waiting: AtomicU64::new(waiting),
            ..HartFiles::default()
        };
        files.change(|table| *table = self.clone());
        files
    }

    pub(super) fn each_life(&mut self, vcpu: VcpuNumber, change: &mut dyn FnMut(&mut ResetEpoch)) {
        for owner in &mut self.owners {
            if let Owner::Forwarder(forwarder) = owner
                && forwarder.vcpu == vcpu
            {
                change(&mut forwarder.life);
            }
        }
    }

    pub(super) fn each_generation(
        &mut self,
        vcpus: &[VcpuNumber],
        change: &mut dyn FnMut(&mut Generation),
    ) {
        for owner in &mut self.owners {
            if let Owner::Forwarder(forwarder) = owner
                && vcpus.contains(&forwarder.vcpu)
            {
                change(&mut forwarder.generation);
            }
        }
    }
}

#[cfg(test)]
impl HartFiles {
    pub(super) fn frozen(&self) -> FileTable {
        self.table.lock().clone()
    }
}
