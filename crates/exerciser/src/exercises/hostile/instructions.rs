//! Every hypervisor, machine and supervisor instruction, in supervisor and in user mode.

use exerciser::csr::Host;
use exerciser::instruction::{A0, Allowed, PRIVILEGED};

use super::{ILLEGAL, Siege, plain_setting, run_word, tables};
use crate::arch::sandbox::{Ending, Sandbox};
use crate::arch::team;
use crate::board::board;
use crate::console::say;

/// Instructions that QEMU (10.0) completes in user mode though the specification ("Svinval") has them trap there. The computer decides
/// that, no hypervisor can, so it is told and not counted.
const DEPARTURES_IN_USER_MODE: [&str; 2] = ["sfence.w.inval", "sfence.inval.ir"];

pub fn run(siege: &mut Siege) {
    let Some(user_space) = tables::user_space() else {
        crate::start::fail(format_args!("not enough memory for translation tables"));
    };
    let sandbox = Sandbox::of(team::current());
    for &(name, word, supervisor, user) in PRIVILEGED {
        for (is_user, allowed) in [(false, supervisor), (true, user)] {
            let mut setting = plain_setting();
            setting.user = is_user;
            // What waits, or returns to itself, ends by the limit.
            setting.limit = board().ticks(10_000);
            setting.satp = if is_user { user_space.satp(0) } else { 0 };
            // The sandbox's last page: after the program, aligned.
            setting.registers[A0 as usize] = sandbox.data() + 2048;
            let ending = run_word(word, &mut setting);
            let is_illegal = matches!(ending, Ending::Trapped { cause: ILLEGAL, pc, .. } if pc == sandbox.program());
            // A waiting instruction may be what the limit's timer interrupt found. SRET goes to where the
            // sandbox was entered: for ever, or to its end where sepc was changed below it.
            let is_done = matches!(ending, Ending::Completed | Ending::TimedOut { .. });
            let passed = match allowed {
                Allowed::Completes => is_done,
                Allowed::Illegal => is_illegal,
                Allowed::Either => is_done || is_illegal,
                Allowed::Hypervisor if siege.host == Host::WithHypervisorExtension => {
                    // HLV and HSV go through vsatp and hgatp as the firmware left them.
                    !is_illegal
                }
                Allowed::Hypervisor => is_illegal,
            };
            let departs = is_user && is_done && DEPARTURES_IN_USER_MODE.contains(&name);
            if !passed && departs {
                say!("departure of the computer: {name} completes in user mode");
                continue;
            }
            siege.check(
                passed,
                format_args!("{name} user={is_user}: {allowed:?} but {ending:x?}"),
            );
        }
    }
}
