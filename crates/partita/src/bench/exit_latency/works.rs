//! Works that bring round trips about, as systems.

use crate::bench::{quoted, quoted_text};
use machine::timing::Profile;
use std::path::Path;

/// The disk of the works that have one, among the built files.
pub(super) const DISK: &str = "debian/disk";

/// A work that brings round trips about.
pub(super) struct Work {
    /// The name in the tables.
    pub(super) name: &'static str,
    vms: Vms,
    vectors: Vectors,
    arguments: &'static str,
}

/// VMs of a work.
enum Vms {
    /// Two of two vCPUs on two harts.
    Two,
    /// The same, each with the disk of the Debian images.
    TwoWithDisks,
    /// One vCPU on one hart under placement `resident`, whose disk is simulated so.
    OneWithDisk(&'static str),
}

/// Vector registers of a work's harts.
enum Vectors {
    /// Those of the profile, for each VM.
    OfProfile,
    /// None.
    None,
    /// Those of the profile, hidden from each VM.
    Hidden,
    /// So many bits each.
    Bits(u16),
}

/// One reader, which reads 4 KiB at a time.
const READER: &str = "exercise=work duration-ms=0 jobs=2000 reads=1 terminals=1 trigger=edge";
/// Steps that are short beside a time slice, and the same with vector registers that each step writes: a vCPU that leaves after its slice leaves
/// with changed registers.
const SCALAR_STEPS: &str = "exercise=work duration-ms=60 terminals=4 compute=20000";
const VECTOR_STEPS: &str = "exercise=work duration-ms=60 terminals=4 compute=20000 vectors=1";
/// Steps with a sleep behind each, without vectors and with them.
const SCALAR_SLEEPS: &str = "exercise=work duration-ms=50 terminals=1 compute=2000 think-us=100";
const VECTOR_SLEEPS: &str =
    "exercise=work duration-ms=50 terminals=1 compute=2000 think-us=100 vectors=1";

/// Names of works that goals are about.
pub(super) const NO_VECTORS: &str = "steps on harts without vectors";
pub(super) const HIDDEN: &str = "steps, vectors hidden";
pub(super) const UNUSED: &str = "steps, vectors unused";
pub(super) const SLEEPS: &str = "sleeps, vectors unused";
pub(super) const VECTORS_SLEEP: &str = "sleeps with vectors of 256 bits";

/// The works.
pub(super) const WORK: [Work; 15] = [
    Work {
        name: "heavy I/O (paper 002, case 4)",
        vms: Vms::TwoWithDisks,
        vectors: Vectors::OfProfile,
        arguments: "exercise=work lock=swap duration-ms=150 terminals=8 steps=1 compute=7000 reads=1 sectors=8 locks=1 hold=40 lock-count=4",
    },
    work(
        "ticket locks",
        "exercise=work lock=ticket spin=wrs duration-ms=150 terminals=8 steps=4 compute=2000 locks=4 hold=400 lock-count=1",
    ),
    work(
        "batch",
        "exercise=work duration-ms=150 terminals=4 steps=4 compute=50000",
    ),
    work(
        "interrupts and console",
        "exercise=ipi count=100 console=uart",
    ),
    Work {
        name: "one reader, general I/O simulation",
        vms: Vms::OneWithDisk("general"),
        vectors: Vectors::OfProfile,
        arguments: READER,
    },
    Work {
        name: "one reader, fast I/O simulation",
        vms: Vms::OneWithDisk("fast"),
        vectors: Vectors::OfProfile,
        arguments: READER,
    },
    Work {
        vectors: Vectors::None,
        ..work(NO_VECTORS, SCALAR_STEPS)
    },
    Work {
        vectors: Vectors::Hidden,
        ..work(HIDDEN, SCALAR_STEPS)
    },
    work(UNUSED, SCALAR_STEPS),
    Work {
        vectors: Vectors::Bits(128),
        ..work("steps with vectors of 128 bits", VECTOR_STEPS)
    },
    Work {
        vectors: Vectors::Bits(256),
        ..work("steps with vectors of 256 bits", VECTOR_STEPS)
    },
    Work {
        vectors: Vectors::Bits(512),
        ..work("steps with vectors of 512 bits", VECTOR_STEPS)
    },
    Work {
        vectors: Vectors::Bits(1024),
        ..work("steps with vectors of 1024 bits", VECTOR_STEPS)
    },
    work(SLEEPS, SCALAR_SLEEPS),
    work(VECTORS_SLEEP, VECTOR_SLEEPS),
];

/// A work of two VMs on harts as the profile has them.
const fn work(name: &'static str, arguments: &'static str) -> Work {
    Work {
        name,
        vms: Vms::Two,
        vectors: Vectors::OfProfile,
        arguments,
    }
}

impl Work {
    /// Gives the harts of `profile` the vectors of this work.
    pub(super) fn set_vectors(&self, profile: &mut Profile) {
        match self.vectors {
            Vectors::OfProfile | Vectors::Hidden => {}
            Vectors::None => profile.vector = None,
            Vectors::Bits(vlen) => {
                if let Some(vector) = &mut profile.vector {
                    vector.vlen = vlen;
                }
            }
        }
    }

    /// The text of the system, whose guests are this exerciser.
    pub(super) fn system(&self, exerciser: &Path) -> String {
        let kernel = quoted(exerciser);
        let arguments = quoted_text(self.arguments);
        let disk = format!("disks = [{{ file = \"image:{DISK}\" }}]");
        let (names, harts, vcpus, mut more): (&[&str], _, _, _) = match self.vms {
            Vms::Two => (&["one", "two"], 2, 2, String::new()),
            Vms::TwoWithDisks => (&["one", "two"], 2, 2, disk),
            Vms::OneWithDisk(io) => {
                let devices = format!("{disk}\nio = \"{io}\"\nplacement = \"resident\"");
                (&["one"], 1, 1, devices)
            }
        };
        if matches!(self.vectors, Vectors::Hidden) {
            more += "\nhide = [\"v\"]";
        }
        let vm = |name: &&str| {
            format!(
                "[vm.{name}]\nvcpus = {vcpus}\nmemory = \"64 MiB\"\nshare = 50\nkernel = {kernel}\n\
                 command-line = {arguments}\n{more}\n"
            )
        };
        let vms: String = names.iter().map(vm).collect();
        format!(
            "harts = {harts}\nmemory = \"1 GiB\"\nguest-interrupt-files = 7\ntime-slice = \"1 ms\"\ntime-limit = \"1 min\"\n{vms}"
        )
    }
}
