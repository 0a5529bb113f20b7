//! Prints the address of every instruction that hart 0 executes, with the registers it changed.
//!
//! `trace FIRMWARE SKIP COUNT [KERNEL]`

use machine::board::Images;
use machine::code::BlockLimit;
use machine::{Config, Limit, Machine};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let firmware = std::fs::read(arguments.next().ok_or("no firmware given")?)?;
    let skip: u64 = arguments.next().ok_or("nothing to skip given")?.parse()?;
    let count: u64 = arguments.next().ok_or("no count given")?.parse()?;
    let kernel = arguments.next().map(std::fs::read).transpose()?;
    let config = Config {
        quantum: 1,
        blocks: BlockLimit {
            instructions: 1,
            ..BlockLimit::default()
        },
        ..Config::default()
    };
    let mut machine = Machine::new(config)?;
    machine.load(&Images {
        firmware: &firmware,
        kernel: kernel.as_deref(),
        initrd: None,
    })?;
    machine.run(Limit {
        instructions: Some(skip),
        cycles: None,
    });
    for _ in 0..count {
        let Some(before) = machine.harts().first().map(|hart| (hart.pc, hart.x)) else {
            break;
        };
        print!("{:016x}", before.0);
        machine.run(Limit {
            instructions: Some(1),
            cycles: None,
        });
        if let Some(hart) = machine.harts().first() {
            for (index, (new, old)) in hart.x.iter().zip(before.1).take(32).enumerate() {
                if *new != old {
                    print!(" x{index}={new:x}");
                }
            }
        }
        println!();
    }
    Ok(())
}
