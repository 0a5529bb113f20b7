//! Privilege modes.

use serde::{Deserialize, Serialize};

/// The nominal privilege, encoded as in xPP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum Privilege {
    /// U or VU.
    User = 0,
    /// S, HS or VS.
    Supervisor = 1,
    /// M.
    Machine = 3,
}

impl Privilege {
    /// The privilege of an xPP field; the reserved encoding 2 does not occur in WARL fields and is
    /// taken as user.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            1 => Self::Supervisor,
            3 => Self::Machine,
            _ => Self::User,
        }
    }
}

/// A privilege mode: the nominal privilege and the virtualization mode V.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    /// The nominal privilege.
    pub privilege: Privilege,
    /// V: false in M, whatever else.
    pub virtualized: bool,
}

impl Mode {
    /// M-mode.
    pub const MACHINE: Self = Self {
        privilege: Privilege::Machine,
        virtualized: false,
    };
    /// HS-mode.
    pub const HYPERVISOR: Self = Self {
        privilege: Privilege::Supervisor,
        virtualized: false,
    };
    /// VS-mode.
    pub const VIRTUAL_SUPERVISOR: Self = Self {
        privilege: Privilege::Supervisor,
        virtualized: true,
    };

    /// A mode; V is ignored for M.
    #[must_use]
    pub const fn new(privilege: Privilege, virtualized: bool) -> Self {
        Self {
            privilege,
            virtualized: virtualized && !matches!(privilege, Privilege::Machine),
        }
    }

    /// The usual name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match (self.privilege, self.virtualized) {
            (Privilege::Machine, _) => "M",
            (Privilege::Supervisor, false) => "HS",
            (Privilege::User, false) => "U",
            (Privilege::Supervisor, true) => "VS",
            (Privilege::User, true) => "VU",
        }
    }

    /// A dense number below [`Self::COUNT`], for tables.
    #[must_use]
    pub const fn index(self) -> usize {
        match (self.privilege, self.virtualized) {
            (Privilege::User, false) => 0,
            (Privilege::Supervisor, false) => 1,
            (Privilege::Machine, _) => 2,
            (Privilege::User, true) => 3,
            (Privilege::Supervisor, true) => 4,
        }
    }

    /// How many modes there are.
    pub const COUNT: usize = 5;
}
