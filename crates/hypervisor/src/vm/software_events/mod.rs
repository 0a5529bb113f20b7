//! Supervisor software events of a VM (RISC-V SBI specification 3.0, "Supervisor Software Events Extension").
//!
//! An event preempts its vCPU whatever interrupts are enabled. Each vCPU has an event of its double traps, one of its counters' overflows and one that
//! software injects, and the VM has one that software injects. All state is made with the VM and has a fixed size. A vCPU whose guest uses no events is
//! never asked.
//!
//! The vCPU of an event is delivered it before it next enters its guest ([`SoftwareEvents::deliver`]); what has to be told to another vCPU,
//! calls return.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

pub mod attributes;
mod interruption;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use interruption::Interruptible;

use alloc::boxed::Box;

use interruption::Interrupted;
use riscv::sbi::software_events as number;

/// Refusal of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventError {
    /// The event is defined, and the VM does not have it.
    NotSupported,
    /// A parameter or the value of an attribute is invalid.
    InvalidParameter,
    /// The attribute is read-only.
    Denied,
    /// The state of the event does not permit it.
    InvalidState,
    /// An attribute is not defined.
    BadRange,
    /// The vCPU takes events already.
    AlreadyStarted,
    /// The vCPU takes no events already.
    AlreadyStopped,
}

/// An event that a VM may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Event of a vCPU's double trap.
    DoubleTrap,
    /// Event of the overflow of a vCPU's counter.
    CounterOverflow,
    /// Event of each vCPU that software injects.
    Local,
    /// Event of the VM that software injects.
    Global,
}

/// Events of hardware that a VM has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    pub double_traps: bool,
    pub counter_overflows: bool,
}

/// Number of events of each vCPU.
const LOCAL_EVENTS: usize = 3;

impl Event {
    /// All events.
    const ALL: [Self; LOCAL_EVENTS + 1] = [
        Self::DoubleTrap,
        Self::CounterOverflow,
        Self::Local,
        Self::Global,
    ];

    /// The event that a call names.
    ///
    /// # Errors
    /// [`EventError::NotSupported`] for events of the specification that need hardware which is not there, [`EventError::InvalidParameter`] for all
    /// other numbers.
    pub const fn named(event: u64, offered: Offered) -> Result<Self, EventError> {
        // The event is a 32-bit parameter.
        match event as u32 {
            number::LOCAL_SOFTWARE => Ok(Self::Local),
            number::GLOBAL_SOFTWARE => Ok(Self::Global),
            number::DOUBLE_TRAP if offered.double_traps => Ok(Self::DoubleTrap),
            number::COUNTER_OVERFLOW if offered.counter_overflows => Ok(Self::CounterOverflow),
            number::LOCAL_HIGH_PRIORITY_ERROR
            | number::DOUBLE_TRAP
            | number::GLOBAL_HIGH_PRIORITY_ERROR
            | number::COUNTER_OVERFLOW
            | number::LOCAL_LOW_PRIORITY_ERROR
            | number::GLOBAL_LOW_PRIORITY_ERROR => Err(EventError::NotSupported),
            _ => Err(EventError::InvalidParameter),
        }
    }

    /// Number of the event, by which events of one priority are ordered.
    const fn number(self) -> u32 {
        match self {
            Self::DoubleTrap => number::DOUBLE_TRAP,
            Self::CounterOverflow => number::COUNTER_OVERFLOW,
            Self::Local => number::LOCAL_SOFTWARE,
            Self::Global => number::GLOBAL_SOFTWARE,
        }
    }
}

/// State of an event (section "Software Event States").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum State {
    #[default]
    Unused,
    Registered,
    Enabled,
    Running,
}

/// An event of a vCPU or of the VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Record {
    state: State,
    is_pending: bool,
    is_one_shot: bool,
    priority: u32,
    entry: u64,
    argument: u64,
    /// State that the handler has interrupted.
    interrupted: Interrupted,
}

impl Record {
    /// Moves the event from one state to another.
    fn advance(&mut self, from: State, to: State) -> Result<(), EventError> {
        if self.state != from {
            return Err(EventError::InvalidState);
        }
        self.state = to;
        Ok(())
    }

    const fn is_due(&self) -> bool {
        matches!(self.state, State::Enabled) && self.is_pending
    }

    const fn end(&mut self) {
        self.state = match self.is_one_shot {
            true => State::Registered,
            false => State::Enabled,
        };
    }
}

/// Events of a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Own {
    /// Set if the vCPU takes events.
    takes_events: bool,
    /// Set if the vCPU has taken events since it started.
    has_taken_events: bool,
    /// Its events, in the order of [`Event`].
    events: [Record; LOCAL_EVENTS],
}

impl Own {
    /// A local event.
    fn event(&self, event: Event) -> Option<&Record> {
        self.events.get(event as usize)
    }
}

/// All events of a VM. vCPUs are named by their indices in the VM; nothing happens for one that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SoftwareEvents {
    vcpus: Box<[Own]>,
    global: Record,
    /// vCPU that should handle the global event.
    preferred: usize,
    /// vCPU that handles the global event. Meaningless unless the event is running.
    handler: usize,
}

impl SoftwareEvents {
    /// Events of a VM with so many vCPUs, which take none yet.
    #[must_use]
    pub fn new(vcpus: usize) -> Self {
        Self {
            vcpus: alloc::vec![Own::default(); vcpus].into_boxed_slice(),
            global: Record::default(),
            preferred: 0,
            handler: 0,
        }
    }

    /// Resets all events, for a VM that starts.
    pub fn reset(&mut self) {
        self.vcpus.fill(Own::default());
        self.global = Record::default();
        (self.preferred, self.handler) = (0, 0);
    }

    /// Resets the events of a vCPU that stops. The event of the VM must be enabled again if the vCPU was handling it. Returns the vCPU to tell of
    /// that event.
    #[must_use]
    pub fn stop(&mut self, own: usize) -> Option<usize> {
        if self.handles_global(own) {
            self.global.state = State::Registered;
        }
        *self.own(own)? = Own::default();
        self.taker()
    }

    fn own(&mut self, vcpu: usize) -> Option<&mut Own> {
        self.vcpus.get_mut(vcpu)
    }

    fn record(&mut self, own: usize, event: Event) -> Result<&mut Record, EventError> {
        if event == Event::Global {
            return Ok(&mut self.global);
        }
        let own = self.own(own).ok_or(EventError::InvalidParameter)?;
        let record = own.events.get_mut(event as usize);
        record.ok_or(EventError::InvalidParameter)
    }

    fn takes_events(&self, vcpu: usize) -> bool {
        self.vcpus.get(vcpu).is_some_and(|own| own.takes_events)
    }

    fn handles_global(&self, vcpu: usize) -> bool {
        self.global.state == State::Running && self.handler == vcpu
    }

    /// vCPU that takes the event of the VM now. The event waits for the preferred one while that takes no events for a time; it goes to the first
    /// that takes events if the preferred one has taken none since it started.
    fn route(&self) -> Option<usize> {
        let preferred = self.vcpus.get(self.preferred)?;
        if preferred.has_taken_events {
            return preferred.takes_events.then_some(self.preferred);
        }
        self.vcpus.iter().position(|own| own.takes_events)
    }

    /// vCPU to tell of the event of the VM, if that is due.
    fn taker(&self) -> Option<usize> {
        self.route().filter(|_| self.global.is_due())
    }

    /// Registers the handler at `entry` with `argument` for an event (FID #2).
    ///
    /// # Errors
    /// [`EventError`]; nothing has changed then.
    pub fn register(
        &mut self,
        (own, event): (usize, Event),
        entry: u64,
        argument: u64,
    ) -> Result<(), EventError> {
        if entry & 1 != 0 {
            return Err(EventError::InvalidParameter);
        }
        let record = self.record(own, event)?;
        record.advance(State::Unused, State::Registered)?;
        record.entry = entry;
        record.argument = argument;
        Ok(())
    }

    /// Unregisters the handler of an event (FID #3).
    ///
    /// # Errors
    /// [`EventError`]; nothing has changed then.
    pub fn unregister(&mut self, own: usize, event: Event) -> Result<(), EventError> {
        self.record(own, event)?
            .advance(State::Registered, State::Unused)
    }

    /// Enables an event (FID #4). Returns the vCPU to tell, if the event is due.
    ///
    /// # Errors
    /// [`EventError`]; nothing has changed then.
    pub fn enable(&mut self, own: usize, event: Event) -> Result<Option<usize>, EventError> {
        self.record(own, event)?
            .advance(State::Registered, State::Enabled)?;
        Ok(self.told_of(own, event))
    }

    /// Disables an event (FID #5).
    ///
    /// # Errors
    /// [`EventError`]; nothing has changed then.
    pub fn disable(&mut self, own: usize, event: Event) -> Result<(), EventError> {
        self.record(own, event)?
            .advance(State::Enabled, State::Registered)
    }

    /// Makes an event pending, a local one that of the vCPU `target` (FID #7). Returns the vCPU to tell, if the event is due.
    ///
    /// # Errors
    /// [`EventError::InvalidParameter`] if there is no such vCPU.
    pub fn inject(&mut self, event: Event, target: u64) -> Result<Option<usize>, EventError> {
        let target = usize::try_from(target).unwrap_or(usize::MAX);
        self.record(target, event)?.is_pending = true;
        Ok(self.told_of(target, event))
    }

    /// vCPU to tell of an event, a local one of `vcpu`, if that is due.
    fn told_of(&self, vcpu: usize, event: Event) -> Option<usize> {
        if event == Event::Global {
            return self.taker();
        }
        let own = self.vcpus.get(vcpu).filter(|own| own.takes_events)?;
        own.event(event)?.is_due().then_some(vcpu)
    }

    /// Makes the vCPU take events (FID #8). The vCPU is to be told.
    ///
    /// # Errors
    /// [`EventError::AlreadyStarted`].
    pub fn unmask(&mut self, own: usize) -> Result<(), EventError> {
        let own = self.own(own).ok_or(EventError::InvalidParameter)?;
        if core::mem::replace(&mut own.takes_events, true) {
            return Err(EventError::AlreadyStarted);
        }
        own.has_taken_events = true;
        Ok(())
    }

    /// Makes the vCPU take no events (FID #9). Returns the vCPU to tell of the event of the VM, if that is due.
    ///
    /// # Errors
    /// [`EventError::AlreadyStopped`].
    pub fn mask(&mut self, own: usize) -> Result<Option<usize>, EventError> {
        let own = self.own(own).ok_or(EventError::InvalidParameter)?;
        if !core::mem::replace(&mut own.takes_events, false) {
            return Err(EventError::AlreadyStopped);
        }
        Ok(self.taker())
    }

    /// Priority of an event among all that a vCPU may take: the lowest is first (section "Software Event Priority").
    fn rank(&self, own: &Own, event: Event) -> (u32, u32) {
        let record = own.event(event).unwrap_or(&self.global);
        (record.priority, event.number())
    }

    /// The event of the vCPU that comes first, of its own for which a test holds, and of the VM's if `global` is set.
    fn first(
        &self,
        own: usize,
        local: impl Fn(&Record) -> bool,
        global: bool,
    ) -> Option<(Event, (u32, u32))> {
        let own = self.vcpus.get(own)?;
        let events = Event::ALL.into_iter();
        let events = events.filter(|event| own.event(*event).map_or(global, &local));
        let ranked = events.map(|event| (event, self.rank(own, event)));
        ranked.min_by_key(|(_, rank)| *rank)
    }

    /// The event that the vCPU handles now: of several, that which has preempted the others.
    fn running(&self, own: usize) -> Option<(Event, (u32, u32))> {
        let runs = |record: &Record| record.state == State::Running;
        self.first(own, runs, self.handles_global(own))
    }

    /// Redirects the vCPU to the handler of the first event that is due, unless the vCPU handles one of at least its priority (section "Software
    /// Event Injection"). Returns true if there was one.
    pub fn deliver(&mut self, own: usize, vcpu: &mut Interruptible) -> bool {
        if !self.takes_events(own) {
            return false;
        }
        let global = self.taker() == Some(own);
        let Some((event, rank)) = self.first(own, Record::is_due, global) else {
            return false;
        };
        if self
            .running(own)
            .is_some_and(|(_, running)| running <= rank)
        {
            return false;
        }
        if event == Event::Global {
            self.handler = own;
        }
        let Ok(record) = self.record(own, event) else {
            return false;
        };
        record.state = State::Running;
        record.is_pending = false;
        record.interrupted = vcpu.redirect(record.entry, own as u64, record.argument);
        true
    }

    /// Redirects the vCPU to its handler of double traps. Returns false if that is not enabled or must wait, so that the vCPU cannot go on.
    pub fn double_trap(&mut self, own: usize, vcpu: &mut Interruptible) -> bool {
        if let Ok(record) = self.record(own, Event::DoubleTrap) {
            record.is_pending = true;
        }
        // An event that comes first is handled first; this one follows it, before the instruction is executed again.
        let is_due = self.told_of(own, Event::DoubleTrap).is_some();
        is_due && self.deliver(own, vcpu)
    }

    /// Ends the event that the vCPU handles, and resumes what was interrupted (FID #6). Returns `None` if it handles none; otherwise the vCPU to
    /// tell of the event of the VM, if that is due. The calling vCPU is to be told in any case.
    pub fn complete(&mut self, own: usize, vcpu: &mut Interruptible) -> Option<Option<usize>> {
        let (event, _) = self.running(own)?;
        let record = self.record(own, event).ok()?;
        record.end();
        vcpu.resume(&record.interrupted);
        Some(self.taker())
    }
}
