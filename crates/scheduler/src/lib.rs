//! The scheduler of virtual processors: states, queues and policies, pure and without hardware.
//!
//! Time, tests for pending interrupts and randomness come in as arguments; decisions go out. The
//! hypervisor calls everything under one lock with interrupts closed (paper 000 §3.2.2), and
//! interrupts the harts that an answer names. `docs/why/scheduling.md` states who calls what, and when.
//!
//! ```
//! use scheduler::*;
//!
//! let harts = HartSet::from_bits(0b11);
//! let mut scheduler = Scheduler::new(Config::new(10_000_000), harts)?;
//! let shared = Allocation::Shared { share: 1 };
//! let (vm, _) = scheduler.add_vm(VmConfig { vcpus: 1, allocation: shared })?;
//! let vcpu = scheduler.vcpu(vm, 0).unwrap();
//! let hart = HartId::new(0).unwrap();
//! let now = Ticks::ZERO;
//!
//! let _ = scheduler.start(vcpu, now);
//! let answer = scheduler.dispatch(hart, now, &mut |_| false);
//! assert!(matches!(answer, Dispatch::Run { slice: None, trap_waits: false, .. }));
//! # Ok::<(), ConfigError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod base;
#[cfg(test)]
mod check;
mod config;
mod decision;
mod default_policy;
mod dispatch;
mod gang;
pub mod groups;
mod policies;

pub use base::id::{
    HartId, HartSet, MAX_HARTS, MAX_NUMBERS, MAX_VCPUS, MAX_VMS, VcpuId, VcpuNumber, VcpuSet, VmId,
    VmSet,
};
pub use base::ticks::Ticks;
pub use config::{Allocation, Config, ConfigError, Migration, Placement, VmConfig};
pub use decision::{Continue, Dispatch, InPlace, Kicks, Leave, Left, Probe, VcpuState};
pub use dispatch::soundness::Unsound;
pub use dispatch::table::Scheduler;
pub use policies::queues::Queue;
pub use policies::spin::SpinPolicy;
pub use policies::spin::exit::{Keep, SpinExit, SpinOn};
pub use policies::wait::WaitPolicy;
