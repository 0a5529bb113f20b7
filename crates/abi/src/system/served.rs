//! Disks that VMs serve to others.

use super::{VmId, VmName};

/// A disk that a program in a VM's guest serves to other VMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServedDisk {
    /// Its name, by which the program finds it.
    pub name: VmName,
    /// The VM that serves it.
    pub server: VmId,
    /// Its sectors.
    pub sectors: u64,
}

/// Cells of a served disk in its property: the VM, and the sectors in two cells.
pub(super) const CELLS: usize = 3;

impl ServedDisk {
    /// The cells that stand for it.
    pub fn cells(&self) -> [u32; CELLS] {
        let Self {
            server, sectors, ..
        } = self;
        [server.0.into(), (sectors >> 32) as u32, *sectors as u32]
    }

    /// Disk of these cells, if they are sound.
    pub(super) fn from_cells(cells: [u32; CELLS], name: VmName) -> Option<Self> {
        let [server, high, low] = cells;
        let sectors = u64::from(high) << 32 | u64::from(low);
        let server = u8::try_from(server).ok().map(VmId)?;
        (sectors > 0).then_some(Self {
            name,
            server,
            sectors,
        })
    }
}
