//! Waits at locks whose vCPUs are in several groups.

use super::*;

fn hart(number: u16) -> HartId {
    HartId::new(number).unwrap()
}

fn vcpu(number: u16) -> VcpuNumber {
    VcpuNumber::new(number).unwrap()
}

/// Two harts with a queue each, and VMs of so many vCPUs, which any hart may run.
fn computer(machines: &[u16]) -> Computer {
    let config = Config {
        spin: SpinPolicy::Reservation,
        ..Config::new(FREQUENCY)
    };
    let layout = Layout::sharded(harts(2), 64).unwrap();
    let computer = Computer::new(config, layout);
    for &vcpus in machines {
        let shared = Allocation::Shared { share: 1 };
        computer.add_vm(vcpus, shared).unwrap();
    }
    // A time at which no word has changed.
    computer.now.set(Ticks::new(1));
    for vcpu in computer.vcpus() {
        computer.act_on(vcpu, |scheduler, vcpu| scheduler.start(vcpu, Ticks::ZERO));
    }
    for place in [0, 1] {
        leave(&computer, place, Leave::Preempted, true);
    }
    follow(&computer);
    computer
}

fn leave(computer: &Computer, place: u16, reason: Leave, interrupts_enabled: bool) {
    let left = Left {
        in_supervisor: true,
        interrupts_enabled,
        ..Left::new(reason, Ticks::new(1))
    };
    let _ = computer.decide(hart(place), &left);
}

fn follow(computer: &Computer) {
    while !computer.flows.borrow().is_empty() {
        computer.follow(0);
    }
    computer.check();
}

fn runs(computer: &Computer, place: u16) -> Option<VcpuNumber> {
    computer.runs.borrow().get(&hart(place)).copied()
}

fn is_with(computer: &Computer, vcpu: VcpuNumber, place: u16) -> bool {
    computer.place(vcpu).group == computer.group_of(hart(place))
}

#[test]
fn idle_hart_polls_words_of_other_groups() {
    let computer = computer(&[2, 1]);
    assert_eq!(runs(&computer, 0), Some(vcpu(0)));
    assert_eq!(runs(&computer, 1), Some(vcpu(1)));
    assert!(is_with(&computer, vcpu(2), 0));
    // The first waits for its turn, and its hart runs another vCPU.
    leave(&computer, 0, Leave::SpinForTurn, false);
    follow(&computer);
    assert_eq!(runs(&computer, 0), Some(vcpu(2)));
    assert!(is_with(&computer, vcpu(0), 0), "no hart rests");
    leave(&computer, 1, Leave::SelfWait, true);
    follow(&computer);
    assert!(is_with(&computer, vcpu(0), 1));
    assert_eq!(computer.state(vcpu(0)), VcpuState::SelfWait);
    assert!(computer.kicked.get().contains(hart(1)));
    let watched = match computer.decide(hart(1), &Left::new(Leave::Preempted, Ticks::ZERO)) {
        Dispatch::Idle { watch, poll, .. } => poll && !watch.is_empty(),
        Dispatch::Run { .. } => false,
    };
    assert!(watched, "the hart that rests looks at it");
    // Its turn has come.
    computer.now.set(Ticks::new(3));
    leave(&computer, 1, Leave::Preempted, true);
    assert_eq!(runs(&computer, 1), Some(vcpu(0)));
}

#[test]
fn interruptible_waiter_stays_at_its_file() {
    let computer = computer(&[2, 1]);
    leave(&computer, 0, Leave::SpinForTurn, true);
    leave(&computer, 1, Leave::SelfWait, true);
    follow(&computer);
    assert!(is_with(&computer, vcpu(0), 0));
}

#[test]
fn holder_is_pulled_to_its_waiters_hart() {
    let computer = computer(&[2, 1]);
    leave(&computer, 0, Leave::Preempted, false);
    leave(&computer, 0, Leave::SliceEnd, false);
    let preempted = [0, 2].map(vcpu);
    let preempted = preempted
        .into_iter()
        .find(|&vcpu| runs(&computer, 0) != Some(vcpu));
    let preempted = preempted.unwrap();
    assert!(is_with(&computer, preempted, 0));
    let to = computer.group_of(hart(1));
    computer.deliver(migration::pull(&computer, preempted, to, Ticks::new(1)));
    follow(&computer);
    assert!(is_with(&computer, preempted, 1));
    // A running holder stays where it is.
    let running = runs(&computer, 0).unwrap();
    computer.deliver(migration::pull(&computer, running, to, Ticks::new(1)));
    assert!(is_with(&computer, running, 0));
}

#[test]
fn dedicated_hart_of_another_vm_pulls_none() {
    let computer = Computer::new(
        Config::new(FREQUENCY),
        Layout::sharded(harts(2), 64).unwrap(),
    );
    let shared = Allocation::Shared { share: 1 };
    let own = Allocation::Dedicated {
        harts: HartSet::only(hart(1)),
    };
    computer.add_vm(2, shared).unwrap();
    computer.add_vm(1, own).unwrap();
    for vcpu in computer.vcpus() {
        computer.act_on(vcpu, |scheduler, vcpu| scheduler.start(vcpu, Ticks::ZERO));
    }
    for place in [0, 1] {
        leave(&computer, place, Leave::Preempted, true);
    }
    follow(&computer);
    let ready = [0, 1].map(vcpu);
    let ready = ready
        .into_iter()
        .find(|&vcpu| runs(&computer, 0) != Some(vcpu));
    let to = computer.group_of(hart(1));
    computer.deliver(migration::pull(
        &computer,
        ready.unwrap(),
        to,
        Ticks::new(1),
    ));
    assert!(is_with(&computer, ready.unwrap(), 0));
}

#[test]
fn waits_trap_once_others_have_surplus() {
    let computer = computer(&[1, 1]);
    let terms = |place| {
        let group = computer.group_of(hart(place));
        let answer = computer.with(group, |group| {
            group.scheduler_mut().reconsider(hart(place), Ticks::new(1))
        });
        match answer {
            Continue::Stay { trap_waits, .. } => trap_waits,
            Continue::Leave(_) => panic!("it stays"),
        }
    };
    assert!(!terms(0) && !terms(1), "each has a hart for itself");
    let shared = Allocation::Shared { share: 1 };
    computer.add_vm(1, shared).unwrap();
    computer.kicked.set(HartSet::EMPTY);
    computer.act_on(vcpu(2), |scheduler, vcpu| {
        scheduler.start(vcpu, Ticks::ZERO)
    });
    follow(&computer);
    assert!(computer.kicked.get().contains(hart(0)) && computer.kicked.get().contains(hart(1)));
    assert!(terms(0) && terms(1));
    // It waits, and its hart takes the other group's surplus.
    let other = if is_with(&computer, vcpu(2), 0) { 1 } else { 0 };
    leave(&computer, other, Leave::SelfWait, true);
    follow(&computer);
    assert!(is_with(&computer, vcpu(2), other));
}
