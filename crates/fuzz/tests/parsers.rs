//! Readers of files and messages from others take any bytes: they answer, soon, and with bounded memory.

use abi::cpio::Archive;
use abi::system::SystemDescription;
use fuzz::bytes::{Search, Searched, search};
use fuzz::draw::draw;
use std::alloc::{GlobalAlloc, Layout, System as Host};
use std::cell::Cell;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::image::{self, slots::Assignment};
use system::{Document, System};

/// Bytes that one thread has, and the most that it had since they were looked at.
struct Counted;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
    static MOST: Cell<u64> = const { Cell::new(0) };
}

fn count(more: u64, less: u64) {
    // A thread that ends frees what it had when its own variables are gone.
    let _ = NOW.try_with(|now| {
        now.set(now.get().wrapping_add(more).saturating_sub(less));
        let _ = MOST.try_with(|most| most.set(most.get().max(now.get())));
    });
}

// SAFETY: the host's allocator does all; the counts are no memory of it.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as u64, 0);
        // SAFETY: as the caller says.
        unsafe { Host.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(0, layout.size() as u64);
        // SAFETY: as the caller says.
        unsafe { Host.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as u64, layout.size() as u64);
        // SAFETY: as the caller says.
        unsafe { Host.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Memory that a reader may take for an input of at most 64 KiB.
const MAX_MEMORY: u64 = 64 << 20;

/// A reader: its name, inputs to begin with, words of its language, and how it takes an input.
struct Reader {
    name: &'static str,
    seeds: Vec<Vec<u8>>,
    words: &'static [&'static str],
    read: fn(&[u8]) -> String,
}

impl Reader {
    /// Searches, and fails the test with the input where one is taken wrongly.
    fn search(&self, inputs: u64, time: Option<Duration>) {
        let bounds = Search {
            seed: 1,
            inputs,
            time,
            patience: Duration::from_secs(2),
            words: self.words,
        };
        let read = |bytes: &[u8]| {
            let before = NOW.get();
            MOST.set(before);
            let answer = (self.read)(bytes);
            let took = MOST.get().saturating_sub(before);
            match took <= MAX_MEMORY {
                true => Ok(answer),
                false => Err(format!("it takes {} MiB", took >> 20)),
            }
        };
        let Searched {
            inputs,
            answers,
            find,
        } = search(&bounds, &self.seeds, &read);
        println!("{}: {inputs} inputs, {} answers", self.name, answers.len());
        if let Some((input, what)) = find {
            let path = std::env::temp_dir().join(format!("find-{}", self.name.replace(' ', "-")));
            std::fs::write(&path, &input).unwrap();
            panic!("{}: {what}; the input is in {}", self.name, path.display());
        }
        assert!(answers.len() > 1, "every input has the same answer");
    }

    fn short(&self) {
        self.search(3000, Some(Duration::from_secs(20)));
    }

    fn soak(&self) {
        self.search(u64::MAX, Some(Duration::from_secs(600)));
    }
}

/// Short form of an answer.
fn text<T, E: std::fmt::Display>(result: &Result<T, E>) -> String {
    match result {
        Ok(_) => String::from("it is read"),
        Err(error) => error.to_string(),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files with this ending in a folder of the tree.
fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|is| is == ending));
    paths.sort();
    assert!(!paths.is_empty(), "{folder}");
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

fn device_trees() -> Reader {
    let config = machine::Config::default().board;
    let three = machine::board::BoardConfig {
        harts: 3,
        ..config.clone()
    };
    let tree = |config| machine::board::device_tree(config, Some((1 << 31, 3 << 30))).unwrap();
    Reader {
        name: "device tree",
        seeds: vec![tree(&config), tree(&three)],
        words: &[
            "\0\0\0\u{1}",
            "\0\0\0\u{2}",
            "\0\0\0\u{3}",
            "reg\0",
            "ranges\0",
            "riscv,imsics\0",
        ],
        read: |bytes| match board::Tree::new(bytes) {
            Err(error) => error.to_string(),
            Ok(tree) => {
                let survey = board::Survey::read(&tree);
                let mut answer = String::from("a tree");
                for lack in survey.lacks() {
                    let _ = write!(answer, "; {lack}");
                }
                for node in tree.nodes() {
                    let _ = (node.path(), node.registers(), node.supplies());
                    let _ = (node.interrupt_parent(), node.is_enabled());
                }
                answer
            }
        },
    }
}

fn systems() -> Reader {
    let mut seeds = files("systems", "toml");
    seeds.extend((0..4).map(|number| draw(1, number).system_file().into_bytes()));
    Reader {
        name: "system file",
        seeds,
        words: &[
            "[vm.a]\n",
            "[[",
            "disks = [{",
            "\"",
            "= -1\n",
            "= 99999999999999999999\n",
            "\"1 GiB\"",
            "\n[net.x]\n",
            "share = ",
        ],
        read: |bytes| {
            let text_of = String::from_utf8_lossy(bytes).into_owned();
            let document = Document::new(Path::new("/nowhere/system.toml"), text_of, &[]);
            text(&document.and_then(|document| System::read(&document)))
        },
    }
}

fn profiles() -> Reader {
    Reader {
        name: "profile",
        seeds: files("profiles", "toml"),
        words: &[
            "[",
            "]\n",
            "= 0\n",
            "= -1\n",
            "= 18446744073709551616\n",
            "\"",
            "[disk.faults]\n",
        ],
        read: |bytes| {
            let profile = String::from_utf8_lossy(bytes);
            text(&machine::timing::Profile::parse("profile.toml", &profile))
        },
    }
}

/// System images as the command composes them, the guests' kernel being short.
fn images() -> Reader {
    let folder = tempfile::tempdir().unwrap();
    let compose = |number| {
        let case = draw(1, number);
        fuzz::disk::make(&case, folder.path()).unwrap();
        std::fs::write(folder.path().join("exerciser"), [7; 64]).unwrap();
        let file = case.system_file().replace("image:exerciser", "exerciser");
        let document = Document::new(&folder.path().join("system.toml"), file, &[]);
        let system = System::read(&document.unwrap()).unwrap();
        let cache = system::cache::Cache::new(folder.path());
        image::compose(&system, &Assignment::of(&system), &cache, None).unwrap()
    };
    Reader {
        name: "system image",
        seeds: vec![compose(0), compose(1), compose(5)],
        words: &[
            "070701",
            "TRAILER!!!\0",
            "FFFFFFFF",
            "00000000",
            "\0\0\0\u{3}",
            "vcpus\0",
        ],
        read: |bytes| {
            let archive = Archive::new(bytes);
            let length = text(&archive.length());
            match archive.find(abi::system::FILE_NAME) {
                Err(error) => error.to_string(),
                Ok(None) => length,
                Ok(Some(description)) => text(&SystemDescription::parse(description)),
            }
        },
    }
}

/// A kernel's file: a flat image, in gzip, or in a program that unpacks itself.
fn kernels() -> Reader {
    let mut flat = vec![0; 4096];
    flat[0x30..0x38].copy_from_slice(b"RISCV\0\0\0");
    flat[0x38..0x3c].copy_from_slice(b"RSC\x05");
    // Stored, not compressed: a header of ten bytes, one last block, and the sum and length of no interest.
    let mut gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x04\0\xfb\xffabcd".to_vec();
    gzip.extend([0x11, 0xcd, 0x82, 0xed, 4, 0, 0, 0]);
    let mut zboot = vec![0; 64];
    zboot[..2].copy_from_slice(b"MZ");
    zboot[4..8].copy_from_slice(b"zimg");
    zboot[8..12].copy_from_slice(&64_u32.to_le_bytes());
    zboot[12..16].copy_from_slice(&(gzip.len() as u32).to_le_bytes());
    zboot[24..28].copy_from_slice(b"gzip");
    zboot.extend(&gzip);
    Reader {
        name: "kernel",
        seeds: vec![flat, gzip, zboot],
        words: &["\u{1f}", "MZ", "zimg", "gzip\0", "RSC\u{5}", "\u{7f}ELF"],
        read: |bytes| {
            thread_local! {
                static FILE: tempfile::NamedTempFile = tempfile::NamedTempFile::new().unwrap();
            }
            FILE.with(|file| {
                std::fs::write(file.path(), bytes).unwrap();
                let forms = [system::BootForm::Kernel, system::BootForm::Firmware];
                let told = forms.map(|form| {
                    let packed = system::kernel::is_packed(file.path(), form);
                    let read = system::kernel::read(file.path(), form);
                    format!("{} {}", text(&packed), text(&read))
                });
                told.join(" ")
            })
        },
    }
}

/// The header of a qcow2 image, with a backing file and two snapshots.
fn disk_images() -> Reader {
    let mut header = vec![0; 256];
    header[..8].copy_from_slice(b"QFI\xfb\0\0\0\x03");
    header[8..20].copy_from_slice(b"\0\0\0\0\0\0\0\xf0\0\0\0\x03");
    header[60..72].copy_from_slice(b"\0\0\0\x02\0\0\0\0\0\0\0\x68");
    for entry in [0x68, 0x98] {
        header[entry + 12..entry + 16].copy_from_slice(b"\0\x01\0\x02");
    }
    Reader {
        name: "disk image",
        seeds: vec![header],
        words: &["QFI\u{fb}", "\0\0\0\u{2}", "json:"],
        read: |bytes| {
            let part = |place: u64, length: usize| {
                let place = usize::try_from(place).unwrap_or(usize::MAX);
                let there = bytes.get(place..place.saturating_add(length));
                let there = there.map(<[u8]>::to_vec);
                there.ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
            };
            text(&system::disk_image::qcow2::Header::of(&part))
        },
    }
}

fn requests() -> Reader {
    let seeds = [
        "version",
        "vm stop a",
        "stats",
        "vm list",
        "{\"request\":\"version\"}",
        "{\"request\":\"events\"}",
        "{\"request\":\"command\",\"line\":\"vm pause b\"}",
        "[[[[",
        "help",
    ];
    Reader {
        name: "control socket",
        seeds: seeds.map(|line| line.as_bytes().to_vec()).to_vec(),
        words: &[
            "{",
            "}",
            "[",
            "\"request\":",
            "\"line\":",
            "vm ",
            "\\u0000",
            "1e999",
            "power-off",
        ],
        read: |bytes| {
            let line = String::from_utf8_lossy(bytes);
            let names = ["a", "b"].map(|name| abi::system::VmName::new(name).unwrap());
            let command = abi::operator::command::parse(&line, &names);
            match runner::protocol::Request::read(&line) {
                Ok(request) => format!("{request:?} {}", command.is_ok()),
                Err(answer) => format!("{answer:?}"),
            }
        },
    }
}

fn results() -> Reader {
    let mut seeds = vec![
        b"{\"runs\":[]}".to_vec(),
        b"{\"points\":[{\"name\":\"a\",\"runs\":[]}]}".to_vec(),
    ];
    seeds.extend(files("docs/results", "json").into_iter().map(|mut file| {
        file.truncate(1 << 14);
        file
    }));
    Reader {
        name: "results",
        seeds,
        words: &[
            "{",
            "}",
            "[",
            "]",
            "\"runs\":",
            "null",
            "1e400",
            "-0",
            "\"measures\":{",
            ",",
        ],
        read: |bytes| {
            let document = String::from_utf8_lossy(bytes);
            text(&study::laboratory::Recorded::read(&document))
        },
    }
}

/// A test in the short form, and one of the soak.
macro_rules! readers {
    ($($reader:ident $short:ident $soak:ident)+) => {
        $(
            #[test]
            fn $short() {
                $reader().short();
            }

            #[test]
            #[ignore = "soak: ten minutes; make soak runs it"]
            fn $soak() {
                $reader().soak();
            }
        )+
    };
}

readers! {
    device_trees any_device_tree_is_answered soak_any_device_tree_is_answered
    systems any_system_file_is_answered soak_any_system_file_is_answered
    profiles any_profile_is_answered soak_any_profile_is_answered
    images any_system_image_is_answered soak_any_system_image_is_answered
    kernels any_kernel_is_answered soak_any_kernel_is_answered
    disk_images any_disk_image_is_answered soak_any_disk_image_is_answered
    requests any_request_is_answered soak_any_request_is_answered
    results any_results_are_answered soak_any_results_are_answered
}
