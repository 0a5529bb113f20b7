//! From the program counter to decoded instructions.

use crate::code::CodeIndex;
use crate::hart::{Access, Cause, Exception, Hart, Trapped};
use crate::instruction::Site;
use crate::memory::walk;
use crate::memory::{PAGE_BYTES, PAGE_SHIFT};
use crate::system::System;
use crate::translation::Resume;

impl Hart {
    /// Notes how the hart goes on at the present pc, where it stops at the end of a block: nothing but a fence or a
    /// change of context can make that lead elsewhere.
    #[inline]
    pub(crate) const fn resume_from(&mut self, from: CodeIndex, site: Option<Site>) {
        self.resume = Resume {
            pc: self.pc,
            tag: self.jump_tag,
            from,
            site,
        };
    }

    /// The decoded instruction at which the hart goes on behind a jump, which is 0 if it is not known.
    ///
    /// # Errors
    /// [`Trapped`] with the exception of the fetch.
    #[inline]
    pub(super) fn first_code(
        &mut self,
        system: &mut System,
        from: CodeIndex,
    ) -> Result<CodeIndex, Trapped> {
        match system.memory.code.link_of(from) {
            0 if from == 0 => self.find_code(system, self.pc),
            0 => self.chase(system, from, self.pc, self.pc),
            link => Ok(link),
        }
    }

    /// The decoded instruction at `pc`.
    ///
    /// # Errors
    /// [`Trapped`] with the exception of the fetch.
    #[inline(never)]
    pub(super) fn find_code(&mut self, system: &mut System, pc: u64) -> Result<CodeIndex, Trapped> {
        let Some(offset) = self.fetch_offset(system, pc, 2)? else {
            return self.find_single(system, pc);
        };
        let physical = system.memory.ram.base() + offset;
        let index = match system.memory.code.find(physical) {
            Some(index) => index,
            None => match system.memory.code.build(&system.memory.ram, physical) {
                Some(index) => {
                    system.memory.mark_code(offset);
                    // The hart's own next store to the page must be noticed too.
                    self.forget_restricted_stores(&system.memory);
                    index
                }
                None => return self.find_single(system, pc),
            },
        };
        // The cache may have been full, and emptied.
        self.code_generation = system.memory.code.generation();
        Ok(index)
    }

    /// The offset in RAM of the instruction at `pc`; `None` if the page's protection is not the
    /// same everywhere.
    fn fetch_offset(
        &mut self,
        system: &mut System,
        pc: u64,
        size: u64,
    ) -> Result<Option<u64>, Trapped> {
        if let Some(offset) = self.tlb.fetch_offset(pc, self.fetch_tag)
            && (self.shadow.as_ref())
                .is_none_or(|shadow| shadow.has_fetched(pc >> PAGE_SHIFT, self.fetch_tag))
        {
            return Ok(Some(offset));
        }
        let view = self.fetch_view();
        let place = self.place(system, view, Access::Fetch, pc, size)?;
        let Some(offset) = system.memory.ram.offset(place.physical, size) else {
            let guest = view.mode.virtualized;
            return Err(self.raise(Exception::at(Cause::FetchAccess, pc, guest)));
        };
        self.counts.host_translations += 1;
        if !place.whole_page {
            return Ok(None);
        }
        self.tlb
            .insert_fetch(pc, self.fetch_tag, offset, place.first_shift);
        if let Some(shadow) = &mut self.shadow {
            shadow.note_fetch(pc >> PAGE_SHIFT, self.fetch_tag);
        }
        Ok(Some(offset))
    }

    /// Decodes one instruction for this time only: it crosses a page, or its page is protected in
    /// parts.
    fn find_single(&mut self, system: &mut System, pc: u64) -> Result<CodeIndex, Trapped> {
        let (low, offset) = self.fetch_halfword(system, pc)?;
        let high = if low & 3 == 3 {
            self.fetch_halfword(system, pc.wrapping_add(2))?.0
        } else {
            0
        };
        Ok(system.memory.code.build_scratch(low, high, offset))
    }

    /// The decoded instruction at `pc` of a hart that executes one by one. The loop ends behind it.
    ///
    /// # Errors
    /// [`Trapped`] with the exception of a trigger or of the fetch.
    #[cold]
    pub(super) fn watched_code(&mut self, system: &mut System) -> Result<CodeIndex, Trapped> {
        self.stop_soon();
        self.begin_watched()?;
        let index = self.find_single(system, self.pc)?;
        self.code_generation = system.memory.code.generation();
        if self.csrs.landing_pad_expected {
            let raw = self.raw_instruction(system).unwrap_or(0);
            self.land(raw)?;
        }
        Ok(index)
    }

    /// A halfword of code, and its offset in RAM.
    fn fetch_halfword(&mut self, system: &mut System, address: u64) -> Result<(u16, u64), Trapped> {
        let offset = match self.tlb.fetch_offset(address, self.fetch_tag) {
            Some(offset) => offset,
            None => match self.fetch_offset(system, address, 2)? {
                Some(offset) => offset,
                None => {
                    let view = self.fetch_view();
                    let place = self.place(system, view, Access::Fetch, address, 2)?;
                    place.physical.wrapping_sub(system.memory.ram.base())
                }
            },
        };
        let physical = system.memory.ram.base().wrapping_add(offset);
        let halfword = system.memory.ram.read::<u16>(physical);
        let guest = self.mode().virtualized;
        halfword
            .map(|halfword| (halfword, offset))
            .ok_or_else(|| self.raise(Exception::at(Cause::FetchAccess, address, guest)))
    }

    /// Finds where a jump leads and, if it stays in its page, remembers it in the jump itself.
    #[inline(never)]
    pub(super) fn chase(
        &mut self,
        system: &mut System,
        from: CodeIndex,
        origin: u64,
        target: u64,
    ) -> Result<CodeIndex, Trapped> {
        self.pc = target;
        let generation = system.memory.code.generation();
        let index = self.find_code(system, target)?;
        let same_page = origin >> PAGE_SHIFT == target >> PAGE_SHIFT;
        if same_page && generation == system.memory.code.generation() {
            system.memory.code.link(from, index);
        }
        Ok(index)
    }

    /// The encoding of the instruction at the present pc, which has been fetched. `None` if the page
    /// tables have changed since, without a fence, and lead nowhere.
    fn raw_instruction(&mut self, system: &mut System) -> Option<u32> {
        let base = system.memory.ram.base();
        let view = self.fetch_view();
        let mut halfword = |address: u64| {
            // Which translations the host keeps must not show.
            let known = self.tlb.fetch_offset(address, self.fetch_tag);
            let physical = match known {
                Some(offset) => base + offset,
                None => {
                    let (memory, trace) = (&mut system.memory, &mut self.trace);
                    let found = walk(&self.csrs, memory, trace, view, Access::Fetch, address);
                    found.ok()?.physical
                }
            };
            system.memory.ram.read::<u16>(physical)
        };
        let low = halfword(self.pc)?;
        let high = if low & 3 == 3 {
            halfword(self.pc.wrapping_add(2))?
        } else {
            0
        };
        Some(u32::from(low) | u32::from(high) << 16)
    }

    /// Notes an illegal-instruction exception of the instruction at `pc`.
    #[cold]
    pub(super) fn illegal_at(&mut self, system: &mut System, pc: u64) {
        self.pc = pc;
        let raw = self.raw_instruction(system).map_or(0, u64::from);
        self.raise(Exception::new(Cause::IllegalInstruction, raw));
    }

    /// Takes an exception that the execution loop reported, after adding to it the transformed
    /// instruction that a guest-page fault of an explicit access shows in htinst.
    pub(super) fn finish_exception(&mut self, system: &mut System, mut exception: Exception) {
        let explicit = matches!(
            exception.cause,
            Cause::LoadGuestPage | Cause::StoreGuestPage
        );
        if explicit && exception.instruction == 0 {
            let raw = self.raw_instruction(system);
            exception.instruction = raw.map_or(0, |raw| self.transformed(raw, exception.value));
        }
        self.note_pause_loop(system, exception);
        self.take_exception(exception);
    }

    /// "Transformed Instruction or Pseudoinstruction for mtinst or htinst".
    fn transformed(&self, raw: u32, address: u64) -> u64 {
        let compressed = raw & 3 != 3;
        let full = if compressed {
            crate::instruction::expand(raw as u16)
        } else {
            Some(raw)
        };
        let Some(full) = full else { return 0 };
        let base = self.x[(full >> 15 & 31) as usize];
        let signed = |immediate: i32| base.wrapping_add_signed(i64::from(immediate));
        let store_immediate = (full.cast_signed() >> 25 << 5) | (full >> 7 & 31).cast_signed();
        let (kept, start) = match full & 0x7f {
            // No transformation of a vector load or store is defined.
            0x07 | 0x27 if matches!(full >> 12 & 7, 0 | 5..=7) => return 0,
            0x03 | 0x07 => (full & 0x0000_7fff, signed(full.cast_signed() >> 20)),
            0x23 | 0x27 => (full & 0x01f0_707f, signed(store_immediate)),
            // Of shadow stacks' may-be operations none is defined.
            0x73 if full >> 31 != 0 => return 0,
            0x2f | 0x73 => (full & 0xfff0_7fff, base),
            _ => return 0,
        };
        // The offset is not zero only if the access crosses into the page that faults. Pointer masking
        // changes no more than the upper 16 bits.
        let offset = address.wrapping_sub(start) << 16 >> 16;
        if offset >= PAGE_BYTES {
            return 0;
        }
        let value = kept | (offset as u32 & 31) << 15;
        u64::from(if compressed { value & !2 } else { value })
    }
}
