//! Section "Process to translate an IOVA", and accesses of devices that go through it.

use riscv::iommu::{cause, control, ddtp, process};
use riscv::page_table::DIRTY;

use super::access::{Access, Place, Process, Refusal, Request, Translation};
use super::cache::{Entry, Space};
use super::context::{DeviceContext, mode};
use super::entry::{First, FirstTrouble, Trouble, admits, allows};
use super::messages::PERMISSIONS;
use super::state::Iommu;
use crate::device::{AccessFault, Memory};

impl Iommu {
    /// Translates an access, or refuses it and reports why.
    ///
    /// # Errors
    /// [`AccessFault`] if it is refused.
    pub fn translate(
        &mut self,
        request: &Request,
        memory: &mut dyn Memory,
    ) -> Result<Translation, AccessFault> {
        self.statistics.requests += 1;
        self.spent += self.costs.hit;
        let mut reports = true;
        let found = self.find(request, &mut reports, memory);
        found.map_err(|refusal| {
            self.statistics.faults += 1;
            if reports || !is_quiet(refusal.cause) {
                self.report(request, refusal, memory);
            }
            AccessFault
        })
    }

    /// Translates an access that is to come, so that its translation is kept; nothing is reported.
    pub fn prepare(&mut self, request: &Request, memory: &mut dyn Memory) -> Option<u64> {
        self.spent += self.costs.hit;
        let found = self.find(request, &mut false, memory).ok()?;
        Some(found.bytes)
    }

    fn find(
        &mut self,
        request: &Request,
        reports: &mut bool,
        memory: &mut dyn Memory,
    ) -> Result<Translation, Refusal> {
        let physical = Translation {
            place: Place::Physical(request.address),
            bytes: 4096,
        };
        match self.registers.ddtp & ddtp::MODE {
            ddtp::OFF => return Err(cause::OFF.into()),
            ddtp::BARE => return Ok(physical),
            _ => {}
        }
        let context = self.device_context(request.device, memory)?;
        *reports &= context.reports();
        let (first, pscid) = self.choose(request, &context, memory)?;
        let space = Space {
            process: (mode(first.pointer) != 0).then_some(pscid),
            guest: context.gscid(),
        };
        if let Some(entry) = self.caches.find(space, request.address)
            && let Some(found) = self.kept(request, &entry, &first)?
        {
            return Ok(found);
        }
        self.statistics.misses += 1;
        self.walk(request, (&first, space), &context, memory)
    }

    /// Steps 7 to 16: the first stage, with its PSCID.
    fn choose(
        &mut self,
        request: &Request,
        context: &DeviceContext,
        memory: &mut dyn Memory,
    ) -> Result<(First, u32), Refusal> {
        let mut first = First {
            pointer: 0,
            privileged: request.process.is_some_and(|process| process.privileged),
            user_pages: false,
        };
        let directory = mode(context.first);
        if !context.has(control::PROCESSES) {
            if request.process.is_some() {
                return Err(cause::DISALLOWED.into());
            }
            first.pointer = context.first;
            return Ok((first, context.pscid()));
        }
        let width = match directory {
            1 => 8,
            2 => 17,
            _ => 20,
        };
        let is_wide = |process: Process| directory != 0 && process.id >> width != 0;
        if request.process.is_some_and(is_wide) {
            return Err(cause::DISALLOWED.into());
        }
        let default = context.has(control::DEFAULT_PROCESS).then_some(0);
        let id = request.process.map(|process| process.id).or(default);
        let Some(id) = id.filter(|_| directory != 0) else {
            return Ok((first, 0));
        };
        let own = self.process_context((request.device, id), context, request.access, memory)?;
        if first.privileged && !own.has(process::SUPERVISOR) {
            return Err(cause::DISALLOWED.into());
        }
        first.pointer = own.first;
        first.user_pages = own.has(process::USER_PAGES);
        Ok((first, own.pscid()))
    }

    /// The answer of a translation that is kept; none if a D bit must be set first, or may have been set by software meanwhile.
    fn kept(
        &mut self,
        request: &Request,
        entry: &Entry,
        first: &First,
    ) -> Result<Option<Translation>, Refusal> {
        let access = request.access;
        let offset = request.address - entry.address;
        let passes = allows(entry.first, access)
            && (entry.space.process.is_none() || admits(entry.first, access, first));
        if !passes {
            return Err(Refusal::page(access));
        }
        if entry.is_message && access == Access::Execute {
            return Err(Refusal::access(access));
        }
        if !allows(entry.second, access) {
            let guest = (entry.guest + offset) & !3;
            return Err(Refusal::guest_page(access, guest));
        }
        if access == Access::Write && entry.first & entry.second & DIRTY == 0 {
            self.caches.drop_address(entry.space, request.address);
            return Ok(None);
        }
        Ok(Some(Translation {
            place: Place::Physical(entry.physical + offset),
            bytes: entry.bytes,
        }))
    }

    /// Steps 17 to 20.
    fn walk(
        &mut self,
        request: &Request,
        (first, space): (&First, Space),
        context: &DeviceContext,
        memory: &mut dyn Memory,
    ) -> Result<Translation, Refusal> {
        let (address, access) = (request.address, request.access);
        let outer = self.first_stage(address, access, first, context, memory);
        let outer = outer.map_err(|trouble| match trouble {
            FirstTrouble::Own(Trouble::Page) => Refusal::page(access),
            FirstTrouble::Own(Trouble::Access) => Refusal::access(access),
            FirstTrouble::Guest(guest, write) => {
                Refusal::guest_page(access, guest & !3 | 1 | u64::from(write) << 1)
            }
        })?;
        let guest = outer.physical;
        let message = self.message(guest, context, memory)?;
        if message.is_some() && access == Access::Execute {
            return Err(Refusal::access(access));
        }
        let (place, bytes, page, second) = match message {
            Some(place) => (place, 4096, 4096, PERMISSIONS),
            None => {
                let inner = self.second_stage(guest, access, false, context, memory);
                let inner = inner.map_err(|trouble| match trouble {
                    Trouble::Page => Refusal::guest_page(access, guest & !3),
                    Trouble::Access => Refusal::access(access),
                })?;
                // A large page may hold interrupt files.
                let bytes = match mode(context.messages) {
                    0 => inner.bytes,
                    _ => 4096,
                };
                (
                    Place::Physical(inner.physical),
                    bytes,
                    inner.bytes,
                    inner.entry,
                )
            }
        };
        let bytes = bytes.min(outer.bytes);
        let translates = space.process.is_some() || space.guest.is_some();
        if let (Place::Physical(physical), true) = (place, translates) {
            let start = |address: u64| address & !(bytes - 1);
            self.caches.add(Entry {
                space,
                address: start(address),
                bytes,
                pages: [outer.bytes, page],
                guest: start(guest),
                physical: start(physical),
                first: outer.entry,
                second,
                is_message: message.is_some(),
            });
        }
        Ok(Translation { place, bytes })
    }

    /// Carries out a write of a device; one to an interrupt file in memory must be a word.
    ///
    /// # Errors
    /// [`AccessFault`] if it is refused, or reaches nothing.
    pub fn write(
        &mut self,
        request: &Request,
        bytes: &[u8],
        memory: &mut dyn Memory,
    ) -> Result<(), AccessFault> {
        let translation = self.translate(request, memory)?;
        let (file, notice, identity) = match translation.place {
            Place::Physical(physical) => return memory.store(physical, bytes),
            Place::File {
                file,
                notice,
                identity,
            } => (file, notice, identity),
        };
        let Ok(word) = bytes.try_into() else {
            return Ok(());
        };
        let message = (request.address & 0xfff, u32::from_le_bytes(word));
        let delivered = self.deliver((file, notice, identity), message, memory);
        delivered.inspect_err(|_| {
            self.statistics.faults += 1;
            self.report(request, cause::MRIF_ACCESS.into(), memory);
        })
    }
}

/// Tests whether a fault is not reported where DTF is set (table "Fault record CAUSE field encodings").
const fn is_quiet(cause: u16) -> bool {
    !matches!(
        cause,
        cause::OFF
            | cause::DIRECTORY_ACCESS
            | cause::DIRECTORY_INVALID
            | cause::DIRECTORY_MISCONFIGURED
            | cause::OWN_MESSAGE
    )
}
