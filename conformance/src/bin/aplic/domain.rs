//! A domain: configuration, delegation, pending and enable bits.

use super::*;

pub fn domaincfg_is_warl() -> Outcome {
    for domain in [M, S] {
        write(domain, 0, IE);
        same("domaincfg but for DM", read(domain, 0) & !4, 0x8000_0100)?;
        write(domain, 0, 0);
        same("domaincfg but for DM", read(domain, 0) & !4, 0x8000_0000)?;
        // All the rest is for MSI delivery mode.
        write(domain, 0, 4);
        same("DM", read(domain, 0) & 4, 4)?;
    }
    Ok(())
}

pub fn sourcecfg_is_warl() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, 0);
        for mode in [DETACHED, EDGE1, 5, LEVEL1, LEVEL0] {
            configure(domain, IDLE, mode);
            same("sourcecfg", read(domain, 4 * IDLE as usize), mode.into())?;
        }
        for reserved in [2, 3] {
            configure(domain, IDLE, reserved);
            let mode = read(domain, 4 * IDLE as usize);
            same("a reserved mode", u64::from(mode == 2 || mode == 3), 0)?;
        }
        release(domain, IDLE);
    }
    Ok(())
}

pub fn no_such_source() -> Outcome {
    for source in [97, 1023] {
        configure(M, source, EDGE1);
        same("sourcecfg", read(M, 4 * source as usize), 0)?;
        target(M, source, 1);
        same("target", read(M, TARGET + 4 * source as usize), 0)?;
    }
    write(M, SETIPNUM, 97);
    write(M, SETIENUM, 97);
    same("setip[3]", read(M, SETIP + 12), 0)?;
    same("setie[3]", read(M, SETIE + 12), 0)
}

pub fn inactive_is_zero() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, 0);
        write(domain, SETIPNUM, IDLE);
        write(domain, SETIENUM, IDLE);
        target(domain, IDLE, 5);
        same("pending", bit(domain, SETIP, IDLE), 0)?;
        same("enabled", bit(domain, SETIE, IDLE), 0)?;
        same("target", read(domain, TARGET + 4 * IDLE as usize), 0)?;
        configure(domain, IDLE, DETACHED);
        write(domain, SETIPNUM, IDLE);
        write(domain, SETIENUM, IDLE);
        configure(domain, IDLE, 0);
        same(
            "pending after it went inactive",
            bit(domain, SETIP, IDLE),
            0,
        )?;
        same(
            "enabled after it went inactive",
            bit(domain, SETIE, IDLE),
            0,
        )?;
        configure(domain, IDLE, DETACHED);
        same(
            "pending when it is active again",
            bit(domain, SETIP, IDLE),
            0,
        )?;
        same(
            "enabled when it is active again",
            bit(domain, SETIE, IDLE),
            0,
        )?;
        release(domain, IDLE);
    }
    Ok(())
}

pub fn leaf_cannot_delegate() -> Outcome {
    claim(S, IDLE, EDGE1);
    configure(S, IDLE, DELEGATE | EDGE1);
    let found = read(S, 4 * IDLE as usize);
    release(S, IDLE);
    same("sourcecfg", found, 0)
}

pub fn delegation() -> Outcome {
    claim(M, IDLE, EDGE1);
    configure(S, IDLE, EDGE1);
    same(
        "the child's sourcecfg without delegation",
        read(S, 4 * IDLE as usize),
        0,
    )?;
    configure(M, IDLE, DELEGATE);
    same(
        "the root's sourcecfg",
        read(M, 4 * IDLE as usize),
        DELEGATE.into(),
    )?;
    same(
        "the child's sourcecfg at first",
        read(S, 4 * IDLE as usize),
        0,
    )?;
    configure(S, IDLE, EDGE1);
    same(
        "the child's sourcecfg",
        read(S, 4 * IDLE as usize),
        EDGE1.into(),
    )?;
    write(M, SETIPNUM, IDLE);
    same("pending in the root", bit(M, SETIP, IDLE), 0)?;
    configure(M, IDLE, 0);
    same(
        "the child's sourcecfg after it",
        read(S, 4 * IDLE as usize),
        0,
    )
}

pub fn pending_by_software() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, DETACHED);
        let word = IDLE as usize / 32 * 4;
        let mask = 1 << (IDLE % 32);
        for (set, value) in [(SETIP + word, mask), (SETIPNUM, IDLE), (SETIPNUM_LE, IDLE)] {
            for (clear, back) in [(IN_CLRIP + word, mask), (CLRIPNUM, IDLE)] {
                write(domain, set, value);
                same("pending after it was set", bit(domain, SETIP, IDLE), 1)?;
                write(domain, clear, back);
                same("pending after it was cleared", bit(domain, SETIP, IDLE), 0)?;
            }
        }
        for write_only in [SETIPNUM, CLRIPNUM, SETIPNUM_LE] {
            same("a write-only register", read(domain, write_only), 0)?;
        }
        release(domain, IDLE);
    }
    Ok(())
}

pub fn enable_by_software() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, DETACHED);
        let word = IDLE as usize / 32 * 4;
        let mask = 1 << (IDLE % 32);
        for (set, value) in [(SETIE + word, mask), (SETIENUM, IDLE)] {
            for (clear, back) in [(CLRIE + word, mask), (CLRIENUM, IDLE)] {
                write(domain, set, value);
                same("enabled after it was set", bit(domain, SETIE, IDLE), 1)?;
                write(domain, clear, back);
                same("enabled after it was cleared", bit(domain, SETIE, IDLE), 0)?;
            }
        }
        for write_only in [SETIENUM, CLRIENUM, CLRIE + word] {
            same("a write-only register", read(domain, write_only), 0)?;
        }
        release(domain, IDLE);
    }
    Ok(())
}

pub fn level_needs_its_input() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, LEVEL1);
        same("in_clrip", bit(domain, IN_CLRIP, IDLE), 0)?;
        write(domain, SETIPNUM, IDLE);
        same("pending after setipnum", bit(domain, SETIP, IDLE), 0)?;
        write(domain, SETIP + IDLE as usize / 32 * 4, 1 << (IDLE % 32));
        same("pending after setip", bit(domain, SETIP, IDLE), 0)?;
        release(domain, IDLE);
    }
    Ok(())
}

pub fn inverted_level() -> Outcome {
    for domain in [M, S] {
        claim(domain, IDLE, LEVEL0);
        same("in_clrip", bit(domain, IN_CLRIP, IDLE), 1)?;
        write(domain, SETIPNUM, IDLE);
        same("pending after setipnum", bit(domain, SETIP, IDLE), 1)?;
        write(domain, CLRIPNUM, IDLE);
        same("pending after clripnum", bit(domain, SETIP, IDLE), 0)?;
        release(domain, IDLE);
    }
    Ok(())
}
