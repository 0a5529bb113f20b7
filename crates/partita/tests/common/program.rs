//! Bare-metal programs as ELF files.

/// Where they begin.
pub const BASE: u64 = 0x8000_0000;

/// A program of these instructions at [`BASE`], with symbols at these addresses.
pub fn elf(code: &[u32], symbols: &[(&str, u64)]) -> Vec<u8> {
    let mut code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    // Tables stand at multiples of eight.
    code.resize(code.len().next_multiple_of(8), 0);
    let (mut names, mut table) = (vec![0], vec![0; 24]);
    for (name, address) in symbols {
        table.extend((names.len() as u32).to_le_bytes());
        // Global, without a type, with an absolute value.
        table.extend([0x10, 0, 0xf1, 0xff]);
        table.extend(address.to_le_bytes());
        table.extend(0_u64.to_le_bytes());
        names.extend(name.bytes());
        names.push(0);
    }
    names.resize(names.len().next_multiple_of(8), 0);
    let code_at = 64 + 56;
    let table_at = code_at + code.len() as u64;
    let names_at = table_at + table.len() as u64;
    let sections_at = names_at + names.len() as u64;

    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([2, 0, 243, 0, 1, 0, 0, 0]); // executable, RISC-V, version 1
    for word in [BASE, 64, sections_at] {
        file.extend(word.to_le_bytes());
    }
    file.extend([0; 4]);
    for half in [64_u16, 56, 1, 64, 3, 2] {
        file.extend(half.to_le_bytes());
    }
    file.extend([1, 0, 0, 0, 7, 0, 0, 0]); // load, rwx; some room behind the code
    let room = 0x1000;
    for word in [code_at, BASE, BASE, code.len() as u64, room, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.extend(&code);
    file.extend(&table);
    file.extend(&names);
    let mut section = |kind: u32, at: u64, size: u64, link: u32, first: u32, entry: u64| {
        file.extend(0_u32.to_le_bytes());
        file.extend(kind.to_le_bytes());
        for word in [0, 0, at, size] {
            file.extend(u64::to_le_bytes(word));
        }
        file.extend(link.to_le_bytes());
        file.extend(first.to_le_bytes());
        for word in [1, entry] {
            file.extend(u64::to_le_bytes(word));
        }
    };
    section(0, 0, 0, 0, 0, 0);
    section(2, table_at, table.len() as u64, 2, 1, 24); // symbols
    section(3, names_at, names.len() as u64, 0, 0, 0); // their names
    file
}

/// `lui rd, value` with bits 31 to 12 of the value.
pub const fn lui(rd: u32, value: u32) -> u32 {
    (value & 0xffff_f000) | rd << 7 | 0x37
}

/// `auipc rd, 0` plus 4 KiB for each `pages`.
pub const fn auipc(rd: u32, pages: u32) -> u32 {
    pages << 12 | rd << 7 | 0x17
}

/// `addi rd, rs, value`.
pub const fn addi(rd: u32, rs: u32, value: i32) -> u32 {
    value.cast_unsigned() << 20 | rs << 15 | rd << 7 | 0x13
}

/// `slli rd, rs, shift`.
pub const fn slli(rd: u32, rs: u32, shift: u32) -> u32 {
    shift << 20 | rs << 15 | 1 << 12 | rd << 7 | 0x13
}

/// `sd value, 0(address)`.
pub const fn sd(value: u32, address: u32) -> u32 {
    value << 20 | address << 15 | 3 << 12 | 0x23
}

/// `sw value, 0(address)`.
pub const fn sw(value: u32, address: u32) -> u32 {
    value << 20 | address << 15 | 2 << 12 | 0x23
}

/// `wfi`.
pub const WFI: u32 = riscv::instruction::WFI;
/// A jump to itself.
pub const LOOP: u32 = 0x0000_006f;

/// A kernel's file by its header (Linux, `Documentation/arch/riscv/boot-image-header.rst`), which takes a MiB of RAM and
/// does nothing.
pub fn image() -> Vec<u8> {
    let mut image = vec![0; 4096];
    image[..4].copy_from_slice(&LOOP.to_le_bytes());
    image[16..24].copy_from_slice(&(1_u64 << 20).to_le_bytes());
    image[56..60].copy_from_slice(b"RSC\x05");
    image
}
