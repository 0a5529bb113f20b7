//! A place to run instructions that may trap, with every register as the caller wants it.
//!
//! A sandbox is three pages: the code that enters and leaves (copied from the image), its data, and the
//! program. On the way out nothing is trusted but the program counter: the leaving code finds its data
//! relative to itself, so neither `sp`, `tp` nor `sscratch` has to survive what was run.

use core::arch::global_asm;
use core::mem::offset_of;
use core::ptr;

use riscv::csr::status::{FS_DIRTY, SPIE, SPP, VS_DIRTY};

use super::csr;
use crate::frames::{self, FRAME};

/// Data page of a sandbox, as the assembly lays it out.
#[repr(C)]
struct Data {
    /// Registers on the way in; in x0's place the program counter.
    before: [u64; 32],
    /// Registers on the way out; in x0's place 1 where the program ran to its end.
    after: [u64; 32],
    /// scause on the way out.
    cause: u64,
    /// stval on the way out.
    value: u64,
    /// sepc on the way out.
    pc: u64,
    /// sstatus on the way in.
    status: u64,
    /// satp on the way in.
    space: u64,
    /// sie on the way in.
    enables: u64,
    /// sstatus on the way out.
    status_after: u64,
    /// The caller's registers and CSRs.
    caller: [u64; 20],
}

const _: () = assert!(size_of::<Data>() as u64 <= FRAME);

global_asm!(
    r#"

    .section .sandbox.code, "ax"
    .option push
    .option norvc
    /* void enter(void): its data page is a `Data`. */
    lla     a0, _sandbox_data
    sd      ra, {caller} + 0(a0)
    sd      sp, {caller} + 8(a0)
    sd      gp, {caller} + 16(a0)
    sd      tp, {caller} + 24(a0)
    sd      s0, {caller} + 32(a0)
    sd      s1, {caller} + 40(a0)
    sd      s2, {caller} + 48(a0)
    sd      s3, {caller} + 56(a0)
    sd      s4, {caller} + 64(a0)
    sd      s5, {caller} + 72(a0)
    sd      s6, {caller} + 80(a0)
    sd      s7, {caller} + 88(a0)
    sd      s8, {caller} + 96(a0)
    sd      s9, {caller} + 104(a0)
    sd      s10, {caller} + 112(a0)
    sd      s11, {caller} + 120(a0)
    csrr    t0, satp
    sd      t0, {caller} + 128(a0)
    csrr    t0, stvec
    sd      t0, {caller} + 136(a0)
    csrr    t0, sie
    sd      t0, {caller} + 144(a0)
    csrr    t0, sstatus
    sd      t0, {caller} + 152(a0)
    lla     t0, _sandbox_trap
    csrw    stvec, t0
    ld      t0, {status}(a0)
    csrw    sstatus, t0
    ld      t0, {enables}(a0)
    csrw    sie, t0
    ld      t0, {before} + 0(a0)
    csrw    sepc, t0
    ld      t0, {space}(a0)
    sfence.vma
    csrw    satp, t0
    sfence.vma
    ld      x1, {before} + 8(a0)
    ld      x2, {before} + 16(a0)
    ld      x3, {before} + 24(a0)
    ld      x4, {before} + 32(a0)
    ld      x5, {before} + 40(a0)
    ld      x6, {before} + 48(a0)
    ld      x7, {before} + 56(a0)
    ld      x8, {before} + 64(a0)
    ld      x9, {before} + 72(a0)
    ld      x11, {before} + 88(a0)
    ld      x12, {before} + 96(a0)
    ld      x13, {before} + 104(a0)
    ld      x14, {before} + 112(a0)
    ld      x15, {before} + 120(a0)
    ld      x16, {before} + 128(a0)
    ld      x17, {before} + 136(a0)
    ld      x18, {before} + 144(a0)
    ld      x19, {before} + 152(a0)
    ld      x20, {before} + 160(a0)
    ld      x21, {before} + 168(a0)
    ld      x22, {before} + 176(a0)
    ld      x23, {before} + 184(a0)
    ld      x24, {before} + 192(a0)
    ld      x25, {before} + 200(a0)
    ld      x26, {before} + 208(a0)
    ld      x27, {before} + 216(a0)
    ld      x28, {before} + 224(a0)
    ld      x29, {before} + 232(a0)
    ld      x30, {before} + 240(a0)
    ld      x31, {before} + 248(a0)
    ld      x10, {before} + 80(a0)
    sret

    .balign 4
_sandbox_trap:
    csrw    sscratch, t0
    lla     t0, _sandbox_data
    sd      t1, {after} + 48(t0)
    li      t1, 0
    j       1f
    .balign 4
    .global _sandbox_landed
_sandbox_landed:
    csrw    sscratch, t0
    lla     t0, _sandbox_data
    sd      t1, {after} + 48(t0)
    li      t1, 1
1:  sd      t1, {after} + 0(t0)
    csrci   sstatus, 2
    sd      x1, {after} + 8(t0)
    sd      x2, {after} + 16(t0)
    sd      x3, {after} + 24(t0)
    sd      x4, {after} + 32(t0)
    sd      x7, {after} + 56(t0)
    sd      x8, {after} + 64(t0)
    sd      x9, {after} + 72(t0)
    sd      x10, {after} + 80(t0)
    sd      x11, {after} + 88(t0)
    sd      x12, {after} + 96(t0)
    sd      x13, {after} + 104(t0)
    sd      x14, {after} + 112(t0)
    sd      x15, {after} + 120(t0)
    sd      x16, {after} + 128(t0)
    sd      x17, {after} + 136(t0)
    sd      x18, {after} + 144(t0)
    sd      x19, {after} + 152(t0)
    sd      x20, {after} + 160(t0)
    sd      x21, {after} + 168(t0)
    sd      x22, {after} + 176(t0)
    sd      x23, {after} + 184(t0)
    sd      x24, {after} + 192(t0)
    sd      x25, {after} + 200(t0)
    sd      x26, {after} + 208(t0)
    sd      x27, {after} + 216(t0)
    sd      x28, {after} + 224(t0)
    sd      x29, {after} + 232(t0)
    sd      x30, {after} + 240(t0)
    sd      x31, {after} + 248(t0)
    csrr    t1, sscratch
    sd      t1, {after} + 40(t0)
    csrr    t1, scause
    sd      t1, {cause}(t0)
    csrr    t1, stval
    sd      t1, {value}(t0)
    csrr    t1, sepc
    sd      t1, {pc}(t0)
    csrr    t1, sstatus
    sd      t1, {status_after}(t0)
    ld      t1, {caller} + 128(t0)
    csrw    satp, t1
    sfence.vma
    ld      t1, {caller} + 136(t0)
    csrw    stvec, t1
    ld      t1, {caller} + 144(t0)
    csrw    sie, t1
    ld      t1, {caller} + 152(t0)
    csrw    sstatus, t1
    ld      ra, {caller} + 0(t0)
    ld      sp, {caller} + 8(t0)
    ld      gp, {caller} + 16(t0)
    ld      tp, {caller} + 24(t0)
    ld      s0, {caller} + 32(t0)
    ld      s1, {caller} + 40(t0)
    ld      s2, {caller} + 48(t0)
    ld      s3, {caller} + 56(t0)
    ld      s4, {caller} + 64(t0)
    ld      s5, {caller} + 72(t0)
    ld      s6, {caller} + 80(t0)
    ld      s7, {caller} + 88(t0)
    ld      s8, {caller} + 96(t0)
    ld      s9, {caller} + 104(t0)
    ld      s10, {caller} + 112(t0)
    ld      s11, {caller} + 120(t0)
    ret
    .option pop
    .section .sandbox.data, "ax"
_sandbox_data:
    "#,
    before = const offset_of!(Data, before),
    after = const offset_of!(Data, after),
    cause = const offset_of!(Data, cause),
    value = const offset_of!(Data, value),
    pc = const offset_of!(Data, pc),
    status = const offset_of!(Data, status),
    space = const offset_of!(Data, space),
    enables = const offset_of!(Data, enables),
    status_after = const offset_of!(Data, status_after),
    caller = const offset_of!(Data, caller),
);

unsafe extern "C" {
    static _sandbox_start: u8;
    static _sandbox_landed: u8;
}

/// `sstatus`: floating point on, and vectors where the hart has them.
const REGISTER_SETS: u64 = FS_DIRTY | VS_DIRTY;

pub use riscv::csr::status::{MXR, SUM};

/// Where the program lies in its page; what stands around it traps.
pub const PROGRAM_OFFSET: u64 = 0x800;
/// C.EBREAK, twice: what the program's page is filled with.
const BREAKPOINTS: u32 = 0x9002_9002;
/// EBREAK, the end of a program in user mode.
const EBREAK: u32 = riscv::instruction::EBREAK;

/// Where a sandbox's data page has the registers on the way in, and on the way out.
const BEFORE: u64 = offset_of!(Data, before) as u64;
const AFTER: u64 = offset_of!(Data, after) as u64;

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
        super::memory::store(data + BEFORE, pc);
        for (register, value) in (1..32).zip(setting.registers.iter().skip(1)) {
            super::memory::store(data + BEFORE + 8 * register, *value);
        }
        let mode = if setting.user { 0 } else { SPP };
        super::memory::store(
            data + offset_of!(Data, status) as u64,
            REGISTER_SETS | SPIE | mode | setting.status,
        );
        super::memory::store(data + offset_of!(Data, space) as u64, setting.satp);
        super::memory::store(data + offset_of!(Data, enables) as u64, csr::TIMER);
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
            *value = super::memory::load(data + AFTER + 8 * register);
        }
        let (cause, pc) = (
            super::memory::load(data + offset_of!(Data, cause) as u64),
            super::memory::load(data + offset_of!(Data, pc) as u64),
        );
        let broke = cause == riscv::exception::BREAKPOINT && setting.user && pc == end;
        if super::memory::load(data + AFTER) == 1 || broke {
            Ending::Completed
        } else if cause == super::trap::TIMER_INTERRUPT {
            Ending::TimedOut { pc }
        } else {
            Ending::Trapped {
                cause,
                value: super::memory::load(data + offset_of!(Data, value) as u64),
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
