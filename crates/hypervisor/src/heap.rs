//! The hypervisor's heap: a fixed piece of its image, and for large systems one more piece of the host's memory.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use linked_list_allocator::LockedHeap;

/// The bytes of the piece in the image. Small systems need no more.
pub const BYTES: usize = 2 << 20;

/// Two pieces, of which the second is there once it was given.
pub struct Heap {
    first: LockedHeap,
    second: LockedHeap,
}

/// The one heap.
#[cfg_attr(target_os = "none", global_allocator)]
pub static HEAP: Heap = Heap {
    first: LockedHeap::empty(),
    second: LockedHeap::empty(),
};

impl Heap {
    /// Begins with the piece in the image.
    ///
    /// # Safety
    /// Called once, before anything is allocated, with `BYTES` at `space` that nothing else uses.
    pub unsafe fn begin(&self, space: *mut u8) {
        // SAFETY: as the caller says.
        unsafe { self.first.lock().init(space, BYTES) };
    }

    /// Adds the second piece.
    ///
    /// # Safety
    /// Called once, with `bytes` at `space` that nothing else uses.
    pub unsafe fn grow(&self, space: *mut u8, bytes: usize) {
        // SAFETY: as the caller says.
        unsafe { self.second.lock().init(space, bytes) };
    }
}

/// Set when the system is assembled: no allocation may follow.
static SEALED: AtomicBool = AtomicBool::new(false);
/// Number of [`permit`]s that harts are in.
static PERMITS: AtomicUsize = AtomicUsize::new(0);

/// The system is assembled: from here on nothing allocates outside a [`permit`].
///
/// Guests run from here on, and what a guest can bring about again and again would exhaust the heap. With the feature `lock-order`
/// the hypervisor stops at the first allocation that departs from this, so that every run is a test of all code that it takes.
pub fn seal() {
    SEALED.store(true, Ordering::Relaxed);
}

/// Lets `act` allocate: for the operator, for a report, or something that happens once.
pub fn permit<T>(act: impl FnOnce() -> T) -> T {
    PERMITS.fetch_add(1, Ordering::Relaxed);
    let result = act();
    PERMITS.fetch_sub(1, Ordering::Relaxed);
    result
}

/// Returns true if the heap is sealed and no hart is in a [`permit`].
#[cfg(any(test, feature = "lock-order"))]
fn is_late() -> bool {
    SEALED.load(Ordering::Relaxed) && PERMITS.load(Ordering::Relaxed) == 0
}

// SAFETY: what is allocated is a piece of one of the two heaps, each of which keeps this contract by itself, and it is given back to
// the one that it came from: the second one's addresses are known.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        #[cfg(feature = "lock-order")]
        if is_late() {
            // The report allocates too.
            SEALED.store(false, Ordering::Relaxed);
            panic!("{} bytes are allocated after assembly", layout.size());
        }
        let allocate = |heap: &LockedHeap| heap.lock().allocate_first_fit(layout).ok();
        let found = allocate(&self.first).or_else(|| allocate(&self.second));
        found.map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        let mut second = self.second.lock();
        let in_second = second.size() > 0 && (second.bottom()..second.top()).contains(&place);
        let Some(place) = NonNull::new(place) else {
            return;
        };
        // SAFETY: the caller says that it was allocated here with this layout, and by its address it came from this heap.
        unsafe {
            if in_second {
                second.deallocate(place, layout);
            } else {
                drop(second);
                self.first.lock().deallocate(place, layout);
            }
        }
    }
}

impl core::fmt::Debug for Heap {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_struct("Heap").finish_non_exhaustive()
    }
}

#[cfg(test)]
pub use counting::allocations;

/// The tests' allocator, which counts what each thread allocates.
#[cfg(test)]
mod counting {
    use core::alloc::{GlobalAlloc, Layout};
    use core::cell::Cell;
    use std::alloc::System;
    use std::thread_local;

    thread_local! {
        static COUNT: Cell<usize> = const { Cell::new(0) };
    }

    struct Counting;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    // SAFETY: the system's allocator keeps the contract.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // A thread that ends has no counter any more.
            let _ = COUNT.try_with(|count| count.set(count.get() + 1));
            // SAFETY: as the caller says.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
            // SAFETY: as the caller says.
            unsafe { System.dealloc(place, layout) };
        }
    }

    /// Number of allocations that `act` makes in this thread.
    pub fn allocations(act: impl FnOnce()) -> usize {
        let before = COUNT.get();
        act();
        COUNT.get() - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_heap_asks_for_permits() {
        assert!(!is_late());
        seal();
        assert!(is_late());
        assert!(!permit(is_late));
        assert!(is_late());
        SEALED.store(false, Ordering::Relaxed);
    }

    #[test]
    fn second_piece_serves_what_the_first_cannot() {
        let heap = Heap {
            first: LockedHeap::empty(),
            second: LockedHeap::empty(),
        };
        let piece = |bytes: usize| std::vec![0u64; bytes / 8].leak().as_mut_ptr().cast::<u8>();
        // SAFETY: both pieces are leaked for this test alone.
        unsafe {
            heap.begin(piece(BYTES));
            let layout = Layout::from_size_align(BYTES / 2 + 64, 64).unwrap();
            let one = heap.alloc(layout);
            assert!(!one.is_null() && heap.alloc(layout).is_null());
            heap.grow(piece(BYTES), BYTES);
            let other = heap.alloc(layout);
            assert!(!other.is_null() && heap.alloc(layout).is_null());
            heap.dealloc(one, layout);
            heap.dealloc(other, layout);
            assert_eq!(heap.first.lock().used(), 0);
            assert_eq!(heap.second.lock().used(), 0);
        }
    }
}
