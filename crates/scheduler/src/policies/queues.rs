//! Queues of vCPUs, linked through the vCPUs themselves.
//!
//! One table of links serves all queues and holds each vCPU's one queue: a vCPU in two queues cannot be expressed.

use crate::base::id::{MAX_VCPUS, VcpuId, VcpuSet};

/// A queue of vCPUs.
///
/// The first three make up the ready queue of paper 000 §3.2.2; the last is that of paper 002 §3.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Ready vCPUs that are dispatched first, and those that wait because of a spin.
    ProperReady,
    /// Ready vCPUs that have consumed a full time slice.
    TimeSliceEnd,
    /// Ready vCPUs whose VM has consumed its service quantity.
    OutService,
    /// vCPUs that wait for their own interrupts.
    SelfWait,
}

const QUEUES: usize = 4;

/// Waiting vCPUs up to this number are searched by comparing arrivals; more by walking the queue.
pub(crate) const MAX_COMPARED: usize = 8;

impl Queue {
    const EVERY: [Self; QUEUES] = [
        Self::ProperReady,
        Self::TimeSliceEnd,
        Self::OutService,
        Self::SelfWait,
    ];

    const fn index(self) -> usize {
        match self {
            Self::ProperReady => 0,
            Self::TimeSliceEnd => 1,
            Self::OutService => 2,
            Self::SelfWait => 3,
        }
    }

    /// Place of the queue's head among the links.
    const fn head(self) -> u8 {
        self.index() as u8
    }
}

/// First link of a vCPU, behind those of the queues' heads.
const FIRST_VCPU: u16 = QUEUES as u16;

/// Number of links: all that a `u8` can name, so that following one needs no check; fewer for the model checker, which keeps many tables.
const LINKS: usize = if cfg!(test) { MAX_VCPUS + QUEUES } else { 256 };

/// A link of a ring: head, members in their order, and the head again. The ends of a queue need no special case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C, align(8))]
struct Link {
    previous: u8,
    next: u8,
    queue: Option<Queue>,
    /// Arrival in the self-wait queue, by a count of arrivals.
    arrival: u32,
}

/// All queues. A change of one touches two or three cache lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(test), repr(C, align(64)))]
pub(crate) struct Queues {
    members: [VcpuSet; QUEUES],
    /// Arrivals in the self-wait queue so far. It wraps.
    count: u32,
    links: [Link; LINKS],
}

impl Queues {
    pub(crate) fn new() -> Self {
        let mut links = [Link::default(); LINKS];
        for queue in Queue::EVERY {
            let head = queue.head();
            links[usize::from(head)] = Link {
                previous: head,
                next: head,
                ..Link::default()
            };
        }
        Self {
            members: [VcpuSet::EMPTY; QUEUES],
            count: 0,
            links,
        }
    }

    /// Link of a vCPU.
    #[inline]
    fn place(vcpu: VcpuId) -> u8 {
        (vcpu.get() + FIRST_VCPU) as u8
    }

    /// vCPU of a link, unless it is a head's.
    #[inline]
    fn vcpu(place: u8) -> Option<VcpuId> {
        VcpuId::new(u16::from(place).wrapping_sub(FIRST_VCPU))
    }

    #[inline]
    fn link(&self, place: u8) -> Link {
        self.links[usize::from(place)]
    }

    #[inline]
    fn link_mut(&mut self, place: u8) -> &mut Link {
        &mut self.links[usize::from(place)]
    }

    /// Queue that holds `vcpu`.
    #[inline]
    pub(crate) fn queue_of(&self, vcpu: VcpuId) -> Option<Queue> {
        self.link(Self::place(vcpu)).queue
    }

    /// Members of a queue, without their order.
    #[inline]
    pub(crate) fn members(&self, queue: Queue) -> VcpuSet {
        self.members[queue.index()]
    }

    /// Members of the three ready subqueues.
    #[inline]
    pub(crate) fn ready(&self) -> VcpuSet {
        self.members(Queue::ProperReady)
            .union(self.members(Queue::TimeSliceEnd))
            .union(self.members(Queue::OutService))
    }

    #[inline]
    pub(crate) fn first(&self, queue: Queue) -> Option<VcpuId> {
        Self::vcpu(self.link(queue.head()).next)
    }

    /// Member behind `vcpu`, which is in a queue.
    #[inline]
    pub(crate) fn after(&self, vcpu: VcpuId) -> Option<VcpuId> {
        Self::vcpu(self.link(Self::place(vcpu)).next)
    }

    /// Members of a queue from first to last.
    pub(crate) fn iter(&self, queue: Queue) -> impl Iterator<Item = VcpuId> {
        let mut cursor = self.first(queue);
        core::iter::from_fn(move || {
            let member = cursor?;
            cursor = self.after(member);
            Some(member)
        })
    }

    /// Puts `vcpu` behind all members of the self-wait queue, taking it out of any other.
    #[inline]
    pub(crate) fn push_waiting(&mut self, vcpu: VcpuId) {
        self.insert(Queue::SelfWait, vcpu, None);
        self.link_mut(Self::place(vcpu)).arrival = self.count;
        self.count = self.count.wrapping_add(1);
    }

    /// Returns true if `vcpu` came into the self-wait queue before `other`; both are there, and fewer than 2^31 came between them.
    #[inline]
    fn arrived_before(&self, vcpu: VcpuId, other: VcpuId) -> bool {
        let arrival = |vcpu| self.link(Self::place(vcpu)).arrival;
        (arrival(vcpu).wrapping_sub(arrival(other)) as i32) < 0
    }

    /// First of `among` in the self-wait queue, and the number of `among`, all of which are there.
    #[inline]
    pub(crate) fn first_waiting(&self, among: VcpuSet) -> Option<(VcpuId, usize)> {
        let mut rest = among;
        let mut first = rest.first()?;
        let mut count = 1;
        rest.remove(first);
        while let Some(vcpu) = rest.first() {
            rest.remove(vcpu);
            count += 1;
            if self.arrived_before(vcpu, first) {
                first = vcpu;
            }
        }
        Some((first, count))
    }

    /// Puts `vcpu` behind all members of `queue`, taking it out of any other.
    #[inline]
    pub(crate) fn push_last(&mut self, queue: Queue, vcpu: VcpuId) {
        self.insert(queue, vcpu, None);
    }

    /// Puts `vcpu` before all members of `queue`, taking it out of any other.
    pub(crate) fn push_first(&mut self, queue: Queue, vcpu: VcpuId) {
        self.remove(vcpu);
        let first = self.first(queue);
        self.insert(queue, vcpu, first);
    }

    /// Puts `vcpu` into `queue` before its member `next`, or last if there is no such member.
    #[inline]
    pub(crate) fn insert(&mut self, queue: Queue, vcpu: VcpuId, next: Option<VcpuId>) {
        if self.queue_of(vcpu).is_some() {
            self.remove(vcpu);
        }
        let next = next
            .filter(|&next| self.queue_of(next) == Some(queue))
            .map_or(queue.head(), Self::place);
        let place = Self::place(vcpu);
        let previous = self.link(next).previous;
        *self.link_mut(place) = Link {
            previous,
            next,
            queue: Some(queue),
            arrival: 0,
        };
        self.link_mut(previous).next = place;
        self.link_mut(next).previous = place;
        self.members[queue.index()].insert(vcpu);
    }

    /// Takes `vcpu` out of its queue. Returns the queue.
    #[inline]
    pub(crate) fn remove(&mut self, vcpu: VcpuId) -> Option<Queue> {
        let place = Self::place(vcpu);
        let Link {
            previous,
            next,
            queue,
            ..
        } = self.link(place);
        let queue = queue?;
        *self.link_mut(place) = Link::default();
        self.link_mut(previous).next = next;
        self.link_mut(next).previous = previous;
        self.members[queue.index()].remove(vcpu);
        Some(queue)
    }

    /// Copy with other identifiers of the vCPUs.
    #[cfg(test)]
    pub(crate) fn renumbered(&self, name: impl Fn(VcpuId) -> VcpuId) -> Self {
        let mut new = Self::new();
        for queue in Queue::EVERY {
            for member in self.iter(queue) {
                match queue {
                    Queue::SelfWait => new.push_waiting(name(member)),
                    _ => new.push_last(queue, name(member)),
                }
            }
        }
        new
    }

    /// Returns true if links and member sets agree.
    pub(crate) fn is_sound(&self) -> bool {
        Queue::EVERY.into_iter().all(|queue| {
            let mut seen = VcpuSet::EMPTY;
            let mut previous = queue.head();
            for member in self.iter(queue).take(MAX_VCPUS + 1) {
                let link = self.link(Self::place(member));
                let late = Self::vcpu(previous)
                    .is_some_and(|previous| !self.arrived_before(previous, member));
                if queue == Queue::SelfWait && late {
                    return false;
                }
                if seen.contains(member) || link.queue != Some(queue) || link.previous != previous {
                    return false;
                }
                seen.insert(member);
                previous = Self::place(member);
            }
            seen == self.members(queue) && self.link(queue.head()).previous == previous
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn first_waiting_is_first_in_the_queue() {
        let vcpu = (0..8u16).prop_map(|index| VcpuId::new(index).unwrap());
        let moves = proptest::collection::vec((vcpu, 0..3u8), 1..40);
        let config = ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let mut runner = proptest::test_runner::TestRunner::new(config);
        let tested = runner.run(&(moves, 0..=255u64), |(moves, among)| {
            let mut queues = Queues::new();
            for (vcpu, to) in moves {
                match to {
                    0 => queues.push_waiting(vcpu),
                    1 => queues.push_first(Queue::ProperReady, vcpu),
                    _ => {
                        queues.remove(vcpu);
                    }
                }
                prop_assert!(queues.is_sound());
            }
            let among = queues
                .members(Queue::SelfWait)
                .intersection(VcpuSet::from_bits(among));
            let mut in_order = queues.iter(Queue::SelfWait);
            let expected = in_order.find(|&vcpu| among.contains(vcpu));
            let count = usize::try_from(among.count()).unwrap();
            let expected = expected.map(|first| (first, count));
            prop_assert_eq!(queues.first_waiting(among), expected);
            Ok(())
        });
        tested.unwrap();
    }
}
