//! All CSRs by number.

use super::row::Row;
use super::rows;

/// How many rows there are.
const COUNT: usize = {
    let mut count = 0;
    let mut table = 0;
    while table < rows::TABLES.len() {
        count += rows::TABLES[table].len();
        table += 1;
    }
    count
};

/// The rows of all tables.
static ROWS: [Row; COUNT] = {
    let mut all = [Row::zero(0, ""); COUNT];
    let (mut count, mut table) = (0, 0);
    while table < rows::TABLES.len() {
        let rows = rows::TABLES[table];
        let mut index = 0;
        while index < rows.len() {
            all[count] = rows[index];
            count += 1;
            index += 1;
        }
        table += 1;
    }
    all
};

/// Mark of a number without a CSR.
const NONE: u8 = u8::MAX;

/// The row of each number.
static INDEX: [u8; 4096] = {
    let mut places = [NONE; 4096];
    let mut index = 0;
    while index < COUNT {
        assert!(index < NONE as usize);
        let mut number = ROWS[index].first;
        while number <= ROWS[index].last {
            // A number that two rows have would be two CSRs.
            assert!(places[number as usize] == NONE);
            places[number as usize] = index as u8;
            number += 1;
        }
        index += 1;
    }
    places
};

/// The row of a number; `None` if this machine has no such CSR.
#[inline]
pub(super) fn row(number: u16) -> Option<&'static Row> {
    let index = INDEX.get(usize::from(number))?;
    ROWS.get(usize::from(*index))
}

/// The name of a CSR that this machine has, as in the specification; `None` for other numbers.
#[must_use]
pub fn name(number: u16) -> Option<String> {
    let row = row(number)?;
    let index = number - row.first;
    if index == 0 {
        return Some(row.name.to_owned());
    }
    let stem = row.name.trim_end_matches(|c: char| c.is_ascii_digit());
    let first: u16 = row.name.get(stem.len()..)?.parse().ok()?;
    Some(format!("{stem}{}", first + index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_specification() {
        for (number, expected) in [
            (0x001, "fflags"),
            (0x180, "satp"),
            (0x3a2, "pmpcfg2"),
            (0x3bf, "pmpaddr15"),
            (0xb03, "mhpmcounter3"),
            (0xc1f, "hpmcounter31"),
            (0x60d, "hstateen1"),
        ] {
            assert_eq!(name(number).as_deref(), Some(expected), "{number:#x}");
        }
        assert_eq!((name(0x3a1), name(0x1000)), (None, None));
    }

    #[test]
    fn no_two_csrs_have_one_name() {
        let mut names: Vec<String> = (0..4096).filter_map(name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn vs_csrs_replace_supervisor_csrs() {
        for row in ROWS.iter().filter(|row| row.guest != 0) {
            let guest = name(row.guest).unwrap_or_default();
            assert_eq!(guest, format!("v{}", row.name));
        }
    }
}
