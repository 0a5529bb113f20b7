//! Invariants by which a run is judged. None of them asks the hypervisor whether it did well.

use crate::case::{Case, WITNESS};
use crate::observe::Observed;
use abi::monitor::VmState;
use machine::Stop;
use runner::report::Report;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Invariant of every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Invariant {
    /// The hypervisor reports no defect, traps nowhere and does not power the computer off by itself.
    HypervisorGoesOn,
    /// The operator is answered after the storm.
    OperatorAnswered,
    /// Each VM is stopped when the operator says so, and the computer powers off.
    VmsStoppable,
    /// The witness comes to its end.
    WitnessEnds,
    /// The witness's memory holds what the witness wrote.
    WitnessMemory,
    /// The witness reads from its disk what it holds, and is answered.
    WitnessDisk,
    /// Each interrupt of the witness comes once, and no deadline early.
    WitnessInterrupts,
    /// The witness has what its share promises.
    WitnessShare,
    /// No sector changes that no guest may write.
    Disks,
    /// Guest, hypervisor and idle time of each hart add up to the time that passed.
    Accounts,
    /// No hart uses a G-stage translation that has changed since.
    Translations,
    /// The hypervisor keeps no hart longer than the bound.
    LongestStretch,
    /// A hostile guest's own checks of what it is answered hold.
    Answers,
    /// A guest whose program comes to an end does not wait for ever.
    GuestsEnd,
}

impl Invariant {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::HypervisorGoesOn,
        Self::OperatorAnswered,
        Self::VmsStoppable,
        Self::WitnessEnds,
        Self::WitnessMemory,
        Self::WitnessDisk,
        Self::WitnessInterrupts,
        Self::WitnessShare,
        Self::Disks,
        Self::Accounts,
        Self::Translations,
        Self::LongestStretch,
        Self::Answers,
        Self::GuestsEnd,
    ];

    /// The invariant in a few words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HypervisorGoesOn => "hypervisor-goes-on",
            Self::OperatorAnswered => "operator-answered",
            Self::VmsStoppable => "vms-stoppable",
            Self::WitnessEnds => "witness-ends",
            Self::WitnessMemory => "witness-memory",
            Self::WitnessDisk => "witness-disk",
            Self::WitnessInterrupts => "witness-interrupts",
            Self::WitnessShare => "witness-share",
            Self::Disks => "disks",
            Self::Accounts => "accounts",
            Self::Translations => "translations",
            Self::LongestStretch => "longest-stretch",
            Self::Answers => "answers",
            Self::GuestsEnd => "guests-end",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// Observation that shows it.
    pub detail: String,
}

/// Bounds that a user may set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Least part of its promised share that the witness has.
    pub share: f64,
    /// Longest stretch in the hypervisor, in microseconds.
    pub stretch_us: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            share: 0.97,
            stretch_us: 2000.0,
        }
    }
}

/// Time by which the witness may lag behind its share at the end of its work: a slice of 2 ms on each of two harts. The scheduler promises
/// shares over rounds, and the last round is not whole.
const LAG_US: f64 = 4000.0;
/// Microseconds of the witness's work.
const WITNESS_US: f64 = 1000.0 * crate::draw::WITNESS_MS as f64;

/// Judges a run.
pub fn judge(case: &Case, observed: &Observed, bounds: Bounds) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut add = |invariant, detail: String| found.push(Violation { invariant, detail });
    for defect in &observed.defects {
        add(Invariant::HypervisorGoesOn, defect.clone());
    }
    if observed.defects.is_empty()
        && let Some(report) = &observed.report
    {
        if observed.stop != Stop::PowerOff {
            let detail = format!("the computer does not power off: {:?}", observed.stop);
            add(Invariant::VmsStoppable, detail);
        }
        for vm in stopped_wrongly(report) {
            add(Invariant::VmsStoppable, vm);
        }
        if let Some(detail) = accounts(report) {
            add(Invariant::Accounts, detail);
        }
    } else if observed.defects.is_empty() {
        let (invariant, what) = match observed.stop {
            Stop::Limit | Stop::Idle => (Invariant::OperatorAnswered, "no report came"),
            _ => (Invariant::HypervisorGoesOn, "the machine stopped"),
        };
        add(invariant, format!("{what}: {:?}", observed.stop));
    }
    for sector in &observed.disk_changes {
        add(Invariant::Disks, sector.clone());
    }
    for stale in &observed.stale {
        add(Invariant::Translations, stale.clone());
    }
    if let Some((microseconds, place)) = &observed.longest_stretch
        && *microseconds > bounds.stretch_us
    {
        let detail = format!("{microseconds:.1} us, to {place}");
        add(Invariant::LongestStretch, detail);
    }
    for (vm, said) in hostile_failures(case, observed) {
        add(Invariant::Answers, format!("{vm}: {said}"));
    }
    for vm in &observed.waiting_for_ever {
        let detail = format!("{vm} has come to no verdict, and nothing is due any more");
        add(Invariant::GuestsEnd, detail);
    }
    // Without the hypervisor, the witness's end is nothing of its own.
    if observed.report.is_some() {
        witness(case, observed, bounds, &mut found);
    }
    found
}

/// Failures of hostile guests that are the hypervisor's doing: a disk that fails may fail any check of its guest.
fn hostile_failures<'a>(
    case: &'a Case,
    observed: &'a Observed,
) -> impl Iterator<Item = &'a (String, String)> {
    let excused = |name: &str| {
        let vm = case.vms.iter().find(|vm| vm.name == name);
        case.has_failing_disks() && vm.is_some_and(|vm| vm.disk.is_some())
    };
    let failures = observed.failures.iter();
    failures.filter(move |(vm, _)| vm != WITNESS && !excused(vm))
}

/// VMs that the operator's command has not stopped.
fn stopped_wrongly(report: &Report) -> impl Iterator<Item = String> {
    let stopped = [VmState::Stopped.name(), VmState::Defined.name()];
    let others = report.vms.iter();
    others
        .filter(move |vm| !stopped.contains(&&*vm.state))
        .map(|vm| format!("{} is {} after vm stop", vm.name, vm.state))
}

/// A hart whose time does not add up.
fn accounts(report: &Report) -> Option<String> {
    report.harts.iter().find_map(|hart| {
        let works = report.vms.iter().flat_map(|vm| &vm.work);
        let works = works.filter(|work| work.hart == hart.hart);
        let of_vms: u64 = works
            .map(|work| work.guest + work.scheduling + work.simulation)
            .sum();
        let sum = of_vms + hart.scheduling + hart.idle;
        (sum != hart.elapsed).then(|| {
            format!(
                "hart {}: {sum} cycles are accounted for, {} passed",
                hart.hart, hart.elapsed
            )
        })
    })
}

/// Judges by what the witness says.
fn witness(case: &Case, observed: &Observed, bounds: Bounds, found: &mut Vec<Violation>) {
    let mut add = |invariant, detail: String| found.push(Violation { invariant, detail });
    let Some(said) = &observed.witness else {
        let said = observed.failures.iter().find(|(vm, _)| vm == WITNESS);
        let detail = said.map_or("it said nothing", |(_, said)| said.as_str());
        return add(Invariant::WitnessEnds, String::from(detail));
    };
    for (name, invariant) in [
        ("disturbed", Invariant::WitnessMemory),
        ("wrong-sectors", Invariant::WitnessDisk),
        ("lost", Invariant::WitnessInterrupts),
        ("doubled", Invariant::WitnessInterrupts),
        ("early", Invariant::WitnessInterrupts),
    ] {
        match observed.witness_number(name) {
            Some(0) => {}
            Some(count) => add(invariant, format!("{name}={count}")),
            None => add(Invariant::WitnessEnds, format!("no {name} in: {said}")),
        }
    }
    if !observed.witness_passed && found.is_empty() {
        let detail = String::from("it ends without a verdict");
        let invariant = Invariant::WitnessEnds;
        found.push(Violation { invariant, detail });
    }
    if let Some(detail) = lacking_share(case, observed, bounds) {
        let invariant = Invariant::WitnessShare;
        found.push(Violation { invariant, detail });
    }
}

/// Says how far the witness is below its promised share, if it is.
///
/// A share is promised of harts' time. The witness tells its work, which is less by what its own checks and exits cost: that part is measured in
/// the same system without neighbours, and is no neighbour's doing. Whatever a neighbour adds to it, such as slower exits, counts.
pub fn lacking_share(case: &Case, observed: &Observed, bounds: Bounds) -> Option<String> {
    let share = observed.witness_share()?;
    let promised = case.promised_harts()?;
    let part = observed.yield_of_hart(case);
    let lag = promised.min(1.0) * LAG_US / WITNESS_US;
    let least = part * (bounds.share * promised - lag);
    let alone = match observed.share_without_neighbours {
        Some(_) => format!(", at {part:.3} of a hart without neighbours"),
        None => String::new(),
    };
    (share < least).then(|| format!("{share:.3} harts of {promised:.3}{alone}, below {least:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::draw;
    use runner::report::{HartReport, VmReport};
    use std::borrow::Cow;
    use system::fingerprint::Fingerprint;

    const GOOD: &str = "witness harts=1 share-per-mille=1000 disturbed=0 sectors=9 wrong-sectors=0 lost=0 doubled=0 early=0";

    /// A case whose witness is promised a share.
    fn case() -> Case {
        let mut cases = (0..1000).map(|number| draw(1, number));
        let promised = |case: &Case| case.promised_harts().is_some_and(|harts| harts < 1.0);
        cases.find(promised).unwrap()
    }

    /// A run in which everything holds.
    fn good() -> Observed {
        let vm = VmReport {
            name: String::from(WITNESS),
            state: Cow::Borrowed("stopped"),
            stop_reason: Cow::Borrowed("power-off"),
            restarts: 0,
            guest_interrupts: None,
            work: Vec::new(),
        };
        let hart = HartReport {
            hart: 0,
            elapsed: 10,
            idle: 7,
            scheduling: 3,
        };
        Observed {
            lines: Vec::new(),
            defects: Vec::new(),
            failures: Vec::new(),
            witness: Some(String::from(GOOD)),
            witness_passed: true,
            share_without_neighbours: None,
            waiting_for_ever: Vec::new(),
            report: Some(Report {
                seconds: 1.0,
                vms: vec![vm],
                harts: vec![hart],
                own_memory: None,
            }),
            stop: Stop::PowerOff,
            stale: Vec::new(),
            disk_changes: Vec::new(),
            longest_stretch: Some((20.0, String::from("0x80200000"))),
            exits: 0,
            covered: None,
            fingerprint: Fingerprint::of(b""),
        }
    }

    /// Invariants that a run breaks.
    fn broken(change: impl Fn(&mut Observed)) -> Vec<Invariant> {
        let mut observed = good();
        change(&mut observed);
        let found = judge(&case(), &observed, Bounds::default());
        found.iter().map(|violation| violation.invariant).collect()
    }

    fn says(observed: &mut Observed, name: &str, count: &str) {
        let said = GOOD.split(' ').map(|word| match word.split_once('=') {
            Some((one, _)) if one == name => format!("{name}={count}"),
            _ => String::from(word),
        });
        observed.witness = Some(said.collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn good_runs_break_nothing() {
        assert_eq!(broken(|_| {}), []);
    }

    /// The witness is promised half a hart, of which it has 0.45: too little where all of a hart becomes work without neighbours, and enough
    /// where its own checks and exits take a tenth.
    #[test]
    fn own_work_is_no_neighbours_doing() {
        let mut case = case();
        case.harts = 1;
        case.vms.truncate(2);
        case.vms.iter_mut().for_each(|vm| vm.share = 50);
        case.vms[0].vcpus = 1;
        let lacks = |share: &str, alone: Option<f64>| {
            let mut run = good();
            says(&mut run, "share-per-mille", share);
            run.share_without_neighbours = alone;
            let found = judge(&case, &run, Bounds::default());
            found
                .iter()
                .any(|one| one.invariant == Invariant::WitnessShare)
        };
        assert!(lacks("450", None));
        assert!(lacks("450", Some(1.0)));
        assert!(!lacks("450", Some(0.9)));
        assert!(lacks("415", Some(0.9)), "a neighbour takes a twelfth more");
        assert!(
            lacks("450", Some(1.2)),
            "nobody has more than a hart of a hart"
        );
    }

    /// A guest that has a disk which fails is excused; a guest without one is not.
    #[test]
    fn failing_disks_excuse_their_guests_alone() {
        let mut run = good();
        for vm in ["a", "b"] {
            run.failures.push((String::from(vm), String::from("FAIL")));
        }
        let mut case = case();
        case.vms.truncate(2);
        let mut other = case.vms[1].clone();
        (case.vms[1].disk, other.disk) = (Some(crate::case::GuestDisk::Fast), None);
        (case.vms[1].name, other.name) = (String::from("a"), String::from("b"));
        case.vms.push(other);
        let found = |case: &Case| judge(case, &run, Bounds::default()).len();
        case.faults = None;
        assert_eq!(found(&case), 2);
        let late = crate::case::DiskFaults {
            late: 9,
            ..Default::default()
        };
        case.faults = Some(late);
        assert_eq!(found(&case), 2, "a late answer comes");
        case.faults = Some(crate::case::DiskFaults { errors: 1, ..late });
        assert_eq!(found(&case), 1);
    }

    #[test]
    fn each_invariant_can_break() {
        use Invariant as I;
        type Change = fn(&mut Observed);
        let changes: [(Invariant, Change); 14] = [
            (I::HypervisorGoesOn, |run| {
                run.defects.push(String::from("defect"))
            }),
            (I::HypervisorGoesOn, |run| {
                (run.report, run.stop) = (None, Stop::Stuck);
            }),
            (I::OperatorAnswered, |run| {
                (run.report, run.stop) = (None, Stop::Limit);
            }),
            (I::VmsStoppable, |run| run.stop = Stop::Limit),
            (I::VmsStoppable, |run| {
                let report = run.report.as_mut().unwrap();
                report.vms[0].state = Cow::Borrowed("stopping");
            }),
            (I::WitnessEnds, |run| run.witness = None),
            (I::WitnessMemory, |run| says(run, "disturbed", "1")),
            (I::WitnessDisk, |run| says(run, "wrong-sectors", "2")),
            (I::WitnessInterrupts, |run| says(run, "doubled", "1")),
            (I::WitnessShare, |run| says(run, "share-per-mille", "40")),
            (I::Disks, |run| {
                run.disk_changes.push(String::from("byte 0"))
            }),
            (I::Accounts, |run| {
                run.report.as_mut().unwrap().harts[0].idle = 6
            }),
            (I::Translations, |run| run.stale.push(String::from("stale"))),
            (I::LongestStretch, |run| {
                run.longest_stretch = Some((1e6, String::new()));
            }),
        ];
        for (invariant, change) in changes {
            assert_eq!(broken(change), [invariant]);
        }
        let fails =
            |run: &mut Observed| run.failures.push((String::from("a"), String::from("FAIL")));
        assert_eq!(broken(fails), [I::Answers]);
    }
}
