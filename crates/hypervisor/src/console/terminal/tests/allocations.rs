//! Output neither allocates nor frees.

use super::*;

/// Guests print what becomes longest on the terminal and lose some of it, and events come faster than the UART takes them.
#[test]
fn no_output_allocates_or_frees() {
    let names = (0..8).map(|index| VmName::new(&format!("{:a<31}", ["b", "c"][index % 2])));
    let mut console = Console::new(names.map(Option::unwrap));
    let mut unsent = VecDeque::with_capacity(crate::console::UNSENT);
    let returns = "\r".repeat(511) + "x";
    let texts = [returns.as_str(), "x", "\rpartita-monitor y", "\x1b[1m\n"];
    let longest = "z".repeat(60_000);
    let mut most = 0;
    for focus in [None, Some(VmId(0)), Some(VmId(2))] {
        console.set_focus(focus);
        for prompt in [false, true] {
            if prompt {
                type_in(&mut console, b"\x1dmvm list");
            }
            let count = allocations(|| {
                for (vm, text) in (0..8).map(VmId).zip(texts.into_iter().cycle()) {
                    let bytes = text.bytes().cycle().take(2 * BACKLOG);
                    bytes.for_each(|byte| console.push(vm, byte));
                }
                for number in 0..3000 {
                    console.say(format_args!("VM {number} stopped\nand is restarted"));
                }
                while console.drain(crate::console::LARGEST_PORTION, &mut |byte| {
                    unsent.push_back(byte)
                }) {
                    most = unsent.len().max(most);
                    unsent.clear();
                }
                unsent.clear();
                console.answer(format_args!("{longest}"));
                console.drain(crate::console::LARGEST_PORTION, &mut |byte| {
                    unsent.push_back(byte)
                });
                most = unsent.len().max(most);
                unsent.clear();
                (0..8).map(VmId).for_each(|vm| console.end_line(vm));
                console.drain_all(&mut |_| {});
            });
            assert_eq!(count, 0, "{focus:?}, {prompt}");
        }
    }
    assert!(most > longest.len() && most <= crate::console::UNSENT);
}
