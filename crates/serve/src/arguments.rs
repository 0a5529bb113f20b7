//! The command line: `NAME=PATH` for each disk, and options before or between them.

/// Most disks of a command line.
pub const MAX_DISKS: usize = abi::system::MAX_SERVED;
/// Most processes that work.
pub const MAX_WORKERS: u32 = 32;

/// A disk, and what keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk<'a> {
    /// Name of the disk in the system file.
    pub name: &'a [u8],
    /// Path of a block device or a file.
    pub path: &'a [u8],
}

/// A command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arguments<'a> {
    /// The disks; those behind the last are empty.
    pub disks: [Disk<'a>; MAX_DISKS],
    /// Processes that work.
    pub workers: u32,
    /// Seconds without a request after which the program ends, once there was one; 0 is never.
    pub idle: u32,
    /// Set if an answer to a write does not wait until the device has the data.
    pub writes_back: bool,
}

/// Mistake in a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake<'a> {
    /// An argument that is neither an option nor `NAME=PATH`.
    Unknown(&'a [u8]),
    /// A number out of range.
    BadNumber(&'a [u8]),
    /// More disks than a VM serves.
    TooMany,
    /// No disk.
    None,
}

impl<'a> Arguments<'a> {
    /// Reads the arguments behind the program's name.
    ///
    /// # Errors
    /// [`Mistake`].
    pub fn read(arguments: impl Iterator<Item = &'a [u8]>) -> Result<Self, Mistake<'a>> {
        let mut read = Self {
            disks: [Disk::default(); MAX_DISKS],
            workers: 4,
            idle: 0,
            writes_back: false,
        };
        let mut places = read.disks.iter_mut();
        let (mut workers, mut idle, mut any) = (4, 0, false);
        for argument in arguments {
            if argument == b"--write-back" {
                read.writes_back = true;
            } else if let Some(text) = argument.strip_prefix(b"--workers=") {
                let number = number(text).filter(|number| (1..=MAX_WORKERS).contains(number));
                workers = number.ok_or(Mistake::BadNumber(argument))?;
            } else if let Some(text) = argument.strip_prefix(b"--idle=") {
                idle = number(text).ok_or(Mistake::BadNumber(argument))?;
            } else {
                let at = argument.iter().position(|byte| *byte == b'=');
                let at = at.filter(|at| *at > 0 && argument.first() != Some(&b'-'));
                let (name, rest) = argument.split_at(at.ok_or(Mistake::Unknown(argument))?);
                let path = rest.get(1..).unwrap_or_default();
                if path.is_empty() {
                    return Err(Mistake::Unknown(argument));
                }
                *places.next().ok_or(Mistake::TooMany)? = Disk { name, path };
                any = true;
            }
        }
        (read.workers, read.idle) = (workers, idle);
        if any { Ok(read) } else { Err(Mistake::None) }
    }

    /// The disk of this name.
    #[must_use]
    pub fn disk(&self, name: &[u8]) -> Option<&Disk<'a>> {
        self.disks.iter().find(|disk| disk.name == name)
    }
}

fn number(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(arguments: &[&'a str]) -> Result<Arguments<'a>, Mistake<'a>> {
        Arguments::read(arguments.iter().map(|text| text.as_bytes()))
    }

    #[test]
    fn disks_and_options_are_read() {
        let line = [
            "--workers=2",
            "data=/dev/vda",
            "logs=/a=b",
            "--idle=3",
            "--write-back",
        ];
        let read = read(&line).unwrap();
        assert_eq!((read.workers, read.idle, read.writes_back), (2, 3, true));
        assert_eq!(read.disk(b"data").unwrap().path, b"/dev/vda");
        assert_eq!(read.disk(b"logs").unwrap().path, b"/a=b");
        assert_eq!(read.disk(b"other"), None);
    }

    #[test]
    fn mistakes_name_the_argument() {
        assert_eq!(read(&[]), Err(Mistake::None));
        assert_eq!(read(&["--workers=2"]), Err(Mistake::None));
        for text in ["data", "=/dev/vda", "data=", "--data=/dev/vda"] {
            assert_eq!(
                read(&[text]),
                Err(Mistake::Unknown(text.as_bytes())),
                "{text}"
            );
        }
        for text in ["--workers=0", "--workers=33", "--workers=", "--idle=x"] {
            assert_eq!(
                read(&[text]),
                Err(Mistake::BadNumber(text.as_bytes())),
                "{text}"
            );
        }
        assert_eq!(read(&["a=b"; MAX_DISKS + 1]), Err(Mistake::TooMany));
    }
}
