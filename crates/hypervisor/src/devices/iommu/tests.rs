//! The driver on a model of an IOMMU, which reads the directory and the queue by itself.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::vec::Vec;

use super::*;

/// Version 1.0, Sv39x4 and Sv48x4, and ATS.
const FEATURES: u64 = 0x10 | 3 << 17 | capabilities::ATS;
/// `iohgatp` of a table without a number: Sv39x4, its root at 0x8000_4000.
const TABLE: u64 = 8 << 60 | 0x8_0004;

/// Model of an IOMMU.
#[derive(Debug)]
struct Model {
    words: RefCell<BTreeMap<u64, u32>>,
    ddtp: Cell<u64>,
    features: u64,
    /// Modes of the directory that it accepts.
    modes: [bool; 3],
    memory: BTreeMap<u64, u64>,
    pages: u64,
    clock: Cell<u64>,
    /// Commands that were carried out.
    done: RefCell<Vec<[u64; 2]>>,
    /// Set if commands are not carried out.
    hangs: Cell<bool>,
    cqb: Cell<u64>,
    fqb: Cell<u64>,
}

impl Model {
    fn new(features: u64, modes: [bool; 3]) -> Self {
        Self {
            words: RefCell::default(),
            // The firmware has left it open.
            ddtp: Cell::new(1),
            features,
            modes,
            memory: BTreeMap::new(),
            pages: 0,
            clock: Cell::new(0),
            done: RefCell::default(),
            hangs: Cell::new(false),
            cqb: Cell::new(0),
            fqb: Cell::new(0),
        }
    }

    fn register(&self, register: u64) -> u32 {
        self.words.borrow().get(&register).copied().unwrap_or(0)
    }

    fn set(&self, register: u64, value: u32) {
        self.words.borrow_mut().insert(register, value);
    }

    fn load(&self, at: u64) -> u64 {
        self.memory.get(&at).copied().unwrap_or(0)
    }

    /// The context of a device, by the walk of the specification ("Process to locate the Device-context").
    fn context(&self, id: u32) -> Option<[u64; 8]> {
        let extended = self.features & capabilities::MSI_FLAT != 0;
        let leaf_bits = if extended { 6 } else { 7 };
        let levels = (self.ddtp.get() & 0xf).checked_sub(1)?;
        let indices = [
            id & ((1 << leaf_bits) - 1),
            id >> leaf_bits & 0x1ff,
            id >> (leaf_bits + 9),
        ];
        let mut table = (self.ddtp.get() >> 10) << 12;
        for level in (1..levels).rev() {
            let entry = self.load(table + 8 * u64::from(indices[level as usize]));
            if entry & 1 == 0 {
                return None;
            }
            assert_eq!(entry & 0x3fe, 0, "reserved bits");
            table = (entry >> 10) << 12;
        }
        let bytes = if extended { 64 } else { 32 };
        let at = table + bytes * u64::from(indices[0]);
        let mut words = [0; 8];
        for (word, index) in words.iter_mut().zip(0..bytes / 8) {
            *word = self.load(at + 8 * index);
        }
        (words[0] & 1 != 0).then_some(words)
    }

    /// Puts a record of a refused access into the queue, if there is room.
    fn fault(&mut self, id: u64, address: u64) {
        let (head, tail) = (self.register(FQH), self.register(FQT));
        let status = self.register(FQCSR);
        if status & queue::FAULTS != 0 {
            return;
        }
        if (tail + 1) % RECORDS == head {
            self.set(FQCSR, status | 1 << 9);
            return;
        }
        let at = ((self.fqb.get() >> 10) << 12) + 32 * u64::from(tail);
        self.memory.insert(at, 23 | 3 << 34 | id << 40);
        self.memory.insert(at + 16, address);
        self.set(FQT, (tail + 1) % RECORDS);
    }
}

impl TableMemory for Model {
    fn read(&self, address: HostPhysical) -> u64 {
        self.load(address.raw())
    }

    fn write(&mut self, address: HostPhysical, value: u64) {
        self.memory.insert(address.raw(), value);
    }

    fn allocate(&mut self, size: u64) -> Option<HostPhysical> {
        assert_eq!(size, PAGE_SIZE);
        self.pages += 1;
        Some(HostPhysical::new(0x9000_0000 + PAGE_SIZE * self.pages))
    }
}

impl Port for Model {
    fn word(&self, register: u64) -> u32 {
        if register == CQH && !self.hangs.get() {
            let base = (self.cqb.get() >> 10) << 12;
            let (mut head, tail) = (self.register(CQH), self.register(CQT));
            while head != tail {
                let at = base + 16 * u64::from(head);
                let command = [self.load(at), self.load(at + 8)];
                assert!((1..=3).contains(&(command[0] & 0x7f)), "{command:x?}");
                self.done.borrow_mut().push(command);
                head = (head + 1) % COMMANDS;
            }
            self.set(CQH, head);
        }
        self.register(register)
    }

    fn set_word(&self, register: u64, value: u32) {
        match register {
            CQCSR | FQCSR | PQCSR => {
                let enabled = value & queue::ENABLE;
                let was = self.register(register);
                let faults = was & queue::FAULTS & !value;
                if enabled != 0 && was & queue::ENABLE == 0 {
                    self.set(if register == CQCSR { CQH } else { FQT }, 0);
                }
                self.set(register, enabled | enabled << 16 | faults);
            }
            CQH | FQT => panic!("the IOMMU's own"),
            _ => self.set(register, value),
        }
    }

    fn doubleword(&self, register: u64) -> u64 {
        match register {
            CAPABILITIES => self.features,
            DDTP => self.ddtp.get(),
            _ => panic!("{register}"),
        }
    }

    fn set_doubleword(&self, register: u64, value: u64) {
        match register {
            DDTP => {
                let (old, new) = (self.ddtp.get() & 0xf, value & 0xf);
                assert!(new < 2 || old < 2, "from one directory to another");
                let accepted = new < 2 || self.modes[new as usize - 2];
                let kept = if accepted { value } else { value & !0xf | old };
                self.ddtp.set(kept);
            }
            CQB => self.cqb.set(value),
            FQB => self.fqb.set(value),
            _ => panic!("{register}"),
        }
    }

    fn order(&self) {}

    fn waited(&self, began: &mut Option<u64>) -> bool {
        self.clock.set(self.clock.get() + 1);
        self.clock.get() - *began.get_or_insert(self.clock.get()) > 100
    }
}

const ALL: [bool; 3] = [true; 3];

fn begin(features: u64, modes: [bool; 3], highest: u32) -> Result<Iommu<Model>, IommuError> {
    Iommu::begin(Model::new(features, modes), highest)
}

/// Commands that the model has carried out since the last call, without fences.
fn commands(iommu: &Iommu<Model>) -> Vec<[u64; 2]> {
    let state = iommu.state.lock();
    let mut done = core::mem::take(&mut *state.port.done.borrow_mut());
    assert_eq!(done.last(), Some(&[0x3002, 0]), "a fence comes last");
    done.retain(|command| command[0] != 0x3002);
    done
}

#[test]
fn directory_has_the_levels_that_ids_need() {
    for extended in [false, true] {
        let features = FEATURES | if extended { capabilities::MSI_FLAT } else { 0 };
        let bits = if extended { [6, 15, 24] } else { [7, 16, 24] };
        for (level, bits) in (2..).zip(bits) {
            for ids in [
                0..=0,
                5..=(1 << bits) - 1,
                (1 << bits) - 1..=(1 << bits) - 1,
            ] {
                let iommu = begin(features, ALL, *ids.end()).unwrap();
                iommu.confine(7, TABLE, ids.clone()).unwrap();
                iommu.open().unwrap();
                let state = iommu.state.lock();
                let model = &state.port;
                if ids != (0..=0) {
                    assert_eq!(model.ddtp.get() & 0xf, level);
                }
                for id in [*ids.start(), *ids.end()] {
                    let context = model.context(id).expect("a context");
                    assert_eq!(context[..2], [1, TABLE | 7 << 44]);
                    assert_eq!(context[2..], [0; 6]);
                }
                assert!(ids.start() == &0 || model.context(ids.start() - 1).is_none());
            }
        }
    }
}

/// Ids of a host bridge share a few pages, and exactly they have the context.
#[test]
fn whole_tables_stand_once() {
    let iommu = begin(FEATURES | capabilities::MSI_FLAT, ALL, 0xffff).unwrap();
    iommu.confine(1, TABLE, 0..=0xfffe).unwrap();
    iommu.confine(1, TABLE, 0x1_0041..=0x1_0130).unwrap();
    iommu.confine(2, TABLE + 4, 0x1_0131..=0x1_0140).unwrap();
    assert_eq!(
        iommu.confine(3, TABLE + 8, 0x1_0140..=0x1_0141),
        Err(IommuError::OVERLAP)
    );
    assert_eq!(iommu.confine(3, TABLE + 8, 7..=7), Err(IommuError::OVERLAP));
    iommu.open().unwrap();
    let state = iommu.state.lock();
    assert!(state.port.pages < 16, "{}", state.port.pages);
    for id in 0..0x2_0000 {
        let number = match id {
            0..=0xfffe | 0x1_0041..=0x1_0130 => Some(1),
            0x1_0131..=0x1_0140 => Some(2),
            _ => None,
        };
        let context = state.port.context(id);
        assert_eq!(
            context.map(|words| words[1] >> 44 & 0xffff),
            number,
            "{id:#x}"
        );
    }
}

#[test]
fn unfit_iommus_are_refused() {
    let refused = |features, modes, highest| begin(features, modes, highest).map(drop);
    assert_eq!(refused(u64::MAX, ALL, 0), Err(IommuError::VERSION));
    assert_eq!(refused(0, ALL, 0), Err(IommuError::VERSION));
    let one = [true, false, false];
    assert_eq!(refused(FEATURES, one, 0x7f), Ok(()));
    assert_eq!(refused(FEATURES, one, 0x80), Err(IommuError::LEVELS));
    assert_eq!(refused(FEATURES, ALL, 1 << 24), Err(IommuError::LEVELS));
    // Three levels serve where two are not there.
    assert_eq!(refused(FEATURES, [false, false, true], 0x80), Ok(()));
    let iommu = begin(FEATURES, ALL, 0).unwrap();
    let sv57 = TABLE & !(0xf << 60) | 10 << 60;
    assert_eq!(iommu.confine(1, sv57, 0..=0), Err(IommuError::MODE));
    assert_eq!(iommu.confine(1, TABLE, 0x80..=0x80), Err(IommuError::ID));
}

/// Nothing passes until the IOMMU is open, and one that does not answer is an error after a limited time.
#[test]
fn silent_iommu_is_an_error() {
    let iommu = begin(FEATURES, ALL, 0xffff).unwrap();
    assert_eq!(iommu.state.lock().port.ddtp.get() & 0xf, 0);
    iommu.confine(1, TABLE, 0..=9).unwrap();
    iommu.state.lock().port.hangs.set(true);
    assert!(!iommu.take_failure());
    assert_eq!(iommu.open(), Err(IommuError::COMMANDS));
    assert_eq!(iommu.state.lock().port.ddtp.get() & 0xf, 0);
    let busy = Model::new(FEATURES, ALL);
    busy.ddtp.set(ddtp::BUSY | 1);
    let error = Iommu::begin(busy, 0).map(drop);
    assert_eq!(error, Err(IommuError::POINTER));
}

/// A page's translation is dropped by its address and the VM's number; the queue goes around.
#[test]
fn changed_pages_are_dropped() {
    let iommu = begin(FEATURES, ALL, 0xffff).unwrap();
    iommu.confine(3, TABLE, 0..=9).unwrap();
    iommu.open().unwrap();
    assert_eq!(commands(&iommu), [[3, 0], [1, 0], [0x81, 0]]);
    for round in 0..u64::from(COMMANDS) {
        let page = GuestPhysical::new(0x2800_0000 + round * PAGE_SIZE);
        iommu.page_changed(3, page);
        let invalidate = 0x81 | 1 << 10 | 1 << 33 | 3 << 44;
        assert_eq!(commands(&iommu), [[invalidate, (0x2_8000 + round) << 10]]);
    }
    // It is switched off where it does not answer, and that is told once.
    iommu.state.lock().port.hangs.set(true);
    for told in [true, false] {
        iommu.page_changed(3, GuestPhysical::new(0x2800_0000));
        assert_eq!(iommu.take_failure(), told);
    }
    assert_eq!(iommu.state.lock().port.ddtp.get() & 0xf, 0);
}

#[test]
fn devices_reach_nothing_between_lives() {
    let iommu = begin(FEATURES, ALL, 0xffff).unwrap();
    iommu.confine(1, TABLE, 0..=0xfffe).unwrap();
    iommu.confine(2, TABLE, 0xffff..=0xffff).unwrap();
    iommu.open().unwrap();
    let control = |id| iommu.state.lock().port.context(id).map(|words| words[0]);
    commands(&iommu);
    for admitted in [false, true, false, true] {
        iommu.admit(1, admitted);
        let of_domain = 1 << 33 | 1 << 44;
        assert_eq!(
            commands(&iommu),
            [[3, 0], [1 | of_domain, 0], [0x81 | of_domain, 0]]
        );
        for id in [0, 0x8000, 0xfffe] {
            assert_eq!(control(id), admitted.then_some(1));
        }
        assert_eq!(control(0xffff), Some(1));
    }
}

/// A storm of faults is told a few times, then the IOMMU keeps it to itself until the VM starts again; a closed device stays closed.
#[test]
fn storms_of_faults_are_bounded() {
    let iommu = begin(FEATURES, ALL, 0xffff).unwrap();
    iommu.confine(1, TABLE, 0x100..=0x1ff).unwrap();
    iommu.open().unwrap();
    let storm = |id, count| {
        let mut told = Vec::new();
        for address in 0..count {
            iommu.state.lock().port.fault(id, address);
        }
        iommu.faults(|fault| told.push(fault));
        told
    };
    let one = storm(0x142, 1);
    let expected = Fault {
        domain: Some(1),
        device: 0x142,
        cause: 23,
        address: 0,
        last: false,
    };
    assert_eq!(one, [expected]);
    let control = || iommu.state.lock().port.context(0x142).map(|words| words[0]);
    assert_eq!(control(), Some(1));
    let more = storm(0x142, 1000);
    assert_eq!(more.len(), MAX_FAULTS as usize - 1);
    assert!(more.last().unwrap().last);
    assert_eq!(control(), Some(1 | 1 << 4));
    assert_eq!(storm(0x142, 300), []);
    iommu.admit(1, false);
    assert_eq!(storm(0x142, 300), []);
    iommu.admit(1, true);
    assert_eq!(storm(0x142, 1).len(), 1);
    iommu.admit(1, false);
    assert_eq!(storm(0x142, 300).len(), MAX_FAULTS as usize - 1);
    assert_eq!(control(), None);
    // No VM has this device.
    for round in 0..3 {
        let told = storm(0x300, 300);
        assert_eq!(told.len(), if round == 0 { MAX_FAULTS as usize } else { 0 });
        assert!(told.iter().all(|fault| fault.domain.is_none()));
    }
}
