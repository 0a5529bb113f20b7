//! Additions of the default policies, `reservation` and `self-wait`, to the papers' scheduler.
//!
//! - [`watched_words`]: waits for words of memory, and polls of these words;
//! - [`wakeup_preemption`]: a woken vCPU preempts one whose VM is ahead;
//! - [`vm_boost`]: the VM with the largest lag comes first on every hart for a slice.
//!
//! The rules that choose among partners are in `policies/spin/reservation.rs`.

mod vm_boost;
mod wakeup_preemption;
mod watched_words;
