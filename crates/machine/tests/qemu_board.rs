//! The board's device tree against QEMU's, where QEMU is installed.
//!
//! Every node of ours that describes hardware must have its counterpart in QEMU's tree of the same
//! make-up, at the same address, with the same `compatible`, `reg` and `interrupts`. What QEMU has
//! and we have not (PCI, flash, firmware configuration) is no matter.

use std::process::Command;

use fdt::Fdt;
use machine::board::{BoardConfig, Isa, PmpEntries, VmidBits, device_tree};
use machine::device::Clock;

fn ours(harts: u32, guest_files: u8, memory: u64) -> Vec<u8> {
    let config = BoardConfig {
        harts,
        memory,
        guest_files,
        interrupt_ids: 255,
        virtio_slots: 8,
        pci: None,
        clock: Clock::new(1_000_000_000, 10_000_000),
        isa: Isa {
            base: "rv64i".to_owned(),
            extensions: ["i", "m", "a"].map(str::to_owned).to_vec(),
            mmu: "riscv,sv48".to_owned(),
            cache_block: 64,
            vmid_bits: VmidBits::default(),
            pmp_entries: PmpEntries::default(),
            vector_length: Default::default(),
        },
        bootargs: String::new(),
        seed: 0,
    };
    device_tree(&config, None).expect("a device tree")
}

/// QEMU's tree; `None` where there is no QEMU for this machine.
fn theirs(harts: u32, guest_files: u8, memory: u64) -> Option<Vec<u8>> {
    let file = std::env::temp_dir().join(format!("partita-{}-{harts}.dtb", std::process::id()));
    let machine = format!(
        "virt,aia=aplic-imsic,aia-guests={guest_files},dumpdtb={}",
        file.display()
    );
    Command::new("qemu-system-riscv64")
        .args([
            "-display",
            "none",
            "-M",
            &machine,
            "-smp",
            &harts.to_string(),
        ])
        .args(["-m", &format!("{memory}B")])
        .output()
        .ok()?;
    let bytes = std::fs::read(&file).ok();
    let _ = std::fs::remove_file(&file);
    bytes
}

#[test]
fn our_hardware_is_where_qemu_has_it() {
    for (harts, guest_files, memory) in [(1, 0, 128 << 20), (2, 7, 512 << 20), (8, 3, 4 << 30)] {
        let Some(theirs) = theirs(harts, guest_files, memory) else {
            eprintln!("qemu-system-riscv64 is not here: nothing to compare with");
            return;
        };
        let ours = ours(harts, guest_files, memory);
        let (ours, theirs) = (
            Fdt::new(&ours).expect("our tree"),
            Fdt::new(&theirs).expect("QEMU's tree"),
        );
        let mut compared = 0;
        for node in ours.all_nodes() {
            // QEMU has no SSWI on a board with IMSICs.
            if node.property("reg").is_none() || node.name.starts_with("sswi@") {
                continue;
            }
            let name = node.name;
            let counterpart = theirs
                .all_nodes()
                .find(|other| other.name == name)
                .unwrap_or_else(|| panic!("QEMU has no {name} with {harts} harts"));
            for property in [
                "compatible",
                "reg",
                "interrupts",
                "device_type",
                "clock-frequency",
            ]
            .into_iter()
            .chain([
                "riscv,num-ids",
                "riscv,guest-index-bits",
                "riscv,num-sources",
            ]) {
                assert_eq!(
                    node.property(property).map(|property| property.value),
                    counterpart
                        .property(property)
                        .map(|property| property.value),
                    "{property} of {name} with {harts} harts, {guest_files} guest files"
                );
            }
            compared += 1;
        }
        // The harts, RAM, eight virtio slots, and at least CLINT, IMSICs, APLICs, UART, clock,
        // finisher.
        assert!(compared >= harts as usize + 17, "{compared} nodes");
    }
}
