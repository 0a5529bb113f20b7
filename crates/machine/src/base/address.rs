//! Pages, lines, and what is known of an address.

/// Bytes of a page, the unit of translation.
pub const PAGE_BYTES: u64 = 1 << PAGE_SHIFT;
/// log2 of [`PAGE_BYTES`].
pub const PAGE_SHIFT: u32 = 12;
/// Bytes of a cache line, which is also the reservation set of LR.
pub const LINE_BYTES: u64 = 1 << LINE_SHIFT;
/// log2 of [`LINE_BYTES`].
pub const LINE_SHIFT: u32 = 6;

/// One memory reference of a walk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reference {
    /// Physical address of the page-table entry.
    pub physical: u64,
    /// True if it belongs to the G-stage.
    pub guest_stage: bool,
    /// Level of the entry: 0 is the last.
    pub level: u8,
    /// True if the entry maps a page, rather than leading to a table.
    pub leaf: bool,
    /// The guest physical address that a G-stage reference helps to translate; the virtual
    /// address for the first stage.
    pub address: u64,
}
