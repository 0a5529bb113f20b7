//! A guest's UART on its line, which is the VM's console.

use abi::monitor::ExitCause;

use crate::devices::trapped::{Access, NotNow, Outside, Trapped};
use crate::devices::uart::Uart;

/// The UART, and the line that ends at the VM's console.
#[derive(Debug, Default)]
pub struct SerialLine {
    uart: Uart,
}

impl SerialLine {
    /// Takes what was typed if the UART has room for more than it had: for what finds no room waits outside, and what is typed later
    /// comes by itself.
    #[inline]
    fn look_if_more_than(&mut self, room: usize, outside: &dyn Outside) {
        if self.uart.room() > room {
            self.look(outside);
        }
    }
}

impl Trapped for SerialLine {
    fn cause(&self) -> ExitCause {
        ExitCause::MmioUart
    }

    fn load(&mut self, access: Access, outside: &dyn Outside) -> u64 {
        let room = self.uart.room();
        let value = self.uart.read(access.offset);
        self.look_if_more_than(room, outside);
        value.into()
    }

    fn store(&mut self, access: Access, value: u64, outside: &dyn Outside) -> Result<(), NotNow> {
        // The registers are bytes.
        let value = value as u8;
        // None that the guest sends may be lost.
        if self.uart.sends(access.offset) {
            outside.print(value)?;
        }
        let room = self.uart.room();
        self.uart.write(access.offset, value);
        self.look_if_more_than(room, outside);
        Ok(())
    }

    fn look(&mut self, outside: &dyn Outside) {
        while self.uart.room() > 0
            && let Some(byte) = outside.typed()
        {
            self.uart.receive(byte);
        }
    }

    fn wire(&self) -> bool {
        self.uart.interrupt()
    }

    fn reset(&mut self, _: &dyn Outside) {
        self.uart = Uart::new();
    }
}
