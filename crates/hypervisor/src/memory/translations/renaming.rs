//! All that renaming can do on one hart, explored to the end: no tag marks an entry that its vCPU must not use.
//!
//! `model` shows that the purges that [`Purge`] asks for are enough. Here they are asked for at random, and looked at is whether a
//! new tag is as good as a fence. Two vCPUs of one VM and one of another. The hart keeps what nothing has dropped: entries of the VS-stage,
//! with what both stages make together, and entries of the G-stage.

use super::changes::Changes;
use super::remote::{Fenced, Operands};
use super::vmid_table::VmidTable;
use super::*;
use crate::memory::address::GuestPhysical;
use abi::system::Purging;
use std::collections::HashSet;

const VM: [usize; 3] = [0, 0, 1];

/// A fence that does not do all of what it should, to see that it is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forgotten {
    Nothing,
    GuestPhysical,
    GuestVirtual,
    /// HFENCE.VVMA of the last tag.
    LastVirtual,
    /// The tag stays as it was.
    Tag,
}

/// Of one tag: a bit for each vCPU that has made an entry of the VS-stage, and for each VM of the G-stage; then the same for those that are no
/// longer right for any vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Marked {
    virtual_of: u8,
    guest_of: u8,
    virtual_wrong: bool,
    guest_wrong: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    marked: Vec<Marked>,
    vmids: VmidTable,
    /// In hgatp.
    tag: u16,
}

struct Model<'a> {
    marked: &'a mut [Marked],
    tag: &'a mut u16,
    forgotten: Forgotten,
    fences: usize,
}

impl Fences for Model<'_> {
    fn guest_virtual(&mut self) {
        self.fences += 1;
        let last = self.marked.len() - 1;
        let tag = usize::from(*self.tag);
        if self.forgotten == Forgotten::GuestVirtual
            || self.forgotten == Forgotten::LastVirtual && tag == last
        {
            return;
        }
        self.marked[tag].virtual_of = 0;
        self.marked[tag].virtual_wrong = false;
    }

    fn guest_virtual_of(&mut self, _operands: Operands) {
        unreachable!("no sibling asks");
    }

    fn guest_physical_all(&mut self) {
        self.fences += 1;
        if self.forgotten != Forgotten::GuestPhysical {
            for marked in self.marked.iter_mut() {
                marked.guest_of = 0;
                marked.guest_wrong = false;
            }
        }
    }

    fn guest_physical(&mut self, _tag: Tag) {
        unreachable!("a new tag takes its place");
    }

    fn guest_page(&mut self, _tag: Tag, _page: GuestPhysical) {
        unreachable!("no page is known to have changed");
    }

    fn use_tag(&mut self, tag: Tag) {
        if self.forgotten != Forgotten::Tag {
            *self.tag = tag.number();
        }
    }

    fn instructions(&mut self) {}
}

fn id(vcpu: usize) -> VcpuNumber {
    VcpuNumber::new(vcpu as u16).expect("a vCPU")
}

impl World {
    fn new(tags: u16) -> Self {
        // No vCPU may use the former entries.
        let unknown = Marked {
            virtual_wrong: true,
            guest_wrong: true,
            ..Marked::default()
        };
        Self {
            marked: vec![unknown; usize::from(tags)],
            vmids: VmidTable::new(
                Purging::NewVmid,
                Tags {
                    count: tags,
                    all: tags,
                },
            ),
            tag: 0,
        }
    }

    /// `vcpu` comes to the hart, has fenced elsewhere or not, finds its table changed or not, and caches all that it can. `None` where it
    /// could use what it must not.
    fn arrived(
        &self,
        vcpu: usize,
        (stale, older): (bool, bool),
        forgotten: Forgotten,
    ) -> Option<Self> {
        let mut world = self.clone();
        for marked in &mut world.marked {
            marked.virtual_wrong |= stale && marked.virtual_of >> vcpu & 1 != 0;
            marked.guest_wrong |= older && marked.guest_of >> VM[vcpu] & 1 != 0;
            // What the two stages make together.
            let of_vm = (0..VM.len()).filter(|other| VM[*other] == VM[vcpu]);
            let of_vm = of_vm.fold(0, |all, other| all | 1 << other);
            marked.virtual_wrong |= older && marked.virtual_of & of_vm != 0;
        }
        if older {
            // Its sibling finds it changed too, before it next enters its guest.
            world.forget_siblings(vcpu);
        }
        world.tag = world.vmids.tag(id(vcpu)).number();
        let purge = Purge {
            others: world.vmids.take(id(vcpu)),
            moved: false,
            stale,
            older: older.then_some(0),
            fences: None,
        };
        let mut fences = Model {
            marked: &mut world.marked,
            tag: &mut world.tag,
            forgotten,
            fences: 0,
        };
        let changes = Changes::<1>::new(|_| GuestPhysical::new(0));
        let asked = Fenced::<1>::default();
        purge.carry_out_at_arrival(id(vcpu), &mut world.vmids, (&changes, &asked), &mut fences);
        assert!(fences.fences <= self.marked.len() + 1);
        let used = &mut world.marked[usize::from(world.tag)];
        let others = used.virtual_of & !(1 << vcpu) != 0 || used.guest_of & !(1 << VM[vcpu]) != 0;
        if others || used.virtual_wrong || used.guest_wrong {
            return None;
        }
        used.virtual_of |= 1 << vcpu;
        used.guest_of |= 1 << VM[vcpu];
        Some(world)
    }

    /// The table of `vcpu`'s VM has changed, which its siblings will be told when they come: as a tag of theirs is of no
    /// use to them any more, let them have none.
    fn forget_siblings(&mut self, vcpu: usize) {
        for other in (0..VM.len()).filter(|other| *other != vcpu && VM[*other] == VM[vcpu]) {
            self.vmids.forget(id(other));
        }
    }
}

/// Number of worlds, or `None` if a stale entry could be used in one.
fn explore(tags: u16, forgotten: Forgotten) -> Option<usize> {
    let first = World::new(tags);
    let mut known = HashSet::from([first.clone()]);
    let mut open = vec![first];
    while let Some(world) = open.pop() {
        for vcpu in 0..VM.len() {
            for why in [(false, false), (true, false), (false, true), (true, true)] {
                let next = world.arrived(vcpu, why, forgotten)?;
                if known.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
    }
    Some(known.len())
}

#[test]
fn new_tag_replaces_fence_with_few_tags() {
    for tags in 1..=6 {
        let worlds = explore(tags, Forgotten::Nothing);
        assert!(
            worlds.is_some_and(|worlds| worlds > 3),
            "{tags}: {worlds:?}"
        );
    }
}

#[test]
fn insufficient_round_purge_is_noticed() {
    for forgotten in [
        Forgotten::GuestPhysical,
        Forgotten::GuestVirtual,
        Forgotten::LastVirtual,
    ] {
        for tags in [1, 2, 4] {
            assert_eq!(explore(tags, forgotten), None, "{tags}, {forgotten:?}");
        }
    }
    for tags in [2, 4] {
        assert_eq!(explore(tags, Forgotten::Tag), None, "{tags}");
    }
}

/// vCPUs that are fenced for at each arrival use one tag after the other, and a round costs a fence for each.
#[test]
fn round_lasts_for_all_tags() {
    let mut world = World::new(8);
    let mut given = Vec::new();
    for turn in 0..21 {
        world = world
            .arrived(turn % 3, (true, false), Forgotten::Nothing)
            .expect("nothing wrong");
        given.push(world.tag);
    }
    let round: Vec<u16> = (1..8).collect();
    assert_eq!(given, [round.clone(), round.clone(), round].concat());
    let most = VmidTable::new(Purging::NewVmid, Tags::with_bits(14));
    assert_eq!(most.tag(id(0)), Tag(0), "none before the first round");
}
