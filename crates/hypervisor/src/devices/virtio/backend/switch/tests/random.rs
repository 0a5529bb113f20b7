//! Random frames, buffers and resets, beside a switch that is written out in a few lines.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const PORTS: usize = 3;
const OUTSIDE: usize = PORTS;
/// Half of 64 slots, divided among three others.
const KEPT: usize = 10;

#[derive(Clone, Debug)]
enum Step {
    /// A guest sends: to whom, as whom, how many bytes, cut where.
    Send(usize, usize, usize, usize, Vec<usize>),
    /// Sends a frame, notified together with the next ones.
    Put(usize, usize, usize),
    /// The card receives.
    Receive(usize, usize, usize),
    /// A guest offers buffers, cut in two.
    Offer(usize, usize, u32),
    /// The card sends what it has.
    CardSends,
    Restart(usize, bool),
    Stop(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let port = 0..PORTS;
    // Ports, the broadcast address, and an address of no port.
    let whom = 0..PORTS + 2;
    let source = prop_oneof![20 => Just(99), 1 => 0..PORTS + 2];
    let length = prop_oneof![3 => 14..100_usize, 2 => 1500..1515_usize, 1 => Just(1515)];
    let cuts = prop::collection::vec(1..1500_usize, 0..4);
    let one = prop_oneof![
        8 => (port.clone(), whom.clone(), source, length, cuts).prop_map(|(a, b, c, d, mut cuts)| {
            cuts.sort_unstable();
            Step::Send(a, b, c, d, cuts)
        }),
        4 => (port.clone(), whom.clone(), 1..8_usize).prop_map(|(a, b, c)| Step::Put(a, b, c)),
        4 => (whom.clone(), whom, 14..1515_usize).prop_map(|(a, b, c)| Step::Receive(a, b, c)),
        4 => (port.clone(), 1..8_usize, 1..1526_u32).prop_map(|(a, b, c)| Step::Offer(a, b, c)),
        1 => Just(Step::CardSends),
        1 => (port.clone(), any::<bool>()).prop_map(|(a, b)| Step::Restart(a, b)),
        1 => port.prop_map(Step::Stop),
    ];
    prop::collection::vec(one, 1..120)
}

/// Expected frames of a member.
#[derive(Default)]
struct Reference {
    open: bool,
    waiting: VecDeque<(usize, Vec<u8>)>,
    buffers: usize,
    got: Vec<Vec<u8>>,
}

impl Reference {
    fn deliver(&mut self) {
        while self.buffers > 0
            && let Some((_, frame)) = self.waiting.pop_front()
        {
            self.buffers -= 1;
            self.got.push(frame);
        }
    }
}

fn who(number: usize) -> Address {
    match number {
        0..PORTS => address(number),
        PORTS => BROADCAST,
        _ => Address([0x52, 0x54, 0, 0, 0, number as u8]),
    }
}

/// Passes a frame to the members that should receive the frame.
fn pass(members: &mut [Reference], from: usize, frame: &[u8]) {
    let [to, source] = [0, 6].map(|at| Address(frame[at..at + 6].try_into().unwrap()));
    let is_ports = |address| (0..PORTS).any(|port| who(port) == address);
    let honest = match from {
        OUTSIDE => !is_ports(source) && source != BROADCAST,
        port => source == who(port),
    };
    if !honest || frame.len() > 1514 {
        return;
    }
    for (number, member) in members.iter_mut().enumerate() {
        let is_for = match to {
            BROADCAST => true,
            _ if number == OUTSIDE => !is_ports(to),
            _ => to == who(number),
        };
        let held = |of| member.waiting.iter().filter(|(by, _)| *by == of).count();
        let others = (0..=PORTS).filter(|other| *other != from && *other != number);
        let of_others: usize = others.map(|other| held(other).max(KEPT)).sum();
        let has_room = held(from) < KEPT || held(from) + of_others < 64;
        if is_for && number != from && member.open && has_room {
            member.waiting.push_back((from, frame.to_vec()));
        }
    }
}

fn run(steps: Vec<Step>) {
    let world = World::new(PORTS, true);
    let mut guests = world.guests(PORTS);
    let mut members: Vec<_> = (0..=PORTS).map(|_| Reference::default()).collect();
    members[OUTSIDE].open = true;
    let mut mark = 0_u8;
    for step in steps {
        mark = mark.wrapping_add(1);
        match step {
            Step::Send(from, to, source, length, cuts) => {
                let source = if source == 99 { from } else { source };
                let frame = frame(who(to), who(source), length, mark);
                if members[from].open {
                    let before = guests[from].made[1];
                    guests[from].put(&world, &frame, &cuts);
                    assert!(guests[from].notify(&world, 1, before));
                    pass(&mut members, from, &frame);
                }
            }
            Step::Put(from, to, count) if members[from].open => {
                let before = guests[from].made[1];
                for number in 0..count {
                    let frame = frame(who(to), who(from), 14 + number, mark);
                    guests[from].put(&world, &frame, &[12]);
                    pass(&mut members, from, &frame);
                }
                assert!(guests[from].notify(&world, 1, before));
            }
            Step::Receive(to, source, length) => {
                let frame = frame(who(to), who(source), length, mark);
                assert!(world.card_receives(&frame), "no buffer comes back");
                world.serve();
                pass(&mut members, OUTSIDE, &frame);
            }
            Step::Offer(port, count, cut) if members[port].open => {
                let count = count.min(guests[port].spare.len());
                guests[port].offer(&world, count, cut);
                members[port].buffers += count;
            }
            Step::CardSends => {
                let due: Vec<_> = members[OUTSIDE].waiting.drain(..).map(|(_, f)| f).collect();
                assert_eq!(world.card_sends(), due);
            }
            Step::Restart(port, event_indices) => {
                guests[port].start(&world, event_indices);
                members[port] = Reference {
                    open: true,
                    ..Reference::default()
                };
            }
            Step::Stop(port) => {
                let view = guests[port].view(&world);
                guests[port].device.reset(&Alone(&view));
                members[port] = Reference::default();
            }
            _ => {}
        }
        world.settle(&mut guests);
        for (guest, member) in guests.iter_mut().zip(&mut members) {
            member.deliver();
            let expected = core::mem::take(&mut member.got);
            if member.open {
                assert_eq!(guest.received(&world), expected);
                assert_eq!(guest.in_flight(&world), 0);
                assert!(!guest.is_broken(&world));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn frames_go_where_they_should(steps in steps()) {
        run(steps);
    }
}

#[test]
fn floods_match_the_reference() {
    let steps = (0..600).map(|number| match number % 7 {
        0..4 => Step::Send(number % 3, (number / 3) % 5, 99, 60 + number, vec![12]),
        4 => Step::Receive(number % 5, 4, 60 + number),
        5 if number % 5 == 0 => Step::Offer(number % 3, 2, 12),
        _ if number % 11 == 0 => Step::CardSends,
        _ => Step::Put(number % 3, (number / 2) % 5, 3),
    });
    let start = (0..PORTS).map(|port| Step::Restart(port, port == 1));
    run(start.chain(steps).collect());
}
