use super::changes::{Changed, Changes};
use super::remote::{Fenced, Operands};
use super::vmid_table::VmidTable;
use super::*;
use crate::memory::address::GuestPhysical;
use abi::system::Purging;
use core::cell::Cell;
use scheduler::MAX_NUMBERS;

fn vcpu(index: u16) -> VcpuNumber {
    VcpuNumber::new(index).expect("a vCPU")
}

fn hart(index: u16) -> HartId {
    HartId::new(index).expect("a hart")
}

#[test]
fn the_first_vcpus_have_the_first_tags() {
    for (bits, vcpus) in [
        (7, 64),
        (10, MAX_NUMBERS as u16),
        (14, MAX_NUMBERS as u16),
        (60, MAX_NUMBERS as u16),
    ] {
        let tags = Tags::with_bits(bits);
        let numbers = (0..vcpus).map(|index| tags.of(vcpu(index)).number());
        assert!(numbers.eq(1..=vcpus), "{bits} bits");
        assert!(tags.are_enough_for(usize::from(vcpus)));
    }
}

#[test]
fn tags_fit_the_available_bits() {
    for bits in 0..=MAX_TAG_BITS {
        let tags = Tags::with_bits(bits);
        let most = (0..MAX_NUMBERS as u16).map(|index| tags.of(vcpu(index)).number());
        assert!(most.max().is_some_and(|most| u32::from(most) < 1 << bits));
    }
    assert!(!Tags::with_bits(0).are_enough_for(2));
    assert!(Tags::with_bits(0).are_enough_for(1));
    assert!(!Tags::with_bits(2).are_enough_for(4));
    assert!(Tags::with_bits(2).are_enough_for(3));
}

/// Fences that were executed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Made(Vec<&'static str>);

impl Fences for Made {
    fn guest_virtual(&mut self) {
        self.0.push("virtual");
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

    fn guest_physical(&mut self, _tag: Tag) {
        self.0.push("physical");
    }

    fn guest_page(&mut self, _tag: Tag, _page: GuestPhysical) {
        self.0.push("page");
    }

    fn instructions(&mut self) {
        self.0.push("instructions");
    }
}

/// Lets `order` come to hart 0 one after the other, and counts the purges after each one's first time.
fn purges(bits: u32, order: &[u16]) -> usize {
    let tags = Tags::with_bits(bits);
    let mut vmids = VmidTable::new(Purging::Fence, tags);
    let mut cached = vec![Cached::default(); 8];
    let mut count = 0;
    for (turn, index) in order.iter().enumerate() {
        let cached = &mut cached[usize::from(*index)];
        let purge = cached.arrive(
            TlbPurge::LastHost,
            vcpu(*index),
            hart(0),
            &mut vmids,
            (1, 0),
        );
        if order[..turn].contains(index) && purge != Purge::default() {
            count += 1;
        }
    }
    count
}

#[test]
fn only_shared_tags_need_purges() {
    let turns = [0, 1, 0, 1, 1, 0];
    assert_eq!(purges(7, &turns), 0);
    assert_eq!(purges(2, &turns), 0, "tags 1 and 2");
    assert_eq!(purges(0, &turns), 3, "at each change back");
    assert_eq!(purges(2, &[0, 3, 0, 1, 3]), 2, "0 and 3 have the same tag");
}

#[test]
fn g_stage_purge_precedes_both_stage_purge() {
    let mut fenced = Made::default();
    let changes = Changes::<2>::new(|_| GuestPhysical::new(0));
    let asked = Fenced::<1>::default();
    changes.note(1, 2);
    let older = |since| Purge {
        older: Some(since),
        ..Purge::default()
    };
    older(0).carry_out(Tag(1), (&changes, &asked), &mut fenced);
    assert_eq!(fenced.0, ["physical", "virtual"]);
    let mut fenced = Made::default();
    Purge::default().carry_out(Tag(1), (&changes, &asked), &mut fenced);
    assert!(fenced.0.is_empty());
    // A page that is known to have changed is dropped alone, and what is stale besides.
    older(1).carry_out(Tag(1), (&changes, &asked), &mut fenced);
    assert_eq!(fenced.0, ["page"]);
    let mut fenced = Made::default();
    let both = Purge {
        stale: true,
        ..older(1)
    };
    both.carry_out(Tag(1), (&changes, &asked), &mut fenced);
    assert_eq!(fenced.0, ["page", "virtual"]);
    let mut fenced = Made::default();
    let others = Purge {
        others: true,
        ..older(1)
    };
    others.carry_out(Tag(1), (&changes, &asked), &mut fenced);
    assert_eq!(fenced.0, ["physical", "virtual"]);
}

/// Changes that count how often they are looked through.
#[derive(Default)]
struct LookedThrough(Cell<usize>);

impl Changed for LookedThrough {
    fn since(&self, _generation: u64) -> Option<impl Iterator<Item = GuestPhysical>> {
        self.0.set(self.0.get() + 1);
        Some(core::iter::once(GuestPhysical::new(0)))
    }
}

/// A method that keeps entries must not pay for that by looking twice at what changed.
#[test]
fn table_changes_are_scanned_once_per_arrival() {
    for stale in [false, true] {
        let changes = LookedThrough::default();
        let mut vmids = VmidTable::new(Purging::Fence, Tags::with_bits(14));
        let purge = Purge {
            moved: true,
            stale,
            older: Some(1),
            ..Purge::default()
        };
        let mut fenced = Made::default();
        let what = (&changes, &Fenced::<1>::default());
        assert!(!purge.carry_out_at_arrival(vcpu(0), &mut vmids, what, &mut fenced));
        let kept = ["page", "instructions"];
        let dropped = ["page", "virtual", "instructions"];
        match stale {
            true => assert_eq!(fenced.0, dropped),
            false => assert_eq!(fenced.0, kept),
        }
        assert_eq!(changes.0.get(), 1, "stale: {stale}");
    }
}
