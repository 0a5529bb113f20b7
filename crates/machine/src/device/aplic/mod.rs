//! APLIC: wired interrupt sources, delivered directly or forwarded as messages.
//!
//! RISC-V Advanced Interrupt Architecture 1.0, chapter 4. Two domains, as on QEMU's `virt` board:
//! a machine-level root, and its one child, at supervisor level. Hart index numbers are hart ids.

mod address;
mod domain;
mod level;
#[cfg(test)]
mod tests;

use riscv::aplic::MAX_SOURCE;
use serde::{Deserialize, Serialize};

use super::{AccessFault, Effects, HartId, Imsic, InterruptFile, Msi};
use address::AddressConfig;
use domain::Domain;

pub use level::DomainLevel;

/// The APLIC of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aplic {
    root: Domain,
    child: Domain,
    addresses: AddressConfig,
    /// The levels of the incoming interrupt levels, by source number.
    lines: Vec<bool>,
}

impl Aplic {
    /// An APLIC with sources 1 to `sources` (at most 1023), after reset. With `direct`, its
    /// domains support direct delivery as well as messages; otherwise messages alone.
    #[must_use]
    pub fn new(harts: u32, sources: u32, guest_files: u8, direct: bool) -> Self {
        let sources = sources.min(MAX_SOURCE);
        Self {
            root: Domain::new(DomainLevel::Machine, harts, sources, 0, direct),
            child: Domain::new(DomainLevel::Supervisor, harts, sources, guest_files, direct),
            addresses: AddressConfig::default(),
            lines: vec![false; sources as usize + 1],
        }
    }

    /// The wire of a source.
    #[must_use]
    pub fn line(&self, source: u32) -> bool {
        self.lines.get(source as usize).copied().unwrap_or(false)
    }

    /// A device drives the wire of a source.
    pub fn set_line(&mut self, source: u32, level: bool, imsic: &Imsic, effects: &mut Effects) {
        let Some(line) = self.lines.get_mut(source as usize) else {
            return;
        };
        if *line == level {
            return;
        }
        *line = level;
        self.root.input_changed(source, level);
        self.child.input_changed(source, level);
        self.deliver(imsic, effects);
    }

    /// Reads a register of a domain's control region.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word.
    pub fn read(
        &mut self,
        level: DomainLevel,
        offset: u64,
        size: u8,
        imsic: &Imsic,
        effects: &mut Effects,
    ) -> Result<u64, AccessFault> {
        let offset = word_offset(offset, size)?;
        if level == DomainLevel::Machine
            && let Some(value) = self.addresses.read(offset)
        {
            return Ok(u64::from(value));
        }
        let domain = match level {
            DomainLevel::Machine => &mut self.root,
            DomainLevel::Supervisor => &mut self.child,
        };
        let value = domain.read(offset, &self.lines);
        // Reading claimi changes pending bits and iforce.
        self.deliver(imsic, effects);
        Ok(u64::from(value))
    }

    /// Writes a register of a domain's control region.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word.
    pub fn write(
        &mut self,
        level: DomainLevel,
        offset: u64,
        size: u8,
        value: u64,
        imsic: &Imsic,
        effects: &mut Effects,
    ) -> Result<(), AccessFault> {
        let offset = word_offset(offset, size)?;
        // The width was checked: the value is a word.
        let value = value as u32;
        match level {
            DomainLevel::Machine => {
                if self.addresses.write(offset, value) {
                    return Ok(());
                }
                self.root.write(offset, value, &self.lines, true);
                if let Some(source) = domain::source_of_config(offset) {
                    let delegated = self.root.is_delegated(source);
                    self.child.set_implemented(source, delegated);
                }
            }
            DomainLevel::Supervisor => self.child.write(offset, value, &self.lines, false),
        }
        self.deliver(imsic, effects);
        Ok(())
    }

    /// Drives the interrupt levels of the harts whose interrupt files hand over to the APLIC, and sends what
    /// is ready to be forwarded.
    pub fn deliver(&mut self, imsic: &Imsic, effects: &mut Effects) {
        for domain in [&mut self.root, &mut self.child] {
            let level = domain.level();
            let addresses = &self.addresses;
            domain.forward(|hart, guest, identity| {
                let address = addresses.target(level, hart, guest);
                effects.msis.push(Msi {
                    address,
                    data: identity,
                });
            });
            domain.signals(|hart, asserted| {
                let hart = HartId(hart);
                let file = match level {
                    DomainLevel::Machine => InterruptFile::Machine,
                    DomainLevel::Supervisor => InterruptFile::Supervisor,
                };
                if imsic.is_direct(hart, file) {
                    effects.irq_levels.update(hart, |irq_levels| match level {
                        DomainLevel::Machine => irq_levels.machine_external = asserted,
                        DomainLevel::Supervisor => irq_levels.supervisor_external = asserted,
                    });
                }
            });
        }
    }
}

fn word_offset(offset: u64, size: u8) -> Result<u64, AccessFault> {
    if size != 4 || !offset.is_multiple_of(4) {
        return Err(AccessFault);
    }
    Ok(offset)
}
