//! Costs of page-table walks: reference by reference, in two dimensions.

use super::{Cache, Charge, Entry, LINE_SHIFT, LineAccess, Space, Timing, Walked};
use crate::base::HartId;
use crate::base::PAGE_SHIFT;
use crate::base::Reference;
use crate::count::{Event, EventCounts};

/// log2 of the bytes of a page-table entry.
const ENTRY_SHIFT: u32 = 3;

/// Tests whether a cache of entries that lead to tables has one; if not, takes it in.
fn knows(cache: &mut Option<Cache>, reference: Reference) -> bool {
    let Some(cache) = cache else { return false };
    if reference.leaf {
        return false;
    }
    let key = reference.physical >> ENTRY_SHIFT;
    let known = cache.look_up(key).is_some();
    if !known {
        cache.insert(key, |_| {});
    }
    known
}

impl Timing {
    /// Charges the references of a walk that the walk caches do not save; gives the cycles.
    pub(super) fn charge_walk(
        &mut self,
        id: HartId,
        charge: Charge,
        walked: &Walked<'_>,
        counts: &mut EventCounts,
    ) -> u64 {
        let guest_space = Space {
            virtualized: true,
            paged: false,
            asid: 0,
            vmid: charge.space.vmid,
        };
        let mut cycles = 0;
        let mut rest = walked.references;
        while let Some(&first) = rest.first() {
            if !first.guest_stage {
                cycles += self.charge_entry(id, first, counts);
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            // The G-stage translation of one guest physical address, up to its leaf.
            let length = rest.iter().position(|reference| reference.leaf);
            let (walk, after) = rest.split_at(length.map_or(rest.len(), |leaf| leaf + 1));
            rest = after;
            let page = first.address >> PAGE_SHIFT;
            let Some(hart) = self.harts.get_mut(id.index()) else {
                break;
            };
            let pages = &mut hart.walks.guest_pages;
            if pages
                .as_mut()
                .is_some_and(|tlb| tlb.look_up(page, guest_space).is_some())
            {
                continue;
            }
            for &reference in walk {
                cycles += self.charge_entry(id, reference, counts);
            }
            let Some(leaf) = walk.last().filter(|reference| reference.leaf) else {
                continue;
            };
            let shift = PAGE_SHIFT + 9 * u32::from(leaf.level);
            if let Some(hart) = self.harts.get_mut(id.index())
                && let Some(tlb) = &mut hart.walks.guest_pages
            {
                tlb.insert(page, Entry::new(page, shift, false, guest_space), |_, _| {});
            }
        }
        cycles
    }

    /// Charges one page-table entry.
    fn charge_entry(&mut self, id: HartId, entry: Reference, counts: &mut EventCounts) -> u64 {
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return 0;
        };
        let (cache, event) = if entry.guest_stage {
            (&mut hart.walks.guest_stage, Event::GuestWalkReferences)
        } else {
            (&mut hart.walks.first_stage, Event::WalkReferences)
        };
        if knows(cache, entry) {
            return 0;
        }
        counts.add(event, 1);
        let line = entry.physical >> LINE_SHIFT;
        let cycles = self.costs.walk_step + self.data_line(id, line, LineAccess::Load, counts);
        // One entry leads to the next.
        self.pass(cycles);
        cycles
    }
}
