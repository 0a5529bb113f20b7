//! Driver of an IOMMU: confines the devices of VMs to the memory of their VMs (RISC-V IOMMU Architecture 1.0).
//!
//! A device is translated by its VM's own G-stage table, under a number (GSCID) that no other VM ever has. So the IOMMU is a third place, beside
//! harts and the purge state of vCPUs, that keeps translations of this table: each change of an entry is followed by [`Iommu::page_changed`],
//! which returns when the IOMMU has dropped the old one and all earlier accesses of devices are done.
//!
//! Devices that no VM has are refused. ATS, page requests and messages are off.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

pub mod board;
mod directory;
mod error;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use riscv::iommu::{
    CAPABILITIES, CQB, CQCSR, CQH, CQT, DDTP, FCTL, FCTL_BE_GXL, FQB, FQCSR, FQH, FQT, PPN_SHIFT,
    PQCSR, capabilities, command, ddtp, fault, queue,
};

use crate::lock::{Mutex, place};
use crate::memory::address::{GuestPhysical, HostPhysical, PAGE_SIZE};
use crate::memory::gstage::TableMemory;
use directory::{Control, Directory, Domain};
pub use error::IommuError;

/// Commands of the queue, which fills a page.
const COMMANDS: u32 = (PAGE_SIZE / command::BYTES) as u32;
/// Records of the fault queue, which fills a page.
const RECORDS: u32 = (PAGE_SIZE / fault::BYTES) as u32;
/// Faults of a domain, or of devices that no VM has, after which no more are reported until the VM starts again.
pub const MAX_FAULTS: u32 = 16;

/// The computer.
pub trait Port: TableMemory {
    /// Reads a register of four bytes.
    fn word(&self, register: u64) -> u32;
    /// Writes a register of four bytes.
    fn set_word(&self, register: u64, value: u32);
    /// Reads a register of eight bytes.
    fn doubleword(&self, register: u64) -> u64;
    /// Writes a register of eight bytes.
    fn set_doubleword(&self, register: u64, value: u64);
    /// Orders all accesses to memory and registers before all later ones.
    fn order(&self);
    /// Tests whether the IOMMU has had time enough since `began`, which an earlier call returned, or since none.
    fn waited(&self, began: &mut Option<u64>) -> bool;
}

/// Access that the IOMMU has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Number of the domain; none if no VM has the device.
    pub domain: Option<u16>,
    pub device: u32,
    pub cause: u32,
    pub address: u64,
    /// Set if this is the last one that is reported.
    pub last: bool,
}

/// Domain, with its present rights, and its faults since its VM was started.
#[derive(Debug)]
struct Confined {
    domain: Domain,
    control: Control,
    faults: u32,
}

/// State that one hart changes at a time.
#[derive(Debug)]
struct State<P> {
    port: P,
    directory: Directory,
    commands: HostPhysical,
    /// Index of the next command.
    tail: u32,
    records: HostPhysical,
    /// Index of the next record.
    head: u32,
    confined: Vec<Confined>,
    /// Faults of devices that no VM has.
    strange: u32,
    /// Set once it has not answered: it was switched off.
    failed: bool,
    /// Set once the operator knows.
    told: bool,
}

/// An IOMMU.
#[derive(Debug)]
pub struct Iommu<P> {
    state: Mutex<State<P>, { place::SOURCE }>,
}

impl<P: Port> Iommu<P> {
    /// Takes an IOMMU over, and refuses all accesses of devices until [`Iommu::open`]. Device ids go up to `highest`.
    ///
    /// # Errors
    /// [`IommuError`]; then all accesses are refused, if the IOMMU does anything at all.
    #[inline(never)]
    pub fn begin(mut port: P, highest: u32) -> Result<Self, IommuError> {
        let features = port.doubleword(CAPABILITIES);
        let version = features >> capabilities::MAJOR_SHIFT & capabilities::MAJOR_MASK;
        if version != 1 {
            return Err(IommuError::VERSION);
        }
        set_mode(&port, port.doubleword(DDTP) & !ddtp::MODE)?;
        let has_requests = features & capabilities::ATS != 0;
        let queues = [CQCSR, FQCSR, PQCSR];
        for csr in queues.into_iter().take(if has_requests { 3 } else { 2 }) {
            set_queue(&port, csr, 0)?;
        }
        let control = port.word(FCTL);
        if control & FCTL_BE_GXL != 0 {
            port.set_word(FCTL, control & !FCTL_BE_GXL);
            if port.word(FCTL) & FCTL_BE_GXL != 0 {
                return Err(IommuError::ENDIANNESS);
            }
        }
        let mut page = || port.allocate(PAGE_SIZE).ok_or(IommuError::MEMORY);
        let (commands, records, root) = (page()?, page()?, page()?);
        let extended = features & capabilities::MSI_FLAT != 0;
        let directory = Directory {
            root,
            levels: levels(&port, root, (extended, highest))?,
            extended,
        };
        port.set_doubleword(CQB, base(commands, COMMANDS));
        port.set_word(CQT, 0);
        set_queue(&port, CQCSR, queue::ENABLE)?;
        port.set_doubleword(FQB, base(records, RECORDS));
        port.set_word(FQH, 0);
        set_queue(&port, FQCSR, queue::ENABLE)?;
        let state = State {
            port,
            directory,
            commands,
            tail: 0,
            records,
            head: 0,
            confined: Vec::new(),
            strange: 0,
            failed: false,
            told: false,
        };
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    /// Confines devices with these ids to the memory of a G-stage table, whose hgatp without a VMID this is.
    ///
    /// # Errors
    /// [`IommuError`]
    pub fn confine(
        &self,
        number: u16,
        table: u64,
        ids: RangeInclusive<u32>,
    ) -> Result<(), IommuError> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let mode = table >> 60;
        let features = state.port.doubleword(CAPABILITIES);
        if features >> (mode + capabilities::GUEST_MODE_SHIFT) & 1 == 0 {
            return Err(IommuError::MODE);
        }
        let place = state
            .confined
            .iter()
            .position(|own| own.domain.number == number);
        let place = place.unwrap_or_else(|| {
            let table = table | u64::from(number) << command::GSCID_SHIFT;
            let domain = Domain::new(number, table);
            state.confined.push(Confined {
                domain,
                control: Control::Open,
                faults: 0,
            });
            state.confined.len() - 1
        });
        match state.confined.get_mut(place) {
            Some(own) => state.directory.add(&mut own.domain, ids, &mut state.port),
            None => Ok(()),
        }
    }

    /// Begins to translate.
    ///
    /// # Errors
    /// [`IommuError`]
    pub fn open(&self) -> Result<(), IommuError> {
        let mut state = self.state.lock();
        if state.failed {
            return Err(IommuError::COMMANDS);
        }
        // Nothing that it has kept from before may count.
        state.run(&[
            [command::IODIR_INVAL_DDT, 0],
            [command::IOTINVAL_VMA, 0],
            [command::IOTINVAL_GVMA, 0],
        ])?;
        let Directory { root, levels, .. } = state.directory;
        set_mode(&state.port, live(root, levels))
    }

    /// Drops the translation of a page of a domain's table, which has changed in memory; then all earlier accesses of devices are done.
    /// An IOMMU that does not answer is switched off.
    pub fn page_changed(&self, number: u16, page: GuestPhysical) {
        let of_domain = command::GV | u64::from(number) << command::GSCID_SHIFT;
        let invalidate = command::IOTINVAL_GVMA | command::AV | of_domain;
        let page = (page.raw() / PAGE_SIZE) << command::PAGE_SHIFT;
        self.state.lock().run_or_fail(&[[invalidate, page]]);
    }

    /// Drops what the IOMMU knows of a domain's table. Earlier accesses of its devices are done then.
    pub fn table_changed(&self, number: u16) {
        let of_domain = command::GV | u64::from(number) << command::GSCID_SHIFT;
        let invalidate = command::IOTINVAL_GVMA | of_domain;
        self.state.lock().run_or_fail(&[[invalidate, 0]]);
    }

    /// Begins or ends the accesses of a domain's devices: between lives of its VM they reach nothing.
    pub fn admit(&self, number: u16, admitted: bool) {
        let mut state = self.state.lock();
        let control = match admitted {
            true => Control::Open,
            false => Control::Closed,
        };
        let confined = state.confined.iter_mut();
        for own in confined.filter(|own| admitted && own.domain.number == number) {
            own.faults = 0;
        }
        state.control(number, control);
    }

    /// Tests whether the IOMMU has not answered and was switched off, the first time after that.
    pub fn take_failure(&self) -> bool {
        let mut state = self.state.lock();
        state.failed && !core::mem::replace(&mut state.told, true)
    }

    /// Passes the faults since the last call to `tell`, as many as the queue has at most. Those of a domain with too many are not reported any more.
    pub fn faults(&self, mut tell: impl FnMut(Fault)) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if state.failed {
            return;
        }
        let tail = state.port.word(FQT) % RECORDS;
        let status = state.port.word(FQCSR);
        if status & queue::FAULTS != 0 {
            // Records were lost, and none is written before this.
            let status = queue::ENABLE | status & queue::FAULTS;
            state.port.set_word(FQCSR, status);
        }
        if tail == state.head {
            return;
        }
        state.port.order();
        while state.head != tail {
            let at = state.records.raw() + fault::BYTES * u64::from(state.head);
            let read = |offset| state.port.read(HostPhysical::new(at + offset));
            let (record, address) = (read(0), read(fault::ADDRESS));
            state.head = (state.head + 1) % RECORDS;
            let device = (record >> fault::DEVICE_SHIFT) as u32;
            let mut fault = Fault {
                domain: None,
                device,
                cause: (record & fault::CAUSE) as u32,
                address,
                last: false,
            };
            let mut confined = state.confined.iter_mut();
            let own = confined.find(|own| own.domain.has(device));
            fault.domain = own.as_ref().map(|own| own.domain.number);
            let is_open = own.as_ref().is_some_and(|own| own.control == Control::Open);
            let faults = own.map_or(&mut state.strange, |own| &mut own.faults);
            *faults = faults.saturating_add(1);
            if *faults > MAX_FAULTS {
                continue;
            }
            fault.last = *faults == MAX_FAULTS;
            if let (Some(number), true, true) = (fault.domain, is_open, fault.last) {
                state.control(number, Control::Quiet);
            }
            tell(fault);
        }
        let head = state.head;
        state.port.set_word(FQH, head);
    }
}

impl<P: Port> State<P> {
    /// Sets the rights of a domain's devices, and waits until they hold.
    fn control(&mut self, number: u16, control: Control) {
        let confined = self.confined.iter_mut();
        for own in confined.filter(|own| own.domain.number == number) {
            own.control = control;
            self.directory.control(&own.domain, control, &mut self.port);
        }
        let of_domain = command::GV | u64::from(number) << command::GSCID_SHIFT;
        self.run_or_fail(&[
            [command::IODIR_INVAL_DDT, 0],
            [command::IOTINVAL_VMA | of_domain, 0],
            [command::IOTINVAL_GVMA | of_domain, 0],
        ]);
    }

    /// As [`State::run`]; an IOMMU that does not answer is switched off, so that nothing passes.
    fn run_or_fail(&mut self, commands: &[[u64; 2]]) {
        if !self.failed && self.run(commands).is_err() {
            self.failed = true;
            let _ = set_mode(&self.port, self.port.doubleword(DDTP) & !ddtp::MODE);
        }
    }

    /// Carries out commands, and a fence behind them. The queue is empty before, and afterwards.
    fn run(&mut self, commands: &[[u64; 2]]) -> Result<(), IommuError> {
        for words in commands.iter().chain(&[[command::IOFENCE, 0]]) {
            let at = self.commands.raw() + command::BYTES * u64::from(self.tail);
            for (word, offset) in words.iter().zip([0, 8]) {
                self.port.write(HostPhysical::new(at + offset), *word);
            }
            self.tail = (self.tail + 1) % COMMANDS;
        }
        self.port.order();
        self.port.set_word(CQT, self.tail);
        let tail = self.tail;
        let no_answer = IommuError::COMMANDS;
        wait(&self.port, no_answer, |port| {
            port.word(CQH) == tail && port.word(CQCSR) & queue::FAULTS == 0
        })?;
        self.port.order();
        Ok(())
    }
}

/// Number of levels of the directory for ids up to `highest`, which the IOMMU accepts. It refuses all accesses afterwards.
fn levels(
    port: &impl Port,
    root: HostPhysical,
    (extended, highest): (bool, u32),
) -> Result<u32, IommuError> {
    let none = IommuError::LEVELS;
    for levels in Directory::needed(extended, highest).ok_or(none)?..=3 {
        let wanted = live(root, levels);
        // The directory is empty, and lets nothing pass.
        set_mode(port, wanted)?;
        let is_accepted = port.doubleword(DDTP) == wanted;
        set_mode(port, port.doubleword(DDTP) & !ddtp::MODE)?;
        if is_accepted {
            return Ok(levels);
        }
    }
    Err(none)
}

/// `ddtp` of a directory.
const fn live(root: HostPhysical, levels: u32) -> u64 {
    (root.raw() / PAGE_SIZE) << PPN_SHIFT | (ddtp::ONE_LEVEL + levels as u64 - 1)
}

/// Base register of a queue of a page.
const fn base(page: HostPhysical, entries: u32) -> u64 {
    (page.raw() / PAGE_SIZE) << PPN_SHIFT | (entries.ilog2() as u64 - 1)
}

/// Writes `ddtp`, and waits until it holds.
fn set_mode(port: &impl Port, value: u64) -> Result<(), IommuError> {
    let no_answer = IommuError::POINTER;
    let is_ready = |port: &_| Port::doubleword(port, DDTP) & ddtp::BUSY == 0;
    wait(port, no_answer, is_ready)?;
    port.order();
    port.set_doubleword(DDTP, value & !ddtp::BUSY);
    wait(port, no_answer, is_ready)?;
    match port.doubleword(DDTP) & ddtp::MODE == ddtp::OFF || value & ddtp::MODE != ddtp::OFF {
        true => Ok(()),
        false => Err(no_answer),
    }
}

/// Switches a queue on or off, and waits until it is.
fn set_queue(port: &impl Port, csr: u64, value: u32) -> Result<(), IommuError> {
    let no_answer = IommuError::QUEUE;
    wait(port, no_answer, |port| port.word(csr) & queue::BUSY == 0)?;
    port.set_word(csr, value);
    wait(port, no_answer, |port| {
        let status = port.word(csr);
        status & queue::BUSY == 0 && (status & queue::ON != 0) == (value & queue::ENABLE != 0)
    })
}

/// Waits until a condition holds, for a limited time.
fn wait<P: Port>(
    port: &P,
    error: IommuError,
    condition: impl Fn(&P) -> bool,
) -> Result<(), IommuError> {
    let mut began = None;
    while !condition(port) {
        if port.waited(&mut began) {
            return Err(error);
        }
    }
    Ok(())
}
