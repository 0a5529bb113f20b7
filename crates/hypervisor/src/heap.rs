//! The hypervisor's heap: a fixed piece of its image, and for large systems one more piece of the host's memory.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, Ordering};

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

/// The system is assembled: from here on no hart allocates or frees outside its own [`permit`].
///
/// Guests run from here on, and what a guest can bring about again and again would exhaust the heap. With the feature `lock-order`
/// the hypervisor stops where a hart departs from this, so that every run is a test of all code that it takes.
pub fn seal() {
    SEALED.store(true, Ordering::Relaxed);
}

/// Lets this hart, and no other, allocate in `act`: for a command or a report of the operator's, and before the hart enters its first guest.
/// Nothing that a guest brings about is among them.
pub fn permit<T>(act: impl FnOnce() -> T) -> T {
    #[cfg(any(test, feature = "lock-order"))]
    let _permit = permits::Permit::take();
    act()
}

/// Returns true if the heap is sealed and this hart has no permit.
#[cfg(any(test, feature = "lock-order"))]
fn is_late() -> bool {
    SEALED.load(Ordering::Relaxed) && !permits::has_one()
}

/// Stops the hypervisor if this hart may not have `bytes` bytes `changed`.
#[inline]
fn check(bytes: usize, changed: &str) {
    #[cfg(feature = "lock-order")]
    if is_late() {
        // The report allocates too.
        SEALED.store(false, Ordering::Relaxed);
        panic!("{bytes} bytes are {changed} after assembly");
    }
    let _ = (bytes, changed);
}

/// Permits of the harts.
#[cfg(any(test, feature = "lock-order"))]
mod permits {
    use core::sync::atomic::{AtomicUsize, Ordering};

    use crate::hart;

    /// Harts that have a permit, each by the address of its own record; 0 in free places. A hart may have several permits.
    static HOLDERS: [AtomicUsize; abi::system::MAX_HARTS as usize] =
        [const { AtomicUsize::new(0) }; abi::system::MAX_HARTS as usize];

    /// A permit, until it is dropped.
    pub struct Permit(Option<&'static AtomicUsize>);

    impl Permit {
        /// Permit of this hart, if there is a free place.
        pub fn take() -> Self {
            let own = hart::pointer().addr();
            Self(HOLDERS.iter().find(|place| {
                let taken = place.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed);
                taken.is_ok()
            }))
        }
    }

    impl Drop for Permit {
        fn drop(&mut self) {
            if let Some(place) = self.0 {
                place.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Returns true if this hart has a permit.
    pub fn has_one() -> bool {
        let own = hart::pointer().addr();
        let mut holders = HOLDERS.iter();
        holders.any(|place| place.load(Ordering::Relaxed) == own)
    }
}

// SAFETY: what is allocated is a piece of one of the two heaps, each of which keeps this contract by itself, and it is given back to
// the one that it came from: the second one's addresses are known.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size(), "allocated");
        let allocate = |heap: &LockedHeap| heap.lock().allocate_first_fit(layout).ok();
        let found = allocate(&self.first).or_else(|| allocate(&self.second));
        found.map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        check(layout.size(), "freed");
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

/// The tests' allocator, which counts what each thread allocates and frees.
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
            count_one();
            // SAFETY: as the caller says.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
            count_one();
            // SAFETY: as the caller says.
            unsafe { System.dealloc(place, layout) };
        }
    }

    fn count_one() {
        // A thread that ends has no counter any more.
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
    }

    /// Number of times that `act` allocates or frees in this thread.
    pub fn allocations(act: impl FnOnce()) -> usize {
        let before = COUNT.get();
        act();
        COUNT.get() - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This thread stands for a hart of its own from now on.
    fn become_hart() {
        let own: &u64 = std::boxed::Box::leak(std::boxed::Box::new(0));
        crate::hart::set_pointer(core::ptr::from_ref(own).cast());
    }

    #[test]
    fn sealed_heap_asks_for_permits() {
        become_hart();
        assert!(!is_late());
        seal();
        assert!(is_late());
        assert!(!permit(is_late));
        assert!(!permit(|| {
            permit(|| ());
            is_late()
        }));
        assert!(is_late());
        // The permit of one hart hides nothing of another hart.
        permit(|| {
            let other = std::thread::spawn(|| {
                become_hart();
                is_late()
            });
            assert!(other.join().unwrap());
            assert!(!is_late());
        });
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
