//! Entries of the page tables of Sv39, Sv48 and Sv57, and of Sv39x4 to Sv57x4 (privileged architecture, section "Sv39: Page-Based 39-bit
//! Virtual-Memory System", chapters "Svnapot" and "Svpbmt", and section "Guest Physical Address Translation").

/// V: the entry is one.
pub const VALID: u64 = 1 << 0;
/// R: loads are allowed.
pub const READ: u64 = 1 << 1;
/// W: stores are allowed.
pub const WRITE: u64 = 1 << 2;
/// X: fetches are allowed.
pub const EXECUTE: u64 = 1 << 3;
/// U: the page is a user's. Every access of the G-stage counts as a user's.
pub const USER: u64 = 1 << 4;
/// A: the page has been accessed.
pub const ACCESSED: u64 = 1 << 6;
/// D: the page has been written.
pub const DIRTY: u64 = 1 << 7;
/// The lower bit of RSW, which is left to software.
pub const SOFTWARE: u64 = 1 << 8;
/// Bits 60 to 54, reserved.
pub const RESERVED: u64 = 0x7f << 54;
/// PBMT (Svpbmt): the memory type, of which the highest is reserved.
pub const MEMORY_TYPE: u64 = 3 << 61;
/// N (Svnapot): the page is one of several that are contiguous and have equal entries.
pub const CONTIGUOUS: u64 = 1 << 63;
/// Place of the lowest bit of the PPN.
pub const PPN_SHIFT: u32 = 10;
/// PPN, at the lowest place.
pub const PPN_MASK: u64 = (1 << 44) - 1;
