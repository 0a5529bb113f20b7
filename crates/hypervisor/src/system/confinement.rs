//! Accesses of devices that IOMMUs have refused.

use crate::console::say;
use crate::devices::iommu::Fault;
use crate::system::Hypervisor;

/// Prints the accesses that IOMMUs have refused lately: of each VM a few after its start.
pub fn report(system: &Hypervisor) {
    for iommu in &system.iommus {
        iommu.faults(|fault| say_fault(system, fault));
        if iommu.take_failure() {
            say!(
                "an IOMMU has not answered and is switched off: the devices behind it reach no memory any more"
            );
        }
    }
}

#[cold]
fn say_fault(system: &Hypervisor, fault: Fault) {
    let Fault {
        domain,
        device,
        cause,
        address,
        last,
    } = fault;
    // Numbers at IOMMUs begin at 1.
    let place = domain.and_then(|number| usize::from(number).checked_sub(1));
    let name = place.and_then(|place| system.vms.get(place));
    let name = name.map_or("no VM", |vm| vm.settings.name.as_str());
    let end = if last { "; no more are printed" } else { "" };
    say!(
        "{name}: an IOMMU refuses device {device:#x} the address {address:#x} (cause {cause}){end}"
    );
}
