//! Names of the machine's events.

use machine::device::InterruptFile;
use riscv::interrupt;

/// An interrupt file.
pub(super) fn file_name(file: InterruptFile) -> String {
    match file {
        InterruptFile::Machine => String::from("machine"),
        InterruptFile::Supervisor => String::from("supervisor"),
        InterruptFile::Guest(number) => format!("guest {number}"),
    }
}

/// Interrupt codes of scause and vscause (privileged architecture, §Supervisor cause register; AIA).
pub(super) fn interrupt(code: u64) -> String {
    let name = match u32::try_from(code).unwrap_or(u32::MAX) {
        interrupt::SUPERVISOR_SOFTWARE | interrupt::VIRTUAL_SUPERVISOR_SOFTWARE => "software",
        interrupt::SUPERVISOR_TIMER | interrupt::VIRTUAL_SUPERVISOR_TIMER => "timer",
        interrupt::SUPERVISOR_EXTERNAL | interrupt::VIRTUAL_SUPERVISOR_EXTERNAL => "external",
        interrupt::SUPERVISOR_GUEST_EXTERNAL => "guest-external",
        interrupt::COUNTER_OVERFLOW => "overflow",
        _ => return code.to_string(),
    };
    String::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        assert_eq!(file_name(InterruptFile::Guest(3)), "guest 3");
        assert_eq!(file_name(InterruptFile::Supervisor), "supervisor");
    }
}
