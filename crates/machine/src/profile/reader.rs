//! A profile from its text, or all mistakes in it.

use core::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::field::{Field, Need, ValueKind, fields};
use super::mistake::{Mistake, Mistakes};
use super::{Profile, ProfileError};

/// A profile's text while it is looked at.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    mistakes: Vec<(usize, Mistake)>,
    /// Keys that are there, with their places.
    seen: Vec<(String, Range<usize>)>,
    /// Tables that are none.
    wrong: Vec<String>,
}

impl Profile {
    /// A profile from TOML.
    ///
    /// # Errors
    /// [`ProfileError::Mistakes`]: all of them, with lines of `file`, which is only for that.
    pub fn parse(file: &str, text: &str) -> Result<Self, ProfileError> {
        Ok(read(file, text)?)
    }
}

/// Reads a profile from the text of `file`.
fn read(file: &str, text: &str) -> Result<Profile, Mistakes> {
    let mut reader = Reader {
        file,
        text,
        mistakes: Vec::new(),
        seen: Vec::new(),
        wrong: Vec::new(),
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(text.len()..text.len());
        let remedy = "write it as TOML asks; see https://toml.io for the rules";
        reader.report(span, "", false, error.message(), remedy);
    }
    if reader.mistakes.is_empty() {
        reader.table("", table.get_ref());
        reader.missing();
    }
    if reader.mistakes.is_empty() {
        match toml::from_str::<Profile>(text) {
            Ok(profile) => {
                reader.compare(&profile);
                if reader.mistakes.is_empty() {
                    return Ok(profile);
                }
            }
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                let remedy = "compare it with `partita profile show rocket-h`";
                reader.report(span, "", false, error.message(), remedy);
            }
        }
    }
    reader.mistakes.sort_by_key(|(position, _)| *position);
    let mistakes = reader.mistakes.into_iter();
    Err(Mistakes(mistakes.map(|(_, mistake)| mistake).collect()))
}

fn join(table: &str, name: &str) -> String {
    match table {
        "" => name.to_owned(),
        _ => format!("{table}.{name}"),
    }
}

impl Reader<'_> {
    fn report(
        &mut self,
        span: Range<usize>,
        key: &str,
        with_value: bool,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let value = with_value.then(|| {
            let text = self.text.get(span.clone()).unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ")
        });
        let mistake = Mistake {
            file: self.file.to_owned(),
            line,
            key: key.to_owned(),
            value,
            message: message.into(),
            remedy: remedy.into(),
        };
        self.mistakes.push((span.start, mistake));
    }

    /// Looks at the keys of a table.
    fn table(&mut self, path: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = join(path, name.get_ref());
            if let Some(field) = fields().find(|field| field.key() == key) {
                self.seen.push((key.clone(), value.span()));
                self.value(&field, &key, value);
                continue;
            }
            let is_table =
                fields().any(|field| join(field.table, "").starts_with(&format!("{key}.")));
            match value.get_ref() {
                DeValue::Table(inner) if is_table => {
                    self.seen.push((key.clone(), name.span()));
                    self.table(&key, inner);
                }
                _ if is_table => {
                    self.wrong.push(key.clone());
                    let remedy = format!("write a table: [{key}]");
                    self.report(value.span(), &key, true, "this is no table", remedy);
                }
                _ => self.unknown(path, &key, name.span()),
            }
        }
    }

    fn unknown(&mut self, path: &str, key: &str, span: Range<usize>) {
        let known = fields().filter(|field| field.table == path);
        let mut names: Vec<String> = known.map(|field| field.key()).collect();
        let near = |name: &String| strsim::normalized_damerau_levenshtein(name, key);
        let best = fields()
            .map(|field| field.key())
            .max_by(|one, other| near(one).total_cmp(&near(other)))
            .filter(|best| near(best) > 0.7);
        let remedy = match best {
            Some(best) => format!("did you mean {best}?"),
            None if names.is_empty() => "leave it out".to_owned(),
            None => {
                names.sort_unstable();
                format!("the keys here are {}", names.join(", "))
            }
        };
        self.report(span, key, false, "a profile has no such key", remedy);
    }

    fn value(&mut self, field: &Field, key: &str, value: &Spanned<DeValue<'_>>) {
        let good = match (field.kind, value.get_ref()) {
            (ValueKind::Number(from, to), value) => {
                number(value).is_some_and(|number| (from..=to).contains(&number))
            }
            (ValueKind::Flag, value) => matches!(value, DeValue::Boolean(_)),
            (ValueKind::Word(words), DeValue::String(word)) => words.contains(&word.as_ref()),
            (ValueKind::Word(_), _) => false,
            (ValueKind::Numbers, DeValue::Array(items)) => {
                items.iter().all(|item| number(item.get_ref()).is_some())
            }
            (ValueKind::Numbers, _) => false,
        };
        if good {
            return;
        }
        let remedy = match field.kind {
            ValueKind::Number(from, to) => {
                format!("use a whole number from {from} to {to} ({})", field.unit)
            }
            ValueKind::Flag => "use true or false".to_owned(),
            ValueKind::Word(words) => format!("use one of {}", words.join(", ")),
            ValueKind::Numbers => "use a list of whole numbers, such as [0, 7]".to_owned(),
        };
        let message = format!("this cannot be ({})", field.about);
        self.report(value.span(), key, true, message, remedy);
    }

    /// Keys that every profile has, or every table of their kind.
    fn missing(&mut self) {
        for field in fields() {
            let key = field.key();
            let has = |key: &str| self.seen.iter().any(|(seen, _)| seen == key);
            let table = self.seen.iter().find(|(seen, _)| seen == field.table);
            let wanted = match field.need {
                Need::Always => true,
                Need::WithTable => table.is_some(),
                Need::Never => false,
            };
            let told = self.wrong.iter().any(|wrong| wrong == field.table);
            if has(&key) || !wanted || told {
                continue;
            }
            let span = table.map_or(0..0, |(_, span)| span.clone());
            let remedy = match field.kind {
                ValueKind::Number(from, to) => {
                    format!(
                        "add it: a whole number from {from} to {to} ({})",
                        field.unit
                    )
                }
                ValueKind::Numbers | ValueKind::Flag | ValueKind::Word(_) => "add it".to_owned(),
            };
            let message = format!("this is missing ({})", field.about);
            self.report(span, &key, false, message, remedy);
        }
    }

    /// Compares values with each other.
    fn compare(&mut self, profile: &Profile) {
        for (key, message, remedy) in profile.impossible() {
            let span = self.place(&key);
            self.report(span, &key, false, message, remedy);
        }
        let services = [
            ("disk", profile.disk.service),
            ("network", profile.network.service),
        ];
        for (device, service) in services {
            if service.shortest_seek_nanoseconds > service.longest_seek_nanoseconds {
                let key = format!("{device}.service.longest_seek_nanoseconds");
                let span = self.place(&format!("{device}.service"));
                let message = format!(
                    "{} ns is shorter than the shortest seek, {} ns",
                    service.longest_seek_nanoseconds, service.shortest_seek_nanoseconds
                );
                self.report(
                    span,
                    &key,
                    false,
                    message,
                    "raise it, or lower the shortest",
                );
            }
        }
    }

    fn place(&self, key: &str) -> Range<usize> {
        let seen = self.seen.iter().find(|(seen, _)| seen == key);
        seen.map_or(0..0, |(_, span)| span.clone())
    }
}

fn number(value: &DeValue<'_>) -> Option<u64> {
    let DeValue::Integer(number) = value else {
        return None;
    };
    let digits = number.as_str().replace('_', "");
    u64::from_str_radix(&digits, number.radix()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{
        MemoryProfile, PredictorProfile, PrefetcherProfile, ReplacementPolicy, VectorProfile,
    };

    const GOOD: &str = include_str!("../../../../profiles/rocket-h.toml");

    fn mistakes(text: &str) -> Vec<Mistake> {
        read("mine.toml", text)
            .expect_err("a profile with mistakes")
            .0
    }

    /// The line of the good profile's text that begins with this.
    fn line_of(start: &str) -> usize {
        let found = GOOD.lines().position(|line| line.starts_with(start));
        found.expect("the line") + 1
    }

    #[test]
    fn mistakes_name_their_line_and_remedy() {
        let text = GOOD
            .replace("guest_files = 7", "guest_files = 64")
            .replace(
                "size = 16384, ways = 4, replacement = \"random\" }   # the same",
                "size = 16384, ways = 0 }   # the same",
            )
            .replace("divide = 32", "divid = 32");
        let found = mistakes(&text);
        let told: Vec<(&str, usize)> = found
            .iter()
            .map(|mistake| (mistake.key.as_str(), mistake.line))
            .collect();
        // The key that is missing is told where its table begins.
        let expected = [
            ("guest_files", line_of("guest_files")),
            ("l1d.ways", line_of("l1d")),
            ("costs.divide", line_of("[costs]")),
            ("costs.divid", line_of("divide")),
        ];
        assert_eq!(told, expected);
        assert_eq!(
            found[0].to_string(),
            format!(
                "mine.toml:{}: guest_files = 64: this cannot be (guest interrupt files a hart)\n    \
                 use a whole number from 0 to 63 (files)",
                line_of("guest_files")
            )
        );
        assert_eq!(found[3].remedy, "did you mean costs.divide?");
    }

    #[test]
    fn structures_that_cannot_be_built_are_refused() {
        for (from, to, key) in [
            (
                "l1i = { size = 16384, ways = 4, replacement = \"random\" }",
                "l1i = { size = 16384, ways = 3 }",
                "l1i",
            ),
            (
                "itlb = { entries = 32, ways = 32, large = 4, replacement = \"plru\" }",
                "itlb = { entries = 33, ways = 32 }",
                "itlb",
            ),
            (
                "l2 = { size = 524288, ways = 8, replacement = \"random\" }",
                "l2 = { size = 64, ways = 8 }",
                "l2",
            ),
            (
                "l1i = { size = 16384, ways = 4, replacement = \"random\" }",
                "l1i = 3",
                "l1i",
            ),
            (
                "itlb = { entries = 32, ways = 32, large = 4, replacement = \"plru\" }",
                "itlb = { entries = 32, ways = 32, replacement = \"nru\" }",
                "itlb.replacement",
            ),
            ("channels = 1", "channels = 0", "memory.channels"),
            ("bank_busy = 47", "", "memory.bank_busy"),
            ("hertz = 1_000_000_000", "hertz = 1e9", "hertz"),
            ("hertz = 1_000_000_000", "hertz = -1", "hertz"),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD, "{from} is not in the profile");
            let found = mistakes(&text);
            assert_eq!(found[0].key, key, "{to}: {found:?}");
        }
        assert_eq!(mistakes("hertz = \n").len(), 1);
        assert!(!mistakes("").is_empty());
    }

    #[test]
    fn disks_and_networks_are_read() {
        let text = format!(
            "{GOOD}\n[disk.service]\nfixed_nanoseconds = 5\nqueue_depth = 2\n\
             [disk.faults]\nerrors = {{ at = [3] }}\n[network]\nlatency_nanoseconds = 7\n"
        );
        let profile = read("mine.toml", &text).expect("no mistakes");
        assert_eq!(profile.disk.service.fixed_nanoseconds, 5);
        assert_eq!(profile.disk.faults.errors.at, [3]);
        assert_eq!(profile.network.latency_nanoseconds, 7);
        let bad = text.replace("fixed_nanoseconds", "shortest_seek_nanoseconds");
        let found = mistakes(&bad);
        assert_eq!(found[0].key, "disk.service.longest_seek_nanoseconds");
        assert_eq!(
            mistakes(&text.replace("queue_depth = 2", "queue_depth = 0")).len(),
            1
        );
    }

    /// The table of keys and the profile's own structure say the same.
    #[test]
    fn every_key_is_known_to_both() {
        let mut full = Profile::default();
        full.l2tlb = Some(full.itlb);
        full.memory = Some(MemoryProfile {
            channels: 1,
            banks: 1,
            bank_busy: 0,
        });
        full.prefetcher = Some(PrefetcherProfile {
            streams: 1,
            distance: 1,
            outstanding: 1,
        });
        full.predictor = Some(PredictorProfile {
            counters: 1,
            history: 0,
            targets: 1,
            target_ways: 1,
            replacement: ReplacementPolicy::Fifo,
            returns: 0,
        });
        full.vector = Some(VectorProfile {
            vlen: 128,
            costs: Some(crate::profile::vector::tests::COSTS),
        });
        let value = toml::Value::try_from(&full).expect("serializes");
        let mut keys = Vec::new();
        collect("", &value, &mut keys);
        keys.sort();
        let mut known: Vec<String> = fields().map(|field| field.key()).collect();
        known.sort();
        assert_eq!(keys, known);
    }

    fn collect(path: &str, value: &toml::Value, keys: &mut Vec<String>) {
        match value {
            toml::Value::Table(table) => {
                for (name, value) in table {
                    collect(&join(path, name), value, keys);
                }
            }
            _ => keys.push(path.to_owned()),
        }
    }
}
