//! PCI device by which a VM serves disks to others, as the program in its guest sees it.
//!
//! The device has three regions (BARs). The first has [`register`]s. The second has, for each disk, what the hypervisor asks and what the
//! program answers ([`ring`]). The third is the window, in which pages of the other VMs appear while a request for them is under way.
//! All numbers are little-endian.
//!
//! The hypervisor takes no word of the program: an answer for what was not asked, or for what was answered already, changes nothing.

/// Vendor and device of PCI. No other device has them; they are not registered.
pub const VENDOR: u16 = 0x5450;
/// See [`VENDOR`].
pub const DEVICE: u16 = 0x5653;
/// Class of PCI: none of the defined ones.
pub const CLASS: u32 = 0xff_0000;

/// Value of [`register::IDENTITY`]: "PTSV".
pub const IDENTITY: u32 = 0x5653_5450;
/// Value of [`register::VERSION`].
pub const VERSION: u32 = 1;

/// Requests of a disk that are under way at most.
pub const SLOTS: usize = 32;
/// Pages of the window that each of them has.
pub const SLOT_PAGES: usize = 256;
/// Bytes of these.
pub const SLOT_BYTES: u64 = SLOT_PAGES as u64 * 4096;
/// Bytes of a disk's part of the window.
pub const WINDOW_BYTES: u64 = SLOTS as u64 * SLOT_BYTES;
/// Pieces that the data of a request lies in at most.
pub const PIECES: usize = 252;

/// Offsets of registers, of 32 bits each.
pub mod register {
    /// [`IDENTITY`](super::IDENTITY).
    pub const IDENTITY: u64 = 0;
    /// [`VERSION`](super::VERSION).
    pub const VERSION: u64 = 4;
    /// Number of disks.
    pub const DISKS: u64 = 8;
    /// A store begins a life of the program: what is under way is taken back and asked again.
    pub const START: u64 = 0xc;
    /// Bit 0 is 1 if a disk has requests that the program has not seen, by what the program has said in [`ring::WAKE_AT`](super::ring::WAKE_AT).
    pub const INTERRUPT: u64 = 0x10;
    /// Answers of the program that were refused since the VM was started, modulo 2^32.
    pub const REFUSED: u64 = 0x14;
    /// A store of a disk's number has the hypervisor take the disk's answers.
    pub const DOORBELL: u64 = 0x20;
    /// Properties of the first disk. Those of the next are [`DISK_BYTES`] behind.
    pub const DISK: u64 = 0x100;
    /// See [`DISK`].
    pub const DISK_BYTES: u64 = 0x40;
    /// Offset in a disk's properties: its name, ended by a zero byte.
    pub const NAME: u64 = 0;
    /// Bytes of the name.
    pub const NAME_BYTES: u64 = 0x20;
    /// Offset in a disk's properties: its sectors, in two words.
    pub const SECTORS: u64 = 0x20;
}

/// Requests and answers of a disk: offsets in the disk's part of the second region.
pub mod ring {
    /// Bytes of a disk's part.
    pub const RING_BYTES: u64 = 0x2_0000;
    /// Bytes of the requests that the guest reads and does not write, and that lie first.
    pub const READ_ONLY_BYTES: u64 = 0x1_1000;

    /// Bytes that there are. Behind them is nothing.
    pub const USED_BYTES: u64 = READ_ONLY_BYTES + 0x1000;

    /// Bytes of a slot's [request](super::request). That of slot `n` is at `n` times this.
    pub const REQUEST_BYTES: u64 = 2048;
    /// Requests that were made, modulo 2^32.
    pub const ASKED: u64 = 0x1_0000;
    /// Slot of the first request; request `n` has the word `n` modulo [`SLOTS`](super::SLOTS).
    pub const ASKED_SLOTS: u64 = 0x1_0040;

    /// The page that the program writes: answers that were given, modulo 2^32.
    pub const ANSWERED: u64 = 0x1_1000;
    /// Number of requests that the program has seen. The device interrupts while more were made.
    pub const WAKE_AT: u64 = 0x1_1004;
    /// The first answer; answer `n` has the place `n` modulo [`SLOTS`](super::SLOTS). Four words: slot, id, status of virtio, and bytes of data
    /// that were read or written.
    pub const ANSWERS: u64 = 0x1_1040;
    /// Bytes of an answer.
    pub const ANSWER_BYTES: u64 = 16;
}

/// A request: offsets of its parts.
pub mod request {
    /// A word that tells requests in one slot apart.
    pub const ID: u64 = 0;
    /// A word: the type of virtio's request (virtio 1.2, §5.2.6), read, write or flush.
    pub const KIND: u64 = 4;
    /// A doubleword: the first sector, of 512 bytes.
    pub const SECTOR: u64 = 8;
    /// A word: bytes of data.
    pub const DATA_BYTES: u64 = 16;
    /// A word: pieces that the data lies in.
    pub const PIECES: u64 = 20;
    /// The first piece, two words: its offset in the slot's part of the window, and its bytes.
    pub const PIECE: u64 = 32;
    /// Bytes of a piece.
    pub const PIECE_BYTES: u64 = 8;
}

const _: () = assert!(
    request::PIECE + PIECES as u64 * request::PIECE_BYTES <= ring::REQUEST_BYTES
        && SLOTS as u64 * ring::REQUEST_BYTES <= ring::ASKED
        && ring::ASKED_SLOTS + 4 * SLOTS as u64 <= ring::READ_ONLY_BYTES
        && ring::ANSWERS + ring::ANSWER_BYTES * SLOTS as u64 <= ring::USED_BYTES
        && ring::USED_BYTES <= ring::RING_BYTES
);
