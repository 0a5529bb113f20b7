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
pub use encode::{Report, WorkLine};

use core::fmt;

/// Beginning of every line of a report.
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
            /// Number of values.
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
    /// Cause of a vCPU's exit from VS-mode, or of other work of the hypervisor for a VM.
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
        /// A pause loop, where the computer has pause-loop exiting (docs/reference/extensions.md).
        PauseLoop = "pause-loop",
        /// SFENCE.VMA or SINVAL.VMA, which traps once after a migration (`tlb-purge = "one-shot"`), and always with shadow tables.
        SfenceVma = "sfence-vma",
        /// An access to satp, which traps as long as fences do.
        Satp = "satp",
        /// An access to a CSR that is emulated.
        Csr = "csr",
        /// Any other virtual-instruction exception.
        VirtualInstruction = "virtual-instruction",
        /// An access to the emulated UART.
        MmioUart = "mmio-uart",
        /// An access to the emulated APLIC.
        MmioAplic = "mmio-aplic",
        /// An access to the emulated PLIC, on boards without interrupt files.
        MmioPlic = "mmio-plic",
        /// An access to the emulated real-time clock.
        MmioRtc = "mmio-rtc",
        /// An access to a mediated virtio device (`io = "general"` and `"fast"`).
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
        /// Any other cause.
        Other = "other",
    }
}

named! {
    /// Event of a VM's vCPUs that is counted, apart from exits.
    Event {
        /// A spin exit that began a wait: the vCPU had not left for this word, or for this ticket, before.
        SpinWait = "spin-wait",
        /// A spin exit whose condition held already, so that the guest continued at once.
        SpinSatisfied = "spin-satisfied",
        /// A spin exit after which the vCPU kept its hart.
        SpinContinued = "spin-continued",
        /// A spin exit by which the vCPU gave its hart away.
        SpinSuspended = "spin-suspended",
        /// A dispatch of a vCPU that had given its hart away at a spin, although its word was unchanged (for a ticket lock: although its
        /// turn had not come).
        FutileDispatch = "futile-dispatch",
        /// A wait that ended after one spin exit.
        WaitExitsOne = "spin-wait-exits-1",
        /// A wait that ended after two.
        WaitExitsTwo = "spin-wait-exits-2",
        /// A wait that ended after three.
        WaitExitsThree = "spin-wait-exits-3",
        /// A wait that ended after four.
        WaitExitsFour = "spin-wait-exits-4",
        /// A wait that ended after more than four.
        WaitExitsMore = "spin-wait-exits-over-4",
        /// Of these, a wait of more than four exits even without those that followed an interrupt.
        WaitExitsMoreUninterrupted = "spin-wait-exits-over-4-uninterrupted",
        /// A dispatch of a waiting vCPU for an interrupt, before its watched word had changed.
        SpinInterrupted = "spin-interrupted",
        /// A spin exit at which the vCPU's ticket of a ticket lock was decoded.
        TicketDecoded = "ticket-decoded",
        /// A spin exit at which the lock's holder was found preempted, and got the hart.
        HolderBoosted = "holder-boosted",
        /// An interrupt of a waiting vCPU that the host took (SGEI).
        HostInterrupt = "host-interrupt",
        /// A dispatch from the self-wait queue, by a test.
        SelfWaitDispatch = "self-wait-dispatch",
        /// A dispatch on another hart than the one before.
        Migration = "migration",
        /// A dispatch at which the vCPU's TLB entries were purged, because the vCPU may have fenced since they were made.
        TlbPurged = "tlb-purged",
        /// A dispatch on another hart than the one before, at which TLB entries were kept.
        TlbKept = "tlb-kept",
        /// A dispatch at which the vCPU got another VMID, in place of a fence.
        VmidRenewed = "vmid-renewed",
        /// A migration after which the vCPU's next fence traps.
        FenceTrapArmed = "fence-trap-armed",
        /// A message that reached a vCPU through the guest interrupt file that it had on another hart.
        MsiForwarded = "msi-forwarded",
        /// A dispatch without a guest interrupt file: the vCPU's interrupts were in memory.
        MemoryResidentFile = "memory-resident-file",
        /// A request to a mediated device that was translated the fast way.
        RequestFast = "request-fast",
        /// A request to a mediated device that was translated the general way.
        RequestGeneral = "request-general",
        /// A frame that the VM has sent to other VMs through a switch.
        FrameSent = "frame-sent",
        /// A frame that the VM received from a switch.
        FrameReceived = "frame-received",
        /// A frame of the VM that no port received, or that the VM had no room to receive.
        FrameDropped = "frame-dropped",
        /// A change of the form of allocation while the VM ran, of which a vCPU was notified by an interrupt.
        AllocationNotified = "allocation-notified",
        /// A poll that found a vCPU spinning without an exit.
        SpinDetected = "spin-detected",
    }
}

named! {
    /// State of a VM.
    VmState {
        /// Not started.
        Defined = "defined",
        /// Its memory is being loaded, in its own time.
        Loading = "loading",
        /// Running.
        Running = "running",
        /// The operator has paused it.
        Paused = "paused",
        /// Its vCPUs have been told to stop, and have not all left their harts.
        Stopping = "stopping",
        /// Ended.
        Stopped = "stopped",
    }
}

named! {
    /// Reason of a VM's end.
    StopReason {
        /// The VM has not ended.
        None = "none",
        /// Power-off in order (SRST shutdown, no reason given).
        PowerOff = "power-off",
        /// Reboot of a VM that is not to be restarted.
        Reboot = "reboot",
        /// Power-off or reboot for a failure of the guest (SRST, system failure).
        SystemFailure = "system-failure",
        /// The operator stopped it.
        Operator = "operator",
        /// A fault of its guest that cannot be delivered to the guest.
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
    /// State.
    pub state: VmState,
    /// Reason of its end.
    pub stop_reason: StopReason,
    /// Restarts.
    pub restarts: u64,
}

/// Counters of a hart that belong to no VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HartCounters {
    /// Since the hart's entry to the hypervisor.
    pub elapsed: Cycles,
    /// Waiting, with no vCPU to run.
    pub idle: Cycles,
    /// In the hypervisor, outside of idle, and owed to no VM.
    pub scheduling: Cycles,
}

/// Counters of one hart's work for one VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkCounters {
    /// In VS- and VU-mode.
    pub guest: Cycles,
    /// Choosing, entering and leaving its vCPUs.
    pub scheduling: Cycles,
    /// Dispatches of its vCPUs.
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

    /// Count of an event.
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

    /// Exits of a cause.
    pub fn exits(&self, cause: ExitCause) -> u64 {
        self.exits.get(cause.index()).copied().unwrap_or(0)
    }

    /// Time in which exits of a cause were handled.
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

    /// Returns true if nothing has been counted.
    pub fn is_zero(&self) -> bool {
        *self == Self::new()
    }
}

/// Counters of one hart's work for one VM, without the exits by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkRecord {
    /// VM of the work.
    pub vm: VmId,
    /// Hart of the work.
    pub hart: HartId,
    /// Cycles in the guest, as in [`WorkCounters`].
    pub guest: Cycles,
    /// Cycles of scheduling, as in [`WorkCounters`].
    pub scheduling: Cycles,
    /// Dispatches, as in [`WorkCounters`].
    pub dispatches: u64,
    /// Calls, as in [`WorkCounters`].
    pub calls: u64,
    /// Interrupts that reached its vCPUs through the hypervisor, as in [`WorkCounters`].
    pub injected: u64,
}

/// The exits of one cause on one hart by one VM's vCPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitsRecord {
    /// The VM.
    pub vm: VmId,
    /// Hart of the exits.
    pub hart: HartId,
    /// Cause of the exits.
    pub cause: ExitCause,
    /// Number of exits; never zero.
    pub count: u64,
    /// Time in which they were handled.
    pub cycles: Cycles,
}

/// Count of an event on one hart, for one VM's vCPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventsRecord {
    /// The VM.
    pub vm: VmId,
    /// Hart of the counters.
    pub hart: HartId,
    /// The event.
    pub event: Event,
    /// Count; never zero.
    pub count: u64,
}

/// Counters of a hart that belong to no VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HartRecord {
    /// Hart of the work.
    pub hart: HartId,
    /// Counters.
    pub counters: HartCounters,
}
