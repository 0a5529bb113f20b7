//! Fences that a hart executes on request.

use super::remote::Operands;
use super::tags::Tag;
use crate::memory::address::GuestPhysical;

/// A hart's fences.
pub trait Fences {
    /// Drops the VS-stage entries whose tag hgatp has now (HFENCE.VVMA).
    fn guest_virtual(&mut self);
    /// Drops those of them that the operands name, which are not everything.
    fn guest_virtual_of(&mut self, operands: Operands);
    /// Drops the G-stage entries with every tag (HFENCE.GVMA), as far as [`guest_physical`](Self::guest_physical) does.
    fn guest_physical_all(&mut self);
    /// Drops the G-stage entries with this tag (HFENCE.GVMA). Entries that hold a whole translation of both stages may stay,
    /// so [`guest_virtual`](Self::guest_virtual) follows.
    fn guest_physical(&mut self, tag: Tag);
    /// Drops what leads to a page of the guest with this tag, of either stage (HFENCE.GVMA with an address).
    fn guest_page(&mut self, tag: Tag, page: GuestPhysical);
    /// Puts the tag into hgatp. vsatp is 0.
    fn use_tag(&mut self, tag: Tag);
    /// Makes stores to code visible to this hart's fetches (FENCE.I).
    fn instructions(&mut self);
}
