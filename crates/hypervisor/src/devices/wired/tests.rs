//! The driver on models of a PLIC and of an APLIC, written from the specifications.

use std::cell::RefCell;
use std::collections::BTreeMap;

use board::{Board, Range, Survey, Tree};
use proptest::prelude::*;
use vm_fdt::FdtWriter;

use super::*;

const BASE: u64 = 0xc00_0000;
const SOURCES: u32 = 40;
const HARTS: usize = 2;

/// A controller with its lines.
struct Model {
    kind: ControllerKind,
    /// Set for a PLIC whose claim register names another source while several are pending and enabled.
    has_claim_erratum: bool,
    words: RefCell<BTreeMap<u64, u32>>,
    lines: RefCell<[bool; SOURCES as usize + 1]>,
    /// A PLIC's sources that wait for their completion.
    open: RefCell<[bool; SOURCES as usize + 1]>,
    /// Sources of an APLIC that stay pending until the next claim, as on QEMU: they were claimed while their line was high.
    kept: RefCell<[bool; SOURCES as usize + 1]>,
    /// Levels of a PLIC's wires to the harts: tested anew at writes of thresholds and at completions alone, as on QEMU.
    wires: RefCell<[bool; HARTS]>,
    /// Writes to places without a register.
    stray: RefCell<Vec<u64>>,
}

impl Model {
    fn word(&self, offset: u64) -> u32 {
        self.words.borrow().get(&offset).copied().unwrap_or(0)
    }

    /// Bits of a word of the pending register.
    fn pending(&self, word: u32) -> u32 {
        let first = 32 * word;
        let is_pending = |source: &u32| {
            let at = *source as usize;
            at < self.lines.borrow().len() && self.lines.borrow()[at] && !self.open.borrow()[at]
        };
        let pending = (first..first + 32).filter(is_pending);
        pending.fold(0, |bits, source| bits | 1 << (source - first))
    }

    /// The source that the hart at this index is interrupted for.
    fn top(&self, index: u64) -> Option<u32> {
        self.eligible(index).next()
    }

    /// The sources that the hart at this index is interrupted for.
    fn eligible(&self, index: u64) -> impl Iterator<Item = u32> {
        (1..=SOURCES).filter(move |source| {
            let at = *source as usize;
            let high = self.lines.borrow()[at] || self.kept.borrow()[at];
            let wide = u64::from(*source);
            high && match self.kind {
                ControllerKind::Plic => {
                    let word = self.word(0x2000 + 0x80 * index + wide / 32 * 4);
                    let priority = self.word(4 * wide);
                    let threshold = self.word(0x20_0000 + 0x1000 * index);
                    word >> (source % 32) & 1 != 0
                        && priority > threshold
                        && !self.open.borrow()[*source as usize]
                }
                ControllerKind::Aplic => {
                    let enabled = self.word(0x1e00 + wide / 32 * 4) >> (source % 32) & 1 != 0;
                    let target = self.word(0x3000 + 4 * wide);
                    let delivers = self.word(0x4000 + 32 * index) == 1;
                    // Level1, as `sourcecfg` has it.
                    enabled
                        && delivers
                        && self.word(4 * wide) == 6
                        && u64::from(target >> 18) == index
                        && self.word(0) & 1 << 8 != 0
                }
            }
        })
    }
}

impl Registers for &Model {
    fn read(&self, address: u64) -> u32 {
        let offset = address - BASE;
        match self.kind {
            ControllerKind::Plic if offset >= 0x20_0000 && offset % 0x1000 == 4 => {
                let index = (offset - 0x20_0000) / 0x1000;
                let top = self.top(index).unwrap_or(0);
                let last = self.eligible(index).last().unwrap_or(0);
                if top != 0 {
                    self.open.borrow_mut()[top as usize] = true;
                }
                if self.has_claim_erratum { last } else { top }
            }
            ControllerKind::Plic if (0x1000..0x1080).contains(&offset) => {
                self.pending((offset - 0x1000) as u32 / 4)
            }
            ControllerKind::Aplic if offset >= 0x4000 && offset % 32 == 0x1c => {
                let Some(top) = self.top((offset - 0x4000) / 32) else {
                    return 0;
                };
                self.kept.borrow_mut()[top as usize] = self.lines.borrow()[top as usize];
                top << 16 | 1
            }
            // Rectified inputs.
            ControllerKind::Aplic if (0x1d00..0x1d80).contains(&offset) => {
                let first = (offset - 0x1d00) as usize * 8;
                let lines = self.lines.borrow();
                let high = (first..first + 32).filter(|at| lines.get(*at) == Some(&true));
                high.fold(0, |bits, at| bits | 1 << (at - first))
            }
            _ => self.word(offset),
        }
    }

    fn write(&self, address: u64, value: u32) {
        let offset = address - BASE;
        self.store(offset, value);
        if self.kind == ControllerKind::Plic && offset >= 0x20_0000 {
            let tested = [0, 1].map(|index| self.top(index).is_some());
            *self.wires.borrow_mut() = tested;
        }
    }
}

impl Model {
    fn store(&self, offset: u64, value: u32) {
        let mut words = self.words.borrow_mut();
        match (self.kind, offset) {
            (ControllerKind::Plic, 0x20_0000..) if offset % 0x1000 == 4 => {
                let index = (offset - 0x20_0000) / 0x1000;
                let word = 0x2000 + 0x80 * index + u64::from(value / 32) * 4;
                // A completion by a context that has not enabled the source is ignored.
                if words.get(&word).copied().unwrap_or(0) >> (value % 32) & 1 != 0 {
                    self.open.borrow_mut()[value as usize] = false;
                }
            }
            (ControllerKind::Aplic, 0x1edc | 0x1fdc) => {
                let word = words.entry(0x1e00 + u64::from(value / 32) * 4).or_insert(0);
                let bit = 1 << (value % 32);
                *word = if offset == 0x1edc {
                    *word | bit
                } else {
                    *word & !bit
                };
            }
            (ControllerKind::Plic, _)
                if !(offset < 0xa4
                    || (0x2000..0x2108).contains(&offset)
                    || offset >= 0x20_0000) =>
            {
                self.stray.borrow_mut().push(offset);
            }
            _ => {
                words.insert(offset, value);
            }
        }
    }
}

fn model((kind, has_claim_erratum): (ControllerKind, bool)) -> Model {
    Model {
        kind,
        has_claim_erratum,
        // What firmware left on.
        words: RefCell::new(BTreeMap::from([(0x2000, u32::MAX), (0x2084, u32::MAX)])),
        lines: RefCell::new([false; SOURCES as usize + 1]),
        open: RefCell::new([false; SOURCES as usize + 1]),
        kept: RefCell::new([false; SOURCES as usize + 1]),
        wires: RefCell::default(),
        stray: RefCell::default(),
    }
}

fn node(fdt: &mut FdtWriter, name: &str, reg: &[u64]) -> vm_fdt::FdtWriterNode {
    let node = fdt.begin_node(name).unwrap();
    fdt.property_array_u64("reg", reg).unwrap();
    node
}

/// The controller as a tree describes it, and the places of the harts.
fn board(model: &Model) -> Board {
    let mut fdt = FdtWriter::new().unwrap();
    let root = fdt.begin_node("").unwrap();
    fdt.property_u32("#address-cells", 2).unwrap();
    fdt.property_u32("#size-cells", 2).unwrap();
    let cpus = fdt.begin_node("cpus").unwrap();
    fdt.property_u32("#address-cells", 1).unwrap();
    fdt.property_u32("#size-cells", 0).unwrap();
    fdt.property_u32("timebase-frequency", 10_000_000).unwrap();
    for hart in 0..HARTS as u32 {
        let cpu = fdt.begin_node(&format!("cpu@{hart}")).unwrap();
        fdt.property_string("device_type", "cpu").unwrap();
        fdt.property_u32("reg", hart).unwrap();
        let controller = fdt.begin_node("interrupt-controller").unwrap();
        fdt.property_null("interrupt-controller").unwrap();
        fdt.property_u32("phandle", 1 + hart).unwrap();
        fdt.end_node(controller).unwrap();
        fdt.end_node(cpu).unwrap();
    }
    fdt.end_node(cpus).unwrap();
    let memory = node(&mut fdt, "memory@80000000", &[0x8000_0000, 0x1000_0000]);
    fdt.property_string("device_type", "memory").unwrap();
    fdt.end_node(memory).unwrap();
    let plic = node(&mut fdt, "controller@c000000", &[BASE, 0x40_0000]);
    let (compatible, sources) = match model.kind {
        ControllerKind::Plic if model.has_claim_erratum => ("ultrarisc,cp100-plic", "riscv,ndev"),
        ControllerKind::Plic => ("sifive,plic-1.0.0", "riscv,ndev"),
        ControllerKind::Aplic => ("riscv,aplic", "riscv,num-sources"),
    };
    fdt.property_string("compatible", compatible).unwrap();
    fdt.property_u32(sources, SOURCES).unwrap();
    fdt.property_array_u32("interrupts-extended", &[1, 9, 2, 9])
        .unwrap();
    fdt.end_node(plic).unwrap();
    fdt.end_node(root).unwrap();
    let tree = fdt.finish().unwrap();
    let location = Range {
        start: 0x8800_0000,
        size: 0x1000,
    };
    Board::new(Survey::read(&Tree::new(&tree).unwrap()), location).unwrap()
}

/// A driver of `model`, with all harts open, and their places.
fn driver(model: &Model) -> (WiredDriver<&Model>, [Delivery; HARTS]) {
    let board = board(model);
    let (board::Controller::Plic(wired) | board::Controller::Direct(wired)) = &board.controller
    else {
        panic!("{:?}", board.controller);
    };
    let driver = WiredDriver::new(model.kind, wired, model);
    let places = [0, 1].map(|hart| board.controller.delivery(&board.harts[hart]).unwrap());
    for place in places {
        driver.open(place);
    }
    (driver, places)
}

const KINDS: [(ControllerKind, bool); 3] = [
    (ControllerKind::Plic, false),
    (ControllerKind::Plic, true),
    (ControllerKind::Aplic, false),
];

#[test]
fn claimed_source_waits_for_its_completion() {
    for kind in KINDS {
        let model = model(kind);
        let (driver, [first, second]) = driver(&model);
        model.lines.borrow_mut()[33] = true;
        assert_eq!(driver.claim(first), None, "all sources are off");
        driver.enable(33, 0);
        assert_eq!(driver.claim(second), None);
        assert_eq!(driver.claim(first), Some(33));
        assert_eq!(driver.claim(first), None, "claimed already");
        driver.complete(33);
        assert_eq!(driver.claim(first), Some(33), "the line is still high");
        model.lines.borrow_mut()[33] = false;
        driver.complete(33);
        assert_eq!(driver.claim(first), None);
        assert!(model.stray.borrow().is_empty());
    }
}

#[test]
fn claimed_source_moves_to_another_hart() {
    for kind in KINDS {
        let model = model(kind);
        let (driver, [first, second]) = driver(&model);
        model.lines.borrow_mut()[5] = true;
        driver.send_to(5, 1);
        assert_eq!(driver.claim(second), None, "a source that is off stays off");
        driver.enable(5, 0);
        assert_eq!(driver.claim(first), Some(5));
        driver.send_to(5, 1);
        assert_eq!([first, second].map(|hart| driver.claim(hart)), [None; 2]);
        driver.complete(5);
        assert_eq!(driver.claim(first), None);
        assert_eq!(driver.claim(second), Some(5));
    }
}

#[test]
fn silenced_source_needs_no_completion() {
    for kind in KINDS {
        let model = model(kind);
        let (driver, [first, _]) = driver(&model);
        model.lines.borrow_mut()[5] = true;
        driver.enable(5, 0);
        assert_eq!(driver.claim(first), Some(5));
        driver.silence(5);
        driver.complete(5);
        assert_eq!(driver.claim(first), None);
        driver.enable(5, 0);
        assert_eq!(driver.claim(first), Some(5));
    }
}

/// QEMU's PLIC tests whether a hart is interrupted when a threshold is written, and not when a source is enabled.
#[test]
fn enabled_sources_raise_wires_at_once() {
    let model = model((ControllerKind::Plic, false));
    let (driver, _) = driver(&model);
    model.lines.borrow_mut()[5] = true;
    driver.enable(5, 0);
    assert_eq!(*model.wires.borrow(), [true, false]);
    driver.send_to(5, 1);
    assert!(model.wires.borrow()[1]);
}

/// A PLIC with the claim erratum names the right source and keeps the enable bits of the others, which stay pending.
#[test]
fn claims_are_right_despite_erratum() {
    let model = model((ControllerKind::Plic, true));
    let (driver, [first, second]) = driver(&model);
    for (source, hart) in [(3, 0), (5, 1), (7, 0), (31, 0), (32, 0), (40, 0)] {
        driver.enable(source, hart);
    }
    model.lines.borrow_mut()[1..].fill(true);
    let enabled = || [0x2000, 0x2004, 0x2080, 0x2084].map(|offset| model.word(offset));
    let before = enabled();
    for source in [3, 7, 31, 32, 40] {
        assert_eq!(driver.claim(first), Some(source));
        assert_eq!(enabled(), before, "after the claim of {source}");
    }
    assert_eq!(driver.claim(first), None);
    assert_eq!(driver.claim(second), Some(5));
    driver.complete(31);
    assert_eq!(driver.claim(first), Some(31));
    assert!(model.stray.borrow().is_empty());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Enable(u32, u32),
    SendTo(u32, u32),
    Silence(u32),
    Claim(usize),
    Complete(u32),
    Line(u32, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let source = 0..SOURCES + 3;
    let hart = 0..HARTS as u32;
    prop_oneof![
        (source.clone(), hart.clone()).prop_map(|(source, hart)| Step::Enable(source, hart)),
        (source.clone(), hart).prop_map(|(source, hart)| Step::SendTo(source, hart)),
        source.clone().prop_map(Step::Silence),
        (0..HARTS).prop_map(Step::Claim),
        source.prop_map(Step::Complete),
        (1..=SOURCES, any::<bool>()).prop_map(|(source, high)| Step::Line(source, high)),
    ]
}

proptest! {
    /// After any steps, a source that is on, high and completed interrupts its hart and no other.
    #[test]
    fn no_source_is_lost(steps in prop::collection::vec(step(), 0..60), kind in 0..KINDS.len()) {
        let model = model(KINDS[kind]);
        let (driver, places) = driver(&model);
        let mut to = [None; SOURCES as usize + 1];
        for step in steps {
            match step {
                Step::Enable(source, hart) => {
                    driver.enable(source, hart);
                    if let Some(to) = to.get_mut(source as usize).filter(|_| source != 0) {
                        *to = Some(hart as usize);
                    }
                }
                Step::SendTo(source, hart) => {
                    driver.send_to(source, hart);
                    if let Some(Some(to)) = to.get_mut(source as usize) {
                        *to = hart as usize;
                    }
                }
                Step::Silence(source) => {
                    driver.silence(source);
                    if let Some(to) = to.get_mut(source as usize) {
                        *to = None;
                    }
                }
                Step::Claim(hart) => {
                    if let Some(source) = driver.claim(places[hart]) {
                        prop_assert_eq!(to[source as usize], Some(hart));
                    }
                }
                Step::Complete(source) => driver.complete(source),
                Step::Line(source, high) => model.lines.borrow_mut()[source as usize] = high,
            }
        }
        (1..=SOURCES).for_each(|source| driver.complete(source));
        let lines = *model.lines.borrow();
        for (hart, place) in places.into_iter().enumerate() {
            // A hart is interrupted again as long as a source is pending, also behind a claim of one whose line has fallen.
            let mut claimed = Vec::new();
            while model.top(hart as u64).is_some() {
                claimed.extend(driver.claim(place));
            }
            let expected: Vec<u32> = (1..=SOURCES)
                .filter(|source| lines[*source as usize] && to[*source as usize] == Some(hart))
                .collect();
            prop_assert_eq!(claimed, expected);
        }
        prop_assert!(model.stray.borrow().is_empty());
    }
}
