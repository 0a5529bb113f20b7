//! temporary operator
use crate::system::Hypervisor;
pub fn input(system: &Hypervisor) {
    while let Some(byte) = crate::log::receive() {
        if let Some(vm) = system.vms.first() { vm.receive(system, byte); }
    }
    system.aplic.served(system.board.uart.source);
}
