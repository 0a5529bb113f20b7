//! APLIC: AIA, chapter "Advanced Platform-Level Interrupt Controller", in MSI delivery mode.
//!
//! Source 10 is the UART's, whose transmitter-empty interrupt is a level that software controls;
//! the other sources used here have idle, low wires.

#![no_std]
#![no_main]

use conformance::csr::{self, *};
use conformance::device::{self, APLIC_MACHINE, APLIC_SUPERVISOR, IMSIC_MACHINE, IMSIC_SUPERVISOR};
use conformance::suite;
use conformance::suite::{Failure, gives, same};

suite!(
    "aplic",
    domaincfg_is_warl: "domaincfg reads 0x80 in its top byte and holds IE",
    sourcecfg_is_warl: "sourcecfg holds the defined modes and no reserved one",
    no_such_source: "sources that do not exist are read-only zero",
    inactive_is_zero: "an inactive source has no pending, enable or target bits",
    leaf_cannot_delegate: "sourcecfg of a leaf domain becomes zero when D is written",
    delegation: "a source appears in the child while the root delegates it",
    pending_by_software: "setip, setipnum, setipnum_le, in_clrip and clripnum on a detached source",
    enable_by_software: "setie, setienum, clrie and clrienum",
    level_needs_its_input: "software cannot set a level-sensitive source whose input is low",
    inverted_level: "an inverted level-sensitive source is asserted while its wire is low",
    address_registers: "mmsiaddrcfg and smsiaddrcfg hold addresses at machine level alone",
    target_fields: "target holds hart, guest and identity; no guest at machine level",
    forward_to_machine: "the machine-level domain forwards to machine-level files",
    forward_to_supervisor: "the supervisor-level domain forwards to supervisor-level files",
    forward_to_guest: "the supervisor-level domain forwards to guest files",
    forwarding_conditions: "a message needs pending, enabled and IE, and clears pending",
    level_is_sent_once: "a level is sent once, and again when setipnum asks for it",
    level_falls: "a level that falls takes its pending bit along",
    edge_counts_transitions: "a rising edge is sent once a transition",
    genmsi_sends: "genmsi sends its message, IE or not, and is not busy after it",
    widths: "registers are words",
    lock: "mmsiaddrcfgh.L locks the address registers",
);

type Outcome = Result<(), Failure>;

const M: usize = APLIC_MACHINE;
const S: usize = APLIC_SUPERVISOR;

const SOURCECFG: usize = 0;
const MMSIADDRCFG: usize = 0x1bc0;
const MMSIADDRCFGH: usize = 0x1bc4;
const SMSIADDRCFG: usize = 0x1bc8;
const SMSIADDRCFGH: usize = 0x1bcc;
const SETIP: usize = 0x1c00;
const SETIPNUM: usize = 0x1cdc;
const IN_CLRIP: usize = 0x1d00;
const CLRIPNUM: usize = 0x1ddc;
const SETIE: usize = 0x1e00;
const SETIENUM: usize = 0x1edc;
const CLRIE: usize = 0x1f00;
const CLRIENUM: usize = 0x1fdc;
const SETIPNUM_LE: usize = 0x2000;
const GENMSI: usize = 0x3000;
const TARGET: usize = 0x3000;

const IE: u32 = 1 << 8;
const DELEGATE: u32 = 1 << 10;
const DETACHED: u32 = 1;
const EDGE1: u32 = 4;
const LEVEL1: u32 = 6;
const LEVEL0: u32 = 7;

/// A source whose wire nobody drives: past those of the board's devices.
const IDLE: u32 = 90;
/// The UART's source.
const UART: u32 = 10;

fn read(domain: usize, offset: usize) -> u64 {
    device::read(domain + offset).into()
}

fn write(domain: usize, offset: usize, value: u32) {
    device::write(domain + offset, value);
}

fn configure(domain: usize, source: u32, value: u32) {
    write(domain, SOURCECFG + 4 * source as usize, value);
}

fn target(domain: usize, source: u32, value: u32) {
    write(domain, TARGET + 4 * source as usize, value);
}

/// The bit of a source in one of the arrays.
fn bit(domain: usize, array: usize, source: u32) -> u64 {
    read(domain, array + source as usize / 32 * 4) >> (source % 32) & 1
}

/// Makes a source inactive everywhere but in `domain`, where it gets `mode`.
fn claim(domain: usize, source: u32, mode: u32) {
    configure(M, source, 0);
    if domain == S {
        configure(M, source, DELEGATE);
    }
    configure(domain, source, mode);
}

fn release(domain: usize, source: u32) {
    write(domain, 0, 0);
    configure(domain, source, 0);
    configure(M, source, 0);
}

/// The addresses of QEMU's board: hart bits 1, pages of 4 KiB and of 32 KiB a hart.
fn set_addresses() {
    write(M, MMSIADDRCFG, (IMSIC_MACHINE >> 12) as u32);
    write(M, MMSIADDRCFGH, 1 << 12);
    write(M, SMSIADDRCFG, (IMSIC_SUPERVISOR >> 12) as u32);
    write(M, SMSIADDRCFGH, device::guest_index_bits() << 20);
}

/// The transmitter-empty interrupt of the UART, high or low.
fn drive_uart(high: bool) {
    device::write_uart(1, if high { 2 } else { 0 });
}

fn open_machine() {
    for (select, value) in [(0x80, 0), (0xc0, u64::MAX), (0x72, 0), (0x70, 1)] {
        let _ = write_indirect::<MISELECT, MIREG>(select, value);
    }
}

fn open_supervisor() {
    for (select, value) in [(0x80, 0), (0xc0, u64::MAX), (0x72, 0), (0x70, 1)] {
        let _ = write_indirect::<SISELECT, SIREG>(select, value);
    }
}

/// Waits for a message at the supervisor-level file, for a while, and claims it.
fn message() -> u64 {
    (0..1000)
        .find_map(|_| csr::swap::<STOPEI>(0).ok().filter(|&top| top != 0))
        .unwrap_or(0)
        >> 16
}

fn domaincfg_is_warl() -> Outcome {
    for domain in [M, S] {
        write(domain, 0, IE);
        same("domaincfg but for DM", read(domain, 0) & !4, 0x8000_0100)?;
        write(domain, 0, 0);
        same("domaincfg but for DM", read(domain, 0) & !4, 0x8000_0000)?;
        // All the rest is for MSI delivery mode.
        write(domain, 0, 4);
        same("DM", read(domain, 0) & 4, 4)?;
    }
    Ok(())
}

fn sourcecfg_is_warl() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, 0);
        for mode in [DETACHED, EDGE1, 5, LEVEL1, LEVEL0] {
            configure(domain, IDLE, mode);
            same("sourcecfg", read(domain, 4 * IDLE as usize), mode.into())?;
        }
        for reserved in [2, 3] {
            configure(domain, IDLE, reserved);
            let mode = read(domain, 4 * IDLE as usize);
            same("a reserved mode", u64::from(mode == 2 || mode == 3), 0)?;
        }
        release(domain, IDLE);
    }
    Ok(())
}

fn no_such_source() -> Outcome {
    for source in [97, 1023] {
        configure(M, source, EDGE1);
        same("sourcecfg", read(M, 4 * source as usize), 0)?;
        target(M, source, 1);
        same("target", read(M, TARGET + 4 * source as usize), 0)?;
    }
    write(M, SETIPNUM, 97);
    write(M, SETIENUM, 97);
    same("setip[3]", read(M, SETIP + 12), 0)?;
    same("setie[3]", read(M, SETIE + 12), 0)
}

fn inactive_is_zero() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, 0);
        write(domain, SETIPNUM, IDLE);
        write(domain, SETIENUM, IDLE);
        target(domain, IDLE, 5);
        same("pending", bit(domain, SETIP, IDLE), 0)?;
        same("enabled", bit(domain, SETIE, IDLE), 0)?;
        same("target", read(domain, TARGET + 4 * IDLE as usize), 0)?;
        configure(domain, IDLE, DETACHED);
        write(domain, SETIPNUM, IDLE);
        write(domain, SETIENUM, IDLE);
        configure(domain, IDLE, 0);
        same(
            "pending after it went inactive",
            bit(domain, SETIP, IDLE),
            0,
        )?;
        same(
            "enabled after it went inactive",
            bit(domain, SETIE, IDLE),
            0,
        )?;
        configure(domain, IDLE, DETACHED);
        same(
            "pending when it is active again",
            bit(domain, SETIP, IDLE),
            0,
        )?;
        same(
            "enabled when it is active again",
            bit(domain, SETIE, IDLE),
            0,
        )?;
        release(domain, IDLE);
    }
    Ok(())
}

fn leaf_cannot_delegate() -> Outcome {
    claim(S, IDLE, EDGE1);
    configure(S, IDLE, DELEGATE | EDGE1);
    let found = read(S, 4 * IDLE as usize);
    release(S, IDLE);
    same("sourcecfg", found, 0)
}

fn delegation() -> Outcome {
    claim(M, IDLE, EDGE1);
    configure(S, IDLE, EDGE1);
    same(
        "the child's sourcecfg without delegation",
        read(S, 4 * IDLE as usize),
        0,
    )?;
    configure(M, IDLE, DELEGATE);
    same(
        "the root's sourcecfg",
        read(M, 4 * IDLE as usize),
        DELEGATE.into(),
    )?;
    same(
        "the child's sourcecfg at first",
        read(S, 4 * IDLE as usize),
        0,
    )?;
    configure(S, IDLE, EDGE1);
    same(
        "the child's sourcecfg",
        read(S, 4 * IDLE as usize),
        EDGE1.into(),
    )?;
    write(M, SETIPNUM, IDLE);
    same("pending in the root", bit(M, SETIP, IDLE), 0)?;
    configure(M, IDLE, 0);
    same(
        "the child's sourcecfg after it",
        read(S, 4 * IDLE as usize),
        0,
    )
}

fn pending_by_software() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, DETACHED);
        let word = IDLE as usize / 32 * 4;
        let mask = 1 << (IDLE % 32);
        for (set, value) in [(SETIP + word, mask), (SETIPNUM, IDLE), (SETIPNUM_LE, IDLE)] {
            for (clear, back) in [(IN_CLRIP + word, mask), (CLRIPNUM, IDLE)] {
                write(domain, set, value);
                same("pending after it was set", bit(domain, SETIP, IDLE), 1)?;
                write(domain, clear, back);
                same("pending after it was cleared", bit(domain, SETIP, IDLE), 0)?;
            }
        }
        for write_only in [SETIPNUM, CLRIPNUM, SETIPNUM_LE] {
            same("a write-only register", read(domain, write_only), 0)?;
        }
        release(domain, IDLE);
    }
    Ok(())
}

fn enable_by_software() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, DETACHED);
        let word = IDLE as usize / 32 * 4;
        let mask = 1 << (IDLE % 32);
        for (set, value) in [(SETIE + word, mask), (SETIENUM, IDLE)] {
            for (clear, back) in [(CLRIE + word, mask), (CLRIENUM, IDLE)] {
                write(domain, set, value);
                same("enabled after it was set", bit(domain, SETIE, IDLE), 1)?;
                write(domain, clear, back);
                same("enabled after it was cleared", bit(domain, SETIE, IDLE), 0)?;
            }
        }
        for write_only in [SETIENUM, CLRIENUM, CLRIE + word] {
            same("a write-only register", read(domain, write_only), 0)?;
        }
        release(domain, IDLE);
    }
    Ok(())
}

fn level_needs_its_input() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, LEVEL1);
        same("in_clrip", bit(domain, IN_CLRIP, IDLE), 0)?;
        write(domain, SETIPNUM, IDLE);
        same("pending after setipnum", bit(domain, SETIP, IDLE), 0)?;
        write(domain, SETIP + IDLE as usize / 32 * 4, 1 << (IDLE % 32));
        same("pending after setip", bit(domain, SETIP, IDLE), 0)?;
        release(domain, IDLE);
    }
    Ok(())
}

fn inverted_level() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, LEVEL0);
        same("in_clrip", bit(domain, IN_CLRIP, IDLE), 1)?;
        write(domain, SETIPNUM, IDLE);
        same("pending after setipnum", bit(domain, SETIP, IDLE), 1)?;
        write(domain, CLRIPNUM, IDLE);
        same("pending after clripnum", bit(domain, SETIP, IDLE), 0)?;
        release(domain, IDLE);
    }
    Ok(())
}

fn address_registers() -> Outcome {
    set_addresses();
    same("mmsiaddrcfg", read(M, MMSIADDRCFG), 0x24000)?;
    same("mmsiaddrcfgh", read(M, MMSIADDRCFGH), 1 << 12)?;
    same("smsiaddrcfg", read(M, SMSIADDRCFG), 0x28000)?;
    same(
        "smsiaddrcfgh",
        read(M, SMSIADDRCFGH),
        u64::from(device::guest_index_bits()) << 20,
    )?;
    for offset in [MMSIADDRCFG, MMSIADDRCFGH, SMSIADDRCFG, SMSIADDRCFGH] {
        write(S, offset, u32::MAX);
        same("at supervisor level", read(S, offset), 0)?;
    }
    Ok(())
}

fn target_fields() -> Outcome {
    claim(S, IDLE, DETACHED);
    target(S, IDLE, 1 << 18 | 7 << 12 | 0xff);
    let supervisor = read(S, TARGET + 4 * IDLE as usize);
    release(S, IDLE);
    same(
        "target at supervisor level",
        supervisor,
        1 << 18 | 7 << 12 | 0xff,
    )?;
    claim(M, IDLE, DETACHED);
    target(M, IDLE, 1 << 18 | 7 << 12 | 0xff);
    let machine = read(M, TARGET + 4 * IDLE as usize);
    release(M, IDLE);
    same("target at machine level", machine, 1 << 18 | 0xff)
}

fn forward_to_machine() -> Outcome {
    set_addresses();
    open_machine();
    claim(M, IDLE, DETACHED);
    target(M, IDLE, 33);
    write(M, SETIENUM, IDLE);
    write(M, 0, IE | 4);
    write(M, SETIPNUM, IDLE);
    let top = (0..1000).find_map(|_| csr::swap::<MTOPEI>(0).ok().filter(|&top| top != 0));
    release(M, IDLE);
    same("mtopei", top.unwrap_or(0), 33 << 16 | 33)
}

fn forward_to_supervisor() -> Outcome {
    set_addresses();
    open_supervisor();
    claim(S, IDLE, DETACHED);
    target(S, IDLE, 34);
    write(S, SETIENUM, IDLE);
    write(S, 0, IE | 4);
    write(S, SETIPNUM, IDLE);
    let found = message();
    release(S, IDLE);
    same("the identity", found, 34)
}

fn forward_to_guest() -> Outcome {
    set_addresses();
    claim(S, IDLE, DETACHED);
    write(S, SETIENUM, IDLE);
    write(S, 0, IE | 4);
    for guest in 1..=7 {
        let _ = csr::clear::<HSTATUS>(0x3f << 12);
        let _ = csr::set::<HSTATUS>(guest << 12);
        for (select, value) in [(0x80, 0), (0xc0, u64::MAX), (0x70, 1)] {
            let _ = write_indirect::<VSISELECT, VSIREG>(select, value);
        }
        target(S, IDLE, (guest as u32) << 12 | 35);
        write(S, SETIPNUM, IDLE);
        let raised = (0..1000).any(|_| csr::read::<HGEIP>() == Ok(1 << guest));
        same("hgeip", raised.into(), 1)?;
        gives("vstopei", csr::swap::<VSTOPEI>(0), 35 << 16 | 35)?;
    }
    release(S, IDLE);
    Ok(())
}

fn forwarding_conditions() -> Outcome {
    set_addresses();
    open_supervisor();
    claim(S, IDLE, DETACHED);
    target(S, IDLE, 36);
    write(S, SETIPNUM, IDLE);
    same("pending before", bit(S, SETIP, IDLE), 1)?;
    write(S, 0, IE | 4);
    same("a message that is not enabled", message(), 0)?;
    write(S, 0, 4);
    write(S, SETIENUM, IDLE);
    same("a message without IE", message(), 0)?;
    same("pending still", bit(S, SETIP, IDLE), 1)?;
    write(S, 0, IE | 4);
    same("the message", message(), 36)?;
    same("pending after it", bit(S, SETIP, IDLE), 0)?;
    release(S, IDLE);
    Ok(())
}

/// Routes the UART's interrupt to identity 37 of the supervisor-level file.
fn route_uart(mode: u32) {
    set_addresses();
    open_supervisor();
    drive_uart(false);
    claim(S, UART, mode);
    target(S, UART, 37);
    write(S, SETIENUM, UART);
    write(S, 0, IE | 4);
}

fn release_uart() {
    drive_uart(false);
    release(S, UART);
}

fn level_is_sent_once() -> Outcome {
    route_uart(LEVEL1);
    drive_uart(true);
    same("in_clrip", bit(S, IN_CLRIP, UART), 1)?;
    same("the message", message(), 37)?;
    same("pending after it", bit(S, SETIP, UART), 0)?;
    same("a second message", message(), 0)?;
    write(S, SETIPNUM, UART);
    same("the message that setipnum asked for", message(), 37)?;
    drive_uart(false);
    write(S, SETIPNUM, UART);
    same("a message for a low input", message(), 0)?;
    drive_uart(true);
    same("the message of the next rise", message(), 37)?;
    release_uart();
    Ok(())
}

fn level_falls() -> Outcome {
    route_uart(LEVEL1);
    write(S, CLRIENUM, UART);
    drive_uart(true);
    same("pending", bit(S, SETIP, UART), 1)?;
    drive_uart(false);
    same("pending after the fall", bit(S, SETIP, UART), 0)?;
    release_uart();
    Ok(())
}

fn edge_counts_transitions() -> Outcome {
    route_uart(EDGE1);
    for _ in 0..3 {
        drive_uart(true);
        same("the message of a rise", message(), 37)?;
        drive_uart(false);
        same("a message of a fall", message(), 0)?;
    }
    write(S, CLRIENUM, UART);
    drive_uart(true);
    drive_uart(false);
    same("pending outlives the input", bit(S, SETIP, UART), 1)?;
    release_uart();
    Ok(())
}

fn genmsi_sends() -> Outcome {
    set_addresses();
    open_supervisor();
    write(S, 0, 4);
    write(S, GENMSI, 38);
    same("the message", message(), 38)?;
    let idle = (0..1000).any(|_| read(S, GENMSI) & 1 << 12 == 0);
    same("not busy", idle.into(), 1)
}

fn widths() -> Outcome {
    // What other widths do is open, but they have no effect.
    let before = read(S, 0);
    // SAFETY: a register of a device; a fault is skipped.
    unsafe { ((S + 1) as *mut u8).write_volatile(1) };
    same("domaincfg after a write of a byte", read(S, 0), before)
}

/// The last test: a locked register stays so.
fn lock() -> Outcome {
    set_addresses();
    write(M, MMSIADDRCFGH, 1 << 31 | 1 << 12);
    same("L", read(M, MMSIADDRCFGH) >> 31, 1)?;
    for offset in [MMSIADDRCFG, MMSIADDRCFGH, SMSIADDRCFG, SMSIADDRCFGH] {
        let before = read(M, offset);
        write(M, offset, 0x7654_3210);
        same("a locked register", read(M, offset), before)?;
    }
    forward_to_supervisor()
}
