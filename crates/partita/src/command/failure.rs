//! Why the command did not do what was asked, and what the shell is told.

use crate::bench::BenchError;
use fuzz::observe::CaseError;
use guest_images::ImagesError;
use runner::checkpoint::CheckpointFailure;
use runner::computer::ComputerError;
use runner::kvm::KvmError;
use runner::run::RunError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use study::compare::{ExpandError, GridError};
use study::laboratory::shard::{MergeError, Shard};
use study::laboratory::{PointError, SeriesError, StoreError};
use study::nuisance::NuisanceError;
use study::paper::{PlanError, PublishedError};
use system::Mistakes;
use system::cache::NoCache;

/// Meaning of each exit code.
pub(super) const EXIT_CODES: &str =
    "Exit codes, those of `partita machine` aside, which its own --help lists:
  0    what was asked for was done; after a run: every VM powered off in order
  1    the system file or a profile has mistakes
  2    the command line has mistakes, or names a file that is not there or is of another kind
  3    a run ended, but a VM failed or did not power off; or runs differ that should be equal; or `fuzz` has findings
  4    a run took longer than it may, or everybody in it waited for what would never come
  5    a run could not be made, images could not be built, or an output could not be written
  130  a run was broken off";

/// Why the command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The system file.
    #[error("{0}")]
    Mistakes(#[from] Mistakes),
    /// A file of the command line.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// A file or standard output that cannot be written.
    #[error("{place}: {error}")]
    Output {
        /// The file's path, or `standard output`.
        place: String,
        /// Cause.
        error: std::io::Error,
    },
    /// Two documents for one standard output.
    #[error("only one document can go to standard output (-): name files for the others")]
    Documents,
    /// The console could not be written.
    #[error("{0}; the run was ended, as nothing of it could be shown")]
    Unshown(std::io::Error),
    /// A VM failed.
    #[error("{}", .0.join("\npartita: "))]
    Vm(Vec<String>),
    /// The time limit: which, and who had not come to an end.
    #[error("the run took longer than it may and was ended: {0}")]
    TimeLimit(String),
    /// The farm found invariants broken.
    #[error("{0} of the systems broke an invariant")]
    Findings(usize),
    /// The farm did not find faults that were put in.
    #[error("{0} of the mutants survived")]
    Survivors(usize),
    /// No guest could go on.
    #[error(
        "everybody waited for what nobody could give, such as keys, and the system was powered off; with --console VM \
         the terminal is at that VM's console"
    )]
    Waiting,
    /// The user.
    #[error("the run was broken off")]
    Interrupted,
    /// No place for images.
    #[error(transparent)]
    Cache(#[from] NoCache),
    /// The images.
    #[error(transparent)]
    Images(#[from] ImagesError),
    /// The run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A profile.
    #[error(transparent)]
    Profile(#[from] machine::timing::ProfileError),
    /// Profiles with mistakes, which have been shown.
    #[error("{0} of the profiles cannot be used")]
    Profiles(usize),
    /// The computer's options.
    #[error(transparent)]
    Computer(#[from] ComputerError),
    /// An option for another computer.
    #[error("{0} is for the machine, and this run is on QEMU")]
    MachineOnly(&'static str),
    /// An option of QEMU.
    #[error("{0} is for QEMU, and this run is on the machine; add --on qemu")]
    QemuOnly(&'static str),
    /// A need of every run is not met.
    #[error("systems cannot be run here: {0}; the lines above say what to do")]
    Lacking(String),
    /// The benchmark.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// No such measure.
    #[error("{0}")]
    Measure(String),
    /// The grid of varied parameters.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// The file of results.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A series of runs.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The file of claims.
    #[error(transparent)]
    Claims(#[from] study::claims::ClaimsError),
    /// A paper's figures.
    #[error(transparent)]
    Published(#[from] PublishedError),
    /// Its registration.
    #[error(transparent)]
    Registration(#[from] study::paper::registration::RegistrationError),
    /// Kept results.
    #[error(transparent)]
    Results(#[from] study::results::ResultsError),
    /// A paper's runs.
    #[error(transparent)]
    Plan(PlanError),
    /// A key that stands for several.
    #[error(transparent)]
    Expand(ExpandError),
    /// No failure: a shard's runs are made, and the table is the whole series' to show.
    #[error(
        "{shard}: its {runs} of {all} runs are in {path}; `partita results merge` puts the shards' files together",
        path = path.display()
    )]
    Shard {
        /// Which.
        shard: Shard,
        /// How many runs it has.
        runs: usize,
        /// How many the series has.
        all: usize,
        /// The file of results.
        path: PathBuf,
    },
    /// Files of results that do not fit together.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// Parameters that are varied besides, so that a conclusion does not hang on them.
    #[error(transparent)]
    Nuisance(NuisanceError),
    /// Options or files of the command line that do not go together.
    #[error("{0}")]
    Usage(String),
    /// A VM needs vectors that the harts do not have.
    #[error(transparent)]
    VectorLength(#[from] runner::vector_length::UnmetVectorLength),
    /// The host's system refuses something.
    #[error("{0}: {1}")]
    Host(&'static str, #[source] std::io::Error),
    /// A run could not be made.
    #[error("{0}")]
    Unmade(String),
    /// Results that should be equal and are not.
    #[error("{0}")]
    Different(String),
    /// The document for the benchmark's tables.
    #[error("{path} has no place for the tables: it lacks the line {line}", path = path.display())]
    NoPlace {
        /// Which.
        path: PathBuf,
        /// Missing line.
        line: &'static str,
    },
}

impl Failure {
    /// Exit code of the process; [`EXIT_CODES`] has the list.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Mistakes(_) | Self::Profile(_) | Self::Profiles(_) => 1,
            Self::Computer(ComputerError::Profile(_)) => 1,
            Self::File { error, .. } => of_file(error),
            Self::NoPlace { .. } | Self::MachineOnly(_) | Self::QemuOnly(_) | Self::Computer(_) => {
                2
            }
            Self::Documents => 2,
            Self::Output { .. } | Self::Unshown(_) => 5,
            Self::Measure(_)
            | Self::Grid(_)
            | Self::Usage(_)
            | Self::VectorLength(_)
            | Self::Plan(_)
            | Self::Expand(_)
            | Self::Nuisance(_) => 2,
            Self::Published(_) | Self::Claims(_) | Self::Registration(_) | Self::Results(_) => 5,
            Self::Different(_) | Self::Findings(_) | Self::Survivors(_) => 3,
            Self::Store(_) | Self::Merge(_) => 5,
            Self::Shard { .. } => 0,
            Self::Series(_) => 130,
            Self::Vm(_) => 3,
            Self::TimeLimit(_) | Self::Waiting => 4,
            Self::Host(..) | Self::Unmade(_) => 5,
            Self::Lacking(_) | Self::Cache(_) | Self::Images(_) | Self::Run(_) | Self::Bench(_) => {
                5
            }
            Self::Interrupted => 130,
        })
    }
}

/// Exit code for a file of the command line: 2 where another name would help, 5 where the host's system fails.
fn of_file(error: &std::io::Error) -> u8 {
    use std::io::ErrorKind::{
        BrokenPipe, FileTooLarge, OutOfMemory, QuotaExceeded, StorageFull, TimedOut, WriteZero,
    };
    match error.kind() {
        BrokenPipe | FileTooLarge | OutOfMemory | QuotaExceeded | StorageFull | TimedOut
        | WriteZero => 5,
        _ => 2,
    }
}

impl From<ExpandError> for Failure {
    fn from(error: ExpandError) -> Self {
        match error {
            ExpandError::Point(error) => error.into(),
            error => Self::Expand(error),
        }
    }
}

impl From<NuisanceError> for Failure {
    fn from(error: NuisanceError) -> Self {
        match error {
            NuisanceError::Point(error) => error.into(),
            error => Self::Nuisance(error),
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Point(error) => error.into(),
            error => Self::Plan(error),
        }
    }
}

impl From<CheckpointFailure> for Failure {
    fn from(error: CheckpointFailure) -> Self {
        match error {
            CheckpointFailure::Computer(error) => Self::Computer(error),
            CheckpointFailure::Memory(error) => Self::Run(error),
            CheckpointFailure::Image(error) => Self::Run(error.into()),
            CheckpointFailure::BrokenOff => Self::Interrupted,
            CheckpointFailure::TimeLimit | CheckpointFailure::SpanTooLong => {
                Self::TimeLimit(error.to_string())
            }
            other => Self::Unmade(other.to_string()),
        }
    }
}

impl From<KvmError> for Failure {
    fn from(error: KvmError) -> Self {
        match error {
            KvmError::Images(error) => Self::Images(error),
            KvmError::Computer(error) => Self::Computer(error),
            KvmError::Checkpoint(error) => error.into(),
            other => Self::Unmade(other.to_string()),
        }
    }
}

impl From<CaseError> for Failure {
    /// A case that cannot be run is no finding.
    fn from(error: CaseError) -> Self {
        match error {
            CaseError::BrokenOff => Self::Interrupted,
            CaseError::Computer(error) => Self::Computer(error),
            CaseError::Image(error) => Self::Run(error.into()),
            CaseError::Mistakes(mistakes) => Self::Mistakes(mistakes),
            other => Self::Unmade(other.to_string()),
        }
    }
}

impl From<PointError> for Failure {
    fn from(error: PointError) -> Self {
        match error {
            PointError::Mistakes(mistakes) => Self::Mistakes(mistakes),
            PointError::File { path, error } => Self::File { path, error },
        }
    }
}

/// Makes an I/O error a failure about this file.
pub(super) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + '_ {
    move |error| Failure::File {
        path: path.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn codes_follow_the_kind_of_failure() {
        let path = || PathBuf::from("file");
        let file = |kind: ErrorKind| Failure::File {
            path: path(),
            error: kind.into(),
        };
        let refused = || CheckpointFailure::File {
            path: path(),
            error: ErrorKind::StorageFull.into(),
        };
        for (failure, code) in [
            (file(ErrorKind::NotFound), 2),
            (file(ErrorKind::StorageFull), 5),
            (Failure::Usage(String::new()), 2),
            (Failure::Host("signals", Error::other("none")), 5),
            (refused().into(), 5),
            (KvmError::Checkpoint(refused()).into(), 5),
            (CaseError::File(ErrorKind::StorageFull.into()).into(), 5),
            (CheckpointFailure::SpanTooLong.into(), 4),
            (KvmError::Checkpoint(CheckpointFailure::TimeLimit).into(), 4),
            (CheckpointFailure::BrokenOff.into(), 130),
            (CaseError::BrokenOff.into(), 130),
            (Failure::Findings(1), 3),
        ] {
            let words = failure.to_string();
            let listed = format!("  {code:<5}");
            assert_eq!(failure.exit_code(), ExitCode::from(code), "{words}");
            assert!(EXIT_CODES.contains(&listed), "{listed}");
        }
    }
}
