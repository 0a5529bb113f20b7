//! Synchronous exceptions and interrupts, as traps tell of them.

use riscv::exception;

use super::Mode;

/// Exception codes: privileged specification, "Trap Cause Codes" of the hypervisor extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// Instruction access fault.
    FetchAccess = exception::FETCH_ACCESS as u8,
    /// Illegal instruction.
    IllegalInstruction = exception::ILLEGAL_INSTRUCTION as u8,
    /// Breakpoint.
    Breakpoint = exception::BREAKPOINT as u8,
    /// Load address misaligned.
    LoadMisaligned = exception::LOAD_MISALIGNED as u8,
    /// Load access fault.
    LoadAccess = exception::LOAD_ACCESS as u8,
    /// Store/AMO address misaligned.
    StoreMisaligned = exception::STORE_MISALIGNED as u8,
    /// Store/AMO access fault.
    StoreAccess = exception::STORE_ACCESS as u8,
    /// Environment call from U-mode or VU-mode.
    CallFromUser = exception::ECALL_FROM_U as u8,
    /// Environment call from HS-mode.
    CallFromSupervisor = exception::ECALL_FROM_HS as u8,
    /// Environment call from VS-mode.
    CallFromVirtualSupervisor = exception::ECALL_FROM_VS as u8,
    /// Environment call from M-mode.
    CallFromMachine = exception::ECALL_FROM_M as u8,
    /// Instruction page fault.
    FetchPage = exception::FETCH_PAGE as u8,
    /// Load page fault.
    LoadPage = exception::LOAD_PAGE as u8,
    /// Store/AMO page fault.
    StorePage = exception::STORE_PAGE as u8,
    /// Software check: a landing pad or a shadow stack.
    SoftwareCheck = exception::SOFTWARE_CHECK as u8,
    /// Instruction guest-page fault.
    FetchGuestPage = exception::FETCH_GUEST_PAGE as u8,
    /// Load guest-page fault.
    LoadGuestPage = exception::LOAD_GUEST_PAGE as u8,
    /// Virtual instruction.
    VirtualInstruction = exception::VIRTUAL_INSTRUCTION as u8,
    /// Store/AMO guest-page fault.
    StoreGuestPage = exception::STORE_GUEST_PAGE as u8,
}

impl Cause {
    /// Name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FetchAccess => "fetch-access-fault",
            Self::IllegalInstruction => "illegal-instruction",
            Self::Breakpoint => "breakpoint",
            Self::LoadMisaligned => "load-misaligned",
            Self::LoadAccess => "load-access-fault",
            Self::StoreMisaligned => "store-misaligned",
            Self::StoreAccess => "store-access-fault",
            Self::CallFromUser => "call-from-user",
            Self::CallFromSupervisor => "call-from-supervisor",
            Self::CallFromVirtualSupervisor => "call-from-virtual-supervisor",
            Self::CallFromMachine => "call-from-machine",
            Self::FetchPage => "fetch-page-fault",
            Self::LoadPage => "load-page-fault",
            Self::StorePage => "store-page-fault",
            Self::SoftwareCheck => "software-check",
            Self::FetchGuestPage => "fetch-guest-page-fault",
            Self::LoadGuestPage => "load-guest-page-fault",
            Self::VirtualInstruction => "virtual-instruction",
            Self::StoreGuestPage => "store-guest-page-fault",
        }
    }
}

/// A synchronous exception with everything that a trap writes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exception {
    /// Why.
    pub cause: Cause,
    /// For xtval.
    pub value: u64,
    /// Guest physical address, for mtval2 or htval once shifted right by two.
    pub guest_physical: u64,
    /// For mtinst or htinst.
    pub instruction: u64,
    /// True if `value` is a guest virtual address (GVA).
    pub guest_address: bool,
}

impl Exception {
    /// An exception about a value that is no guest virtual address.
    #[must_use]
    pub const fn new(cause: Cause, value: u64) -> Self {
        Self {
            cause,
            value,
            guest_physical: 0,
            instruction: 0,
            guest_address: false,
        }
    }

    /// An exception about an address, which belongs to a guest if `guest_address` says so.
    #[must_use]
    pub const fn at(cause: Cause, address: u64, guest_address: bool) -> Self {
        Self {
            guest_address,
            ..Self::new(cause, address)
        }
    }
}

/// Kind of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Instruction fetch.
    Fetch,
    /// Load, LR.
    Load,
    /// Store, SC, AMO.
    Store,
}

impl Access {
    /// The access fault of this access.
    #[must_use]
    pub const fn access_fault(self) -> Cause {
        match self {
            Self::Fetch => Cause::FetchAccess,
            Self::Load => Cause::LoadAccess,
            Self::Store => Cause::StoreAccess,
        }
    }

    /// The page fault of this access.
    #[must_use]
    pub const fn page_fault(self) -> Cause {
        match self {
            Self::Fetch => Cause::FetchPage,
            Self::Load => Cause::LoadPage,
            Self::Store => Cause::StorePage,
        }
    }

    /// The guest-page fault of this access.
    #[must_use]
    pub const fn guest_page_fault(self) -> Cause {
        match self {
            Self::Fetch => Cause::FetchGuestPage,
            Self::Load => Cause::LoadGuestPage,
            Self::Store => Cause::StoreGuestPage,
        }
    }
}

/// An interrupt that a trap can be taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupt {
    /// Its code in xcause.
    pub code: u64,
    /// The mode that takes it.
    pub to: Mode,
}

/// An instruction did not complete: the hart's `exception` says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trapped;
