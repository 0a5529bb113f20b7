//! CSRs of the vector unit: "V", "Vector Extension Programmer's Model".

use crate::csr::number as csr;
use crate::zicsr::row::{Read, Row, Write};

pub(in crate::zicsr) const ROWS: &[Row] = &[
    Row::new(
        csr::VSTART,
        "vstart",
        Read::Hart(|hart, _, _| Ok(hart.vector.vstart.into())),
        Write::Hart(|hart, _, value, _| {
            hart.vector.set_vstart(value);
            Ok(())
        }),
    )
    .of_vectors(),
    Row::new(
        csr::VXSAT,
        "vxsat",
        Read::Hart(|hart, _, _| Ok(hart.vector.vxsat.into())),
        Write::Hart(|hart, _, value, _| {
            hart.vector.vxsat = value & 1 != 0;
            Ok(())
        }),
    )
    .of_vectors(),
    Row::new(
        csr::VXRM,
        "vxrm",
        Read::Hart(|hart, _, _| Ok(hart.vector.vxrm.into())),
        Write::Hart(|hart, _, value, _| {
            hart.vector.vxrm = (value & 3) as u8;
            Ok(())
        }),
    )
    .of_vectors(),
    Row::new(
        csr::VCSR,
        "vcsr",
        Read::Hart(
            |hart, _, _| Ok(u64::from(hart.vector.vxrm) << 1 | u64::from(hart.vector.vxsat)),
        ),
        Write::Hart(|hart, _, value, _| {
            hart.vector.vxsat = value & 1 != 0;
            hart.vector.vxrm = (value >> 1 & 3) as u8;
            Ok(())
        }),
    )
    .of_vectors(),
    Row::read_only(
        csr::VL,
        "vl",
        Read::Hart(|hart, _, _| Ok(hart.vector.vl() as u64)),
    )
    .of_vectors(),
    Row::read_only(
        csr::VTYPE,
        "vtype",
        Read::Hart(|hart, _, _| Ok(hart.vector.vtype().bits())),
    )
    .of_vectors(),
    Row::read_only(
        csr::VLENB,
        "vlenb",
        Read::Hart(|hart, _, _| Ok(hart.vector.vlenb() as u64)),
    )
    .of_vectors(),
];
