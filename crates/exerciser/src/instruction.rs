//! Encodings of instructions (unprivileged specification, "RV32/64G Instruction Set Listings").

/// JAL x0 to `offset` bytes from itself; the offset's low bits and reach (±1 MiB) are the caller's to keep.
#[must_use]
pub const fn jump(offset: u64) -> u32 {
    let offset = offset as u32;
    (offset >> 20 & 1) << 31
        | (offset >> 1 & 0x3ff) << 21
        | (offset >> 11 & 1) << 20
        | (offset >> 12 & 0xff) << 12
        | 0x6f
}
