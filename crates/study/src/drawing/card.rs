//! A finding on a page: its verdict first, by shape and colour and in words, then what it is about.

use super::page::{Page, colour, escape};
use runner::table::Table;

/// Shape of a verdict. Shapes differ without their colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A full disc.
    Full,
    /// A ring whose lower half is full.
    LowerHalf,
    /// A ring whose left half is full.
    LeftHalf,
    /// A cross.
    Cross,
    /// A ring.
    Ring,
    /// An empty square.
    Square,
    /// A dash.
    Dash,
}

impl Mark {
    /// Its picture, as large as a letter.
    pub fn svg(self) -> String {
        let (good, part, bad, open) = (colour(2), colour(0), colour(1), colour(7));
        let ring = |colour: &str| {
            format!(
                "<circle cx=\"7\" cy=\"7\" r=\"5\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
            )
        };
        let drawn = match self {
            Self::Full => format!("<circle cx=\"7\" cy=\"7\" r=\"6\" fill=\"{good}\"/>"),
            Self::LowerHalf => format!(
                "{}<path d=\"M2 7a5 5 0 0 0 10 0z\" fill=\"{good}\"/>",
                ring(&good)
            ),
            Self::LeftHalf => format!(
                "{}<path d=\"M7 2a5 5 0 0 0 0 10z\" fill=\"{part}\"/>",
                ring(&part)
            ),
            Self::Cross => {
                format!("<path d=\"M2 2l10 10M12 2l-10 10\" stroke=\"{bad}\" stroke-width=\"3\"/>")
            }
            Self::Ring => ring(&open),
            Self::Square => format!(
                "<rect x=\"2\" y=\"2\" width=\"10\" height=\"10\" fill=\"none\" stroke=\"{open}\" stroke-width=\"2\"/>"
            ),
            Self::Dash => format!("<path d=\"M2 7h10\" stroke=\"{open}\" stroke-width=\"2\"/>"),
        };
        format!("<svg class=\"mark\" viewBox=\"0 0 14 14\" aria-hidden=\"true\">{drawn}</svg>")
    }
}

/// A finding.
#[derive(Debug)]
pub struct Card {
    /// Shape of its verdict.
    pub mark: Mark,
    /// The verdict in words.
    pub verdict: String,
    /// Its subject.
    pub title: String,
    /// A sentence below.
    pub words: String,
    /// Figures; cells are broken into lines where there is no room.
    pub table: Option<Table>,
    /// A sentence below the figures.
    pub below: Option<String>,
}

impl Page {
    /// A finding.
    pub fn card(&mut self, card: &Card) {
        let (verdict, title, words) = (&card.verdict, &card.title, &card.words);
        let [verdict, title, words] = [verdict, title, words].map(|text| escape(text));
        self.push(&format!(
            "<article>\n<h3>{}<b>{verdict}</b> {title}</h3>\n<p>{words}</p>\n",
            card.mark.svg()
        ));
        if let Some(table) = &card.table {
            self.table(table);
        }
        if let Some(below) = &card.below {
            self.paragraph(below);
        }
        self.push("</article>\n");
    }

    /// Legend: small pictures and their names.
    pub fn marks(&mut self, marks: &[(String, String)]) {
        let each = marks.iter().map(|(svg, name)| {
            let name = escape(name);
            format!("<span>{svg}{name}</span>")
        });
        self.push(&format!(
            "<div class=\"legend\">{}</div>\n",
            each.collect::<String>()
        ));
    }
}
