//! `yield`: last among all of its priority, as Xen's credit scheduler has it, on which paper 004 ran (§4.1).
//!
//! Its two priorities, under and over a share, are here the two subqueues of who is in service and the one of who is out of it:
//! what is put into time-slice-end goes to out-service where its virtual machine has consumed its service quantity. Where
//! nobody else of its priority is ready, the vCPU comes straight back.

use super::{Known, Scene, Spin, Suspend};
use crate::queue::Queue;

pub(super) struct Yield;

impl Spin for Yield {
    fn suspend(&self, _: &mut Scene<'_>, _: Known) -> Suspend {
        Suspend::Requeue(Queue::TimeSliceEnd)
    }
}
