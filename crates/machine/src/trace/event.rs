//! Events.

use crate::base::Fence;
use crate::base::{Exception, Mode};
use crate::base::{HartId, InterruptFile};

/// Where something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// On a hart.
    Hart(HartId),
    /// In the devices.
    Devices,
}

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Where.
    pub place: Place,
    /// When: the hart's own time, or the machine's, in cycles since reset. For an instruction, when
    /// it begins.
    pub cycles: u64,
    /// How many instructions the hart has retired since reset; 0 in the devices.
    pub retired: u64,
    /// Contents.
    pub happening: Happening,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// By an interrupt that is pending and enabled.
    Interrupt,
    /// By a store to what was waited on.
    Store,
    /// By the profile's limit of time.
    Time,
}

/// Contents of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// A hart is in this mode: how a trace begins.
    Mode {
        /// The mode.
        mode: Mode,
        /// hgatp.VMID.
        vmid: u16,
    },
    /// A trap for a synchronous exception.
    Exception {
        /// The exception.
        exception: Exception,
        /// The mode it comes from.
        from: Mode,
        /// The mode that handles it.
        to: Mode,
        /// Address of the instruction.
        pc: u64,
        /// hgatp.VMID.
        vmid: u16,
    },
    /// A trap for an interrupt.
    Interrupt {
        /// Its code in xcause.
        code: u64,
        /// The mode it comes from.
        from: Mode,
        /// The mode that handles it.
        to: Mode,
        /// Address of the instruction that comes next.
        pc: u64,
        /// hgatp.VMID.
        vmid: u16,
        /// hstatus.VGEIN: the guest interrupt file that VS-mode has, if any.
        guest_file: u8,
    },
    /// MRET or SRET.
    Return {
        /// The mode it comes from.
        from: Mode,
        /// The mode it leads to.
        to: Mode,
        /// The address it leads to.
        pc: u64,
        /// hgatp.VMID.
        vmid: u16,
    },
    /// A fence of translations.
    Fence {
        /// Range of the fence.
        fence: Fence,
        /// The mode it is executed in.
        mode: Mode,
    },
    /// WFI begins to wait.
    WaitForInterrupt {
        /// The mode it is executed in.
        mode: Mode,
    },
    /// WRS.NTO or WRS.STO begins to wait.
    WaitForStore {
        /// The mode it is executed in.
        mode: Mode,
        /// Physical address of what LR reserved.
        physical: u64,
        /// When the wait ends at the latest, in cycles; [`u64::MAX`] for never.
        deadline: u64,
    },
    /// PAUSE with V = 0. A guest's are not told: there may be very many.
    Pause {
        /// The mode that it is executed in.
        mode: Mode,
        /// Address of the PAUSE.
        pc: u64,
    },
    /// A pause loop exits (docs/reference/extensions.md, `xpartitaple`); its exception follows. With V = 0: a loop took a turn, where that is
    /// asked for.
    PauseLoop {
        /// The mode that it is in.
        mode: Mode,
        /// Address of the PAUSE.
        pc: u64,
        /// Physical address of the word that it looks at, where its code tells.
        physical: Option<u64>,
    },
    /// Value of a word that a hart has waited for since a sink was set: at its first wait, and from then on
    /// after each store to it by a hart.
    Word {
        /// The mode that waits or stores.
        mode: Mode,
        /// The word's physical address.
        physical: u64,
        /// Value of the word.
        value: u64,
        /// True if it was just stored to.
        stored: bool,
    },
    /// A wait ends.
    Wake {
        /// Why.
        end: WaitEnd,
    },
    /// A device drives a new level on a source of the APLIC.
    Line {
        /// The source.
        source: u32,
        /// The level.
        level: bool,
    },
    /// A message-signalled interrupt arrives at an interrupt file, from the APLIC or from a hart.
    Message {
        /// Hart of the file.
        hart: HartId,
        /// Which of its files.
        file: InterruptFile,
        /// The identity that becomes pending.
        identity: u32,
    },
}
