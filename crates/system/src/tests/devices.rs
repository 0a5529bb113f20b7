//! Devices of a board in system files good and bad.

use super::*;

#[test]
fn paths_of_devices_are_read() {
    let paths = "vm.web.devices=[\"/soc/rtc@101000\", \"/soc/i2c@1\"]";
    let system = read(GOOD, &[paths]).unwrap();
    let read = system.vm("web").unwrap().devices.iter();
    let read: Vec<&str> = read.map(|path| path.value.as_str()).collect();
    assert_eq!(read, ["/soc/rtc@101000", "/soc/i2c@1"]);
}

#[test]
fn strange_paths_are_named() {
    let key = "vm.web.devices";
    for (paths, words) in [
        ("[\"rtc\"]", &[key, "no path", "board --describe"][..]),
        ("[\"/soc/a b\"]", &[key, "no path"]),
        ("[\"/soc/a\", \"/soc/a\"]", &[key, "listed twice"]),
        ("[1]", &[key, "a text"]),
        ("\"/soc/a\"", &[key, "a list"]),
    ] {
        mistake(GOOD, &[&format!("{key}={paths}")], words);
    }
}

#[test]
fn required_confinement_refuses_direct_devices() {
    let confined = "vm.web.confined=\"required\"";
    let direct = ["vm.web.rng=true", "vm.web.io=\"direct\"", confined];
    mistake(GOOD, &direct, &["vm.web.confined", "io = \"general\""]);
    let general = ["vm.web.rng=true", "vm.web.io=\"general\"", confined];
    read(GOOD, &general).unwrap();
}
