//! The device tree of the board.

use riscv::finisher::{PASS, RESET};
use riscv::interrupt::{
    MACHINE_EXTERNAL, MACHINE_SOFTWARE, MACHINE_TIMER, SUPERVISOR_EXTERNAL, SUPERVISOR_SOFTWARE,
};
use vm_fdt::{Error, FdtWriter, FdtWriterNode};

use super::config::{BoardConfig, BoardError};
use super::map::{self, Window};
use super::pmu;
use crate::base::Random;

/// `IRQ_TYPE_LEVEL_HIGH` of the device tree's interrupt bindings.
pub(super) const LEVEL_HIGH: u32 = 4;

// Phandles. The harts' interrupt controllers follow the last of these, then the harts themselves.
pub(super) const APLIC_SUPERVISOR: u32 = 1;
const APLIC_MACHINE: u32 = 2;
pub(super) const IMSIC_SUPERVISOR: u32 = 3;
const IMSIC_MACHINE: u32 = 4;
const FINISHER: u32 = 5;
pub(super) const IOMMU: u32 = 6;
const FIRST_HART: u32 = 16;

/// Writes the device tree blob; `initrd` is the start and the end of the initial RAM disk.
///
/// # Errors
/// [`BoardError`] when the board cannot exist or a text cannot be put in a device tree.
pub fn device_tree(
    config: &BoardConfig,
    initrd: Option<(u64, u64)>,
) -> Result<Vec<u8>, BoardError> {
    config.check()?;
    Tree {
        fdt: FdtWriter::new().map_err(failed)?,
        config,
    }
    .write(initrd)
    .map_err(failed)
}

fn failed(error: Error) -> BoardError {
    BoardError::DeviceTree(error.to_string())
}

pub(super) struct Tree<'a> {
    pub fdt: FdtWriter,
    pub config: &'a BoardConfig,
}

impl Tree<'_> {
    fn write(mut self, initrd: Option<(u64, u64)>) -> Result<Vec<u8>, Error> {
        let root = self.fdt.begin_node("")?;
        self.fdt.property_u32("#address-cells", 2)?;
        self.fdt.property_u32("#size-cells", 2)?;
        self.fdt.property_string("compatible", "riscv-virtio")?;
        self.fdt.property_string("model", "riscv-virtio,partita")?;
        self.chosen(initrd)?;
        self.aliases()?;
        self.memory()?;
        self.harts()?;
        self.counters()?;
        self.power("poweroff", "syscon-poweroff", PASS)?;
        self.power("reboot", "syscon-reboot", RESET)?;
        let soc = self.fdt.begin_node("soc")?;
        self.fdt.property_u32("#address-cells", 2)?;
        self.fdt.property_u32("#size-cells", 2)?;
        self.fdt.property_string("compatible", "simple-bus")?;
        self.fdt.property_null("ranges")?;
        self.local_interruptors()?;
        self.message_controllers()?;
        self.wired_controllers()?;
        self.devices()?;
        self.pci()?;
        self.fdt.end_node(soc)?;
        self.fdt.end_node(root)?;
        self.fdt.finish()
    }

    fn chosen(&mut self, initrd: Option<(u64, u64)>) -> Result<(), Error> {
        let node = self.fdt.begin_node("chosen")?;
        self.fdt.property_string("stdout-path", &serial_path())?;
        if !self.config.bootargs.is_empty() {
            self.fdt
                .property_string("bootargs", &self.config.bootargs)?;
        }
        if let Some((start, end)) = initrd {
            self.fdt.property_u64("linux,initrd-start", start)?;
            self.fdt.property_u64("linux,initrd-end", end)?;
        }
        let mut random = Random::new(self.config.seed);
        let seed: Vec<u64> = (0..4).map(|_| random.next()).collect();
        self.fdt.property_array_u64("rng-seed", &seed)?;
        self.fdt.end_node(node)
    }

    fn aliases(&mut self) -> Result<(), Error> {
        let node = self.fdt.begin_node("aliases")?;
        self.fdt.property_string("serial0", &serial_path())?;
        self.fdt.end_node(node)
    }

    fn memory(&mut self) -> Result<(), Error> {
        let node = self.fdt.begin_node(&format!("memory@{:x}", map::RAM))?;
        self.fdt.property_string("device_type", "memory")?;
        self.reg(Window {
            base: map::RAM,
            size: self.config.memory,
        })?;
        self.fdt.end_node(node)
    }

    fn harts(&mut self) -> Result<(), Error> {
        let cpus = self.fdt.begin_node("cpus")?;
        self.fdt.property_u32("#address-cells", 1)?;
        self.fdt.property_u32("#size-cells", 0)?;
        let ticks = u32::try_from(self.config.clock.ticks_per_second()).unwrap_or(u32::MAX);
        self.fdt.property_u32("timebase-frequency", ticks)?;
        for hart in 0..self.config.harts {
            self.hart(hart)?;
        }
        let map = self.fdt.begin_node("cpu-map")?;
        let cluster = self.fdt.begin_node("cluster0")?;
        for hart in 0..self.config.harts {
            let core = self.fdt.begin_node(&format!("core{hart}"))?;
            self.fdt.property_u32("cpu", self.hart_phandle(hart))?;
            self.fdt.end_node(core)?;
        }
        self.fdt.end_node(cluster)?;
        self.fdt.end_node(map)?;
        self.fdt.end_node(cpus)
    }

    /// Which counters count what: OpenSBI's binding for `riscv,pmu`.
    fn counters(&mut self) -> Result<(), Error> {
        let node = self.fdt.begin_node("pmu")?;
        self.fdt.property_string("compatible", "riscv,pmu")?;
        for (name, cells) in [
            ("riscv,event-to-mhpmevent", pmu::selections()),
            ("riscv,event-to-mhpmcounters", pmu::counters()),
            ("riscv,raw-event-to-mhpmcounters", pmu::raw_events()),
        ] {
            self.fdt.property_array_u32(name, &cells)?;
        }
        self.fdt.end_node(node)
    }

    fn hart(&mut self, hart: u32) -> Result<(), Error> {
        let config = self.config;
        let isa = &config.isa;
        let node = self.fdt.begin_node(&format!("cpu@{hart:x}"))?;
        self.fdt.property_phandle(self.hart_phandle(hart))?;
        self.fdt.property_string("device_type", "cpu")?;
        self.fdt.property_u32("reg", hart)?;
        self.fdt.property_string("status", "okay")?;
        self.fdt.property_string("compatible", "riscv")?;
        self.fdt.property_string("riscv,isa", &isa.string())?;
        self.fdt.property_string("riscv,isa-base", &isa.base)?;
        self.fdt
            .property_string_list("riscv,isa-extensions", isa.extensions.clone())?;
        self.fdt.property_string("mmu-type", &isa.mmu)?;
        for (extension, property) in [
            ("zicbom", "riscv,cbom-block-size"),
            ("zicbop", "riscv,cbop-block-size"),
            ("zicboz", "riscv,cboz-block-size"),
        ] {
            if isa.cache_block != 0 && isa.extensions.iter().any(|name| name == extension) {
                self.fdt.property_u32(property, isa.cache_block)?;
            }
        }
        let controller = self.fdt.begin_node("interrupt-controller")?;
        self.fdt.property_phandle(hart_interrupts(hart))?;
        self.fdt.property_u32("#interrupt-cells", 1)?;
        self.fdt.property_null("interrupt-controller")?;
        self.fdt.property_string("compatible", "riscv,cpu-intc")?;
        self.fdt.end_node(controller)?;
        self.fdt.end_node(node)
    }

    fn hart_phandle(&self, hart: u32) -> u32 {
        FIRST_HART + self.config.harts + hart
    }

    /// `interrupts-extended`: for each hart, each of the given local interrupts.
    fn interrupts_extended(&mut self, interrupts: &[u32]) -> Result<(), Error> {
        let cells: Vec<u32> = (0..self.config.harts)
            .flat_map(|hart| {
                interrupts
                    .iter()
                    .flat_map(move |&i| [hart_interrupts(hart), i])
            })
            .collect();
        self.fdt.property_array_u32("interrupts-extended", &cells)
    }

    pub(super) fn begin(&mut self, name: &str, window: Window) -> Result<FdtWriterNode, Error> {
        let node = self.fdt.begin_node(&format!("{name}@{:x}", window.base))?;
        self.reg(window)?;
        Ok(node)
    }

    pub(super) fn reg(&mut self, window: Window) -> Result<(), Error> {
        self.fdt
            .property_array_u64("reg", &[window.base, window.size])
    }

    pub(super) fn compatible(&mut self, names: &[&str]) -> Result<(), Error> {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        self.fdt.property_string_list("compatible", names)
    }

    fn power(&mut self, name: &str, compatible: &str, value: u32) -> Result<(), Error> {
        let node = self.fdt.begin_node(name)?;
        self.fdt.property_string("compatible", compatible)?;
        self.fdt.property_u32("regmap", FINISHER)?;
        self.fdt.property_u32("offset", 0)?;
        self.fdt.property_u32("value", value)?;
        self.fdt.end_node(node)
    }

    /// The ACLINT: MSWI and MTIMER in the guise of the CLINT that they are compatible with, as
    /// QEMU describes them, and SSWI.
    fn local_interruptors(&mut self) -> Result<(), Error> {
        let node = self.begin("clint", map::ACLINT)?;
        self.compatible(&["sifive,clint0", "riscv,clint0"])?;
        self.interrupts_extended(&[MACHINE_SOFTWARE, MACHINE_TIMER])?;
        self.fdt.end_node(node)?;
        let node = self.begin("sswi", map::SSWI)?;
        self.compatible(&["riscv,aclint-sswi"])?;
        self.fdt.property_null("interrupt-controller")?;
        self.fdt.property_u32("#interrupt-cells", 0)?;
        self.interrupts_extended(&[SUPERVISOR_SOFTWARE])?;
        self.fdt.end_node(node)
    }

    fn message_controllers(&mut self) -> Result<(), Error> {
        let harts = u64::from(self.config.harts);
        let bits = map::guest_index_bits(self.config.guest_files);
        for (phandle, base, pages, interrupt) in [
            (
                IMSIC_MACHINE,
                map::IMSIC_MACHINE.base,
                harts,
                MACHINE_EXTERNAL,
            ),
            (
                IMSIC_SUPERVISOR,
                map::IMSIC_SUPERVISOR.base,
                harts << bits,
                SUPERVISOR_EXTERNAL,
            ),
        ] {
            let window = Window {
                base,
                size: pages * map::IMSIC_PAGE,
            };
            let node = self.begin("interrupt-controller", window)?;
            self.compatible(&["qemu,imsics", "riscv,imsics"])?;
            self.fdt.property_phandle(phandle)?;
            self.fdt.property_null("interrupt-controller")?;
            self.fdt.property_null("msi-controller")?;
            self.fdt.property_u32("#interrupt-cells", 0)?;
            self.fdt.property_u32("#msi-cells", 0)?;
            self.interrupts_extended(&[interrupt])?;
            self.fdt
                .property_u32("riscv,num-ids", u32::from(self.config.interrupt_ids))?;
            if phandle == IMSIC_SUPERVISOR && bits > 0 {
                self.fdt.property_u32("riscv,guest-index-bits", bits)?;
            }
            self.fdt.end_node(node)?;
        }
        Ok(())
    }

    fn wired_controllers(&mut self) -> Result<(), Error> {
        let size = map::aplic_size(self.config.harts);
        for (phandle, base, parent) in [
            (APLIC_MACHINE, map::APLIC_MACHINE.base, IMSIC_MACHINE),
            (
                APLIC_SUPERVISOR,
                map::APLIC_SUPERVISOR.base,
                IMSIC_SUPERVISOR,
            ),
        ] {
            let node = self.begin("interrupt-controller", Window { base, size })?;
            self.compatible(&["qemu,aplic", "riscv,aplic"])?;
            self.fdt.property_phandle(phandle)?;
            self.fdt.property_null("interrupt-controller")?;
            self.fdt.property_u32("#interrupt-cells", 2)?;
            self.fdt.property_u32("#address-cells", 0)?;
            self.fdt.property_u32("msi-parent", parent)?;
            self.fdt
                .property_u32("riscv,num-sources", map::APLIC_SOURCES)?;
            if phandle == APLIC_MACHINE {
                let delegation = [APLIC_SUPERVISOR, 1, map::APLIC_SOURCES];
                self.fdt.property_u32("riscv,children", APLIC_SUPERVISOR)?;
                self.fdt
                    .property_array_u32("riscv,delegation", &delegation)?;
                // The name before the binding was ratified, which older firmware reads.
                self.fdt.property_array_u32("riscv,delegate", &delegation)?;
            }
            self.fdt.end_node(node)?;
        }
        Ok(())
    }

    fn interrupts(&mut self, source: u32) -> Result<(), Error> {
        self.fdt
            .property_u32("interrupt-parent", APLIC_SUPERVISOR)?;
        self.fdt
            .property_array_u32("interrupts", &[source, LEVEL_HIGH])
    }

    fn devices(&mut self) -> Result<(), Error> {
        let node = self.begin("serial", map::UART)?;
        self.compatible(&["ns16550a"])?;
        self.fdt.property_u32("clock-frequency", map::UART_HERTZ)?;
        self.interrupts(map::UART_SOURCE)?;
        self.fdt.end_node(node)?;

        for slot in 0..self.config.virtio_slots {
            let base = map::VIRTIO.base + slot as u64 * map::VIRTIO_STRIDE;
            let node = self.begin(
                "virtio_mmio",
                Window {
                    base,
                    ..map::VIRTIO
                },
            )?;
            self.compatible(&["virtio,mmio"])?;
            self.interrupts(map::VIRTIO_SOURCE + slot as u32)?;
            self.fdt.end_node(node)?;
        }

        let node = self.begin("rtc", map::CLOCK)?;
        self.compatible(&["google,goldfish-rtc"])?;
        self.interrupts(map::CLOCK_SOURCE)?;
        self.fdt.end_node(node)?;

        let node = self.begin("test", map::FINISHER)?;
        self.compatible(&["sifive,test1", "sifive,test0", "syscon"])?;
        self.fdt.property_phandle(FINISHER)?;
        self.fdt.end_node(node)
    }
}

fn hart_interrupts(hart: u32) -> u32 {
    FIRST_HART + hart
}

fn serial_path() -> String {
    format!("/soc/serial@{:x}", map::UART.base)
}
