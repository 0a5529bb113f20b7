//! `gang`: Ousterhout's matrix, in the place of run queues and service quantities.
//!
//! - [`columns`]: each vCPU that shares harts has a column, its only hart, and a row;
//! - [`slots`]: in its slot a hart runs the vCPU of the slot's row, or an alternate: the ready vCPU of its column whose row comes next.
//!
//! The matrix itself is in `policies/gang.rs`. Spins go on as under `none`: all vCPUs of the VM run in one slot, so a holder runs while others spin.
//! Waits for interrupts are found as the wait policy says. A vCPU that is woken in its slot preempts an alternate.
//!
//! One of several schedulers has no matrix: a VM's vCPUs are in several of them, and none knows when the others run.

mod columns;
mod slots;
