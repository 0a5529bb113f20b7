//! Locks of a kernel that runs by itself are told to whoever listens, and nothing depends on that.

mod program;

use std::io;
use std::sync::{Arc, Mutex};

use machine::hart::{Mode, Privilege};
use machine::monitor::Report;
use machine::timing::Profile;
use machine::trace::{Event, Happening, Sink};
use machine::{Config, Limit, Machine, Stop};
use riscv::instruction::{MRET, PAUSE};

use program::{
    BASE, addi, atomic, auipc, beq, bne, csrrw, elf, jal, ld, lui, lw, power_off, sd, slli, srli,
};

const HARTS: u32 = 4;
const ROUNDS: u32 = 200;
/// Result of `auipc x5, 1` at the entry: a ticket lock, and 8 bytes behind it what it protects.
const LOCK: u64 = BASE + 0x1000;

/// AMOADD.W.
fn add_word(rd: u32, rs1: u32, rs2: u32) -> u32 {
    atomic(0, rd, rs1, rs2) & !(7 << 12) | 2 << 12
}

/// Every hart enters S-mode and adds to one number under a ticket lock, by Linux's loop; hart 0 waits for all and switches off.
fn program() -> Vec<u32> {
    let (lock, rounds, drawn, ticket, served, one, step) = (5, 6, 7, 28, 29, 30, 31);
    let (number, value) = (27, 26);
    let (pmpaddr0, pmpcfg0, mstatus, mepc) = (0x3b0, 0x3a0, 0x300, 0x341);
    let enter = [
        auipc(lock, 1),
        addi(value, 0, -1),
        csrrw(0, pmpaddr0, value),
        addi(value, 0, 0x1f), // all of the address space, for all accesses
        csrrw(0, pmpcfg0, value),
        addi(value, 0, 1),
        slli(value, value, 11), // mstatus.MPP = S
        csrrw(0, mstatus, value),
        auipc(value, 0),
        addi(value, value, 16),
        csrrw(0, mepc, value),
        MRET,
    ];
    let work = [
        addi(number, lock, 8),
        addi(rounds, 0, ROUNDS.cast_signed()),
        addi(one, 0, 1),
        lui(step, 0x10),
        add_word(drawn, lock, step),
        srli(ticket, drawn, 16),
        slli(ticket, ticket, 48),
        srli(ticket, ticket, 48),
        lw(served, lock, 0),
        slli(served, served, 48),
        srli(served, served, 48),
        beq(served, ticket, 12),
        PAUSE,
        jal(0, -20),
        ld(value, number, 0),
        addi(value, value, 1),
        sd(value, number),
        add_word(0, lock, one),
        addi(rounds, rounds, -1),
        bne(rounds, 0, -60),
        bne(10, 0, 40), // a0 is mhartid
        addi(one, 0, (HARTS * ROUNDS).cast_signed()),
        ld(value, number, 0),
        bne(value, one, -4),
    ];
    [&enter[..], &work[..], &power_off(30, 31)[..], &[jal(0, 0)]].concat()
}

/// Events of the lock: turns of loops, and stores.
#[derive(Debug, Clone, Default)]
struct Heard(Arc<Mutex<(u32, u32)>>);

impl Sink for Heard {
    fn event(&mut self, event: &Event) {
        let kernel = |mode: &Mode| !mode.virtualized && mode.privilege == Privilege::Supervisor;
        let mut heard = self.0.lock().expect("nobody panicked");
        match &event.happening {
            Happening::PauseLoop { mode, physical, .. } if kernel(mode) => {
                assert_eq!(*physical, Some(LOCK));
                heard.0 += 1;
            }
            Happening::Word {
                mode,
                physical: LOCK,
                stored: true,
                ..
            } if kernel(mode) => heard.1 += 1,
            _ => {}
        }
    }

    fn end(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

fn run(profile: Option<&Profile>, heard: Option<&Heard>) -> Report {
    let mut config = Config::default();
    config.board.harts = HARTS;
    config.board.memory = 16 << 20;
    config.quantum = 50;
    let mut machine = Machine::new(config).expect("a machine");
    machine
        .load_bare(&elf(&program()))
        .expect("the program loads");
    machine.set_profile(profile);
    if let Some(heard) = heard {
        machine.system_mut().tells_bare_locks = true;
        machine.listen(Box::new(heard.clone()));
    }
    let stop = machine.run(Limit {
        instructions: None,
        cycles: Some(100_000_000),
    });
    assert_eq!(stop, Stop::PowerOff);
    let number = machine.read_memory(LOCK + 8, LOCK + 16).expect("RAM");
    let number = u64::from_le_bytes(number.try_into().expect("eight bytes"));
    assert_eq!(number, u64::from(HARTS * ROUNDS));
    let mut report = machine.report();
    for hart in &mut report.harts {
        // What the host's own shortcuts missed: an observed page has none.
        hart.host_translations = 0;
    }
    report
}

#[test]
fn noting_ticket_lock_stores_changes_nothing() {
    let profile = Profile::default();
    for profile in [None, Some(&profile)] {
        let heard = Heard::default();
        assert_eq!(run(profile, Some(&heard)), run(profile, None));
        let (turns, stores) = *heard.0.lock().expect("nobody panicked");
        // A ticket is drawn, and the lock is given back.
        assert_eq!(stores, 2 * HARTS * ROUNDS);
        assert!(turns > 0, "nobody waited");
    }
}
