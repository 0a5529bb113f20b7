//! The events that `work` repeats, for what one of them costs (paper 001, table 1).

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Nothing: what the repetition itself costs.
    None,
    /// Interrupts closed and opened, with none pending.
    Mask,
    /// A fence of the address space's translations.
    Fence,
    /// A fence of one page of the address space.
    FencePage,
    /// The same by the three instructions of Svinval.
    Invalidate,
    /// A write of satp that changes the address space identifier.
    Space,
    /// An SBI call that returns a constant.
    Call,
    /// A fence by SBI RFENCE that names the calling hart alone.
    RemoteFence,
    /// The timer set to a time that does not come.
    Timer,
    /// The timer set to a time that is over, and its interrupt.
    TimerInterrupt,
    /// An interrupt that the hart sends to itself, and takes.
    Message,
    /// WFI with an interrupt pending.
    WaitPending,
    /// WFI with nothing pending, which the timer's interrupt ends.
    Wait,
    /// A notification of the disk, which finds nothing available.
    Notify,
}

impl Event {
    /// All of them by their words on the command line.
    pub const ALL: [(&'static str, Self); 14] = [
        ("none", Self::None),
        ("mask", Self::Mask),
        ("fence", Self::Fence),
        ("fence-page", Self::FencePage),
        ("invalidate", Self::Invalidate),
        ("space", Self::Space),
        ("call", Self::Call),
        ("remote-fence", Self::RemoteFence),
        ("timer", Self::Timer),
        ("timer-interrupt", Self::TimerInterrupt),
        ("message", Self::Message),
        ("wait-pending", Self::WaitPending),
        ("wait", Self::Wait),
        ("notify", Self::Notify),
    ];

    /// Their words.
    pub const WORDS: [&'static str; Self::ALL.len()] = {
        let mut words = [""; Self::ALL.len()];
        let mut index = 0;
        while index < words.len() {
            words[index] = Self::ALL[index].0;
            index += 1;
        }
        words
    };

    /// Tests whether it needs an address space.
    #[must_use]
    pub const fn needs_space(self) -> bool {
        matches!(
            self,
            Self::Fence | Self::FencePage | Self::Invalidate | Self::Space
        )
    }

    /// Tests whether it needs a disk.
    #[must_use]
    pub const fn needs_disk(self) -> bool {
        matches!(self, Self::Notify)
    }
}
