//! A system on the machine without a terminal: for figures.

use crate::computer::board::{self, Chosen};
use crate::computer::line::{Keys, Line};
use crate::computer::{ComputerError, End, POWER_OFF_KEYS, Piece, Setup, simulator};
use crate::report::Report;
use crate::run::{Account, Ending, Outcome, Relay};
use crate::storms::{Runs, Storms, Watcher};
use crate::terminals::Users;
use crate::workloads::Guests;
use abi::system::VmName;
use machine::device::{Clock, Cycles};
use machine::{Limit, Machine, Stop};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use system::{System, Vm};

/// Where a run is given up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits<'a> {
    /// After this many more instructions of all harts together.
    pub instructions: Option<u64>,
    /// At this machine time in cycles since reset.
    pub cycles: Option<u64>,
    /// After this much of the host's time. Unlike the others it makes the end depend on the host.
    pub time: Option<Duration>,
    /// As soon as this is true: breaks a run off.
    pub stop: Option<&'a AtomicBool>,
}

impl Limits<'_> {
    /// Where a run of `system` is given up: after `timeout` of the host's time, and without that at the system's own limit,
    /// which is machine time and so the same point each time.
    pub fn of(system: &System, timeout: Option<Duration>, clock: Clock) -> Self {
        let own = system.time_limit().filter(|_| timeout.is_none());
        let nanoseconds = own.map(|own| own.0.saturating_mul(1000));
        Self {
            time: timeout,
            cycles: nanoseconds.map(|nanoseconds| clock.cycles_in_nanoseconds(nanoseconds).0),
            ..Self::default()
        }
    }

    /// Returns whether a run that began at `begun` and stands at `now` in cycles is to be given up for the time that it takes.
    pub fn reached(&self, now: u64, begun: Instant) -> bool {
        self.cycles.is_some_and(|cycles| now >= cycles)
            || self.time.is_some_and(|time| begun.elapsed() >= time)
    }
}

/// Machine time between two looks at the host's clock, in cycles.
const SLICE: u64 = 10_000_000;

/// A system on the machine.
#[derive(Debug)]
pub struct Run {
    /// The machine: before the run as it boots, afterwards as it ended.
    pub machine: Machine,
    account: Account,
    relay: Relay,
    console: Receiver<Piece>,
    output: Sender<Piece>,
    keys: Keys,
    users: Option<Users>,
    watcher: Option<Watcher>,
}

/// Result of a run.
#[derive(Debug)]
pub struct Finished {
    /// The reports of the performance monitor and of the hardware monitor, and what went wrong.
    pub outcome: Outcome,
    /// Why the machine stopped.
    pub stop: Stop,
    /// The machine as it ended.
    pub machine: Machine,
}

impl Run {
    /// Builds the machine with everything in memory that it is to boot.
    ///
    /// # Errors
    /// A file, the profile or the host's memory does not allow it.
    pub fn boot(setup: &Setup<'_>, chosen: &Chosen) -> Result<Self, ComputerError> {
        let (machine, users) = board::build(setup, chosen)?;
        let account = Account::default();
        Ok(Self::on(machine, account, Some(users), Runs::Hypervisor))
    }

    /// Builds the machine with this VM's kernel in the place of the hypervisor.
    ///
    /// # Errors
    /// As for [`Run::boot`].
    pub fn boot_alone(
        setup: &Setup<'_>,
        chosen: &Chosen,
        vm: &VmName,
    ) -> Result<Self, ComputerError> {
        let (machine, users) = board::build(setup, chosen)?;
        let account = Account::new(Some(vm));
        Ok(Self::on(machine, account, Some(users), Runs::Kernel))
    }

    /// Goes on with a machine that has been restored from a checkpoint, taken after the hypervisor had begun.
    ///
    /// # Errors
    /// A disk of the system is not to be had, or is not the one that the machine had.
    pub fn resume(machine: Machine, setup: &Setup<'_>) -> Result<Self, ComputerError> {
        Self::resume_typing(machine, setup, &[])
    }

    /// Goes on as [`Run::resume`] does, with these keys typed on the board's console, one in each millisecond of machine time.
    ///
    /// # Errors
    /// As for [`Run::resume`].
    pub fn resume_typing(
        mut machine: Machine,
        setup: &Setup<'_>,
        typed: &[u8],
    ) -> Result<Self, ComputerError> {
        board::reattach(&mut machine, setup)?;
        let keys = Keys::closed();
        keys.send(typed);
        let account = Account::resumed();
        Ok(Self::typing(machine, account, None, Runs::Hypervisor, keys))
    }

    /// Goes on with a machine that has been restored from a checkpoint, on which this VM's kernel, or without one KVM's host, is in the
    /// hypervisor's place.
    ///
    /// # Errors
    /// As for [`Run::resume`].
    pub fn resume_below(
        mut machine: Machine,
        setup: &Setup<'_>,
        vm: Option<&VmName>,
    ) -> Result<Self, ComputerError> {
        board::reattach(&mut machine, setup)?;
        let runs = vm.map_or(Runs::Hypervisor, |_| Runs::Kernel);
        Ok(Self::on(machine, Account::new(vm), None, runs))
    }

    fn on(machine: Machine, account: Account, users: Option<Users>, runs: Runs) -> Self {
        Self::typing(machine, account, users, runs, Keys::closed())
    }

    fn typing(
        mut machine: Machine,
        account: Account,
        users: Option<Users>,
        runs: Runs,
        keys: Keys,
    ) -> Self {
        let (output, console) = channel();
        let line = Line::new(output.clone(), machine.clock(), keys.clone(), false);
        machine.system_mut().devices.attach_console(Box::new(line));
        let watcher = Watcher::attach(&mut machine, runs);
        Self {
            watcher,
            machine,
            account,
            relay: Relay::new(),
            console,
            output,
            keys,
            users,
        }
    }

    /// Lets it run until it ends or a limit is reached, and says which. Every line of the console that is for people
    /// goes to `show`. It can go on afterwards, if the machine has not been switched off.
    pub fn follow(&mut self, limits: &Limits<'_>, show: &mut dyn FnMut(&str)) -> Stop {
        let begun = Instant::now();
        let most = limits
            .instructions
            .map(|more| self.machine.retired().saturating_add(more));
        let exceptions_before = self.machine.exceptions();
        loop {
            let end = self.machine.now().saturating_add(SLICE);
            let limit = Limit {
                instructions: most.map(|most| most.saturating_sub(self.machine.retired())),
                cycles: Some(limits.cycles.map_or(end, |cycles| cycles.min(end))),
            };
            let stop = self.machine.run(limit);
            for piece in self.console.try_iter() {
                for line in self.relay.lines(&piece.bytes) {
                    if self.account.line(&line, piece.at) {
                        show(&line);
                    }
                }
            }
            let over = limits.reached(self.machine.now(), begun)
                || most.is_some_and(|most| self.machine.retired() >= most)
                || limits.instructions.is_some_and(|most| {
                    // Only a trap handler that traps itself raises so many.
                    self.machine.exceptions() - exceptions_before > most
                })
                || limits.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            if stop != Stop::Limit || over {
                return stop;
            }
        }
    }

    /// The performance monitor's last report so far.
    pub fn report(&self) -> Option<Report> {
        self.account.report()
    }

    /// How many reports of the performance monitor have been whole so far.
    pub const fn reports(&self) -> usize {
        self.account.reports()
    }

    /// Machine time since reset.
    fn now(&self) -> Duration {
        let now = Cycles(self.machine.now());
        Duration::from_nanos(self.machine.clock().nanoseconds(now))
    }

    /// Counts the ends of the VMs' jobs, and the exits of pause loops, from now on.
    pub fn begin(&mut self, vms: &[Vm]) {
        let now = self.now();
        for vm in vms {
            self.account.begin(vm.name.as_str(), now);
        }
        self.begin_waits();
    }

    /// Counts waits for locks, and exits of pause loops, from now on.
    pub fn begin_waits(&self) {
        if let Some(watcher) = &self.watcher {
            watcher.begin();
        }
    }

    /// Their accounts so far.
    pub fn waits(&self) -> Option<Storms> {
        self.watcher.as_ref().map(Watcher::storms)
    }

    /// Counts to now, and gives what came of the exits of pause loops.
    pub fn end(&mut self, vms: &[Vm]) -> Option<Storms> {
        let now = self.now();
        for vm in vms {
            self.account.end_jobs(vm.name.as_str(), now);
        }
        self.waits()
    }

    /// Asks the hypervisor to power everything off, which ends the run when it is followed.
    pub fn power_off(&mut self) {
        self.type_keys(POWER_OFF_KEYS);
    }

    /// Types keys on the board's console from now on, one in each millisecond of machine time, behind those that still wait.
    pub fn type_keys(&mut self, keys: &[u8]) {
        self.keys.send(keys);
        let line = Line::new(
            self.output.clone(),
            self.machine.clock(),
            self.keys.clone(),
            false,
        );
        let devices = &mut self.machine.system_mut().devices;
        // The UART asks a line for its keys when it is attached.
        devices.attach_console(Box::new(line));
    }

    /// Returns whether keys wait to be typed.
    pub fn has_keys(&self) -> bool {
        !self.keys.are_none()
    }

    /// Counts of the workload of the VM that ran alone, and its failures.
    pub fn finish_alone(mut self, stop: Stop) -> (Guests, Vec<String>) {
        self.close(stop);
        self.account.judge_alone()
    }

    /// Draws the conclusions from a run that `follow` ended with `stop`.
    pub fn finish(mut self, stop: Stop) -> Finished {
        self.close(stop);
        let ending = if stop == Stop::Limit {
            Ending::TimeLimit
        } else {
            Ending::Finished
        };
        Finished {
            outcome: self.account.judge(ending),
            stop,
            machine: self.machine,
        }
    }

    /// Takes the last of what the computer says.
    fn close(&mut self, stop: Stop) {
        let devices = &mut self.machine.system_mut().devices;
        devices.attach_console(Box::new(machine::device::Silent));
        let mut last = Duration::ZERO;
        for piece in self.console.try_iter() {
            last = piece.at;
            for line in self.relay.lines(&piece.bytes) {
                self.account.line(&line, piece.at);
            }
        }
        if let Some(line) = self.relay.rest() {
            self.account.line(&line, last);
        }
        self.account.end(End {
            failure: simulator::failure(stop, &self.machine),
            monitor: Some(self.machine.report()),
            storms: self.waits(),
            users: self.users.take(),
            early: None,
        });
    }
}

/// Runs a system from its boot to its end or a limit.
///
/// # Errors
/// The machine cannot be started.
pub fn run(
    setup: &Setup<'_>,
    chosen: &Chosen,
    limits: &Limits<'_>,
    show: &mut dyn FnMut(&str),
) -> Result<Finished, ComputerError> {
    let mut run = Run::boot(setup, chosen)?;
    let stop = run.follow(limits, show);
    Ok(run.finish(stop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use system::Document;

    #[test]
    fn host_time_limit_replaces_machine_limit() {
        let text = "harts = 1\nmemory = \"2 GiB\"\ntime-limit = \"3 s\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n\
                    kernel = \"image:debian/kernel\"\n";
        let document = Document::new(Path::new("a.toml"), String::from(text), &[]).unwrap();
        let system = System::read(&document).unwrap();
        let clock = Clock::new(1_000_000, 1_000);
        let own = Limits::of(&system, None, clock);
        assert_eq!((own.cycles, own.time), (Some(3_000_000), None));
        let now = Instant::now();
        assert!(!own.reached(2_999_999, now) && own.reached(3_000_000, now));
        let host = Limits::of(&system, Some(Duration::ZERO), clock);
        assert_eq!((host.cycles, host.time), (None, Some(Duration::ZERO)));
        assert!(host.reached(0, now));
    }
}
