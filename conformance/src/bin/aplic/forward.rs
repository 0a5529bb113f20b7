//! Forwarding by messages: addresses, targets, levels and edges.

use super::*;

pub fn address_registers() -> Outcome {
    set_addresses();
    same("mmsiaddrcfg", read(M, MMSIADDRCFG), 0x24000)?;
    same("mmsiaddrcfgh", read(M, MMSIADDRCFGH), 1 << 12)?;
    same("smsiaddrcfg", read(M, SMSIADDRCFG), 0x28000)?;
    same(
        "smsiaddrcfgh",
        read(M, SMSIADDRCFGH),
        u64::from(device::guest_index_bits()) << 20,
    )?;
    for offset in [MMSIADDRCFG, MMSIADDRCFGH, SMSIADDRCFG, SMSIADDRCFGH] {
        write(S, offset, u32::MAX);
        same("at supervisor level", read(S, offset), 0)?;
    }
    Ok(())
}

pub fn target_fields() -> Outcome {
    claim(S, IDLE, DETACHED);
    target(S, IDLE, 1 << 18 | 7 << 12 | 0xff);
    let supervisor = read(S, TARGET + 4 * IDLE as usize);
    release(S, IDLE);
    same(
        "target at supervisor level",
        supervisor,
        1 << 18 | 7 << 12 | 0xff,
    )?;
    claim(M, IDLE, DETACHED);
    target(M, IDLE, 1 << 18 | 7 << 12 | 0xff);
    let machine = read(M, TARGET + 4 * IDLE as usize);
    release(M, IDLE);
    same("target at machine level", machine, 1 << 18 | 0xff)
}

pub fn forward_to_machine() -> Outcome {
    set_addresses();
    open_machine();
    claim(M, IDLE, DETACHED);
    target(M, IDLE, 33);
    write(M, SETIENUM, IDLE);
    write(M, 0, IE | 4);
    write(M, SETIPNUM, IDLE);
    let top = (0..1000).find_map(|_| csr::swap::<MTOPEI>(0).ok().filter(|&top| top != 0));
    release(M, IDLE);
    same("mtopei", top.unwrap_or(0), 33 << 16 | 33)
}

pub fn forward_to_supervisor() -> Outcome {
    set_addresses();
    open_supervisor();
    claim(S, IDLE, DETACHED);
    target(S, IDLE, 34);
    write(S, SETIENUM, IDLE);
    write(S, 0, IE | 4);
    write(S, SETIPNUM, IDLE);
    let found = message();
    release(S, IDLE);
    same("the identity", found, 34)
}

pub fn forward_to_guest() -> Outcome {
    set_addresses();
    claim(S, IDLE, DETACHED);
    write(S, SETIENUM, IDLE);
    write(S, 0, IE | 4);
    for guest in 1..=7 {
        let _ = csr::clear::<HSTATUS>(0x3f << 12);
        let _ = csr::set::<HSTATUS>(guest << 12);
        for (select, value) in [(0x80, 0), (0xc0, u64::MAX), (0x70, 1)] {
            let _ = write_indirect::<VSISELECT, VSIREG>(select, value);
        }
        target(S, IDLE, (guest as u32) << 12 | 35);
        write(S, SETIPNUM, IDLE);
        let raised = (0..1000).any(|_| csr::read::<HGEIP>() == Ok(1 << guest));
        same("hgeip", raised.into(), 1)?;
        gives("vstopei", csr::swap::<VSTOPEI>(0), 35 << 16 | 35)?;
    }
    release(S, IDLE);
    Ok(())
}

pub fn forwarding_conditions() -> Outcome {
    set_addresses();
    open_supervisor();
    claim(S, IDLE, DETACHED);
    target(S, IDLE, 36);
    write(S, SETIPNUM, IDLE);
    same("pending before", bit(S, SETIP, IDLE), 1)?;
    write(S, 0, IE | 4);
    same("a message that is not enabled", message(), 0)?;
    write(S, 0, 4);
    write(S, SETIENUM, IDLE);
    same("a message without IE", message(), 0)?;
    same("pending still", bit(S, SETIP, IDLE), 1)?;
    write(S, 0, IE | 4);
    same("the message", message(), 36)?;
    same("pending after it", bit(S, SETIP, IDLE), 0)?;
    release(S, IDLE);
    Ok(())
}

/// Routes the UART's interrupt to identity 37 of the supervisor-level file.
pub fn route_uart(mode: u32) {
    set_addresses();
    open_supervisor();
    drive_uart(false);
    claim(S, UART, mode);
    target(S, UART, 37);
    write(S, SETIENUM, UART);
    write(S, 0, IE | 4);
}

pub fn release_uart() {
    drive_uart(false);
    release(S, UART);
}

pub fn level_is_sent_once() -> Outcome {
    route_uart(LEVEL1);
    drive_uart(true);
    same("in_clrip", bit(S, IN_CLRIP, UART), 1)?;
    same("the message", message(), 37)?;
    same("pending after it", bit(S, SETIP, UART), 0)?;
    same("a second message", message(), 0)?;
    write(S, SETIPNUM, UART);
    same("the message that setipnum asked for", message(), 37)?;
    drive_uart(false);
    write(S, SETIPNUM, UART);
    same("a message for a low input", message(), 0)?;
    drive_uart(true);
    same("the message of the next rise", message(), 37)?;
    release_uart();
    Ok(())
}

pub fn level_falls() -> Outcome {
    route_uart(LEVEL1);
    write(S, CLRIENUM, UART);
    drive_uart(true);
    same("pending", bit(S, SETIP, UART), 1)?;
    drive_uart(false);
    same("pending after the fall", bit(S, SETIP, UART), 0)?;
    release_uart();
    Ok(())
}

pub fn edge_counts_transitions() -> Outcome {
    route_uart(EDGE1);
    for _ in 0..3 {
        drive_uart(true);
        same("the message of a rise", message(), 37)?;
        drive_uart(false);
        same("a message of a fall", message(), 0)?;
    }
    write(S, CLRIENUM, UART);
    drive_uart(true);
    drive_uart(false);
    same("pending outlives the input", bit(S, SETIP, UART), 1)?;
    release_uart();
    Ok(())
}

pub fn genmsi_sends() -> Outcome {
    set_addresses();
    open_supervisor();
    write(S, 0, 4);
    write(S, GENMSI, 38);
    same("the message", message(), 38)?;
    let idle = (0..1000).any(|_| read(S, GENMSI) & 1 << 12 == 0);
    same("not busy", idle.into(), 1)
}

pub fn widths() -> Outcome {
    // What other widths do is open, but they have no effect.
    let before = read(S, 0);
    // SAFETY: a register of a device; a fault is skipped.
    unsafe { ((S + 1) as *mut u8).write_volatile(1) };
    same("domaincfg after a write of a byte", read(S, 0), before)
}

/// The last test: a locked register stays so.
pub fn lock() -> Outcome {
    set_addresses();
    write(M, MMSIADDRCFGH, 1 << 31 | 1 << 12);
    same("L", read(M, MMSIADDRCFGH) >> 31, 1)?;
    for offset in [MMSIADDRCFG, MMSIADDRCFGH, SMSIADDRCFG, SMSIADDRCFGH] {
        let before = read(M, offset);
        write(M, offset, 0x7654_3210);
        same("a locked register", read(M, offset), before)?;
    }
    forward_to_supervisor()
}
