//! The fences of a model's hart, on the worst computer that the architecture allows.

use super::super::changes::Changed;
use super::super::remote::Operands;
use super::super::{Fences, Tag, Tags};
use super::world::{VCPUS, bit, id, made_by};
use crate::memory::address::GuestPhysical;

/// The fences of a model's hart.
pub(super) struct Model<'a> {
    pub(super) entries: &'a mut u16,
    pub(super) tags: Tags,
    /// The tag in hgatp.
    pub(super) tag: Tag,
    /// The generation that the table in hgatp has.
    pub(super) generation: u64,
}

/// The one page that changes, at each change of the table.
pub(super) struct Page {
    pub(super) generation: u64,
}

impl Changed for Page {
    fn since(&self, generation: u64) -> Option<impl Iterator<Item = GuestPhysical>> {
        let page = (generation < self.generation).then_some(GuestPhysical::new(0));
        (generation != 0).then_some(page.into_iter())
    }
}

impl Model<'_> {
    fn marked(&self, tag: Tag) -> u16 {
        (0..VCPUS)
            .filter(|vcpu| self.tags.of(id(*vcpu)) == tag)
            .fold(0, |all, vcpu| all | made_by(vcpu))
    }
}

impl Fences for Model<'_> {
    fn guest_virtual(&mut self) {
        *self.entries &= !self.marked(self.tag);
    }

    fn guest_physical(&mut self, _tag: Tag) {
        // An entry of both stages may stay.
    }

    fn guest_page(&mut self, tag: Tag, _page: GuestPhysical) {
        // What leads elsewhere stays, as right as it would be under the table as it is.
        for vcpu in (0..VCPUS).filter(|vcpu| self.tags.of(id(*vcpu)) == tag) {
            for stale in [false, true] {
                for older in 1..self.generation {
                    let old = bit(vcpu, stale, older);
                    if *self.entries & old != 0 {
                        *self.entries &= !old;
                        *self.entries |= bit(vcpu, stale, self.generation);
                    }
                }
            }
        }
    }

    fn guest_virtual_of(&mut self, _operands: Operands) {
        unreachable!("no sibling asks");
    }

    fn guest_physical_all(&mut self) {
        unreachable!("nothing is renamed here");
    }

    fn use_tag(&mut self, _tag: Tag) {
        unreachable!("nothing is renamed here");
    }

    fn instructions(&mut self) {}
}
