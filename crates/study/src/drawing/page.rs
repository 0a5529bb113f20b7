//! The page that pictures stand on.

use runner::table::Table;

/// Colours and type. The palette is told apart by people with any kind of colour vision (Okabe and Ito's, darkened for
/// white and lightened for black where it has to be).
const STYLE: &str = "
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c1f23; --faint: #6a727b; --grid: #dfe3e7; --band: #f3f5f7;
  --c0: #0072b2; --c1: #d55e00; --c2: #00805c; --c3: #b3558f; --c4: #a67c00; --c5: #3a8fbf; --c6: #7a5c3a; --c7: #555b61; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e6e9ec; --faint: #9aa3ac; --grid: #2c3238;
  --band: #1c2126; --c0: #56b4e9; --c1: #ff9248; --c2: #2fc79a; --c3: #e193c3; --c4: #f0c242; --c5: #8cc9f0;
  --c6: #c9a57b; --c7: #aab2ba; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; max-width: 76rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 0.3rem; }
p { max-width: 48rem; white-space: pre-line; } figure { margin: 0.8rem 0; overflow-x: auto; }
svg { display: block; min-width: 46rem; max-width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .faint { fill: var(--faint); } svg .grid { stroke: var(--grid); }
svg .axis { stroke: var(--faint); } svg .band { fill: var(--band); } svg .turn { fill: var(--c4); fill-opacity: 0.18; }
div.wide { overflow-x: auto; } .best { font-weight: 700; }
table { border-collapse: collapse; margin: 0.6rem 0; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.15rem 0.7rem 0.15rem 0; text-align: right; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child { text-align: left; } th, td { white-space: nowrap; }
.words { white-space: normal; min-width: 12rem; overflow-wrap: anywhere; } th { color: var(--faint); font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; color: var(--faint); font-size: 0.9rem; }
.legend i { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.4em; border-radius: 2px; }
article { border-top: 1px solid var(--grid); padding: 0.5rem 0 0.2rem; } article p { margin: 0.2rem 0; }
h3 { font-size: 1rem; font-weight: 500; margin: 0.2rem 0; } h3 b { margin-right: 0.4em; } article p { color: var(--faint); }
article th, article td { white-space: normal; text-align: left; vertical-align: top; } article td:last-child { min-width: 7rem; }
svg.mark { display: inline-block; min-width: 0; height: 0.9em; vertical-align: -0.08em; margin-right: 0.4em; }
@media (max-width: 40rem) { body { margin: 1rem auto; } h1 { font-size: 1.25rem; } h2 { font-size: 1.05rem; } }
";

/// A table's cell with more characters than this may be broken into lines: it holds words, and no figures.
const WORDS: usize = 40;

/// Colours of the palette.
pub(super) const COLOURS: usize = 8;

/// The colour for the thing with this number.
pub(crate) fn colour(index: usize) -> String {
    format!("var(--c{})", index % COLOURS)
}

/// A page under construction.
#[derive(Debug)]
pub struct Page {
    text: String,
}

impl Page {
    /// A page with this title.
    pub fn new(title: &str) -> Self {
        let title = escape(title);
        Self {
            text: format!(
                "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
                 <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
                 <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
            ),
        }
    }

    /// Adds HTML.
    pub(super) fn push(&mut self, html: &str) {
        self.text += html;
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) {
        self.text += &format!("<h2>{}</h2>\n", escape(text));
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.text += &format!("<p>{}</p>\n", escape(text));
    }

    /// A picture, with what it shows for those who cannot see it.
    pub fn figure(&mut self, svg: &str, description: &str) {
        let description = escape(description);
        self.text +=
            &format!("<figure role=\"img\" aria-label=\"{description}\">\n{svg}</figure>\n");
    }

    /// Legend.
    pub fn legend(&mut self, names: &[String]) {
        self.text += "<div class=\"legend\">";
        for (index, name) in names.iter().enumerate() {
            let (colour, name) = (colour(index), escape(name));
            self.text += &format!("<span><i style=\"background:{colour}\"></i>{name}</span>");
        }
        self.text += "</div>\n";
    }

    /// Legend: names and colours.
    pub fn colours(&mut self, colours: &[(String, String)]) {
        self.text += "<div class=\"legend\">";
        for (name, colour) in colours {
            let (name, colour) = (escape(name), escape(colour));
            self.text += &format!("<span><i style=\"background:{colour}\"></i>{name}</span>");
        }
        self.text += "</div>\n";
    }

    /// A table.
    pub fn table(&mut self, table: &Table) {
        self.text += "<div class=\"wide\"><table>\n";
        for (index, row) in table.rows().iter().enumerate() {
            let tag = if index == 0 { "th" } else { "td" };
            let cells = row.iter().map(|cell| {
                let class = match cell.chars().count() > WORDS {
                    true => " class=\"words\"",
                    false => "",
                };
                format!("<{tag}{class}>{}</{tag}>", escape(cell))
            });
            self.text += &format!("<tr>{}</tr>\n", cells.collect::<String>());
        }
        self.text += "</table></div>\n";
    }

    /// The whole page.
    pub fn finish(mut self) -> String {
        self.text += "</body>\n</html>\n";
        self.text
    }
}

/// Text as HTML and SVG write it: names come from files that anybody may have written.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            control if control.is_control() && control != '\n' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}
