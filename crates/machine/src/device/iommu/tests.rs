//! The IOMMU as software sees it, on tables that stand in a small memory.

use riscv::iommu::{
    CQB, CQCSR, CQH, CQT, DDTP, FQB, FQCSR, FQT, IPSR, MSI_TABLE, cause, command, control, ddtp,
    fault, queue,
};
use riscv::page_table::{ACCESSED, DIRTY, READ, USER, WRITE};

use super::*;
use crate::base::Paging;
use crate::board::IommuConfig;
use crate::device::{AccessFault, Cycles, FlatMemory, Memory};

const MEMORY: usize = 1 << 20;
const DIRECTORY: u64 = 0x1000;
const COMMANDS: u64 = 0x2000;
const FAULTS: u64 = 0x3000;
const FIRST: u64 = 0x4000;
const MESSAGES: u64 = 0x8000;
const SECOND: u64 = 0x1_0000;
const DATA: u64 = 0x8_0000;
/// Where messages of the IOMMU go.
const NOTE: u64 = 0x9000;
const FULL: u64 = VALID | READ | WRITE | USER | ACCESSED | DIRTY;
const VALID: u64 = riscv::iommu::VALID;
const DEVICE: u32 = 8;
/// An address that a device uses.
const ADDRESS: u64 = 0x4000_0000;

struct Bench {
    iommu: Iommu,
    memory: FlatMemory,
    tail: u64,
}

fn capable() -> u64 {
    capabilities(&IommuConfig::default(), Paging::Sv48)
}

impl Bench {
    /// A directory of one level, in which the device's second stage is Sv39x4 and maps [`ADDRESS`] to [`DATA`].
    fn new() -> Self {
        let mut bench = Self::off(capable());
        bench.context(&[VALID, 8 << 60 | 5 << 44 | SECOND >> 12]);
        bench.store(SECOND + 8, 0x1_4000 >> 2 | VALID);
        bench.store(0x1_4000, 0x1_5000 >> 2 | VALID);
        bench.store(0x1_5000, DATA >> 2 | FULL);
        bench.on();
        bench
    }

    fn off(capabilities: u64) -> Self {
        Self {
            iommu: Iommu::with(capabilities, 16, 64),
            memory: FlatMemory::new(0, MEMORY),
            tail: 0,
        }
    }

    fn on(&mut self) {
        self.write(CQB, 8, COMMANDS >> 2 | 7);
        self.write(FQB, 8, FAULTS >> 2 | 6);
        for (offset, data) in [(0, 7), (16, 9)] {
            self.write(MSI_TABLE + offset, 8, NOTE + offset);
            self.write(MSI_TABLE + offset + 8, 4, data);
        }
        self.write(riscv::iommu::ICVEC, 8, 1 << 4);
        let on = u64::from(queue::ENABLE | queue::INTERRUPT_ENABLE);
        self.write(CQCSR, 4, on);
        self.write(FQCSR, 4, on);
        self.write(DDTP, 8, DIRECTORY >> 2 | ddtp::ONE_LEVEL);
    }

    /// Writes the first words of the device's context.
    fn context(&mut self, words: &[u64]) {
        for (word, at) in words
            .iter()
            .zip((DIRECTORY + u64::from(DEVICE) * 64..).step_by(8))
        {
            self.store(at, *word);
        }
    }

    fn store(&mut self, at: u64, value: u64) {
        self.memory.store(at, &value.to_le_bytes()).expect("memory");
    }

    fn load(&mut self, at: u64) -> u64 {
        super::access::load(at, &mut self.memory).expect("memory")
    }

    fn write(&mut self, offset: u64, size: u8, value: u64) {
        let written = self
            .iommu
            .write_register(offset, size, value, Cycles(0), &mut self.memory);
        written.expect("a register");
    }

    fn read(&mut self, offset: u64, size: u8) -> u64 {
        let read = self
            .iommu
            .read_register(offset, size, Cycles(0), &mut self.memory);
        read.expect("a register")
    }

    fn access(&mut self, access: Access, address: u64) -> Result<Place, AccessFault> {
        let request = Request {
            device: DEVICE,
            process: None,
            access,
            address,
        };
        let found = self.iommu.translate(&request, &mut self.memory);
        found.map(|found| found.place)
    }

    fn command(&mut self, words: [u64; 2]) {
        let at = COMMANDS + self.tail * command::BYTES;
        self.store(at, words[0]);
        self.store(at + 8, words[1]);
        self.tail += 1;
        let tail = self.tail;
        self.write(CQT, 4, tail);
    }

    /// Cause, device, `iotval` and `iotval2` of a record.
    fn record(&mut self, number: u64) -> (u64, u64, u64, u64) {
        let at = FAULTS + number * fault::BYTES;
        let first = self.load(at);
        let (value, second) = (
            self.load(at + fault::ADDRESS),
            self.load(at + fault::VALUE2),
        );
        let device = first >> fault::DEVICE_SHIFT;
        (first & fault::CAUSE, device, value, second)
    }
}

const fn page(address: u64) -> u64 {
    address >> 12 << command::PAGE_SHIFT
}

#[test]
fn accesses_go_where_tables_lead() {
    let mut bench = Bench::new();
    let found = bench.access(Access::Write, ADDRESS + 0x123);
    assert_eq!(found, Ok(Place::Physical(DATA + 0x123)));
    assert_eq!(bench.read(FQT, 4), 0);
}

#[test]
fn refusals_are_reported_with_a_message() {
    let mut bench = Bench::new();
    assert!(bench.access(Access::Read, ADDRESS + 0x1008).is_err());
    let guest_page = riscv::exception::LOAD_GUEST_PAGE;
    let record = (
        guest_page,
        u64::from(DEVICE),
        ADDRESS + 0x1008,
        ADDRESS + 0x1008,
    );
    assert_eq!((bench.read(FQT, 4), bench.record(0)), (1, record));
    assert_eq!(bench.load(NOTE + 16), 9, "the fault queue's vector");
    assert_eq!(bench.read(IPSR, 4), 2);
    // Until software says that it has seen it, nothing more is sent.
    bench.store(NOTE + 16, 0);
    assert!(bench.access(Access::Execute, ADDRESS).is_err());
    assert_eq!((bench.read(FQT, 4), bench.load(NOTE + 16)), (2, 0));
}

#[test]
fn translations_stay_until_they_are_invalidated() {
    let mut bench = Bench::new();
    let read = |bench: &mut Bench| bench.access(Access::Read, ADDRESS);
    let (old, new) = (
        Ok(Place::Physical(DATA)),
        Ok(Place::Physical(DATA + 0x1000)),
    );
    assert_eq!(read(&mut bench), old);
    bench.store(0x1_5000, (DATA + 0x1000) >> 2 | FULL);
    assert_eq!(read(&mut bench), old);
    let gvma = command::IOTINVAL_GVMA | command::AV | command::GV;
    // Another guest, another page, and the first stage are not it.
    bench.command([gvma | 6 << 44, page(ADDRESS)]);
    bench.command([gvma | 5 << 44, page(ADDRESS + 0x1000)]);
    bench.command([command::IOTINVAL_VMA | command::GV | 5 << 44, 0]);
    bench.command([command::IODIR_INVAL_DDT, 0]);
    assert_eq!(read(&mut bench), old);
    bench.command([gvma | 5 << 44, page(ADDRESS)]);
    assert_eq!(read(&mut bench), new);
}

#[test]
fn contexts_stay_until_they_are_invalidated() {
    let mut bench = Bench::new();
    assert!(bench.access(Access::Read, ADDRESS).is_ok());
    bench.context(&[0]);
    assert!(bench.access(Access::Read, ADDRESS).is_ok());
    bench.command([command::IODIR_INVAL_DDT | 1 << 33 | 9 << 40, 0]);
    assert!(
        bench.access(Access::Read, ADDRESS).is_ok(),
        "another device"
    );
    bench.command([
        command::IODIR_INVAL_DDT | 1 << 33 | u64::from(DEVICE) << 40,
        0,
    ]);
    assert!(bench.access(Access::Read, ADDRESS).is_err());
    assert_eq!(bench.record(0).0, u64::from(cause::DIRECTORY_INVALID));
}

#[test]
fn large_pages_are_dropped_by_any_address() {
    let mut bench = Bench::new();
    // A page of 2 MiB of the second stage behind pages of 4 KiB of the first.
    bench.store(0x1_4008, 0x20_0000 >> 2 | FULL);
    bench.store(SECOND, 0x1_6000 >> 2 | VALID);
    bench.store(0x1_6000, 0x1_7000 >> 2 | VALID);
    for table in [FIRST, 0x5000, 0x6000] {
        bench.store(0x1_7000 + (table >> 12) * 8, table >> 2 | FULL);
    }
    bench.store(FIRST + 8, 0x5000 >> 2 | VALID);
    bench.store(0x5000, 0x6000 >> 2 | VALID);
    let guest = ADDRESS + 0x20_0000;
    bench.store(0x6000, guest >> 2 | FULL);
    bench.context(&[
        VALID,
        8 << 60 | 5 << 44 | SECOND >> 12,
        3 << 12,
        8 << 60 | FIRST >> 12,
    ]);
    bench.command([command::IODIR_INVAL_DDT, 0]);
    let read = |bench: &mut Bench| bench.access(Access::Read, ADDRESS);
    assert_eq!(read(&mut bench), Ok(Place::Physical(0x20_0000)));
    bench.store(0x1_4008, 0);
    assert_eq!(read(&mut bench), Ok(Place::Physical(0x20_0000)));
    let gvma = command::IOTINVAL_GVMA | command::AV | command::GV | 5 << 44;
    bench.command([gvma, page(guest + 0x1f_f000)]);
    assert!(read(&mut bench).is_err());
}

#[test]
fn dirty_bits_are_set_where_contexts_say() {
    let mut bench = Bench::new();
    let clean = DATA >> 2 | FULL & !DIRTY;
    bench.store(0x1_5000, clean);
    assert!(bench.access(Access::Read, ADDRESS).is_ok());
    assert!(bench.access(Access::Write, ADDRESS).is_err());
    bench.context(&[VALID | control::GUEST_UPDATE]);
    bench.command([command::IODIR_INVAL_DDT, 0]);
    assert!(bench.access(Access::Write, ADDRESS).is_ok());
    assert_eq!(bench.load(0x1_5000), clean | DIRTY);
}

#[test]
fn messages_go_to_files_in_memory() {
    let mut bench = Bench::new();
    let second = 8 << 60 | 5 << 44 | SECOND >> 12;
    let tables = 1 << 60 | MESSAGES >> 12;
    // Two files, the first a page and the second in memory.
    bench.context(&[VALID, second, 0, 0, tables, 1, 0x100]);
    bench.store(MESSAGES, DATA >> 2 | 7);
    bench.store(MESSAGES + 16, 0xa000 >> 2 | 3);
    bench.store(MESSAGES + 24, NOTE >> 2 | 33);
    bench.command([command::IODIR_INVAL_DDT, 0]);
    let found = bench.access(Access::Write, 0x10_0000);
    assert_eq!(found, Ok(Place::Physical(DATA)));
    let send = |bench: &mut Bench, data: u32| {
        let request = Request {
            device: DEVICE,
            process: None,
            access: Access::Write,
            address: 0x10_1000,
        };
        let Bench { iommu, memory, .. } = bench;
        iommu.write(&request, &data.to_le_bytes(), memory)
    };
    assert_eq!(send(&mut bench, 70), Ok(()));
    assert_eq!(
        (bench.load(0xa010), bench.load(NOTE)),
        (1 << 6, 0),
        "pending"
    );
    bench.store(0xa018, 1 << 6);
    assert_eq!(send(&mut bench, 70), Ok(()));
    assert_eq!(bench.load(NOTE), 33, "the notice");
    assert!(bench.access(Access::Execute, 0x10_0000).is_err());
}

#[test]
fn illegal_commands_stop_the_queue() {
    let mut bench = Bench::new();
    bench.command([command::IOTINVAL_VMA | 1 << 11, 0]);
    bench.command([command::IOTINVAL_VMA, 0]);
    assert_eq!(bench.read(CQH, 4), 0);
    assert_ne!(bench.read(CQCSR, 4) as u32 & queue::ILLEGAL, 0);
    assert_eq!(bench.load(NOTE) as u32, 7, "the command queue's vector");
    bench.store(COMMANDS, command::IOTINVAL_VMA);
    let on = u64::from(queue::ENABLE | queue::ILLEGAL);
    bench.write(CQCSR, 4, on);
    assert_eq!(bench.read(CQH, 4), 2);
}

#[test]
fn fences_write_and_raise_lines() {
    let mut bench = Bench::off(capable());
    bench.write(riscv::iommu::FCTL, 4, riscv::iommu::FCTL_WSI.into());
    bench.on();
    let line = 1 << 11;
    bench.command([
        command::IOFENCE | command::AV | line | 0x1234_5678 << 32,
        0xb000 >> 2,
    ]);
    assert_eq!(bench.load(0xb000), 0x1234_5678);
    assert_eq!(bench.iommu.lines(), [true, false, false, false]);
    bench.write(IPSR, 4, 1);
    assert!(bench.iommu.lines()[0], "the fence's interrupt stays");
    let on = u64::from(queue::ENABLE | queue::INTERRUPT_ENABLE | queue::FENCE_INTERRUPT);
    bench.write(CQCSR, 4, on);
    bench.write(IPSR, 4, 1);
    assert!(!bench.iommu.lines()[0]);
    bench.command([command::IOFENCE | command::AV, 1 << 40]);
    assert_ne!(bench.read(CQCSR, 4) as u32 & queue::MEMORY_FAULT, 0);
}

#[test]
fn commands_take_their_time() {
    let mut bench = Bench::new();
    bench.iommu.set_costs(IommuCosts {
        hit: 3,
        step: 10,
        command: 100,
    });
    bench.command([command::IODIR_INVAL_DDT, 0]);
    bench.command([command::IOFENCE, 0]);
    assert_eq!(bench.iommu.next_event(), Some(Cycles(100)));
    let mut head = |now: u64| {
        let Bench { iommu, memory, .. } = &mut bench;
        iommu.read_register(CQH, 4, Cycles(now), memory)
    };
    assert_eq!(
        (head(99), head(100), head(199), head(200)),
        (Ok(0), Ok(1), Ok(1), Ok(2))
    );
}

#[test]
fn walks_cost_their_references() {
    let mut bench = Bench::new();
    bench.iommu.set_costs(IommuCosts {
        hit: 3,
        step: 10,
        command: 0,
    });
    assert!(bench.access(Access::Read, ADDRESS).is_ok());
    // The context, and three levels.
    assert_eq!(bench.iommu.take_time(), Cycles(3 + 4 * 10));
    assert!(bench.access(Access::Read, ADDRESS).is_ok());
    assert_eq!(bench.iommu.take_time(), Cycles(3));
}

#[test]
fn registers_are_words_and_doublewords() {
    let mut bench = Bench::new();
    for (offset, size) in [(0, 2), (0, 1), (4, 8), (2, 4), (4096, 4)] {
        let read = bench
            .iommu
            .read_register(offset, size, Cycles(0), &mut bench.memory);
        assert_eq!(read, Err(AccessFault), "{offset} {size}");
    }
    bench.write(DDTP, 4, 0);
    assert_eq!(bench.read(DDTP, 8) & ddtp::MODE, ddtp::OFF);
    assert!(bench.access(Access::Read, ADDRESS).is_err());
    assert_eq!(bench.record(0).0, u64::from(cause::OFF));
}

#[test]
fn base_contexts_have_half_the_size() {
    let config = IommuConfig {
        message_tables: false,
        ..IommuConfig::default()
    };
    let mut bench = Bench::off(capabilities(&config, Paging::Sv39));
    let at = DIRECTORY + u64::from(DEVICE) * 32;
    bench.store(at, VALID);
    bench.on();
    assert_eq!(bench.access(Access::Read, DATA), Ok(Place::Physical(DATA)));
    // Sv48x4 is not there.
    bench.store(at + 8, 9 << 60);
    bench.command([command::IODIR_INVAL_DDT, 0]);
    assert!(bench.access(Access::Read, DATA).is_err());
    assert_eq!(bench.record(0).0, u64::from(cause::DIRECTORY_MISCONFIGURED));
}
