//! The board against its description, and images good and bad.

use super::*;
use crate::base::{Clock, Memory};
use crate::device::FlatMemory;

const MEBIBYTE: u64 = 1 << 20;

fn config() -> BoardConfig {
    let extensions = [
        "i", "m", "a", "f", "d", "c", "h", "zicbom", "zicboz", "sstc", "smaia", "ssaia",
    ];
    BoardConfig {
        harts: 2,
        memory: 256 * MEBIBYTE,
        guest_files: 7,
        interrupt_ids: 255,
        virtio_slots: 8,
        pci: None,
        clock: Clock::new(1_000_000_000, 10_000_000),
        isa: Isa {
            base: "rv64i".to_owned(),
            extensions: extensions.map(str::to_owned).to_vec(),
            mmu: "riscv,sv48".to_owned(),
            cache_block: 64,
            vmid_bits: VmidBits::default(),
            pmp_entries: PmpEntries::default(),
            vector_length: Default::default(),
        },
        bootargs: "console=ttyS0".to_owned(),
        seed: 7,
    }
}

/// Memory of the right size in which only what is touched takes room, as the host sees to.
fn memory(config: &BoardConfig) -> FlatMemory {
    FlatMemory::new(map::RAM, config.memory as usize)
}

fn words(memory: &mut FlatMemory, address: u64, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; count * 8];
    memory.load(address, &mut bytes).expect("RAM");
    bytes
        .chunks(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect()
}

#[test]
fn boards_that_cannot_be_are_refused() {
    type Change = fn(&mut BoardConfig);
    let changes: [Change; 12] = [
        |board| board.harts = 0,
        |board| board.harts = 513,
        |board| board.guest_files = 64,
        |board| board.interrupt_ids = 64,
        |board| board.interrupt_ids = 0,
        |board| board.interrupt_ids = 2111,
        |board| board.virtio_slots = 9,
        |board| board.memory = 0,
        |board| board.memory = MEBIBYTE * 64 + 1,
        |board| board.memory = !0xfff,
        |board| (board.harts, board.guest_files) = (512, 63),
        |board| board.bootargs = "a\0b".to_owned(),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut board = config();
        change(&mut board);
        assert!(device_tree(&board, None).is_err(), "change {index}");
    }
    for guest_files in [0, 1, 7, 63] {
        assert!(
            device_tree(
                &BoardConfig {
                    guest_files,
                    harts: 64,
                    ..config()
                },
                None
            )
            .is_ok()
        );
    }
}

/// §3.6 of the AIA specification: a hart's supervisor-level and guest files take a power of two.
#[test]
fn guest_index_bits_number_all_files() {
    for (guest_files, bits) in [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 2),
        (4, 3),
        (7, 3),
        (8, 4),
        (63, 6),
    ] {
        assert_eq!(
            map::guest_index_bits(guest_files),
            bits,
            "{guest_files} guest files"
        );
    }
}

/// Where QEMU 10.0 puts things, by `info roms`, for a 20 MiB kernel and a 30 MiB initrd.
#[test]
fn images_are_where_qemu_puts_them() {
    let kernel = vec![0x11; 20 * MEBIBYTE as usize];
    let initrd = vec![0x22; 30 * MEBIBYTE as usize];
    for (size, initrd_at, tree_at) in [
        (128, 0x8420_0000, 0x87e0_0000),
        (256, 0x8820_0000, 0x8fe0_0000),
        (300, 0x8980_0000, 0x92a0_0000),
        (512, 0x9020_0000, 0x9fe0_0000),
    ] {
        let board = BoardConfig {
            memory: size * MEBIBYTE,
            ..config()
        };
        let mut ram = memory(&board);
        let images = Images {
            firmware: &[0x33; 0x4_2868],
            kernel: Some(&kernel),
            initrd: Some(&initrd),
        };
        let boot = load(&board, &images, &mut ram).expect("a board");
        assert_eq!(
            (boot.entry, boot.device_tree),
            (0x8000_0000, tree_at),
            "{size} MiB"
        );
        assert_eq!(boot.program.entry, 0x8020_0000);
        assert_eq!(words(&mut ram, 0x8020_0000, 1), [0x1111_1111_1111_1111]);
        assert_eq!(words(&mut ram, initrd_at, 1), [0x2222_2222_2222_2222]);
        assert_eq!(words(&mut ram, initrd_at - 8, 1), [0]);
        // The magic number of a flattened device tree.
        let mut magic = [0; 4];
        ram.load(tree_at, &mut magic).expect("RAM");
        assert_eq!(magic, [0xd0, 0x0d, 0xfe, 0xed]);
    }
}

/// The words after the reset vector's six instructions: entry, device tree, `fw_dynamic_info`.
#[test]
fn reset_vector_passes_firmware_its_arguments() {
    let board = config();
    let images = Images {
        firmware: &[1; 64],
        kernel: Some(&[2; 64]),
        initrd: None,
    };
    let boot = load(&board, &images, &mut memory(&board)).expect("a board");
    let mut rom = FlatMemory::new(map::ROM.base, map::ROM.size as usize);
    rom.store(map::ROM.base, &boot.rom).expect("the boot ROM");
    assert_eq!(
        words(&mut rom, map::ROM.base + 24, 2),
        [boot.entry, boot.device_tree]
    );
    let magic = u64::from(u32::from_be_bytes(*b"IBSO"));
    assert_eq!(magic, 0x4942_534f);
    let info = words(&mut rom, boot.dynamic_info, 6);
    assert_eq!(info, [magic, 2, 0x8020_0000, 1, 0, 0]);
}

#[test]
fn images_that_do_not_fit_are_refused() {
    let board = BoardConfig {
        memory: 8 * MEBIBYTE,
        ..config()
    };
    let large = vec![1; 7 * MEBIBYTE as usize];
    let middle = vec![1; 5 * MEBIBYTE as usize];
    for (kernel, initrd) in [
        (&large, None),
        (&middle, Some(&middle)),
        (&middle, Some(&large)),
    ] {
        let images = Images {
            firmware: &[1; 64],
            kernel: Some(kernel),
            initrd: initrd.map(|bytes| bytes.as_slice()),
        };
        let result = load(&board, &images, &mut memory(&board));
        assert!(matches!(
            result,
            Err(BoardError::DoesNotFit { .. } | BoardError::Overlap { .. })
        ));
    }
}

#[test]
fn files_that_are_no_kernels_are_refused() {
    let board = config();
    let at = |offset: usize, magic: &[u8]| {
        let mut bytes = vec![0; 0x1000];
        bytes[offset..offset + magic.len()].copy_from_slice(magic);
        bytes
    };
    // A RISC-V `Image` with the PE header of an EFI application, cut off within its section.
    let mut truncated = at(56, b"RSC\x05");
    for (offset, bytes) in [
        (0, &b"MZ"[..]),
        (0x3c, &[0x40]),
        (0x40 + 6, &[1, 0]),
        (0x40 + 24 + 16, &[0, 0x10, 0, 0]),
        (0x40 + 24 + 20, &[1, 0, 0, 0]),
    ] {
        truncated[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    let whole = [truncated.clone(), vec![0]].concat();
    let kernel = |bytes: &[u8]| {
        let images = Images {
            firmware: &[1; 64],
            kernel: Some(bytes),
            initrd: None,
        };
        load(&board, &images, &mut memory(&board)).map(|_| ())
    };
    assert_eq!(kernel(&whole), Ok(()));
    assert!(matches!(
        kernel(&truncated),
        Err(BoardError::Truncated { .. })
    ));
    assert!(matches!(kernel(&[]), Err(BoardError::Truncated { .. })));
    for foreign in [
        at(0, &[0x1f, 0x8b]),
        at(0, &[0x28, 0xb5, 0x2f, 0xfd]),
        at(4, b"zimg"),
        at(56, b"ARM\x64"),
        at(0x202, b"HdrS"),
    ] {
        assert!(matches!(
            kernel(&foreign),
            Err(BoardError::ForeignImage { .. })
        ));
    }
}

/// A minimal ELF file by the System V ABI: header, one program header, its contents.
fn elf(machine: u16, address: u64, contents: &[u8], memory_size: u64) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    bytes.extend(2_u16.to_le_bytes());
    bytes.extend(machine.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    for word in [address + 4, 64, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 0, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    for word in [1_u32, 5] {
        bytes.extend(word.to_le_bytes());
    }
    for word in [
        120,
        address,
        address,
        contents.len() as u64,
        memory_size,
        4096,
    ] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(contents);
    bytes
}

const RISCV: u16 = 243;
const X86_64: u16 = 62;

#[test]
fn elf_files_load_at_physical_addresses() {
    let board = config();
    let mut ram = memory(&board);
    let file = elf(RISCV, 0x8010_0000, &[7; 16], 0x2000);
    let boot = load_bare(&board, &file, &mut ram).expect("a program");
    assert_eq!(boot.entry, 0x8010_0004);
    assert_eq!(
        (boot.program.start, boot.program.end),
        (0x8010_0000, 0x8010_2000)
    );
    assert_eq!(words(&mut ram, 0x8010_0008, 2), [0x0707_0707_0707_0707, 0]);
}

#[test]
fn damaged_and_foreign_elf_files_are_refused() {
    let board = config();
    let good = elf(RISCV, map::RAM, &[7; 16], 0x2000);
    let load = |file: &[u8]| load_bare(&board, file, &mut memory(&board)).map(|_| ());
    assert_eq!(load(&good), Ok(()));
    for length in 0..good.len() {
        assert!(
            load(&good[..length]).is_err(),
            "{length} bytes of {}",
            good.len()
        );
    }
    let foreign = load(&elf(X86_64, map::RAM, &[7; 16], 0x2000));
    assert!(matches!(foreign, Err(BoardError::ForeignImage { .. })));
    let mut narrow = good.clone();
    narrow[4] = 1;
    assert!(matches!(
        load(&narrow),
        Err(BoardError::ForeignImage { .. })
    ));
    for (address, size) in [(0x1000, 16), (map::RAM, u64::MAX), (u64::MAX - 15, 16)] {
        let outside = load(&elf(RISCV, address, &[7; 16], size));
        assert!(
            matches!(outside, Err(BoardError::DoesNotFit { .. })),
            "{size} at {address:#x}"
        );
    }
    let shrinking = load(&elf(RISCV, map::RAM, &[7; 16], 8));
    assert!(matches!(shrinking, Err(BoardError::DamagedElf { .. })));
}

#[test]
fn the_same_seed_gives_the_same_tree() {
    let tree = |seed| device_tree(&BoardConfig { seed, ..config() }, None).expect("a tree");
    assert_eq!(tree(1), tree(1));
    assert_ne!(tree(1), tree(2));
}
