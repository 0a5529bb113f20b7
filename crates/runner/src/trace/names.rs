//! Names of the machine's events.

use machine::device::InterruptFile;

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
    let name = match code {
        1 | 2 => "software",
        5 | 6 => "timer",
        9 | 10 => "external",
        12 => "guest-external",
        13 => "overflow",
        other => return other.to_string(),
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
