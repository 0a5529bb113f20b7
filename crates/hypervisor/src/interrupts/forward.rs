//! Files that their vCPUs have left: arriving messages are forwarded, and a file is freed once no hart can send to it.

use scheduler::VcpuNumber;

use super::table::{Forwarder, InFlight};
use super::{Backing, GuestFile, HartFiles, Owner, Port, ResetEpoch, Sign, file};
use crate::interrupts::softfile::Identity;

/// Number of forwardings by a file after which the harts that may still send to it are kicked to renew their translations.
/// Each forwarding costs the file's hart an exit, and each kick an exit of the kicked hart.
pub const PATIENCE: u8 = if cfg!(test) { 2 } else { 8 };

/// Reason of a hart to serve its forwarders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServeReason {
    /// A message may have arrived, or a synchronisation ended.
    Event,
    /// A file is wanted, or has forwarded for a long time: harts that can still send are kicked.
    Impatience,
}

/// Opens this hart's new forwarders, forwards the messages in them, and frees forwarders to which no hart can send any more.
/// To be called on a hart that was kicked.
pub fn serve(port: &impl Port) {
    serve_all(port, ServeReason::Event);
}

/// Serves the forwarders where a file is wanted.
pub(super) fn serve_for_a_file(port: &impl Port) {
    serve_all(port, ServeReason::Impatience);
}

/// Polls this hart's files. To be called periodically: no forwarder of this hart lives for longer than two such calls and the
/// exit of each hart that is kicked. Waiting vCPUs with an interrupt in their files are woken.
///
/// `hgeip` should show everything at once. QEMU however changes it without a lock, from the hart that writes to a file
/// and from the one that owns it, and a bit can get lost there until the next message to the same file.
pub fn poll_files(port: &impl Port) {
    serve_all(port, ServeReason::Impatience);
    let Some(files) = port.files(port.here()) else {
        return;
    };
    for file in GuestFile::in_bits(files.waiting()) {
        if let Owner::Vcpu(vcpu) = files.owner(file)
            && file::asserts(&port.select(file))
        {
            port.wake(vcpu, Sign::Polled);
        }
    }
}

fn serve_all(port: &impl Port, reason: ServeReason) {
    let Some(files) = port.files(port.here()) else {
        return;
    };
    for file in GuestFile::in_bits(files.forwarders()) {
        serve_one(port, files, file, reason);
    }
    if files.forwards() && files.begin_synchronisation() && !port.synchronise() {
        files.end_synchronisation();
    }
}

/// Ends a synchronisation: the messages that the board's APLIC had sent to this hart before [`Port::synchronise`] have arrived.
pub fn synchronised(port: &impl Port) {
    if let Some(files) = port.files(port.here()) {
        files.end_synchronisation();
        serve(port);
    }
}

/// Handles interrupts of these files of this hart: waiting vCPUs are woken, and
/// messages in forwarders are forwarded.
pub fn handle_guest_file_interrupts(port: &impl Port, pending: u64) {
    let Some(files) = port.files(port.here()) else {
        return;
    };
    for file in GuestFile::in_bits(pending) {
        match files.owner(file) {
            Owner::Vcpu(vcpu) => {
                port.watch(file, false);
                port.wake(vcpu, Sign::Interrupt);
            }
            Owner::Forwarder(_) => serve_one(port, files, file, ServeReason::Event),
            Owner::Free => port.watch(file, false),
        }
    }
}

fn serve_one(port: &impl Port, files: &HartFiles, file: GuestFile, reason: ServeReason) {
    if let Some(forwarder) = files.forwarder(file) {
        port.begin_forwarding();
        let (pending, quiet) = take(port, files, file, forwarder, reason);
        send_on(port, forwarder.vcpu, forwarder.life, pending);
        if quiet {
            end(port, files, file);
        }
        port.end_forwarding(forwarder.vcpu, pending.count_ones());
    }
}

/// Takes the messages out of a forwarder. Returns true if no hart can send to it any more.
fn take(
    port: &impl Port,
    files: &HartFiles,
    file: GuestFile,
    mut forwarder: Forwarder,
    reason: ServeReason,
) -> (u64, bool) {
    // The harts that can still send are determined before the file is read for the last time.
    let users = port.users_of_older(forwarder.vcpu, forwarder.generation);
    let quiet = forwarder.in_flight == InFlight::Nothing && users.is_empty();
    let registers = port.select(file);
    if quiet {
        return (file::take_pending(&registers, u64::MAX), true);
    }
    if !forwarder.open {
        forwarder.open = true;
        file::open_for_forwarding(&registers, port.last_identity());
        port.watch(file, true);
    }
    let pending = file::take_pending(&registers, u64::MAX);
    if pending != 0 {
        forwarder.forwards = forwarder.forwards.saturating_add(1).min(PATIENCE);
    }
    let enough = reason == ServeReason::Impatience || forwarder.forwards >= PATIENCE;
    if enough && !forwarder.notified {
        // A hart that leaves its guest uses the newest translations when it enters again.
        forwarder.notified = true;
        for hart in users.iter() {
            port.kick(hart);
        }
    }
    files.update(file, forwarder);
    (pending, false)
}

/// Frees a forwarder that is empty and to which no hart can send.
fn end(port: &impl Port, files: &HartFiles, file: GuestFile) {
    port.watch(file, false);
    file::clear(&port.select(file), port.last_identity());
    files.free(file);
}

/// Forwards messages to the present place of the vCPU's interrupts, unless the vCPU was reset after they were sent.
fn send_on(port: &impl Port, vcpu: VcpuNumber, life: ResetEpoch, pending: u64) {
    if pending != 0 {
        port.between_accesses();
        add(port, vcpu, Some(life), pending);
    }
}

/// Delivers the message `identity` to `vcpu`, wherever its interrupts are kept, and wakes it if it waits.
pub fn deliver(port: &impl Port, vcpu: VcpuNumber, identity: Identity) {
    add(port, vcpu, None, identity.bit());
}

fn add(port: &impl Port, vcpu: VcpuNumber, life: Option<ResetEpoch>, pending: u64) {
    let Some(kept) = port.interrupts(vcpu) else {
        return;
    };
    let mut interrupts = kept.lock();
    if life.is_some_and(|life| life != interrupts.life) {
        return;
    }
    match interrupts.backing {
        // The file's own hart sees it: the guest runs there, or hgeip shows it.
        Backing::File { hart, file } if hart == port.here() => {
            // Registers of the own hart are faster than a message.
            file::add_pending(&port.select(file), pending & !1);
        }
        Backing::File { hart, file } => {
            for identity in identities(pending) {
                port.send(hart, file, identity);
            }
        }
        Backing::Memory => {
            interrupts.state.pending |= pending;
            let asserts = interrupts.memory_file_asserts();
            drop(interrupts);
            if asserts {
                port.notify(vcpu);
            }
        }
    }
}

/// The identities whose bits are set, the lowest first. Bit 0 stands for none.
fn identities(pending: u64) -> impl Iterator<Item = Identity> {
    let mut left = pending & !1;
    core::iter::from_fn(move || {
        let lowest = Identity::new(left.trailing_zeros())?;
        left &= !lowest.bit();
        Some(lowest)
    })
}
