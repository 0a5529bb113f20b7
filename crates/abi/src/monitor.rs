//! The performance monitor's records, and their form on the console.
//!
//! The hypervisor counts in [`WorkCounters`] and [`HartCounters`], and prints a report when it powers off
//! or when the operator asks for one. A report is a run of lines among whatever else the console carries; each starts
//! with [`PREFIX`], names its kind, and gives its fields as `key=value` in a fixed order:
//!
//! ```text
//! partita-monitor begin version=1 timebase=10000000 elapsed=412345678
//! partita-monitor vm id=0 name=web state=stopped reason=power-off restarts=0
//! partita-monitor hart id=0 elapsed=41234567800 idle=1200 scheduling=3400
//! partita-monitor work vm=0 hart=0 guest=900 scheduling=80 dispatches=7 calls=5 injected=2
//! partita-monitor exits vm=0 hart=0 cause=wfi count=6 cycles=120
//! partita-monitor events vm=0 hart=0 event=migration count=3
//! partita-monitor end lines=7
//! ```
//!
//! [`Report`] writes them and [`Reader`] reads them back. The number of lines in the last one, `begin` and
//! `end` included, shows that none was lost.
//!
//! Hypervisor and laboratory are built together, so there is one version and no compatibility: a
//! report of another version is refused.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use crate::system::{HartId, VmId, VmName};
pub use decode::{LineProblem, MonitorError, Reader, Record};
pub use encode::Report;

use core::fmt;

/// What every line of a report starts with.
pub const PREFIX: &str = "partita-monitor ";
/// The version of this form.
pub const VERSION: u64 = 1;

/// A span of time or a count of the `cycle` CSR, in cycles of the hart that counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Cycles(pub u64);

/// A span of time in ticks of the `time` CSR; the board's `timebase-frequency` tells how long one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Ticks(pub u64);

impl core::ops::AddAssign for Cycles {
    /// Counters wrap as the CSRs do.
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Defines an enumeration of one byte whose values have names in reports.
macro_rules! named {
    (
        $(#[$outer:meta])*
        $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$inner])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of their numbers.
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The word for it in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The value that a word stands for.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }

            /// The place in [`Self::ALL`].
            pub fn index(self) -> usize {
                self as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

named! {
    /// Why a vCPU left VS-mode, or for what else the hypervisor worked for its VM.
    ExitCause {
        /// The host's timer: the end of a time slice, or a deadline of another vCPU.
        HostTimer = "host-timer",
        /// Another hart of the host asked for attention.
        HostIpi = "host-ipi",
        /// An interrupt of the host's own devices.
        HostExternal = "host-external",
        /// SGEI: a guest interrupt file of a vCPU that does not run has something pending.
        GuestExternal = "guest-external",
        /// A hardware counter of the vCPU has passed zero.
        CounterOverflow = "counter-overflow",
        /// SBI, Base extension.
        SbiBase = "sbi-base",
        /// SBI, TIME.
        SbiTime = "sbi-time",
        /// SBI, IPI.
        SbiIpi = "sbi-ipi",
        /// SBI, RFENCE.
        SbiRfence = "sbi-rfence",
        /// SBI, HSM.
        SbiHsm = "sbi-hsm",
        /// SBI, SRST.
        SbiSrst = "sbi-srst",
        /// SBI, DBCN and the legacy console.
        SbiDbcn = "sbi-dbcn",
        /// SBI, PMU.
        SbiPmu = "sbi-pmu",
        /// SBI, Partita's own extension.
        SbiPartita = "sbi-partita",
        /// SBI, any other.
        SbiOther = "sbi-other",
        /// WFI with hstatus.VTW set.
        Wfi = "wfi",
        /// WRS.NTO with hstatus.VTW set.
        WrsNto = "wrs-nto",
        /// A pause loop, where the computer has pause-loop exiting (docs/extensions.md).
        PauseLoop = "pause-loop",
        /// SFENCE.VMA or SINVAL.VMA, which traps once after a change of hart (`translations = "one-shot"`), and always with shadow tables.
        Fence = "fence",
        /// An access to satp, which traps as long as fences do.
        AddressSpace = "address-space",
        /// An access to a CSR that is emulated.
        Csr = "csr",
        /// Any other virtual-instruction exception.
        VirtualInstruction = "virtual-instruction",
        /// An access to the emulated UART.
        MmioUart = "mmio-uart",
        /// An access to the emulated APLIC.
        MmioAplic = "mmio-aplic",
        /// An access to the emulated real-time clock.
        MmioClock = "mmio-clock",
        /// An access to a simulated virtio device (`io = "general"` and `"fast"`).
        MmioVirtio = "mmio-virtio",
        /// An access to an interrupt file that is kept in software.
        MmioImsic = "mmio-imsic",
        /// An access to anything else that is emulated.
        MmioOther = "mmio-other",
        /// A G-stage fault on the VM's own memory.
        GuestPageFault = "guest-page-fault",
        /// A page fault of a vCPU on shadow tables, which lacked a leaf.
        ShadowFill = "shadow-fill",
        /// A page fault of a vCPU on shadow tables that the guest gets back: it is the guest's own.
        PageFault = "page-fault",
        /// An illegal instruction that the guest gets back.
        IllegalInstruction = "illegal-instruction",
        /// No exit: the hypervisor has loaded the VM.
        Loading = "loading",
        /// Anything else.
        Other = "other",
    }
}

named! {
    /// What else happens to a VM's vCPUs and is counted, apart from exits.
    Event {
        /// A spin exit that began a wait: the vCPU had not left for this word, or for this ticket, before.
        SpinBegun = "spin-begun",
        /// A spin exit at which what was waited for had come already, so that the guest went on at once.
        SpinOver = "spin-over",
        /// A spin exit after which the vCPU kept its hart.
        SpinKept = "spin-kept",
        /// A spin exit by which the vCPU gave its hart away.
        SpinSuspended = "spin-suspended",
        /// A vCPU that had given its hart away because it spun was dispatched though its word was unchanged (for a
        /// ticket lock: though it was not its turn).
        FutileDispatch = "futile-dispatch",
        /// Waits that ended after one spin exit.
        SpinsOne = "spins-1",
        /// Waits that ended after two.
        SpinsTwo = "spins-2",
        /// Waits that ended after three.
        SpinsThree = "spins-3",
        /// Waits that ended after four.
        SpinsFour = "spins-4",
        /// Waits that ended after more.
        SpinsMore = "spins-more",
        /// Of these, those that ended after more than four even without the exits that followed an interrupt.
        SpinsMoreByItself = "spins-more-by-itself",
        /// A vCPU that waited for a word was dispatched because it had an interrupt, before its word had changed.
        SpinInterrupted = "spin-interrupted",
        /// Of the spin exits, those at which the ticket of a ticket lock was recovered.
        TicketKnown = "ticket-known",
        /// A spin exit at which the lock's holder was found preempted, and got the hart.
        HolderFavoured = "holder-favoured",
        /// An interrupt that the host took because a waiting vCPU had one (SGEI).
        HostInterrupt = "host-interrupt",
        /// A dispatch out of the self-wait queue, by a test.
        SelfWaitDispatch = "self-wait-dispatch",
        /// A dispatch on another hart than the one before.
        Migration = "migration",
        /// A dispatch at which the vCPU's cached translations were dropped, because it may have fenced since they were made.
        TranslationsPurged = "translations-purged",
        /// A dispatch on another hart than the one before, at which they were kept.
        TranslationsKept = "translations-kept",
        /// A dispatch at which the vCPU got another VMID, in place of a fence.
        TranslationsRenamed = "translations-renamed",
        /// A change of hart after which the vCPU's next fence traps.
        FencesArmed = "fences-armed",
        /// A message that reached a vCPU through the guest file that it had on another hart.
        Forwarded = "forwarded",
        /// A dispatch without a guest interrupt file: the vCPU's interrupts were in memory.
        MemoryFile = "memory-file",
        /// An operation of a simulated device that was translated the fast way.
        ChainFast = "chain-fast",
        /// One that was translated the general way.
        ChainGeneral = "chain-general",
        /// A frame that the VM has sent to others through a switch.
        FrameSent = "frame-sent",
        /// A frame that the VM got from a switch.
        FrameReceived = "frame-received",
        /// A frame that the VM has sent and nobody got, or that it did not get for want of room.
        FrameDropped = "frame-dropped",
        /// The form of allocation changed while the VM ran, and a vCPU was told by an interrupt.
        Notified = "notified",
        /// A vCPU that waited without leaving its guest was found by a look.
        SpinFound = "spin-found",
    }
}

named! {
    /// What a VM is doing.
    VmState {
        /// It has not been started.
        Defined = "defined",
        /// Its memory is being loaded, in its own time.
        Loading = "loading",
        /// It runs.
        Running = "running",
        /// The operator has paused it.
        Paused = "paused",
        /// Its vCPUs have been told to stop, and have not all left their harts.
        Ending = "ending",
        /// It has ended.
        Stopped = "stopped",
    }
}

named! {
    /// Why a VM ended.
    StopReason {
        /// It has not.
        None = "none",
        /// It powered off in order (SRST shutdown, no reason given).
        PowerOff = "power-off",
        /// It asked for a reboot and is not to be restarted.
        Reboot = "reboot",
        /// It powered off or rebooted because of a failure of its own (SRST, system failure).
        SystemFailure = "system-failure",
        /// The operator stopped it.
        Operator = "operator",
        /// It did what cannot be passed on to it.
        Fault = "fault",
        /// Its kernel or another part of the image cannot be used.
        BadImage = "bad-image",
        /// The host lacks something that it needs.
        NoResources = "no-resources",
    }
}

/// A report's first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Frequency of the `time` CSR in Hz.
    pub timebase: u64,
    /// Time since the hypervisor's entry.
    pub elapsed: Ticks,
}

/// A VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VmRecord {
    /// Its number.
    pub vm: VmId,
    /// Its name.
    pub name: VmName,
    /// What it is doing.
    pub state: VmState,
    /// Why it ended.
    pub reason: StopReason,
    /// How often it was started again.
    pub restarts: u64,
}

/// What a hart did for nobody in particular.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HartCounters {
    /// Since the hart's entry to the hypervisor.
    pub elapsed: Cycles,
    /// Waiting, with no vCPU to run.
    pub idle: Cycles,
    /// In the hypervisor, outside of idle, and owed to no VM.
    pub scheduling: Cycles,
}

/// What one hart did for one VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkCounters {
    /// In VS- and VU-mode.
    pub guest: Cycles,
    /// Choosing, entering and leaving its vCPUs.
    pub scheduling: Cycles,
    /// How often one of its vCPUs was given the hart.
    pub dispatches: u64,
    /// SBI calls.
    pub calls: u64,
    /// Interrupts that reached its vCPUs through the hypervisor. Those that an interrupt file delivered
    /// directly are seen by the guest alone.
    pub injected: u64,
    exits: [u64; ExitCause::COUNT],
    simulation: [Cycles; ExitCause::COUNT],
    events: [u64; Event::COUNT],
}

impl Default for WorkCounters {
    fn default() -> Self {
        Self::new()
    }
}

impl WorkCounters {
    /// All zero.
    pub const fn new() -> Self {
        Self {
            guest: Cycles(0),
            scheduling: Cycles(0),
            dispatches: 0,
            calls: 0,
            injected: 0,
            exits: [0; ExitCause::COUNT],
            simulation: [Cycles(0); ExitCause::COUNT],
            events: [0; Event::COUNT],
        }
    }

    /// Counts `count` events of a kind.
    #[inline]
    pub fn add_events(&mut self, event: Event, count: u64) {
        // As for `exit`.
        if let Some(events) = self.events.get_mut(event.index()) {
            *events = events.wrapping_add(count);
        }
    }

    /// How often this happened.
    pub fn events(&self, event: Event) -> u64 {
        self.events.get(event.index()).copied().unwrap_or(0)
    }

    /// Counts one exit and the time that its handling took.
    #[inline]
    pub fn exit(&mut self, cause: ExitCause, handling: Cycles) {
        // A cause's number is below the arrays' length by construction; `get_mut` keeps panics out of the exit path.
        if let (Some(exits), Some(simulation)) = (
            self.exits.get_mut(cause.index()),
            self.simulation.get_mut(cause.index()),
        ) {
            *exits = exits.wrapping_add(1);
            *simulation += handling;
        }
    }

    /// How many exits this cause made.
    pub fn exits(&self, cause: ExitCause) -> u64 {
        self.exits.get(cause.index()).copied().unwrap_or(0)
    }

    /// How long the handling of this cause took.
    pub fn simulation(&self, cause: ExitCause) -> Cycles {
        self.simulation
            .get(cause.index())
            .copied()
            .unwrap_or_default()
    }

    /// Adds what another counted.
    pub fn add(&mut self, other: &Self) {
        self.guest += other.guest;
        self.scheduling += other.scheduling;
        self.dispatches = self.dispatches.wrapping_add(other.dispatches);
        self.calls = self.calls.wrapping_add(other.calls);
        self.injected = self.injected.wrapping_add(other.injected);
        for cause in ExitCause::ALL {
            self.add_exits(cause, other.exits(cause), other.simulation(cause));
        }
        for event in Event::ALL {
            self.add_events(event, other.events(event));
        }
    }

    /// Adds exits of one cause and the time of their handling.
    pub fn add_exits(&mut self, cause: ExitCause, count: u64, handling: Cycles) {
        if let (Some(exits), Some(simulation)) = (
            self.exits.get_mut(cause.index()),
            self.simulation.get_mut(cause.index()),
        ) {
            *exits = exits.wrapping_add(count);
            *simulation += handling;
        }
    }

    /// Whether nothing has been counted.
    pub fn is_zero(&self) -> bool {
        *self == Self::new()
    }
}

/// What one hart did for one VM, without the exits by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkRecord {
    /// For whom.
    pub vm: VmId,
    /// By whom.
    pub hart: HartId,
    /// As in [`WorkCounters`].
    pub guest: Cycles,
    /// As in [`WorkCounters`].
    pub scheduling: Cycles,
    /// As in [`WorkCounters`].
    pub dispatches: u64,
    /// As in [`WorkCounters`].
    pub calls: u64,
    /// As in [`WorkCounters`].
    pub injected: u64,
}

/// The exits of one cause on one hart by one VM's vCPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitsRecord {
    /// Whose.
    pub vm: VmId,
    /// Where.
    pub hart: HartId,
    /// Why.
    pub cause: ExitCause,
    /// How many; never zero.
    pub count: u64,
    /// How long their handling took.
    pub cycles: Cycles,
}

/// How often something happened on one hart to one VM's vCPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventsRecord {
    /// Whose.
    pub vm: VmId,
    /// Where.
    pub hart: HartId,
    /// What.
    pub event: Event,
    /// How often; never zero.
    pub count: u64,
}

/// What a hart did for nobody in particular.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HartRecord {
    /// Which hart.
    pub hart: HartId,
    /// What it did.
    pub counters: HartCounters,
}
