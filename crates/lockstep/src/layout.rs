//! Where things are in memory.
//!
//! At the start of RAM the harness, then one slot for each program. Everything that a program can
//! change lies in its slot, so two runs are the same if their slots are.

/// Start of RAM on every computer that the programs run on.
pub const RAM: u64 = 0x8000_0000;
/// Where the harness lets its host know that all is done: HTIF's tohost.
pub const TOHOST: u64 = RAM + 0x8000;
/// Where the first slot begins.
pub const SLOTS: u64 = RAM + 0x2_0000;
/// Bytes of a slot.
pub const SLOT: u64 = 0x2_4000;
/// A page.
pub const PAGE: u64 = 0x1000;

/// Addresses at which boards have devices, each its own: programs keep away from them.
pub const DEVICES: [std::ops::Range<u64>; 2] = [0..RAM, 0x4_0000_0000..0x8_0000_0000];

/// Offset of the code in a slot.
pub const CODE: u64 = 0;
/// Offset of the supervisors' trap handlers.
pub const HANDLERS: u64 = PAGE;
/// Offset of VS-mode's handlers in that page.
pub const VIRTUAL_HANDLERS: u64 = 0x400;
/// Bytes of a mode's handlers: a vector of 64 instructions.
pub const HANDLERS_SIZE: u64 = 0x100;
/// Offset in that page of the SRET with which all handlers end.
pub const HANDLER_RETURN: u64 = 0x200;
/// Offset of the state before and after.
pub const CONTEXT: u64 = 2 * PAGE;
/// Offset of the records of traps.
pub const LOG: u64 = 3 * PAGE;
/// Bytes of the records.
pub const LOG_SIZE: u64 = 2 * PAGE;
/// Offset of the pages that programs load from and store to.
pub const DATA: u64 = 5 * PAGE;
/// How many there are. Another that no table leads to follows.
pub const DATA_PAGES: u64 = 4;
/// Offset of the vector registers before, and after a program that may use them.
pub const VECTORS: u64 = DATA + DATA_PAGES * PAGE;
/// Offset of a page full of returns, for jumps.
pub const LANDING: u64 = 10 * PAGE;
/// Offset of the first stage's tables of HS-mode; VS-mode's follow.
pub const FIRST_TABLES: u64 = 11 * PAGE;
/// Pages of a first stage's tables.
pub const FIRST_TABLE_PAGES: u64 = 7;
/// Offset of the G-stage's tables other than the root.
pub const GUEST_TABLES: u64 = 25 * PAGE;
/// Offset of the G-stage's root, four pages, aligned to its size.
pub const GUEST_ROOT: u64 = 32 * PAGE;

/// Bytes of a place for an instruction or two; after a trap the next place follows.
pub const PLACE: u64 = 8;

/// Offsets in the context.
pub mod context {
    /// x1 to x31 before, at their number.
    pub const X: i32 = 0;
    /// f0 to f31 before.
    pub const F: i32 = 0x100;
    /// CSRs before, in the order of [`crate::csr::SET`].
    pub const CSRS: i32 = 0x200;
    /// Interrupts of M-mode's timer so far.
    pub const TIMERS: i32 = 0x3c0;
    /// x1 to x31 after.
    pub const X_AFTER: i32 = 0x400;
    /// f0 to f31 after.
    pub const F_AFTER: i32 = 0x500;
    /// CSRs after, in the order of [`crate::csr::COMPARED`].
    pub const CSRS_AFTER: i32 = 0x600;
    /// vtype, AVL, vcsr and vstart before.
    pub const VECTOR: i32 = 0x7e0;
    /// Address of the next record.
    pub const NEXT: i32 = 0x7c0;
    /// Address of the first place after the program.
    pub const END: i32 = 0x7c8;
    /// Address of the slot.
    pub const SLOT: i32 = 0x7d0;
    /// One once the program has ended.
    pub const DONE: i32 = 0x7d8;
}

const _: () = assert!(GUEST_ROOT + 4 * PAGE == SLOT && GUEST_ROOT.is_multiple_of(4 * PAGE));
const _: () = assert!(SLOT.is_multiple_of(4 * PAGE) && SLOTS.is_multiple_of(4 * PAGE));
