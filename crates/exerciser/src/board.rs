//! The computer as its device tree describes it.

use fdt::Fdt;
use fdt::node::FdtNode;

use crate::arch::sync::Once;

/// The most harts that the exerciser uses.
pub const MAX_HARTS: usize = 64;
/// The most virtio-mmio slots that it looks at.
pub const MAX_SLOTS: usize = 16;

/// A memory-mapped device: where its registers are and which source of the APLIC it drives.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slot {
    pub address: u64,
    pub source: u32,
}

/// The supervisor-level interrupt files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files {
    /// Page of the first hart's file; 0 where there are none.
    pub base: u64,
    /// Bytes from one hart's page to the next.
    pub stride: u64,
    /// Highest identity (`riscv,num-ids`).
    pub identities: u64,
}

/// The computer.
#[derive(Debug)]
pub struct Board {
    pub memory: (u64, u64),
    /// Offset of a device's address of a byte from a hart's (`dma-ranges` of the bus), modulo 2^64.
    pub device_offset: u64,
    /// Hart ids, the boot hart first.
    pub harts: [u64; MAX_HARTS],
    /// Page of each hart's interrupt file, in the same order.
    pub pages: [u64; MAX_HARTS],
    pub hart_count: usize,
    pub files: Files,
    /// Ticks of `time` per second.
    pub timebase: u64,
    pub uart: u64,
    pub aplic: u64,
    /// Address and bytes of the PLIC; 0 where there is none.
    pub plic: (u64, u64),
    /// Set if the PLIC has one context a hart, for its supervisor level, by the hart's id.
    pub plic_context_is_hart: bool,
    /// The clock that tells the date; address 0 where there is none.
    pub clock: Slot,
    pub slots: [Slot; MAX_SLOTS],
    pub slot_count: usize,
    pub isa: &'static str,
    pub bootargs: &'static str,
    pub initrd: (u64, u64),
    pub device_tree: (u64, u64),
}

static BOARD: Once<Board> = Once::new();

/// The board that [`keep`] was given.
pub fn board() -> &'static Board {
    match BOARD.get() {
        Some(board) => board,
        None => crate::start::fail(format_args!("the device tree has not been read")),
    }
}

/// Makes a board the one that [`board`] names.
pub fn keep(board: Board) {
    BOARD.set(board);
}

/// Offset of the first of a bus's `dma-ranges` (Devicetree Specification 0.4, §2.3.9); addresses and sizes have two cells each.
fn device_offset(node: FdtNode<'_, 'static>) -> u64 {
    let mut cells = cells(node, "dma-ranges").map(u64::from);
    let mut pair = || Some(cells.next()? << 32 | cells.next()?);
    match (pair(), pair()) {
        (Some(of_devices), Some(of_harts)) => of_devices.wrapping_sub(of_harts),
        _ => 0,
    }
}

fn number(node: FdtNode<'_, 'static>, name: &str) -> Option<u64> {
    let value = node.property(name)?.value;
    match value.len() {
        4 => Some(u64::from(u32::from_be_bytes(value.try_into().ok()?))),
        8 => Some(u64::from_be_bytes(value.try_into().ok()?)),
        _ => None,
    }
}

fn text(node: FdtNode<'_, 'static>, name: &str) -> Option<&'static str> {
    node.property(name)?.as_str()
}

fn is_compatible(node: FdtNode<'_, 'static>, with: &str) -> bool {
    node.compatible()
        .is_some_and(|names| names.all().any(|name| name == with))
}

fn address(node: FdtNode<'_, 'static>) -> Option<u64> {
    node.reg()?
        .next()
        .map(|region| region.starting_address.addr() as u64)
}

/// The cells of a property.
fn cells(node: FdtNode<'_, 'static>, name: &str) -> impl Iterator<Item = u32> {
    let value = node
        .property(name)
        .map_or(&[][..], |property| property.value);
    value
        .chunks_exact(4)
        .filter_map(|cell| cell.try_into().ok().map(u32::from_be_bytes))
}

/// Interrupt controllers of the harts, while the tree is read.
#[derive(Debug)]
struct Controllers {
    /// Hart of the last node of a hart: its controller's node is below it.
    hart: u64,
    /// Phandle of each hart's controller, with the hart; 0 where there is none.
    known: [(u32, u64); MAX_HARTS],
    /// Phandles in the order of the interrupt files.
    order: [u32; MAX_HARTS],
}

impl Default for Controllers {
    fn default() -> Self {
        Self {
            hart: 0,
            known: [(0, 0); MAX_HARTS],
            order: [0; MAX_HARTS],
        }
    }
}

impl Controllers {
    /// Adds the controller of the last hart.
    fn add(&mut self, handle: Option<u64>) {
        let free = self.known.iter_mut().find(|(handle, _)| *handle == 0);
        if let (Some(handle), Some(slot)) = (handle, free) {
            *slot = (handle as u32, self.hart);
        }
    }
}

impl Board {
    /// Reads the tree. `boot_hart` is put first.
    ///
    /// # Errors
    /// The name of what is missing.
    pub fn read(
        tree: &Fdt<'static>,
        tree_address: u64,
        boot_hart: u64,
    ) -> Result<Self, &'static str> {
        let mut board = Self {
            memory: (0, 0),
            device_offset: 0,
            harts: [0; MAX_HARTS],
            pages: [0; MAX_HARTS],
            hart_count: 0,
            files: Files::default(),
            timebase: 0,
            uart: 0,
            aplic: 0,
            plic: (0, 0),
            plic_context_is_hart: false,
            clock: Slot::default(),
            slots: [Slot::default(); MAX_SLOTS],
            slot_count: 0,
            isa: "",
            bootargs: "",
            initrd: (0, 0),
            device_tree: (tree_address, tree_address + tree.total_size() as u64),
        };
        let mut controllers = Controllers::default();
        for node in tree.all_nodes() {
            board.read_node(node, &mut controllers)?;
        }
        if board.hart_count == 0 || board.memory.1 == 0 || board.timebase == 0 {
            return Err("harts, memory or timebase-frequency");
        }
        board.put_first(boot_hart);
        board.find_pages(&controllers);
        Ok(board)
    }

    /// Takes what a node says of the board.
    fn read_node(
        &mut self,
        node: FdtNode<'_, 'static>,
        controllers: &mut Controllers,
    ) -> Result<(), &'static str> {
        let name = node.name;
        if name == "cpus" {
            self.timebase = number(node, "timebase-frequency").unwrap_or(0);
        } else if name.starts_with("cpu@") {
            self.read_hart(node, controllers)?;
        } else if is_compatible(node, "riscv,cpu-intc") {
            controllers.add(number(node, "phandle"));
        } else if name.starts_with("memory@") {
            let region = node
                .reg()
                .and_then(|mut regions| regions.next())
                .ok_or("memory's reg")?;
            let start = region.starting_address.addr() as u64;
            self.memory = (start, start + region.size.ok_or("memory's size")? as u64);
        } else if name == "soc" {
            self.device_offset = device_offset(node);
        } else if name == "chosen" {
            self.bootargs = text(node, "bootargs").unwrap_or("");
            let end = |name| number(node, name).unwrap_or(0);
            self.initrd = (end("linux,initrd-start"), end("linux,initrd-end"));
        } else if is_compatible(node, "riscv,imsics") {
            self.read_interrupt_files(node, controllers)?;
        } else {
            self.read_device(node);
        }
        Ok(())
    }

    fn read_hart(
        &mut self,
        node: FdtNode<'_, 'static>,
        controllers: &mut Controllers,
    ) -> Result<(), &'static str> {
        let disabled = text(node, "status").is_some_and(|status| status == "disabled");
        let hart = number(node, "reg").ok_or("a hart's reg")?;
        controllers.hart = hart;
        if let (false, Some(slot)) = (disabled, self.harts.get_mut(self.hart_count)) {
            *slot = hart;
            self.hart_count += 1;
            self.isa = text(node, "riscv,isa").unwrap_or(self.isa);
        }
        Ok(())
    }

    fn read_interrupt_files(
        &mut self,
        node: FdtNode<'_, 'static>,
        controllers: &mut Controllers,
    ) -> Result<(), &'static str> {
        // Supervisor level: the files drive external interrupt 9 (AIA §3.2, and the binding).
        if cells(node, "interrupts-extended").nth(1) != Some(9) {
            return Ok(());
        }
        let guest_bits = number(node, "riscv,guest-index-bits").unwrap_or(0);
        self.files = Files {
            base: address(node).ok_or("imsic's reg")?,
            stride: 4096 << guest_bits.min(12),
            identities: number(node, "riscv,num-ids").unwrap_or(63),
        };
        let handles = cells(node, "interrupts-extended").step_by(2);
        for (slot, handle) in controllers.order.iter_mut().zip(handles) {
            *slot = handle;
        }
        Ok(())
    }

    fn read_device(&mut self, node: FdtNode<'_, 'static>) {
        if is_compatible(node, "riscv,aplic") {
            // The supervisor domain has no children.
            if node.property("riscv,children").is_none() {
                self.aplic = address(node).unwrap_or(0);
            }
        } else if is_compatible(node, "sifive,plic-1.0.0") {
            let size = node.reg().and_then(|mut regions| regions.next()?.size);
            self.plic = (address(node).unwrap_or(0), size.unwrap_or(0) as u64);
            let mut interrupts = cells(node, "interrupts-extended").skip(1).step_by(2);
            self.plic_context_is_hart = interrupts.all(|interrupt| interrupt == 9);
        } else if is_compatible(node, "ns16550a") {
            self.uart = address(node).unwrap_or(0);
        } else if is_compatible(node, "google,goldfish-rtc") {
            let plain = cells(node, "interrupts").next();
            let source = plain.or_else(|| cells(node, "interrupts-extended").nth(1));
            self.clock = Slot {
                address: address(node).unwrap_or(0),
                source: source.unwrap_or(0),
            };
        } else if is_compatible(node, "virtio,mmio") {
            let source = cells(node, "interrupts").next().unwrap_or(0);
            let slot = self.slots.get_mut(self.slot_count);
            if let (Some(address), Some(slot)) = (address(node), slot) {
                *slot = Slot { address, source };
                self.slot_count += 1;
            }
        }
    }

    fn put_first(&mut self, boot_hart: u64) {
        let harts = self.harts.get_mut(..self.hart_count).unwrap_or_default();
        harts.sort_unstable_by_key(|&hart| (hart != boot_hart, hart));
    }

    fn find_pages(&mut self, controllers: &Controllers) {
        if self.files.base == 0 {
            return;
        }
        for (hart, page) in self.harts.iter().zip(&mut self.pages).take(self.hart_count) {
            let position = (controllers.order.iter())
                .filter(|&&handle| handle != 0)
                .position(|handle| {
                    (controllers.known.iter())
                        .any(|(known, owner)| known == handle && owner == hart)
                });
            *page = position.map_or(0, |index| {
                self.files.base + index as u64 * self.files.stride
            });
        }
    }

    /// Tests whether the harts have an extension, named in lower case.
    pub fn has(&self, extension: &str) -> bool {
        let mut parts = self.isa.split('_');
        if extension.len() == 1 {
            return parts.next().is_some_and(|base| {
                base.get(4..)
                    .is_some_and(|letters| letters.contains(extension))
            });
        }
        parts.any(|part| part == extension)
    }

    /// Ticks in so many microseconds.
    pub fn ticks(&self, microseconds: u64) -> u64 {
        (u128::from(microseconds) * u128::from(self.timebase) / 1_000_000) as u64
    }

    /// Nanoseconds in so many ticks.
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * 1_000_000_000 / u128::from(self.timebase)) as u64
    }
}
