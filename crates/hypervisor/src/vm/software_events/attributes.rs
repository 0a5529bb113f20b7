//! Attributes of an event (section "Software Event Attributes").

use core::ops::Range;

use riscv::sbi::software_events::{
    ATTRIBUTES, CONFIG, ENTRY_ARGUMENT, ENTRY_PC, FLAGS, INTERRUPTED_A6, INTERRUPTED_A7,
    INTERRUPTED_FLAGS, INTERRUPTED_SEPC, ONE_SHOT, PREFERRED_HART, PRIORITY, STATUS,
    STATUS_INJECTABLE, STATUS_PENDING,
};

use super::{Event, EventError, Record, SoftwareEvents, State};

/// Attributes that a call names. Both numbers are 32-bit parameters.
///
/// # Errors
/// [`EventError::InvalidParameter`] for none, [`EventError::BadRange`] if one is not defined.
pub fn range(first: u64, count: u64) -> Result<Range<u32>, EventError> {
    let (first, count) = (first as u32, count as u32);
    if count == 0 {
        return Err(EventError::InvalidParameter);
    }
    let end = first.checked_add(count).filter(|end| *end <= ATTRIBUTES);
    Ok(first..end.ok_or(EventError::BadRange)?)
}

/// Bytes of an attribute.
pub const ATTRIBUTE_SIZE: u64 = 8;

impl SoftwareEvents {
    /// Value of an attribute of an event.
    ///
    /// # Errors
    /// [`EventError`].
    pub fn read(
        &mut self,
        (own, event): (usize, Event),
        attribute: u32,
    ) -> Result<u64, EventError> {
        let preferred = match event {
            Event::Global => self.preferred,
            _ => own,
        };
        let record = self.record(own, event)?;
        Ok(match attribute {
            STATUS => {
                let pending = if record.is_pending { STATUS_PENDING } else { 0 };
                record.state as u64 | pending | STATUS_INJECTABLE
            }
            PRIORITY => u64::from(record.priority),
            CONFIG => u64::from(record.is_one_shot),
            PREFERRED_HART => preferred as u64,
            ENTRY_PC => record.entry,
            ENTRY_ARGUMENT => record.argument,
            INTERRUPTED_SEPC => record.interrupted.exception_counter,
            INTERRUPTED_FLAGS => record.interrupted.flags,
            INTERRUPTED_A6 => record.interrupted.a6,
            INTERRUPTED_A7 => record.interrupted.a7,
            _ => return Err(EventError::BadRange),
        })
    }

    /// Writes the attributes of an event from `first` on.
    ///
    /// # Errors
    /// [`EventError`] of the first attribute that cannot be written; nothing has changed then.
    pub fn write(
        &mut self,
        (own, event): (usize, Event),
        first: u32,
        values: &[u64],
    ) -> Result<(), EventError> {
        for (attribute, value) in (first..).zip(values) {
            self.check(own, event, attribute, *value)?;
        }
        for (attribute, value) in (first..).zip(values) {
            let value = *value;
            if attribute == PREFERRED_HART {
                self.preferred = usize::try_from(value).unwrap_or(0);
                continue;
            }
            set(self.record(own, event)?, attribute, value);
        }
        Ok(())
    }

    fn check(
        &mut self,
        own: usize,
        event: Event,
        attribute: u32,
        value: u64,
    ) -> Result<(), EventError> {
        let is_handler = event != Event::Global || self.handler == own;
        let vcpus = self.vcpus.len() as u64;
        let state = self.record(own, event)?.state;
        let (is_writable, is_valid) = match attribute {
            PRIORITY => (state <= State::Registered, u32::try_from(value).is_ok()),
            CONFIG => (state <= State::Registered, value & !ONE_SHOT == 0),
            PREFERRED_HART if event == Event::Global => (state <= State::Registered, value < vcpus),
            INTERRUPTED_SEPC | INTERRUPTED_A6 | INTERRUPTED_A7 => {
                (state == State::Running && is_handler, true)
            }
            INTERRUPTED_FLAGS => (state == State::Running && is_handler, value & !FLAGS == 0),
            STATUS | PREFERRED_HART | ENTRY_PC | ENTRY_ARGUMENT => return Err(EventError::Denied),
            _ => return Err(EventError::BadRange),
        };
        if !is_writable {
            return Err(EventError::InvalidState);
        }
        if !is_valid {
            return Err(EventError::InvalidParameter);
        }
        Ok(())
    }
}

/// Sets an attribute, which may be set to the value.
fn set(record: &mut Record, attribute: u32, value: u64) {
    match attribute {
        PRIORITY => record.priority = value as u32,
        CONFIG => record.is_one_shot = value & ONE_SHOT != 0,
        INTERRUPTED_SEPC => record.interrupted.exception_counter = value,
        INTERRUPTED_FLAGS => record.interrupted.flags = value,
        INTERRUPTED_A6 => record.interrupted.a6 = value,
        INTERRUPTED_A7 => record.interrupted.a7 = value,
        _ => {}
    }
}
