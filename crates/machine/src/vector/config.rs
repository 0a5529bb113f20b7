//! VSETVLI, VSETIVLI and VSETVL: "Configuration-Setting Instructions".

use super::encoding::Reserved;
use super::issue::{Checked, Issue, Output};
use super::vtype::Vtype;

impl Issue<'_> {
    /// Sets vtype and vl; gives the new vl.
    pub(super) fn configure(&mut self) -> Checked {
        let raw = self.encoding.0;
        let (kind, rs1) = (raw >> 30, self.encoding.vs1());
        let (vtype, wanted) = match kind {
            0 | 1 => (u64::from(raw >> 20 & 0x7ff), self.wanted(rs1)),
            3 => (u64::from(raw >> 20 & 0x3ff), rs1.into()),
            _ if raw >> 25 == 0x40 => (self.second, self.wanted(rs1)),
            _ => return Err(Reserved),
        };
        let vtype = Vtype::from_bits(vtype, self.unit.length());
        Ok(Output::Integer(self.unit.configure(vtype, wanted)))
    }

    /// AVL: of x0 as many elements as fit, or with rd = x0 as many as there are. If fewer fit then, which the specification
    /// reserves, vl becomes VLMAX.
    fn wanted(&self, rs1: u8) -> u64 {
        match (rs1, self.encoding.vd()) {
            (0, 0) => self.unit.vl() as u64,
            (0, _) => u64::MAX,
            _ => self.integer,
        }
    }
}
