//! Start of the hypervisor: set-up of every hart, assembly of the system, and the end after a fatal error.

pub mod assemble;
pub mod efi;
mod error;
pub mod handover;
mod parameters;
mod roll_call;
mod shared;
mod speed;
mod vectors;

use alloc::boxed::Box;
use alloc::vec::Vec;

use abi::system::VmTranslation;
use riscv::csr::state_enable;

use crate::boot::error::AssembleError;
use crate::boot::roll_call::{Missing, WithoutH};
use crate::console;
use crate::hart;
use crate::hart::capabilities::{self, Capabilities, Capability};
use crate::hart::common;
use crate::hart::csr::{self, exception, interrupt, number};
use crate::hart::firmware::{self, Reset};
use crate::hart::{counters::hart_counters, fence, interrupt_file, world};
use crate::heap;
use crate::interrupts;
use crate::memory::gstage::offer::{HartRegister, Offer};
use crate::memory::shadow::offer::{SpaceOffer, VirtualSpace};
use crate::memory::translations;
use crate::run;
use crate::system;
use crate::system::Hypervisor;
use crate::system::harts::{self, Hart};
use crate::system::interrupt_port::InterruptPort;
use crate::system::lifecycle;
use crate::system::loader;
use crate::system::sources;
use crate::vm::Vm;
use crate::vm::seed::{self, Seeds};
use board::{Board, Lack, Range, Survey, Tree, TreeError, isa};

/// Exceptions that go to the guest without the hypervisor: all but its calls, its G-stage faults and virtual
/// instructions. By their codes: misaligned, access fault and page fault of fetch, load and store, illegal instruction,
/// breakpoint, call from VU-mode, software check.
const DELEGATED_EXCEPTIONS: u64 = 0b1011_0001_1111_1111 | 1 << exception::SOFTWARE_CHECK;

/// Bits of hstateen0 that guests need: senvcfg, indirect access and the AIA's registers; not sstateen0, which would be
/// guest state that is not saved.
const STATE_FOR_GUESTS: u64 =
    state_enable::ENVCFG | state_enable::CSRIND | state_enable::AIA | state_enable::IMSIC;

/// Entry of the first hart, with the board's device tree at `tree`; the heap is ready.
///
/// # Safety
/// `tree` must be what the firmware passed.
pub unsafe fn first_hart(hart_id: u64, tree: *const u8) -> ! {
    let started = hart::time();
    world::install_vector();
    // SAFETY: the caller answers for the address.
    let device_tree = match unsafe { device_tree(tree) } {
        Ok(device_tree) => device_tree,
        Err(error) => fail(format_args!("{error}")),
    };
    let location = Range {
        start: tree as u64,
        size: device_tree.size() as u64,
    };
    let survey = Survey::read(&device_tree);
    if let Some(uart) = &survey.uart {
        console::use_uart(uart);
    }
    let board = match Board::new(survey, location) {
        Ok(board) => handover::complete(board),
        Err(lacks) => fail_for(&lacks),
    };
    let (board, missing) = with_responding_harts(board, hart_id);
    choose_extensions(&board);
    // The board's offers are read from this hart's registers.
    if let Some(missing) = capabilities::missing() {
        fail(format_args!("hart {hart_id} has no {missing}"));
    }
    // The tree tells of devices as long as the hypervisor runs.
    let device_tree = Box::leak(Box::new(device_tree));
    let system = match assemble::system(board, device_tree, started) {
        Ok(system) => system,
        Err(error) => match error {
            AssembleError::NoHart { hart, .. } if missing.contains(&u64::from(hart)) => {
                fail(format_args!("{error}: {}", Missing(&missing)))
            }
            _ => fail(format_args!("{error}")),
        },
    };
    let Some(own) = system.harts.iter().find(|hart| hart.board.id == hart_id) else {
        fail(format_args!(
            "the device tree does not describe the boot hart, {hart_id}"
        ));
    };
    prepare_hart(system, own);
    distribute_entropy(system, own);
    system.vms.iter().for_each(|vm| loader::prepare(system, vm));
    start_others(system, own);
    sources::reassign(system);
    lifecycle::start_automatic(system);
    // What lies behind the stack would be written without a trap.
    assert!(
        hart::entry::is_stack_long_enough(),
        "the boot hart's stack is too short"
    );
    heap::seal();
    run::run(system, own)
}

/// Chooses the extensions that all harts use: what the board has, and this hart was found to have.
#[inline(never)]
fn choose_extensions(board: &Board) {
    let files = board.controller.imsic().is_some();
    let timer = board.all_have(isa::SSTC) && capabilities::has_supervisor_timer();
    common::choose(files, timer);
    if !files {
        tell("no IMSIC: guests have a PLIC, and their interrupts are delivered by the hypervisor");
    }
    if !timer {
        tell("no Sstc: the firmware sets the harts' timers, and guests set theirs by SBI");
    }
}

#[inline(never)]
fn tell(line: &str) {
    console::emergency_line(format_args!("{line}"));
}

/// The tree that the firmware passed.
///
/// # Safety
/// `tree` must be what the firmware passed: the address of a device tree with as many bytes as its header states, or null.
unsafe fn device_tree(tree: *const u8) -> Result<Tree<'static>, TreeError> {
    /// Bytes up to and with the size.
    const SIZED: usize = 8;
    if tree.is_null() {
        return Tree::new(&[]);
    }
    // SAFETY: the caller answers for the tree, whose header begins with its magic and size.
    let header = unsafe { core::slice::from_raw_parts(tree, SIZED) };
    let size = Tree::size_of(header)?;
    // SAFETY: the caller answers for so many bytes, which nothing overwrites: they are reserved.
    Tree::new(unsafe { core::slice::from_raw_parts(tree, size) })
}

/// Names all that the board lacks, and powers it off.
fn fail_for(lacks: &[Lack]) -> ! {
    for lack in lacks {
        console::emergency_line(format_args!("this board cannot be used: {lack}"));
    }
    firmware::reset(Reset::PowerOffAfterFailure)
}

/// Keeps the harts that respond, and prints the others; returns the ids of harts that did not respond.
fn with_responding_harts(mut board: Board, own: u64) -> (Board, Vec<u64>) {
    let lacking = board.take_out_harts_without_h(own);
    if !lacking.is_empty() {
        console::emergency_line(format_args!("{}", WithoutH(&lacking)));
    }
    let missing = roll_call::retain_responding(&mut board.harts, own, board.timebase_hertz);
    if !missing.is_empty() {
        console::emergency_line(format_args!("{}", Missing(&missing)));
    }
    (board, missing)
}

/// Distributes entropy of the board or of this hart to the VMs, for their guests' seeds.
fn distribute_entropy(system: &Hypervisor, own: &Hart) {
    let mut entropy = system.board.rng_seed.clone();
    if own.has(Capability::EntropySource) {
        let mut bytes = [0; seed::LENGTH];
        // SAFETY: the hart has the capability.
        if unsafe { capabilities::entropy(&mut bytes) } {
            entropy.extend(bytes);
        }
    }
    for vm in &system.vms {
        vm.loading.lock().seeds = Seeds::new(&entropy, vm.id.get());
    }
}

fn start_others(system: &'static Hypervisor, own: &Hart) {
    let entry = hart::entry::secondary();
    for hart in system.harts.iter().filter(|hart| hart.index != own.index) {
        if let Err(error) =
            firmware::start_hart(hart.board.id, entry, core::ptr::from_ref(hart) as u64)
        {
            // The scheduler counts on every hart.
            fail(format_args!(
                "hart {} does not start: SBI error {}",
                hart.board.id, error.0
            ));
        }
    }
}

/// Entry of another hart.
pub fn other_hart(hart: &'static Hart) -> ! {
    world::install_vector();
    // The system is installed before any other hart is started.
    let Some(system) = system::system() else {
        fail(format_args!("a hart started too early"))
    };
    // Once a hart, and the first one may have sealed the heap.
    heap::permit(|| prepare_hart(system, hart));
    run::run(system, hart)
}

/// Sets the state that all guests of this hart share, and opens its interrupt files.
fn prepare_hart(system: &'static Hypervisor, hart: &'static Hart) {
    harts::set_current(hart);
    if let Some(missing) = capabilities::missing() {
        fail(format_args!("hart {} has no {missing}", hart.board.id));
    }
    let promised = |name: &str| hart.board.extensions.has(name);
    let found = Capabilities::find(promised, capabilities::works);
    hart.set_capabilities(found);
    if system.counters.counters() != 0 && !found.has(Capability::CounterOverflow) {
        // Guests would be offered counters that this hart does not have.
        let name = Capability::CounterOverflow.names()[0];
        fail(format_args!(
            "hart {} does not have the {name} that its device tree names",
            hart.board.id
        ));
    }
    if let Some((own, promised)) = vectors::differing(system, hart) {
        fail(format_args!(
            "hart {} has vector registers of {own} bits and not of {promised}: say hide = [\"{}\"] for each VM",
            hart.board.id,
            isa::VECTORS
        ));
    }
    let method = system.translations();
    if let Some(needed) = translations::needed(method)
        && !found.has(needed)
    {
        fail(format_args!(
            "tlb-purge = \"{method}\" needs {}, which hart {} does not have",
            needed.names()[0],
            hart.board.id
        ));
    }
    // SAFETY: what is delegated and enabled here concerns guests; sstatus.SIE stays 0, so nothing is taken in HS-mode.
    unsafe {
        csr::write::<{ number::HEDELEG }>(DELEGATED_EXCEPTIONS);
        csr::write::<{ number::HIDELEG }>(interrupt::VSSI | interrupt::VSTI | interrupt::VSEI);
        // If the bit stays 0, guests are not notified by an interrupt (AIA, "Virtual interrupts for VS level").
        if common::has_interrupt_files() {
            csr::write::<{ number::HVIEN }>(csr::NOTIFICATION);
            csr::write::<{ number::HVICTL }>(0);
        }
        if hart.has(Capability::StateEnable) {
            csr::write::<{ number::HSTATEEN0 }>(STATE_FOR_GUESTS);
        }
        csr::write::<{ number::VSATP }>(0);
        let kicks = match common::has_interrupt_files() {
            true => 0,
            false => interrupt::SSI,
        };
        csr::write::<{ number::SIE }>(interrupt::STI | interrupt::SEI | kicks);
        csr::write::<{ number::HIE }>(interrupt::SGEI);
    }
    hart.find_environment();
    hart.firmware_triggers.find();
    hart.poll_schedule.set_timer(u64::MAX);
    hart_counters::close();
    let offer = Offer::find(&mut HartRegister);
    if let Err(error) = offer.covers(system.guest_translation) {
        fail(format_args!("hart {}: {error}", hart.board.id));
    }
    let spaces = SpaceOffer::find(&mut VirtualSpace);
    let shadowed = |vm: &Vm| vm.settings.translation == VmTranslation::Shadow;
    if system.vms.iter().any(shadowed)
        && let Err(error) = spaces.is(system.spaces)
    {
        fail(format_args!("hart {}: {error}", hart.board.id));
    }
    fence::guest_physical_all();
    fence::guest_virtual_all();
    if common::has_interrupt_files() {
        interrupts::open_hart(
            &InterruptPort::new(system, hart),
            interrupt_file::guest_files(),
        );
        let sources = system.board.controller.sources();
        interrupt_file::open_own_file(harts::identity::DEVICE + sources);
    }
    system.controller.open(hart.delivery);
}

/// Prints why nothing can go on, and powers the board off.
pub fn fail(reason: core::fmt::Arguments<'_>) -> ! {
    console::emergency_line(format_args!("cannot start: {reason}"));
    firmware::reset(Reset::PowerOffAfterFailure)
}

/// Reports a trap of the hypervisor itself, a defect, and stops the board.
pub fn unexpected_trap() -> ! {
    let cause = csr::read::<{ number::SCAUSE }>();
    let at = csr::read::<{ number::SEPC }>();
    let value = csr::read::<{ number::STVAL }>();
    defect(format_args!(
        "the hypervisor trapped at {at:#x}, scause {cause:#x}, stval {value:#x}"
    ))
}

/// Reports a defect and stops the board.
pub fn defect(what: core::fmt::Arguments<'_>) -> ! {
    console::emergency_line(format_args!("defect: {what}"));
    firmware::reset(Reset::PowerOffAfterFailure)
}
