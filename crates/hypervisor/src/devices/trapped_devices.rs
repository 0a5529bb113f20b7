//! Trapped devices of one VM, and its interrupt controller, to which their interrupt lines lead.

use alloc::boxed::Box;
use alloc::vec::Vec;

use abi::monitor::ExitCause;

use crate::devices::controller::Controller;
use crate::devices::irq::SourceNumber;
use crate::devices::trapped::{Access, DeviceContext, TrappedDevice, WouldBlock};
use crate::memory::address::HostRegion;

/// Names a trapped device of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceNumber(usize);

impl DeviceNumber {
    /// The VM's interrupt controller, which every VM has.
    pub const CONTROLLER: Self = Self(0);

    /// The device with this index.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self(index)
    }

    /// Its index, below [`TrappedDevices::count`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0
    }
}

/// A device whose interrupt is a virtual source of the VM's interrupt controller.
#[derive(Debug)]
struct Wired {
    source: SourceNumber,
    /// Exit cause under which accesses to the device are counted.
    cause: ExitCause,
    /// Level of the interrupt line that the controller was shown last.
    shown: bool,
    device: Box<dyn TrappedDevice>,
}

/// The trapped devices of one VM.
#[derive(Debug)]
pub struct TrappedDevices {
    controller: Controller,
    /// Device `n` is at `n - 1`.
    wired: Vec<Wired>,
}

impl TrappedDevices {
    /// The interrupt controller alone.
    #[must_use]
    pub const fn new(controller: Controller) -> Self {
        Self {
            controller,
            wired: Vec::new(),
        }
    }

    /// Number of devices, the interrupt controller among them.
    #[must_use]
    pub fn count(&self) -> usize {
        self.wired.len() + 1
    }

    /// Adds a device whose interrupt line leads to `source`, which no other device has.
    pub fn add(&mut self, source: SourceNumber, device: Box<dyn TrappedDevice>) -> DeviceNumber {
        self.controller.add_virtual(source);
        let cause = device.cause();
        self.wired.push(Wired {
            source,
            cause,
            shown: false,
            device,
        });
        DeviceNumber(self.wired.len())
    }

    /// Passes a guest's load to a device. Returns the cause under which the exit is counted, and the value.
    #[inline]
    pub fn load(
        &mut self,
        number: DeviceNumber,
        access: Access,
        context: &dyn DeviceContext,
    ) -> (ExitCause, u64) {
        let Some(index) = number.0.checked_sub(1) else {
            let value = self.controller.load(access, context);
            return (self.controller.cause(), value);
        };
        let Some(wired) = self.wired.get_mut(index) else {
            return (ExitCause::GuestPageFault, 0);
        };
        let answer = (wired.cause, wired.device.load(access, context));
        self.settle(index, context);
        answer
    }

    /// Passes a guest's store to a device. Returns the cause under which the exit is counted, and whether the device has taken the store.
    #[inline]
    pub fn store(
        &mut self,
        number: DeviceNumber,
        access: Access,
        value: u64,
        context: &dyn DeviceContext,
    ) -> (ExitCause, Result<(), WouldBlock>) {
        let Some(index) = number.0.checked_sub(1) else {
            self.controller.store(access, value, context);
            return (self.controller.cause(), Ok(()));
        };
        let Some(wired) = self.wired.get_mut(index) else {
            return (ExitCause::GuestPageFault, Ok(()));
        };
        let answer = (wired.cause, wired.device.store(access, value, context));
        self.settle(index, context);
        answer
    }

    /// Polls every device: an event may have come from outside.
    #[inline]
    pub fn poll(&mut self, context: &dyn DeviceContext) {
        for index in 0..self.wired.len() {
            if let Some(wired) = self.wired.get_mut(index) {
                wired.device.poll(context);
            }
            self.settle(index, context);
        }
    }

    /// Polls one device: an event may have come from outside.
    #[inline]
    pub fn poll_device(&mut self, number: DeviceNumber, context: &dyn DeviceContext) {
        if let Some(index) = number.0.checked_sub(1)
            && let Some(wired) = self.wired.get_mut(index)
        {
            wired.device.poll(context);
            self.settle(index, context);
        }
    }

    /// Recovers missed edges of the board's devices that are the VM's.
    pub fn recover_missed_edges(&mut self, context: &dyn DeviceContext) {
        self.controller.recover_missed_edges(context);
    }

    /// Polls a device at the time that it has set.
    pub fn timer_expired(&mut self, number: DeviceNumber, context: &dyn DeviceContext) {
        if let Some(index) = number.0.checked_sub(1)
            && let Some(wired) = self.wired.get_mut(index)
        {
            wired.device.timer_expired(context);
            self.settle(index, context);
        }
    }

    /// Resets all devices to the state after power-on. None of the VM's vCPUs runs.
    pub fn reset(&mut self, context: &dyn DeviceContext) {
        for wired in &mut self.wired {
            wired.device.reset(context);
        }
        self.controller.reset(context);
    }

    /// Raises a source of the board that the guest has, and that the hypervisor has claimed.
    pub fn raise(&mut self, source: SourceNumber, context: &dyn DeviceContext) {
        self.controller.raise(source, context);
    }

    /// Visits all of the guest's memory that operations in flight may still access.
    pub fn for_each_in_flight(
        &self,
        context: &dyn DeviceContext,
        visit: &mut dyn FnMut(HostRegion),
    ) {
        for wired in &self.wired {
            wired.device.for_each_in_flight(context, visit);
        }
    }

    /// Returns true if no operation in flight reaches the guest's memory. None of the VM's vCPUs runs, and nothing more is begun.
    pub fn are_quiescent(&mut self, context: &dyn DeviceContext) -> bool {
        // Every device is asked: it then drops operations that were not begun.
        let mut all = true;
        for wired in &mut self.wired {
            all &= wired.device.is_quiescent(context);
        }
        all
    }

    /// Passes the level of a device's interrupt line to the controller, if it has changed.
    #[inline]
    fn settle(&mut self, index: usize, context: &dyn DeviceContext) {
        if let Some(wired) = self.wired.get_mut(index) {
            let high = wired.device.irq_level();
            if high != wired.shown {
                wired.shown = high;
                self.controller.set_input(wired.source, high, context);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;

    use riscv::aplic::register::{DOMAINCFG, GENMSI, SETIENUM};

    use super::*;
    use crate::devices::aplic::Aplic;
    use crate::devices::irq::{Effect, Sources};
    use crate::devices::plic::Plic;
    use crate::devices::uart::line::SerialPort;
    use crate::hart::decode::Width;

    const SOURCE: u32 = 10;
    const SOURCECFG: u64 = 4 * SOURCE as u64;
    const TARGET: u64 = GENMSI + 4 * SOURCE as u64;
    const LEVEL_HIGH: u64 = riscv::aplic::source_mode::LEVEL1 as u64;

    #[derive(Default)]
    struct World {
        room: Cell<usize>,
        printed: RefCell<Vec<u8>>,
        typed: RefCell<VecDeque<u8>>,
        effects: RefCell<Vec<Effect>>,
    }

    struct NoSources;

    impl Sources for NoSources {
        fn pending(&self, _: SourceNumber) -> bool {
            false
        }

        fn rectified_input(&self, _: SourceNumber) -> bool {
            false
        }
    }

    impl DeviceContext for World {
        fn print(&self, byte: u8) -> Result<(), WouldBlock> {
            let left = self.room.get().checked_sub(1).ok_or(WouldBlock)?;
            self.room.set(left);
            self.printed.borrow_mut().push(byte);
            Ok(())
        }

        fn take_input(&self) -> Option<u8> {
            self.typed.borrow_mut().pop_front()
        }

        fn timer(&self) -> u64 {
            0
        }

        fn sources(&self) -> &dyn Sources {
            &NoSources
        }

        fn apply(&self, effect: Effect) {
            self.effects.borrow_mut().push(effect);
        }
    }

    fn access(offset: u64, width: Width) -> Access {
        Access { offset, width }
    }

    fn trapped() -> (TrappedDevices, DeviceNumber, World) {
        let mut trapped = TrappedDevices::new(Controller::Aplic(Aplic::new(32, 2)));
        let uart = trapped.add(SourceNumber(SOURCE), Box::new(SerialPort::default()));
        (trapped, uart, World::default())
    }

    fn messages(world: &World) -> Vec<(u32, u32)> {
        let effects = world.effects.take();
        let message = |effect| match effect {
            Effect::Message(to) => Some((to.hart.0, to.identity.number())),
            _ => None,
        };
        effects.into_iter().filter_map(message).collect()
    }

    /// A guest whose UART interrupts vCPU 1 with identity 5.
    fn listen(trapped: &mut TrappedDevices, uart: DeviceNumber, world: &World) {
        for (offset, value) in [
            (DOMAINCFG, 1 << 8),
            (SOURCECFG, LEVEL_HIGH),
            (TARGET, 1 << 18 | 5),
            (SETIENUM, SOURCE.into()),
        ] {
            let at = access(offset, Width::Word);
            let (cause, taken) = trapped.store(DeviceNumber::CONTROLLER, at, value, world);
            assert_eq!((cause, taken), (ExitCause::MmioAplic, Ok(())));
        }
        // IER: received data.
        world.room.set(16);
        let (cause, taken) = trapped.store(uart, access(1, Width::Byte), 1, world);
        assert_eq!((cause, taken), (ExitCause::MmioUart, Ok(())));
    }

    #[test]
    fn typed_bytes_reach_the_guest() {
        let (mut trapped, uart, world) = trapped();
        listen(&mut trapped, uart, &world);
        assert_eq!(messages(&world), []);
        world.typed.borrow_mut().push_back(b'x');
        trapped.poll(&world);
        assert_eq!(messages(&world), [(1, 5)]);
        let data = trapped.load(uart, access(0, Width::Byte), &world);
        assert_eq!(data, (ExitCause::MmioUart, b'x'.into()));
        // The wire is low again: another byte is another interrupt.
        world.typed.borrow_mut().push_back(b'y');
        trapped.poll(&world);
        assert_eq!(messages(&world), [(1, 5)]);
    }

    #[test]
    fn bytes_without_room_are_not_taken() {
        let (mut trapped, uart, world) = trapped();
        let send = |trapped: &mut TrappedDevices, byte: u8| {
            let at = access(0, Width::Byte);
            trapped.store(uart, at, byte.into(), &world).1
        };
        world.room.set(1);
        assert_eq!(send(&mut trapped, b'a'), Ok(()));
        assert_eq!(send(&mut trapped, b'b'), Err(WouldBlock));
        world.room.set(1);
        assert_eq!(send(&mut trapped, b'b'), Ok(()));
        assert_eq!(world.printed.take(), b"ab");
    }

    #[test]
    fn the_aplic_answers_words_alone() {
        let (mut trapped, _, world) = trapped();
        let word = access(DOMAINCFG, Width::Word);
        let before = trapped.load(DeviceNumber::CONTROLLER, word, &world).1;
        for width in [Width::Byte, Width::Half, Width::Double] {
            let at = access(DOMAINCFG, width);
            assert_eq!(trapped.load(DeviceNumber::CONTROLLER, at, &world).1, 0);
            let _ = trapped.store(DeviceNumber::CONTROLLER, at, 1 << 8, &world);
        }
        assert_eq!(
            trapped.load(DeviceNumber::CONTROLLER, word, &world).1,
            before
        );
    }

    #[test]
    fn controllers_are_counted_by_kind() {
        let world = World::default();
        let at = access(0x2000, Width::Word);
        for (controller, expected) in [
            (Controller::Aplic(Aplic::new(32, 2)), ExitCause::MmioAplic),
            (Controller::Plic(Plic::new(32, 2)), ExitCause::MmioPlic),
        ] {
            let mut trapped = TrappedDevices::new(controller);
            let (loaded, _) = trapped.load(DeviceNumber::CONTROLLER, at, &world);
            let (stored, _) = trapped.store(DeviceNumber::CONTROLLER, at, 0, &world);
            assert_eq!([loaded, stored], [expected; 2]);
        }
    }

    #[test]
    fn reset_forgets_what_the_guest_set() {
        let (mut trapped, uart, world) = trapped();
        listen(&mut trapped, uart, &world);
        trapped.reset(&world);
        world.typed.borrow_mut().push_back(b'x');
        trapped.poll(&world);
        assert_eq!(messages(&world), []);
    }
}
