//! A deterministic, cycle-accounting SMP RISC-V computer.
