//! Costs in cycles.

use riscv::instruction;
use serde::{Deserialize, Serialize};

use crate::extension::{PENDING_TEST_MASK, PENDING_TEST_MATCH};

macro_rules! costs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Cycles beyond the one that every instruction takes.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Costs {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Costs {
            /// Every cost with the key that it has in a profile.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

costs! {
    /// A miss of a first-level cache that the second level answers.
    l2_hit,
    /// A miss of all caches.
    memory,
    /// More, if another hart's cache could have changed the line; and the whole of a store to a
    /// line of the own cache that others may have as well.
    transfer,
    /// The look-up of the second-level TLB: all of a first-level miss that it answers, and the beginning of a walk where it
    /// does not. Nothing is charged where there is none.
    l2_tlb_hit,
    /// Each page-table entry that a walk reads, besides what its cache access costs.
    walk_step,
    /// A load or store that a device answers.
    device,
    /// A multiplication.
    multiply,
    /// A division or remainder of integers.
    divide,
    /// A floating-point computation.
    float,
    /// A floating-point division or square root.
    float_divide,
    /// LR, SC and the AMOs.
    atomic,
    /// HLV, HLVX and HSV.
    guest_access,
    /// A CSR instruction.
    csr,
    /// Entry into a trap handler.
    trap,
    /// SRET and MRET.
    trap_return,
    /// More for a trap or a return that changes V.
    mode_change,
    /// FENCE.
    fence,
    /// FENCE.I.
    fence_i,
    /// SFENCE, HFENCE and Svinval's instructions.
    fence_translation,
    /// WFI and WRS, besides the time that they wait.
    wait,
    /// PAUSE.
    pause,
    /// The global pending test of docs/reference/extensions.md.
    pending_test,
    /// The update of an A or D bit by a walk, besides what its cache access costs.
    #[serde(default)]
    update,
    /// More for a load or store that lies in two lines, besides what the second line costs.
    #[serde(default)]
    line_crossing,
    /// The least time between two lines that memory delivers; a miss waits for its turn. Zero: no limit.
    #[serde(default)]
    memory_gap,
    /// A branch or jump whose direction or target the predictor had wrong.
    #[serde(default)]
    mispredict,
    /// A branch or jump whose direction the predictor had right, and whose target it did not know.
    #[serde(default)]
    redirect,
    /// The purge by hardware at an entry to a guest: docs/reference/extensions.md.
    #[serde(default)]
    purge,
    /// The broadcast fence of docs/reference/extensions.md: more for each other hart.
    #[serde(default)]
    broadcast,
}

impl Costs {
    /// The cost of an instruction of opcode SYSTEM that does not access a CSR, by its encoding.
    #[must_use]
    pub const fn of_system(&self, raw: u32) -> u64 {
        match raw {
            // ECALL and EBREAK cost their trap.
            instruction::ECALL | instruction::EBREAK => 0,
            instruction::SRET | instruction::MRET => self.trap_return,
            instruction::WFI | instruction::WRS_NTO | instruction::WRS_STO => self.wait,
            _ if raw & PENDING_TEST_MASK == PENDING_TEST_MATCH => self.pending_test,
            _ if raw >> 12 & 7 == 4 => self.guest_access,
            _ => self.fence_translation,
        }
    }
}
