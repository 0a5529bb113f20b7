//! Every key of a system file, with the limits that reading it has.

mod devices;
mod root;
mod vm;

use abi::system::{MAX_BOOTARGS_LENGTH, MAX_NAME_LENGTH, MEMORY_GRANULE, PAUSE_LOOP};
use system::cache::BUILT_FILES;
use system::{Bytes, Duration, EXERCISER, FileName, SHUFFLED};

/// What a key takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A whole number within limits.
    Integer(u64, u64),
    /// One of these words.
    Word(Vec<&'static str>),
    /// An amount of memory: a text of a number and a unit.
    Size,
    /// A time within limits in microseconds: a text of a number and a unit.
    Time(u64, u64),
    /// Any text.
    Text,
    /// A text that names a file.
    File,
    /// `true` or `false`.
    Boolean,
    /// A list of whole numbers within limits.
    Integers(u64, u64),
    /// A list of names.
    Names,
    /// A list of names, each of which may be a table of this path.
    NamesOr(&'static str),
    /// A list of tables of this path.
    Tables(&'static str),
    /// A table of this path.
    Table(&'static str),
}

/// A key.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The table that it stands in: empty for the file's own, `vm.NAME`, `vm.NAME.disks`, `vm.NAME.network` or `vm.NAME.terminals`.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds without it; `None` if it must be given.
    pub default: Option<String>,
    /// A value as a file has it.
    pub example: &'static str,
    /// What it is.
    pub what: &'static str,
}

/// The file's own table.
pub const ROOT: &str = "";
/// A VM's table.
pub const VM: &str = "vm.NAME";
/// A disk's table.
pub const DISK: &str = "vm.NAME.disks";
/// The same of a slice.
pub const SLICE: &str = "vm.NAME.disks, of a slice";
/// The table of a disk that VMs share.
pub const SHARED_DISK: &str = "disk.NAME";
/// The table of a switch between VMs.
pub const SWITCH: &str = "switch.NAME";
/// The table of a VM's terminals.
pub const TERMINALS: &str = "vm.NAME.terminals";
/// A network card of a VM.
pub const CARD: &str = "vm.NAME.network";

fn words<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> Kind {
    Kind::Word(all.iter().map(|value| name(*value)).collect())
}

fn wide<T: Copy + Into<u64>>(limits: &std::ops::RangeInclusive<T>) -> (u64, u64) {
    ((*limits.start()).into(), (*limits.end()).into())
}

/// Every key, table by table.
pub fn keys() -> Vec<Key> {
    [root::keys(), vm::keys(), devices::keys()].concat()
}

fn key(
    table: &'static str,
    name: &'static str,
    kind: Kind,
    default: Option<String>,
    example: &'static str,
    what: &'static str,
) -> Key {
    Key {
        table,
        name,
        kind,
        default,
        example,
        what,
    }
}

fn text(text: &str) -> Option<String> {
    Some(String::from(text))
}

fn integer((low, high): (u64, u64)) -> Kind {
    Kind::Integer(low, high)
}

impl Key {
    /// What it takes, in words.
    pub fn takes(&self) -> String {
        let limits = |low: &u64, high: &u64| format!("{low} to {high}");
        match &self.kind {
            Kind::Integer(low, high) => format!("a whole number, {}", limits(low, high)),
            Kind::Word(words) => words
                .iter()
                .map(|word| format!("`{word}`"))
                .collect::<Vec<_>>()
                .join(", "),
            Kind::Size if self.table == SLICE => {
                format!("a size in multiples of 512 bytes ({})", Bytes::units())
            }
            Kind::Size => format!(
                "a size in multiples of {} ({})",
                Bytes(MEMORY_GRANULE),
                Bytes::units()
            ),
            Kind::Time(low, high) => format!(
                "a time, {} to {} ({})",
                Duration(*low),
                Duration(*high),
                Duration::units()
            ),
            Kind::Text if self.name == "command-line" => {
                format!("a text of at most {MAX_BOOTARGS_LENGTH} bytes")
            }
            Kind::Text => String::from("a name"),
            Kind::File => {
                let built = BUILT_FILES.iter().chain(&[EXERCISER, SHUFFLED]);
                let built: Vec<String> = built
                    .map(|name| format!("`{}{name}`", FileName::BUILT))
                    .collect();
                format!(
                    "a file, seen from the system file's folder, or one of {}",
                    built.join(", ")
                )
            }
            Kind::Boolean => String::from("`true` or `false`"),
            Kind::Integers(low, high) => format!("a list of whole numbers, {}", limits(low, high)),
            Kind::Names => format!(
                "a list of names: a letter, then letters, digits, - and _, at most {MAX_NAME_LENGTH}"
            ),
            Kind::NamesOr(table) => {
                format!("a list of names, each of which may be a table with the keys of `{table}`")
            }
            Kind::Tables(table) => format!("a list of tables with the keys of `{table}`"),
            Kind::Table(table) => format!("a table with the keys of `{table}`"),
        }
    }
}

/// One of the parameters of pause loops, which are the same for the system and for a VM.
fn pause_loop(table: &'static str, name: &'static str) -> Key {
    let (usual, example, what) = match name {
        "ple-gap" => (
            "128",
            "128",
            "cycles within which PAUSEs that follow each other are one loop, on harts with xpartitaple",
        ),
        "ple-window" => (
            "4096",
            "4096",
            "cycles after which a pause loop exits, on harts with xpartitaple; 0 is never",
        ),
        _ => (
            "ple-window's",
            "65536",
            "cycles up to which ple-window doubles at each exit, until the vCPU is dispatched again",
        ),
    };
    let usual = if table == VM { "the system's" } else { usual };
    let (low, high) = wide(&PAUSE_LOOP);
    Key {
        table,
        name,
        kind: Kind::Integer(low, high),
        default: Some(String::from(usual)),
        example,
        what,
    }
}
