//! The account: weighted virtual time a VM, with bounded lag.

/// Virtual time of a tick for a VM of share 1.
const ONE: i64 = 1 << 16;

/// Account of one VM.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    share: i64,
    /// Virtual time: ticks on harts, divided by the share.
    time: i64,
    /// End of the request in virtual time: a slice beyond its beginning.
    deadline: i64,
}

impl Account {
    pub fn new(share: u32, slice: u64) -> Self {
        let mut account = Self {
            share: i64::from(share),
            time: 0,
            deadline: 0,
        };
        account.deadline = account.of(slice.cast_signed());
        account
    }

    pub const fn time(&self) -> i64 {
        self.time
    }

    pub const fn deadline(&self) -> i64 {
        self.deadline
    }

    /// Virtual time of so many ticks.
    const fn of(&self, ticks: i64) -> i64 {
        ticks * ONE / self.share
    }

    /// Charges ticks, or gives them back if there are fewer than none. A request that is served is followed by the next.
    pub fn charge(&mut self, ticks: i64, slice: u64) {
        self.time += self.of(ticks);
        if self.time >= self.deadline {
            self.deadline = self.time + self.of(slice.cast_signed());
        }
    }

    /// Lag in ticks behind the mean: what the VM is due, or has had too much.
    pub const fn lag(&self, mean: i64) -> i64 {
        (mean - self.time) * self.share / ONE
    }

    /// Bounds the lag, in both directions.
    pub fn bound(&mut self, mean: i64, most: i64, slice: u64) {
        let lag = self.lag(mean);
        if lag.abs() > most {
            let request = self.deadline - self.time;
            self.time = mean - self.of(most * lag.signum());
            self.deadline = self.time + request.clamp(0, self.of(slice.cast_signed()));
        }
    }
}

/// Mean of the virtual times of the VMs that want a hart, weighted by their shares: an account with less is eligible.
pub fn mean<'a>(accounts: impl Iterator<Item = &'a Account>) -> Option<i64> {
    let (mut sum, mut shares) = (0i128, 0i128);
    for account in accounts {
        sum += i128::from(account.time) * i128::from(account.share);
        shares += i128::from(account.share);
    }
    let mean = sum.checked_div(shares)?;
    i64::try_from(mean).ok()
}
