//! The APLIC by the text of chapter 4 of the AIA specification.

use riscv::aplic::register::{
    CLRIE, CLRIENUM, CLRIPNUM, GENMSI, IN_CLRIP, SETIE, SETIENUM, SETIP, SETIPNUM, SETIPNUM_LE,
};
use riscv::aplic::source_mode::{DETACHED, EDGE0, EDGE1, LEVEL0, LEVEL1};
use riscv::aplic::{DOMAINCFG_DM as DM, DOMAINCFG_IE as IE, SOURCECFG_D as DELEGATE};

use super::*;
use crate::base::IrqLevels;

const SOURCE: u32 = 5;
const LEVELS: [DomainLevel; 2] = [DomainLevel::Machine, DomainLevel::Supervisor];

/// Two harts, 96 sources, seven guest files.
struct Bench {
    aplic: Aplic,
    imsic: Imsic,
    effects: Effects,
    level: DomainLevel,
}

impl Bench {
    fn new(level: DomainLevel, direct: bool) -> Self {
        let mut bench = Self {
            aplic: Aplic::new(2, 96, 7, direct),
            imsic: Imsic::new(2, 7, 255, direct),
            effects: Effects {
                irq_levels: IrqLevels::new(2),
                ..Effects::default()
            },
            level: DomainLevel::Machine,
        };
        // The arrangement of QEMU's board: pages of 4 KiB, and 32 KiB a hart.
        for (offset, value) in [
            (0x1bc0, 0x24000),
            (0x1bc8, 0x28000),
            (0x1bcc, 3 << 20),
            (0x1bc4, 1 << 12),
        ] {
            bench.write(offset, value);
        }
        if level == DomainLevel::Supervisor {
            for source in 1..=96 {
                bench.write(4 * source, DELEGATE);
            }
        }
        bench.level = level;
        bench
    }

    fn write(&mut self, offset: u64, value: u32) {
        let Self {
            aplic,
            imsic,
            effects,
            level,
        } = self;
        aplic
            .write(*level, offset, 4, value.into(), imsic, effects)
            .expect("a word");
    }

    fn read(&mut self, offset: u64) -> u32 {
        let Self {
            aplic,
            imsic,
            effects,
            level,
        } = self;
        aplic
            .read(*level, offset, 4, imsic, effects)
            .expect("a word") as u32
    }

    fn line(&mut self, level: bool) {
        self.aplic
            .set_line(SOURCE, level, &self.imsic, &mut self.effects);
    }

    fn mode(&mut self, mode: u32) {
        self.write(4 * u64::from(SOURCE), mode);
    }

    fn target(&mut self, target: u32) {
        self.write(GENMSI + 4 * u64::from(SOURCE), target);
    }

    fn pending(&mut self) -> bool {
        self.read(SETIP) >> SOURCE & 1 != 0
    }

    fn sent(&mut self) -> Vec<Msi> {
        core::mem::take(&mut self.effects.msis)
    }
}

/// §4.5.1: the top byte reads 0x80; IE is writable; DM is as supported; BE and the rest are zero.
#[test]
fn domaincfg_is_warl() {
    for level in LEVELS {
        let mut messages = Bench::new(level, false);
        assert_eq!(messages.read(0), 0x80 << 24 | DM);
        messages.write(0, u32::MAX);
        assert_eq!(messages.read(0), 0x80 << 24 | IE | DM);
        let mut both = Bench::new(level, true);
        assert_eq!(both.read(0), 0x80 << 24);
        both.write(0, DM);
        assert_eq!(both.read(0), 0x80 << 24 | DM);
    }
}

/// §4.5.2: every source mode reads back, reserved ones do not.
#[test]
fn sourcecfg_holds_the_defined_modes() {
    for level in LEVELS {
        let mut bench = Bench::new(level, false);
        for mode in [DETACHED, EDGE1, EDGE0, LEVEL1, LEVEL0] {
            bench.mode(mode);
            assert_eq!(bench.read(4 * u64::from(SOURCE)), mode);
        }
        for reserved in [2, 3] {
            bench.mode(reserved);
            assert!(![2, 3].contains(&bench.read(4 * u64::from(SOURCE))));
        }
        // Sources beyond those implemented are read-only zero.
        bench.write(4 * 97, EDGE1);
        assert_eq!(bench.read(4 * 97), 0);
    }
}

/// §4.5.2: an inactive source's pending, enable and target bits are read-only zeros, and going
/// inactive clears them.
#[test]
fn inactive_sources_have_no_state() {
    for level in LEVELS {
        let mut bench = Bench::new(level, false);
        let touch = |bench: &mut Bench| {
            bench.write(SETIPNUM, SOURCE);
            bench.write(SETIENUM, SOURCE);
            bench.target(1 << 18 | 9);
            let target = bench.read(GENMSI + 4 * u64::from(SOURCE));
            (bench.read(SETIP), bench.read(SETIE), target)
        };
        assert_eq!(touch(&mut bench), (0, 0, 0));
        bench.mode(DETACHED);
        assert_eq!(touch(&mut bench), (1 << SOURCE, 1 << SOURCE, 1 << 18 | 9));
        bench.mode(0);
        bench.mode(DETACHED);
        assert_eq!((bench.read(SETIP), bench.read(SETIE)), (0, 0));
    }
}

/// §4.5.2: a leaf domain cannot delegate: the register is set to zero instead.
#[test]
fn a_leaf_domain_does_not_delegate() {
    let mut bench = Bench::new(DomainLevel::Supervisor, false);
    bench.mode(EDGE1);
    bench.mode(DELEGATE | 1);
    assert_eq!(bench.read(4 * u64::from(SOURCE)), 0);
}

/// §4.2, §4.5.2: a source appears in the child only while the root delegates it, and then starts
/// out inactive.
#[test]
fn the_child_has_what_the_root_delegates() {
    let mut bench = Bench::new(DomainLevel::Supervisor, false);
    bench.mode(EDGE1);
    bench.level = DomainLevel::Machine;
    bench.mode(EDGE1);
    bench.level = DomainLevel::Supervisor;
    assert_eq!(bench.read(4 * u64::from(SOURCE)), 0);
    bench.mode(EDGE1);
    assert_eq!(bench.read(4 * u64::from(SOURCE)), 0, "not implemented here");
    bench.line(true);
    assert!(!bench.pending());
    bench.level = DomainLevel::Machine;
    assert!(bench.pending());
    bench.mode(DELEGATE);
    assert!(!bench.pending(), "inactive where it is delegated");
    bench.level = DomainLevel::Supervisor;
    assert_eq!(bench.read(4 * u64::from(SOURCE)), 0);
}

/// §4.7: what sets and clears pending bits in MSI delivery mode. Each row: the mode; the line
/// before; then the effect of setipnum with the line inactive and active, of an inactive to active
/// transition, and of a return to inactive.
#[test]
fn pending_bits_follow_the_rules_for_messages() {
    for level in LEVELS {
        for (mode, asserted) in [
            (EDGE1, true),
            (EDGE0, false),
            (LEVEL1, true),
            (LEVEL0, false),
        ] {
            let is_level = mode >= LEVEL1;
            let mut bench = Bench::new(level, false);
            bench.line(!asserted);
            bench.mode(mode);
            assert!(!bench.pending(), "mode {mode}");
            bench.write(SETIPNUM, SOURCE);
            assert_eq!(bench.pending(), !is_level, "setipnum, mode {mode}");
            bench.write(CLRIPNUM, SOURCE);
            assert!(!bench.pending());
            bench.line(asserted);
            assert!(bench.pending(), "transition, mode {mode}");
            assert_eq!(
                bench.read(IN_CLRIP) >> SOURCE & 1,
                1,
                "rectified, mode {mode}"
            );
            bench.write(IN_CLRIP, 1 << SOURCE);
            assert!(!bench.pending(), "in_clrip, mode {mode}");
            bench.write(SETIPNUM_LE, SOURCE);
            assert!(bench.pending(), "setipnum while asserted, mode {mode}");
            bench.line(!asserted);
            assert_eq!(bench.pending(), !is_level, "return, mode {mode}");
            assert_eq!(bench.read(IN_CLRIP) >> SOURCE & 1, 0);
        }
    }
}

/// §4.7: in direct delivery mode a level-sensitive source's pending bit copies its input.
#[test]
fn direct_mode_levels_copy_their_input() {
    for level in LEVELS {
        for (mode, asserted) in [(LEVEL1, true), (LEVEL0, false)] {
            let mut bench = Bench::new(level, true);
            bench.line(!asserted);
            bench.mode(mode);
            bench.write(SETIP, 1 << SOURCE);
            assert!(!bench.pending());
            bench.line(asserted);
            bench.write(CLRIPNUM, SOURCE);
            bench.write(IN_CLRIP, u32::MAX);
            assert!(bench.pending());
            bench.line(!asserted);
            assert!(!bench.pending());
        }
    }
}

/// §4.5.2: a detached source ignores its wire.
#[test]
fn detached_sources_ignore_the_wire() {
    let mut bench = Bench::new(DomainLevel::Supervisor, false);
    bench.mode(DETACHED);
    bench.line(true);
    assert_eq!((bench.pending(), bench.read(IN_CLRIP)), (false, 0));
    bench.write(SETIP, 1 << SOURCE);
    bench.line(false);
    assert!(bench.pending());
}

/// §4.9: pending, enabled and IE send one message, which clears the pending bit.
#[test]
fn messages_need_source_and_domain_enabled() {
    for (level, address) in [
        (DomainLevel::Machine, 0x2400_1000),
        (DomainLevel::Supervisor, 0x2800_b000),
    ] {
        let mut bench = Bench::new(level, false);
        bench.mode(EDGE1);
        // Hart 1, guest 3 (read-only zero at machine level), identity 42.
        bench.target(1 << 18 | 3 << 12 | 42);
        bench.line(true);
        assert!(bench.sent().is_empty());
        bench.write(SETIENUM, SOURCE);
        assert!(bench.sent().is_empty());
        bench.write(0, IE);
        assert_eq!(bench.sent(), [Msi { address, data: 42 }]);
        assert!(!bench.pending());
        bench.line(false);
        bench.write(CLRIENUM, SOURCE);
        bench.line(true);
        assert!(bench.sent().is_empty() && bench.pending());
        bench.write(SETIE, 1 << SOURCE);
        assert_eq!(bench.sent().len(), 1);
        bench.write(CLRIE, 1 << SOURCE);
        assert_eq!(bench.read(SETIE), 0);
    }
}

/// §4.9.2: a level-sensitive source that stays asserted sends nothing more until it is de-asserted
/// and asserted again, or software writes its number to setipnum.
#[test]
fn levels_are_sent_again_when_software_asks() {
    let mut bench = Bench::new(DomainLevel::Supervisor, false);
    bench.mode(LEVEL1);
    bench.target(7);
    bench.write(SETIENUM, SOURCE);
    bench.write(0, IE);
    bench.line(true);
    assert_eq!(bench.sent().len(), 1);
    assert!(!bench.pending());
    bench.write(SETIPNUM, SOURCE);
    assert_eq!(bench.sent().len(), 1, "still asserted: sent again");
    bench.line(false);
    bench.write(SETIPNUM, SOURCE);
    assert!(bench.sent().is_empty(), "not asserted: not sent");
    bench.line(true);
    assert_eq!(bench.sent().len(), 1);
}

/// §4.5.15: genmsi sends whatever IE says, after what was sent before; Busy reads as zero again.
#[test]
fn genmsi_sends_an_extempore_message() {
    for (level, base) in [
        (DomainLevel::Machine, 0x2400_1000),
        (DomainLevel::Supervisor, 0x2800_8000),
    ] {
        let mut bench = Bench::new(level, false);
        bench.write(GENMSI, 1 << 18 | 3 << 12 | 99);
        assert_eq!(
            bench.sent(),
            [Msi {
                address: base,
                data: 99
            }]
        );
        assert_eq!(bench.read(GENMSI), 1 << 18 | 99);
        let mut direct = Bench::new(level, true);
        direct.write(GENMSI, 1 << 18 | 99);
        assert_eq!((direct.read(GENMSI), direct.sent()), (0, vec![]));
    }
}

/// §4.5.16: the guest index is WLRL up to GEILEN and zero at machine level; EIID has eleven bits.
#[test]
fn targets_keep_their_defined_fields() {
    let at = GENMSI + 4 * u64::from(SOURCE);
    let mut bench = Bench::new(DomainLevel::Supervisor, false);
    bench.mode(EDGE1);
    bench.target(!(0x3f << 12) | 7 << 12);
    assert_eq!(bench.read(at), 0x3fff << 18 | 7 << 12 | 0x7ff);
    let mut machine = Bench::new(DomainLevel::Machine, false);
    machine.mode(EDGE1);
    machine.target(u32::MAX);
    assert_eq!(machine.read(at), 0x3fff << 18 | 0x7ff);
    let mut direct = Bench::new(DomainLevel::Supervisor, true);
    direct.mode(EDGE1);
    direct.target(0);
    assert_eq!(direct.read(at), 1, "priority 0 is set to 1");
    direct.target(u32::MAX);
    assert_eq!(direct.read(at), 0x3fff << 18 | 0xff);
}

/// §4.8: the signal to a hart is IE and idelivery and (iforce or topi).
#[test]
fn direct_delivery_signals_and_claims() {
    let (idelivery, iforce, ithreshold, topi, claimi) = (0x4020, 0x4024, 0x4028, 0x4038, 0x403c);
    for level in LEVELS {
        let mut bench = Bench::new(level, true);
        let signal = |bench: &Bench| {
            let irq_levels = bench.effects.irq_levels.hart(HartId(1));
            match level {
                DomainLevel::Machine => irq_levels.machine_external,
                DomainLevel::Supervisor => irq_levels.supervisor_external,
            }
        };
        for (source, priority) in [(SOURCE, 9), (6, 4), (8, 4)] {
            bench.write(4 * u64::from(source), DETACHED);
            bench.write(GENMSI + 4 * u64::from(source), 1 << 18 | priority);
            bench.write(SETIENUM, source);
            bench.write(SETIPNUM, source);
        }
        assert_eq!(
            bench.read(topi),
            6 << 16 | 4,
            "topi does not depend on IE or idelivery"
        );
        assert!(!signal(&bench));
        bench.write(0, IE);
        assert!(!signal(&bench));
        bench.write(idelivery, 1);
        assert!(signal(&bench));
        for expected in [6 << 16 | 4, 8 << 16 | 4] {
            assert_eq!(bench.read(claimi), expected);
        }
        bench.write(ithreshold, 9);
        assert_eq!((bench.read(topi), signal(&bench)), (0, false));
        bench.write(ithreshold, 10);
        assert_eq!((bench.read(topi), signal(&bench)), (SOURCE << 16 | 9, true));
        assert_eq!(bench.read(claimi), SOURCE << 16 | 9);
        assert!(!signal(&bench));
        // A spurious interrupt lasts until claimi reads zero.
        bench.write(iforce, 1);
        assert!(signal(&bench));
        assert_eq!(bench.read(claimi), 0);
        assert_eq!((bench.read(iforce), signal(&bench)), (0, false));
    }
}

/// §4.8.1: a claim does not clear a level-sensitive source.
#[test]
fn claims_leave_levels_pending() {
    let mut bench = Bench::new(DomainLevel::Supervisor, true);
    bench.mode(LEVEL1);
    bench.write(SETIENUM, SOURCE);
    bench.line(true);
    for _ in 0..2 {
        assert_eq!(bench.read(0x401c), SOURCE << 16 | 1);
    }
    bench.line(false);
    assert_eq!(bench.read(0x401c), 0);
}

/// §4.8.2: an interrupt file whose eidelivery is not 0x40000000 keeps the APLIC out.
#[test]
fn the_interrupt_file_decides_who_delivers() {
    let mut bench = Bench::new(DomainLevel::Supervisor, true);
    let (hart, file) = (HartId(0), InterruptFile::Supervisor);
    let irq_levels = &mut bench.effects.irq_levels;
    bench
        .imsic
        .write_register(hart, file, 0x70, 1, irq_levels)
        .expect("eidelivery");
    bench.write(0, IE);
    bench.write(0x4000, 1);
    bench.write(0x4004, 1);
    assert!(!bench.effects.irq_levels.hart(hart).supervisor_external);
}

/// §4.5: aligned words only; reserved bytes read as zero and ignore writes.
#[test]
fn other_widths_fault_reserved_words_are_zero() {
    let mut bench = Bench::new(DomainLevel::Supervisor, true);
    for (offset, size) in [(0, 1), (0, 2), (0, 8), (2, 4)] {
        let Bench {
            aplic,
            imsic,
            effects,
            level,
        } = &mut bench;
        assert_eq!(
            aplic.read(*level, offset, size, imsic, effects),
            Err(AccessFault)
        );
        assert_eq!(
            aplic.write(*level, offset, size, 0, imsic, effects),
            Err(AccessFault)
        );
    }
    // mmsiaddrcfg is not implemented at supervisor level; 0x3ff8000 is beyond every array.
    for offset in [
        0x1bc0, 0x1bc4, 0x1bc8, 0x1bcc, 0x1ce0, 0x2008, 0x4010, 0x7ffc, 0x3f_8000,
    ] {
        bench.write(offset, u32::MAX);
        assert_eq!(bench.read(offset), 0, "{offset:#x}");
    }
}
