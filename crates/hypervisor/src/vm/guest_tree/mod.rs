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
//! [`Aplic::recover_missed_edges`](crate::devices::aplic::Aplic::recover_missed_edges) brings it back.
//!
//! # How a guest learns where its memory lies for devices
//!
//! Where a guest's addresses are not the host's, `dma-ranges` of the bus tells it which addresses a device takes for its RAM
//! (Devicetree Specification 0.4, §2.3.9), and a virtio device's `VIRTIO_F_ACCESS_PLATFORM` has it use them (virtio 1.2, §6).
//! Then the guest's own driver adds the constant, and no translation on the way is needed.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

#[cfg(test)]
mod tests;
mod writer;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use riscv::interrupt::SUPERVISOR_EXTERNAL;
use riscv::plic;
use writer::{TreeWriter, WriterError};

use crate::memory::address::{GuestPhysical, GuestRegion, HostPhysical, PAGE_SIZE};
use crate::sort::sort_by_key;
use board::isa;

/// Base of a guest's emulated UART, as on QEMU's `virt` board.
pub const UART_BASE: GuestPhysical = GuestPhysical::new(0x1000_0000);
/// Bytes that the UART's node claims.
pub const UART_SIZE: u64 = 0x100;
/// The UART's source number at the guest's interrupt controller.
pub const UART_SOURCE: u32 = 10;
/// Base of a guest's emulated real-time clock, as on QEMU's `virt` board.
pub const CLOCK_BASE: GuestPhysical = GuestPhysical::new(0x0010_1000);
/// Bytes that the clock's node claims.
pub const CLOCK_SIZE: u64 = 0x1000;
/// The clock's source number at the guest's interrupt controller.
pub const CLOCK_SOURCE: u32 = 11;
/// Base of a guest's supervisor-level APLIC.
pub const APLIC_BASE: GuestPhysical = GuestPhysical::new(0x0d00_0000);
/// Base of a guest's PLIC, as on QEMU's `virt` board.
pub const PLIC_BASE: GuestPhysical = GuestPhysical::new(0x0c00_0000);
/// Bytes of the APLIC's control region: 16 KiB of registers and room for the delivery structures
/// of direct mode, which are read-only zeros here.
pub const APLIC_SIZE: u64 = 0x8000;
/// Base of a guest's supervisor-level interrupt files, one page a vCPU.
pub const IMSIC_BASE: GuestPhysical = GuestPhysical::new(0x2800_0000);
/// Interrupt identities that each of the guest's interrupt files implements, 1 to this.
pub const IMSIC_IDENTITIES: u32 = 63;

/// The highest source number that an APLIC (AIA §4.1), or a PLIC, can have.
const SOURCES_LIMIT: u32 = riscv::aplic::MAX_SOURCE;
/// vCPUs that an APLIC can distinguish: a hart index has 14 bits (AIA §4.5.16).
const VCPUS_LIMIT: u32 = 1 << 14;
/// Input clock of the UART, in hertz, the one of QEMU's `virt` board. Emulated, it sets no pace.
const UART_CLOCK: u32 = 3_686_400;
/// Interrupt flags of the binding: a rising edge.
const EDGE_RISING: u32 = 1;
/// Interrupt flags of the binding: a high level.
const LEVEL_HIGH: u32 = 4;

/// A virtio-mmio device that a guest owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtioDevice {
    /// Its registers.
    pub registers: GuestRegion,
    /// Its source number at the guest's interrupt controller.
    pub source: u32,
}

/// Parts of a guest's computer.
#[derive(Clone, Copy, Debug)]
pub struct GuestDescription<'a> {
    /// The VM's name; becomes the tree's model.
    pub name: &'a str,
    /// The one range of RAM.
    pub memory: GuestRegion,
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
    pub initrd: Option<GuestRegion>,
    /// The kernel's command line.
    pub bootargs: &'a str,
    /// Base of the RAM for devices, if it is not the guest's.
    pub memory_for_devices: Option<HostPhysical>,
    /// The devices passed through.
    pub virtio: &'a [VirtioDevice],
    /// Set if the guest has interrupt files with an APLIC, and not a PLIC.
    pub has_files: bool,
    /// Sources that the guest's interrupt controller implements, 1 to this.
    pub sources: u32,
    /// Set if the guest has a real-time clock.
    pub clock: bool,
    /// Seed for the guest's random-number generator.
    pub rng_seed: Option<&'a [u8]>,
}

/// Reason why no device tree could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuestTreeError {
    /// A computer without a processor.
    #[error("a guest needs at least one vCPU")]
    NoVcpus,
    /// More than an APLIC can name.
    #[error("{0} vCPUs are more than the {VCPUS_LIMIT} that an APLIC can name")]
    TooManyVcpus(u32),
    /// A computer without memory.
    #[error("a guest needs memory")]
    NoMemory,
    /// The initial RAM disk does not lie in the guest's RAM.
    #[error("the initrd {initrd} does not lie in the guest's memory {memory}")]
    InitrdOutsideMemory {
        /// Address of the initial RAM disk.
        initrd: GuestRegion,
        /// Address of the RAM.
        memory: GuestRegion,
    },
    /// A source number that the APLIC does not have.
    #[error("interrupt source {source_number} is not one of the APLIC's 1 to {limit}")]
    BadSource {
        /// The number asked for.
        source_number: u32,
        /// The highest one there is.
        limit: u32,
    },
    /// Two devices on one source.
    #[error("two devices use interrupt source {0}")]
    SharedSource(u32),
    /// Two devices at one address.
    #[error("{0} and {1} overlap in the guest's address space")]
    Overlap(GuestRegion, GuestRegion),
    /// The writer refused: a text with a NUL in it, or a tree of more than 4 GiB.
    #[error("the device tree cannot be written: {0}")]
    Writer(WriterError),
}

impl From<WriterError> for GuestTreeError {
    fn from(error: WriterError) -> Self {
        Self::Writer(error)
    }
}

/// Bytes of the registers of a PLIC with a context for each of so many vCPUs.
#[must_use]
pub const fn plic_size(vcpus: u32) -> u64 {
    plic::THRESHOLD + plic::CONTEXT_STRIDE * vcpus as u64
}

/// The page of interrupt file that belongs to a vCPU, as the guest sees it.
pub fn imsic_file(vcpu: u32) -> GuestPhysical {
    GuestPhysical::new(
        IMSIC_BASE
            .raw()
            .saturating_add(u64::from(vcpu).saturating_mul(PAGE_SIZE)),
    )
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
    fdt.begin_node(&format!("memory@{:x}", guest.memory.base().raw()));
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
        let (base, size) = (guest.memory.base(), guest.memory.size());
        fdt.property_array_u64("dma-ranges", &[place.raw(), base.raw(), size]);
    }
    match guest.has_files {
        true => write_aplic(&mut fdt, guest, handles),
        false => write_plic(&mut fdt, guest, handles),
    }
    let wires = Wires {
        controller: handles.controller(),
        has_modes: guest.has_files,
    };
    write_uart(&mut fdt, wires);
    if guest.clock {
        write_clock(&mut fdt, wires);
    }
    for device in guest.virtio {
        write_virtio(&mut fdt, device, wires);
    }
    if guest.has_files {
        write_imsic(&mut fdt, files, handles);
    }
    fdt.end_node();
    fdt.end_node();
    Ok(GuestTree {
        bytes: fdt.finish()?,
        seed_at,
    })
}

/// Checks that the parts fit together; returns the range of the interrupt files.
fn check(guest: &GuestDescription<'_>) -> Result<GuestRegion, GuestTreeError> {
    if guest.vcpus == 0 {
        return Err(GuestTreeError::NoVcpus);
    }
    if guest.memory.is_empty() {
        return Err(GuestTreeError::NoMemory);
    }
    let files = GuestRegion::new(IMSIC_BASE, u64::from(guest.vcpus).saturating_mul(PAGE_SIZE))
        .filter(|_| guest.vcpus <= VCPUS_LIMIT)
        .ok_or(GuestTreeError::TooManyVcpus(guest.vcpus))?;
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
    let mut regions: Vec<GuestRegion> = fixed
        .iter()
        .chain(&clock)
        .filter_map(|&(base, size)| GuestRegion::new(base, size))
        .collect();
    regions.push(guest.memory);
    regions.extend(guest.has_files.then_some(files));
    regions.extend(guest.virtio.iter().map(|device| device.registers));
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
    sort_by_key(&mut sources, |source| *source);
    for &source_number in &sources {
        if source_number == 0 || source_number > limit {
            return Err(GuestTreeError::BadSource {
                source_number,
                limit,
            });
        }
    }
    for (&first, &second) in sources.iter().zip(sources.iter().skip(1)) {
        if first == second {
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
}

fn uart_path() -> String {
    format!("/soc/serial@{:x}", UART_BASE.raw())
}

fn write_reg(fdt: &mut TreeWriter, region: GuestRegion) {
    fdt.property_array_u64("reg", &[region.base().raw(), region.size()]);
}

/// Writes the node that speaks to the kernel; returns the seed's offset in the tree.
fn write_chosen(fdt: &mut TreeWriter, guest: &GuestDescription<'_>) -> Option<usize> {
    fdt.begin_node("chosen");
    fdt.property_string("stdout-path", &uart_path());
    fdt.property_string("bootargs", guest.bootargs);
    if let Some(initrd) = guest.initrd {
        fdt.property_u64("linux,initrd-start", initrd.base().raw());
        fdt.property_u64("linux,initrd-end", initrd.end().raw());
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
    fdt.begin_node(&format!("interrupt-controller@{:x}", APLIC_BASE.raw()));
    fdt.property_string("compatible", "riscv,aplic");
    fdt.property_array_u64("reg", &[APLIC_BASE.raw(), APLIC_SIZE]);
    write_controller(fdt, 2, handles.controller());
    fdt.property_u32("riscv,num-sources", guest.sources.min(SOURCES_LIMIT));
    fdt.property_u32("msi-parent", handles.imsic());
    fdt.end_node();
}

fn write_plic(fdt: &mut TreeWriter, guest: &GuestDescription<'_>, handles: Handles) {
    fdt.begin_node(&format!("interrupt-controller@{:x}", PLIC_BASE.raw()));
    fdt.property_string("compatible", "sifive,plic-1.0.0");
    fdt.property_array_u64("reg", &[PLIC_BASE.raw(), plic_size(guest.vcpus)]);
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

/// Wires of devices.
#[derive(Clone, Copy)]
struct Wires {
    /// Handle of the devices' interrupt controller.
    controller: u32,
    /// Set if the controller distinguishes trigger modes.
    has_modes: bool,
}

impl Wires {
    fn write(self, fdt: &mut TreeWriter, source: u32, mode: u32) {
        fdt.property_u32("interrupt-parent", self.controller);
        let cells = [source, mode];
        let cells = if self.has_modes {
            &cells[..]
        } else {
            &cells[..1]
        };
        fdt.property_array_u32("interrupts", cells);
    }
}

fn write_uart(fdt: &mut TreeWriter, wires: Wires) {
    fdt.begin_node(&format!("serial@{:x}", UART_BASE.raw()));
    fdt.property_string("compatible", "ns16550a");
    fdt.property_array_u64("reg", &[UART_BASE.raw(), UART_SIZE]);
    fdt.property_u32("clock-frequency", UART_CLOCK);
    wires.write(fdt, UART_SOURCE, LEVEL_HIGH);
    fdt.end_node();
}

fn write_clock(fdt: &mut TreeWriter, wires: Wires) {
    fdt.begin_node(&format!("rtc@{:x}", CLOCK_BASE.raw()));
    fdt.property_string("compatible", "google,goldfish-rtc");
    fdt.property_array_u64("reg", &[CLOCK_BASE.raw(), CLOCK_SIZE]);
    wires.write(fdt, CLOCK_SOURCE, LEVEL_HIGH);
    fdt.end_node();
}

fn write_virtio(fdt: &mut TreeWriter, device: &VirtioDevice, wires: Wires) {
    fdt.begin_node(&format!("virtio_mmio@{:x}", device.registers.base().raw()));
    fdt.property_string("compatible", "virtio,mmio");
    write_reg(fdt, device.registers);
    wires.write(fdt, device.source, EDGE_RISING);
    fdt.end_node();
}

fn write_imsic(fdt: &mut TreeWriter, files: GuestRegion, handles: Handles) {
    fdt.begin_node(&format!("interrupt-controller@{:x}", files.base().raw()));
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
