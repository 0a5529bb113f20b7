//! Universal asynchronous receiver/transmitter NS16550A (National Semiconductor, "PC16550D", section "Registers").

/// Offsets of the registers, in registers.
pub mod register {
    /// Receiver buffer, transmitter holding register; low half of the divisor.
    pub const DATA: u64 = 0;
    /// Interrupt enable; high half of the divisor.
    pub const INTERRUPT_ENABLE: u64 = 1;
    /// Interrupt identification when read, FIFO control when written.
    pub const INTERRUPT_IDENTITY: u64 = 2;
    /// FIFO control when written.
    pub const FIFO_CONTROL: u64 = 2;
    /// Line control.
    pub const LINE_CONTROL: u64 = 3;
    /// Modem control.
    pub const MODEM_CONTROL: u64 = 4;
    /// Line status.
    pub const LINE_STATUS: u64 = 5;
    /// Modem status.
    pub const MODEM_STATUS: u64 = 6;
    /// Scratch.
    pub const SCRATCH: u64 = 7;
}

/// Interrupt enable: a received byte is there.
pub const ENABLE_RECEIVED: u8 = 1 << 0;
/// Interrupt enable: the transmitter holding register is empty.
pub const ENABLE_TRANSMITTER_EMPTY: u8 = 1 << 1;
/// Interrupt enable: line status.
pub const ENABLE_LINE_STATUS: u8 = 1 << 2;
/// Interrupt enable: modem status.
pub const ENABLE_MODEM_STATUS: u8 = 1 << 3;
/// All bits of interrupt enable.
pub const ENABLE_ALL: u8 = 0x0f;

/// Interrupt identity: modem status.
pub const IDENTITY_MODEM_STATUS: u8 = 0x00;
/// Interrupt identity: none is pending.
pub const IDENTITY_NONE: u8 = 0x01;
/// Interrupt identity: the transmitter holding register is empty.
pub const IDENTITY_TRANSMITTER_EMPTY: u8 = 0x02;
/// Interrupt identity: a received byte is there.
pub const IDENTITY_RECEIVED: u8 = 0x04;
/// Interrupt identity: line status.
pub const IDENTITY_LINE_STATUS: u8 = 0x06;
/// Interrupt identity: bytes have waited below the trigger level.
pub const IDENTITY_TIME_OUT: u8 = 0x0c;
/// Interrupt identity: the FIFOs are enabled.
pub const IDENTITY_FIFOS_ENABLED: u8 = 0xc0;

/// FIFO control: the FIFOs are enabled.
pub const FIFO_ENABLE: u8 = 1 << 0;
/// FIFO control: empties the receiver.
pub const FIFO_CLEAR_RECEIVER: u8 = 1 << 1;
/// FIFO control: empties the transmitter.
pub const FIFO_CLEAR_TRANSMITTER: u8 = 1 << 2;
/// Bytes that each FIFO holds.
pub const FIFO_BYTES: usize = 16;

/// Line control: offsets 0 and 1 are the divisor.
pub const DIVISOR_ACCESS: u8 = 1 << 7;

/// Modem control: what is transmitted is received.
pub const MODEM_LOOP: u8 = 1 << 4;
/// All bits of modem control.
pub const MODEM_ALL: u8 = 0x1f;

/// Line status: a received byte is there.
pub const LINE_DATA_READY: u8 = 1 << 0;
/// Line status: a received byte was lost.
pub const LINE_OVERRUN: u8 = 1 << 1;
/// Line status: the transmitter holding register is empty.
pub const LINE_HOLDING_EMPTY: u8 = 1 << 5;
/// Line status: nothing is left to transmit.
pub const LINE_TRANSMITTER_EMPTY: u8 = 1 << 6;

/// Modem status: ring indicator has ended.
pub const MODEM_RI_FELL: u8 = 1 << 2;
/// Modem status: clear to send.
pub const MODEM_CTS: u8 = 1 << 4;
/// Modem status: data set ready.
pub const MODEM_DSR: u8 = 1 << 5;
/// Modem status: ring indicator.
pub const MODEM_RI: u8 = 1 << 6;
/// Modem status: data carrier detect.
pub const MODEM_DCD: u8 = 1 << 7;
