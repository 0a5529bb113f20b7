//! Our IOMMU beside the reference model of the specification: random contexts and tables, changes of these with the invalidations that
//! they need, accesses, and commands. Outcomes, fault records, registers and all of memory must be the same.

mod side;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use machine::device::iommu::{Access, Process, Request};
use riscv::iommu::{
    CQB, CQCSR, CQH, CQT, DDTP, FCTL, FQB, FQCSR, FQH, FQT, ICVEC, IPSR, MSI_TABLE, command, fault,
    queue,
};

use riscv::page_table::DIRTY;

use crate::random::Random;
pub use side::Outcome;
use side::{Model, Ours};
use world::{FILES, Leaf, World, random_address, random_guest};

/// Queues of a page and of four pages.
const COMMANDS: u64 = 0x1000;
const FAULTS: u64 = 0x4000;
const FAULT_BYTES: u64 = 0x4000;
/// Where messages of the IOMMU and fences write.
const NOTES: u64 = 0x9000;
/// Changes and accesses of a program.
const STEPS: u64 = 60;
/// Registers that are compared.
const REGISTERS: [(u64, u8); 14] = [
    (FCTL, 4),
    (DDTP, 8),
    (CQB, 8),
    (CQH, 4),
    (CQT, 4),
    (FQB, 8),
    (FQH, 4),
    (FQT, 4),
    (CQCSR, 4),
    (FQCSR, 4),
    (IPSR, 4),
    (ICVEC, 8),
    (MSI_TABLE, 8),
    (MSI_TABLE + 8, 4),
];

/// Numbers of what was compared.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Programs.
    pub programs: u64,
    /// Accesses.
    pub accesses: u64,
    /// Of these, those that were refused.
    pub refused: u64,
    /// Commands.
    pub commands: u64,
    /// Fault records by cause.
    pub causes: BTreeMap<u64, u64>,
    /// Programs that differ.
    pub differ: u64,
}

/// Reason why a program ends.
#[derive(Debug)]
enum End {
    Differs(String),
    Host(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Host(error)
    }
}

/// Runs programs, and tells of each that differs.
///
/// # Errors
/// The model cannot be run.
pub fn run(
    program: &Path,
    seed: u64,
    programs: std::ops::Range<u64>,
    mut tell: impl FnMut(u64, &str),
) -> io::Result<Summary> {
    let mut model = Model::start(program)?;
    let mut summary = Summary::default();
    for number in programs {
        let mut random = Random::new(seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        summary.programs += 1;
        match Pair::new(&mut model, &mut random)?.run(&mut random, &mut summary) {
            Ok(()) => {}
            Err(End::Host(error)) => return Err(error),
            Err(End::Differs(why)) => {
                summary.differ += 1;
                tell(number, &why);
            }
        }
    }
    Ok(summary)
}

/// Both of them, with the same in memory.
struct Pair<'a> {
    ours: Ours,
    model: &'a mut Model,
    world: World,
    tail: u64,
}

impl<'a> Pair<'a> {
    fn new(model: &'a mut Model, random: &mut Random) -> io::Result<Self> {
        let world = World::new(random);
        // Small caches throw out what large ones keep.
        let (contexts, entries) = random.pick(&[(0, 0), (1, 2), (16, 64)]);
        let mut ours = Ours::new(world.capabilities, contexts, entries);
        model.reset(world.capabilities)?;
        ours.store(0, &world.memory);
        model.store(0, &world.memory)?;
        let mut pair = Self {
            ours,
            model,
            world,
            tail: 0,
        };
        pair.write(DDTP, 8, 0)?;
        pair.write(FCTL, 4, random.bits() & 2)?;
        pair.write(ICVEC, 8, random.bits())?;
        for vector in 0..4 {
            let at = MSI_TABLE + vector * 16;
            let address = match random.below(6) {
                0 => random.value(),
                _ => NOTES + random.below(64) * 4,
            };
            pair.write(at, 8, address)?;
            pair.write(at + 8, 4, random.bits())?;
            pair.write(at + 12, 4, random.below(4) / 3)?;
        }
        pair.write(CQB, 8, COMMANDS >> 2 | 7)?;
        pair.write(FQB, 8, FAULTS >> 2 | random.pick(&[1, 8, 8]))?;
        let interrupts = |random: &mut Random| random.bits() & u64::from(queue::INTERRUPT_ENABLE);
        let enable = u64::from(queue::ENABLE);
        let (commands, faults) = (interrupts(random), interrupts(random));
        pair.write(CQCSR, 4, enable | commands)?;
        pair.write(FQCSR, 4, enable | faults)?;
        let ddtp = pair.world.ddtp;
        pair.write(DDTP, 8, ddtp)?;
        Ok(pair)
    }

    fn write(&mut self, offset: u64, size: u8, value: u64) -> io::Result<()> {
        self.ours.write(offset as u16, size, value);
        self.model.write(offset as u16, size, value)
    }

    fn store(&mut self, at: u64, value: u64) -> io::Result<()> {
        self.ours.store(at, &value.to_le_bytes());
        self.model.store(at, &value.to_le_bytes())
    }

    fn run(mut self, random: &mut Random, summary: &mut Summary) -> Result<(), End> {
        for step in 0..STEPS {
            match random.below(10) {
                0 => self.change(random, summary)?,
                1 => self.strange_command(random, summary)?,
                2 => self.write(FQH, 4, random.bits() & 0x1ff)?,
                3 => {
                    let written = random.bits() & 3;
                    self.write(IPSR, 4, written)?;
                }
                _ => self.access(step, random, summary)?,
            }
            self.compare_registers(step)?;
        }
        for record in self.ours.memory()[FAULTS as usize..][..FAULT_BYTES as usize].chunks(32) {
            match word(&record[..8]) & fault::CAUSE {
                0 => {}
                cause => *summary.causes.entry(cause).or_default() += 1,
            }
        }
        self.compare_memory()
    }

    fn access(&mut self, step: u64, random: &mut Random, summary: &mut Summary) -> Result<(), End> {
        let mut device = random.pick(&self.world.devices);
        let mut address = match random.below(4) {
            0 => random.value() & !3,
            1 => random_address(random),
            2 => random_guest(device.second >> 60, random),
            _ => (FILES + random.below(5)) << 12,
        };
        let mut id = match random.chance(5) {
            true => random.bits() as u32 & 0xf_ffff,
            false => random.below(4) as u32,
        };
        let devices = &self.world.devices;
        let is_reached = |leaf: &&Leaf| !leaf.is_second || !devices[leaf.device].has_first;
        let leaves: Vec<Leaf> = self
            .world
            .leaves
            .iter()
            .filter(is_reached)
            .copied()
            .collect();
        if random.chance(80) && !leaves.is_empty() {
            let leaf = random.pick(&leaves);
            device = self.world.devices[leaf.device];
            address = leaf.address & !3 | (random.below(64) * 4);
            id = (leaf.process & 0xf).saturating_sub(1);
        }
        let has_process = match device.processes {
            0 => random.chance(3),
            _ => random.chance(85),
        };
        let privileged = random.chance(15);
        let process = has_process.then_some(Process { id, privileged });
        let request = Request {
            device: match random.chance(4) {
                true => random.bits() as u32 & 0xff_ffff,
                false => device.id,
            },
            process,
            access: random.pick(&[Access::Execute, Access::Read, Access::Read, Access::Write]),
            address,
        };
        let (ours, theirs) = (
            self.ours.translate(&request),
            self.model.translate(&request)?,
        );
        summary.accesses += 1;
        summary.refused += u64::from(theirs == Outcome::Refused);
        if ours.without_high_bits() != theirs {
            let what =
                format!("step {step}: {request:x?} gives {ours:x?}, the model says {theirs:x?}");
            return Err(End::Differs(what));
        }
        Ok(())
    }

    /// Puts commands into the queue, behind which it is empty.
    fn commands(&mut self, commands: &[[u64; 2]], summary: &mut Summary) -> io::Result<()> {
        for words in commands {
            let at = COMMANDS + self.tail * command::BYTES;
            self.store(at, words[0])?;
            self.store(at + 8, words[1])?;
            self.tail = (self.tail + 1) % 256;
            summary.commands += 1;
        }
        let tail = self.tail;
        self.write(CQT, 4, tail)
    }

    /// Changes an entry, and drops what may be kept of it, and no more than that where this is known.
    fn change(&mut self, random: &mut Random, summary: &mut Summary) -> io::Result<()> {
        let all = [
            [command::IODIR_INVAL_DDT, 0],
            [command::IOTINVAL_VMA, 0],
            [command::IOTINVAL_GVMA, 0],
        ];
        let of_guests = |world: &World| {
            let guests = world.devices.iter().filter_map(|device| device.guest());
            let drop = |guest| [command::IOTINVAL_VMA | command::GV | guest << 44, 0];
            guests.map(drop).collect::<Vec<_>>()
        };
        if random.chance(60) && !self.world.leaves.is_empty() {
            let leaf = random.pick(&self.world.leaves);
            let device = self.world.devices[leaf.device];
            let guest = device.guest().map(|guest| command::GV | guest << 44);
            let address = leaf.address >> 12 << 10;
            let old = self.world.load(leaf.at);
            // What the IOMMU has set in A and D meanwhile is lost on both sides alike.
            let new = old ^ 1 << random.pick(&[0, 1, 2, 3, 4, 6, 7, 10, 11, 12]);
            self.world.store(leaf.at, new);
            self.store(leaf.at, new)?;
            let invalidations = match (leaf.is_second, leaf.is_table) {
                (true, false) => vec![[
                    command::IOTINVAL_GVMA | command::AV | guest.unwrap_or(0),
                    address,
                ]],
                (true, true) => vec![
                    [command::IODIR_INVAL_DDT, 0],
                    [command::IOTINVAL_GVMA | guest.unwrap_or(0), 0],
                    [command::IOTINVAL_VMA | guest.unwrap_or(0), 0],
                ],
                // A large page is kept in small parts, which one address does not reach.
                _ if random.chance(50) => vec![[command::IOTINVAL_VMA | guest.unwrap_or(0), 0]],
                _ => {
                    let is_global = true;
                    let process = match is_global {
                        true => 0,
                        false => 1 << 32 | u64::from(leaf.process) << 12,
                    };
                    vec![[
                        command::IOTINVAL_VMA | command::AV | guest.unwrap_or(0) | process,
                        address,
                    ]]
                }
            };
            return self.commands(&invalidations, summary);
        }
        let at = random.pick(&self.world.words);
        let old = self.world.load(at);
        let new = match random.below(3) {
            0 => random.value(),
            _ => old ^ 1 << random.below(64),
        };
        self.world.store(at, new);
        self.store(at, new)?;
        let mut invalidations = all.to_vec();
        invalidations.extend(of_guests(&self.world));
        self.commands(&invalidations, summary)
    }

    /// A command that is illegal, or a fence, and then the queue begins anew if it has stopped.
    fn strange_command(&mut self, random: &mut Random, summary: &mut Summary) -> Result<(), End> {
        let legal = [
            command::IOTINVAL_VMA,
            command::IOTINVAL_GVMA,
            command::IODIR_INVAL_DDT,
            command::IODIR_INVAL_DDT | 1 << 7 | 1 << 33,
            command::IOFENCE,
        ];
        let words = match random.below(4) {
            0 => {
                let bit = 1 << random.below(64);
                [random.pick(&legal) ^ bit, 0]
            }
            1 => [random.pick(&legal), 1 << random.below(64)],
            2 => {
                let at = match random.chance(80) {
                    true => NOTES + random.below(64) * 4,
                    false => random.value() & !3,
                };
                let wire = random.bits() & 1 << 11;
                let data = random.bits() << 32;
                [command::IOFENCE | command::AV | wire | data, at >> 2]
            }
            _ => [random.value(), random.value()],
        };
        self.commands(&[words], summary)?;
        self.compare_registers(u64::MAX)?;
        let status = self.ours.read(CQCSR as u16, 4);
        if status & u64::from(queue::FAULTS) != 0 {
            let kept = status & u64::from(queue::INTERRUPT_ENABLE);
            self.write(CQCSR, 4, kept | u64::from(queue::FAULTS))?;
            self.write(CQT, 4, 0)?;
            self.write(CQCSR, 4, kept | u64::from(queue::ENABLE))?;
            self.tail = 0;
        }
        Ok(())
    }

    fn compare_registers(&mut self, step: u64) -> Result<(), End> {
        for (offset, size) in REGISTERS {
            let ours = self.ours.read(offset as u16, size);
            let theirs = self.model.read(offset as u16, size)?;
            if ours != theirs {
                let what =
                    format!("step {step}: register {offset} is {ours:#x}, the model's {theirs:#x}");
                return Err(End::Differs(what));
            }
        }
        Ok(())
    }

    fn compare_memory(&mut self) -> Result<(), End> {
        let theirs = self.model.memory()?;
        let ours = self.ours.memory();
        let tables = self.world.leaves.iter().filter(|leaf| leaf.is_table);
        let tables: BTreeSet<u64> = tables.map(|leaf| leaf.at).collect();
        let both = ours.chunks(8).map(word).zip(theirs.chunks(8).map(word));
        for (at, (ours, theirs)) in (0..).step_by(8).zip(both) {
            // The model leaves out where in its page a table's entry is, as it may ("Fault record", note on iotval2).
            let is_value = (FAULTS..FAULTS + FAULT_BYTES).contains(&at) && at % 32 == 24;
            let left_out = match is_value && ours & theirs & 1 != 0 {
                true => 0xffc,
                // The model sets D with A in the second stage's entry of a table, as it may.
                false if tables.contains(&at) => DIRTY,
                false => 0,
            };
            if ours & !left_out != theirs & !left_out {
                return Err(End::Differs(format!(
                    "memory at {at:#x} holds {ours:#x}, the model's {theirs:#x}"
                )));
            }
        }
        Ok(())
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}
