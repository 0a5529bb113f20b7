//! Numbers of several cells, as `reg` and `ranges` have them (Devicetree Specification, 2.3.6 and 2.3.8).

/// Bytes of a cell.
const CELL: usize = 4;
/// Cells of an address or a size that are read at all: PCI has three.
const MAX_CELLS: u32 = 4;

/// Numbers of several cells, one behind the other.
pub(crate) struct Cells<'a> {
    rest: &'a [[u8; CELL]],
}

impl<'a> Cells<'a> {
    /// Reads a property's value.
    pub const fn new(value: &'a [u8]) -> Self {
        Self {
            rest: value.as_chunks::<CELL>().0,
        }
    }

    /// The next cell.
    pub fn word(&mut self) -> Option<u32> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(u32::from_be_bytes(*first))
    }

    /// The next number of so many cells. The inner value is absent for a number of more than 64 bits.
    pub fn number(&mut self, cells: u32) -> Option<Option<u64>> {
        if cells > MAX_CELLS {
            return None;
        }
        let (own, rest) = self.rest.split_at_checked(cells as usize)?;
        self.rest = rest;
        let whole = own.iter().fold(0, |all: u128, cell| {
            all << 32 | u128::from(u32::from_be_bytes(*cell))
        });
        Some(u64::try_from(whole).ok())
    }

    /// The next address and size.
    pub fn pair(&mut self, address: u32, size: u32) -> Option<(Option<u64>, Option<u64>)> {
        if address == 0 && size == 0 {
            return None;
        }
        Some((self.number(address)?, self.number(size)?))
    }
}
