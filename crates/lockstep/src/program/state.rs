//! The state before: registers and CSRs.

use super::setting::{Features, Mode, Slot};
use super::tables::Tables;
use crate::csr::{self, SET};
use crate::layout::{self, context};
use crate::random::Random;

/// Registers that hold addresses of data and are never changed by a program.
pub const BASES: [u32; 8] = [2, 3, 4, 8, 9, 10, 11, 16];
/// Offsets from a base stay within this many bytes.
pub const REACH: i32 = 512;

/// State before a program that its generation depends on.
#[derive(Debug, Clone)]
pub struct State {
    /// True if WFI traps in every mode that the program can come to.
    pub wait_traps: bool,
    /// True if memory protection covers data.
    pub protected: bool,
    /// True if it lets page tables be read but not written.
    pub protects_tables: bool,
    /// True if menvcfg.STCE or henvcfg.STCE is clear.
    pub timers_off: bool,
    delegated: u64,
    environment: u64,
}

const SIE: u64 = 1 << 1;
const SPIE: u64 = 1 << 5;
const MPIE: u64 = 1 << 7;
const SPP: u64 = 1 << 8;
const MPRV: u64 = 1 << 17;
const SUM: u64 = 1 << 18;
const MXR: u64 = 1 << 19;
const TVM: u64 = 1 << 20;
const TW: u64 = 1 << 21;
const TSR: u64 = 1 << 22;
const MPV: u64 = 1 << 39;
/// Of menvcfg, henvcfg and senvcfg.
const LPE: u64 = 1 << 2;
const SSE: u64 = 1 << 3;
const DTE: u64 = 1 << 59;
/// Of mseccfg.
const MLPE: u64 = 1 << 10;

/// Exceptions that may be delegated: not the ECALLs that the handlers use.
/// Nor misaligned fetches, which cannot happen with the C extension.
const MEDELEG: u64 = 0x00f4_b1fe;
const HEDELEG: u64 = 0x0004_b1fe;
const SUPERVISOR_INTERRUPTS: u64 = 0x222;
const VIRTUAL_INTERRUPTS: u64 = 0x444;
/// The supervisors' timers.
const TIMERS: u64 = 0x60;
/// M-mode's timer.
const MTI: u64 = 1 << 7;

impl State {
    /// Puts a state into the slot.
    pub fn new(
        slot: &mut Slot,
        mode: Mode,
        tables: &Tables,
        features: Features,
        random: &mut Random,
    ) -> Self {
        put_registers(slot, mode, tables, random);
        let trapped_wait = random.chance(20) && mode != Mode::Machine;
        let status = status(mode, trapped_wait, features, random);
        let delegated = some(random, MEDELEG);
        let environment = environment(features, random);
        let protected = features.protection && random.chance(25);
        let protection = protection(slot, protected, random);
        put_vectors(slot, features, random);
        let interrupts = random.chance(35);
        let basis = Basis {
            base: slot.base,
            mode,
            tables,
            features,
            status,
            delegated,
            environment,
            trapped_wait,
            protection,
            interrupts,
            enabled: enabled(interrupts, random),
        };
        let mut timers_off = false;
        for (index, &number) in SET.iter().enumerate() {
            let value = basis.value(number, random);
            if number == csr::HENVCFG {
                timers_off = value >> 63 == 0;
            }
            slot.put_context(context::CSRS, index, value);
        }
        slot.put_context(context::NEXT, 0, slot.base + layout::LOG);
        slot.put_context(context::SLOT, 0, slot.base);
        Self {
            wait_traps: trapped_wait,
            protected,
            protects_tables: basis.protection.tables,
            timers_off,
            delegated,
            environment,
        }
    }

    /// Description of the set-up for people.
    pub fn describe(&self) -> String {
        format!(
            "medeleg {:#x}, menvcfg {:#x}{}",
            self.delegated,
            self.environment,
            if self.protected { ", PMP on data" } else { "" }
        )
    }
}

/// Values that several CSRs depend on.
struct Basis<'a> {
    base: u64,
    mode: Mode,
    tables: &'a Tables,
    features: Features,
    status: u64,
    delegated: u64,
    environment: u64,
    trapped_wait: bool,
    protection: Protection,
    interrupts: bool,
    enabled: u64,
}

impl Basis<'_> {
    /// Value of a CSR before the program.
    fn value(&self, number: u16, random: &mut Random) -> u64 {
        match number {
            csr::FCSR => random.below(0x100),
            csr::MEDELEG => self.delegated,
            csr::MIDELEG => some(random, SUPERVISOR_INTERRUPTS),
            csr::MIE => self.enabled,
            csr::MCOUNTEREN | csr::SCOUNTEREN | csr::HCOUNTEREN => some(random, 7),
            csr::MENVCFG => self.environment,
            csr::HENVCFG => {
                let gated = self.environment & some(random, 7 << 61 | DTE | SSE | 3 << 6);
                let landing = control_flow(self.features, LPE, random);
                gated | landing | random.pick(&[0, 1, 3]) << 4 | masking(self.features, random)
            }
            csr::SENVCFG => {
                random.pick(&[0, 0xf0, 0x30, 0x50, 0xd0])
                    | control_flow(self.features, LPE, random)
                    | control_flow(self.features, SSE, random)
                    | masking(self.features, random)
            }
            csr::MSECCFG => {
                control_flow(self.features, MLPE, random) | masking(self.features, random)
            }
            csr::SSP if self.features.control_flow => self.shadow_stack(random),
            csr::SSP => 0,
            csr::MSTATEEN0 | csr::HSTATEEN0 if random.chance(70) => self.features.state_enable(),
            csr::MSTATEEN0 | csr::HSTATEEN0 => random.bits() & self.features.state_enable(),
            csr::STVEC => self.base + layout::HANDLERS + u64::from(random.chance(30)),
            csr::VSTVEC => {
                self.base
                    + layout::HANDLERS
                    + layout::VIRTUAL_HANDLERS
                    + u64::from(random.chance(30))
            }
            csr::SSCRATCH | csr::VSSCRATCH | csr::STVAL | csr::VSTVAL | csr::HTVAL => {
                random.value()
            }
            csr::MTVAL | csr::MTVAL2 => random.value(),
            csr::SEPC | csr::VSEPC => self.base + layout::LANDING,
            csr::SCAUSE | csr::VSCAUSE | csr::MCAUSE => random.below(16),
            csr::SATP => self.tables.satp,
            csr::VSATP => self.tables.vsatp,
            csr::HGATP => self.tables.hgatp,
            csr::HEDELEG => some(random, HEDELEG),
            csr::HIDELEG => some(random, VIRTUAL_INTERRUPTS),
            csr::HTIMEDELTA if random.chance(50) => random.value(),
            csr::HVIP => self.pending(random, VIRTUAL_INTERRUPTS),
            csr::MIP => self.pending(random, SUPERVISOR_INTERRUPTS),
            csr::VSSTATUS => supervisor_status(self.features, random),
            csr::STIMECMP | csr::VSTIMECMP if self.interrupts && random.chance(30) => 0,
            csr::STIMECMP | csr::VSTIMECMP => u64::MAX,
            csr::MEPC => self.base + layout::CODE,
            csr::PMPADDR0 => self.protection.address,
            csr::PMPADDR1 => self.protection.next,
            csr::PMPADDR7 => u64::MAX >> 10,
            csr::PMPCFG0 => self.protection.configuration,
            csr::HSTATUS => self.hypervisor_status(random),
            csr::MSTATUS => self.status,
            _ => 0,
        }
    }

    /// Pending interrupts of a mask, if the program has any.
    fn pending(&self, random: &mut Random, mask: u64) -> u64 {
        if self.interrupts {
            random.bits() & mask
        } else {
            0
        }
    }

    /// An address of data, aligned as ssp is.
    fn shadow_stack(&self, random: &mut Random) -> u64 {
        let views = if self.mode.is_virtual() {
            &self.tables.virtual_views
        } else {
            &self.tables.views
        };
        let inside = 8 * random.below(0x200);
        random.pick(views) & !0xfff | inside
    }

    fn hypervisor_status(&self, random: &mut Random) -> u64 {
        let mut bits = random.bits() & (1 << 7 | 1 << 8 | 1 << 9);
        if random.chance(30) {
            bits |= random.bits() & (1 << 20 | 1 << 22);
        }
        if self.trapped_wait && self.mode.is_virtual() {
            bits |= 1 << 21;
        }
        bits | masking(self.features, random) << 16
    }
}

/// Enabled interrupts: always what ends a WFI at last.
fn enabled(interrupts: bool, random: &mut Random) -> u64 {
    if interrupts {
        MTI | random.bits() & (SUPERVISOR_INTERRUPTS | VIRTUAL_INTERRUPTS | 1 << 12)
    } else if random.chance(50) {
        MTI | TIMERS
    } else {
        MTI
    }
}

/// None, all or some of the bits of a mask.
fn some(random: &mut Random, mask: u64) -> u64 {
    match random.below(4) {
        0 => 0,
        1 => mask,
        _ => random.bits() & mask,
    }
}

fn supervisor_status(features: Features, random: &mut Random) -> u64 {
    let float = if random.chance(85) {
        1 + random.below(3)
    } else {
        0
    };
    let vectors = if features.vectors != 0 && random.chance(90) {
        1 + random.below(3)
    } else {
        0
    };
    random.bits() & (SIE | SPIE | SPP | SUM | MXR) | float << 13 | vectors << 9
}

fn status(mode: Mode, trapped_wait: bool, features: Features, random: &mut Random) -> u64 {
    let mut status = supervisor_status(features, random) | random.bits() & MPIE;
    if random.chance(25) {
        status |= random.bits() & (TVM | TSR);
    }
    if mode == Mode::Machine {
        status |= if random.chance(40) { MPRV } else { 0 };
    }
    if trapped_wait && (!mode.is_virtual() || random.chance(50)) {
        status |= TW;
    }
    status |= mode.privilege() << 11;
    if mode.is_virtual() {
        status |= MPV;
    }
    status
}

/// menvcfg: STCE, PBMTE, ADUE, DTE, PMM, LPE, SSE and what concerns cache blocks.
fn environment(features: Features, random: &mut Random) -> u64 {
    let mut value = random.bits() & (7 << 61 | 1 << 7 | 1 << 6);
    value |= random.pick(&[0, 1, 3]) << 4;
    for bit in [LPE, SSE, DTE] {
        value |= control_flow(features, bit, random);
    }
    value | masking(features, random)
}

/// A bit of landing pads, shadow stacks or double traps, in half of the cases.
fn control_flow(features: Features, bit: u64, random: &mut Random) -> u64 {
    if features.control_flow && random.chance(50) {
        bit
    } else {
        0
    }
}

/// A PMM field: mostly no masking, else of 7 or 16 bits.
fn masking(features: Features, random: &mut Random) -> u64 {
    let field = random.pick(&[0, 0, 0, 2, 3]);
    if features.masking { field << 32 } else { 0 }
}

struct Protection {
    address: u64,
    next: u64,
    configuration: u64,
    /// True if page tables may be read but not written.
    tables: bool,
}

/// Everything allowed by entry 7; perhaps entries 0 and 1 over data or over the data's tables.
fn protection(slot: &Slot, protected: bool, random: &mut Random) -> Protection {
    let all = 0x1f << 56;
    if !protected {
        return Protection {
            address: 0,
            next: 0,
            configuration: all,
            tables: false,
        };
    }
    let page = random.pick(&[
        layout::DATA,
        layout::DATA + layout::PAGE,
        layout::FIRST_TABLES + 6 * layout::PAGE,
        layout::FIRST_TABLES + (layout::FIRST_TABLE_PAGES + 6) * layout::PAGE,
        layout::GUEST_TABLES + 5 * layout::PAGE,
    ]);
    let start = slot.base + page;
    let permission = random.pick(&[0, 1, 3, 4, 5, 7]);
    let (address, next, configuration) = match random.below(3) {
        // A range of any size, from entry 0's address to entry 1's.
        0 => {
            let from = start + 4 * random.below(512);
            let to = from + 4 * random.below(512);
            (from >> 2, to >> 2, (permission | 1 << 3) << 8)
        }
        // Four bytes.
        1 => (
            (start + 4 * random.below(1024)) >> 2,
            0,
            permission | 2 << 3,
        ),
        // A power of two.
        _ => {
            let size = 8_u64 << random.below(10);
            let from = (start + random.below(4096)) & !(size - 1);
            (from >> 2 | (size / 8 - 1), 0, permission | 3 << 3)
        }
    };
    Protection {
        address,
        next,
        configuration: all | configuration,
        tables: page >= layout::FIRST_TABLES && permission & 3 == 1,
    }
}

/// Vector registers, vtype, AVL, vcsr and vstart, where there are any.
fn put_vectors(slot: &mut Slot, features: Features, random: &mut Random) {
    if features.vectors == 0 {
        return;
    }
    for word in 0..layout::PAGE / 8 {
        let value = match random.below(6) {
            0 => float(random),
            1 => {
                let single = u64::from(float(random) as u32);
                single << 32 | u64::from(float(random) as u32)
            }
            // Halves: ones, infinities, NaNs, subnormals.
            2 => (0..4).fold(0, |all, _| {
                all << 16
                    | random.pick(&[0x3c00, 0xbc00, 0x7c00, 0x7c01, 0x7e00, 1, 0x8000, 0x7bff])
            }),
            _ => random.value(),
        };
        slot.put_word(layout::VECTORS + 8 * word, value);
    }
    let start = if random.chance(10) {
        random.below(20)
    } else {
        0
    };
    let words = [
        vtype(features, random),
        random.below(80),
        random.below(8),
        start,
    ];
    for (index, value) in words.into_iter().enumerate() {
        slot.put_context(context::VECTOR, index, value);
    }
}

/// A vtype, mostly legal.
pub fn vtype(features: Features, random: &mut Random) -> u64 {
    let value = if random.chance(3) {
        random.value()
    } else {
        let multiplier = random.pick(&[0, 0, 1, 2, 3, 5, 6, 7]);
        multiplier | random.below(4) << 3 | random.below(4) << 6
    };
    let (multiplier, width) = (value & 7, value >> 3 & 7);
    if !features.wide_fractions && multiplier > 4 && width + 5 > multiplier {
        // Elements of a byte fit every fraction.
        return value & !0x38;
    }
    value
}

fn put_registers(slot: &mut Slot, mode: Mode, tables: &Tables, random: &mut Random) {
    for register in 1..32 {
        let value = random.value();
        slot.put_context(context::X, register, value);
    }
    for (index, register) in BASES.into_iter().enumerate() {
        // Half of the bases lead to the other stage's data, for HLV and for changes of mode.
        let other = index % 4 == 3;
        let views = if mode.is_virtual() != other {
            &tables.virtual_views
        } else {
            &tables.views
        };
        let page = random.pick(views) & !0xfff;
        let inside = match random.below(8) {
            // Accesses that cross into the next page.
            0 => 0x1000 - 1 - random.below(16),
            1 => 0x200 + random.below(0xc00),
            _ => 0x200 + 8 * random.below(0x180),
        };
        let mut address = page.wrapping_add(inside);
        if random.chance(10) {
            // A tag that pointer masking may ignore.
            address ^= random.bits() >> random.pick(&[57, 48]) << random.pick(&[57, 57, 48]);
        }
        slot.put_context(context::X, register as usize, address);
    }
    // The link register leads back to the code.
    slot.put_context(context::X, 1, slot.base + layout::CODE);
    for register in 0..32 {
        let value = float(random);
        slot.put_context(context::F, register, value);
    }
}

/// A floating-point register: doubles, boxed singles, and what is neither.
fn float(random: &mut Random) -> u64 {
    let bits = random.bits();
    match random.below(6) {
        0 => random.pick(&[
            0,
            1 << 63,
            0x3ff0_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            0x7ff8_0000_0000_0000,
            1,
            0x000f_ffff_ffff_ffff,
            0x43e0_0000_0000_0000,
        ]),
        1 => {
            0xffff_ffff_0000_0000
                | random.pick(&[
                    0,
                    0x8000_0000,
                    0x3f80_0000,
                    0x7f80_0000,
                    0x7f80_0001,
                    0x7fc0_0000,
                    1,
                    0x4f00_0000,
                ])
        }
        2 | 3 => 0xffff_ffff_0000_0000 | bits & 0xffff_ffff,
        4 => bits & !(0x7f0 << 52) | 0x3f0 << 52,
        _ => bits,
    }
}
