//! `yield`: last among all of its priority, as in Xen's credit scheduler, on which paper 004 ran (§4.1).
//!
//! Xen's priorities `under` and `over` are here the subqueues of vCPUs in service and the one of vCPUs out of service: a vCPU that is put into
//! time-slice-end goes to out-service if its VM has consumed its service quantity. If no other vCPU of its priority is ready, the vCPU is
//! dispatched again at once.

use super::rule::{KnownWait, Scene, SpinRule, Suspend};
use crate::policies::queues::Queue;

pub(super) struct Yield;

impl SpinRule for Yield {
    fn suspend(&self, _: &mut Scene<'_>, _: KnownWait) -> Suspend {
        Suspend::Requeue(Queue::TimeSliceEnd)
    }
}
