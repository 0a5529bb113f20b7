//! A guest's UART on its line, which is the VM's console.

use abi::monitor::ExitCause;

use crate::devices::trapped::{Access, NotNow, Outside, Trapped};
use crate::devices::uart::Uart;

/// The UART, and the line that ends at the VM's console.
#[derive(Debug, Default)]
pub struct SerialLine {
    uart: Uart,
}

impl Trapped for SerialLine {
    fn cause(&self) -> ExitCause {
        ExitCause::MmioUart
    }

    fn load(&mut self, access: Access, outside: &dyn Outside) -> u64 {
        let value = self.uart.read(access.offset);
        self.look(outside);
        value.into()
    }

    fn store(&mut self, access: Access, value: u64, outside: &dyn Outside) -> Result<(), NotNow> {
        // Any store may send a byte, and none may be lost.
        if outside.console_room() == 0 {
            return Err(NotNow);
        }
        // The registers are bytes.
        if let Some(byte) = self.uart.write(access.offset, value as u8) {
            outside.print(byte);
        }
        self.look(outside);
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
