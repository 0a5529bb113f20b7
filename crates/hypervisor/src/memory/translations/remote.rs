//! Fences that a vCPU is asked for by its siblings (SBI RFENCE): paper 003's SPTLB instructions.
//!
//! They are numbered for each vCPU, and the last few are kept with their operands. For each hart, [`Cached`](super::Cached) knows the
//! number up to which they have been carried out there. A hart that the vCPU comes to, or that is asked while it has the vCPU,
//! carries out those that it has not, and no others; if some of these are kept no longer, it drops everything of the vCPU. So
//! no hart is signalled for a vCPU that does not run, and its entries on each hart outlive fences for other addresses.

use crate::lock::{Mutex, place};
use abi::system::RemoteFences;
use core::sync::atomic::{AtomicU64, Ordering};

/// Fences that are kept for each vCPU.
pub const KEPT: usize = 8;

/// Pages that are fenced one by one; a longer range is every address.
pub const MAX_PAGES: u64 = 8;

const PAGE: u64 = 4096;

/// Scope of a fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operands {
    /// The address of the first page, and how many there are; `None` for every address.
    pub pages: Option<(u64, u64)>,
    /// `None` for every address space.
    pub asid: Option<u16>,
}

impl Operands {
    /// Operands of a call for `size` bytes from `start` (SBI, "RFENCE Extension").
    #[must_use]
    pub fn of_range(start: u64, size: u64, asid: Option<u16>) -> Self {
        let first = start / PAGE * PAGE;
        let bytes = start.checked_add(size).map(|end| end - first);
        let count = bytes.map(|bytes| bytes.div_ceil(PAGE).max(1));
        let all = start == 0 && size == 0;
        let count = count.filter(|count| !all && *count <= MAX_PAGES);
        Self {
            pages: count.map(|count| (first, count)),
            asid,
        }
    }

    /// Every address of every space.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.pages.is_none() && self.asid.is_none()
    }
}

/// Fence that a call with these operands asks of a vCPU, which may be of the caller's VM, and may be named by the call. `None` for nothing.
#[must_use]
pub fn asked(
    method: RemoteFences,
    operands: Operands,
    (is_sibling, is_named): (bool, bool),
) -> Option<Operands> {
    let (operands, reaches) = match method {
        RemoteFences::Precise => (operands, is_named),
        RemoteFences::AnyAddress => (Operands::default(), is_sibling),
        RemoteFences::AnyVcpu => (operands, true),
    };
    reaches.then_some(operands)
}

/// Fences that a vCPU has been asked for.
#[derive(Debug)]
pub struct Fenced<const N: usize = KEPT> {
    /// Number of fences so far.
    count: AtomicU64,
    kept: Mutex<Kept<N>, { place::FENCES }>,
}

/// The last ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kept<const N: usize> {
    /// Fence `n`, from 1, at `n % N`.
    operands: [Operands; N],
    /// The number of the last one for everything.
    everything: u64,
}

/// Fences outstanding on a hart that has carried out those up to some number.
pub trait Outstanding {
    /// The operands of the fences after number `since`, or `None` for everything.
    fn since(&self, since: u64) -> Option<impl Iterator<Item = Operands>>;
}

impl<const N: usize> Default for Fenced<N> {
    fn default() -> Self {
        Self {
            count: AtomicU64::new(0),
            kept: Mutex::new(Kept {
                operands: [Operands::default(); N],
                everything: 0,
            }),
        }
    }
}

impl<const N: usize> Fenced<N> {
    /// Number of fences so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        // A vCPU that has taken its request sees all that was counted before the request was made. What a vCPU misses that has
        // not, the request will tell. The operands are looked at under the lock.
        self.count.load(Ordering::Relaxed)
    }

    /// One more. The vCPU is to be told afterwards.
    pub fn push(&self, operands: Operands) {
        let mut kept = self.kept.lock();
        let number = self.count() + 1;
        kept.operands[(number % N as u64) as usize] = operands;
        if operands.is_everything() {
            kept.everything = number;
        }
        self.count.store(number, Ordering::SeqCst);
    }
}

impl<const N: usize> Outstanding for Fenced<N> {
    #[inline]
    fn since(&self, since: u64) -> Option<impl Iterator<Item = Operands>> {
        let kept = self.kept.lock();
        let count = self.count();
        let is_kept = since >= kept.everything && count - since <= N as u64;
        let operands = kept.operands;
        is_kept.then(|| {
            let numbers = since + 1..=count;
            numbers.map(move |number| operands[(number % N as u64) as usize])
        })
    }
}

#[cfg(test)]
impl<const N: usize> Fenced<N> {
    /// Renumbers the fences and the numbers in `seen` from 0 on, with the same meaning for all readers.
    pub(super) fn renumbered(&self, seen: &mut [u64]) -> Self {
        let count = self.count();
        let most = N as u64 + 1;
        let small = |number: u64| most - (count - number).min(most);
        let kept = self.kept.lock();
        let mut operands = [Operands::default(); N];
        for behind in 0..count.min(N as u64) {
            operands[((most - behind) % N as u64) as usize] =
                kept.operands[((count - behind) % N as u64) as usize];
        }
        for seen in seen {
            *seen = small(*seen);
        }
        Self {
            count: AtomicU64::new(most),
            kept: Mutex::new(Kept {
                operands,
                everything: small(kept.everything),
            }),
        }
    }

    /// Key that distinguishes this state from others.
    pub(super) fn key(&self) -> (u64, [Operands; N], u64) {
        let kept = self.kept.lock();
        (self.count(), kept.operands, kept.everything)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u64) -> Operands {
        Operands::of_range(number * PAGE, PAGE, None)
    }

    #[inline]
    fn since(fenced: &Fenced, number: u64) -> Option<Vec<Operands>> {
        fenced.since(number).map(Iterator::collect)
    }

    #[test]
    fn operands_are_kept_while_room_remains() {
        let fenced = Fenced::default();
        for number in 1..=KEPT as u64 {
            fenced.push(page(number));
        }
        let all: Vec<_> = (1..=KEPT as u64).map(page).collect();
        assert_eq!(since(&fenced, 0), Some(all.clone()));
        assert_eq!(since(&fenced, 5), Some(all[5..].to_vec()));
        assert_eq!(since(&fenced, fenced.count()), Some(vec![]));
        fenced.push(page(100));
        assert_eq!(since(&fenced, 0), None, "one was forgotten");
        assert_eq!(since(&fenced, 1).map(|all| all.len()), Some(KEPT));
    }

    #[test]
    fn full_fence_is_full_for_pending_harts() {
        let fenced = Fenced::default();
        fenced.push(page(1));
        fenced.push(Operands::default());
        fenced.push(page(2));
        assert_eq!(since(&fenced, 0), None);
        assert_eq!(since(&fenced, 1), None);
        assert_eq!(since(&fenced, 2), Some(vec![page(2)]));
    }

    #[test]
    fn ranges_round_to_pages_or_every_address() {
        let pages = |start, size| Operands::of_range(start, size, Some(7)).pages;
        assert_eq!(pages(0x1000, 0x1000), Some((0x1000, 1)));
        assert_eq!(pages(0x1fff, 2), Some((0x1000, 2)));
        assert_eq!(pages(0x1800, 0), Some((0x1000, 1)));
        assert_eq!(pages(0, MAX_PAGES * PAGE), Some((0, MAX_PAGES)));
        assert_eq!(pages(0, MAX_PAGES * PAGE + 1), None);
        for (start, size) in [(0, 0), (0, u64::MAX), (0x1000, u64::MAX), (u64::MAX, 2)] {
            assert_eq!(pages(start, size), None, "{start:#x}, {size:#x}");
        }
        assert_eq!(pages(u64::MAX - 4095, 4095), Some((u64::MAX - 4095, 1)));
        assert!(Operands::of_range(0, 0, None).is_everything());
        assert!(!Operands::of_range(0, 0, Some(0)).is_everything());
    }

    /// Paper 003 §3.2: a processor ignores the identifier of the logical processor, or the native parameters.
    #[test]
    fn each_form_reaches_whom_the_paper_says() {
        use RemoteFences::{AnyAddress, AnyVcpu, Precise};
        let operands = page(3);
        let reached = |method, sibling, named| asked(method, operands, (sibling, named));
        assert_eq!(reached(Precise, true, true), Some(operands));
        assert_eq!(reached(Precise, true, false), None);
        assert_eq!(reached(AnyAddress, true, false), Some(Operands::default()));
        assert_eq!(reached(AnyAddress, false, false), None);
        assert_eq!(reached(AnyVcpu, false, false), Some(operands));
    }
}
