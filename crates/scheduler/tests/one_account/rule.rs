//! The rule: what a hart runs next, who is pulled, who preempts, and which harts a gang gets.

use super::computer::{Computer, PULL_LAG, SLICE, SWITCH, State};

/// Place of a ready vCPU in the order of a hart: eligible ones by their deadlines, then the others by what they have had too much.
type Key = (bool, i64);

impl Computer {
    fn key(&self, vm: usize, mean: i64) -> Key {
        let account = &self.guests[vm].account;
        match account.time() <= mean {
            true => (false, account.deadline()),
            false => (true, account.time()),
        }
    }

    fn ready(&self) -> impl Iterator<Item = usize> {
        let vcpus = self.vcpus.iter().enumerate();
        vcpus.filter_map(|(place, vcpu)| (vcpu.state == State::Ready).then_some(place))
    }

    /// Gives each hart without a vCPU one, while there is one.
    pub(super) fn fill_harts(&mut self) {
        for place in 0..self.harts.len() {
            let gang = self.harts[place].of_gang;
            if gang.is_some_and(|gang| self.guests[gang].together_until <= self.now) {
                self.harts[place].of_gang = None;
            }
            if self.harts[place].vcpu.is_none()
                && let Some(vcpu) = self.choose(place)
            {
                self.enter(place, vcpu);
            }
        }
    }

    /// Next vCPU of a hart: of a gang that has it; else the first of its own queue, unless one of another queue lags by much more, or its own is empty.
    fn choose(&self, place: usize) -> Option<usize> {
        let gang = self.harts[place].of_gang;
        if let Some(vm) = gang.filter(|&vm| self.guests[vm].together_until > self.now) {
            let own = self.ready().find(|&vcpu| self.vcpus[vcpu].vm == vm);
            if own.is_some() {
                return own;
            }
        }
        let mean = self.mean();
        let lag = |vcpu: usize| self.guests[self.vcpus[vcpu].vm].account.lag(mean);
        let own = self.ready().filter(|&vcpu| self.vcpus[vcpu].hart == place);
        let own = own.min_by_key(|&vcpu| self.key(self.vcpus[vcpu].vm, mean));
        let other = self
            .ready()
            .max_by_key(|&vcpu| (lag(vcpu), usize::MAX - vcpu));
        match (own, other) {
            (Some(own), Some(other)) if lag(other) < lag(own) + PULL_LAG => Some(own),
            (_, other) => other,
        }
    }

    fn enter(&mut self, place: usize, vcpu: usize) {
        let vm = self.vcpus[vcpu].vm;
        self.put(place, vcpu);
        let is_alternate = self.harts[place].of_gang.is_some_and(|gang| gang != vm);
        if is_alternate {
            // Until the slice of the gang ends.
            return;
        }
        self.harts[place].slice_end = self.now + SLICE;
        self.decide(vm);
        let is_eligible = self.guests[vm].account.time() <= self.mean();
        if self.guests[vm].is_gang && is_eligible {
            self.gather(place, vm);
        }
    }

    fn put(&mut self, place: usize, vcpu: usize) {
        let hart = &mut self.harts[place];
        let same = hart.last == Some(vcpu);
        hart.starts = self.now + if same { 0 } else { SWITCH };
        hart.last = Some(vcpu);
        hart.vcpu = Some(vcpu);
        let entry = &mut self.vcpus[vcpu];
        entry.hart = place;
        entry.state = match entry.state {
            State::Waits => State::Spins(self.now),
            _ => State::Running,
        };
    }

    /// Begins a slice of a gang, or joins the one that has begun: all its vCPUs that do not sleep get harts.
    fn gather(&mut self, place: usize, vm: usize) {
        let until = self.guests[vm].together_until;
        if until <= self.now {
            self.guests[vm].together_until = self.now + SLICE;
        }
        let until = self.guests[vm].together_until;
        self.harts[place].of_gang = Some(vm);
        self.harts[place].slice_end = until;
        for vcpu in 0..self.vcpus.len() {
            let entry = self.vcpus[vcpu];
            if entry.vm != vm {
                continue;
            }
            match entry.state {
                State::Running | State::Spins(_) => self.join(entry.hart, vm),
                State::Sleeps(_) => {}
                State::Ready | State::Waits => {
                    let Some(hart) = self.hart_for_gang(entry.hart, vm) else {
                        continue;
                    };
                    self.preempt(hart, vm);
                    self.put(hart, vcpu);
                    self.join(hart, vm);
                }
            }
        }
    }

    fn join(&mut self, place: usize, vm: usize) {
        self.harts[place].of_gang = Some(vm);
        self.harts[place].slice_end = self.guests[vm].together_until;
    }

    /// Hart for a gang's vCPU: its last, an idle one, or the one whose VM has the least lag. Another gang keeps its own.
    fn hart_for_gang(&self, last: usize, vm: usize) -> Option<usize> {
        let mean = self.mean();
        let lag = |place: &usize| {
            let vcpu = self.harts[*place].vcpu?;
            Some(self.guests[self.vcpus[vcpu].vm].account.lag(mean))
        };
        let may_have = |place: &usize| {
            let hart = &self.harts[*place];
            let own = hart.vcpu.is_some_and(|vcpu| self.vcpus[vcpu].vm == vm);
            let free = hart
                .of_gang
                .is_none_or(|gang| gang == vm || self.guests[gang].together_until <= self.now);
            free && !own
        };
        let harts = (0..self.harts.len()).filter(may_have);
        harts.min_by_key(|place| (lag(place).is_some(), *place != last, lag(place)))
    }

    /// A vCPU has a reason to run: it preempts the vCPU on its hart if that hart is its gang's, or if its VM is eligible and lags behind the other by a
    /// slice.
    pub(super) fn wake(&mut self, vcpu: usize) {
        self.vcpus[vcpu].state = State::Ready;
        let vm = self.vcpus[vcpu].vm;
        let place = self.vcpus[vcpu].hart;
        let vm_on = |place: usize| {
            let vcpu = self.harts[place].vcpu?;
            Some(self.vcpus[vcpu].vm)
        };
        let together = self.guests[vm].together_until > self.now;
        let mut harts = 0..self.harts.len();
        let own = harts.find(|&place| {
            self.harts[place].of_gang == Some(vm) && vm_on(place).is_some_and(|other| other != vm)
        });
        if let Some(own) = own.filter(|_| together) {
            self.preempt(own, vm);
            return self.put(own, vcpu);
        }
        let Some(other) = vm_on(place).filter(|&other| other != vm) else {
            return;
        };
        let mean = self.mean();
        let lag = |vm: usize| self.guests[vm].account.lag(mean);
        let is_free = self.harts[place].of_gang.is_none();
        if is_free && lag(vm) >= 0 && lag(vm) >= lag(other) + PULL_LAG {
            self.preempt(place, vm);
        }
    }
}
