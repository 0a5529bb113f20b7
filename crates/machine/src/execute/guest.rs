//! HLV, HLVX and HSV: "Hypervisor Virtual-Machine Load and Store Instructions".

use crate::csr::field::hstatus;
use crate::hart::{Access, Hart, Mode, Privilege, Trapped};
use crate::instruction::DISCARD;
use crate::memory::Scalar;
use crate::system::System;
use crate::timing::LineAccess;
use crate::translation::{Masking, View};
use crate::zicsr::Next;

impl Hart {
    /// Executes one of them from its encoding.
    pub(crate) fn access_guest(&mut self, raw: u32, system: &mut System) -> Result<Next, Trapped> {
        let (function, rs2) = (raw >> 25, raw >> 20 & 31);
        let is_store = function & 1 != 0;
        let exists = match (function, rs2) {
            (0x30 | 0x32 | 0x34, 0 | 1) | (0x36, 0) => true,
            (0x32 | 0x34, 3) => true,
            (0x31 | 0x33 | 0x35 | 0x37, _) => raw >> 7 & 31 == 0,
            _ => false,
        };
        if !exists {
            return Err(self.illegal(raw));
        }
        if self.mode().virtualized || !self.may_access_guest() {
            return Err(self.refused(raw));
        }
        let privilege = Privilege::from_bits(u64::from(self.csrs.hstatus & hstatus::SPVP != 0));
        let execute_for_read = rs2 == 3 && !is_store;
        let view = self.view_of(Mode::new(privilege, true));
        let user = Privilege::User;
        let masking = if execute_for_read || view.mxr {
            Masking::None
        } else if self.mode().privilege == user && privilege == user {
            // senvcfg.PMM is this mode's own here: hstatus stands in for that of the guest.
            Masking::from_field(self.csrs.hstatus >> hstatus::HUPMM_SHIFT)
        } else {
            view.masking
        };
        let view = View {
            execute_for_read,
            masking,
            ..view
        };
        let address = self.x[(raw >> 15 & 31) as usize];
        if is_store {
            self.store_guest(function, system, view, address, self.x[rs2 as usize])?;
            return Ok(Next::Continue);
        }
        let value = match (function, rs2) {
            (0x30, 0) => i64::from(self.load_guest::<u8>(system, view, address)? as i8) as u64,
            (0x30, _) => self.load_guest::<u8>(system, view, address)?.into(),
            (0x32, 0) => i64::from(self.load_guest::<u16>(system, view, address)? as i16) as u64,
            (0x32, _) => self.load_guest::<u16>(system, view, address)?.into(),
            (0x34, 0) => i64::from(self.load_guest::<u32>(system, view, address)? as i32) as u64,
            (0x34, _) => self.load_guest::<u32>(system, view, address)?.into(),
            _ => self.load_guest::<u64>(system, view, address)?,
        };
        let rd = match (raw >> 7 & 31) as u8 {
            0 => DISCARD,
            register => register,
        };
        self.x[usize::from(rd)] = value;
        Ok(Next::Continue)
    }

    fn load_guest<T: Scalar>(
        &mut self,
        system: &mut System,
        view: View,
        address: u64,
    ) -> Result<T, Trapped> {
        // HLVX asks for another permission than loads do, which no tag tells; nor do tags tell how this
        // mode's masking differs from the guest's.
        if view.execute_for_read || view.masking != Masking::None {
            return self.load_in_view(system, view, address, 1, None);
        }
        let tag = self.tag_of(view);
        let entry = self.tlb.load_entry(address);
        if entry.serves::<T>(address, tag) {
            let offset = entry.addend.wrapping_add(address);
            let eyes = (view, Some(tag));
            self.give_way(system, Access::Load, (offset, T::SIZE), 1)?;
            self.charge_lines(system, eyes, LineAccess::Load, (address, T::SIZE), offset);
            // SAFETY: entries lead to whole pages of RAM, and serve what is inside.
            return Ok(unsafe { system.memory.ram.read_unchecked::<T>(offset) });
        }
        self.load_in_view(system, view, address, 1, Some(tag))
    }

    fn store_guest(
        &mut self,
        function: u32,
        system: &mut System,
        view: View,
        address: u64,
        value: u64,
    ) -> Result<(), Trapped> {
        match function {
            0x31 => self.store_guest_scalar(system, view, address, value as u8),
            0x33 => self.store_guest_scalar(system, view, address, value as u16),
            0x35 => self.store_guest_scalar(system, view, address, value as u32),
            _ => self.store_guest_scalar(system, view, address, value),
        }
    }

    fn store_guest_scalar<T: Scalar>(
        &mut self,
        system: &mut System,
        view: View,
        address: u64,
        value: T,
    ) -> Result<(), Trapped> {
        // The block ends here in any case: no matter whether it is still what memory holds.
        let at = (1, 0);
        if view.masking != Masking::None {
            return self
                .store_in_view(system, view, address, value, at, None)
                .map(|_| ());
        }
        let tag = self.tag_of(view);
        let entry = self.tlb.store_entry(address);
        if entry.serves::<T>(address, tag) {
            let offset = entry.addend.wrapping_add(address);
            let eyes = (view, Some(tag));
            self.give_way(system, Access::Store, (offset, T::SIZE), 1)?;
            self.charge_lines(system, eyes, LineAccess::Store, (address, T::SIZE), offset);
            // SAFETY: entries lead to whole pages of RAM, and serve what is inside.
            unsafe { system.memory.ram.write_unchecked::<T>(offset, value) };
            return Ok(());
        }
        self.store_in_view(system, view, address, value, at, Some(tag))
            .map(|_| ())
    }
}
