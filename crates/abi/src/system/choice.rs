//! Properties whose value is one of a few words.

use core::fmt;

/// Defines an enumeration whose values have names in descriptions and on the command line.
macro_rules! choice {
    (
        $(#[$outer:meta])*
        $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$inner])* $variant,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word for it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The value that a word stands for.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

choice! {
    /// How a VM's memory lies in the host's.
    Placement {
        /// Guest-physical addresses are the host's (V=R): no translation for devices.
        Real = "real",
        /// Host addresses are the guest's plus a constant, in large leaves (V=Resident).
        Resident = "resident",
        /// Single pages of 4 KiB anywhere (V=V).
        Paged = "paged",
    }
}

choice! {
    /// By which tables a VM's guest is translated while its own translation is on.
    VmTranslation {
        /// By its own and by the G-stage's, in two dimensions.
        TwoStage = "two-stage",
        /// By tables that the hypervisor makes of both, in one walk.
        Shadow = "shadow",
    }
}

choice! {
    /// How a VM's devices are reached.
    Io {
        /// By the guest itself: its accesses trap nowhere, and the device uses what addresses the guest gives it.
        Direct = "direct",
        /// Through the hypervisor, which checks and translates each operation: general I/O simulation.
        General = "general",
        /// The same, by fast I/O simulation where an operation is simple.
        Fast = "fast",
    }
}

choice! {
    /// What happens when a vCPU spins at WRS.NTO (or says so by SBI).
    SpinMethod {
        /// Nothing: spinning is not trapped.
        None = "none",
        /// It goes to spin-wait until one partner has been dispatched.
        Wopd = "wopd",
        /// It goes to spin-wait until all partners have been dispatched.
        Wapd = "wapd",
        /// It gives up the rest of its time slice.
        Rslp = "rslp",
        /// The same, behind everybody of its priority; where nobody else of it is ready, it comes straight back.
        Yield = "yield",
        /// The same, but the slice never goes back to the vCPU that left.
        NotSame = "not-same",
        /// A likely holder of the lock gets the hart.
        Directed = "directed",
        /// It is dispatched when the word that it watches has changed.
        Reservation = "reservation",
        /// The same, where the machine tells who holds a lock (xpartitaholder): to compare with, as no hardware can.
        Oracle = "oracle",
    }
}

choice! {
    /// What happens when a vCPU waits for an interrupt (WFI).
    WaitMethod {
        /// Host interrupts (hgeie, SGEIP) wake one hart for each that has one, which then dispatches it.
        HostInterrupt = "host-interrupt",
        /// The same, but every idle hart is woken, as was the custom (paper 002 §3.5).
        HostInterruptAll = "host-interrupt-all",
        /// The same, and idle harts do not sleep but poll: the conventional method of paper 002's measurements.
        ActiveWaitAll = "active-wait-all",
        /// It joins the self-wait queue, and dispatching harts test for its interrupts.
        SelfWait = "self-wait",
        /// The same, but all vCPUs of the VM that wait get a reason to run (paper 002 §3.5).
        SelfWaitAll = "self-wait-all",
        /// The same, and an idle hart waits in one instruction for work, interrupts and timers.
        ActiveWait = "active-wait",
    }
}

choice! {
    /// When a vCPU goes to another hart than the one that it ran on last.
    Migration {
        /// When its own hart is not free, or others would wait for too long.
        AsNeeded = "as-needed",
        /// At every dispatch, where another shared hart may take it: for tests.
        Always = "always",
    }
}

choice! {
    /// How many schedulers share the harts.
    Queue {
        /// One for all.
        Single = "single",
        /// One for each hart. On one hart it is the same as one for all.
        Sharded = "sharded",
    }
}

choice! {
    /// Which harts may run a vCPU of a VM that has no harts of its own.
    Scheduling {
        /// Each shared hart, whichever is free.
        Floating = "floating",
        /// One, chosen when the system starts: the one with the fewest vCPUs so far.
        Fixed = "fixed",
    }
}

choice! {
    /// When a hart drops the cached VS-stage translations of a vCPU (paper 003).
    Translations {
        /// Whenever the vCPU leaves its guest: the paper's clearing method.
        Clear = "clear",
        /// Never, for vCPUs that never go to another hart: the paper's keeping method.
        Keep = "keep",
        /// When the vCPU comes from another hart: the paper's "last host CPU address", the conventional method.
        LastHost = "last-host",
        /// When the vCPU has fenced since it was on the hart, which the harts remember (docs/extensions.md): the paper's TLBPCW.
        PurgeMask = "purge-mask",
        /// The same, and the harts themselves test and purge when they enter the guest.
        PurgeCheck = "purge-check",
        /// When the vCPU has fenced since it was on the hart, which the first fence after a change of hart tells by a trap.
        OneShot = "one-shot",
    }
}

choice! {
    /// How a hart drops the cached translations of a vCPU that comes to it.
    Purging {
        /// By a fence (HFENCE).
        Fence = "fence",
        /// By giving the vCPU a VMID that marks nothing; when a hart has no more of these, everything is dropped under all of them.
        Rename = "rename",
    }
}

choice! {
    /// What a fence drops that a guest asks for on other vCPUs (SBI RFENCE; paper 003's SPTLB instructions).
    RemoteFences {
        /// What its operands name, of the vCPUs that it names.
        Precise = "precise",
        /// Everything of all vCPUs of the VM: the paper's simplification that ignores the operands.
        AnyAddress = "any-address",
        /// What its operands name, of the vCPUs of all VMs: the paper's simplification that ignores the logical processor.
        AnyVcpu = "any-vcpu",
    }
}

choice! {
    /// What happens to a VM that fails: a panic, a fault that cannot be passed on, a reboot's failure.
    OnFailure {
        /// It is stopped.
        Stop = "stop",
        /// It is started anew.
        Restart = "restart",
    }
}

choice! {
    /// What happens when the last VM that runs ends.
    WhenIdle {
        /// The board is powered off.
        PowerOff = "power-off",
        /// The board is powered off if every VM has run; it stays on for the operator if some were never started.
        PowerOffAfterAll = "power-off-after-all",
        /// The board stays on for the operator.
        Stay = "stay",
    }
}
