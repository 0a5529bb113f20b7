//! The monitor's figures as one document, with their definitions.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::{
    Causes, Event, EventCounts, HartCounts, HartSnapshot, Snapshot, TrapCode, VirtualCounts,
};
use crate::base::{Cycles, Mode, Privilege};
use crate::device::virtio::Statistics;
use crate::hart::Hart;
use crate::machine::Machine;

/// Name of a thing that is counted: one of this build's, or one that a recorded report has.
pub type Name = Cow<'static, str>;
/// Counts by the names of their events; what was never counted is left out.
pub type Counts = BTreeMap<Name, u64>;
/// Traps by their causes; what did not occur is left out.
pub type Traps = BTreeMap<String, u64>;

/// Counts of the time in which a virtual machine had the hart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualReport {
    /// In VS-mode.
    pub supervisor: Counts,
    /// In VU-mode.
    pub user: Counts,
    /// Traps to HS- or M-mode by cause.
    pub exits: Traps,
}

/// Figures of one hart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HartReport {
    /// mhartid.
    pub hart: u32,
    /// Cycles.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Mean instruction time in picoseconds, without the time spent waiting in WFI and WRS; absent
    /// if no instruction was retired.
    pub mean_instruction_picoseconds: Option<u64>,
    /// All modes together.
    pub total: Counts,
    /// Mode by mode.
    pub modes: BTreeMap<Name, Counts>,
    /// By VMID.
    #[serde(deserialize_with = "by_vmid")]
    pub virtual_machines: BTreeMap<u16, VirtualReport>,
    /// Traps from V = 1 to HS-mode by cause.
    pub exits: Traps,
    /// Traps from V = 1 to M-mode by cause.
    pub exits_to_machine: Traps,
    /// All traps by the mode that they came from and by cause.
    pub traps: BTreeMap<Name, Traps>,
    /// How often the simulator had to translate an address: its own figure, not the computer's.
    pub host_translations: u64,
}

/// Reads VMIDs as text. A report that is a flattened part of a larger document has no other keys.
fn by_vmid<'de, D: Deserializer<'de>>(
    document: D,
) -> Result<BTreeMap<u16, VirtualReport>, D::Error> {
    let named = BTreeMap::<String, VirtualReport>::deserialize(document)?;
    let numbered = named.into_iter().map(|(vmid, report)| {
        let vmid = vmid.parse().map_err(D::Error::custom)?;
        Ok((vmid, report))
    });
    numbered.collect()
}

/// Figures of one virtio device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// Number of its slot.
    pub slot: usize,
    /// Description.
    pub kind: Name,
    /// Requests taken.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Cycles of service, summed over requests.
    pub busy_cycles: u64,
    /// Cycles that requests waited for service, summed.
    pub waited_cycles: u64,
}

/// A stretch of a hart in the hypervisor in which it takes and sees no interrupt. It begins when a guest is left, a wait ends or HS-mode reads
/// what is pending; it ends with the return to a guest, an interrupt, a wait, or the next such read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StretchReport {
    /// mhartid.
    pub hart: u32,
    /// Length in cycles.
    pub cycles: u64,
    /// Length in nanoseconds.
    pub nanoseconds: u64,
    /// The hart's time at its beginning, in cycles since reset.
    pub begin_cycles: u64,
    /// Trap from the guest that it began with; absent after a wait and after a read of what is pending.
    pub cause: Option<String>,
    /// Address of the instruction that ended it.
    pub end_pc: String,
}

/// Figures of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Machine time in cycles.
    pub cycles: u64,
    /// Cycles a second.
    pub hertz: u64,
    /// True if caches and TLBs were modelled: their counts mean nothing in the functional mode.
    pub measured: bool,
    /// A hash of all of memory at the end.
    pub memory_hash: String,
    /// The longest stretch of a hart in the hypervisor, if they were watched and there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_hypervisor_stretch: Option<StretchReport>,
    /// Hart by hart.
    pub harts: Vec<HartReport>,
    /// Device by device.
    pub devices: Vec<DeviceReport>,
    /// Definitions of the names of counts.
    pub definitions: BTreeMap<Name, Name>,
}

impl Report {
    /// How often an event occurred, on all harts and in all modes.
    #[must_use]
    pub fn total(&self, event: Event) -> u64 {
        let harts = self.harts.iter();
        harts.filter_map(|hart| hart.total.get(event.name())).sum()
    }
}

fn counts(events: &EventCounts) -> Counts {
    let each = Event::ALL.into_iter();
    each.map(|event| (Name::from(event.name()), events.get(event)))
        .filter(|(_, count)| *count != 0)
        .collect()
}

/// The name of an exception: privileged specification, "Trap Cause Codes".
fn exception_name(code: usize) -> String {
    let name = match code {
        0 => "instruction address misaligned",
        1 => "instruction access fault",
        2 => "illegal instruction",
        3 => "breakpoint",
        4 => "load address misaligned",
        5 => "load access fault",
        6 => "store address misaligned",
        7 => "store access fault",
        8 => "call from U or VU",
        9 => "call from HS",
        10 => "call from VS",
        11 => "call from M",
        12 => "instruction page fault",
        13 => "load page fault",
        15 => "store page fault",
        20 => "instruction guest-page fault",
        21 => "load guest-page fault",
        22 => "virtual instruction",
        23 => "store guest-page fault",
        _ => return format!("exception {code}"),
    };
    name.to_owned()
}

/// The name of an interrupt.
fn interrupt_name(number: usize) -> String {
    let name = match number {
        1 => "supervisor software interrupt",
        2 => "virtual supervisor software interrupt",
        3 => "machine software interrupt",
        5 => "supervisor timer interrupt",
        6 => "virtual supervisor timer interrupt",
        7 => "machine timer interrupt",
        9 => "supervisor external interrupt",
        10 => "virtual supervisor external interrupt",
        11 => "machine external interrupt",
        12 => "supervisor guest external interrupt",
        13 => "counter overflow interrupt",
        _ => return format!("interrupt {number}"),
    };
    name.to_owned()
}

fn trap_name(code: TrapCode) -> String {
    let index = |code| usize::try_from(code).unwrap_or(usize::MAX);
    match code {
        TrapCode::Exception(code) => exception_name(index(code)),
        TrapCode::Interrupt(number) => interrupt_name(index(number)),
    }
}

fn traps(causes: &Causes) -> Traps {
    let exceptions = causes.exceptions.iter().enumerate();
    let interrupts = causes.interrupts.iter().enumerate();
    exceptions
        .map(|(code, &count)| (exception_name(code), count))
        .chain(interrupts.map(|(number, &count)| (interrupt_name(number), count)))
        .filter(|(_, count)| *count != 0)
        .collect()
}

/// The modes in the order of [`Mode::index`].
fn modes() -> [Mode; Mode::COUNT] {
    let mut modes = [Mode::MACHINE; Mode::COUNT];
    for privilege in [Privilege::User, Privilege::Supervisor, Privilege::Machine] {
        for virtualized in [false, true] {
            let mode = Mode::new(privilege, virtualized);
            modes[mode.index()] = mode;
        }
    }
    modes
}

fn virtual_report(machine: &VirtualCounts) -> VirtualReport {
    VirtualReport {
        supervisor: counts(&machine.supervisor),
        user: counts(&machine.user),
        exits: traps(&machine.exits),
    }
}

fn mean_picoseconds(hart: &HartSnapshot, total: &EventCounts, hertz: u64) -> Option<u64> {
    let busy = hart.cycles.saturating_sub(total.get(Event::Waited));
    let picoseconds = u128::from(busy) * 1_000_000_000_000 / u128::from(hertz.max(1));
    let mean = picoseconds.checked_div(hart.instructions.into())?;
    u64::try_from(mean).ok()
}

fn hart_report(number: u32, hart: &HartSnapshot, hertz: u64) -> HartReport {
    let HartCounts {
        modes: by_mode,
        virtual_machines,
        traps: by_origin,
        exits,
        exits_to_machine,
        host_translations,
        ..
    } = &hart.counts;
    let total = hart.counts.total();
    let named = modes().map(|mode| Name::from(mode.name())).into_iter();
    HartReport {
        hart: number,
        cycles: hart.cycles,
        instructions: hart.instructions,
        mean_instruction_picoseconds: mean_picoseconds(hart, &total, hertz),
        total: counts(&total),
        modes: named.clone().zip(by_mode.iter().map(counts)).collect(),
        virtual_machines: virtual_machines
            .iter()
            .map(|(&vmid, machine)| (vmid, virtual_report(machine)))
            .collect(),
        exits: traps(exits),
        exits_to_machine: traps(exits_to_machine),
        traps: named.zip(by_origin.iter().map(traps)).collect(),
        host_translations: *host_translations,
    }
}

fn device_report(slot: usize, kind: &'static str, statistics: Statistics) -> DeviceReport {
    DeviceReport {
        slot,
        kind: kind.into(),
        requests: statistics.requests,
        errors: statistics.errors,
        bytes: statistics.bytes,
        busy_cycles: statistics.busy.0,
        waited_cycles: statistics.waited.0,
    }
}

impl Machine {
    /// The monitor's figures since reset.
    pub fn report(&self) -> Report {
        self.report_since(&Snapshot::default())
    }

    /// The monitor's figures since an earlier moment.
    #[must_use]
    pub fn report_since(&self, earlier: &Snapshot) -> Report {
        let counted = self.snapshot().since(earlier);
        let hertz = self.config().board.clock.cycles_per_second();
        let harts = (0_u32..).zip(&counted.harts);
        let devices = counted.devices.iter().enumerate();
        Report {
            cycles: counted.cycles,
            hertz,
            measured: self.system().timing.is_some(),
            memory_hash: format!("{:016x}", self.memory_hash()),
            longest_hypervisor_stretch: self.longest_stretch(),
            harts: harts
                .map(|(number, hart)| hart_report(number, hart, hertz))
                .collect(),
            devices: devices
                .filter_map(|(slot, device)| {
                    let (kind, statistics) = (*device)?;
                    Some(device_report(slot, kind, statistics))
                })
                .collect(),
            definitions: Event::ALL
                .into_iter()
                .map(|event| (event.name().into(), event.definition().into()))
                .collect(),
        }
    }

    /// The longest stretch in the hypervisor since they are watched; of equal ones that of the first hart.
    fn longest_stretch(&self) -> Option<StretchReport> {
        let of_hart = |hart: &Hart| Some((hart.id.0, hart.stretches.as_ref()?.longest()?));
        let (hart, longest) = (self.harts().iter())
            .filter_map(of_hart)
            .min_by_key(|(_, stretch)| Reverse(stretch.cycles))?;
        Some(StretchReport {
            hart,
            cycles: longest.cycles,
            nanoseconds: self.clock().nanoseconds(Cycles(longest.cycles)),
            begin_cycles: longest.begin,
            cause: longest.cause.map(trap_name),
            end_pc: format!("{:#x}", longest.end),
        })
    }

    /// A hash of all of RAM, which depends on nothing else: XXH3, 64 bits, of the pages that are not
    /// zero, each after its number (8 bytes, least significant first). Takes time for pages that have
    /// been written alone.
    #[must_use]
    pub fn memory_hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        for (number, page) in self.system().memory.ram.pages() {
            hash.update(&(number as u64).to_le_bytes());
            hash.update(page);
        }
        hash.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document with a machine's report among its own parts, as that of a run.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Document {
        #[serde(flatten)]
        part: HartReport,
    }

    #[test]
    fn flattened_reports_come_back() {
        let machine = Machine::new(crate::Config::default()).expect("a machine");
        let mut part = machine.report().harts.remove(0);
        let of_vm = VirtualReport {
            supervisor: Counts::new(),
            user: Counts::from([("instruction".into(), u64::MAX)]),
            exits: Traps::new(),
        };
        part.virtual_machines = BTreeMap::from([(3, of_vm.clone()), (u16::MAX, of_vm)]);
        let document = Document { part };
        let text = serde_json::to_string(&document).expect("JSON");
        let found = serde_json::from_str::<Document>(&text);
        assert_eq!(found.expect("the same document"), document);
        let text = text.replace("\"65535\"", "\"65536\"");
        assert!(serde_json::from_str::<Document>(&text).is_err());
    }
}
