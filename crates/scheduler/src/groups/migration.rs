//! Migration of vCPUs to groups with idle harts.
//!
//! If a group has a surplus that none of its harts is about to take, and another group has an idle hart, one vCPU is migrated, or all ready vCPUs of
//! a VM of which none is on a hart of the first group: partners had better stay together.

use crate::base::id::{HartId, HartSet, VcpuId, VcpuNumber, VcpuSet};
use crate::base::ticks::Ticks;
use crate::decision::Kicks;
use crate::dispatch::table::Scheduler;
use crate::policies::queues::Queue;

use super::access::Access;
use super::directory::GroupId;
use super::group::{Group, NO_NUMBER};
use super::ledger::{ACTIVE_WEIGHT, ASLEEP_WEIGHT};
use super::load_bits::{Flow, GroupLoad, LoadBits};
use super::numbers::NumberSet;

/// vCPUs examined at most to find one whose VM can be migrated as a whole.
const MAX_CANDIDATES: usize = 8;

impl Scheduler {
    /// Returns true if no hart is about to search.
    pub(crate) fn no_hart_searches(&self) -> bool {
        self.searching.is_empty()
    }

    /// Shared harts that are idle, or whose vCPU waits in place.
    fn idle_harts(&self) -> HartSet {
        self.idle.union(self.in_place).intersection(self.shared)
    }

    /// Only hart that a vCPU may run on.
    fn home(&self, vcpu: VcpuId) -> Option<HartId> {
        self.vcpus[vcpu.index()].as_ref()?.home
    }

    /// Returns true if a vCPU has one hart to run on.
    pub(super) fn has_home(&self, vcpu: VcpuId) -> bool {
        self.home(vcpu).is_some()
    }

    /// Shared harts whose vCPUs wait without a trap.
    fn untrapped(&self) -> HartSet {
        let untrapped = |hart: &HartId| {
            let run = self.harts[hart.index()].run();
            run.is_some_and(|run| !run.trap_waits && !run.in_place)
        };
        let relaxed = self.relaxed.intersection(self.shared);
        relaxed.iter().filter(untrapped).collect()
    }

    /// Word waiters with interrupts disabled, if no hart is about to poll their words.
    fn unpolled_words(&self) -> VcpuSet {
        if self.word_waiters.is_empty()
            || !self.searching.is_empty()
            || !self.idle_harts().is_empty()
        {
            return VcpuSet::EMPTY;
        }
        let closed = |vcpu: &VcpuId| {
            let word = self.vcpus[vcpu.index()]
                .as_ref()
                .and_then(|entry| entry.word);
            word.is_some_and(|word| !word.interrupts_enabled)
        };
        self.word_waiters.iter().filter(closed).collect()
    }

    /// vCPUs that are ready and in no spin wait.
    fn goes_on(&self) -> VcpuSet {
        self.queues.ready().without(self.spin_waits.waiting())
    }
}

impl Group {
    /// vCPUs that another group's hart could run at once.
    #[must_use]
    #[inline]
    pub(crate) fn movable(&self) -> VcpuSet {
        self.scheduler.goes_on().without(self.pinned)
    }

    /// Word waiters whose words another group's hart had better poll.
    #[must_use]
    #[inline]
    pub(crate) fn unpolled(&self) -> VcpuSet {
        self.scheduler.unpolled_words().without(self.pinned)
    }

    /// Returns true if a vCPU of the group waits, or would wait, without a trap.
    #[must_use]
    #[inline]
    pub(crate) fn has_untrapped_waits(&self) -> bool {
        !self.is_full() && !self.scheduler.untrapped().is_empty()
    }

    /// Time for which `hart` has been idle.
    #[must_use]
    pub fn idle_for(&self, hart: HartId, now: Ticks) -> Ticks {
        let since = self.scheduler.harts[hart.index()].idle_since;
        since.map_or(Ticks::ZERO, |since| now - since)
    }

    /// Makes waits trap from now on, because another group has a surplus.
    fn trap_waits(&mut self) -> Kicks {
        self.scheduler.others_have_surplus = true;
        let kicked = self.scheduler.untrapped();
        for hart in kicked.iter() {
            self.scheduler.note_kick(hart);
        }
        Kicks(kicked)
    }

    /// Returns true if another group's hart could run a vCPU of this group.
    #[must_use]
    #[inline]
    pub(crate) fn has_surplus(&self) -> bool {
        self.scheduler.no_hart_searches()
            && !(self.movable().is_empty() && self.unpolled().is_empty())
    }

    /// Returns true if a hart of the group is idle, and there is a place for a vCPU.
    #[must_use]
    #[inline]
    pub(crate) fn is_hungry(&self) -> bool {
        !self.is_full() && !self.scheduler.idle_harts().is_empty()
    }

    fn load(&self) -> GroupLoad {
        GroupLoad {
            has_surplus: self.has_surplus(),
            is_hungry: self.is_hungry(),
            has_untrapped_waits: self.has_untrapped_waits(),
        }
    }

    /// Publishes the group's load, under its lock, and finds another group for a migration.
    #[inline]
    pub fn publish(&self, bits: &LoadBits) -> Option<Flow> {
        bits.publish(self.index, self.load())
    }

    /// Publishes the load of a group whose hart has just become idle and searches again by itself in a moment: if another group has a surplus, the
    /// hunger is not published yet. Returns true if so.
    pub fn publish_sated(&self, bits: &LoadBits) -> bool {
        let defers = bits.others_have_surplus(self.index) && self.is_hungry();
        if defers {
            bits.publish_sated(self.index, self.load());
        }
        defers
    }

    /// Returns true if a hart of the group may run a vCPU whose only hart is `home`, or that floats.
    fn may_run(&self, home: Option<HartId>) -> bool {
        match home {
            Some(home) => self.harts.contains(home),
            None => !self.scheduler.shared_harts().is_empty(),
        }
    }

    /// vCPUs to migrate if `harts` are idle elsewhere: the next in the queues whose VM has no vCPU on a hart here.
    fn choose(&self, harts: u32) -> VcpuSet {
        let movable = self.movable();
        let queues = &self.scheduler.queues;
        let in_order = [Queue::ProperReady, Queue::TimeSliceEnd, Queue::OutService]
            .into_iter()
            .flat_map(|queue| queues.iter(queue))
            .filter(|&vcpu| movable.contains(vcpu));
        let mut first = None;
        for vcpu in in_order.take(MAX_CANDIDATES) {
            first = first.or(Some(vcpu));
            let partners = self.scheduler.partners(vcpu);
            if self.scheduler.executing.intersection(partners).is_empty() {
                let rest = movable.intersection(partners).without(VcpuSet::only(vcpu));
                let rest = rest.iter().take(harts.saturating_sub(1) as usize);
                return rest.chain([vcpu]).collect();
            }
        }
        let first = first.or_else(|| {
            let unpolled = self.unpolled();
            queues.first_waiting(unpolled).map(|(vcpu, _)| vcpu)
        });
        first.into_iter().collect()
    }
}

/// Migrates a vCPU that is on no hart from one group to another. `None` if it is on one, if there is no place, or if no hart of the other group may
/// run it: there it would wait for as long as that group's harts are dedicated.
pub(crate) fn transfer(
    access: &impl Access,
    (from, to): (&mut Group, &mut Group),
    vcpu: VcpuId,
    now: Ticks,
) -> Option<Kicks> {
    let number: VcpuNumber = from.number(vcpu)?;
    if to.is_full() {
        return None;
    }
    if !to.may_run(from.scheduler.home(vcpu)) {
        return None;
    }
    let vm = from.scheduler.vm_of(vcpu)?;
    let (left, of) = from.scheduler.part(vm);
    let (there, _) = to.scheduler.part(vm);
    let had_home = from.scheduler.has_home(vcpu);
    let (detached, kicks) = from.scheduler.detach(vcpu)?;
    from.names.numbers[vcpu.index()] = NO_NUMBER;
    // Weight of an active vCPU, or the rest. No vCPU is left without a part: until the next balance it could pay no debt.
    let stay = from.scheduler.vcpus(vm).count() * ASLEEP_WEIGHT;
    let units = match stay {
        0 => left,
        _ => left.saturating_sub(stay).min(ACTIVE_WEIGHT),
    };
    let units = units.max(ASLEEP_WEIGHT);
    let rest = left.saturating_sub(units).max(stay);
    from.scheduler.set_part(vm, (rest, of));
    to.scheduler.set_part(vm, (there + units, of));
    let (place, more) = to.scheduler.attach(detached, now)?;
    to.enrol(access.directory(), place, number);
    // Other vCPUs are affected only if a hart became dedicated or shared.
    let alone = !had_home && !to.scheduler.has_home(place);
    for (group, vcpu) in [(from, vcpu), (to, place)] {
        group.scheduler.set_quantities();
        match alone {
            true => group.note_allocation(vcpu),
            false => group.note_allocations(),
        }
    }
    Some(kicks.and(more))
}

/// Migrates vCPUs along a flow that [`Group::publish`] has found, as long as one group has a surplus and the other is hungry. One hart at a time does
/// so for a hungry group: others would wait for its lock in vain.
pub fn follow(access: &impl Access, flow: Flow, now: Ticks) -> Kicks {
    let load_bits = access.load_bits();
    if load_bits.has_untrapped_waits(flow.to) && !load_bits.is_hungry(flow.to) {
        return access.with(flow.to, |group| match load_bits.has_surplus(flow.from) {
            true => group.trap_waits(),
            false => Kicks::NONE,
        });
    }
    let mut next = Some(flow);
    let mut kicks = Kicks::NONE;
    while let Some(flow) = next {
        // One of the groups may have published otherwise since.
        if load_bits.has_surplus(flow.from)
            && load_bits.is_hungry(flow.to)
            && load_bits.begin_migration(flow.to)
        {
            kicks = kicks.and(follow_one(access, flow, now));
            load_bits.end_migration(flow.to);
        }
        next = load_bits.next_flow(flow);
    }
    kicks
}

fn follow_one(access: &impl Access, Flow { from, to }: Flow, now: Ticks) -> Kicks {
    access.with_two(from, to, |from, to| {
        let mut kicks = Kicks::NONE;
        loop {
            let has_surplus = from.scheduler.no_hart_searches() && to.is_hungry();
            let chosen = match has_surplus {
                true => from.choose(to.scheduler.idle_harts().count()),
                false => VcpuSet::EMPTY,
            };
            if chosen.is_empty() {
                break;
            }
            for vcpu in chosen.iter() {
                let moved = transfer(access, (from, to), vcpu, now);
                kicks = kicks.and(moved.unwrap_or_default());
            }
        }
        // The groups have nothing more for each other.
        for group in [from, to] {
            let _ = group.publish(access.load_bits());
        }
        kicks
    })
}

/// Migrates `number` to the group `to`, where a hart needs it, if it only needs a hart and no hart of its own group is about to take it.
pub fn pull(access: &impl Access, number: VcpuNumber, to: GroupId, now: Ticks) -> Kicks {
    let Some(place) = access.directory().place(number) else {
        return Kicks::NONE;
    };
    if place.group == to || access.load_bits().is_hungry(place.group) {
        return Kicks::NONE;
    }
    let pulled = access.with_two(place.group, to, |from, to| {
        let vcpu = from.here(access.directory(), Some(number))?;
        let scheduler = &from.scheduler;
        // Nothing changes here for a vCPU without a place there.
        if to.is_full() || !scheduler.no_hart_searches() || !scheduler.idle_harts().is_empty() {
            return None;
        }
        if from.unpolled().contains(vcpu) {
            from.scheduler.make_ready(vcpu, now);
        }
        if !from.movable().contains(vcpu) {
            return None;
        }
        transfer(access, (from, to), vcpu, now)
    });
    pulled.unwrap_or_default()
}

/// Migrates vCPUs that no hart of `group` may run, unless they are on a hart. If all places of the target are taken, one of its vCPUs makes room.
pub fn migrate_displaced(access: &impl Access, group: GroupId, now: Ticks) -> Kicks {
    let mut kicks = Kicks::NONE;
    let displaced: NumberSet = access.with(group, |group| group.numbers(group.displaced));
    for stray in displaced.iter() {
        let home = access.with_vcpu(stray, |group, vcpu| group.scheduler.allowed(vcpu));
        let home = home.and_then(HartSet::first);
        let target = match home {
            Some(home) => Some(access.directory().group_of(home)),
            None => access.groups().find(|&other| {
                let shares = |other: &mut Group| {
                    !other.scheduler.shared_harts().is_empty() && !other.is_full()
                };
                other != group && access.with(other, shares)
            }),
        };
        let Some(target) = target.filter(|&target| target != group) else {
            continue;
        };
        kicks = kicks.and(make_room(access, target, now));
        let moved = access.with_two(group, target, |from, to| {
            let vcpu = from.here(access.directory(), Some(stray))?;
            if !from.displaced.contains(vcpu) {
                return None;
            }
            transfer(access, (from, to), vcpu, now)
        });
        kicks = kicks.and(moved.unwrap_or_default());
    }
    kicks
}

/// Migrates a vCPU away from `group` if all of its places are taken.
fn make_room(access: &impl Access, group: GroupId, now: Ticks) -> Kicks {
    if !access.with(group, |group| group.is_full()) {
        return Kicks::NONE;
    }
    for other in access.groups().filter(|&other| other != group) {
        let moved = access.with_two(group, other, |from, to| {
            if to.scheduler.shared_harts().is_empty() {
                return None;
            }
            let every = (0..).map_while(VcpuId::new);
            let movable = every.filter(|&vcpu| {
                !from.pinned.contains(vcpu) && from.scheduler.running_on(vcpu).is_none()
            });
            let movable: VcpuSet = movable.collect();
            movable
                .iter()
                .find_map(|vcpu| transfer(access, (from, to), vcpu, now))
        });
        if let Some(kicks) = moved {
            return kicks;
        }
    }
    Kicks::NONE
}
