//! Where messages go: mmsiaddrcfg, smsiaddrcfg and their upper halves (§4.5.3, §4.5.4, §4.9.1).

use riscv::aplic::register::{MMSIADDRCFG, MMSIADDRCFGH, SMSIADDRCFG, SMSIADDRCFGH};
use riscv::aplic::{MMSIADDRCFGH_FIELDS, MMSIADDRCFGH_L, SMSIADDRCFGH_FIELDS};
use serde::{Deserialize, Serialize};

use super::level::DomainLevel;

/// The MSI address configuration of the root domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AddressConfig {
    machine: u32,
    machine_high: u32,
    supervisor: u32,
    supervisor_high: u32,
}

impl AddressConfig {
    /// The value of the register at `offset`, if it is one of these.
    pub(super) const fn read(&self, offset: u64) -> Option<u32> {
        match offset {
            MMSIADDRCFG => Some(self.machine),
            MMSIADDRCFGH => Some(self.machine_high),
            SMSIADDRCFG => Some(self.supervisor),
            SMSIADDRCFGH => Some(self.supervisor_high),
            _ => None,
        }
    }

    /// Writes the register at `offset`, if it is one of these. All four are locked by L.
    pub(super) fn write(&mut self, offset: u64, value: u32) -> bool {
        let locked = self.machine_high & MMSIADDRCFGH_L != 0;
        let (register, mask) = match offset {
            MMSIADDRCFG => (&mut self.machine, u32::MAX),
            MMSIADDRCFGH => (&mut self.machine_high, MMSIADDRCFGH_FIELDS),
            SMSIADDRCFG => (&mut self.supervisor, u32::MAX),
            SMSIADDRCFGH => (&mut self.supervisor_high, SMSIADDRCFGH_FIELDS),
            _ => return false,
        };
        if !locked {
            *register = value & mask;
        }
        true
    }

    /// The address of a message to a hart's file at a level.
    pub(super) fn target(&self, level: DomainLevel, hart: u32, guest: u32) -> u64 {
        let field =
            |register: u32, low: u32, width: u32| u64::from((register >> low) & ((1 << width) - 1));
        let (low_base, high, guest) = match level {
            DomainLevel::Machine => (self.machine, self.machine_high, 0),
            DomainLevel::Supervisor => (self.supervisor, self.supervisor_high, guest),
        };
        // Group shift and both widths are the machine's for both levels.
        let group_shift = field(self.machine_high, 24, 5);
        let group_width = field(self.machine_high, 16, 3);
        let hart_width = field(self.machine_high, 12, 4);
        let hart_shift = field(high, 20, 3);
        let base = field(high, 0, 12) << 32 | u64::from(low_base);

        let hart = u64::from(hart);
        let group = (hart >> hart_width) & ((1 << group_width) - 1);
        let within = hart & ((1 << hart_width) - 1);
        // The widest sum of shifts keeps seven bits of group below bit 50 of a page number.
        let page = base | (group << (group_shift + 12)) | (within << hart_shift) | u64::from(guest);
        page << 12
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formulas of §4.9.1 with the arrangement of §3.6: A + h·2^C and B + h·2^D.
    #[test]
    fn targets_follow_the_interrupt_files_layout() {
        let mut config = AddressConfig::default();
        let (machine_base, supervisor_base) = (0x2400_0000_u64, 0x2800_0000_u64);
        assert!(config.write(MMSIADDRCFG, (machine_base >> 12) as u32));
        assert!(config.write(SMSIADDRCFG, (supervisor_base >> 12) as u32));
        // D = 15 for seven guest files: LHXS = 3. Two bits of hart number, C = 12.
        assert!(config.write(SMSIADDRCFGH, 3 << 20));
        assert!(config.write(MMSIADDRCFGH, 2 << 12));
        for hart in 0..4 {
            let machine = machine_base + (u64::from(hart) << 12);
            assert_eq!(config.target(DomainLevel::Machine, hart, 5), machine);
            for guest in 0..8 {
                let file = supervisor_base + (u64::from(hart) << 15) + (u64::from(guest) << 12);
                assert_eq!(config.target(DomainLevel::Supervisor, hart, guest), file);
            }
        }
    }

    /// Groups of harts stand 2^E apart, with HHXS = E - 24.
    #[test]
    fn groups_of_harts_are_kept_apart() {
        let mut config = AddressConfig::default();
        config.write(MMSIADDRCFG, 0);
        // LHXW = 1, HHXW = 3, HHXS = 4: groups of two harts at multiples of 2^28.
        config.write(MMSIADDRCFGH, 1 << 12 | 3 << 16 | 4 << 24);
        assert_eq!(
            config.target(DomainLevel::Machine, 0b1011, 0),
            (5 << 28) + 0x1000
        );
    }

    #[test]
    fn the_lock_makes_all_four_read_only() {
        let mut config = AddressConfig::default();
        config.write(SMSIADDRCFG, 0x28000);
        config.write(MMSIADDRCFGH, MMSIADDRCFGH_L | 2 << 12);
        for offset in [MMSIADDRCFG, MMSIADDRCFGH, SMSIADDRCFG, SMSIADDRCFGH] {
            let before = config.read(offset);
            assert!(config.write(offset, 0x1234_5678));
            assert_eq!(config.read(offset), before);
        }
    }

    #[test]
    fn the_largest_fields_do_not_overflow() {
        let mut config = AddressConfig::default();
        config.write(MMSIADDRCFGH, MMSIADDRCFGH_FIELDS & !MMSIADDRCFGH_L);
        config.write(SMSIADDRCFGH, u32::MAX);
        let _ = config.target(DomainLevel::Supervisor, 0x3fff, 63);
    }
}
