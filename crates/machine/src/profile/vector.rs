//! A vector unit, as a profile describes it, and what its instructions cost.

use serde::{Deserialize, Serialize};

use crate::vector::{CostClass, Movement, Work};

/// A vector unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorProfile {
    /// Bits of a register: 128, 256, 512 or 1024.
    pub vlen: u16,
    /// Costs of its instructions; without them each takes one cycle, and its accesses to memory what they take.
    #[serde(default)]
    pub costs: Option<VectorCosts>,
}

/// Times of vector instructions. A pass is what the datapath does at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorCosts {
    /// Bits of a pass.
    pub datapath: u16,
    /// True if the next instruction takes results as they come; else each waits for the last one's.
    pub chaining: bool,
    /// Cycles from the last pass to its result, which an instruction takes besides its passes where nothing is chained.
    pub latency: u64,
    /// Cycles of a pass: integers but for what follows.
    pub integer: u64,
    /// Cycles of a pass: integer multiplications.
    pub multiply: u64,
    /// Cycles of an element: integer divisions and remainders.
    pub divide: u64,
    /// Cycles of a pass: floating point but for what follows.
    pub float: u64,
    /// Cycles of an element: floating-point divisions and square roots.
    pub float_divide: u64,
    /// Cycles of a pass: slides.
    pub slide: u64,
    /// Cycles of a pass for each pass that its elements may come from: gathers and VCOMPRESS.
    pub gather: u64,
    /// Cycles of a pass: reductions.
    pub reduction: u64,
    /// Cycles of a pass: comparisons and instructions on masks.
    pub mask: u64,
    /// Cycles of a pass: cryptography.
    pub crypto: u64,
    /// Bits that a load or store with unit stride moves in a cycle.
    pub memory: u16,
    /// Cycles of an element of a load or store with a stride or with indices.
    pub element: u64,
}

/// Cycles beyond the one that every instruction takes.
const fn beyond_one(cycles: u64) -> u64 {
    cycles.saturating_sub(1)
}

impl VectorCosts {
    /// Cycles of an instruction that computes, beyond the one that every instruction takes.
    #[must_use]
    pub fn of_work(&self, work: Work) -> u64 {
        let passes = work.bits.div_ceil(u64::from(self.datapath.max(1))).max(1);
        let cycles = match work.class {
            CostClass::Configure => return 0,
            CostClass::Integer => passes.saturating_mul(self.integer),
            CostClass::Multiply => passes.saturating_mul(self.multiply),
            CostClass::Divide => work.elements.saturating_mul(self.divide),
            CostClass::Float => passes.saturating_mul(self.float),
            CostClass::FloatDivide => work.elements.saturating_mul(self.float_divide),
            CostClass::Slide => passes.saturating_mul(self.slide),
            CostClass::Gather => (passes * passes).saturating_mul(self.gather),
            CostClass::Reduction => passes.saturating_mul(self.reduction),
            CostClass::Mask => passes.saturating_mul(self.mask),
            CostClass::Crypto => passes.saturating_mul(self.crypto),
        };
        let latency = if self.chaining { 0 } else { self.latency };
        beyond_one(cycles.saturating_add(latency))
    }

    /// Cycles of a load or store, beyond the one that every instruction takes, and besides those of its lines.
    #[must_use]
    pub const fn of_movement(&self, movement: Movement) -> u64 {
        beyond_one(match movement {
            Movement::Bytes(bytes) => {
                let bits = if self.memory == 0 { 1 } else { self.memory };
                (bytes * 8).div_ceil(bits as u64)
            }
            Movement::Elements(count) => count.saturating_mul(self.element),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Each cost is another number.
    pub(in crate::profile) const COSTS: VectorCosts = VectorCosts {
        datapath: 128,
        chaining: true,
        latency: 5,
        integer: 1,
        multiply: 2,
        divide: 11,
        float: 3,
        float_divide: 13,
        slide: 4,
        gather: 7,
        reduction: 6,
        mask: 9,
        crypto: 8,
        memory: 64,
        element: 10,
    };

    fn cost(costs: VectorCosts, class: CostClass, bits: u64) -> u64 {
        let elements = bits / 32;
        costs.of_work(Work {
            class,
            bits,
            elements,
        })
    }

    #[test]
    fn passes_and_elements_are_paid_for() {
        for (class, expected) in [
            (CostClass::Configure, 0),
            (CostClass::Integer, 8),
            (CostClass::Multiply, 8 * 2),
            (CostClass::Divide, 32 * 11),
            (CostClass::Float, 8 * 3),
            (CostClass::FloatDivide, 32 * 13),
            (CostClass::Slide, 8 * 4),
            (CostClass::Gather, 64 * 7),
            (CostClass::Reduction, 8 * 6),
            (CostClass::Mask, 8 * 9),
            (CostClass::Crypto, 8 * 8),
        ] {
            let beyond = expected - u64::from(expected != 0);
            assert_eq!(cost(COSTS, class, 1024), beyond, "{class:?}");
        }
        // What is less than a pass takes one.
        assert_eq!(cost(COSTS, CostClass::Multiply, 32), 1);
    }

    #[test]
    fn latency_counts_where_nothing_is_chained() {
        let waits = VectorCosts {
            chaining: false,
            ..COSTS
        };
        assert_eq!(
            cost(waits, CostClass::Integer, 1024),
            cost(COSTS, CostClass::Integer, 1024) + 5
        );
        assert_eq!(cost(waits, CostClass::Configure, 0), 0);
    }

    #[test]
    fn movements_take_their_bits_or_elements() {
        assert_eq!(COSTS.of_movement(Movement::Bytes(64)), 7);
        assert_eq!(COSTS.of_movement(Movement::Bytes(65)), 8);
        assert_eq!(COSTS.of_movement(Movement::Bytes(0)), 0);
        assert_eq!(COSTS.of_movement(Movement::Elements(3)), 29);
    }
}
