//! From the firmware to Rust: the first instructions, the heap, and the way out when all is lost.

use core::panic::PanicInfo;

use fdt::Fdt;
use linked_list_allocator::LockedHeap;

use alloc::vec::Vec;
use hypervisor::address::{GuestPhysical, GuestRegion, HostPhysical};
use hypervisor::guest_tree::isa;
use scheduler::{HartId, Scheduler};
use spin::Mutex;

use crate::board::{Board, Range};
use crate::board_aplic::BoardAplic;
use crate::hart::csr::{self, interrupt, number};
use crate::hart::firmware::{self, Reset};
use crate::hart::{self, fence, interrupt_file, world};
use crate::harts::{self, Hart};
use crate::system::{self, Hypervisor};
use crate::table::Table;
use crate::vcpu::Vcpu;
use crate::vm::{Settings, Vm};
use crate::{lifecycle, log, run, say};

/// The bound of the hypervisor's one heap.
const HEAP_BYTES: usize = 2 << 20;

#[global_allocator]
static HEAP: LockedHeap = LockedHeap::empty();

static mut HEAP_SPACE: [u8; HEAP_BYTES] = [0; HEAP_BYTES];

core::arch::global_asm!(
    r#"
.section .text.entry, "ax"
.global _start
_start:
    csrw sie, zero
    csrci sstatus, 2
    csrw satp, zero
    la sp, __boot_stack_top
    la t0, __bss_start
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sd zero, 0(t0)
    addi t0, t0, 8
    j 1b
2:  tail hypervisor_main

.global hypervisor_secondary_start
hypervisor_secondary_start:
    csrw sie, zero
    csrci sstatus, 2
    csrw satp, zero
    mv tp, a1
    ld sp, 0(tp)
    mv a0, tp
    tail hypervisor_secondary_main
"#
);

#[unsafe(no_mangle)]
extern "C" fn hypervisor_main(hart_id: u64, tree_pointer: *const u8) -> ! {
    world::install_vector();
    // SAFETY: this runs once, on one hart, before anything is allocated; the space is used for nothing else.
    unsafe { HEAP.lock().init((&raw mut HEAP_SPACE).cast(), HEAP_BYTES) };
    // SAFETY: the firmware passes the address of the board's device tree in a1 (SBI boot convention); `from_ptr`
    // checks its magic and length.
    let Ok(tree) = (unsafe { Fdt::from_ptr(tree_pointer) }) else {
        fail(format_args!("the firmware passed no device tree"));
    };
    let location = Range { start: tree_pointer as u64, size: tree.total_size() as u64 };
    let board = match Board::read(&tree, location) {
        Ok(board) => board,
        Err(error) => fail(format_args!("{error}")),
    };
    log::use_uart(board.uart.base);
    say!("hart {hart_id} of {}: {} MiB of memory, guest files up to {}", board.harts.len(),
        board.memory.iter().map(|range| range.size).sum::<u64>() >> 20, (1u32 << board.imsic.guest_index_bits) - 1);
    let system = match build(board, hart_id) {
        Ok(system) => system,
        Err(error) => fail(format_args!("{error}")),
    };
    let Some(own) = system.harts.iter().find(|hart| hart.board.id == hart_id) else {
        fail(format_args!("the device tree does not name the hart that runs this, {hart_id}"));
    };
    for hart in &system.harts {
        if hart.board.id != hart_id {
            let entry = hypervisor_secondary_start as *const () as u64;
            if let Err(error) = firmware::start_hart(hart.board.id, entry, core::ptr::from_ref(hart) as u64) {
                fail(format_args!("hart {} does not start: {error:?}", hart.board.id));
            }
        }
    }
    prepare_hart(system, own);
    system.aplic.take(system.board.uart.source, own.board.imsic_index, harts::identity::UART);
    for vm in system.vms.iter().filter(|vm| vm.settings.autostart) {
        // A VM that has just been made can be started.
        let _ = lifecycle::start(system, vm);
    }
    run::run(system, own)
}

fn prepare_hart(system: &'static Hypervisor, hart: &'static Hart) {
    world::install_vector();
    harts::set_current(hart);
    // SAFETY: what is delegated and enabled here concerns guests; sstatus.SIE stays 0, so nothing is taken in HS-mode.
    unsafe {
        csr::write::<{ number::HEDELEG }>(DELEGATED_EXCEPTIONS);
        csr::write::<{ number::HIDELEG }>(interrupt::VSSI | interrupt::VSTI | interrupt::VSEI);
        csr::write::<{ number::HVIEN }>(0);
        csr::write::<{ number::HVICTL }>(0);
        csr::write::<{ number::HCOUNTEREN }>(7);
        csr::write::<{ number::HENVCFG }>(isa::environment_wanted(hart.board.extensions.names()));
        csr::write::<{ number::VSATP }>(0);
        csr::write::<{ number::STIMECMP }>(u64::MAX);
        csr::write::<{ number::SIE }>(interrupt::STI | interrupt::SEI);
        csr::write::<{ number::HIE }>(interrupt::SGEI);
    }
    fence::guest_physical_all();
    hart.files.lock().set_count(interrupt_file::guest_files());
    interrupt_file::open_own_file(harts::identity::DEVICE + system.board.aplic.sources);
}

/// Exceptions that go to the guest without the hypervisor: all but its calls, its G-stage faults and virtual
/// instructions.
const DELEGATED_EXCEPTIONS: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8
    | 1 << 12 | 1 << 13 | 1 << 15;

fn build(board: Board, hart_id: u64) -> Result<&'static Hypervisor, &'static str> {
    let initrd = board.initrd.ok_or("no initrd")?;
    // SAFETY: temporary
    let image: &'static [u8] = unsafe { core::slice::from_raw_parts(initrd.start as *const u8, initrd.size as usize) };
    let archive = abi::cpio::Archive::new(image);
    let dtb = archive.find("partita.dtb").map_err(|_| "cpio")?.ok_or("no partita.dtb")?;
    let description: &'static _ = alloc::boxed::Box::leak(alloc::boxed::Box::new(abi::system::SystemDescription::parse(dtb).map_err(|e| { say!("{e}"); "dtb" })?));
    let _ = hart_id;
    let mut harts = Vec::new();
    let mut next = 0x9000_0000u64;
    for (i, h) in board.harts.iter().enumerate() {
        let index = HartId::new(i as u16).ok_or("harts")?;
        next += 128 << 10;
        harts.push(Hart::new(index, h, &board, next));
    }
    let all: scheduler::HartSet = harts.iter().map(|h| h.index).collect();
    let mut sched = Scheduler::new(scheduler::Config::new(board.timebase_hertz), all).map_err(|_| "config")?;
    let mut vms = Vec::new();
    let mut vcpus = Vec::new();
    let mut pool = 0xa000_0000u64;
    let mut ram = 0x1_0000_0000u64;
    for vm in &description.vms {
        let (id, _) = sched.add_vm(scheduler::VmConfig { vcpus: vm.vcpus as u16, allocation: match vm.allocation {
            abi::system::Allocation::Shared { share } => scheduler::Allocation::Shared { share },
            abi::system::Allocation::Dedicated { harts } => scheduler::Allocation::Dedicated { harts: scheduler::HartSet::from_bits(harts.mask()) },
        } }).map_err(|_| "vm")?;
        let first = vcpus.len();
        for n in 0..vm.vcpus as u16 {
            let v = sched.vcpu(id, n).ok_or("vcpu")?;
            vcpus.push(Vcpu::new(v, id, n, vcpus.len() as u64 + 1));
        }
        let settings = Settings { name: vm.name, kernel: archive.find(vm.kernel).map_err(|_| "k")?.ok_or("kernel")?,
            initrd: match vm.initrd { Some(path) => archive.find(path).map_err(|_| "i")?, None => None },
            bootargs: vm.bootargs, devices: vm.devices.iter().filter_map(|slot| board.virtio.get(usize::from(slot.0)).copied()).collect(),
            autostart: vm.autostart, on_failure: vm.on_failure, dedicated: None };
        let mut table = Table::new(pool);
        pool += 1 << 20;
        table.map(ram, ram, vm.memory);
        for d in &settings.devices { table.map(d.base, d.base, d.size); }
        let memory = GuestRegion::new(GuestPhysical::new(ram), vm.memory).ok_or("memory")?;
        vms.push(Vm::new(id, settings, first..vcpus.len(), memory, HostPhysical::new(ram), table, board.aplic.sources));
        ram += (vm.memory + (1 << 30) - 1) & !((1 << 30) - 1);
    }
    let aplic = BoardAplic::new(&board);
    Ok(system::install(Hypervisor { aplic, harts, vms, vcpus, scheduler: Mutex::new(sched), started: hart::time(), board }))
}

unsafe extern "C" { fn hypervisor_secondary_start(); }

/// Says why nothing can go on, and powers the board off.
pub fn fail(reason: core::fmt::Arguments<'_>) -> ! {
    log::line(format_args!("cannot start: {reason}"));
    firmware::reset(Reset::PowerOffAfterFailure)
}

#[unsafe(no_mangle)]
extern "C" fn hypervisor_secondary_main(hart: &'static Hart) -> ! {
    // The system stands before any other hart is started.
    let Some(system) = system::system() else { fail(format_args!("a hart started before the system stood")) };
    prepare_hart(system, hart);
    run::run(system, hart)
}

/// Called by the trap vector when the hypervisor itself trapped: a defect, told before the board stops.
#[unsafe(no_mangle)]
extern "C" fn hypervisor_own_fault() -> ! {
    let cause = csr::read::<{ csr::number::SCAUSE }>();
    let pc = csr::read::<{ csr::number::SEPC }>();
    let value = csr::read::<{ csr::number::STVAL }>();
    say!("defect: the hypervisor trapped at {pc:#x}, scause {cause:#x}, stval {value:#x}");
    firmware::reset(Reset::PowerOffAfterFailure)
}

#[panic_handler]
fn panic(information: &PanicInfo<'_>) -> ! {
    say!("defect: {information}");
    firmware::reset(Reset::PowerOffAfterFailure)
}
