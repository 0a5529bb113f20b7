//! Configuration space and registers, as a guest finds and sets them.

use abi::serve::{DEVICE, IDENTITY, VENDOR, VERSION, register};
use abi::system::VmName;

use super::configuration::Configuration;
use super::place::Places;
use super::*;

const COMMAND: u64 = 4;
const REGIONS: [u64; 3] = [0x10, 0x14, 0x18];

fn at(offset: u64, width: Width) -> Access {
    Access { offset, width }
}

fn word(configuration: &Configuration, offset: u64) -> u32 {
    configuration.load(at(offset, Width::Word), false) as u32
}

#[test]
fn regions_are_sized_and_stay() {
    let places = Places::of(3);
    let mut configuration = Configuration::new(places);
    let expected = [places.registers, places.rings, places.window];
    for (register, region) in REGIONS.into_iter().zip(expected) {
        let base = region.base().raw() as u32;
        assert_eq!(word(&configuration, register), base);
        configuration.store(at(register, Width::Word), u32::MAX.into());
        let size = word(&configuration, register).wrapping_neg();
        assert_eq!(u64::from(size), region.size());
        assert!(size.is_power_of_two() && base.is_multiple_of(size));
        for value in [0, 0x4000_0000, u32::MAX - 1] {
            configuration.store(at(register, Width::Word), value.into());
            assert_eq!(word(&configuration, register), base);
        }
    }
    // A guest that sets them up from the bottom, the largest first, puts them where they are.
    assert_eq!(places.window.end(), places.rings.base());
    assert_eq!(places.rings.end(), places.registers.base());
    for disks in 1..=abi::system::MAX_SERVED {
        let places = Places::of(disks);
        assert!(
            places.registers.end() <= places.configuration.base(),
            "{disks}"
        );
        assert!(places.window.size() >= disks as u64 * abi::serve::WINDOW_BYTES);
    }
}

#[test]
fn one_function_alone_answers() {
    let configuration = Configuration::new(Places::of(1));
    let ids = u32::from(DEVICE) << 16 | u32::from(VENDOR);
    assert_eq!(word(&configuration, 0), ids);
    assert_eq!(configuration.load(at(2, Width::Half), false) as u16, DEVICE);
    assert_eq!(configuration.load(at(0x3d, Width::Byte), false) as u8, 1);
    for (offset, width) in [
        (0x1000, Width::Word),
        (0x8000, Width::Half),
        (0xf_fffc, Width::Word),
        (u64::MAX, Width::Byte),
        (1, Width::Half),
        (2, Width::Word),
        (0, Width::Double),
    ] {
        assert_eq!(
            configuration.load(at(offset, width), true),
            u64::MAX,
            "{offset:#x}"
        );
    }
}

#[test]
fn commands_keep_what_exists() {
    let mut configuration = Configuration::new(Places::of(1));
    assert!(configuration.interrupts());
    configuration.store(at(COMMAND, Width::Half), 0xffff);
    assert_eq!(word(&configuration, COMMAND), 0x406);
    assert!(!configuration.interrupts());
    // The interrupt is shown although it is off: the guest's handler looks there.
    let shown = configuration.load(at(COMMAND, Width::Word), true);
    assert_eq!(shown, 0x406 | 1 << 19);
    configuration.store(at(COMMAND + 1, Width::Byte), 0);
    assert_eq!(word(&configuration, COMMAND), 6);
    assert!(configuration.interrupts());
    // Status is not written.
    configuration.store(at(COMMAND + 2, Width::Half), 0xffff);
    assert_eq!(word(&configuration, COMMAND), 6);
}

#[test]
fn wild_stores_change_little() {
    let mut random = splitmix::SplitMix64::new(7);
    let places = Places::of(2);
    let mut configuration = Configuration::new(places);
    let widths = [Width::Byte, Width::Half, Width::Word, Width::Double];
    for _ in 0..20_000 {
        let width = widths[random.below(4) as usize];
        let offset = match random.below(3) {
            0 => random.next(),
            1 => random.below(0x10_0000),
            _ => random.below(0x40),
        };
        configuration.store(at(offset, width), random.next());
        let _ = configuration.load(at(offset, width), random.below(2) == 0);
    }
    for register in REGIONS {
        configuration.store(at(register, Width::Word), 0);
    }
    let bases = [places.registers, places.rings, places.window];
    let bases = bases.map(|region| region.base().raw() as u32);
    assert_eq!(
        REGIONS.map(|register| word(&configuration, register)),
        bases
    );
    configuration.reset();
    assert_eq!(configuration, Configuration::new(places));
}

#[test]
fn properties_name_each_disk() {
    let exported = |number, name: &str, sectors| Exported {
        disk: DiskNumber(number),
        name: VmName::new(name).unwrap(),
        sectors,
    };
    let longest = "a123456789012345678901234567890";
    let disks = vec![exported(3, "data", 1 << 33 | 5), exported(4, longest, 7)];
    let device = ServingDevice::new(disks);
    let name = |disk: u64| -> Vec<u8> {
        let first = register::DISK + disk * register::DISK_BYTES;
        let words = (0..register::NAME_BYTES).step_by(4);
        let words = words.filter_map(|offset| device.property(first + offset));
        words.flat_map(u32::to_le_bytes).collect()
    };
    assert_eq!(&name(0)[..6], b"data\0\0");
    assert_eq!(name(1), [longest.as_bytes(), b"\0"].concat());
    let second = register::DISK + register::SECTORS;
    assert_eq!(device.property(second), Some(5));
    assert_eq!(device.property(second + 4), Some(2));
    assert_eq!(
        device.property(register::DISK + 2 * register::DISK_BYTES),
        None
    );
    assert_eq!((IDENTITY, VERSION), (u32::from_le_bytes(*b"PTSV"), 1));
}
