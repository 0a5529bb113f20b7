//! Arguments of `partita run`, and what follows from them: the computer, and the point that is run.

use crate::command::failure::Failure;
use crate::command::input::{Computer, HypervisorArgument, SystemArguments};
use runner::checkpoint::Span;
use runner::computer::{Bridge, Shift};
use runner::computer::{Chosen, ComputerKind};
use runner::qemu::Variant;
use runner::window::Window;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use study::laboratory::{Computer as Place, Point};

const RUN_EXAMPLES: &str = "Examples:
  partita run systems/two-debian.toml                      two Debian guests, to their end
  partita run systems/shell.toml --console debian          with a guest's console on this terminal
  partita run systems/terminals.toml --kvm                 the same guests and users under KVM, on the machine
  partita run experiments/paper-000/light.toml --profile mainframe-1994 --json report.json
                                                           figures that `partita rerun report.json` repeats";

#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(in crate::command) struct RunArguments {
    #[command(flatten)]
    pub(super) system: SystemArguments,
    /// The computer to run on
    #[arg(long, value_enum, default_value_t = Computer::Machine)]
    pub(in crate::command) on: Computer,
    /// On the machine, what instructions and devices cost: the name of a profile that ships, or a TOML file. Without
    /// it, every instruction takes one cycle
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) profile: Option<String>,
    /// On the machine, what everything random follows from
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// On the machine, looks for fences that the hypervisor or a guest leaves out: a use of a page whose translation
    /// has changed since the hart last used it, with no fence in between, fails the run. Slow
    #[arg(long)]
    pub(super) check_translations: bool,
    /// Seconds of machine time before the machine looks. Every instruction then takes a cycle, before and afterwards
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 0,
        requires = "check_translations"
    )]
    pub(super) check_after: u64,
    /// On the machine, writes what its hardware monitor counted, as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) monitor: Option<PathBuf>,
    /// On the machine, a disk behind a host bridge of PCI, which the board then has: a raw image, which stays as it is. May be given
    /// several times
    #[arg(long, value_name = "FILE")]
    pub(super) pci_disk: Vec<PathBuf>,
    /// On the machine, an IOMMU behind which the devices on PCI are
    #[arg(long)]
    pub(super) iommu: bool,
    /// On QEMU, further options of its `-machine virt`, by which another board is tried: aia=none has a PLIC, aia=aplic no interrupt files
    #[arg(long, value_name = "OPTIONS")]
    pub(super) qemu_machine: Option<String>,
    /// On QEMU, further options of its `-cpu rv64`, such as sstc=off,zawrs=off
    #[arg(long, value_name = "OPTIONS")]
    pub(super) qemu_cpu: Option<String>,
    /// On QEMU, a further `-drive`, such as id=d,if=none,format=raw,file=disk.raw. May be given several times
    #[arg(long, value_name = "OPTIONS")]
    pub(super) qemu_drive: Vec<String>,
    /// On QEMU, a further `-netdev`, such as user,id=n. May be given several times
    #[arg(long, value_name = "OPTIONS")]
    pub(super) qemu_netdev: Vec<String>,
    /// On QEMU, a further `-device`, such as nvme,drive=d,serial=1 on the board's PCI bus. May be given several times
    #[arg(long, value_name = "OPTIONS")]
    pub(super) qemu_device: Vec<String>,
    /// Gives this VM's console to the terminal; `partita` stands for the operator's prompt.
    /// Ctrl-] is the escape key: then n for the next VM, 1 to 9 for a VM by number, m for the prompt,
    /// q to power everything off, Ctrl-] for itself
    #[arg(long, value_name = "VM")]
    pub(in crate::command) console: Option<String>,
    /// Writes the report as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// On the machine, boots the first VM's kernel on the computer itself, with all of its harts and memory, its command
    /// line and its devices, and without the hypervisor
    #[arg(long, conflicts_with = "console")]
    pub(super) native: bool,
    /// On the machine, runs every VM by QEMU and KVM on a Debian host in the hypervisor's place: the same kernels, disks,
    /// command lines and terminals
    #[arg(long, conflicts_with_all = ["console", "native"])]
    pub(super) kvm: bool,
    /// Makes no native run beside this one. Otherwise, where the first VM's work is counted, relative-throughput,
    /// elapsed-time-expansion and cpu-time-expansion are computed from the same work by the first VM's kernel on the machine itself: a
    /// recorded run, else one that is made
    #[arg(long)]
    pub(in crate::command) without_native: bool,
    /// Says what a measure means, instead of running
    #[arg(long, value_name = "NAME")]
    pub(super) explain: Option<String>,
    /// Leaves out of the report what made it
    #[arg(long, hide = true)]
    pub(super) without_makers: bool,
    /// On the machine, goes on from this checkpoint, which a comparison made
    #[arg(long, hide = true, value_name = "FILE", conflicts_with_all = ["console", "check_translations", "monitor"])]
    pub(super) checkpoint: Option<PathBuf>,
    /// Measures the steady part of the run alone, from when all VMs work to when the first ends: for systems whose VMs are all
    /// exercisers that work for a time
    #[arg(long, conflicts_with_all = ["console", "native", "kvm", "check_translations", "monitor", "checkpoint", "logs", "control", "metrics"])]
    pub(super) steady_state: bool,
    /// Counts the round trips through the hypervisor in that part, by what the guest was left for: the measures `exit-latency-cycles` and
    /// `exit-latency-instructions`
    #[arg(long, requires = "steady_state")]
    pub(super) exit_latency: bool,
    /// Measures besides what part of its share each VM had that always wanted it, in windows of 20 ms and of 200 ms: for systems
    /// whose VMs are all exercisers that work for a time
    #[arg(long, conflicts_with_all = ["console", "native", "kvm", "check_translations", "monitor", "checkpoint", "logs", "control", "metrics", "steady_state"])]
    pub(super) shares: bool,
    /// Offsets at the beginning of the run, as JSON
    #[arg(long, hide = true, value_name = "JSON", value_parser = shift, conflicts_with_all = ["console", "native", "kvm", "checkpoint"])]
    pub(super) shift: Option<Shift>,
    /// Commands for the operator's prompt before anything is measured from the checkpoint
    #[arg(
        long = "command",
        hide = true,
        value_name = "COMMAND",
        requires = "checkpoint"
    )]
    pub(super) commands: Vec<String>,
    /// The part of the run from the checkpoint that is measured, as JSON
    #[arg(long, hide = true, value_name = "JSON", value_parser = span, requires = "checkpoint")]
    pub(super) span: Option<Span>,
    /// Process id of the parent; this process exits when the parent does
    #[arg(long, hide = true, value_name = "ID")]
    pub(super) parent: Option<u32>,
    /// Gives the run up after this much of the host's time; without it, after the system's time-limit, which on the
    /// machine is machine time
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(in crate::command) timeout: Option<u64>,
    #[command(flatten)]
    pub(in crate::command) hypervisor: HypervisorArgument,
    /// Shows the firmware's lines too
    #[arg(long, short)]
    pub(super) verbose: bool,
    /// Keeps each VM's lines in a file of its own in this folder, and the hypervisor's in partita.log
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["native", "kvm"])]
    pub(super) logs: Option<PathBuf>,
    /// Makes a socket at which `partita ctl` and programs say what an operator says at the prompt, and get events; `partita
    /// reference --control` writes its protocol. The run goes on where all guests wait, as a command may still come
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["console", "native", "kvm"])]
    pub(super) control: Option<PathBuf>,
    /// Serves the performance monitor's figures to Prometheus at http://ADDRESS/metrics, such as 127.0.0.1:9187; the host chooses port 0,
    /// and the run says which. The run goes on where all guests wait
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["console", "native", "kvm"])]
    pub(super) metrics: Option<SocketAddr>,
    /// Shows neither the guests' lines nor tables, but a summary of five lines; with --native or --kvm the measures alone
    #[arg(long, short, conflicts_with = "verbose")]
    pub(super) quiet: bool,
}

/// A shift as a comparison says it.
fn shift(text: &str) -> Result<Shift, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// A span as a comparison says it.
fn span(text: &str) -> Result<Span, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Point that is run.
pub(in crate::command) fn point(arguments: &RunArguments) -> Point {
    let steady = arguments.steady_state.then(|| arguments.system.read().ok());
    Point {
        system: arguments.system.file.clone(),
        changes: arguments.system.changes.clone(),
        computer: match arguments.on {
            Computer::Qemu => Place::Qemu,
            Computer::Machine => Place::Machine {
                profile: arguments.profile.clone(),
            },
        },
        seed: arguments.seed,
        native: arguments.native,
        kvm: arguments.kvm,
        hypervisor: None,
        start: None,
        window: steady.flatten().as_ref().and_then(Window::of),
        shares: arguments.shares,
        shift: arguments.shift.clone(),
        exit_latency: arguments.exit_latency,
    }
}

/// Which computer, with what was chosen about it.
pub(super) fn computer(arguments: &RunArguments) -> Result<ComputerKind, Failure> {
    let only: [(&str, bool); 8] = [
        ("--profile", arguments.profile.is_some()),
        ("--seed", arguments.seed != 0),
        ("--monitor", arguments.monitor.is_some()),
        ("--check-translations", arguments.check_translations),
        ("--native", arguments.native),
        ("--kvm", arguments.kvm),
        ("--pci-disk", !arguments.pci_disk.is_empty()),
        ("--iommu", arguments.iommu),
    ];
    match (arguments.on, only.iter().find(|(_, given)| *given)) {
        (Computer::Qemu, Some((option, _))) => Err(Failure::MachineOnly(option)),
        (Computer::Qemu, None) => Ok(ComputerKind::Qemu(Variant {
            machine: arguments.qemu_machine.clone(),
            cpu: arguments.qemu_cpu.clone(),
            drives: arguments.qemu_drive.clone(),
            networks: arguments.qemu_netdev.clone(),
            devices: arguments.qemu_device.clone(),
        })),
        (Computer::Machine, _) => {
            let qemu_only = [
                ("--qemu-machine", arguments.qemu_machine.is_some()),
                ("--qemu-cpu", arguments.qemu_cpu.is_some()),
                ("--qemu-drive", !arguments.qemu_drive.is_empty()),
                ("--qemu-netdev", !arguments.qemu_netdev.is_empty()),
                ("--qemu-device", !arguments.qemu_device.is_empty()),
            ];
            if let Some((option, _)) = qemu_only.iter().find(|(_, given)| *given) {
                return Err(Failure::QemuOnly(option));
            }
            let mut chosen = Chosen::named(arguments.profile.as_deref(), arguments.seed)?;
            chosen.check_translations = arguments.check_translations;
            chosen.check_after = Duration::from_secs(arguments.check_after);
            chosen.shift = arguments.shift.clone().unwrap_or_default();
            chosen.exit_latency = arguments.exit_latency;
            chosen.pci = (arguments.iommu || !arguments.pci_disk.is_empty()).then(|| Bridge {
                disks: arguments.pci_disk.clone(),
                iommu: arguments.iommu,
            });
            Ok(ComputerKind::Machine(Box::new(chosen)))
        }
    }
}
