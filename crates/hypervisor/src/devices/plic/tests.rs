//! The registers as the PLIC specification's memory map gives them, a driver's way through them, and hostile guests.

use proptest::prelude::*;

use super::*;
use crate::devices::trapped::Access;
use crate::hart::decode::Width;

const UART: SourceNumber = SourceNumber(10);
const DISK: SourceNumber = SourceNumber(33);
const SOURCES: u32 = 96;
const HARTS: u32 = 2;
/// A source that no device has.
const ABSENT: SourceNumber = SourceNumber(11);

/// A PLIC, the vCPUs' wires, and what was asked of the board.
struct World {
    plic: Plic,
    wires: [bool; HARTS as usize],
    board: Vec<Effect>,
}

fn world() -> World {
    let mut plic = Plic::new(SOURCES, HARTS);
    plic.add_virtual(UART);
    plic.add_physical(DISK);
    World {
        plic,
        wires: [false; HARTS as usize],
        board: Vec::new(),
    }
}

impl World {
    fn with<T>(&mut self, act: impl FnOnce(&mut Plic, &mut dyn FnMut(Effect)) -> T) -> T {
        let Self { plic, wires, board } = self;
        act(plic, &mut |effect| match effect {
            Effect::External { hart, high } => wires[hart.0 as usize] = high,
            other => board.push(other),
        })
    }

    fn load(&mut self, offset: u64) -> u64 {
        let width = Width::Word;
        self.with(|plic, effect| plic.load(Access { offset, width }, effect))
    }

    fn store(&mut self, offset: u64, value: u32) {
        let width = Width::Word;
        self.with(|plic, effect| plic.store(Access { offset, width }, value.into(), effect));
    }

    /// Enables a source for a vCPU alone, with a priority.
    fn listen(&mut self, source: SourceNumber, hart: u64, priority: u32) {
        self.store(4 * u64::from(source.0), priority);
        let word = 0x2000 + 0x80 * hart + u64::from(source.0 / 32) * 4;
        self.store(word, 1 << (source.0 % 32));
    }

    fn claim(&mut self, hart: u64) -> u64 {
        self.load(claim(hart))
    }

    fn set_input(&mut self, high: bool) {
        self.with(|plic, effect| plic.set_input(UART, high, effect));
    }

    fn raise(&mut self) {
        self.with(|plic, effect| plic.raise(DISK, effect));
    }
}

fn threshold(hart: u64) -> u64 {
    0x20_0000 + 0x1000 * hart
}

fn claim(hart: u64) -> u64 {
    threshold(hart) + 4
}

#[test]
fn high_line_interrupts_until_served() {
    let mut world = world();
    world.listen(UART, 1, 1);
    world.set_input(true);
    assert_eq!(world.wires, [false, true]);
    assert_eq!(world.load(0x1000), 1 << 10);
    assert_eq!(world.claim(0), 0, "not enabled there");
    assert_eq!(world.claim(1), 10);
    assert_eq!((world.wires[1], world.load(0x1000)), (false, 0));
    assert_eq!(world.claim(1), 0);
    world.store(claim(1), 10);
    assert!(world.wires[1], "the line is still high");
    assert_eq!(world.claim(1), 10);
    world.set_input(false);
    world.store(claim(1), 10);
    assert!(!world.wires[1]);
    assert_eq!(world.board, [], "a virtual source is nobody else's");
}

#[test]
fn board_waits_for_the_guests_completion() {
    let mut world = world();
    world.listen(DISK, 0, 1);
    let [Effect::Set(setting)] = world.board[..] else {
        panic!("{:?}", world.board);
    };
    assert_eq!(setting.source, DISK);
    assert_eq!(setting.mode, SourceMode::LevelHigh);
    assert_eq!(setting.destination.unwrap().hart, HartIndex(0));
    world.board.clear();
    world.raise();
    assert!(world.wires[0]);
    assert_eq!(world.claim(0), 33);
    // A completion by a vCPU that has not enabled the source is ignored.
    world.store(claim(1), 33);
    assert_eq!(world.board, []);
    world.store(claim(0), 33);
    assert_eq!(world.board, [Effect::Complete(DISK)]);
    world.store(claim(0), 33);
    assert_eq!(world.board.len(), 1, "it is completed once");
}

#[test]
fn reset_releases_the_board() {
    let mut world = world();
    world.listen(DISK, 0, 1);
    world.raise();
    world.board.clear();
    world.with(|plic, effect| plic.reset(effect));
    assert_eq!(world.wires, [false; 2]);
    let [Effect::Complete(DISK), Effect::Set(setting)] = world.board[..] else {
        panic!("{:?}", world.board);
    };
    assert_eq!(setting.destination, None);
    assert_eq!(world.claim(0), 0);
    assert_eq!(world.load(4 * 33), 0);
}

#[test]
fn thresholds_and_priorities_order_claims() {
    let mut world = world();
    world.store(0x2000, 1 << 10);
    world.listen(DISK, 0, 3);
    world.store(4 * 10, 2);
    world.store(threshold(0), 3);
    world.set_input(true);
    world.raise();
    assert!(!world.wires[0], "nothing is above the threshold");
    world.store(threshold(0), 2);
    assert!(world.wires[0]);
    // A claim does not look at the threshold.
    assert_eq!(
        [world.claim(0), world.claim(0), world.claim(0)],
        [33, 10, 0]
    );
    assert!(!world.wires[0]);
}

#[test]
fn equal_priorities_go_by_number() {
    let mut world = world();
    world.store(0x2000, 1 << 10);
    world.listen(DISK, 0, 2);
    world.store(4 * 10, 2);
    world.raise();
    world.set_input(true);
    assert_eq!([world.claim(0), world.claim(0)], [10, 33]);
}

#[test]
fn registers_keep_what_they_can_hold() {
    let mut world = world();
    world.store(4 * u64::from(ABSENT.0), 5);
    world.store(4 * 10, u32::MAX);
    world.store(0x2000, u32::MAX);
    world.store(0x2004, u32::MAX);
    world.store(threshold(1), u32::MAX);
    assert_eq!(world.load(4 * u64::from(ABSENT.0)), 0);
    assert_eq!(world.load(0), 0, "there is no source 0");
    assert_eq!(world.load(4 * 10), 7);
    assert_eq!(world.load(0x2000), 1 << 10);
    assert_eq!(world.load(0x2004), 1 << 1);
    assert_eq!(world.load(threshold(1)), 7);
    assert_eq!(world.load(threshold(2)), 0, "no third vCPU");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Load(u64, Width),
    Store(u64, Width, u64),
    Line(bool),
    Raise,
    Reset,
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        // Registers that exist, at each of their bytes.
        0..0x100_u64,
        0x1000..0x1100_u64,
        0x2000..0x2180_u64,
        0x20_0000..0x20_0010_u64,
        0x20_1000..0x20_1010_u64,
        0x20_0000..0x600_0000_u64,
        any::<u64>(),
    ]
}

fn width() -> impl Strategy<Value = Width> {
    prop::sample::select(vec![
        Width::Byte,
        Width::Half,
        Width::Word,
        Width::Word,
        Width::Word,
        Width::Double,
    ])
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![Just(10), Just(33), any::<u64>()];
    prop_oneof![
        (offset(), width()).prop_map(|(at, width)| Step::Load(at, width)),
        (offset(), width(), value).prop_map(|(at, width, value)| Step::Store(at, width, value)),
        any::<bool>().prop_map(Step::Line),
        Just(Step::Raise),
        Just(Step::Reset),
    ]
}

proptest! {
    /// Whatever a guest does, a vCPU's wire is high if and only if a source of the vCPU's is above its threshold, and what the board waits for is
    /// completed at the latest by a reset.
    #[test]
    fn hostile_accesses_leave_wires_right(steps in prop::collection::vec(step(), 0..80)) {
        let mut world = world();
        let mut board_waits = false;
        for step in steps {
            match step {
                Step::Load(offset, width) => {
                    let value = world.with(|plic, effect| plic.load(Access { offset, width }, effect));
                    prop_assert!(width == Width::Word || value == 0);
                }
                Step::Store(offset, width, value) => {
                    world.with(|plic, effect| plic.store(Access { offset, width }, value, effect));
                }
                Step::Line(high) => world.set_input(high),
                // The board claims a source again only after its completion.
                Step::Raise if board_waits => {}
                Step::Raise => {
                    world.raise();
                    board_waits = true;
                }
                Step::Reset => {
                    world.with(|plic, effect| plic.reset(effect));
                    prop_assert!(!board_waits || world.board.contains(&Effect::Complete(DISK)));
                }
            }
            board_waits &= !world.board.contains(&Effect::Complete(DISK));
            world.board.clear();
            for (context, wire) in world.plic.contexts.iter().zip(world.wires) {
                let sources = (1..).map(SourceNumber).zip(&world.plic.sources);
                let asserts = sources.into_iter().any(|(number, source)| {
                    source.pending && source.priority > context.threshold && context.enables(number)
                });
                prop_assert_eq!(wire, asserts);
            }
        }
        world.with(|plic, effect| plic.reset(effect));
        prop_assert!(!board_waits || world.board.contains(&Effect::Complete(DISK)));
    }
}
