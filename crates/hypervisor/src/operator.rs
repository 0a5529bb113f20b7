//! temporary operator
use crate::system::Hypervisor;
pub fn input(system: &Hypervisor) {
    while let Some(byte) = crate::log::receive() {
        if byte == b'?' { crate::monitor::report(system); for v in &system.vcpus { let st = system.scheduler.lock().state(v.id); crate::say!("{:?} {:?} {:?} wait {:?} dl {} now {}", v.id, st, v.interrupts.lock().backing, v.waiting_on(), v.deadline.load(core::sync::atomic::Ordering::Relaxed), crate::hart::time()); } }
        if let Some(vm) = system.vms.first() { vm.receive(system, byte); }
    }
    system.aplic.served(system.board.uart.source);
}
