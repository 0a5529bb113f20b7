//! Lines that fit a terminal: text, tables, and help with a terminal's colours.

/// Beginning of a control sequence (ECMA-48, 5.4), such as one that sets a colour.
const CONTROL: &str = "\x1b[";

/// Breaks lines at spaces so that none takes more than `columns`, but for a word that is longer. The rest of a line begins where the
/// last column of its table does, if that leaves room, and otherwise two further in than the line.
pub(super) fn fold(text: &str, columns: usize) -> String {
    let mut folded = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            folded.push('\n');
        }
        match width(line) <= columns {
            true => folded.push_str(line),
            false => fold_line(line, columns, &mut folded),
        }
    }
    folded
}

fn fold_line(line: &str, columns: usize, folded: &mut String) {
    let rest = hanging(line, columns);
    let (mut used, mut is_first) = (0, true);
    for (spaces, word) in words(line) {
        let length = width(word);
        if is_first || used + spaces + length <= columns {
            folded.push_str(&" ".repeat(spaces));
            used += spaces;
        } else {
            folded.push('\n');
            folded.push_str(&" ".repeat(rest));
            used = rest;
        }
        folded.push_str(word);
        used += length;
        is_first = false;
    }
}

/// Column in which the rest of a line begins.
fn hanging(line: &str, columns: usize) -> usize {
    let (mut start, mut last, mut used) = (0, None, 0);
    for (number, (spaces, word)) in words(line).enumerate() {
        used += spaces;
        match number {
            0 => start = used,
            _ if spaces > 1 => last = Some(used),
            _ => {}
        }
        used += width(word);
    }
    let fits = |column: &usize| *column <= columns * 2 / 3;
    last.filter(fits).unwrap_or(start + 2)
}

/// Words of a line, each with the number of spaces before it.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut spaces = 0;
    line.split(' ').filter_map(move |word| {
        if word.is_empty() {
            spaces += 1;
            return None;
        }
        let before = std::mem::replace(&mut spaces, 1);
        Some((before, word))
    })
}

/// Columns that a text takes: control sequences take none.
fn width(text: &str) -> usize {
    let mut parts = text.split(CONTROL);
    let first = parts.next().map_or(0, |part| part.chars().count());
    let behind = |part: &str| {
        let end = part.find(|end| ('@'..='~').contains(&end));
        let shown = end.and_then(|end| part.get(end + 1..)).unwrap_or_default();
        shown.chars().count()
    };
    first + parts.map(behind).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folded_lines_fit_and_keep_words() {
        let text = "  one two three four\nshort\nhttps://a.very.long.word/that/stays end\n";
        let folded = fold(text, 12);
        assert_eq!(
            folded,
            "  one two\n    three\n    four\nshort\nhttps://a.very.long.word/that/stays\n  end\n"
        );
        assert_eq!(fold(text, 100), text);
    }

    #[test]
    fn rest_of_rows_stands_below_their_text() {
        let row = "busy   %  time of the harts in guests";
        assert_eq!(
            fold(row, 25),
            "busy   %  time of the\n          harts in guests"
        );
        // A column that leaves no room is none to stand below.
        assert_eq!(fold("a            b  c d", 14), "a            b\n  c d");
    }

    #[test]
    fn colours_take_no_room() {
        let help = "      \x1b[1m--set\x1b[0m <KEY>  Changes a key";
        assert_eq!(width(help), 32);
        assert_eq!(fold(help, 32), help);
        assert_eq!(
            fold(help, 25),
            "      \x1b[1m--set\x1b[0m <KEY>\n        Changes a key"
        );
    }

    proptest! {
        #[test]
        fn words_stay_and_lines_fit(text in "[a-z ]{0,90}(\n[a-z ]{0,90}){0,3}", columns in 20usize..80) {
            let folded = fold(&text, columns);
            let of = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
            prop_assert_eq!(of(&folded), of(&text));
            for line in folded.lines().filter(|line| line.trim().contains(' ')) {
                prop_assert!(width(line.trim_end()) <= columns, "{:?} of {:?}", line, text);
            }
        }
    }
}
