//! Places of the hypervisor that the farm has reached, by module.

use super::super::output;
use crate::code_size::Owner;
use fuzz::code::{Code, Covered};
use runner::table::Table;
use std::collections::BTreeMap;

/// Names of a module's path that make a row.
const DEPTH: usize = 3;
/// Functions that are listed of those that were never called.
const MAX_FUNCTIONS: usize = 40;
/// Row of functions whose symbols name no module: assembly.
const UNNAMED: &str = "(symbols without a module)";

/// Places of a module or a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    reached: usize,
    all: usize,
}

impl Count {
    fn add(&mut self, reached: bool) {
        self.reached += usize::from(reached);
        self.all += 1;
    }

    fn percent(self) -> String {
        percent(self.reached, self.all)
    }
}

fn percent(part: usize, all: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / all.max(1) as f64)
}

/// Places by function, and by module.
fn counts(code: &Code, covered: &Covered) -> (Vec<Count>, BTreeMap<String, Count>) {
    let mut functions = vec![Count::default(); code.functions.len()];
    for (number, place) in code.places.iter().enumerate() {
        if let Some(count) = functions.get_mut(place.function) {
            count.add(covered.has(number));
        }
    }
    let mut modules = BTreeMap::<String, Count>::new();
    for (function, count) in code.functions.iter().zip(&functions) {
        let name = name(&function.symbol);
        let owner = Owner::of(&name);
        let module = owner.map_or_else(|| String::from(UNNAMED), |owner| owner.module(DEPTH));
        let sum = modules.entry(module).or_default();
        sum.reached += count.reached;
        sum.all += count.all;
    }
    (functions, modules)
}

fn name(symbol: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(symbol))
}

/// Shows the share of places by module, and the largest functions that were never called.
pub(super) fn show(code: &Code, covered: &Covered) {
    let (functions, modules) = counts(code, covered);
    let mut table = Table::new(["module", "reached", "places", "share"]);
    for (module, count) in modules {
        let (reached, all) = (count.reached.to_string(), count.all.to_string());
        table.row([module, reached, all, count.percent()]);
    }
    let functions = code.functions.iter().zip(functions);
    let mut never: Vec<(usize, String)> = functions
        .filter(|(_, count)| count.reached == 0 && count.all > 0)
        .map(|(function, count)| (count.all, name(&function.symbol)))
        .collect();
    never.sort_by(|one, other| (other.0, &one.1).cmp(&(one.0, &other.1)));
    let mut list = Table::new(["function that was never called", "places"]);
    for (places, name) in never.iter().take(MAX_FUNCTIONS) {
        list.row([name.clone(), places.to_string()]);
    }
    let taken = code.branches_taken(covered);
    output::say(format_args!(
        "\n{table}\n{list}\n{} of {} places reached ({}), {taken} of {} branches taken ({}); {} functions never called\n",
        covered.count(),
        code.places.len(),
        percent(covered.count(), code.places.len()),
        code.branches.len(),
        percent(taken, code.branches.len()),
        never.len(),
    ));
}
