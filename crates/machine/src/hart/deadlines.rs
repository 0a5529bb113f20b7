//! When the execution loop has to stop a hart.

/// Times at which something of the hart becomes due, and the limit that the execution loop compares.
///
/// Each setter of a deadline also lowers the limit, so that no caller can forget to. Only [`Deadlines::begin`] raises it.
#[derive(Debug)]
pub(crate) struct Deadlines {
    limit: u64,
    timer: u64,
    overflow: u64,
}

impl Deadlines {
    /// Where translated code finds the limit.
    pub const LIMIT_OFFSET: usize = std::mem::offset_of!(Self, limit);

    /// No timer runs, and no counter can overflow.
    pub const fn new() -> Self {
        Self {
            limit: 0,
            timer: u64::MAX,
            overflow: u64::MAX,
        }
    }

    /// The execution loop stops when the hart's cycles reach this.
    #[inline(always)]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// When a timer comparison of the hart next changes.
    pub const fn timer(&self) -> u64 {
        self.timer
    }

    /// When a counter can next overflow.
    pub const fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Makes the limit that of a turn with this end, during which devices have something to do at `event`.
    pub fn begin(&mut self, end: u64, event: u64) {
        self.limit = end.min(self.timer).min(self.overflow).min(event);
    }

    /// Something that is not the hart's own becomes due.
    pub fn lower(&mut self, at: u64) {
        self.limit = self.limit.min(at);
    }

    /// The execution loop stops at the end of the block.
    pub const fn stop_soon(&mut self) {
        self.limit = 0;
    }

    /// A timer comparison next changes at this time.
    pub fn set_timer(&mut self, at: u64) {
        self.timer = at;
        self.lower(at);
    }

    /// The timer comparisons are due at once.
    pub const fn expire_timer(&mut self) {
        self.timer = 0;
        self.limit = 0;
    }

    /// Tests whether [`Self::expire_timer`] was the last to set the timer.
    pub const fn is_timer_expired(&self) -> bool {
        self.timer == 0
    }

    /// A counter can next overflow at this time.
    pub fn set_overflow(&mut self, at: u64) {
        self.overflow = at;
        self.lower(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_deadlines_lower_the_limit() {
        let setters: [fn(&mut Deadlines, u64); 3] = [
            Deadlines::set_timer,
            Deadlines::set_overflow,
            Deadlines::lower,
        ];
        for set in setters {
            let mut deadlines = Deadlines::new();
            deadlines.begin(100, 90);
            set(&mut deadlines, 95);
            assert_eq!(deadlines.limit(), 90);
            set(&mut deadlines, 50);
            assert_eq!(deadlines.limit(), 50);
            set(&mut deadlines, 70);
            assert_eq!(deadlines.limit(), 50);
        }
        let mut deadlines = Deadlines::new();
        deadlines.begin(100, 90);
        deadlines.expire_timer();
        assert_eq!((deadlines.limit(), deadlines.timer()), (0, 0));
        // The next turn begins with all of them.
        deadlines.set_timer(60);
        deadlines.set_overflow(55);
        deadlines.begin(100, 90);
        assert_eq!(deadlines.limit(), 55);
    }
}
