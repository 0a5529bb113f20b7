//! The harts' own way to their interrupt files: what the CSRs of the AIA read and write.

use super::{Devices, HartId, InterruptFile, NoSuchRegister};

impl Devices {
    /// Reads a file's register: `select` is the value of *iselect, 0x70..=0xff.
    ///
    /// # Errors
    /// [`NoSuchRegister`] if the hart has no such file or the file no such register (the odd
    /// numbered eip and eie registers do not exist on RV64).
    pub fn imsic_read(
        &mut self,
        hart: HartId,
        file: InterruptFile,
        select: u64,
    ) -> Result<u64, NoSuchRegister> {
        self.imsic.read_register(hart, file, select)
    }

    /// Writes a file's register: `select` is the value of *iselect, 0x70..=0xff.
    ///
    /// # Errors
    /// As [`Devices::imsic_read`].
    pub fn imsic_write(
        &mut self,
        hart: HartId,
        file: InterruptFile,
        select: u64,
        value: u64,
    ) -> Result<(), NoSuchRegister> {
        self.imsic
            .write_register(hart, file, select, value, &mut self.effects.irq_levels)?;
        if self.config.direct_delivery {
            // eidelivery may have handed the hart over to the APLIC.
            self.aplic.deliver(&self.imsic, &mut self.effects);
        }
        Ok(())
    }

    /// The value of *topei: identity in bits 26:16 and again in bits 10:0, or zero.
    ///
    /// # Errors
    /// [`NoSuchRegister`] if the hart has no such file.
    pub fn imsic_top(&self, hart: HartId, file: InterruptFile) -> Result<u64, NoSuchRegister> {
        self.imsic.top(hart, file)
    }

    /// A write to *topei: claims the interrupt that [`Devices::imsic_top`] reports.
    ///
    /// # Errors
    /// [`NoSuchRegister`] if the hart has no such file.
    pub fn imsic_claim(&mut self, hart: HartId, file: InterruptFile) -> Result<(), NoSuchRegister> {
        self.imsic.claim(hart, file, &mut self.effects.irq_levels)
    }

    /// The number of guest interrupt files a hart: GEILEN.
    #[must_use]
    pub const fn guest_files(&self) -> u8 {
        self.imsic.guest_files()
    }
}
