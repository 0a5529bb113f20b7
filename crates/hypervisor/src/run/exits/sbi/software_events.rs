//! SBI SSE: supervisor software events.
//!
//! Attribute `base_attr_id + i` is at offset 8 × i of the shared memory, which has room for `attr_count` attributes. The specification's text
//! adds `base_attr_id` to the offset as well, which would lie outside; OpenSBI, Linux and kvm-unit-tests do as here.

use riscv::sbi::software_events::{
    ATTRIBUTES, COMPLETE, DISABLE, ENABLE, INJECT, MASK, READ, REGISTER, UNMASK, UNREGISTER, WRITE,
};

use super::call::{Call, SbiError, SbiResult};
use crate::memory::address::GuestPhysical;
use crate::memory::physical::Physical;
use crate::run::exits::exit::Exit;
use crate::run::software_events::{apply, interruptible};
use crate::system::{self, features};
use crate::vm::software_events::attributes::{self, ATTRIBUTE_SIZE};
use crate::vm::software_events::{Event, EventError, Offered};
use crate::vm::vcpu::request;

impl From<EventError> for SbiError {
    fn from(error: EventError) -> Self {
        match error {
            EventError::NotSupported => Self::NotSupported,
            EventError::InvalidParameter => Self::InvalidParameter,
            EventError::Denied => Self::Denied,
            EventError::InvalidState => Self::InvalidState,
            EventError::BadRange => Self::BadRange,
            EventError::AlreadyStarted => Self::AlreadyStarted,
            EventError::AlreadyStopped => Self::AlreadyStopped,
        }
    }
}

/// Answers an SSE call. There is no answer where an interrupted state is resumed.
#[cold]
#[inline(never)]
pub fn call(exit: &mut Exit<'_>, call: &Call) -> Option<SbiResult> {
    match call.function {
        COMPLETE => complete(exit),
        _ => Some(answer(exit, call)),
    }
}

/// Events of hardware that the VM has.
fn offered(exit: &Exit<'_>) -> Offered {
    Offered {
        double_traps: features::offer(exit.system, exit.vm).has_double_traps(),
        counter_overflows: exit.system.counters.counters() != 0,
    }
}

fn answer(exit: &mut Exit<'_>, call: &Call) -> SbiResult {
    let [first, second, third, ..] = call.arguments;
    let own = usize::from(exit.vcpu.index);
    let event = || Event::named(first, offered(exit));
    let events = || exit.vm.software_events.lock();
    match call.function {
        READ => return read(exit, event()?, call),
        WRITE => return write(exit, event()?, call),
        REGISTER => {
            let event = event()?;
            events().register((own, event), second, third)?;
            if event == Event::CounterOverflow {
                exit.state.counters.tell_by_event(true);
            }
        }
        UNREGISTER => {
            let event = event()?;
            events().unregister(own, event)?;
            if event == Event::CounterOverflow {
                exit.state.counters.tell_by_event(false);
            }
        }
        DISABLE => events().disable(own, event()?)?,
        ENABLE => {
            let told = events().enable(own, event()?)?;
            tell(exit, told);
        }
        INJECT => {
            let told = events().inject(event()?, second)?;
            tell(exit, told);
        }
        UNMASK => {
            events().unmask(own)?;
            tell(exit, Some(own));
        }
        MASK => {
            let told = events().mask(own)?;
            tell(exit, told);
        }
        _ => return Err(SbiError::NotSupported),
    }
    Ok(0)
}

fn complete(exit: &mut Exit<'_>) -> Option<SbiResult> {
    let own = usize::from(exit.vcpu.index);
    let mut vcpu = interruptible(exit.state);
    let told = exit.vm.software_events.lock().complete(own, &mut vcpu);
    let Some(told) = told else {
        return Some(Ok(0));
    };
    apply(exit.state, &vcpu);
    tell(exit, told);
    // An event that has waited for the end of this one may be due here.
    tell(exit, Some(own));
    None
}

/// Resets the events of the calling vCPU, which stops.
pub fn stop(exit: &Exit<'_>) {
    let own = usize::from(exit.vcpu.index);
    let told = exit.vm.software_events.lock().stop(own);
    tell(exit, told);
}

/// Tells a vCPU of the VM that an event may be due: now if it runs, at its dispatch if it waits.
fn tell(exit: &Exit<'_>, told: Option<usize>) {
    let siblings = exit.system.vcpus_of(exit.vm.id);
    let Some(vcpu) = told.and_then(|index| siblings.get(index)) else {
        return;
    };
    let hart = vcpu.post_request(request::SOFTWARE_EVENT);
    // The caller looks at its requests before it goes on.
    if vcpu.id == exit.vcpu.id {
        return;
    }
    if let Some(hart) = hart {
        exit.system.hart(hart).kick();
    }
    system::wake(exit.system, vcpu.id);
}

/// The attributes that a call names, and the address of their values in the guest's memory.
fn named(exit: &Exit<'_>, call: &Call) -> Result<(core::ops::Range<u32>, GuestPhysical), SbiError> {
    let [_, first, count, low, high, _] = call.arguments;
    let attributes = attributes::range(first, count)?;
    let size = ATTRIBUTE_SIZE * attributes.len() as u64;
    let address = GuestPhysical::new(low);
    let is_memory = high == 0
        && low.is_multiple_of(ATTRIBUTE_SIZE)
        && exit.vm.memory.bytes(address, size).is_some();
    match is_memory {
        true => Ok((attributes, address)),
        false => Err(SbiError::InvalidAddress),
    }
}

fn read(exit: &Exit<'_>, event: Event, call: &Call) -> SbiResult {
    let (attributes, address) = named(exit, call)?;
    let own = usize::from(exit.vcpu.index);
    let mut values = [0; ATTRIBUTES as usize];
    // Together, so that they agree. The guest's memory is written without the lock.
    let mut events = exit.vm.software_events.lock();
    for (attribute, value) in attributes.clone().zip(&mut values) {
        *value = events.read((own, event), attribute)?;
    }
    drop(events);
    for (place, value) in values.into_iter().take(attributes.len()).enumerate() {
        let at = address.checked_add(ATTRIBUTE_SIZE * place as u64);
        let written = at.and_then(|at| {
            exit.vm
                .memory
                .set_doubleword(at, value, &Physical::default())
        });
        written.ok_or(SbiError::Failed)?;
    }
    Ok(0)
}

fn write(exit: &Exit<'_>, event: Event, call: &Call) -> SbiResult {
    let (attributes, address) = named(exit, call)?;
    let own = usize::from(exit.vcpu.index);
    // The guest may change its memory meanwhile, so each value is read once.
    let mut values = [0; ATTRIBUTES as usize];
    let values = values.get_mut(..attributes.len()).unwrap_or_default();
    for (place, value) in values.iter_mut().enumerate() {
        let at = address.checked_add(ATTRIBUTE_SIZE * place as u64);
        let read = at.and_then(|at| exit.vm.memory.doubleword(at, &Physical::default()));
        *value = read.ok_or(SbiError::Failed)?;
    }
    let mut events = exit.vm.software_events.lock();
    events.write((own, event), attributes.start, values)?;
    Ok(0)
}
