use super::*;

use std::string::ToString;

/// Harts that come when their time has come, if they do at all. Each look at the clock takes a tick.
struct Scripted {
    time: u64,
    /// By hart, when it is back after its start; `None`: never. `Err`: the firmware refuses to start it.
    comes: Vec<Result<Option<u64>, FirmwareError>>,
    started: HartSet,
}

impl Scripted {
    fn new(comes: &[Result<Option<u64>, FirmwareError>]) -> Self {
        Self {
            time: 1_000,
            comes: comes.to_vec(),
            started: HartSet::EMPTY,
        }
    }
}

impl Harts for Scripted {
    fn start(&mut self, hart: HartId) -> Result<(), FirmwareError> {
        assert!(!self.started.contains(hart), "a hart is started once");
        self.comes[hart.index()]?;
        self.started.insert(hart);
        Ok(())
    }

    fn has_responded(&mut self, hart: HartId) -> bool {
        assert!(self.started.contains(hart), "nobody else is waited for");
        matches!(self.comes[hart.index()], Ok(Some(when)) if self.time >= 1_000 + when)
    }

    fn now(&mut self) -> u64 {
        self.time += 1;
        self.time
    }
}

fn set(harts: &[u16]) -> HartSet {
    harts.iter().copied().filter_map(HartId::new).collect()
}

#[test]
fn all_come() {
    let mut harts = Scripted::new(&[Ok(Some(0)), Ok(Some(30)), Ok(Some(7))]);
    assert_eq!(call(set(&[1, 2]), 100, &mut harts), set(&[1, 2]));
    assert!(harts.time < 1_040, "nobody waits once all have come");
}

#[test]
fn nobody_is_called() {
    let mut harts = Scripted::new(&[Ok(None)]);
    assert_eq!(call(HartSet::EMPTY, 100, &mut harts), HartSet::EMPTY);
    assert_eq!(harts.time, 1_001);
}

#[test]
fn silent_hart_is_awaited_until_the_timeout() {
    let mut harts = Scripted::new(&[Ok(None), Ok(Some(50)), Ok(None)]);
    assert_eq!(call(set(&[0, 1, 2]), 100, &mut harts), set(&[1]));
    assert!((1_150..1_160).contains(&harts.time), "{}", harts.time);
}

#[test]
fn each_that_comes_gives_the_others_time() {
    // 90 ticks between one and the next: in all far more than the patience.
    let comes: Vec<_> = (0..20).map(|hart| Ok(Some(90 * hart))).collect();
    let all: HartSet = (0..20).filter_map(HartId::new).collect();
    assert_eq!(call(all, 100, &mut Scripted::new(&comes)), all);
}

#[test]
fn hart_that_firmware_refuses_is_not_awaited() {
    let refused = Err(FirmwareError(-3));
    let mut harts = Scripted::new(&[refused, Ok(Some(5))]);
    assert_eq!(call(set(&[0, 1]), 100, &mut harts), set(&[1]));
    assert!(harts.time < 1_020, "{}", harts.time);
}

#[test]
fn report_names_missing_harts_and_the_remedy() {
    let told = |harts: &[u64]| Missing(harts).to_string();
    assert!(told(&[7]).starts_with("the firmware did not start hart 7; "));
    let several = told(&[1, 3, 57, 58, 59, 63]);
    assert!(several.starts_with("the firmware did not start harts 1, 3, 57 to 59, 63; "));
    assert!(several.contains("heap") && several.ends_with("fewer harts"));
}
