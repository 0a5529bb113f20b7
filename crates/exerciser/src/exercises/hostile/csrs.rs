//! Every CSR number, read and written, in supervisor and in user mode.

use exerciser::csr::{self, Expected};
use exerciser::instruction::{self, A0, A1};

use super::{ILLEGAL, Siege, plain_setting, run_word, tables};
use crate::arch::sandbox::{Ending, Sandbox};
use crate::arch::team;
use crate::board::board;
use crate::console::say;

pub fn run(siege: &mut Siege) {
    let Some(user_space) = tables::user_space() else {
        crate::start::fail(format_args!("not enough memory for translation tables"));
    };
    let (mut completed, mut virtual_accesses) = (0, 0);
    let mut random = siege.random(1);
    for user in [false, true] {
        for number in 0..=csr::LAST {
            let mut setting = plain_setting();
            setting.user = user;
            setting.satp = if user { user_space.satp(0) } else { 0 };
            let ending = run_word(instruction::csr_read(number, A1), &mut setting);
            let value = setting.registers[A1 as usize];
            completed += u64::from(ending == Ending::Completed);
            judge(siege, number, false, user, ending);
            // What can be read gets its own value back, which changes nothing; anything else gets anything.
            let was_read = ending == Ending::Completed;
            setting.registers[A0 as usize] = if was_read { value } else { random.next() };
            let ending = run_word(instruction::csr_write(number, A0), &mut setting);
            judge(siege, number, true, user, ending);
            virtual_accesses += u64::from(csr::is_virtual(number, false))
                + u64::from(csr::is_virtual(number, true));
        }
    }
    say!("csr completed-reads={completed} virtual-instruction-accesses={virtual_accesses}");
}

fn judge(siege: &mut Siege, number: u16, writes: bool, user: bool, ending: Ending) {
    let has = |extension: &str| {
        board().has(extension) || (extension == "ssstateen" && board().has("smstateen"))
    };
    let expected = csr::expected(siege.host, number, writes, user, has);
    let program = Sandbox::of(team::current()).program();
    let word = if writes {
        instruction::csr_write(number, A0)
    } else {
        instruction::csr_read(number, A1)
    };
    // stval is the instruction or 0 (privileged specification, "Supervisor Trap Value Register").
    let is_illegal = matches!(ending, Ending::Trapped { cause: ILLEGAL, value, pc }
        if pc == program && (value == 0 || value == u64::from(word)));
    let passed = match expected {
        Expected::Illegal => is_illegal,
        Expected::Completes => ending == Ending::Completed,
        Expected::Either => is_illegal || ending == Ending::Completed,
    };
    let (access, mode) = (
        if writes { "write" } else { "read" },
        if user { "user" } else { "supervisor" },
    );
    siege.check(
        passed,
        format_args!("csr {number:#05x} {access} {mode}: {expected:?} but {ending:x?}"),
    );
}
