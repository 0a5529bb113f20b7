//! Events that a counter can count (SBI, tables "PMU Event Type" and "PMU Firmware Events").

/// Events that the hypervisor itself counts: the calls that it knows, by their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirmwareEvent {
    SetTimer = 5,
    IpiSent = 6,
    FenceInstructionsSent = 8,
    FenceVirtualSent = 10,
    FenceVirtualAsidSent = 12,
}

impl FirmwareEvent {
    const ALL: [Self; 5] = [
        Self::SetTimer,
        Self::IpiSent,
        Self::FenceInstructionsSent,
        Self::FenceVirtualSent,
        Self::FenceVirtualAsidSent,
    ];
}

/// Counter that an event needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Hardware,
    Firmware(FirmwareEvent),
    /// An event that nothing here can count.
    Unknown,
}

/// An event, and the modes in which it is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    pub kind: EventKind,
    /// event_idx: type and code.
    pub event: u32,
    /// event_data: what is to be counted of a raw event.
    pub data: u64,
    /// The guest's user mode does not count.
    pub no_user: bool,
    /// The guest's supervisor mode does not count.
    pub no_supervisor: bool,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            kind: EventKind::Unknown,
            event: 0,
            data: 0,
            no_user: false,
            no_supervisor: false,
        }
    }
}

/// event_idx has 20 bits: the type from bit 16 on.
const LAST_EVENT: u64 = 0xf_ffff;
const TYPE_SHIFT: u32 = 16;
const CODE: u64 = 0xffff;
/// The platform's own firmware events, which alone have data.
const PLATFORM: u64 = 0xffff;

/// Bits of mhpmevent that raw events and raw events of version 2 may have; those above are the modes' and the overflow's.
const RAW: u64 = (1 << 48) - 1;
const RAW_2: u64 = (1 << 56) - 1;

impl Selection {
    /// Event that a call names; `None` if the specification has no such numbers.
    #[must_use]
    pub fn named(event: u64, data: u64) -> Option<Self> {
        if event > LAST_EVENT {
            return None;
        }
        let code = event & CODE;
        let kind = match event >> TYPE_SHIFT {
            // Code 0 is "no event".
            0 if code != 0 && data == 0 => EventKind::Hardware,
            1 if data == 0 => EventKind::Hardware,
            2 if code == 0 && data & !RAW == 0 => EventKind::Hardware,
            3 if code == 0 && data & !RAW_2 == 0 => EventKind::Hardware,
            15 if data == 0 || code == PLATFORM => FirmwareEvent::ALL
                .into_iter()
                .find(|known| *known as u64 == code)
                .map_or(EventKind::Unknown, EventKind::Firmware),
            _ => return None,
        };
        Some(Self {
            kind,
            event: event as u32,
            data,
            ..Self::default()
        })
    }
}
