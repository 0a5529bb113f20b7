//! A place to run instructions that may trap, with every register as the caller wants it.
//!
//! A sandbox is three pages: the code that enters and leaves (copied from the image), its data, and the
//! program. On the way out nothing is trusted but the program counter: the leaving code finds its data
//! relative to itself, so neither `sp`, `tp` nor `sscratch` has to survive what was run.

use core::arch::global_asm;
use core::ptr;

use riscv::csr::status::{FS_DIRTY, SPIE, SPP};

use super::csr;
use crate::frames::{self, FRAME};

global_asm!(
    r#"

    .section .sandbox.code, "ax"
    .option push
    .option norvc
    /* void enter(void): data page: 0 registers in (x0's place: pc), 256 registers out (x0's place: 1 when the
       program ran to its end), 512 scause, 520 stval, 528 sepc, 536 sstatus in, 544 satp in, 552 sie in,
       560 sstatus out, 568 the caller's registers and CSRs. */
    lla     a0, _sandbox_data
    sd      ra, 568(a0)
    sd      sp, 576(a0)
    sd      gp, 584(a0)
    sd      tp, 592(a0)
    sd      s0, 600(a0)
    sd      s1, 608(a0)
    sd      s2, 616(a0)
    sd      s3, 624(a0)
    sd      s4, 632(a0)
    sd      s5, 640(a0)
    sd      s6, 648(a0)
    sd      s7, 656(a0)
    sd      s8, 664(a0)
    sd      s9, 672(a0)
    sd      s10, 680(a0)
    sd      s11, 688(a0)
    csrr    t0, satp
    sd      t0, 696(a0)
    csrr    t0, stvec
    sd      t0, 704(a0)
    csrr    t0, sie
    sd      t0, 712(a0)
    csrr    t0, sstatus
    sd      t0, 720(a0)
    lla     t0, _sandbox_trap
    csrw    stvec, t0
    ld      t0, 536(a0)
    csrw    sstatus, t0
    ld      t0, 552(a0)
    csrw    sie, t0
    ld      t0, 0(a0)
    csrw    sepc, t0
    ld      t0, 544(a0)
    sfence.vma
    csrw    satp, t0
    sfence.vma
    ld      x1, 8(a0)
    ld      x2, 16(a0)
    ld      x3, 24(a0)
    ld      x4, 32(a0)
    ld      x5, 40(a0)
    ld      x6, 48(a0)
    ld      x7, 56(a0)
    ld      x8, 64(a0)
    ld      x9, 72(a0)
    ld      x11, 88(a0)
    ld      x12, 96(a0)
    ld      x13, 104(a0)
    ld      x14, 112(a0)
    ld      x15, 120(a0)
    ld      x16, 128(a0)
    ld      x17, 136(a0)
    ld      x18, 144(a0)
    ld      x19, 152(a0)
    ld      x20, 160(a0)
    ld      x21, 168(a0)
    ld      x22, 176(a0)
    ld      x23, 184(a0)
    ld      x24, 192(a0)
    ld      x25, 200(a0)
    ld      x26, 208(a0)
    ld      x27, 216(a0)
    ld      x28, 224(a0)
    ld      x29, 232(a0)
    ld      x30, 240(a0)
    ld      x31, 248(a0)
    ld      x10, 80(a0)
    sret

    .balign 4
_sandbox_trap:
    csrw    sscratch, t0
    lla     t0, _sandbox_data
    sd      t1, 304(t0)
    li      t1, 0
    j       1f
    .balign 4
    .global _sandbox_landed
_sandbox_landed:
    csrw    sscratch, t0
    lla     t0, _sandbox_data
    sd      t1, 304(t0)
    li      t1, 1
1:  sd      t1, 256(t0)
    csrci   sstatus, 2
    sd      x1, 264(t0)
    sd      x2, 272(t0)
    sd      x3, 280(t0)
    sd      x4, 288(t0)
    sd      x7, 312(t0)
    sd      x8, 320(t0)
    sd      x9, 328(t0)
    sd      x10, 336(t0)
    sd      x11, 344(t0)
    sd      x12, 352(t0)
    sd      x13, 360(t0)
    sd      x14, 368(t0)
    sd      x15, 376(t0)
    sd      x16, 384(t0)
    sd      x17, 392(t0)
    sd      x18, 400(t0)
    sd      x19, 408(t0)
    sd      x20, 416(t0)
    sd      x21, 424(t0)
    sd      x22, 432(t0)
    sd      x23, 440(t0)
    sd      x24, 448(t0)
    sd      x25, 456(t0)
    sd      x26, 464(t0)
    sd      x27, 472(t0)
    sd      x28, 480(t0)
    sd      x29, 488(t0)
    sd      x30, 496(t0)
    sd      x31, 504(t0)
    csrr    t1, sscratch
    sd      t1, 296(t0)
    csrr    t1, scause
    sd      t1, 512(t0)
    csrr    t1, stval
    sd      t1, 520(t0)
    csrr    t1, sepc
    sd      t1, 528(t0)
    csrr    t1, sstatus
    sd      t1, 560(t0)
    ld      t1, 696(t0)
    csrw    satp, t1
    sfence.vma
    ld      t1, 704(t0)
    csrw    stvec, t1
    ld      t1, 712(t0)
    csrw    sie, t1
    ld      t1, 720(t0)
    csrw    sstatus, t1
    ld      ra, 568(t0)
    ld      sp, 576(t0)
    ld      gp, 584(t0)
    ld      tp, 592(t0)
    ld      s0, 600(t0)
    ld      s1, 608(t0)
    ld      s2, 616(t0)
    ld      s3, 624(t0)
    ld      s4, 632(t0)
    ld      s5, 640(t0)
    ld      s6, 648(t0)
    ld      s7, 656(t0)
    ld      s8, 664(t0)
    ld      s9, 672(t0)
    ld      s10, 680(t0)
    ld      s11, 688(t0)
    ret
    .option pop
    .section .sandbox.data, "ax"
_sandbox_data:
    "#
);

unsafe extern "C" {
    static _sandbox_start: u8;
    static _sandbox_landed: u8;
}

/// `sstatus`: floating point on.
const FS: u64 = FS_DIRTY;

pub use riscv::csr::status::{MXR, SUM};

/// Where the program lies in its page; what stands around it traps.
pub const PROGRAM_OFFSET: u64 = 0x800;
/// C.EBREAK, twice: what the program's page is filled with.
const BREAKPOINTS: u32 = 0x9002_9002;
/// EBREAK, the end of a program in user mode.
const EBREAK: u32 = riscv::instruction::EBREAK;

/// How the program is run.
#[derive(Debug, Clone)]
pub struct Setting {
    /// x1 to x31; the first place is not used.
    pub registers: [u64; 32],
    /// In user mode.
    pub user: bool,
    /// `satp` while it runs.
    pub satp: u64,
    /// Further bits of `sstatus` (SUM, MXR).
    pub status: u64,
    /// Ticks after which a program that goes on is taken back.
    pub limit: u64,
}

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It ran to its end.
    Completed,
    /// It trapped: `scause`, `stval`, `sepc`.
    Trapped { cause: u64, value: u64, pc: u64 },
    /// It had not ended at the limit.
    TimedOut { pc: u64 },
}

/// A sandbox: three pages of its own.
#[derive(Debug, Clone, Copy)]
pub struct Sandbox {
    page: u64,
}

impl Sandbox {
    /// Makes one; `None` when memory is out.
    pub fn make() -> Option<Self> {
        let page = frames::take(3)?;
        let template = (&raw const _sandbox_start).addr() as u64;
        for offset in (0..FRAME).step_by(8) {
            super::memory::store(page + offset, super::memory::load(template + offset));
        }
        Some(Self { page })
    }

    /// The sandbox whose first page this is, as [`Sandbox::page`] gave it.
    pub fn of(hart: &crate::harts::Hart) -> Self {
        Self {
            page: hart.sandbox(),
        }
    }

    /// Its first page: code, then data, then the program.
    pub const fn page(self) -> u64 {
        self.page
    }

    /// Its data page.
    pub const fn data(self) -> u64 {
        self.page + FRAME
    }

    /// The address of the program's first instruction.
    pub const fn program(self) -> u64 {
        self.page + 2 * FRAME + PROGRAM_OFFSET
    }

    /// Runs a program, a sequence of 16-bit parcels, and says what became of it. The registers are left as
    /// the program left them.
    pub fn run(self, program: &[u16], setting: &mut Setting) -> Ending {
        self.place(program, setting.user);
        self.run_at(
            self.program(),
            setting,
            self.program() + 2 * program.len() as u64,
        )
    }

    /// Runs from an address: a jump to it in the sandbox's setting. `end` is where a completed user program
    /// breaks.
    pub fn run_at(self, pc: u64, setting: &mut Setting, end: u64) -> Ending {
        let data = self.data();
        super::memory::store(data, pc);
        for (register, value) in (1..32).zip(setting.registers.iter().skip(1)) {
            super::memory::store(data + 8 * register, *value);
        }
        let mode = if setting.user { 0 } else { SPP };
        super::memory::store(data + 536, FS | SPIE | mode | setting.status);
        super::memory::store(data + 544, setting.satp);
        super::memory::store(data + 552, csr::TIMER);
        csr::fence_instructions();
        crate::harts::set_timer(csr::time().saturating_add(setting.limit));
        // SAFETY: the page holds the template's code, which keeps the registers that the C convention
        // keeps, and comes back by `ret` whatever the program does, as its exercises see to: what is run
        // writes neither this sandbox nor the kernel, and leaves `satp` without a table that lacks them.
        unsafe {
            let enter: extern "C" fn() =
                core::mem::transmute(ptr::with_exposed_provenance::<()>(self.page as usize));
            enter();
        }
        crate::harts::set_timer(u64::MAX);
        for (register, value) in (1..32).zip(setting.registers.iter_mut().skip(1)) {
            *value = super::memory::load(data + 256 + 8 * register);
        }
        let (cause, pc) = (
            super::memory::load(data + 512),
            super::memory::load(data + 528),
        );
        let broke = cause == 3 && setting.user && pc == end;
        if super::memory::load(data + 256) == 1 || broke {
            Ending::Completed
        } else if cause == super::trap::TIMER_INTERRUPT {
            Ending::TimedOut { pc }
        } else {
            Ending::Trapped {
                cause,
                value: super::memory::load(data + 520),
                pc,
            }
        }
    }

    /// Puts a program in its page: breakpoints before and after it, then the way out.
    fn place(self, program: &[u16], user: bool) {
        let start = self.page + 2 * FRAME;
        let landed = self.page + (&raw const _sandbox_landed).addr() as u64
            - (&raw const _sandbox_start).addr() as u64;
        let end = self.program() + 2 * program.len() as u64;
        let way_out = if user {
            EBREAK
        } else {
            exerciser::instruction::jump(landed.wrapping_sub(end))
        };
        let at = |offset: u64| -> u16 {
            let address = start + offset;
            let parcel = (address.wrapping_sub(self.program()) / 2) as usize;
            if address < self.program() {
                BREAKPOINTS as u16
            } else if let Some(word) = program.get(parcel) {
                *word
            } else if address == end {
                way_out as u16
            } else if address == end + 2 {
                (way_out >> 16) as u16
            } else {
                BREAKPOINTS as u16
            }
        };
        // Only what can differ from the run before is written: the program, its way out, and what follows.
        let last = if super::memory::load(start) == 0 {
            FRAME
        } else {
            PROGRAM_OFFSET + 64
        };
        let first = if last == FRAME { 0 } else { PROGRAM_OFFSET };
        for offset in (first..last).step_by(8) {
            let word = (0..4).fold(0, |word, part| {
                word | u64::from(at(offset + 2 * part)) << (16 * part)
            });
            super::memory::store(start + offset, word);
        }
    }
}
