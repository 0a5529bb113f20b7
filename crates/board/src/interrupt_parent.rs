//! Interrupts of devices, as a guest's tree has them.

use crate::writer::TreeWriter;

/// Wires of devices.
#[derive(Clone, Copy)]
pub(crate) struct InterruptParent {
    /// Handle of the devices' interrupt controller.
    controller: u32,
    /// Set if the controller distinguishes trigger modes.
    has_modes: bool,
}

impl InterruptParent {
    /// Wires to the controller with this handle.
    pub(crate) const fn new(controller: u32, has_modes: bool) -> Self {
        Self {
            controller,
            has_modes,
        }
    }

    /// An interrupt, with the handle of the controller before it.
    pub(crate) fn specifier(self, source: u32, mode: u32) -> impl Iterator<Item = u32> {
        let cells = [self.controller, source, mode];
        cells.into_iter().take(if self.has_modes { 3 } else { 2 })
    }

    pub(crate) fn write(self, fdt: &mut TreeWriter, source: u32, mode: u32) {
        fdt.property_u32("interrupt-parent", self.controller);
        let cells = [source, mode];
        let cells = if self.has_modes {
            &cells[..]
        } else {
            &cells[..1]
        };
        fdt.property_array_u32("interrupts", cells);
    }
}
