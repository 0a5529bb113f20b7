//! A hart's state as text.

use std::fmt::Write;

use super::Hart;

impl Hart {
    /// The registers that matter most when something has gone wrong, one line each.
    #[must_use]
    pub fn describe(&self) -> String {
        let csrs = &self.csrs;
        let mut text = format!(
            "hart {}: {} pc {:#x}, {} instructions, {} cycles, {}\n",
            self.id.0,
            self.mode().name(),
            self.pc,
            self.retired,
            self.cycles,
            self.wait.name()
        );
        for (index, value) in self.x.iter().take(32).enumerate() {
            let end = if index % 4 == 3 { "\n" } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(text, "  x{index:<2} {value:016x}{end}");
        }
        let shown = [
            ("mstatus", csrs.mstatus),
            ("mepc", csrs.mepc),
            ("mcause", csrs.mcause),
            ("mtval", csrs.mtval),
            ("mie", csrs.mie),
            ("mip", csrs.mip),
            ("sepc", csrs.sepc),
            ("scause", csrs.scause),
            ("stval", csrs.stval),
            ("satp", csrs.satp),
            ("hstatus", csrs.hstatus),
            ("hgatp", csrs.hgatp),
            ("vsstatus", csrs.vsstatus),
            ("vsepc", csrs.vsepc),
            ("vscause", csrs.vscause),
            ("vsatp", csrs.vsatp),
        ];
        for (index, (name, value)) in shown.into_iter().enumerate() {
            let end = if index % 4 == 3 { "\n" } else { "" };
            let _ = write!(text, "  {name:<8} {value:016x}{end}");
        }
        text
    }
}
