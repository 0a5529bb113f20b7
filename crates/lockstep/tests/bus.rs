//! Accesses to devices beside QEMU's board: the machine refuses what QEMU refuses.

use lockstep::oracle::{Oracle, WHOLE, run_within};
use lockstep::sweep::bus::{Access, Answer, HARTS, accesses, answers, image};
use machine::board::map;

fn here(accesses: &[Access]) -> Vec<Answer> {
    let instructions = 100 * accesses.len() as u64;
    let left = run_within(&image(accesses), HARTS, WHOLE, instructions).expect("the sweep ends");
    answers(&left, accesses).expect("every access was tried")
}

/// Accesses that QEMU 10.0 answers and the machine refuses, each with a reason.
fn is_stricter(access: &Access) -> Option<&'static str> {
    let within = |window: map::Window| window.offset(access.address, 1);
    if within(map::ROM).is_some() && access.store {
        return Some("a store to ROM is dropped");
    }
    if within(map::CLOCK).is_some() && access.width == 3 {
        return Some("the clock's registers are words, of which a doubleword would take two");
    }
    let slot = access.address.checked_sub(map::VIRTIO.base)?;
    if slot < 8 * map::VIRTIO_STRIDE && slot % map::VIRTIO_STRIDE < 0x100 && access.width != 2 {
        return Some("virtio registers are 32 bits wide (virtio 1.2, 4.2.2.2)");
    }
    None
}

#[test]
fn the_machine_refuses_what_qemu_refuses() {
    if !Oracle::Qemu.is_installed() {
        eprintln!("QEMU is not here: nothing to compare with");
        return;
    }
    let accesses = accesses();
    let left = Oracle::Qemu.run(&image(&accesses), HARTS);
    let theirs = answers(&left.expect("QEMU runs"), &accesses).expect("every access was tried");
    let refused = theirs
        .iter()
        .filter(|&&answer| answer == Answer::Refused)
        .count();
    assert!(
        refused > 200 && theirs.len() - refused > 200,
        "{refused} of {} are refused",
        theirs.len()
    );
    let mut wrong = Vec::new();
    for ((access, ours), theirs) in accesses.iter().zip(here(&accesses)).zip(theirs) {
        if ours != theirs && (theirs == Answer::Refused || is_stricter(access).is_none()) {
            wrong.push(format!("{access:x?}: here {ours:?}, there {theirs:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Sizes of QEMU 10.0's memory regions and widths of their operations, where QEMU is not installed.
#[test]
fn accesses_beyond_registers_fault() {
    let accesses = accesses();
    let mut refused = 0;
    for (access, answer) in accesses.iter().zip(here(&accesses)) {
        let beyond = |window: map::Window, registers: u64| {
            window
                .offset(access.address, 1)
                .is_some_and(|offset| offset >= registers)
        };
        let slots = map::Window {
            size: 8 * map::VIRTIO_STRIDE,
            ..map::VIRTIO
        };
        let in_slots = slots.offset(access.address, 1);
        let beyond_slot = in_slots.is_some_and(|offset| offset % map::VIRTIO_STRIDE >= 0x200);
        if beyond_slot || beyond(map::UART, 8) || beyond(map::CLOCK, 0x24) {
            assert_eq!(answer, Answer::Refused, "{access:x?}");
            refused += 1;
        }
    }
    assert!(refused > 200, "{refused} accesses");
}
