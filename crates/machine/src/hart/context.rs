//! Which address space the hart's accesses are made in, and fences.

use super::tags::{UNKNOWN, VIEWS};
use super::{Hart, Mode, Privilege};
use crate::base::Fence;
use crate::base::Space;
use crate::csr::field::{envcfg, status};
use crate::trace::Happening;
use crate::translation::{ContextKey, Masking, NEVER, Resume, View};

/// The place of a view in the table of tags.
const fn index(view: View) -> usize {
    // How much a mode masks is the same until translations change; fetches mask nothing.
    let masked = !matches!(view.masking, Masking::None);
    (view.mode.index() * 2 + masked as usize) * 8
        + view.sum as usize * 4
        + view.mxr as usize * 2
        + view.guest_mxr as usize
}

impl Hart {
    /// With which eyes a mode looks at data addresses.
    #[must_use]
    pub const fn view_of(&self, mode: Mode) -> View {
        let host = self.csrs.mstatus;
        let status = if mode.virtualized {
            self.csrs.vsstatus
        } else {
            host
        };
        let supervisor = matches!(mode.privilege, Privilege::Supervisor);
        let translated = !matches!(mode.privilege, Privilege::Machine);
        let guest_mxr = mode.virtualized && host & status::MXR != 0;
        let mxr = translated && (status & status::MXR != 0 || guest_mxr);
        View {
            mode,
            sum: supervisor && status & status::SUM != 0,
            mxr,
            guest_mxr,
            execute_for_read: false,
            shadow_stack: false,
            masking: if mxr {
                Masking::None
            } else {
                self.masking_of(mode)
            },
        }
    }

    /// The view of instruction fetches.
    #[must_use]
    pub const fn fetch_view(&self) -> View {
        View {
            mode: self.mode,
            sum: false,
            mxr: false,
            guest_mxr: false,
            execute_for_read: false,
            shadow_stack: false,
            masking: Masking::None,
        }
    }

    /// Pointer masking of a mode's loads and stores: the next higher mode sets it.
    const fn masking_of(&self, mode: Mode) -> Masking {
        let csrs = &self.csrs;
        let register = match (mode.privilege, mode.virtualized) {
            (Privilege::Machine, _) => csrs.mseccfg,
            (Privilege::Supervisor, false) => csrs.menvcfg,
            (Privilege::Supervisor, true) => csrs.henvcfg,
            (Privilege::User, _) => csrs.senvcfg,
        };
        Masking::from_field(register >> envcfg::PMM_SHIFT)
    }

    /// Where a load or store with the eyes of a view goes that an instruction gives an address.
    #[inline]
    pub(crate) const fn effective(&self, view: View, address: u64) -> u64 {
        if matches!(view.masking, Masking::None) {
            return address;
        }
        let space = if view.mode.virtualized {
            self.csrs.vsatp
        } else {
            self.csrs.satp
        };
        let machine = matches!(view.mode.privilege, Privilege::Machine);
        let is_virtual = !machine && space >> 60 != 0;
        view.masking.transform(address, is_virtual)
    }

    /// The mode that loads and stores are made with: that of MPP and MPV while MPRV is set.
    #[must_use]
    pub const fn data_mode(&self) -> Mode {
        let mstatus = self.csrs.mstatus;
        if matches!(self.mode.privilege, Privilege::Machine) && mstatus & status::MPRV != 0 {
            Mode::new(
                Privilege::from_bits(mstatus >> status::MPP_SHIFT),
                mstatus & status::MPV != 0,
            )
        } else {
            self.mode
        }
    }

    /// The view of loads and stores.
    #[must_use]
    pub const fn data_view(&self) -> View {
        self.view_of(self.data_mode())
    }

    /// The tag of data accesses in a view, for one access from now on: modes may go on with others.
    pub(crate) fn tag_of(&mut self, view: View) -> u64 {
        if self.triggered {
            return NEVER;
        }
        let epoch = self.tlb.epoch();
        let tag = self.tag(view);
        if self.tlb.epoch() != epoch {
            self.refresh_context();
        }
        tag
    }

    fn tag(&mut self, view: View) -> u64 {
        let place = index(view);
        match self.tags.get(place) {
            Some(&tag) if tag != UNKNOWN => tag,
            _ => {
                let epoch = self.tlb.epoch();
                let tag = self.tlb.tag(ContextKey::new(view, &self.csrs));
                if self.tlb.epoch() != epoch {
                    // The numbers began anew: those handed out before mean nothing.
                    self.tags = [UNKNOWN; VIEWS];
                }
                if let Some(slot) = self.tags.get_mut(place) {
                    *slot = tag;
                }
                tag
            }
        }
    }

    /// Brings everything that is derived from the mode and the status registers up to date.
    pub fn refresh_context(&mut self) {
        self.float_off = self.csrs.float_is_off(self.mode.virtualized);
        self.vector_off = self.csrs.vectors_are_off(self.mode.virtualized);
        let epoch = self.tlb.epoch();
        self.fetch_tag = self.tag(self.fetch_view());
        self.data_tag = self.tag(self.data_view());
        if self.tlb.epoch() != epoch {
            self.fetch_tag = self.tag(self.fetch_view());
        }
        self.jump_tag = self.tlb.jump_tag(self.fetch_tag);
        self.fetch_space = self.space_of(self.fetch_view());
        self.data_space = self.space_of(self.data_view());
        self.refresh_watch();
    }

    /// The address space of a view, and whether page tables take part in it.
    pub(crate) const fn space_of(&self, view: View) -> (Space, bool) {
        let key = ContextKey::new(view, &self.csrs);
        (key.space(), key.is_translated())
    }

    /// After an access with the eyes of a view that has used a mapping of one address space alone; whether tags are
    /// others now.
    #[inline]
    pub(crate) fn note_local(&mut self, view: View) -> bool {
        let key = ContextKey::new(view, &self.csrs);
        let changes = key.is_kernel() && self.tlb.note_local(key);
        if changes {
            self.translation_changed();
        }
        changes
    }

    /// After a change of satp, vsatp or hgatp.
    pub fn translation_changed(&mut self) {
        self.tags = [UNKNOWN; VIEWS];
        self.refresh_context();
    }

    /// Changes the privilege mode.
    pub fn set_mode(&mut self, mode: Mode) {
        self.set_mode_after(mode, 0);
    }

    /// Changes the privilege mode at the end of an instruction that changes it: the mode before has had `own` instructions
    /// and cycles more than are counted yet.
    pub fn set_mode_after(&mut self, mode: Mode, own: u64) {
        self.look_at_interrupts = true;
        if mode != self.mode {
            let (cycles, retired) = (self.cycles + own, self.retired + own);
            self.counts.settle(self.mode, cycles, retired);
            if self.mode.virtualized != mode.virtualized {
                self.extension.pause.change_mode(mode.virtualized);
                if mode.virtualized {
                    self.counts.enter();
                } else {
                    self.counts.leave(self.csrs.vmid());
                }
            }
            self.mode = mode;
        }
        self.refresh_context();
    }

    /// How the hart goes on, if what was noted still holds in this generation of decoded instructions.
    #[inline]
    pub(crate) fn resumed(&self, generation: u64) -> Resume {
        let holds = self.resume.pc == self.pc
            && self.resume.tag == self.jump_tag
            && self.code_generation == generation
            && self.shadow.is_none();
        if holds {
            self.resume
        } else {
            Resume::default()
        }
    }

    /// Forgets translations that a fence covers.
    pub fn fence(&mut self, fence: Fence) {
        self.note(|hart| Happening::Fence {
            fence,
            mode: hart.mode,
        });
        self.resume = Resume::default();
        let retags = self.tlb.fence(fence);
        if let Some(shadow) = &mut self.shadow {
            shadow.fence(fence);
        }
        if retags {
            self.translation_changed();
        }
    }
}
