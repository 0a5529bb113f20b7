//! Places of vCPUs in the matrix.

use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet, VmId};
use crate::config::Placement;
use crate::dispatch::table::Scheduler;
use crate::policies::gang::{NO_ROW, Rows};

impl Scheduler {
    /// Returns true if the slots of the matrix say which vCPU runs.
    #[inline]
    pub(crate) const fn co_schedules(&self) -> bool {
        cfg!(feature = "papers") && self.has_matrix
    }

    /// Lays out the matrix: VMs in the order of their ids, so that a new one leaves the others where they are.
    ///
    /// A VM with more vCPUs than there are columns takes several rows, as does one with two vCPUs that are pinned to one hart.
    pub(crate) fn lay_out_matrix(&mut self) {
        for vcpu in self.vcpus.iter_mut().flatten() {
            vcpu.row = NO_ROW;
        }
        if !self.co_schedules() {
            return;
        }
        let mut rows = Rows::new(self.shared);
        for vm in self.present.iter() {
            let Some(entry) = self.vms[vm.index()].filter(|vm| !vm.dedicated) else {
                continue;
            };
            let mut rest = entry.vcpus;
            while !rest.is_empty() {
                let taken = match entry.placement {
                    Placement::Floating => self.take_any(&mut rows, rest),
                    Placement::Fixed => self.take_homes(&mut rows, rest),
                };
                if taken.is_empty() {
                    break;
                }
                rest = rest.without(taken);
            }
        }
        self.slots.set_rows(rows.used());
    }

    /// Gives as many of these vCPUs as there are columns a row and a column each. Returns them.
    fn take_any(&mut self, rows: &mut Rows, vcpus: VcpuSet) -> VcpuSet {
        let count = vcpus.count().min(self.shared.count());
        let Some((row, columns)) = rows.take(count).filter(|_| count > 0) else {
            return VcpuSet::EMPTY;
        };
        let mut taken = VcpuSet::EMPTY;
        for (vcpu, column) in vcpus.iter().zip(columns.iter()) {
            self.put(vcpu, row, column);
            taken.insert(vcpu);
        }
        taken
    }

    /// Gives those of these vCPUs that are pinned to different harts a row. Returns them.
    fn take_homes(&mut self, rows: &mut Rows, vcpus: VcpuSet) -> VcpuSet {
        let (mut taken, mut homes) = (VcpuSet::EMPTY, HartSet::EMPTY);
        for vcpu in vcpus.iter() {
            if let Some(home) = self.only_hart(vcpu).filter(|&home| !homes.contains(home)) {
                taken.insert(vcpu);
                homes.insert(home);
            }
        }
        let Some((row, _)) = rows.take_columns(homes).filter(|_| !taken.is_empty()) else {
            return VcpuSet::EMPTY;
        };
        for vcpu in taken.iter() {
            if let Some(home) = self.only_hart(vcpu) {
                self.put(vcpu, row, home);
            }
        }
        taken
    }

    fn only_hart(&self, vcpu: VcpuId) -> Option<HartId> {
        self.vcpus[vcpu.index()].as_ref()?.home
    }

    fn put(&mut self, vcpu: VcpuId, row: u8, column: HartId) {
        if let Some(entry) = self.vcpu_mut(vcpu) {
            entry.row = row;
            entry.home = Some(column);
        }
    }

    /// Sets the lengths of the slots to the shares.
    pub(crate) fn weigh_slots(&mut self) {
        if !self.co_schedules() {
            return;
        }
        self.slots.clear_weights();
        for vm in self.present.iter() {
            self.weigh_rows_of(vm);
        }
    }

    fn weigh_rows_of(&mut self, vm: VmId) {
        let Some(vm) = self.vms[vm.index()].filter(|vm| !vm.dedicated) else {
            return;
        };
        let row = |vcpu: VcpuId| self.vcpus[vcpu.index()].map_or(NO_ROW, |entry| entry.row);
        let rows = vm.vcpus.iter().map(row).filter(|&row| row != NO_ROW);
        let rows = rows.fold(0u64, |rows, row| rows | 1 << (row % 64));
        for row in (0..64u8).filter(|row| rows >> row & 1 == 1) {
            self.slots.weigh(row, vm.share, rows.count_ones());
        }
    }
}
