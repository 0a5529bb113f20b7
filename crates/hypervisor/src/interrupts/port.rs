//! Access of the interrupt state to the computer and to the rest of the hypervisor.
//!
//! Every call is made on the hart that the [`Port`] stands for. The hypervisor's port accesses control registers and the
//! pages of interrupt files; the tests' port is a computer made of plain data.

use crate::interrupts::softfile::Identity;
use crate::lock::{Mutex, place};
use scheduler::{HartId, HartSet, VcpuNumber};

use super::{Backing, Generation, GuestFile, HartFiles, Interrupts, Route};

/// Register of an interrupt file, selected by `vsiselect` (AIA, "Indirectly accessed interrupt-file registers").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// `eidelivery`.
    Delivery,
    /// `eithreshold`.
    Threshold,
    /// The pending bits of 64 identities: `eip0`, `eip2` and so on.
    Pending(Array),
    /// The enable bits of 64 identities: `eie0`, `eie2` and so on.
    Enabled(Array),
}

/// Register of an array, which holds 64 identities: 0 stands for 0 to 63, 1 for 64 to 127, up to 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Array(pub(super) u8);

impl Array {
    /// Identities that guests know.
    pub const FIRST: Self = Self(0);

    /// The arrays after the first of a file with the identities 1 to `last` (at most 2047).
    pub fn after_first(last: u32) -> impl Iterator<Item = Self> {
        (1..=(last.min(2047) / 64) as u8).map(Self)
    }
}

impl Register {
    /// The value of `vsiselect`. With 64-bit registers only the even-numbered ones of an array exist.
    #[must_use]
    pub const fn select(self) -> u64 {
        match self {
            Self::Delivery => 0x70,
            Self::Threshold => 0x72,
            Self::Pending(array) => 0x80 + 2 * array.0 as u64,
            Self::Enabled(array) => 0xC0 + 2 * array.0 as u64,
        }
    }
}

/// The registers of one guest file of this hart. Each call is one access; messages may arrive between two.
pub trait Registers {
    /// Reads a register.
    fn read(&self, register: Register) -> u64;
    /// Writes a register.
    fn write(&self, register: Register, value: u64);
    /// Sets bits, in one instruction (CSRRS).
    fn set(&self, register: Register, bits: u64);
    /// Clears bits, in one instruction (CSRRC).
    fn clear(&self, register: Register, bits: u64);
}

/// Way in which an interrupt of a waiting vCPU was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The interrupt interrupted the hypervisor.
    Interrupt,
    /// The hart polled its files.
    Polled,
}

/// Access of one hart to its guest files, to other harts and to vCPUs.
pub trait Port {
    /// The registers of a file of this hart.
    type Registers<'a>: Registers
    where
        Self: 'a;

    /// The hart that this port stands for.
    fn here(&self) -> HartId;
    /// The highest identity that the guest files implement.
    fn last_identity(&self) -> u32;
    /// Selects a file of this hart.
    fn select(&self, file: GuestFile) -> Self::Registers<'_>;
    /// Sets or clears this hart's `hgeie` bit of a file.
    fn watch(&self, file: GuestFile, on: bool);

    /// Table of a hart's guest files.
    fn files(&self, hart: HartId) -> Option<&HartFiles>;
    /// Interrupts of a vCPU.
    fn interrupts(&self, vcpu: VcpuNumber) -> Option<&Mutex<Interrupts, { place::INTERRUPTS }>>;

    /// Changes the page of the vCPU's file in its VM's G-stage table. Returns the table's new generation.
    fn map_page(&self, vcpu: VcpuNumber, to: Backing) -> Generation;
    /// Makes a source of the board send to `to`. On return the board's APLIC sends nothing to the former place.
    fn send_source(&self, route: Route, vcpu: VcpuNumber, to: Backing);
    /// Switches a source of the board off.
    fn silence_source(&self, route: Route);
    /// The other harts that may still use a translation of the vCPU's VM from before `generation`. This hart is in the
    /// hypervisor, and renews its translations before it enters a guest.
    fn users_of_older(&self, vcpu: VcpuNumber, generation: Generation) -> HartSet;

    /// Sends a message to a guest file. On return no other hart can see a later store of this one before the message.
    fn send(&self, hart: HartId, file: GuestFile, identity: Identity);
    /// Makes a hart call [`serve`](super::serve) soon, and renew its translations.
    fn kick(&self, hart: HartId);
    /// Makes the vCPU see an interrupt in memory.
    fn notify(&self, vcpu: VcpuNumber);
    /// Wakes a waiting vCPU for an interrupt in its file on this hart.
    fn wake(&self, vcpu: VcpuNumber, sign: Sign);
    /// Makes the board's APLIC send a message to this hart, which arrives after all that it has sent here before (AIA,
    /// "Generate MSI"); then [`synchronised`](super::synchronised) is called here. Returns false if that is impossible.
    fn synchronise(&self) -> bool;

    /// Notes that the vCPU's file on `hart` forwards from now on, and was not opened yet.
    fn note_left(&self, _vcpu: VcpuNumber, _hart: HartId) {}
    /// Marks the beginning of the work on a forwarder.
    fn begin_forwarding(&self) {}
    /// Marks a point at which messages were taken out of a forwarder and not delivered yet.
    fn between_accesses(&self) {}
    /// Marks the end of the work on a forwarder of the vCPU, and the number of messages forwarded: the time is charged to the
    /// vCPU's VM.
    fn end_forwarding(&self, vcpu: VcpuNumber, messages: u32);
}
