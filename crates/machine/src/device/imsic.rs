//! IMSIC: the interrupt files of each hart.
//!
//! RISC-V Advanced Interrupt Architecture 1.0, chapter 3. Each hart has a machine-level file, a
//! supervisor-level file and its guest interrupt files, all with the same identities.

use riscv::imsic::select::{self, EIDELIVERY, EITHRESHOLD};
use riscv::imsic::{DELIVER_FILE, SETEIPNUM_BE, SETEIPNUM_LE, TOPEI_IDENTITY_SHIFT};
use serde::{Deserialize, Serialize};

use super::{AccessFault, HartId, InterruptFile, IrqLevels, NoSuchRegister};
use crate::board::map::{IMSIC_PAGE, guest_index_bits};

pub(super) use riscv::imsic::DELIVER_APLIC;

const EIP: core::ops::RangeInclusive<u64> = select::EIP..=select::EIP_LAST;
const EIE: core::ops::RangeInclusive<u64> = select::EIE..=select::EIE_LAST;

/// One interrupt file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct File {
    delivery: u32,
    threshold: u32,
    pending: Vec<u64>,
    enabled: Vec<u64>,
}

impl File {
    /// The most urgent identity that is pending, enabled and above the threshold; zero if none.
    fn top(&self) -> u32 {
        for (word, (pending, enabled)) in (0_u32..).zip(self.pending.iter().zip(&self.enabled)) {
            let ready = pending & enabled;
            if ready != 0 {
                let identity = word * 64 + ready.trailing_zeros();
                let signals = self.threshold == 0 || identity < self.threshold;
                return if signals { identity } else { 0 };
            }
        }
        0
    }
}

/// Which page of IMSIC memory an access is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The machine-level files, a page a hart.
    Machine,
    /// The supervisor-level and guest files, a power of two of pages a hart.
    Supervisor,
}

/// All interrupt files of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imsic {
    identities: u32,
    guest_files: u8,
    direct: bool,
    files: Vec<File>,
}

impl Imsic {
    /// The files of `harts` harts after reset. `identities` is the highest identity, one less than
    /// a multiple of 64. With `direct`, machine- and supervisor-level files support delivery from
    /// an APLIC, and start with it (§3.8.1).
    #[must_use]
    pub fn new(harts: u32, guest_files: u8, identities: u16, direct: bool) -> Self {
        let guest_files = guest_files.min(63);
        let words = (usize::from(identities) + 1).div_ceil(64).clamp(1, 32);
        let file = |delivery| File {
            delivery,
            threshold: 0,
            pending: vec![0; words],
            enabled: vec![0; words],
        };
        let mut files = Vec::new();
        for _ in 0..harts {
            let reset = if direct { DELIVER_APLIC } else { 0 };
            files.extend([file(reset), file(reset)]);
            files.extend((0..guest_files).map(|_| file(0)));
        }
        Self {
            identities: words as u32 * 64 - 1,
            guest_files,
            direct,
            files,
        }
    }

    /// The number of guest interrupt files a hart: GEILEN.
    #[must_use]
    pub const fn guest_files(&self) -> u8 {
        self.guest_files
    }

    fn index(&self, hart: HartId, file: InterruptFile) -> Option<usize> {
        let within = match file {
            InterruptFile::Machine => 0,
            InterruptFile::Supervisor => 1,
            InterruptFile::Guest(number @ 1..) if number <= self.guest_files => {
                1 + usize::from(number)
            }
            InterruptFile::Guest(_) => return None,
        };
        let index = hart
            .index()
            .checked_mul(2 + usize::from(self.guest_files))?;
        Some(index + within).filter(|&index| index < self.files.len())
    }

    fn file(&self, hart: HartId, file: InterruptFile) -> Option<&File> {
        self.files.get(self.index(hart, file)?)
    }

    fn file_mut(&mut self, hart: HartId, file: InterruptFile) -> Option<&mut File> {
        let index = self.index(hart, file)?;
        self.files.get_mut(index)
    }

    /// Tests whether a hart's external interrupts at a level come from an APLIC.
    #[must_use]
    pub fn is_direct(&self, hart: HartId, file: InterruptFile) -> bool {
        self.file(hart, file)
            .is_some_and(|file| file.delivery == DELIVER_APLIC)
    }

    /// Drives the wire of a file. A file that hands over to an APLIC leaves its wire alone.
    fn drive(&self, hart: HartId, file: InterruptFile, irq_levels: &mut IrqLevels) {
        let Some(state) = self.file(hart, file) else {
            return;
        };
        if state.delivery == DELIVER_APLIC {
            return;
        }
        let level = state.delivery == DELIVER_FILE && state.top() != 0;
        irq_levels.update(hart, |irq_levels| match file {
            InterruptFile::Machine => irq_levels.machine_external = level,
            InterruptFile::Supervisor => irq_levels.supervisor_external = level,
            InterruptFile::Guest(number) => {
                let bit = 1_u64 << (number & 63);
                irq_levels.guest_external = if level {
                    irq_levels.guest_external | bit
                } else {
                    irq_levels.guest_external & !bit
                };
            }
        });
    }

    /// Reads an indirectly accessed register (§3.8), with XLEN = 64. The reserved numbers read as
    /// zero.
    ///
    /// # Errors
    /// [`NoSuchRegister`] if there is no such file, the number is below 0x70 or above 0xff, or is
    /// that of an odd eip or eie register.
    pub fn read_register(
        &self,
        hart: HartId,
        file: InterruptFile,
        select: u64,
    ) -> Result<u64, NoSuchRegister> {
        let state = self.file(hart, file).ok_or(NoSuchRegister)?;
        let word = |array: &[u64]| array.get(array_word(select)).copied().unwrap_or(0);
        match select {
            EIDELIVERY => Ok(u64::from(state.delivery)),
            EITHRESHOLD => Ok(u64::from(state.threshold)),
            0x71 | 0x73..=0x7f => Ok(0),
            _ if select & 1 != 0 => Err(NoSuchRegister),
            _ if EIP.contains(&select) => Ok(word(&state.pending)),
            _ if EIE.contains(&select) => Ok(word(&state.enabled)),
            _ => Err(NoSuchRegister),
        }
    }

    /// Writes an indirectly accessed register.
    ///
    /// # Errors
    /// As [`Imsic::read_register`].
    pub fn write_register(
        &mut self,
        hart: HartId,
        file: InterruptFile,
        select: u64,
        value: u64,
        irq_levels: &mut IrqLevels,
    ) -> Result<(), NoSuchRegister> {
        let identities = self.identities;
        let direct = self.direct && !matches!(file, InterruptFile::Guest(_));
        let state = self.file_mut(hart, file).ok_or(NoSuchRegister)?;
        match select {
            // WARL: a value that is not supported leaves the register as it is.
            EIDELIVERY => match u32::try_from(value) {
                Ok(delivery @ 0..=DELIVER_FILE) => state.delivery = delivery,
                Ok(DELIVER_APLIC) if direct => state.delivery = DELIVER_APLIC,
                _ => {}
            },
            // WLRL: as many bits as the identities need.
            EITHRESHOLD => {
                let mask = (identities + 1).next_power_of_two() - 1;
                state.threshold = (value & u64::from(mask)) as u32;
            }
            0x71 | 0x73..=0x7f => {}
            _ if select & 1 != 0 => return Err(NoSuchRegister),
            _ if EIP.contains(&select) || EIE.contains(&select) => {
                let array = if EIP.contains(&select) {
                    &mut state.pending
                } else {
                    &mut state.enabled
                };
                let index = array_word(select);
                if let Some(word) = array.get_mut(index) {
                    // Identity 0 does not exist.
                    *word = if index == 0 { value & !1 } else { value };
                }
            }
            _ => return Err(NoSuchRegister),
        }
        self.drive(hart, file, irq_levels);
        Ok(())
    }

    /// The value of *topei (§3.9).
    ///
    /// # Errors
    /// [`NoSuchRegister`] if there is no such file.
    pub fn top(&self, hart: HartId, file: InterruptFile) -> Result<u64, NoSuchRegister> {
        let identity = u64::from(self.file(hart, file).ok_or(NoSuchRegister)?.top());
        Ok(identity << TOPEI_IDENTITY_SHIFT | identity)
    }

    /// A write to *topei: clears the pending bit of the identity that it reports.
    ///
    /// # Errors
    /// [`NoSuchRegister`] if there is no such file.
    pub fn claim(
        &mut self,
        hart: HartId,
        file: InterruptFile,
        irq_levels: &mut IrqLevels,
    ) -> Result<(), NoSuchRegister> {
        let state = self.file_mut(hart, file).ok_or(NoSuchRegister)?;
        let identity = state.top();
        if let Some(word) = state.pending.get_mut(identity as usize / 64) {
            *word &= !(1 << (identity % 64));
        }
        self.drive(hart, file, irq_levels);
        Ok(())
    }

    /// Sets the pending bit of an identity; one that is not implemented is ignored.
    pub fn set_pending(
        &mut self,
        hart: HartId,
        file: InterruptFile,
        identity: u32,
        irq_levels: &mut IrqLevels,
    ) {
        if identity == 0 || identity > self.identities {
            return;
        }
        if let Some(state) = self.file_mut(hart, file)
            && let Some(word) = state.pending.get_mut(identity as usize / 64)
        {
            *word |= 1 << (identity % 64);
            self.drive(hart, file, irq_levels);
        }
    }

    /// The file whose page lies at `offset` of a level's memory region (§3.6). Pages of the region
    /// that no file occupies are holes.
    #[must_use]
    pub fn file_at(&self, level: Level, offset: u64) -> Option<(HartId, InterruptFile)> {
        let page = u32::try_from(offset / IMSIC_PAGE).ok()?;
        let (hart, file) = match level {
            Level::Machine => (HartId(page), InterruptFile::Machine),
            Level::Supervisor => {
                let bits = guest_index_bits(self.guest_files);
                let guest = page & ((1 << bits) - 1);
                let file = match u8::try_from(guest).ok()? {
                    0 => InterruptFile::Supervisor,
                    number => InterruptFile::Guest(number),
                };
                (HartId(page >> bits), file)
            }
        };
        self.index(hart, file).map(|_| (hart, file))
    }

    /// Reads a level's memory region: zero in every file's page.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word in a file's page.
    pub fn read_page(&self, level: Level, offset: u64, size: u8) -> Result<u64, AccessFault> {
        check_word(offset, size)?;
        self.file_at(level, offset).map(|_| 0).ok_or(AccessFault)
    }

    /// Writes a level's memory region: the port of message-signalled interrupts.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word in a file's page.
    pub fn write_page(
        &mut self,
        level: Level,
        offset: u64,
        size: u8,
        value: u64,
        irq_levels: &mut IrqLevels,
    ) -> Result<(), AccessFault> {
        check_word(offset, size)?;
        // The width was checked: the value is a word.
        let value = value as u32;
        let (hart, file) = self.file_at(level, offset).ok_or(AccessFault)?;
        let identity = match offset % IMSIC_PAGE {
            SETEIPNUM_LE => value,
            SETEIPNUM_BE => value.swap_bytes(),
            _ => return Ok(()),
        };
        self.set_pending(hart, file, identity, irq_levels);
        Ok(())
    }
}

/// The index of an even eip or eie register's word.
fn array_word(select: u64) -> usize {
    (select & 0x3f) as usize / 2
}

fn check_word(offset: u64, size: u8) -> Result<(), AccessFault> {
    if size == 4 && offset.is_multiple_of(4) {
        Ok(())
    } else {
        Err(AccessFault)
    }
}

#[cfg(test)]
mod tests;
