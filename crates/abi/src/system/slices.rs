//! Slices of shared disks.

/// A part of a disk that a VM has as a disk of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceDescription {
    /// The shared disk: a place in [`SystemDescription::disks`](super::SystemDescription::disks).
    pub disk: u32,
    /// Its first sector, of 512 bytes, on the whole disk.
    pub first: u64,
    /// Its sectors; to the disk's end where there are none.
    pub sectors: u64,
    /// Set if the VM may not write.
    pub read_only: bool,
}

/// Cells of a slice in its property: the disk, its first sector and its sectors in two cells each, and 1 where it may not be written.
pub(super) const CELLS: usize = 6;

impl SliceDescription {
    /// The cells that stand for it.
    pub fn cells(&self) -> [u32; CELLS] {
        let halves = |value: u64| [(value >> 32) as u32, value as u32];
        let ([a, b], [c, d]) = (halves(self.first), halves(self.sectors));
        [self.disk, a, b, c, d, self.read_only.into()]
    }

    fn from_cells(cells: [u32; CELLS]) -> Option<Self> {
        let [disk, a, b, c, d, read_only] = cells;
        let whole = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let slice = Self {
            disk,
            first: whole(a, b),
            sectors: whole(c, d),
            read_only: read_only == 1,
        };
        (read_only <= 1 && slice.first.checked_add(slice.sectors).is_some()).then_some(slice)
    }

    /// The sector behind its last.
    pub fn end(&self) -> u64 {
        match self.sectors {
            0 => u64::MAX,
            sectors => self.first.saturating_add(sectors),
        }
    }

    /// Returns true if one of two VMs could write to the other's slice.
    pub fn collides_with(&self, other: &Self) -> bool {
        let overlap = self.first < other.end() && other.first < self.end();
        self.disk == other.disk && overlap && !(self.read_only && other.read_only)
    }
}

/// Bytes of a slice in its property.
pub(super) const BYTES: usize = 4 * CELLS;

/// The slices of a VM, as its property has them: a VM may have many, and few VMs have any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slices<'a> {
    /// Each was read once, and is good.
    pub(super) slices: &'a [[u8; BYTES]],
}

impl<'a> Slices<'a> {
    /// Number of slices.
    pub const fn len(&self) -> usize {
        self.slices.len()
    }

    /// Returns true if the VM has none.
    pub const fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// The slices, in the VM's order.
    pub fn iter(&self) -> impl Iterator<Item = SliceDescription> + use<'a> {
        self.slices.iter().filter_map(read)
    }
}

/// Cells of a slice.
pub(super) fn cells(bytes: &[u8; BYTES]) -> [u32; CELLS] {
    let mut cells = [0; CELLS];
    let (words, _) = bytes.as_chunks::<4>();
    for (cell, word) in cells.iter_mut().zip(words) {
        *cell = u32::from_be_bytes(*word);
    }
    cells
}

/// Slice, if its cells are sound.
pub(super) fn read(bytes: &[u8; BYTES]) -> Option<SliceDescription> {
    SliceDescription::from_cells(cells(bytes))
}
