//! Tests, and the report about them.

use crate::device::{finish, print};

/// Mistake that a test found: where, the expected value, the value found.
#[derive(Debug, Clone, Copy)]
pub struct Failure {
    /// Subject of the check.
    pub what: &'static str,
    /// Value that the specification demands.
    pub expected: u64,
    /// Value that the machine gave.
    pub found: u64,
}

/// A test: passes, or fails at the first thing that is wrong.
pub type Test = (&'static str, fn() -> Result<(), Failure>);

/// Checks that two values are equal.
///
/// # Errors
/// The [`Failure`] that names `what`.
pub fn same(what: &'static str, found: u64, expected: u64) -> Result<(), Failure> {
    if found == expected {
        Ok(())
    } else {
        Err(Failure {
            what,
            expected,
            found,
        })
    }
}

/// A CSR access as one number: its value, or the exception code with bit 63 and bit 62.
pub fn plain(access: crate::csr::Access) -> u64 {
    access.unwrap_or_else(|cause| 3 << 62 | cause)
}

/// Checks that a CSR access gives a value.
///
/// # Errors
/// As [`same`]; an exception shows as its code with bits 63 and 62.
pub fn gives(what: &'static str, access: crate::csr::Access, value: u64) -> Result<(), Failure> {
    same(what, plain(access), value)
}

/// Checks that a CSR access raises an exception.
///
/// # Errors
/// As [`gives`].
pub fn raises(what: &'static str, access: crate::csr::Access, cause: u64) -> Result<(), Failure> {
    same(what, plain(access), plain(Err(cause)))
}

/// Runs the tests one after the other, reports each on a line, and ends the machine with the
/// number of failures.
pub fn run(name: &str, tests: &[Test]) -> ! {
    let mut failures = 0;
    for (test, body) in tests {
        match body() {
            Ok(()) => print(format_args!("{name}: ok: {test}\n")),
            Err(Failure {
                what,
                expected,
                found,
            }) => {
                failures += 1;
                print(format_args!(
                    "{name}: FAILED: {test}: {what}: expected {expected:#x}, found {found:#x}\n"
                ));
            }
        }
    }
    print(format_args!(
        "{name}: {} tests, {failures} failed\n",
        tests.len()
    ));
    finish(failures)
}

/// Names the tests of a program and makes it start with them.
#[macro_export]
macro_rules! suite {
    ($name:literal, $($test:ident: $what:literal,)*) => {
        #[unsafe(no_mangle)]
        extern "C" fn run_suite() -> ! {
            $crate::suite::run($name, &[$(($what, $test)),*])
        }
    };
}
