//! Values in the report of a run.

/// Value of a measure of the whole system in the report; 0 where the report leaves it out.
pub(super) fn measure(told: &str, name: &str) -> f64 {
    let mut rows = told.lines().map(str::split_whitespace);
    let row = rows.find_map(|mut row| (row.next() == Some(name)).then(|| row.next()));
    row.flatten().map_or(0.0, |value| value.parse().unwrap())
}

/// How often vCPUs were dispatched on another hart than before, as the report says.
pub(super) fn migrations(told: &str) -> u64 {
    migrations_of_vms(told).iter().sum()
}

/// The same for each VM.
pub(super) fn migrations_of_vms(told: &str) -> Vec<u64> {
    event_of_vms(told, "migration")
}

/// How often something has happened, as the report says for each VM.
pub(super) fn event_of_vms(told: &str, event: &str) -> Vec<u64> {
    let table = told.lines().skip_while(|line| !line.starts_with("events "));
    let row = table.take_while(|line| !line.is_empty());
    let counts = row.filter_map(|line| line.strip_prefix(event));
    let counts = counts.flat_map(str::split_whitespace);
    counts.map(|count| count.parse().unwrap()).collect()
}

/// How often a hart has begun to run a vCPU, as the report says for each VM and hart.
pub(super) fn dispatches(told: &str) -> u64 {
    let table = told.lines().skip_while(|line| !line.starts_with("VM  "));
    let rows = table.skip(1).take_while(|line| !line.is_empty());
    let of_vms = rows.filter(|line| !line.starts_with("(no VM)"));
    let dispatches = of_vms.map(|line| line.split_whitespace().rev().nth(2).unwrap());
    dispatches.map(|count| count.parse::<u64>().unwrap()).sum()
}
