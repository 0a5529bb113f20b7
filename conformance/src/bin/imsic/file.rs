//! A file by itself: registers, page, *topei, and the interrupt that M-mode takes.

use super::*;

pub fn delivery_is_warl() -> Outcome {
    for value in [1, 0] {
        gives("the write", write_machine(EIDELIVERY, value), value)?;
        gives("eidelivery", read_machine(EIDELIVERY), value)?;
    }
    let _ = write_machine(EIDELIVERY, 0xfffe);
    let legal = matches!(read_machine(EIDELIVERY), Ok(0 | 1 | 0x4000_0000));
    same("a legal value after a write of another", legal.into(), 1)
}

pub fn threshold_holds_identities() -> Outcome {
    for value in [1, 63, 128, 255, 0] {
        gives("the write", write_machine(EITHRESHOLD, value), value)?;
        gives("eithreshold", read_machine(EITHRESHOLD), value)?;
    }
    Ok(())
}

pub fn arrays_hold_bits() -> Outcome {
    close(write_machine);
    for (select, all) in [
        (EIP0, !1),
        (EIP0 + 6, u64::MAX),
        (EIE0, !1),
        (EIE0 + 6, u64::MAX),
    ] {
        gives(
            "the write of ones",
            write_machine(select, u64::MAX),
            u64::MAX,
        )?;
        gives("all ones", read_machine(select), all)?;
        gives("the write of zeros", write_machine(select, 0), 0)?;
        gives("all zeros", read_machine(select), 0)?;
    }
    Ok(())
}

pub fn odd_registers_are_missing() -> Outcome {
    for select in [0x81, 0xbf, 0xc1, 0xff] {
        raises("a read in M-mode", read_machine(select), ILLEGAL)?;
        raises("a write in M-mode", write_machine(select, 0), ILLEGAL)?;
        raises("a read of sireg", read_supervisor(select), ILLEGAL)?;
    }
    Ok(())
}

pub fn reserved_registers_read_zero() -> Outcome {
    for select in [0x71, 0x73, 0x7f] {
        gives("the write", write_machine(select, 1), 1)?;
        gives("the register", read_machine(select), 0)?;
    }
    Ok(())
}

pub fn page_sets_pending() -> Outcome {
    close(write_machine);
    for identity in [1, 63, 64, 255] {
        device::write(machine_file(0), identity);
        let select = EIP0 + u64::from(identity / 64 * 2);
        gives(
            "the pending bits",
            read_machine(select),
            1 << (identity % 64),
        )?;
        let _ = write_machine(select, 0);
    }
    Ok(())
}

pub fn page_ignores_others() -> Outcome {
    close(write_machine);
    for identity in [0, 256, 0x1_0001, u32::MAX] {
        device::write(machine_file(0), identity);
    }
    for select in (EIP0..0x88).step_by(2) {
        gives("the pending bits", read_machine(select), 0)?;
    }
    Ok(())
}

pub fn page_reads_zero() -> Outcome {
    device::write(machine_file(0), 9);
    for offset in [0, 4, 8, 0xffc] {
        same("a word", device::read(machine_file(0) + offset).into(), 0)?;
    }
    Ok(())
}

pub fn big_endian_port() -> Outcome {
    close(write_machine);
    device::write(machine_file(0) + 4, 5_u32.swap_bytes());
    let pending = read_machine(EIP0).unwrap_or(u64::MAX);
    same("other pending bits", pending & !(1 << 5), 0)
}

pub fn top_is_lowest() -> Outcome {
    open(write_machine);
    gives("mtopei with nothing pending", csr::read::<MTOPEI>(), 0)?;
    for (identity, expected) in [(40, 40), (63, 40), (2, 2)] {
        device::write(machine_file(0), identity);
        gives("mtopei", csr::read::<MTOPEI>(), expected << 16 | expected)?;
    }
    let _ = write_machine(EIE0, !(1 << 2));
    gives(
        "mtopei with identity 2 disabled",
        csr::read::<MTOPEI>(),
        40 << 16 | 40,
    )
}

pub fn claim_clears() -> Outcome {
    open(write_machine);
    for identity in [30, 7, 55] {
        device::write(machine_file(0), identity);
    }
    for expected in [7, 30, 55] {
        gives(
            "csrrw",
            csr::swap::<MTOPEI>(0xffff_ffff),
            expected << 16 | expected,
        )?;
        let pending = read_machine(EIP0).unwrap_or(0);
        same("the pending bit after it", pending >> expected & 1, 0)?;
    }
    gives("with nothing left", csr::swap::<MTOPEI>(0), 0)
}

pub fn threshold_masks() -> Outcome {
    open(write_machine);
    device::write(machine_file(0), 20);
    for (threshold, top) in [(20, 0), (21, 20), (1, 0), (0, 20)] {
        let _ = write_machine(EITHRESHOLD, threshold);
        gives("mtopei", csr::read::<MTOPEI>(), top << 16 | top)?;
        let wire = csr::read::<MIP>().unwrap_or(0) & MEIP != 0;
        same("mip.MEIP", wire.into(), (top != 0).into())?;
    }
    Ok(())
}

pub fn delivery_gates_the_wire() -> Outcome {
    open(write_machine);
    device::write(machine_file(0), 3);
    same("mip.MEIP", csr::read::<MIP>().unwrap_or(0) & MEIP, MEIP)?;
    let _ = csr::clear::<MIP>(MEIP);
    same(
        "mip.MEIP is read-only",
        csr::read::<MIP>().unwrap_or(0) & MEIP,
        MEIP,
    )?;
    let _ = write_machine(EIDELIVERY, 0);
    same(
        "mip.MEIP without delivery",
        csr::read::<MIP>().unwrap_or(0) & MEIP,
        0,
    )?;
    gives(
        "mtopei without delivery",
        csr::read::<MTOPEI>(),
        3 << 16 | 3,
    )
}

pub fn machine_interrupt() -> Outcome {
    open(write_machine);
    let _ = csr::write::<MIE>(MEIP);
    let _ = csr::set::<MSTATUS>(8);
    trap::clear();
    device::write(machine_file(0), 12);
    let taken = (0..1000).find_map(|_| trap::interrupt());
    let _ = csr::clear::<MSTATUS>(8);
    let _ = csr::write::<MIE>(0);
    close(write_machine);
    same("the interrupt", taken.unwrap_or(0), 11)
}
