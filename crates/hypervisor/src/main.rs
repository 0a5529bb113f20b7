//! Partita's hypervisor: the way into the library, and the way out when all is lost.
#![cfg_attr(target_os = "none", no_std)]
#![cfg_attr(target_os = "none", no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("the hypervisor runs on a RISC-V board: build it with `make build`");
    std::process::exit(1);
}

#[cfg(target_os = "none")]
mod bare {
    use core::panic::PanicInfo;

    use hypervisor::Hart;
    use hypervisor::heap::{self, HEAP};
    use uefi_raw::table::system::SystemTable;
    use uefi_raw::{Handle, Status};

    static mut HEAP_SPACE: [u8; heap::BYTES] = [0; heap::BYTES];

    /// The first hart's entry, on the boot stack with .bss cleared.
    #[unsafe(no_mangle)]
    extern "C" fn hypervisor_main(hart_id: u64, tree: *const u8) -> ! {
        // SAFETY: this runs once, on one hart, before anything is allocated; the space is used for nothing else.
        unsafe { HEAP.begin((&raw mut HEAP_SPACE).cast()) };
        // SAFETY: the firmware passes the address of the board's device tree in a1 (SBI boot convention).
        unsafe { hypervisor::first_hart(hart_id, tree) }
    }

    /// EFI's entry, on the firmware's stack with .bss cleared.
    #[unsafe(no_mangle)]
    extern "C" fn hypervisor_efi_main(image: Handle, table: *const SystemTable) -> Status {
        // SAFETY: EFI passes both to every application.
        unsafe { hypervisor::start_from_efi(image, table) }
    }

    /// The entry of every other hart, on its own stack.
    #[unsafe(no_mangle)]
    extern "C" fn hypervisor_secondary_main(hart: &'static Hart) -> ! {
        hypervisor::other_hart(hart)
    }

    /// Called by the trap vector when the hypervisor itself trapped.
    #[unsafe(no_mangle)]
    extern "C" fn hypervisor_unexpected_trap() -> ! {
        hypervisor::unexpected_trap()
    }

    #[panic_handler]
    fn panic(information: &PanicInfo<'_>) -> ! {
        hypervisor::defect(format_args!("{information}"))
    }
}
