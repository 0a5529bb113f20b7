//! A machine whose instructions are counted: QEMU's virt board with one hart, one instruction a nanosecond, and its
//! debug server, by which it is stopped at the marks.

use super::debugger::{DebugError, Debugger};
use super::mark::Mark;
use runner::computer::Process;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Longest time from one mark to the next.
const PATIENCE: Duration = Duration::from_secs(1800);
/// Longest time from the start of QEMU to its debug server.
const START: Duration = Duration::from_secs(60);
/// Where OpenSBI starts what it boots, and where QEMU puts a kernel that has no firmware below it.
pub const AFTER_FIRMWARE: u64 = 0x8020_0000;
pub const BOTTOM_OF_MEMORY: u64 = 0x8000_0000;
/// SPV, the previous virtualization mode, in hstatus (Privileged ISA, "Hypervisor Status Register").
const PREVIOUS_IS_GUEST: u64 = 1 << 7;

/// IR in mcountinhibit (Privileged ISA, "Machine Counter-Inhibit Register").
const INSTRET_INHIBIT: u64 = 1 << 2;

/// CY, TM and IR in scounteren, as OpenSBI leaves them for a kernel that it starts.
const USER_COUNTERS: u64 = 0b111;

/// Why nothing could be counted.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// QEMU cannot be started.
    #[error("QEMU: {0}")]
    Start(std::io::Error),
    /// The debug server.
    #[error("{error}; its console ends with:\n{console}")]
    Debug {
        /// Cause.
        error: DebugError,
        /// The last lines of the console.
        console: String,
    },
    /// The guest came to a mark out of order.
    #[error("it stopped at {at:#x} instead of at the mark {mark}")]
    WrongMark {
        /// The program counter.
        at: u64,
        /// Which mark was next.
        mark: &'static str,
    },
    /// Software stopped the counter.
    #[error("what runs on it has stopped the counter of instructions (mcountinhibit)")]
    Inhibited,
    /// A job did not do what it should.
    #[error("a job failed; the console says:\n{0}")]
    Job(String),
    /// The console does not say where the kernel's last function is.
    #[error("the guest does not say where its kernel ends; its console ends with:\n{0}")]
    NoPowerOff(String),
}

/// How the guest comes to its first instruction.
#[derive(Debug, Clone)]
pub enum Start {
    /// OpenSBI starts the guest's kernel itself.
    Native,
    /// OpenSBI starts a hypervisor, which enters its first guest by one of the SRETs at these addresses.
    Hypervisor(Vec<u64>),
    /// OpenSBI starts another kernel, on which QEMU starts the guest without firmware.
    Nested,
}

/// Counts of the hart's instructions (minstret) since the machine's start.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// At the first instruction after the firmware.
    pub firmware_done: u64,
    /// At the guest's first instruction.
    pub first: u64,
    /// At each mark.
    pub marks: BTreeMap<&'static str, u64>,
    /// When the guest's kernel is about to ask for the power to be switched off.
    pub power_off: u64,
}

impl Count {
    /// Instructions from one mark to a later one.
    pub fn between(&self, from: Mark, to: Mark) -> u64 {
        let at = |mark: Mark| self.marks.get(mark.name()).copied().unwrap_or(0);
        at(to).saturating_sub(at(from))
    }

    /// Instructions from the guest's first to a mark.
    pub fn until(&self, mark: Mark) -> u64 {
        let at = self.marks.get(mark.name()).copied().unwrap_or(0);
        at.saturating_sub(self.first)
    }

    /// Instructions of the guest's way up and down, without the jobs in between.
    pub fn boot_and_power_off(&self) -> u64 {
        let ending = self.marks.get(Mark::Ending.name()).copied().unwrap_or(0);
        self.until(Mark::Booted) + self.power_off.saturating_sub(ending)
    }

    /// Instructions of the job whose reads are counted.
    pub fn reading(&self) -> u64 {
        self.between(Mark::Reading, Mark::Read)
    }

    /// Instructions of those reads alone: without those of the same program with fewer of them.
    pub fn reads_alone(&self) -> u64 {
        let few = self.between(Mark::Started, Mark::Reading);
        self.reading().saturating_sub(few)
    }
}

/// Runs QEMU with `arguments` and counts. Returns the console's text too.
///
/// # Errors
/// The machine does not start, or the guest does not come to its marks in their order.
pub fn count(
    arguments: &[OsString],
    start: &Start,
    folder: &Path,
) -> Result<(Count, String), MachineError> {
    let socket = folder.join("debugger");
    // One that an earlier machine left.
    let _ = std::fs::remove_file(&socket);
    let mut all = arguments.to_vec();
    let mut add = |words: [OsString; 2]| all.extend(words);
    add(["-icount".into(), "shift=0".into()]);
    // What QEMU draws for the guests' random numbers, and the date, are the same each time.
    add(["-seed".into(), "1".into()]);
    add(["-rtc".into(), "base=2026-01-01,clock=vm".into()]);
    let server = format!(
        "socket,id=debugger,path={},server=on,wait=off",
        socket.display()
    );
    add(["-chardev".into(), server.into()]);
    add(["-gdb".into(), "chardev:debugger".into()]);
    all.push("-S".into());

    let (sender, receiver) = mpsc::channel();
    let process = Process::start(&all, sender).map_err(MachineError::Start)?;
    let mut console = Console {
        pieces: receiver,
        text: String::new(),
    };
    let began = Instant::now();
    while !socket.exists() && began.elapsed() < START {
        std::thread::sleep(Duration::from_millis(20));
    }
    let counted = Debugger::connect(&socket, PATIENCE)
        .map_err(|error| console.failure(error))
        .and_then(|debugger| {
            Watch {
                debugger,
                console: &mut console,
            }
            .count(start)
        });
    let counted = counted?;
    let console = console.whole();
    // What QEMU itself says in the end is of no use to anyone.
    let _ = process.end(true);
    Ok((counted, console))
}

/// Output of the machine's console.
#[derive(Debug)]
struct Console {
    pieces: Receiver<Vec<u8>>,
    text: String,
}

impl Console {
    /// Everything so far.
    fn everything(&mut self) -> String {
        while let Ok(piece) = self.pieces.try_recv() {
            self.text += &String::from_utf8_lossy(&piece);
        }
        self.text.clone()
    }

    /// Everything so far, after giving what is under way the time to come.
    fn whole(&mut self) -> String {
        std::thread::sleep(Duration::from_millis(200));
        self.everything()
    }

    /// The last lines.
    fn tail(&mut self) -> String {
        let text = self.whole();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(20)..);
        tail.unwrap_or_default().join("\n")
    }

    fn failure(&mut self, error: DebugError) -> MachineError {
        let console = self.tail();
        MachineError::Debug { error, console }
    }
}

struct Watch<'a> {
    debugger: Debugger,
    console: &'a mut Console,
}

impl Watch<'_> {
    fn count(&mut self, start: &Start) -> Result<Count, MachineError> {
        let (firmware_done, first) = self
            .first(start)
            .map_err(|error| self.console.failure(error))?;
        // Without this a guest without firmware has no clock in user mode: what would set the register there is the
        // kernel's driver for the counters.
        self.debug(|debugger| debugger.write("scounteren", USER_COUNTERS))?;
        for mark in Mark::ALL {
            self.debug(|debugger| debugger.break_at(mark.address()))?;
        }
        let mut marks = BTreeMap::new();
        for mark in Mark::ALL {
            self.debug(Debugger::go)?;
            let at = self.debug(|debugger| debugger.read("pc"))?;
            if at != mark.address() {
                let mark = mark.name();
                return Err(MachineError::WrongMark { at, mark });
            }
            marks.insert(mark.name(), self.instructions()?);
            self.debug(|debugger| debugger.forget(mark.address()))?;
        }
        let text = self.console.whole();
        if text.contains("partita-bench failed") {
            return Err(MachineError::Job(self.console.tail()));
        }
        let address =
            power_off(&text).ok_or_else(|| MachineError::NoPowerOff(self.console.tail()))?;
        self.debug(|debugger| debugger.break_at(address))?;
        self.debug(Debugger::go)?;
        let power_off = self.instructions()?;
        // The rest is not counted, but what a hypervisor reports in the end tells where instructions go.
        let _ = self
            .debugger
            .forget(address)
            .and_then(|()| self.debugger.go());
        Ok(Count {
            firmware_done,
            first,
            marks,
            power_off,
        })
    }

    fn instructions(&mut self) -> Result<u64, MachineError> {
        let inhibited = self.debug(|debugger| debugger.read("mcountinhibit"))?;
        if inhibited & INSTRET_INHIBIT != 0 {
            return Err(MachineError::Inhibited);
        }
        self.debug(|debugger| debugger.read("minstret"))
    }

    fn debug<T>(
        &mut self,
        act: impl FnOnce(&mut Debugger) -> Result<T, DebugError>,
    ) -> Result<T, MachineError> {
        act(&mut self.debugger).map_err(|error| self.console.failure(error))
    }

    /// The counts at the end of the firmware and at the guest's first instruction.
    fn first(&mut self, start: &Start) -> Result<(u64, u64), DebugError> {
        let debugger = &mut self.debugger;
        let firmware_done = run_to(debugger, &[AFTER_FIRMWARE])?;
        let first = match start {
            Start::Native => firmware_done,
            Start::Nested => {
                debugger.step()?;
                run_to(debugger, &[BOTTOM_OF_MEMORY, AFTER_FIRMWARE])?
            }
            Start::Hypervisor(returns) => loop {
                run_to(debugger, returns)?;
                let enters = debugger.read("hstatus")? & PREVIOUS_IS_GUEST != 0;
                debugger.step()?;
                if enters {
                    break debugger.read("minstret")?;
                }
            },
        };
        Ok((firmware_done, first))
    }
}

/// Runs to the first of some addresses; the instructions counted by then.
fn run_to(debugger: &mut Debugger, addresses: &[u64]) -> Result<u64, DebugError> {
    for address in addresses {
        debugger.break_at(*address)?;
    }
    debugger.go()?;
    for address in addresses {
        debugger.forget(*address)?;
    }
    debugger.read("minstret")
}

/// Where the guest's kernel ends, as the guest says.
fn power_off(console: &str) -> Option<u64> {
    let words = console.split_once("partita-bench power-off ")?.1;
    u64::from_str_radix(words.split_whitespace().next()?, 16).ok()
}
