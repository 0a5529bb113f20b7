//! APLIC: AIA, chapter "Advanced Platform-Level Interrupt Controller", in MSI delivery mode.
//!
//! Source 10 is the UART's, whose transmitter-empty interrupt is a level that software controls;
//! the other sources used here have idle, low wires.

#![no_std]
#![no_main]

mod domain;
mod forward;

use conformance::csr::{self, *};
use conformance::device::{self, APLIC_MACHINE, APLIC_SUPERVISOR, IMSIC_MACHINE, IMSIC_SUPERVISOR};
use conformance::suite;
use conformance::suite::{Failure, gives, same};
use domain::*;
use forward::*;

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
