//! IMSIC: the interrupt files of each hart.
//!
//! RISC-V Advanced Interrupt Architecture 1.0, chapter 3. Each hart has a machine-level file, a
//! supervisor-level file and its guest interrupt files, all with the same identities.

use serde::{Deserialize, Serialize};

use super::{AccessFault, HartId, InterruptFile, NoSuchRegister, Wires};
use crate::board::map::{IMSIC_PAGE, guest_index_bits};

/// Delivery from the file itself (eidelivery, §3.8.1).
const DELIVER_FILE: u32 = 1;
/// Delivery from a directly delivering APLIC instead.
pub(super) const DELIVER_APLIC: u32 = 0x4000_0000;

const EIDELIVERY: u64 = 0x70;
const EITHRESHOLD: u64 = 0x72;
const EIP: core::ops::RangeInclusive<u64> = 0x80..=0xbf;
const EIE: core::ops::RangeInclusive<u64> = 0xc0..=0xff;

/// seteipnum_le and seteipnum_be in a file's page (§3.5).
const SETEIPNUM_LE: u64 = 0;
const SETEIPNUM_BE: u64 = 4;

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

    /// Whether a hart's external interrupts at a level come from an APLIC.
    #[must_use]
    pub fn is_direct(&self, hart: HartId, file: InterruptFile) -> bool {
        self.file(hart, file)
            .is_some_and(|file| file.delivery == DELIVER_APLIC)
    }

    /// Drives the wire of a file. A file that hands over to an APLIC leaves its wire alone.
    fn drive(&self, hart: HartId, file: InterruptFile, wires: &mut Wires) {
        let Some(state) = self.file(hart, file) else {
            return;
        };
        if state.delivery == DELIVER_APLIC {
            return;
        }
        let level = state.delivery == DELIVER_FILE && state.top() != 0;
        wires.update(hart, |wires| match file {
            InterruptFile::Machine => wires.machine_external = level,
            InterruptFile::Supervisor => wires.supervisor_external = level,
            InterruptFile::Guest(number) => {
                let bit = 1_u64 << (number & 63);
                wires.guest_external = if level {
                    wires.guest_external | bit
                } else {
                    wires.guest_external & !bit
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
        wires: &mut Wires,
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
        self.drive(hart, file, wires);
        Ok(())
    }

    /// The value of *topei (§3.9).
    ///
    /// # Errors
    /// [`NoSuchRegister`] if there is no such file.
    pub fn top(&self, hart: HartId, file: InterruptFile) -> Result<u64, NoSuchRegister> {
        let identity = u64::from(self.file(hart, file).ok_or(NoSuchRegister)?.top());
        Ok(identity << 16 | identity)
    }

    /// A write to *topei: clears the pending bit of the identity that it reports.
    ///
    /// # Errors
    /// [`NoSuchRegister`] if there is no such file.
    pub fn claim(
        &mut self,
        hart: HartId,
        file: InterruptFile,
        wires: &mut Wires,
    ) -> Result<(), NoSuchRegister> {
        let state = self.file_mut(hart, file).ok_or(NoSuchRegister)?;
        let identity = state.top();
        if let Some(word) = state.pending.get_mut(identity as usize / 64) {
            *word &= !(1 << (identity % 64));
        }
        self.drive(hart, file, wires);
        Ok(())
    }

    /// Sets the pending bit of an identity; one that is not implemented is ignored.
    pub fn set_pending(
        &mut self,
        hart: HartId,
        file: InterruptFile,
        identity: u32,
        wires: &mut Wires,
    ) {
        if identity == 0 || identity > self.identities {
            return;
        }
        if let Some(state) = self.file_mut(hart, file)
            && let Some(word) = state.pending.get_mut(identity as usize / 64)
        {
            *word |= 1 << (identity % 64);
            self.drive(hart, file, wires);
        }
    }

    /// The file whose page lies at `offset` of a level's memory region (§3.6). Pages of the region
    /// that no file occupies are zeros.
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

    /// Reads a level's memory region: zero everywhere.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word.
    pub fn read_page(&self, offset: u64, size: u8) -> Result<u64, AccessFault> {
        check_word(offset, size).map(|()| 0)
    }

    /// Writes a level's memory region: the port of message-signalled interrupts.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word.
    pub fn write_page(
        &mut self,
        level: Level,
        offset: u64,
        size: u8,
        value: u64,
        wires: &mut Wires,
    ) -> Result<(), AccessFault> {
        check_word(offset, size)?;
        // The width was checked: the value is a word.
        let value = value as u32;
        let identity = match offset % IMSIC_PAGE {
            SETEIPNUM_LE => value,
            SETEIPNUM_BE => value.swap_bytes(),
            _ => return Ok(()),
        };
        if let Some((hart, file)) = self.file_at(level, offset) {
            self.set_pending(hart, file, identity, wires);
        }
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
mod tests {
    use super::*;

    const HART: HartId = HartId(1);
    const GUEST: InterruptFile = InterruptFile::Guest(3);

    /// Two harts with seven guest files of 127 identities.
    fn bench(direct: bool) -> (Imsic, Wires) {
        (Imsic::new(2, 7, 127, direct), Wires::new(2))
    }

    /// Enables delivery and every identity of a file.
    fn open(imsic: &mut Imsic, file: InterruptFile, wires: &mut Wires) {
        for (select, value) in [(EIDELIVERY, 1), (0xc0, u64::MAX), (0xc2, u64::MAX)] {
            imsic
                .write_register(HART, file, select, value, wires)
                .expect("a register");
        }
    }

    fn identity(imsic: &Imsic, file: InterruptFile) -> u64 {
        let top = imsic.top(HART, file).expect("a file");
        assert_eq!(top >> 16, top & 0x7ff, "both fields hold the identity");
        top >> 16
    }

    /// §3.5: the page's words set pending bits of implemented identities, in their byte order.
    #[test]
    fn messages_set_pending_bits() {
        let (mut imsic, mut wires) = bench(false);
        let guest = (1 << 15) + 3 * IMSIC_PAGE;
        for (offset, value) in [(0, 64), (4, 127_u32.swap_bytes()), (8, 5), (0, 0), (0, 128)] {
            imsic
                .write_page(
                    Level::Supervisor,
                    guest + offset,
                    4,
                    value.into(),
                    &mut wires,
                )
                .expect("a word");
        }
        let pending = |select| imsic.read_register(HART, GUEST, select);
        assert_eq!((pending(0x80), pending(0x82)), (Ok(0), Ok(1 | 1 << 63)));
        assert_eq!(imsic.read_page(guest, 4), Ok(0));
        for (offset, size) in [(guest, 8), (guest, 2), (guest + 2, 4)] {
            let odd = imsic.write_page(Level::Supervisor, offset, size, 1, &mut wires);
            assert_eq!(odd, Err(AccessFault));
        }
    }

    /// §3.6: S, G1, G2, ... contiguous, each hart's at a power of two of pages.
    #[test]
    fn pages_belong_to_files() {
        let (imsic, _) = bench(false);
        for hart in 0..2 {
            let base = u64::from(hart) << 15;
            let at = |offset| imsic.file_at(Level::Supervisor, offset);
            assert_eq!(at(base), Some((HartId(hart), InterruptFile::Supervisor)));
            for guest in 1..=7 {
                let page = base + u64::from(guest) * IMSIC_PAGE;
                assert_eq!(at(page), Some((HartId(hart), InterruptFile::Guest(guest))));
            }
            let machine = u64::from(hart) * IMSIC_PAGE;
            let file = (HartId(hart), InterruptFile::Machine);
            assert_eq!(imsic.file_at(Level::Machine, machine), Some(file));
        }
        assert_eq!(imsic.file_at(Level::Supervisor, 2 << 15), None);
        // Two guest files leave the fourth page of a hart empty.
        let sparse = Imsic::new(1, 2, 63, false);
        assert!(sparse.file_at(Level::Supervisor, 2 * IMSIC_PAGE).is_some());
        assert_eq!(sparse.file_at(Level::Supervisor, 3 * IMSIC_PAGE), None);
    }

    /// §3.9: lowest number first, claims clear, the threshold keeps out what is not below it.
    #[test]
    fn the_lowest_identity_below_the_threshold_is_on_top() {
        let (mut imsic, mut wires) = bench(false);
        open(&mut imsic, GUEST, &mut wires);
        for number in [100, 7, 63] {
            imsic.set_pending(HART, GUEST, number, &mut wires);
        }
        for expected in [7, 63, 100, 0] {
            assert_eq!(identity(&imsic, GUEST), expected);
            assert_eq!(
                wires.hart(HART).guest_external,
                if expected == 0 { 0 } else { 1 << 3 }
            );
            imsic.claim(HART, GUEST, &mut wires).expect("a file");
        }
        imsic.set_pending(HART, GUEST, 20, &mut wires);
        for (threshold, expected) in [(20, 0), (21, 20), (0, 20), (1, 0)] {
            imsic
                .write_register(HART, GUEST, EITHRESHOLD, threshold, &mut wires)
                .expect("wlrl");
            assert_eq!(identity(&imsic, GUEST), expected, "threshold {threshold}");
            assert_eq!(wires.hart(HART).guest_external != 0, expected != 0);
        }
    }

    /// §3.8.1: eidelivery affects the wire, and not *topei.
    #[test]
    fn delivery_can_be_turned_off() {
        let (mut imsic, mut wires) = bench(false);
        open(&mut imsic, InterruptFile::Machine, &mut wires);
        imsic.set_pending(HART, InterruptFile::Machine, 9, &mut wires);
        assert!(wires.hart(HART).machine_external);
        imsic
            .write_register(HART, InterruptFile::Machine, EIDELIVERY, 0, &mut wires)
            .expect("warl");
        assert!(!wires.hart(HART).machine_external);
        assert_eq!(identity(&imsic, InterruptFile::Machine), 9);
        for unsupported in [2, 0x4000_0000, 0x1_0000_0001] {
            let file = InterruptFile::Machine;
            imsic
                .write_register(HART, file, EIDELIVERY, unsupported, &mut wires)
                .expect("warl");
            assert_eq!(
                imsic.read_register(HART, file, EIDELIVERY),
                Ok(0),
                "{unsupported:#x}"
            );
        }
    }

    /// §3.8.1: where supported, reset hands over to the APLIC; guest files never do.
    #[test]
    fn direct_delivery_is_for_machine_and_supervisor_files() {
        let (mut imsic, mut wires) = bench(true);
        for file in [InterruptFile::Machine, InterruptFile::Supervisor] {
            assert!(imsic.is_direct(HART, file));
        }
        imsic
            .write_register(HART, GUEST, EIDELIVERY, 0x4000_0000, &mut wires)
            .expect("warl");
        assert_eq!(imsic.read_register(HART, GUEST, EIDELIVERY), Ok(0));
    }

    /// §3.8.3: with XLEN = 64 the odd registers do not exist; identity 0 is read-only zero; what
    /// lies beyond the implemented identities reads as zero.
    #[test]
    fn registers_that_do_not_exist_are_refused() {
        let (mut imsic, mut wires) = bench(false);
        for select in [0x81, 0xbf, 0xc1, 0xff, 0x6f, 0x100, u64::MAX] {
            assert_eq!(
                imsic.read_register(HART, GUEST, select),
                Err(NoSuchRegister)
            );
            let write = imsic.write_register(HART, GUEST, select, 1, &mut wires);
            assert_eq!(write, Err(NoSuchRegister), "{select:#x}");
        }
        for (select, expected) in [
            (0x80, !1),
            (0xc2, u64::MAX),
            (0xc4, 0),
            (0x71, 0),
            (0x7f, 0),
        ] {
            imsic
                .write_register(HART, GUEST, select, u64::MAX, &mut wires)
                .expect("a register");
            assert_eq!(
                imsic.read_register(HART, GUEST, select),
                Ok(expected),
                "{select:#x}"
            );
        }
        for file in [
            InterruptFile::Guest(0),
            InterruptFile::Guest(8),
            InterruptFile::Guest(255),
        ] {
            assert_eq!(imsic.top(HART, file), Err(NoSuchRegister));
        }
        assert_eq!(
            imsic.top(HartId(2), InterruptFile::Machine),
            Err(NoSuchRegister)
        );
    }

    #[test]
    fn all_numbers_of_guest_files_work() {
        for guest_files in [0, 1, 7, 63] {
            let mut imsic = Imsic::new(2, guest_files, 2047, false);
            let mut wires = Wires::new(2);
            for guest in 1..=guest_files {
                let file = InterruptFile::Guest(guest);
                open(&mut imsic, file, &mut wires);
                imsic.set_pending(HART, file, 1, &mut wires);
                assert_eq!(wires.hart(HART).guest_external >> guest, 1);
            }
            assert!(
                imsic
                    .top(HART, InterruptFile::Guest(guest_files + 1))
                    .is_err()
            );
        }
    }
}
