//! Counts up to a moment, and between two.

use super::HartCounts;
use crate::board::map;
use crate::device::virtio::Statistics;
use crate::hart::Hart;
use crate::machine::Machine;

/// Counts of one hart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HartSnapshot {
    /// Its cycles.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Everything, up to the moment.
    pub counts: HartCounts,
}

/// Counts of the machine up to a moment, or between two. Taking one changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Machine time in cycles.
    pub cycles: u64,
    /// Hart by hart.
    pub harts: Vec<HartSnapshot>,
    /// Virtio slot by slot, `None` for an empty one.
    pub devices: Vec<Option<(&'static str, Statistics)>>,
}

impl Machine {
    /// Counts since reset.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let board = &self.system().devices;
        // The slots that are there, and behind them the functions of PCI.
        let slots = 0..board.slots().len();
        let functions = map::VIRTIO_SLOTS..board.places();
        Snapshot {
            cycles: self.now(),
            harts: self.harts().iter().map(Hart::snapshot).collect(),
            devices: slots
                .chain(functions)
                .map(|place| {
                    let device = board.virtio(place)?;
                    Some((device.name(), device.model().statistics()))
                })
                .collect(),
        }
    }
}

impl Hart {
    /// Counts since reset, with the share of the present mode and the present stay.
    #[must_use]
    pub fn snapshot(&self) -> HartSnapshot {
        // A WRS that may yet trap has not retired for certain: no count ever falls.
        let retired = self.retired.wrapping_sub(self.wait.may_trap().into());
        let mut counts = self.counts.clone();
        counts.settle(self.mode(), self.cycles, retired);
        if self.mode().virtualized {
            counts.leave(self.csrs.vmid());
        }
        HartSnapshot {
            cycles: self.cycles,
            instructions: retired,
            counts,
        }
    }
}

impl Snapshot {
    /// Counts from an earlier moment of the same machine to this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let nothing = HartSnapshot::default();
        let before = |index: usize| earlier.harts.get(index).unwrap_or(&nothing);
        let harts = self.harts.iter().enumerate().map(|(index, hart)| {
            let before = before(index);
            HartSnapshot {
                cycles: hart.cycles.wrapping_sub(before.cycles),
                instructions: hart.instructions.wrapping_sub(before.instructions),
                counts: hart.counts.since(&before.counts),
            }
        });
        let devices = self.devices.iter().enumerate().map(|(index, device)| {
            let (name, now) = (*device)?;
            let before = earlier.devices.get(index).copied().flatten();
            let before = before.map_or_else(Statistics::default, |(_, before)| before);
            Some((name, now.since(&before)))
        });
        Self {
            cycles: self.cycles.wrapping_sub(earlier.cycles),
            harts: harts.collect(),
            devices: devices.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Limit, Machine, Stop};

    /// The words of a program that waits in S mode, by WRS.NTO and with mstatus.TW set, and from whose trap nothing comes back.
    fn waits_until_it_traps() -> Vec<u8> {
        let write = |csr: u32| csr << 20 | 5 << 15 | 1 << 12 | 0x73;
        let set = |csr: u32| csr << 20 | 5 << 15 | 2 << 12 | 0x73;
        let immediate = |value: u32| value << 20 | 5 << 7 | 0x13;
        let [mstatus, mepc, pmpcfg0, pmpaddr0] = [0x300, 0x341, 0x3a0, 0x3b0];
        let words = [
            immediate(0xfff),
            write(pmpaddr0),
            immediate(0x1f),
            write(pmpcfg0),
            0x200 << 12 | 5 << 7 | 0x37, // lui t0, 0x200: TW
            set(mstatus),
            immediate(1),
            11 << 20 | 5 << 15 | 1 << 12 | 5 << 7 | 0x13, // slli t0, t0, 11: MPP
            set(mstatus),
            5 << 7 | 0x17,                      // auipc t0, 0
            20 << 20 | 5 << 15 | 5 << 7 | 0x13, // addi t0, t0, 20
            write(mepc),
            0x3020_0073,                                 // mret
            0x6f,                                        // j to itself: the trap handler
            2 << 27 | 5 << 15 | 3 << 12 | 6 << 7 | 0x2f, // lr.d t1, (t0)
            0x00d0_0073,                                 // wrs.nto
        ];
        words.iter().copied().flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn waits_that_may_trap_are_not_counted() {
        let mut config = Config::default();
        config.board.memory = 16 << 20;
        let mut machine = Machine::new(config).expect("a machine");
        let base = 0x8000_0000;
        let program = waits_until_it_traps();
        crate::base::Memory::store(&mut machine.system.memory, base, &program).expect("RAM");
        let hart = machine.harts.first_mut().expect("a hart");
        hart.pc = base;
        hart.csrs.mtvec = base + 13 * 4;
        let (mut counted, mut waited) = (0, false);
        for cycles in 1..5000 {
            let limit = Limit {
                instructions: None,
                cycles: Some(cycles),
            };
            assert_eq!(machine.run(limit), Stop::Limit);
            let hart = machine.harts.first().expect("a hart");
            let snapshot = hart.snapshot();
            assert!(snapshot.instructions >= counted, "after {cycles} cycles");
            counted = snapshot.instructions;
            if hart.wait.may_trap() {
                waited = true;
                assert_eq!(counted, 14, "mret and lr.d, but not wrs.nto");
            }
        }
        assert!(waited && counted > 14);
        let hart = machine.harts.first().expect("a hart");
        assert_eq!(hart.csrs.mcause, 2, "illegal instruction");
    }
}
