//! All devices of one machine behind one physical address map.

use serde::{Deserialize, Serialize};

use super::aplic::Aplic;
use super::devices_config::DevicesConfig;
use super::imsic::{Imsic, Level};
use super::pci::{Function, Pci};
use super::target::Target;
use super::uplink::Line;
use super::virtio::{Slot, VirtioDevice};
use super::{
    AccessFault, Aclint, Console, Context, Cycles, Device, Effects, Finisher, HartId,
    HartIrqLevels, IrqLevels, Memory, PortId, Power, Rtc, Switch, UPLINK, Uart, Uplink,
};
use crate::board::map;
use crate::device::Marker;
use crate::trace::{Event, Happening, Place};

/// All devices of one machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct Devices {
    pub(super) config: DevicesConfig,
    rom: Vec<u8>,
    pub(super) effects: Effects,
    aclint: Aclint,
    pub(super) imsic: Imsic,
    pub(super) aplic: Aplic,
    uart: Uart,
    rtc: Rtc,
    finisher: Finisher,
    pub(super) slots: Vec<Slot>,
    pub(super) switch: Switch,
    pub(super) pci: Option<Box<Pci>>,
    pub(super) next_event: Cycles,
    /// Events not yet handed to the sink, if there is one.
    #[serde(skip)]
    events: Option<Vec<Event>>,
    /// A line out of the machine, if there is one.
    #[serde(skip)]
    line: Option<Line>,
}

impl Devices {
    /// The devices as they are after reset.
    #[must_use]
    pub fn new(config: DevicesConfig) -> Self {
        let DevicesConfig {
            harts,
            guest_files,
            interrupt_ids,
            direct_delivery: direct,
            ..
        } = config;
        Self {
            rom: Vec::new(),
            effects: Effects {
                irq_levels: IrqLevels::new(harts),
                ..Effects::default()
            },
            aclint: Aclint::new(harts),
            imsic: Imsic::new(harts, guest_files, interrupt_ids, direct),
            aplic: Aplic::new(harts, map::APLIC_SOURCES, guest_files, direct),
            uart: Uart::new(map::UART_SOURCE, Box::new(super::Silent)),
            rtc: Rtc::new(map::CLOCK_SOURCE, config.epoch),
            finisher: Finisher,
            slots: (0..config.virtio_slots.min(map::VIRTIO_SLOTS) as u32)
                .map(|slot| Slot::new(map::VIRTIO_SOURCE + slot))
                .collect(),
            switch: Switch::default(),
            pci: Pci::of(&config),
            next_event: Cycles(0),
            events: None,
            line: None,
            config,
        }
    }

    /// Connects the machine's switch, on the network with this number, to something outside: what comes from there makes
    /// runs differ. A checkpoint does not hold it.
    pub fn connect_outside(&mut self, uplink: Box<dyn Uplink>, network: u8) {
        self.switch.connect(UPLINK);
        self.switch.assign(UPLINK, network);
        self.line = Some(Line::new(uplink));
        self.next_event = Cycles(0);
    }

    /// Sets the real-time clock to what it shows at reset, in nanoseconds since 1970.
    pub fn set_epoch(&mut self, nanoseconds: u64) {
        self.rtc = Rtc::new(map::CLOCK_SOURCE, nanoseconds);
    }

    /// Puts the boot ROM in place: the bytes from [`map::ROM`] on; the rest reads as zero.
    pub fn set_rom(&mut self, bytes: Vec<u8>) {
        self.rom = bytes;
    }

    /// Puts a console at the end of the UART's line.
    pub fn attach_console(&mut self, console: Box<dyn Console>) {
        self.uart.attach(console);
        self.next_event = Cycles(0);
    }

    /// Watches the UART and every port of virtio consoles for a text from now on.
    pub(crate) fn watch_consoles(&mut self, marker: &Marker) {
        self.uart.watch(marker);
        for slot in &mut self.slots {
            if let Some(VirtioDevice::Console(ports)) = slot.device_mut() {
                ports.watch(marker);
            }
        }
    }

    /// Makes characters take this long to leave the UART; zero for no time.
    pub const fn set_character_time(&mut self, character: Cycles) {
        self.uart.set_character_time(character);
    }

    /// Puts a device in a virtio slot. With `access_platform` its driver is to use the platform's
    /// DMA addresses, as with QEMU's `iommu_platform=on`.
    ///
    /// # Errors
    /// The device, if the board has no such slot.
    pub fn insert(
        &mut self,
        slot: usize,
        device: VirtioDevice,
        access_platform: bool,
    ) -> Result<(), VirtioDevice> {
        let Some(slot) = self.slots.get_mut(slot) else {
            return Err(device);
        };
        if let VirtioDevice::Net(net) = &device {
            self.switch.connect(net.port());
        }
        slot.insert(device, access_platform);
        self.next_event = Cycles(0);
        Ok(())
    }

    /// Replaces the network between the machine's ports.
    pub fn set_switch(&mut self, mut switch: Switch) {
        for number in 0..self.places() {
            if let Some(VirtioDevice::Net(net)) = self.virtio(number) {
                switch.connect(net.port());
            }
        }
        self.switch = switch;
    }

    /// The virtio slots, to look at what their devices have done.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Begins to note what happens, or stops.
    pub(crate) fn note_events(&mut self, noted: bool) {
        self.events = noted.then(Vec::new);
    }

    /// Takes what has been noted.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        self.events
            .as_mut()
            .map(core::mem::take)
            .unwrap_or_default()
    }

    fn note(&mut self, now: Cycles, happening: Happening) {
        if let Some(events) = &mut self.events {
            events.push(Event {
                place: Place::Devices,
                cycles: now.0,
                retired: 0,
                happening,
            });
        }
    }

    /// Notes a store to an interrupt file's page.
    fn note_message(&mut self, now: Cycles, level: Level, offset: u64, identity: u64) {
        if self.events.is_some()
            && let Some((hart, file)) = self.imsic.file_at(level, offset)
        {
            let identity = identity as u32;
            self.note(
                now,
                Happening::Message {
                    hart,
                    file,
                    identity,
                },
            );
        }
    }

    /// How many of what the machine has.
    #[must_use]
    pub const fn config(&self) -> &DevicesConfig {
        &self.config
    }

    /// Makes every virtio device draw from a new sequence from now on.
    pub fn reseed(&mut self, seed: u64) {
        let mut random = super::Random::new(seed);
        for number in 0..self.places() {
            let seed = random.next();
            if let Some(device) = self.virtio_mut(number) {
                device.model_mut().reseed(seed);
            }
        }
    }

    /// Reads `size` bytes (1, 2, 4 or 8) at a physical address outside RAM.
    ///
    /// # Errors
    /// [`AccessFault`] when nothing answers.
    pub fn read(
        &mut self,
        address: u64,
        size: u8,
        now: Cycles,
        memory: &mut dyn Memory,
    ) -> Result<u64, AccessFault> {
        let target = Target::of(address, size, &self.config).ok_or(AccessFault)?;
        let Self {
            config,
            effects,
            pci,
            ..
        } = self;
        let mut context = Context {
            now,
            clock: config.clock,
            memory,
            effects,
        };
        let value = match target {
            Target::Rom(offset) => Ok(read_rom(&self.rom, offset, size)),
            Target::Finisher(offset) => self.finisher.read(offset, size, &mut context),
            Target::Rtc(offset) => self.rtc.read(offset, size, &mut context),
            Target::MachineSoftware(offset) => {
                self.aclint.read_machine_software(offset, size, &context)
            }
            Target::Timer(offset) => self.aclint.read_timer(offset, size, &context),
            Target::SupervisorSoftware(offset) => {
                self.aclint.read_supervisor_software(offset, size)
            }
            Target::Aplic(level, offset) => {
                self.aplic
                    .read(level, offset, size, &self.imsic, context.effects)
            }
            Target::Uart(offset) => self.uart.read(offset, size, &mut context),
            Target::Imsic(level, offset) => self.imsic.read_page(level, offset, size),
            Target::Virtio(slot, offset) => match self.slots.get_mut(slot) {
                Some(slot) => slot.read(offset, size, &mut context),
                None => Err(AccessFault),
            },
            target => bridge(pci.as_mut())?.read_target(&target, size, &mut context, config),
        }?;
        self.settle(now);
        Ok(value)
    }

    /// Writes `size` bytes (1, 2, 4 or 8) at a physical address outside RAM.
    ///
    /// # Errors
    /// [`AccessFault`] when nothing answers.
    pub fn write(
        &mut self,
        address: u64,
        size: u8,
        value: u64,
        now: Cycles,
        memory: &mut dyn Memory,
    ) -> Result<(), AccessFault> {
        let target = Target::of(address, size, &self.config).ok_or(AccessFault)?;
        if let Target::Imsic(level, offset) = target {
            self.note_message(now, level, offset, value);
        }
        let Self {
            config,
            effects,
            pci,
            ..
        } = self;
        let mut context = Context {
            now,
            clock: config.clock,
            memory,
            effects,
        };
        match target {
            Target::Rom(_) => Err(AccessFault),
            Target::Finisher(offset) => self.finisher.write(offset, size, value, &mut context),
            Target::Rtc(offset) => self.rtc.write(offset, size, value, &mut context),
            Target::MachineSoftware(offset) => {
                self.aclint
                    .write_machine_software(offset, size, value, &mut context)
            }
            Target::Timer(offset) => self.aclint.write_timer(offset, size, value, &mut context),
            Target::SupervisorSoftware(offset) => {
                self.aclint
                    .write_supervisor_software(offset, size, value, &mut context)
            }
            Target::Aplic(level, offset) => {
                self.aplic
                    .write(level, offset, size, value, &self.imsic, context.effects)
            }
            Target::Uart(offset) => self.uart.write(offset, size, value, &mut context),
            Target::Imsic(level, offset) => {
                self.imsic
                    .write_page(level, offset, size, value, &mut effects.irq_levels)
            }
            Target::Virtio(slot, offset) => match self.slots.get_mut(slot) {
                Some(slot) => slot.write(offset, size, value, &mut context),
                None => Err(AccessFault),
            },
            target => {
                let access = (size, value);
                bridge(pci.as_mut())?.write_target(&target, access, &mut context, config)
            }
        }?;
        self.settle(now);
        Ok(())
    }

    /// Lets every device do what has become due by `now`, and takes input from the host's side.
    pub fn tick(&mut self, now: Cycles, memory: &mut dyn Memory) {
        let Self {
            config,
            effects,
            pci,
            ..
        } = self;
        let mut context = Context {
            now,
            clock: config.clock,
            memory,
            effects,
        };
        self.aclint.tick(&mut context);
        self.uart.tick(&mut context);
        self.rtc.tick(&mut context);
        if let Some(line) = &mut self.line {
            line.tick(now, config.clock, &mut self.switch);
        }
        while let Some((port, frame)) = self.switch.receive(now) {
            match (port, &mut self.line) {
                (UPLINK, Some(line)) => line.send(&frame),
                _ => deliver_frame(&mut self.slots, pci.as_deref_mut(), port, frame),
            }
        }
        for slot in &mut self.slots {
            slot.tick(&mut context);
        }
        if let Some(pci) = pci {
            pci.tick(&mut context, config);
        }
        self.settle(now);
    }

    /// Carries line changes to the APLIC and messages to the interrupt files, and plans ahead.
    fn settle(&mut self, now: Cycles) {
        for (port, frame) in core::mem::take(&mut self.effects.frames) {
            self.switch.send(now, port, frame);
        }
        for change in core::mem::take(&mut self.effects.lines) {
            let (source, level) = (change.source, change.level);
            if self.aplic.line(source) != level {
                self.note(now, Happening::Line { source, level });
            }
            self.aplic
                .set_line(change.source, change.level, &self.imsic, &mut self.effects);
        }
        // A message makes no further message: an interrupt file only drives interrupt levels.
        for message in core::mem::take(&mut self.effects.msis) {
            let (address, data) = (message.address, u64::from(message.data));
            if let Some(Target::Imsic(level, offset)) = Target::of(address, 4, &self.config) {
                self.note_message(now, level, offset, data);
                // A message to an address that takes none is lost, as on a bus.
                let _ = self
                    .imsic
                    .write_page(level, offset, 4, data, &mut self.effects.irq_levels);
            }
        }
        let slots = self.slots.iter().map(Device::next_event);
        self.next_event = [
            self.uart.next_event(),
            self.rtc.next_event(),
            self.switch.next_event(),
            self.line.as_ref().map(Line::next_event),
            self.pci.as_ref().and_then(|pci| pci.next_event()),
        ]
        .into_iter()
        .chain(slots)
        .flatten()
        .fold(
            self.aclint
                .next_event(&self.config.clock, &self.effects.irq_levels),
            Cycles::min,
        );
    }

    /// When [`Devices::tick`] has something to do next; [`Cycles::NEVER`] if nothing is planned.
    /// Valid until the next access or tick. A field read: cheap enough for the inner loop.
    #[must_use]
    pub const fn next_event(&self) -> Cycles {
        self.next_event
    }

    /// The levels driven into one hart.
    #[must_use]
    pub fn irq_levels(&self, hart: HartId) -> HartIrqLevels {
        self.effects.irq_levels.hart(hart)
    }

    /// Tests whether any hart's interrupt levels changed since the note of changes was last emptied.
    #[must_use]
    pub fn any_irq_changed(&self) -> bool {
        self.effects.irq_levels.any_changed()
    }

    /// Takes one hart whose interrupt levels changed off the note of changes, oldest first.
    pub fn take_changed(&mut self) -> Option<HartId> {
        self.effects.irq_levels.take_changed()
    }

    /// The hart has set mip.SSIP for the edge in its interrupt levels: forget the edge.
    pub fn acknowledge_software_edge(&mut self, hart: HartId) {
        self.effects.irq_levels.update(hart, |irq_levels| {
            irq_levels.supervisor_software_edge = false
        });
    }

    /// The `time` CSR: MTIMER's mtime at `now`.
    #[must_use]
    pub fn time(&self, now: Cycles) -> u64 {
        self.aclint.time(&self.config.clock, now)
    }

    /// Tests whether software has set mtime since [`Devices::take_time_set`]: harts' deadlines are those of the old time.
    #[must_use]
    pub const fn is_time_set(&self) -> bool {
        self.aclint.is_set()
    }

    /// Forgets that mtime has been set; tells whether it was.
    pub const fn take_time_set(&mut self) -> bool {
        self.aclint.take_set()
    }

    /// The first machine time at which [`Devices::time`] has moved on by so many ticks since `now`: for stimecmp and vstimecmp
    /// deadlines. Never if that is half of its range or more.
    #[must_use]
    pub fn cycles_after(&self, now: Cycles, ticks: u64) -> Cycles {
        let clock = &self.config.clock;
        super::aclint::cycles_after(clock, clock.ticks(now), ticks)
    }

    /// Request of the test finisher, if there was one.
    #[must_use]
    pub fn power(&self) -> Option<Power> {
        self.effects.power
    }
}

fn bridge(pci: Option<&mut Box<Pci>>) -> Result<&mut Pci, AccessFault> {
    pci.map(|pci| &mut **pci).ok_or(AccessFault)
}

fn deliver_frame(slots: &mut [Slot], pci: Option<&mut Pci>, port: PortId, frame: Vec<u8>) {
    let functions = pci.map(Pci::functions_mut).unwrap_or_default();
    let functions = functions.iter_mut().filter_map(Function::device_mut);
    let devices = slots.iter_mut().filter_map(Slot::device_mut);
    for device in devices.chain(functions) {
        if let VirtioDevice::Net(net) = device
            && net.port() == port
        {
            net.arrive(frame);
            return;
        }
    }
}

fn read_rom(rom: &[u8], offset: u64, size: u8) -> u64 {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let byte = |index: usize| start.checked_add(index).and_then(|at| rom.get(at)).copied();
    (0..usize::from(size)).fold(0, |value, index| {
        value | u64::from(byte(index).unwrap_or(0)) << (index * 8)
    })
}
