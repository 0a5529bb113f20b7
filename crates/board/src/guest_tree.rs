//! Device tree of a guest: its computer as it really is.
//!
//! [`build`] turns a [`GuestDescription`] into a flattened tree. Bindings: the Devicetree
//! Specification 0.4 and, for the RISC-V nodes, Linux's `riscv/cpus`, `riscv/extensions`,
//! `interrupt-controller/riscv,aplic` and `interrupt-controller/riscv,imsics`.
//!
//! # Why the virtio devices' interrupts are edges
//!
//! For a level-sensitive source of an APLIC in MSI delivery mode the guest must write
//! `setipnum` at the end of each interrupt, or the line that is still high is never forwarded
//! again (AIA §4.9.2). With the guest's APLIC emulated that is an exit for each interrupt. An
//! edge-sensitive source needs no such write.
//!
//! It loses no used buffer. The line of a virtio-mmio device is the OR of its `InterruptStatus`
//! bits. The driver reads them, acknowledges what it read, and *then* scans its queues. A buffer
//! that the device returns before the acknowledgement is seen by that scan, because the device
//! fills the used ring before it sets the bit; one that it returns after it makes a new edge,
//! because the acknowledgement let the line fall.
//!
//! It can lose an edge in one place: where the *other* bit (configuration change, or used buffer)
//! is set between the driver's read and its acknowledgement. That bit is not acknowledged, the
//! line never falls, and no later edge comes. Devices change their configuration when an operator
//! resizes a disk or cuts a link, so it is rare, and
//! the hypervisor (`Aplic::recover_missed_edges`) brings it back.
//!
//! # How a guest learns where its memory lies for devices
//!
//! Where a guest's addresses are not the host's, `dma-ranges` of the bus tells it which addresses a device takes for its RAM
//! (Devicetree Specification 0.4, §2.3.9), and a virtio device's `VIRTIO_F_ACCESS_PLATFORM` has it use them (virtio 1.2, §6).
//! Then the guest's own driver adds the constant, and no translation on the way is needed.

mod error;
#[cfg(test)]
pub(crate) mod tests;

pub use crate::guest_map::*;
pub use error::GuestTreeError;
use error::VCPUS_LIMIT;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::interrupt_parent::InterruptParent;
use crate::writer::TreeWriter;
use riscv::interrupt::SUPERVISOR_EXTERNAL;

use crate::{GivenDevices, Range, isa};

/// The highest source number that an APLIC (AIA §4.1), or a PLIC, can have.
const SOURCES_LIMIT: u32 = riscv::aplic::MAX_SOURCE;
/// Input clock of the UART, in hertz, the one of QEMU's `virt` board. Emulated, it sets no pace.
const UART_CLOCK: u32 = 3_686_400;
/// Interrupt flags of the binding: a rising edge.
const EDGE_RISING: u32 = 1;
/// First cell of an address in a window of PCI: 32-bit memory that is not prefetched.
const MEMORY_WINDOW: u32 = 0x0200_0000;
/// Interrupt flags of the binding: a high level.
const LEVEL_HIGH: u32 = 4;

/// A virtio-mmio device that a guest owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtioDevice {
    /// Its registers.
    pub registers: Range,
    /// Its source number at the guest's interrupt controller.
    pub source: u32,
}

/// A host bridge of PCI with one emulated device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmulatedBridge {
    /// Addresses that it leads to, the same on its bus.
    pub window: Range,
    /// Its configuration space, of one bus.
    pub configuration: Range,
    /// Source of the device's interrupt at the guest's interrupt controller.
    pub source: u32,
}

/// Parts of a guest's computer.
#[derive(Clone, Copy, Debug)]
pub struct GuestDescription<'a> {
    /// The VM's name; becomes the tree's model.
    pub name: &'a str,
    /// The one range of RAM.
    pub memory: Range,
    /// vCPUs; hart ids are 0 to this, exclusive.
    pub vcpus: u32,
    /// Ticks of `time` in a second.
    pub timebase_frequency: u32,
    /// The base of the instruction set, `rv64i`.
    pub isa_base: &'a str,
    /// The extensions that a vCPU really has, in canonical order, `i` included
    /// (see [`isa::offered`]).
    pub isa_extensions: &'a [&'a str],
    /// Bytes in a block of the cache-management instructions, where Zicbom is offered.
    pub cache_block_size: Option<u32>,
    /// Bytes in a block of `cbo.zero`, where Zicboz is offered.
    pub zero_block_size: Option<u32>,
    /// The widest translation that VS-mode may use, such as `riscv,sv48`.
    pub mmu_type: &'a str,
    /// Address of the initial RAM disk.
    pub initrd: Option<Range>,
    /// The kernel's command line.
    pub bootargs: &'a str,
    /// Base of the RAM for devices, if it is not the guest's.
    pub memory_for_devices: Option<u64>,
    /// The virtio-mmio devices.
    pub virtio: &'a [VirtioDevice],
    /// The bridge of the emulated device of PCI, if the guest has one.
    pub bridge: Option<EmulatedBridge>,
    /// Devices of other kinds that the guest was given.
    pub given: Option<&'a GivenDevices<'a>>,
    /// Set if the guest has interrupt files with an APLIC, and not a PLIC.
    pub has_files: bool,
    /// Sources that the guest's interrupt controller implements, 1 to this.
    pub sources: u32,
    /// Set if the guest has a real-time clock.
    pub clock: bool,
    /// Seed for the guest's random-number generator.
    pub rng_seed: Option<&'a [u8]>,
}

/// A guest's flattened device tree.
#[derive(Debug)]
pub struct GuestTree {
    /// The tree.
    pub bytes: Vec<u8>,
    /// Offset of the seed in the tree, if it has one.
    pub seed_at: Option<usize>,
}

/// Makes a guest's flattened device tree.
///
/// # Errors
/// [`GuestTreeError`], if the description contradicts itself.
#[inline(never)]
pub fn build(guest: &GuestDescription<'_>) -> Result<GuestTree, GuestTreeError> {
    let files = check(guest)?;
    let handles = Handles { vcpus: guest.vcpus };
    let mut fdt = TreeWriter::default();
    fdt.begin_node("");
    fdt.property_u32("#address-cells", 2);
    fdt.property_u32("#size-cells", 2);
    fdt.property_string("compatible", "riscv-virtio");
    fdt.property_string("model", &format!("partita,{}", guest.name));
    let seed_at = write_chosen(&mut fdt, guest);
    fdt.begin_node("aliases");
    fdt.property_string("serial0", &uart_path());
    fdt.end_node();
    fdt.begin_node(&format!("memory@{:x}", guest.memory.start));
    fdt.property_string("device_type", "memory");
    write_reg(&mut fdt, guest.memory);
    fdt.end_node();
    write_cpus(&mut fdt, guest, handles);
    fdt.begin_node("soc");
    fdt.property_u32("#address-cells", 2);
    fdt.property_u32("#size-cells", 2);
    fdt.property_string("compatible", "simple-bus");
    fdt.property_null("ranges");
    if let Some(place) = guest.memory_for_devices {
        let Range { start, size } = guest.memory;
        fdt.property_array_u64("dma-ranges", &[place, start, size]);
    }
    match guest.has_files {
        true => write_aplic(&mut fdt, guest, handles),
        false => write_plic(&mut fdt, guest, handles),
    }
    let wires = InterruptParent::new(handles.controller(), guest.has_files);
    write_uart(&mut fdt, wires);
    if guest.clock {
        write_clock(&mut fdt, wires);
    }
    for device in guest.virtio {
        write_virtio(&mut fdt, device, wires);
    }
    if let Some(bridge) = &guest.bridge {
        write_bridge(&mut fdt, bridge, wires);
    }
    if guest.has_files {
        write_imsic(&mut fdt, files, handles);
    }
    if let Some(given) = guest.given {
        given.write(&mut fdt, wires, handles.free(), None);
    }
    fdt.end_node();
    if let Some(given) = guest.given {
        // No bus above tells these devices of other addresses: the IOMMU takes the guest's.
        given.write(&mut fdt, wires, handles.free(), Some(handles.imsic()));
        given.write_supplies(&mut fdt, handles.free());
    }
    fdt.end_node();
    Ok(GuestTree {
        bytes: fdt.finish()?,
        seed_at,
    })
}

/// Checks that the parts fit together; returns the range of the interrupt files.
fn check(guest: &GuestDescription<'_>) -> Result<Range, GuestTreeError> {
    if guest.vcpus == 0 {
        return Err(GuestTreeError::NoVcpus);
    }
    if guest.memory.is_empty() {
        return Err(GuestTreeError::NoMemory);
    }
    if guest.vcpus > VCPUS_LIMIT {
        return Err(GuestTreeError::TooManyVcpus(guest.vcpus));
    }
    let files = interrupt_files(guest.vcpus);
    if let Some(initrd) = guest.initrd
        && !guest.memory.covers(initrd)
    {
        return Err(GuestTreeError::InitrdOutsideMemory {
            initrd,
            memory: guest.memory,
        });
    }
    let controller = match guest.has_files {
        true => (APLIC_BASE, APLIC_SIZE),
        false => (PLIC_BASE, plic_size(guest.vcpus)),
    };
    let fixed = [controller, (UART_BASE, UART_SIZE)];
    let clock = guest.clock.then_some((CLOCK_BASE, CLOCK_SIZE));
    let mut regions: Vec<Range> = fixed
        .iter()
        .chain(&clock)
        .map(|&(start, size)| Range { start, size })
        .collect();
    regions.push(guest.memory);
    regions.extend(guest.has_files.then_some(files));
    regions.extend(guest.virtio.iter().map(|device| device.registers));
    regions.extend(guest.bridge.iter().map(|bridge| bridge.window));
    regions.extend(guest.bridge.iter().map(|bridge| bridge.configuration));
    for (index, &first) in regions.iter().enumerate() {
        for &second in regions.iter().skip(index.saturating_add(1)) {
            if first.overlaps(second) {
                return Err(GuestTreeError::Overlap(first, second));
            }
        }
    }
    let limit = guest.sources.min(SOURCES_LIMIT);
    let mut sources = Vec::from([UART_SOURCE]);
    sources.extend(guest.clock.then_some(CLOCK_SOURCE));
    sources.extend(guest.virtio.iter().map(|device| device.source));
    sources.extend(guest.bridge.iter().map(|bridge| bridge.source));
    for &source_number in &sources {
        if source_number == 0 || source_number > limit {
            return Err(GuestTreeError::BadSource {
                source_number,
                limit,
            });
        }
    }
    for (index, &first) in sources.iter().enumerate() {
        if sources
            .iter()
            .skip(index + 1)
            .any(|second| *second == first)
        {
            return Err(GuestTreeError::SharedSource(first));
        }
    }
    Ok(files)
}

/// The nodes' handles: one a vCPU's interrupt controller, then the devices' controller's and the IMSIC's.
#[derive(Clone, Copy)]
struct Handles {
    vcpus: u32,
}

impl Handles {
    fn controller_of(self, vcpu: u32) -> u32 {
        vcpu.saturating_add(1)
    }

    fn controller(self) -> u32 {
        self.vcpus.saturating_add(1)
    }

    fn imsic(self) -> u32 {
        self.vcpus.saturating_add(2)
    }

    /// First handle that none of these nodes has.
    fn free(self) -> u32 {
        self.vcpus.saturating_add(3)
    }
}

fn uart_path() -> String {
    format!("/soc/serial@{:x}", UART_BASE)
}

fn write_reg(fdt: &mut TreeWriter, region: Range) {
    fdt.property_array_u64("reg", &[region.start, region.size]);
}

/// Writes the node that speaks to the kernel; returns the seed's offset in the tree.
fn write_chosen(fdt: &mut TreeWriter, guest: &GuestDescription<'_>) -> Option<usize> {
    fdt.begin_node("chosen");
    fdt.property_string("stdout-path", &uart_path());
    fdt.property_string("bootargs", guest.bootargs);
    if let Some(initrd) = guest.initrd {
        fdt.property_u64("linux,initrd-start", initrd.start);
        fdt.property_u64("linux,initrd-end", initrd.end());
    }
    let seed_at = guest.rng_seed.map(|seed| fdt.property("rng-seed", seed));
    fdt.end_node();
    seed_at
}

fn write_cpus(fdt: &mut TreeWriter, guest: &GuestDescription<'_>, handles: Handles) {
    let isa = isa::string(guest.isa_base, guest.isa_extensions);
    fdt.begin_node("cpus");
    fdt.property_u32("#address-cells", 1);
    fdt.property_u32("#size-cells", 0);
    fdt.property_u32("timebase-frequency", guest.timebase_frequency);
    for vcpu in 0..guest.vcpus {
        fdt.begin_node(&format!("cpu@{vcpu:x}"));
        fdt.property_string("device_type", "cpu");
        fdt.property_u32("reg", vcpu);
        fdt.property_string("status", "okay");
        fdt.property_string("compatible", "riscv");
        fdt.property_string("riscv,isa", &isa);
        fdt.property_string("riscv,isa-base", guest.isa_base);
        fdt.property_string_list("riscv,isa-extensions", guest.isa_extensions);
        if let Some(bytes) = guest.cache_block_size {
            fdt.property_u32("riscv,cbom-block-size", bytes);
        }
        if let Some(bytes) = guest.zero_block_size {
            fdt.property_u32("riscv,cboz-block-size", bytes);
        }
        fdt.property_string("mmu-type", guest.mmu_type);
        fdt.begin_node("interrupt-controller");
        fdt.property_string("compatible", "riscv,cpu-intc");
        write_controller(fdt, 1, handles.controller_of(vcpu));
        fdt.end_node();
        fdt.end_node();
    }
    fdt.end_node();
}

fn write_controller(fdt: &mut TreeWriter, cells: u32, handle: u32) {
    fdt.property_null("interrupt-controller");
    fdt.property_u32("#interrupt-cells", cells);
    fdt.property_u32("#address-cells", 0);
    fdt.property_phandle(handle);
}

fn write_aplic(fdt: &mut TreeWriter, guest: &GuestDescription<'_>, handles: Handles) {
    fdt.begin_node(&format!("interrupt-controller@{:x}", APLIC_BASE));
    fdt.property_string("compatible", "riscv,aplic");
    fdt.property_array_u64("reg", &[APLIC_BASE, APLIC_SIZE]);
    write_controller(fdt, 2, handles.controller());
    fdt.property_u32("riscv,num-sources", guest.sources.min(SOURCES_LIMIT));
    fdt.property_u32("msi-parent", handles.imsic());
    fdt.end_node();
}

fn write_plic(fdt: &mut TreeWriter, guest: &GuestDescription<'_>, handles: Handles) {
    fdt.begin_node(&format!("interrupt-controller@{:x}", PLIC_BASE));
    fdt.property_string("compatible", "sifive,plic-1.0.0");
    fdt.property_array_u64("reg", &[PLIC_BASE, plic_size(guest.vcpus)]);
    write_controller(fdt, 1, handles.controller());
    fdt.property_u32("riscv,ndev", guest.sources.min(SOURCES_LIMIT));
    write_parents(fdt, handles);
    fdt.end_node();
}

/// Writes the vCPUs' external interrupts, in the order of the vCPUs.
fn write_parents(fdt: &mut TreeWriter, handles: Handles) {
    let parents: Vec<u32> = (0..handles.vcpus)
        .flat_map(|vcpu| [handles.controller_of(vcpu), SUPERVISOR_EXTERNAL])
        .collect();
    fdt.property_array_u32("interrupts-extended", &parents);
}

fn write_uart(fdt: &mut TreeWriter, wires: InterruptParent) {
    fdt.begin_node(&format!("serial@{:x}", UART_BASE));
    fdt.property_string("compatible", "ns16550a");
    fdt.property_array_u64("reg", &[UART_BASE, UART_SIZE]);
    fdt.property_u32("clock-frequency", UART_CLOCK);
    wires.write(fdt, UART_SOURCE, LEVEL_HIGH);
    fdt.end_node();
}

fn write_clock(fdt: &mut TreeWriter, wires: InterruptParent) {
    fdt.begin_node(&format!("rtc@{:x}", CLOCK_BASE));
    fdt.property_string("compatible", "google,goldfish-rtc");
    fdt.property_array_u64("reg", &[CLOCK_BASE, CLOCK_SIZE]);
    wires.write(fdt, CLOCK_SOURCE, LEVEL_HIGH);
    fdt.end_node();
}

fn write_virtio(fdt: &mut TreeWriter, device: &VirtioDevice, wires: InterruptParent) {
    fdt.begin_node(&format!("virtio_mmio@{:x}", device.registers.start));
    fdt.property_string("compatible", "virtio,mmio");
    write_reg(fdt, device.registers);
    wires.write(fdt, device.source, EDGE_RISING);
    fdt.end_node();
}

/// Writes the bridge (IEEE 1275's binding of PCI, Linux's `pci/host-generic-pci`). The device's regions are set up, and stay where they are.
fn write_bridge(fdt: &mut TreeWriter, bridge: &EmulatedBridge, wires: InterruptParent) {
    let halves = |value: u64| [(value >> 32) as u32, value as u32];
    let Range { start, size } = bridge.window;
    let [[start_high, start_low], [size_high, size_low]] = [halves(start), halves(size)];
    fdt.begin_node(&format!("pci@{:x}", bridge.configuration.start));
    fdt.property_string("compatible", "pci-host-ecam-generic");
    fdt.property_string("device_type", "pci");
    fdt.property_u32("#address-cells", 3);
    fdt.property_u32("#size-cells", 2);
    fdt.property_u32("#interrupt-cells", 1);
    write_reg(fdt, bridge.configuration);
    fdt.property_array_u32("bus-range", &[0, 0]);
    fdt.property_null("dma-coherent");
    fdt.property_u32("linux,pci-probe-only", 1);
    fdt.property_array_u32(
        "ranges",
        &[
            MEMORY_WINDOW,
            start_high,
            start_low,
            start_high,
            start_low,
            size_high,
            size_low,
        ],
    );
    // The one device has the one interrupt.
    fdt.property_array_u32("interrupt-map-mask", &[0; 4]);
    let mut map = Vec::from([0; 4]);
    map.extend(wires.specifier(bridge.source, EDGE_RISING));
    fdt.property_array_u32("interrupt-map", &map);
    fdt.end_node();
}

fn write_imsic(fdt: &mut TreeWriter, files: Range, handles: Handles) {
    fdt.begin_node(&format!("interrupt-controller@{:x}", files.start));
    fdt.property_string("compatible", "riscv,imsics");
    write_reg(fdt, files);
    write_controller(fdt, 0, handles.imsic());
    fdt.property_null("msi-controller");
    fdt.property_u32("#msi-cells", 0);
    fdt.property_u32("riscv,num-ids", IMSIC_IDENTITIES);
    fdt.property_u32("riscv,guest-index-bits", 0);
    write_parents(fdt, handles);
    fdt.end_node();
}
