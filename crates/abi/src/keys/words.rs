//! Values that are one of a few words.

use super::value::number;
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
            /// The words, in the order of [`Self::ALL`].
            pub const WORDS: &[&str] = &[$($word,)+];

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

        // A number is the place of a word.
        number!(
            $name,
            |place: u64| {
                let value = usize::try_from(place).ok().and_then(|place| $name::ALL.get(place));
                value.copied().unwrap_or($name::ALL[0])
            },
            |value: $name| value as u64
        );
    };
}

choice! {
    /// Place of a VM's memory on the host.
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
    /// Address translation of a VM's guest, while the guest's own translation is on.
    VmTranslation {
        /// By its own and by the G-stage's, in two dimensions.
        TwoStage = "two-stage",
        /// By tables that the hypervisor makes of both, in one walk.
        Shadow = "shadow",
    }
}

choice! {
    /// Access of a guest to its devices.
    Io {
        /// By the guest itself: its accesses trap nowhere, and the device uses what addresses the guest gives it.
        Direct = "direct",
        /// Through the hypervisor, which checks and translates each operation: general I/O simulation.
        General = "general",
        /// Through the hypervisor, by fast I/O simulation where a request is simple.
        Fast = "fast",
    }
}

choice! {
    /// Policy for a vCPU that spins: at WRS.NTO, in a pause loop, or by its SBI call.
    SpinMethod {
        /// Spinning is not trapped.
        None = "none",
        /// The vCPU goes to spin-wait until one partner has been dispatched.
        Wopd = "wopd",
        /// The vCPU goes to spin-wait until all partners have been dispatched.
        Wapd = "wapd",
        /// The vCPU gives up the rest of its time slice.
        Rslp = "rslp",
        /// Like `rslp`, but the vCPU is requeued behind equal priority (Xen). Without another ready vCPU it continues at once.
        Yield = "yield",
        /// Like `rslp`, but the slice never goes back to the vCPU that left.
        NotSame = "not-same",
        /// A likely holder of the lock gets the hart.
        Directed = "directed",
        /// The vCPU is dispatched when its watched word has changed.
        Reservation = "reservation",
        /// All vCPUs of a VM run at the same time, by Ousterhout's matrix of time slots and harts; spinning goes on.
        Gang = "gang",
        /// Like `reservation`, where the machine tells the lock's holder (xpartitaholder), as no hardware can: a bound for comparisons.
        Oracle = "oracle",
    }
}

choice! {
    /// Policy for a vCPU that waits for an interrupt (WFI).
    WaitMethod {
        /// Host interrupts (hgeie, SGEIP) wake one hart for each that has one, which then dispatches it.
        HostInterrupt = "host-interrupt",
        /// Like `host-interrupt`, but every idle hart is woken, as was the custom (paper 002 §3.5).
        HostInterruptAll = "host-interrupt-all",
        /// Like `host-interrupt-all`, and idle harts poll in place of sleeping: the conventional method of paper 002's measurements.
        ActiveWaitAll = "active-wait-all",
        /// The vCPU joins the self-wait queue, and dispatching harts test for its interrupts.
        SelfWait = "self-wait",
        /// Like `self-wait`, but all waiting vCPUs of the VM get a reason to run (paper 002 §3.5).
        SelfWaitAll = "self-wait-all",
        /// Like `self-wait`, and an idle hart waits in one instruction for work, interrupts and timers.
        ActiveWait = "active-wait",
    }
}

choice! {
    /// Migration of vCPUs between harts.
    Migration {
        /// If the vCPU's last hart is not free, or other vCPUs would wait for too long.
        AsNeeded = "as-needed",
        /// At every dispatch, where another shared hart may take it: for tests.
        Always = "always",
    }
}

choice! {
    /// Run queues of the harts.
    RunQueue {
        /// One for all harts.
        Global = "global",
        /// One for each hart. On one hart this is the same as one for all.
        PerHart = "per-hart",
    }
}

choice! {
    /// Harts that may run a vCPU of a VM that has no harts of its own.
    Scheduling {
        /// Every shared hart.
        Floating = "floating",
        /// One, chosen when the system starts: the one with the fewest vCPUs so far.
        Pinned = "pinned",
    }
}

choice! {
    /// Rule by which a hart purges the TLB entries of a vCPU (paper 003).
    TlbPurge {
        /// Whenever the vCPU leaves its guest: the paper's clearing method.
        Clear = "clear",
        /// Never, for vCPUs that never go to another hart: the paper's keeping method.
        Keep = "keep",
        /// Purge if the vCPU comes from another hart: the paper's "last host CPU address", the conventional method.
        LastHost = "last-host",
        /// Purge if the vCPU has fenced since it was on the hart, which the harts remember (docs/reference/extensions.md): the paper's TLBPCW.
        PurgeMask = "purge-mask",
        /// Like `purge-mask`, and the harts themselves test and purge when they enter the guest.
        PurgeCheck = "purge-check",
        /// Purge if the vCPU has fenced since it was on the hart; the first fence after a change of hart traps.
        OneShot = "one-shot",
    }
}

choice! {
    /// Way to purge the TLB entries of a vCPU.
    Purging {
        /// A fence (HFENCE).
        Fence = "fence",
        /// A VMID that marks no entry. When a hart has no more of these, it purges all entries.
        NewVmid = "new-vmid",
    }
}

choice! {
    /// Reach of a fence that a guest asks for on other vCPUs (SBI RFENCE; paper 003's SPTLB instructions).
    RemoteFences {
        /// The addresses and the vCPUs that its operands name.
        Precise = "precise",
        /// Everything of all vCPUs of the VM: the paper's simplification that ignores the operands.
        AnyAddress = "any-address",
        /// The addresses that its operands name, of the vCPUs of all VMs: the paper's simplification that ignores the logical processor.
        AnyVcpu = "any-vcpu",
    }
}

choice! {
    /// Pause-loop exiting as another hypervisor sets it.
    PausePreset {
        /// Xen's: `ple_gap` 128, `ple_window` 4096 (paper 004 §3).
        Xen = "xen",
        /// KVM's on Intel's processors: the same, and the window doubles at each exit (`ple_window_grow` 2) up to `UINT_MAX`
        /// (`ple_window_max`), and is reset when the vCPU is dispatched again (`ple_window_shrink` 0).
        Kvm = "kvm",
    }
}

choice! {
    /// Need of an IOMMU between a VM's devices and memory.
    Confined {
        /// A device without one is trusted.
        Trusted = "trusted",
        /// A device without one is refused.
        Required = "required",
    }
}

choice! {
    /// Action when a VM fails: a panic, a fault that cannot be passed on, a reboot's failure.
    OnFailure {
        /// The VM is stopped.
        Stop = "stop",
        /// The VM restarts.
        Restart = "restart",
    }
}

choice! {
    /// Action when the last running VM has ended.
    WhenIdle {
        /// The board is powered off.
        PowerOff = "power-off",
        /// The board is powered off if every VM has run; it stays on for the operator if some were never started.
        PowerOffAfterAll = "power-off-after-all",
        /// The board stays on for the operator.
        Stay = "stay",
    }
}
