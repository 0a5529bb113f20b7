//! Ethernet frames, and how one lies in a slot of the hypervisor's memory.

use core::fmt;

pub use riscv::virtio::network::HEADER_BYTES as HEADER;

use crate::memory::owned::OwnedRegion;

/// Bytes of an Ethernet header, which are the shortest frame.
pub const HEAD: usize = 14;
/// The longest frame: an Ethernet header and [`MTU`] bytes.
pub const LONGEST: u16 = HEAD as u16 + MTU;
/// The most bytes that a frame carries.
pub const MTU: u16 = 1500;
/// Bytes of a slot.
pub const SLOT: u64 = 2048;
/// Offset in a slot of the bytes after the Ethernet header, or up to 7 bytes before them.
pub const BODY: u64 = 32;

const _: () = assert!(BODY + 7 + MTU as u64 <= SLOT);

/// The header of a frame for a guest: nothing is offloaded, and the frame lies in one chain of buffers.
pub const TO_GUEST: [u8; HEADER] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
/// The header of a frame for a card.
pub const TO_CARD: [u8; HEADER] = [0; HEADER];

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(pub [u8; 6]);

impl Address {
    /// A locally administered address for a port: of a switch on the computer that `computer` names, for the VM with this number.
    #[must_use]
    pub const fn of_port(computer: [u8; 3], switch: u8, vm: u8) -> Self {
        let [first, second, third] = computer;
        // Of the first byte, bit 1 says that it is locally administered, and bit 0 that it is for a group (IEEE 802-2014, §8.2).
        Self([0x06, first, second, third, switch, vm])
    }

    /// Returns true for broadcast and multicast.
    #[must_use]
    pub const fn is_group(self) -> bool {
        let [first, ..] = self.0;
        first & 1 != 0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, rest @ ..] = self.0;
        write!(f, "{first:02x}")?;
        rest.iter().try_for_each(|byte| write!(f, ":{byte:02x}"))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The Ethernet header of a frame: destination, source, type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(pub [u8; HEAD]);

impl Head {
    /// Destination address of the frame.
    #[must_use]
    pub const fn destination(&self) -> Address {
        let [a, b, c, d, e, f, ..] = self.0;
        Address([a, b, c, d, e, f])
    }

    /// Source address of the frame.
    #[must_use]
    pub const fn source(&self) -> Address {
        let [_, _, _, _, _, _, a, b, c, d, e, f, ..] = self.0;
        Address([a, b, c, d, e, f])
    }

    /// Header of a frame followed by this head.
    #[must_use]
    pub fn behind(&self, header: &[u8; HEADER]) -> [u8; HEADER + HEAD] {
        let mut bytes = [0; HEADER + HEAD];
        for (place, byte) in bytes.iter_mut().zip(header.iter().chain(&self.0)) {
            *place = *byte;
        }
        bytes
    }
}

/// Layout of a frame in its slot: header, Ethernet header and body, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    length: u16,
    shift: u8,
}

impl Parcel {
    /// A frame of so many bytes, [`HEAD`] to [`LONGEST`], whose body begins `shift` bytes behind a multiple of 8.
    #[must_use]
    pub fn new(length: u16, shift: u8) -> Self {
        Self {
            length: length.clamp(HEAD as u16, LONGEST),
            shift: shift & 7,
        }
    }

    /// Bytes of the frame and of its header.
    #[must_use]
    pub const fn bytes_with_header(self) -> u64 {
        self.length as u64 + HEADER as u64
    }

    /// The slot from the body on, which follows the Ethernet header.
    #[must_use]
    pub const fn body(self, slot: OwnedRegion) -> OwnedRegion {
        slot.skip(BODY + self.shift as u64)
    }

    /// The slot from the frame's header on.
    #[must_use]
    pub const fn begin(self, slot: OwnedRegion) -> OwnedRegion {
        slot.skip(BODY + self.shift as u64 - (HEADER + HEAD) as u64)
    }
}
