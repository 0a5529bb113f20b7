//! Checkpoints that are refused, and those that restore the same machine.

use xxhash_rust::xxh3::xxh3_64;

use super::container::VERSION;
use super::{CheckpointError, DiskMismatch, Marker};
use crate::base::{Cycles, Memory, Random};
use crate::board::{IommuConfig, PciConfig, map};
use crate::device::virtio::{
    Block, Disk, Entropy, Faults, MemoryDisk, Net, Ports, Service, VirtioDevice,
};
use crate::device::{MacAddress, PortId, Silent};
use crate::machine::{Config, Limit, Machine};
use crate::timing::Profile;

const RAM: u64 = 0x8000_0000;
/// Where the version stands, after the mark.
const VERSION_AT: usize = 16;

/// Counts in memory, with a page's worth of different addresses, for ever.
const PROGRAM: [u32; 6] = [
    0x0000_1297, // auipc x5, 1
    0x0002_8313, // addi x6, x5, 0
    0x0002_b383, // ld x7, 0(x5)
    0x0013_8393, // addi x7, x7, 1
    0x0072_b023, // sd x7, 0(x5)
    0xff5f_f06f, // jal x0, -12
];

fn disk() -> Box<dyn Disk> {
    Box::new(MemoryDisk::new(vec![7; 64 << 10]))
}

/// A machine with one device of each kind that has run a little.
fn machine(profile: Option<&Profile>) -> Machine {
    let mut config = Config::default();
    config.board.harts = 2;
    config.board.memory = 4 << 20;
    config.board.virtio_slots = 4;
    let mut machine = Machine::new(config).expect("a machine");
    machine.set_profile(profile);
    for (place, word) in (0..).zip(PROGRAM) {
        let bytes = u32::to_le_bytes(word);
        let stored = machine.system.memory.store(RAM + 4 * place, &bytes);
        stored.expect("RAM");
    }
    for hart in &mut machine.harts {
        hart.pc = RAM;
    }
    let (service, faults) = (Service::default(), Faults::default());
    let devices = [
        VirtioDevice::Block(Box::new(Block::new(
            disk(),
            true,
            "disk",
            service,
            faults.clone(),
            1,
        ))),
        VirtioDevice::Net(Box::new(Net::new(
            PortId(0),
            MacAddress([2; 6]),
            service,
            faults.clone(),
            2,
        ))),
        VirtioDevice::Console(Box::new(Ports::new(vec![(
            "port".to_owned(),
            Box::new(Silent),
        )]))),
        VirtioDevice::Entropy(Box::new(Entropy::new(service, faults, 3))),
    ];
    for (slot, device) in devices.into_iter().enumerate() {
        let inserted = machine.system.devices.insert(slot, device, false);
        inserted.expect("a slot");
    }
    run(&mut machine, 5000);
    machine
}

fn run(machine: &mut Machine, cycles: u64) {
    machine.run(Limit {
        instructions: None,
        cycles: Some(machine.now() + cycles),
    });
}

fn written(machine: &mut Machine) -> Vec<u8> {
    let mut file = Vec::new();
    machine.checkpoint(&mut file).expect("memory takes it");
    file
}

#[test]
fn restored_machines_write_the_same_checkpoint() {
    let profile = Profile::default();
    for profile in [None, Some(&profile)] {
        let mut machine = machine(profile);
        let file = written(&mut machine);
        let mut again = Machine::restore(&file).expect("restored");
        assert_eq!(again.missing_disks().collect::<Vec<_>>(), [0]);
        again.attach_disk(0, disk()).expect("the same disk");
        assert_eq!(written(&mut again), file);
        run(&mut machine, 12_345);
        run(&mut again, 12_345);
        assert_eq!(machine.report(), again.report());
    }
}

#[test]
fn bridges_are_restored_with_their_disks() {
    let mut config = Config::default();
    config.board.memory = 4 << 20;
    config.board.pci = Some(PciConfig {
        iommu: Some(IommuConfig::default()),
    });
    let mut machine = Machine::new(config).expect("a machine");
    let (service, faults) = (Service::default(), Faults::default());
    let block = Block::new(disk(), false, "disk", service, faults, 1);
    let devices = &mut machine.system.devices;
    let function = VirtioDevice::Block(Box::new(block));
    devices.insert_function(function).expect("room");
    // The IOMMU is switched off, and the disk has an address.
    let memory = &mut machine.system.memory;
    let ddtp = map::IOMMU.base + riscv::iommu::DDTP;
    let base = map::PCI_CONFIGURATION.base + (1 << 15) + 0x14;
    for (address, value) in [(ddtp, 0), (base, map::PCI_NARROW.base)] {
        let written = devices.write(address, 4, value, Cycles(0), memory);
        written.expect("something answers");
    }
    let file = written(&mut machine);
    let mut again = Machine::restore(&file).expect("restored");
    let place = map::VIRTIO_SLOTS;
    assert_eq!(again.missing_disks().collect::<Vec<_>>(), [place]);
    again.attach_disk(place, disk()).expect("the same disk");
    assert_eq!(written(&mut again), file);
    let (devices, memory) = (&mut again.system.devices, &mut again.system.memory);
    let mut read = |address| devices.read(address, 4, Cycles(0), memory);
    assert_eq!((read(ddtp), read(base)), (Ok(0), Ok(map::PCI_NARROW.base)));
}

#[test]
fn flipped_bytes_and_cuts_are_refused() {
    let file = written(&mut machine(None));
    for place in 0..file.len() {
        let mut damaged = file.clone();
        damaged[place] ^= 1 << (place % 8);
        let error = Machine::restore(&damaged).expect_err("damaged");
        let expected = match place {
            0..VERSION_AT => matches!(error, CheckpointError::Foreign),
            VERSION_AT..20 => matches!(
                error,
                CheckpointError::Version {
                    expected: VERSION,
                    ..
                }
            ),
            _ => matches!(error, CheckpointError::Damaged),
        };
        assert!(expected, "byte {place}: {error}");
        assert!(Machine::restore(&file[..place]).is_err(), "cut at {place}");
    }
    let longer = [&file[..], &[0]].concat();
    assert!(Machine::restore(&longer).is_err());
}

/// A file with a right checksum need not be a machine's: it is refused, or it runs without harm.
#[test]
fn forged_contents_do_no_harm() {
    let profile = Profile::default();
    for (seed, profile) in [(1, None), (2, Some(&profile))] {
        let file = written(&mut machine(profile));
        let mut random = Random::new(seed);
        let contents = file.len() - 8;
        for _ in 0..600 {
            let mut forged = file.clone();
            for _ in 0..=random.below(3) {
                // The state is at the beginning; the pages are most of the file.
                let within = if random.below(4) == 0 {
                    contents
                } else {
                    contents.min(4000)
                };
                let place = 20 + random.below(within as u64 - 20) as usize;
                forged[place] = random.next() as u8;
            }
            let checksum = xxh3_64(&forged[..contents]).to_le_bytes();
            forged[contents..].copy_from_slice(&checksum);
            if let Ok(mut machine) = Machine::restore(&forged) {
                run(&mut machine, 3000);
                assert_eq!(machine.report().harts.len(), machine.harts.len());
            }
        }
    }
}

/// A file that goes when the test ends.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let name = format!("machine-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).expect("written");
        Self(path)
    }

    fn open(&self) -> std::fs::File {
        std::fs::File::open(&self.0).expect("opened")
    }

    /// KiB of the process that are mapped from the file, and those of them that are not shared with it any more.
    fn mapped(&self) -> (u64, u64) {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
        let name = self.0.to_str().expect("text");
        let (mut own, mut size, mut changed) = (false, 0, 0);
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let kib = || second.parse::<u64>().expect("a number");
            match first {
                "Size:" if own => size += kib(),
                "Anonymous:" if own => changed += kib(),
                _ if !first.ends_with(':') => own = line.ends_with(name),
                _ => {}
            }
        }
        (size, changed)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of it is harmless.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn machines_share_file_pages_until_written() {
    let mut machine = machine(None);
    let data = vec![0x5a; 1 << 20];
    let stored = machine.system.memory.store(RAM + (2 << 20), &data);
    stored.expect("RAM");
    let bytes = written(&mut machine);
    let file = Scratch::new("shared", &bytes);
    let mut runs: Vec<Machine> = (0..3)
        .map(|_| Machine::restore_file(&file.open()).expect("restored"))
        .collect();
    // All of the data is mapped by each, and the host has a page of nobody's own.
    assert_eq!(file.mapped(), (3 * 1024, 0));
    let first = runs.first_mut().expect("three");
    let stored = first.system.memory.store(RAM + (2 << 20), &[1]);
    stored.expect("RAM");
    assert_eq!(file.mapped(), (3 * 1024, 4));
    // Nobody else sees it, and a run is what it is without the file.
    assert_eq!(std::fs::read(&file.0).expect("read"), bytes);
    let mut copied = Machine::restore(&bytes).expect("restored");
    run(&mut copied, 12_345);
    for other in runs.iter_mut().skip(1) {
        run(other, 12_345);
        assert_eq!(other.report(), copied.report());
    }
    drop(runs);
    assert_eq!(file.mapped(), (0, 0));
}

#[test]
fn cut_and_older_files_are_refused_unmapped() {
    let bytes = written(&mut machine(None));
    let refused = |bytes: &[u8]| {
        let file = Scratch::new("refused", bytes);
        Machine::restore_file(&file.open()).expect_err("refused")
    };
    assert!(matches!(refused(&[]), CheckpointError::Foreign));
    let cut = &bytes[..bytes.len() / 2];
    assert!(matches!(refused(cut), CheckpointError::Damaged));
    let mut older = bytes.clone();
    older[VERSION_AT] = 4;
    let said = refused(&older).to_string();
    assert!(
        said.contains("version 4") && said.contains("write it again"),
        "{said}"
    );
}

#[test]
fn another_disk_is_refused() {
    let file = written(&mut machine(None));
    let mut machine = Machine::restore(&file).expect("restored");
    let mut changed = vec![7; 64 << 10];
    changed[9999] = 8;
    let refused = machine.attach_disk(0, Box::new(MemoryDisk::new(changed)));
    assert!(matches!(refused, Err(DiskMismatch::Contents { slot: 0 })));
    let refused = machine.attach_disk(0, Box::new(MemoryDisk::new(vec![7; 512])));
    assert!(matches!(refused, Err(DiskMismatch::Size { slot: 0 })));
    let refused = machine.attach_disk(1, disk());
    assert!(matches!(refused, Err(DiskMismatch::NoDisk(1))));
}

#[test]
fn seeds_change_start_phases_not_memory() {
    let file = written(&mut machine(None));
    let started = |seed| {
        let mut machine = Machine::restore(&file).expect("restored");
        machine.reseed(seed);
        machine
    };
    let phases = |seed| {
        let machine = started(seed);
        let phases = machine.harts.iter().map(|hart| hart.cycles);
        (phases.collect::<Vec<_>>(), machine.memory_hash())
    };
    assert_eq!(phases(1), phases(1));
    assert_ne!(phases(1).0, phases(2).0);
    assert_eq!(phases(1).1, phases(2).1);
    let figures = |seed| {
        let mut machine = started(seed);
        run(&mut machine, 3_000_000);
        machine.report()
    };
    assert_eq!(figures(1), figures(1));
    assert_ne!(figures(1), figures(2));
}

#[test]
fn runs_stop_where_the_text_appears() {
    use crate::machine::Stop;
    let mut machine = machine(None);
    machine.stop_at(Marker::new("!"));
    let limit = |machine: &Machine| Limit {
        instructions: None,
        cycles: Some(machine.now() + 10_000),
    };
    let to = limit(&machine);
    assert_eq!(machine.run(to), Stop::Limit);
    let (memory, devices) = (&mut machine.system.memory, &mut machine.system.devices);
    let put = devices.write(0x1000_0000, 1, u64::from(b'!'), Cycles(20_000), memory);
    assert_eq!(put, Ok(()));
    let to = limit(&machine);
    assert_eq!(machine.run(to), Stop::Marker);
    assert_eq!(machine.run(to), Stop::Limit);
}
