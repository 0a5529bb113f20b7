//! The life of a VM: what may happen to it when, as a state machine that is explored over all orders of events.

pub mod backoff;
pub mod idle;
pub mod life;
#[cfg(test)]
mod model;
pub mod restart_plan;
#[cfg(test)]
mod tests;
