//! A guest's UART on its line, which is the VM's console.

use abi::monitor::ExitCause;

use crate::devices::trapped::{Access, DeviceContext, TrappedDevice, WouldBlock};
use crate::devices::uart::Uart;

/// The UART, and the line that ends at the VM's console.
#[derive(Debug, Default)]
pub struct SerialPort {
    uart: Uart,
}

impl SerialPort {
    /// Takes typed bytes if the UART has more room than before: bytes without room wait outside, and bytes that are typed later
    /// cause a poll.
    #[inline]
    fn poll_if_more_than(&mut self, room: usize, context: &dyn DeviceContext) {
        if self.uart.room() > room {
            self.poll(context);
        }
    }
}

impl TrappedDevice for SerialPort {
    fn cause(&self) -> ExitCause {
        ExitCause::MmioUart
    }

    fn load(&mut self, access: Access, context: &dyn DeviceContext) -> u64 {
        let room = self.uart.room();
        let value = self.uart.read(access.offset);
        self.poll_if_more_than(room, context);
        value.into()
    }

    fn store(
        &mut self,
        access: Access,
        value: u64,
        context: &dyn DeviceContext,
    ) -> Result<(), WouldBlock> {
        // The registers are bytes.
        let value = value as u8;
        // No byte of the guest may be lost.
        if self.uart.sends(access.offset) {
            context.print(value)?;
        }
        let room = self.uart.room();
        self.uart.write(access.offset, value);
        self.poll_if_more_than(room, context);
        Ok(())
    }

    fn poll(&mut self, context: &dyn DeviceContext) {
        while self.uart.room() > 0
            && let Some(byte) = context.take_input()
        {
            self.uart.receive(byte);
        }
    }

    fn irq_level(&self) -> bool {
        self.uart.interrupt()
    }

    fn reset(&mut self, _: &dyn DeviceContext) {
        self.uart.reset();
    }
}
