//! The address spaces of jobs: what their references to memory go through.

use core::sync::atomic::{AtomicUsize, Ordering};

use exerciser::random::Random;
use exerciser::workload::{MAX_SPACES, Workload};
use riscv::sbi::RFENCE;

use crate::arch::paging::{self, IDENTITY_END, R, Space, W, WINDOW, X};
use crate::arch::{csr, memory, sbi};
use crate::board::MAX_HARTS;
use crate::frames::{self, FRAME};

/// The function of RFENCE that fences one address space (SBI "RFENCE Extension", FID 2), and the base of hart masks that names all
/// harts (SBI "Hart list parameter").
const WITH_IDENTIFIER: u64 = 2;
const ALL_HARTS: u64 = u64::MAX;

/// For each hart: the space that it is in, from 1; 0 is none. As other systems do, a hart writes satp where its space changes, and nowhere else.
static CURRENT: [AtomicUsize; MAX_HARTS] = [const { AtomicUsize::new(0) }; MAX_HARTS];

/// The address spaces of a workload, the same for all harts.
#[derive(Debug)]
pub struct Spaces {
    spaces: [Option<Space>; MAX_SPACES as usize],
    pages: u64,
    references: u64,
    fence_one_in: u64,
    remote_fence_one_in: u64,
    asids: bool,
}

impl Spaces {
    /// None where memory does not suffice.
    pub fn new(workload: &Workload) -> Option<Self> {
        let mut spaces = [None; MAX_SPACES as usize];
        for slot in spaces.iter_mut().take(workload.spaces as usize) {
            let space = Space::new()?;
            space.map(0, 0, IDENTITY_END, R | W | X)?;
            let window = frames::take_aligned(workload.pages, FRAME)?;
            for page in 0..workload.pages {
                let entry = space.entry(WINDOW + page * FRAME, 0)?;
                memory::store(entry, Space::leaf(window + page * FRAME, R | W));
            }
            *slot = Some(space);
        }
        Some(Self {
            spaces,
            pages: workload.pages,
            references: workload.references,
            fence_one_in: workload.fence_one_in,
            remote_fence_one_in: workload.remote_fence_one_in,
            asids: workload.asids,
        })
    }

    /// A page that every space has.
    pub const fn window(&self) -> u64 {
        WINDOW
    }

    /// References of a step of job `number` on a hart. The space has the same identifier on each hart; without identifiers
    /// (none wanted, or ASIDLEN = 0) each change of the space is followed by a fence.
    pub fn touch(&self, number: usize, hart: usize, random: &mut Random) {
        let count = self.spaces.iter().flatten().count().max(1);
        let index = number % count;
        let Some(Some(space)) = self.spaces.get(index) else {
            return;
        };
        let asid = match self.asids {
            true => index as u64 + 1,
            false => 0,
        };
        let current = CURRENT.get(hart);
        if current.is_none_or(|current| current.swap(index + 1, Ordering::Relaxed) != index + 1) {
            paging::enter(*space, asid);
            if !self.asids || csr::translation() >> 44 & 0xffff != asid {
                csr::fence_translation(None, None);
            }
        }
        for _ in 0..self.references {
            let at = random.next();
            let page = at % self.pages;
            let word = at >> 32 & (FRAME / 8 - 1);
            core::hint::black_box(memory::load(WINDOW + page * FRAME + 8 * word));
        }
        if self.fence_one_in != 0 && random.one_in(self.fence_one_in) {
            csr::fence_translation(None, Some(asid));
        }
        if self.remote_fence_one_in != 0 && random.one_in(self.remote_fence_one_in) {
            let (start, size) = (0, u64::MAX);
            let operands = [0, ALL_HARTS, start, size, asid, 0];
            let answer = sbi::call(RFENCE, WITH_IDENTIFIER, operands);
            if answer.error != 0 {
                let error = answer.error;
                crate::start::fail(format_args!("remote fence: SBI error {error}"));
            }
        }
    }
}
