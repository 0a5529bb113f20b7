//! Pointer masking, by modes, what registers keep, and which address spaces share translations.

mod control_flow;
mod delegation;
mod double_traps;
mod options;
mod triggers;

use riscv::csr::number::{
    HENVCFG, HGATP, HLOCKHOLDER, HSTATUS, MENVCFG, MSECCFG, MSTATUS, PMPADDR0, PMPCFG0, SATP,
    SENVCFG, SIP,
};

use super::{Cause, Exception, Hart, Mode, Privilege};
use crate::base::Fence;
use crate::extension::VmidBits;
use crate::machine::{Config, Machine};
use crate::system::System;

const RAM: u64 = 0x8000_0000;
/// An address in RAM whose upper seven bits, and with `<< 48` its upper sixteen, say something else.
const TAGGED: u64 = RAM | 0x55 << 57;
const VALUE: u64 = 0x0123_4567_89ab_cdef;

const PMM: u64 = 2 << 32;
const HUPMM: u64 = 2 << 48;
const HU: u64 = 1 << 9;
const MXR: u64 = 1 << 19;

const USER: Mode = Mode::new(Privilege::User, false);
const VIRTUAL_USER: Mode = Mode::new(Privilege::User, true);
const MODES: [Mode; 5] = [
    Mode::MACHINE,
    Mode::HYPERVISOR,
    USER,
    Mode::VIRTUAL_SUPERVISOR,
    VIRTUAL_USER,
];

/// A machine with everything permitted and a value at the start of RAM.
fn machine() -> Machine {
    let mut config = Config::default();
    config.board.memory = 4 << 20;
    let mut machine = Machine::new(config).expect("a machine");
    let csrs = &mut machine.harts[0].csrs;
    csrs.pmp.set_address(0, u64::MAX);
    csrs.pmp.set_configuration(0, 0x1f);
    csrs.mstateen[0] = u64::MAX;
    let stored = machine.system.memory.store_scalar(RAM, VALUE, 0);
    assert!(stored.is_some());
    machine
}

/// Writes a CSR in M-mode and gives what it reads as then.
fn write(hart: &mut Hart, system: &mut System, number: u16, value: u64) -> u64 {
    let mode = hart.mode();
    hart.set_mode(Mode::MACHINE);
    hart.x[5] = value;
    for raw in [0x2_9073, 0x2373].map(|word| u32::from(number) << 20 | word) {
        assert!(hart.execute_csr(raw, system).is_ok(), "{number:#x}");
    }
    hart.set_mode(mode);
    hart.x[6]
}

fn load(hart: &mut Hart, system: &mut System, address: u64) -> Result<u64, (Cause, u64)> {
    let loaded = hart.load_slow::<u64>(system, address, 1);
    loaded.map_err(|_| (hart.exception.cause, hart.exception.value))
}

#[test]
fn modes_are_masked_by_the_register_above() {
    let registers = [MSECCFG, MENVCFG, SENVCFG, HENVCFG, SENVCFG];
    for (mode, register) in MODES.into_iter().zip(registers) {
        for (other, masks) in [(register, true), (MSECCFG, false), (MENVCFG, false)] {
            if other == register && !masks {
                continue;
            }
            let mut machine = machine();
            let (hart, system) = (&mut machine.harts[0], &mut machine.system);
            hart.set_mode(mode);
            assert_eq!(write(hart, system, other, PMM), PMM);
            let expected = if masks {
                Ok(VALUE)
            } else {
                Err((Cause::LoadAccess, TAGGED))
            };
            let name = mode.name();
            assert_eq!(load(hart, system, TAGGED), expected, "{name} {other:#x}");
            assert_eq!(load(hart, system, RAM), Ok(VALUE), "{name} {other:#x}");
        }
    }
}

#[test]
fn faults_name_addresses_without_tags() {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    write(hart, system, MSECCFG, PMM);
    let nowhere = 0x4000_0000;
    let fault = load(hart, system, nowhere | 0x7f << 57);
    assert_eq!(fault, Err((Cause::LoadAccess, nowhere)));
}

#[test]
fn reserved_encodings_are_not_kept() {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    for number in [MSECCFG, MENVCFG, SENVCFG, HENVCFG] {
        assert_eq!(write(hart, system, number, 3 << 32), 3 << 32);
        assert_eq!(write(hart, system, number, 1 << 32), 3 << 32);
        assert_eq!(write(hart, system, number, 0), 0);
    }
    let field = 3 << 48;
    assert_eq!(write(hart, system, HSTATUS, field) & field, field);
    assert_eq!(write(hart, system, HSTATUS, 1 << 48) & field, field);
}

#[test]
fn vmids_have_the_lowest_of_their_bits() {
    for (bits, most) in [(0, 0), (3, 7), (14, 0x3fff)] {
        let mut config = Config::default();
        config.board.memory = 4 << 20;
        config.board.isa.vmid_bits = VmidBits::new(bits);
        let mut machine = Machine::new(config).expect("a machine");
        let (hart, system) = (&mut machine.harts[0], &mut machine.system);
        let read = write(hart, system, HGATP, 8 << 60 | 0x3fff << 44 | 0x80000);
        assert_eq!(read, 8 << 60 | most << 44 | 0x80000, "{bits} bits");
    }
}

/// Tickets of a lock are `next << 16 | owner`.
#[test]
fn holder_and_turn_are_readable_where_offered() {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    hart.extension.present.lock_holder = true;
    let lock = RAM + 0x100;
    let store = |hart: &mut Hart, system: &mut System, mode: Mode, vmid: u64, value: u32| {
        write(hart, system, HGATP, 8 << 60 | vmid << 44);
        hart.set_mode(mode);
        hart.finish_store(system, lock, value, 0).expect("a store");
        write(hart, system, HLOCKHOLDER, lock)
    };
    // Nobody has drawn a ticket since the first question.
    assert_eq!(write(hart, system, HLOCKHOLDER, lock), 0);
    let guest = Mode::VIRTUAL_SUPERVISOR;
    assert_eq!(store(hart, system, guest, 3, 0x1_0000), 3);
    assert_eq!(store(hart, system, guest, 5, 0x2_0000), 3, "5 waits");
    assert_eq!(store(hart, system, guest, 3, 0x2_0001), 5, "its turn");
    assert_eq!(store(hart, system, guest, 5, 0x2_0002), 0, "free");
    // A store of the hypervisor is no vCPU's, whatever hgatp holds.
    assert_eq!(store(hart, system, Mode::HYPERVISOR, 3, 0x3_0002), 0);
    // Addresses without memory have no holder.
    assert_eq!(write(hart, system, HLOCKHOLDER, 0x1000), 0);
}

#[test]
fn nothing_is_masked_under_mxr() {
    for mode in MODES {
        let mut machine = machine();
        let (hart, system) = (&mut machine.harts[0], &mut machine.system);
        hart.set_mode(mode);
        for number in [MSECCFG, MENVCFG, SENVCFG, HENVCFG] {
            write(hart, system, number, PMM);
        }
        write(hart, system, MSTATUS, MXR);
        let masked = load(hart, system, TAGGED) == Ok(VALUE);
        // In M-mode MXR is never in effect.
        assert_eq!(masked, mode == Mode::MACHINE, "{}", mode.name());
    }
}

#[test]
fn guest_loads_take_the_guests_masking() {
    const HLV_D: u32 = 0x6c02_c373;
    const HLVX_WU: u32 = 0x6832_c373;
    // Mode, register with PMM, and whether HLV.D as though in VU-mode is masked.
    for (mode, number, value, masked) in [
        (Mode::HYPERVISOR, SENVCFG, PMM, true),
        (Mode::HYPERVISOR, MENVCFG, PMM, false),
        (Mode::HYPERVISOR, HSTATUS, HUPMM | HU, false),
        (USER, SENVCFG, PMM, false),
        (USER, HSTATUS, HUPMM | HU, true),
    ] {
        let mut machine = machine();
        let (hart, system) = (&mut machine.harts[0], &mut machine.system);
        hart.set_mode(mode);
        write(hart, system, HSTATUS, HU);
        write(hart, system, number, value);
        for (raw, masked) in [(HLV_D, masked), (HLVX_WU, false)] {
            hart.x[5] = TAGGED;
            let done = hart.access_guest(raw, system);
            assert_eq!(done.is_ok(), masked, "{} {number:#x}", mode.name());
        }
    }
}

#[test]
fn hlvx_needs_both_pmp_permissions() {
    const HLV_WU: u32 = 0x6812_c373;
    const HLVX_WU: u32 = 0x6832_c373;
    // A NAPOT entry for everything, with W, R and X as far as they may be.
    for (permissions, read, execute) in [
        (0x1f, true, true),
        (0x1d, true, true),
        (0x1b, true, false),
        (0x19, true, false),
        (0x1c, false, false),
        (0x18, false, false),
    ] {
        let mut machine = machine();
        let (hart, system) = (&mut machine.harts[0], &mut machine.system);
        write(hart, system, PMPADDR0, u64::MAX);
        write(hart, system, PMPCFG0, permissions);
        hart.set_mode(Mode::HYPERVISOR);
        for (raw, allowed) in [(HLV_WU, read), (HLVX_WU, execute)] {
            hart.x[5] = RAM;
            let done = hart.access_guest(raw, system);
            assert_eq!(done.is_ok(), allowed, "{raw:#x} by {permissions:#x}");
            if !allowed {
                assert_eq!(hart.exception.cause, Cause::LoadAccess);
            }
        }
    }
}

#[test]
fn shortcuts_end_with_a_masking_change() {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    hart.set_mode(USER);
    write(hart, system, SENVCFG, 0);
    assert_eq!(load(hart, system, RAM), Ok(VALUE));
    let before = hart.data_tag;
    write(hart, system, SENVCFG, PMM);
    assert_ne!(hart.data_tag, before);
    write(hart, system, SENVCFG, 0);
    assert_eq!(hart.data_tag, before);
}

/// Flags of a page-table entry: V, R, W, X, A and D; and G.
const LEAF: u64 = 0xcf;
const GLOBAL: u64 = 0x20;
/// Where the first of two address spaces has its two tables, and how far the second's are from there.
const TABLES: u64 = RAM + 0x1000;
const SPACES_APART: u64 = 0x2000;

/// Maps the first 2 MiB of an address space to a part of RAM of their own, and gives its satp.
fn map(system: &mut System, space: u64, flags: u64) -> u64 {
    let root = TABLES + space * SPACES_APART;
    let leaf = (RAM + (space << 21)) >> 2 | flags;
    for (place, entry) in [(root, (root + 0x1000) >> 2 | 1), (root + 0x1000, leaf)] {
        assert!(system.memory.store_scalar(place, entry, 0).is_some());
    }
    8 << 60 | (space + 1) << 44 | root >> 12
}

/// Tests whether the host TLB knows where a load from address 0 goes.
fn is_known(hart: &Hart) -> bool {
    hart.tlb.load_entry(0).serves::<u64>(0, hart.data_tag)
}

fn load_first(hart: &mut Hart, system: &mut System) -> u64 {
    hart.load_slow::<u64>(system, 0, 1).expect("mapped")
}

#[test]
fn address_spaces_share_global_mappings_alone() {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    hart.set_mode(Mode::HYPERVISOR);
    let [first, second] = [0, 1].map(|space| map(system, space, LEAF | GLOBAL));
    write(hart, system, SATP, first);
    assert_eq!(load_first(hart, system), VALUE);
    write(hart, system, SATP, second);
    assert!(is_known(hart));
    // A fence for an ASID leaves global mappings alone.
    let fence = |asid| Fence::Supervisor {
        address: None,
        asid,
    };
    hart.fence(fence(Some(2)));
    assert!(is_known(hart));
    hart.fence(fence(None));
    assert!(!is_known(hart));
    // The first address space's mapping is its own now: the other one must not find it.
    map(system, 0, LEAF);
    write(hart, system, SATP, first);
    assert_eq!(load_first(hart, system), VALUE);
    assert!(!is_known(hart), "what has parted the contexts is not kept");
    assert_eq!(load_first(hart, system), VALUE);
    assert!(is_known(hart));
    write(hart, system, SATP, second);
    assert!(!is_known(hart));
    assert_eq!(load_first(hart, system), 0);
    write(hart, system, SATP, first);
    assert!(!is_known(hart));
    assert_eq!(load_first(hart, system), VALUE);
}

#[test]
fn users_do_not_find_kernel_pages() {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    hart.set_mode(Mode::HYPERVISOR);
    let space = map(system, 0, LEAF | GLOBAL);
    write(hart, system, SATP, space);
    load_first(hart, system);
    hart.set_mode(USER);
    assert!(!is_known(hart));
    assert!(hart.load_slow::<u64>(system, 0, 1).is_err());
}

#[test]
fn stretches_last_from_exit_to_entry() {
    let mut machine = machine();
    machine.watch_stretches();
    assert_eq!(machine.report().longest_hypervisor_stretch, None);
    let call = Cause::CallFromVirtualSupervisor;
    let hart = &mut machine.harts[0];
    hart.csrs.medeleg = 1 << call as u64;
    hart.csrs.stvec = RAM;
    hart.set_mode(Mode::VIRTUAL_SUPERVISOR);
    for (begin, length) in [(100, 50), (1000, 70), (2000, 60)] {
        hart.cycles = begin;
        hart.take_exception(Exception::new(call, 0));
        assert_eq!(hart.mode(), Mode::HYPERVISOR);
        (hart.cycles, hart.pc) = (begin + length, RAM + length);
        hart.return_from_supervisor();
        assert_eq!(hart.mode(), Mode::VIRTUAL_SUPERVISOR);
    }
    let longest = machine.report().longest_hypervisor_stretch;
    let longest = longest.expect("the guest was left");
    assert_eq!((longest.begin_cycles, longest.cycles), (1000, 70));
    assert_eq!(longest.cause.as_deref(), Some("call from VS"));
    assert_eq!(longest.end_pc, format!("{:#x}", RAM + 70));
}

#[test]
fn reading_sip_ends_a_stretch() {
    let mut machine = machine();
    machine.watch_stretches();
    let Machine { harts, system, .. } = &mut machine;
    let hart = &mut harts[0];
    let call = Cause::CallFromVirtualSupervisor;
    hart.csrs.medeleg = 1 << call as u64;
    hart.set_mode(Mode::VIRTUAL_SUPERVISOR);
    hart.cycles = 100;
    hart.take_exception(Exception::new(call, 0));
    hart.cycles = 180;
    // csrr t1, sip
    assert!(
        hart.execute_csr(u32::from(SIP) << 20 | 0x2373, system)
            .is_ok()
    );
    hart.cycles = 200;
    hart.return_from_supervisor();
    let longest = machine.report().longest_hypervisor_stretch;
    assert_eq!(longest.map(|longest| longest.cycles), Some(80));
}
