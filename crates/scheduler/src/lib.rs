//! The scheduler of virtual processors: states, queues and policies, pure and without hardware.
#![no_std]
#![forbid(unsafe_code)]
