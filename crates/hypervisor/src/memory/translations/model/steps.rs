//! Steps that each hart, vCPU and table may take next.

use super::super::remote::Fenced;
use super::super::{Cached, Fences, Purge, Remembered, Watch};
use super::fences::Page;
use super::world::{CHANGES, HARTS, VCPUS, VM, World, hart_id, id};
use super::{Case, Forgotten};
use abi::system::TlbPurge;

impl World {
    /// All worlds that one step of a vCPU, of a hart or of a table leads to.
    pub(super) fn next(&self, case: Case) -> Vec<Self> {
        let mut next = Vec::new();
        for hart in 0..HARTS {
            match (self.harts[hart].vcpu, self.harts[hart].in_guest) {
                (None, _) => {
                    let idle = (0..case.vcpus).filter(|vcpu| self.place_of(*vcpu).is_none());
                    for vcpu in idle {
                        next.push(self.dispatched(hart, vcpu, case));
                        next.extend(self.dispatched_again(hart, vcpu, case));
                        // Where trapping fences does not pay, a visit is as under the conventional method. Tags that are too
                        // few make worlds too many, and say nothing about it.
                        if case.method == TlbPurge::OneShot && case.tags.are_enough_for(VCPUS) {
                            let method = TlbPurge::LastHost;
                            let visit = Case { method, ..case };
                            next.push(self.dispatched(hart, vcpu, visit));
                        }
                    }
                }
                (Some(vcpu), false) => {
                    next.push(self.entered(hart, vcpu, case));
                    next.push(self.left(hart, vcpu, case));
                }
                (Some(vcpu), true) => next.extend(self.guest_steps(hart, vcpu, case)),
            }
        }
        if self.generations[0] <= CHANGES {
            let mut changed = self.clone();
            changed.generations[0] += 1;
            next.push(changed);
        }
        for vcpu in (0..case.vcpus).filter(|vcpu| self.place_of(*vcpu).is_none()) {
            let mut anew = self.clone();
            anew.grow_stale(vcpu);
            if case.forgotten != Forgotten::Life {
                anew.vcpus[vcpu].cached = Cached::default();
            }
            next.push(anew);
        }
        next
    }

    fn dispatched(&self, hart: usize, vcpu: usize, case: Case) -> Self {
        let Case {
            method,
            tags,
            forgotten,
            ..
        } = case;
        let mut world = self.clone();
        let generation = world.generations[VM[vcpu]];
        let tag = tags.of(id(vcpu));
        let vmids = &mut world.harts[hart].vmids;
        let cached = &mut world.vcpus[vcpu].cached;
        let mut purge = cached.arrive(method, id(vcpu), hart_id(hart), vmids, (generation, 0));
        purge.others &= forgotten != Forgotten::Others;
        purge.stale &= forgotten != Forgotten::Stale;
        purge.older = purge.older.filter(|_| forgotten != Forgotten::Older);
        world.harts[hart].mask = 0;
        if method == TlbPurge::PurgeCheck {
            let told = core::mem::take(&mut purge.stale) && forgotten != Forgotten::Told;
            world.harts[hart].mask = u8::from(told) << hart;
        }
        purge.carry_out(
            tag,
            (&Page { generation }, &Fenced::<1>::default()),
            &mut world.fences(hart, vcpu, tags),
        );
        world.harts[hart].vcpu = Some(vcpu);
        world
    }

    /// The vCPU comes back to the hart as it left it: nothing is done.
    fn dispatched_again(&self, hart: usize, vcpu: usize, case: Case) -> Option<Self> {
        let mut world = self.clone();
        let generation = world.generations[VM[vcpu]];
        let (vmids, cached) = (&world.harts[hart].vmids, &world.vcpus[vcpu].cached);
        let method = || case.method;
        if !cached.comes_back(id(vcpu), hart_id(hart), vmids, generation, method) {
            return None;
        }
        if case.forgotten == Forgotten::Nothing {
            // The usual way would have led to the same.
            let (mut vmids, mut as_usual) = (vmids.clone(), cached.clone());
            let tables = (generation, 0);
            let purge = as_usual.arrive(case.method, id(vcpu), hart_id(hart), &mut vmids, tables);
            assert!(purge == Purge::default() && as_usual == *cached);
        }
        world.harts[hart].vcpu = Some(vcpu);
        Some(world)
    }

    /// Enters as the run loop does: declare the generation, renew, enter. Siblings' requests are in `remote_model`.
    fn entered(&self, hart: usize, vcpu: usize, case: Case) -> Self {
        let Case {
            tags, forgotten, ..
        } = case;
        let mut world = self.clone();
        let generation = world.generations[VM[vcpu]];
        world.harts[hart].declared = generation;
        let mut purge = world.vcpus[vcpu].cached.renew(hart_id(hart), generation);
        purge.older = purge.older.filter(|_| forgotten != Forgotten::Older);
        purge.carry_out(
            tags.of(id(vcpu)),
            (&Page { generation }, &Fenced::<1>::default()),
            &mut world.fences(hart, vcpu, tags),
        );
        if case.method == TlbPurge::PurgeCheck && world.harts[hart].mask >> hart & 1 != 0 {
            world.harts[hart].mask &= !(1 << hart);
            world.fences(hart, vcpu, tags).guest_virtual();
        }
        world.harts[hart].in_guest = true;
        world
    }

    fn left(&self, hart: usize, vcpu: usize, case: Case) -> Self {
        let mut world = self.clone();
        let mask = world.harts[hart].mask;
        let remembered = Remembered {
            fenced: mask & !(1 << hart) != 0 && case.forgotten != Forgotten::Remembered,
            due: mask >> hart & 1 != 0 && case.forgotten != Forgotten::Due,
        };
        world.vcpus[vcpu].cached.leave(hart_id(hart), remembered);
        world.harts[hart].vcpu = None;
        world
    }

    fn guest_steps(&self, hart: usize, vcpu: usize, case: Case) -> Vec<Self> {
        let mut leaves = self.clone();
        leaves.harts[hart].in_guest = false;
        if case.method == TlbPurge::Clear {
            leaves.fences(hart, vcpu, case.tags).guest_virtual();
        }
        let mut next = vec![leaves.clone()];
        let traps = self.vcpus[vcpu].cached.watch == Watch::Trap;
        if traps && case.forgotten != Forgotten::Arming {
            // The fence, or the change of the address space, comes to the hypervisor; it is made again afterwards.
            let mut changes = leaves.clone();
            let cached = &mut changes.vcpus[vcpu].cached;
            let _ = cached.changes_address_space(hart_id(hart));
            next.push(changes);
            if case.forgotten == Forgotten::Trapped {
                leaves.vcpus[vcpu].cached.watch = Watch::Nothing;
            } else {
                leaves.vcpus[vcpu].cached.fenced(hart_id(hart));
            }
            next.push(leaves);
            return next;
        }
        let mut fences = self.clone();
        // The guest's own fence reaches its tag on this hart.
        fences.fences(hart, vcpu, case.tags).guest_virtual();
        fences.grow_stale(vcpu);
        fences.harts[hart].mask = 0b11 & !(1 << hart);
        next.push(fences);
        next
    }
}
