//! The design of every page: the verdict in words, the pictures that carry it, the rest folded.
//!
//! A page is one file that needs nothing else. Its own policy forbids that anything is fetched, and
//! that any script runs but the one that is part of this program. Its figures need no script.

use std::io::{self, Write};

use crate::figure::{Chart, both_widths, narrow, style};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use model::plain::{escape, is_obeyed};

use crate::table::Table;
use crate::{Tone, VERSION};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
/// SHA-256 of the script's text, as a browser wants it.
const SCRIPT_HASH: &str = "sha256-wYYilorhii/VuXx3IGM3mjJBRd1mcIOc7bn7g7hc9ug=";

/// Everything that a page has.
#[derive(Debug, Default)]
pub struct Page {
    /// What it is about, for the window and above the verdict.
    pub title: String,
    /// The verdict: a sentence that anybody understands, and more.
    pub verdict: Vec<String>,
    /// What the verdict is made of: question and answer.
    pub answers: Vec<(String, String)>,
    /// A picture that is looked at before any table.
    pub lead: Option<Chart>,
    /// The tables that carry it.
    pub tables: Vec<Markup>,
    /// The pictures that carry it.
    pub pictures: Vec<Chart>,
    /// What follows, folded.
    pub folds: Vec<Fold>,
    /// Where it comes from.
    pub about: Vec<(String, String)>,
}

/// Words of a headline at most.
pub const WORDS_MAX: usize = 20;

/// A text as a headline and the rest of it: as many whole sentences, or parts of the first one, as
/// are no more than [`WORDS_MAX`] words.
#[must_use]
pub fn headline(text: &str) -> Vec<String> {
    let is_short = |text: &str| text.split_whitespace().count() <= WORDS_MAX;
    if is_short(text) {
        return vec![text.to_owned()];
    }
    // A name of a scheduler may begin a sentence, so there need be no capital.
    let sentence = |at: &usize| is_short(&text[..*at]);
    let ends = || text.match_indices(". ").map(|(at, _)| at);
    let parts = || text.match_indices("; ").map(|(at, _)| at);
    let end = ends().filter(sentence).last();
    let end = end.or_else(|| parts().filter(|at| is_short(&text[..*at])).last());
    end.map_or_else(
        || vec![text.to_owned()],
        |end| vec![format!("{}.", &text[..end]), text[end + 2..].to_owned()],
    )
}

/// A part of a page that opens when its reader wants it.
#[derive(Debug)]
pub struct Fold {
    /// For links.
    pub id: String,
    /// What is in it.
    pub title: String,
    /// It.
    pub body: Markup,
}

impl Fold {
    /// Figures, each with its caption.
    #[must_use]
    pub fn figures(id: &str, title: &str, charts: &[Chart]) -> Option<Self> {
        (!charts.is_empty()).then(|| Self {
            id: id.to_owned(),
            title: title.to_owned(),
            body: html! { @for chart in charts { (figure(chart)) } },
        })
    }
}

/// A figure with its caption; a line of text if there is nothing to see.
#[must_use]
pub fn figure(chart: &Chart) -> Markup {
    if let Some(value) = chart.level() {
        return html! { p .note { (chart.title) ": " (value) " in all runs, all the time." } };
    }
    html! {
        figure id=(format!("figure-{}", chart.id)) {
            // The drawing escapes all text that is in it.
            (PreEscaped(both_widths(chart)))
            figcaption { (chart.description) }
        }
    }
}

/// A figure for a part of a page with many: drawn once, for all screens.
#[must_use]
pub fn small_figure(chart: &Chart) -> Markup {
    html! {
        figure .small id=(format!("figure-{}", chart.id)) {
            (PreEscaped(narrow(chart)))
            figcaption { (chart.description) }
        }
    }
}

/// A table, all of its columns.
#[must_use]
pub fn table(caption: &str, table: &Table) -> Markup {
    let heads: Vec<_> = table.heads().collect();
    let side = |at: usize| (at > 0 && heads[at].2).then_some("l");
    let classes = |tone, at| match (class_of(tone), side(at)) {
        (Some(tone), Some(side)) => Some(format!("{tone} {side}")),
        (one, other) => one.or(other).map(str::to_owned),
    };
    html! {
        @if !table.is_empty() {
            div .scroll role="region" aria-label=(caption) tabindex="0" {
                table {
                    caption { (caption) }
                    thead { tr {
                        @for (at, (above, title, _)) in heads.iter().enumerate() {
                            th scope="col" class=[side(at)] {
                                (above) @if !above.is_empty() && !title.is_empty() { " " } (title)
                            }
                        }
                    } }
                    tbody { @for row in table.cells() { tr {
                        @for (at, (text, tone)) in row.enumerate() {
                            td class=[classes(tone, at)] { (text) }
                        }
                    } } }
                }
            }
        }
    }
}

/// The class of what stands out.
#[must_use]
pub const fn class_of(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Good => Some("best"),
        Tone::Bad => Some("worst"),
    }
}

/// A page that shows what browsers would obey: names of others may turn the direction of what
/// follows, in a page as in a terminal.
fn visible(page: &str) -> String {
    let mut to = String::with_capacity(page.len());
    for char in page.chars() {
        if is_obeyed(char) && !matches!(char, '\n' | '\t') {
            to.push_str(&escape(char));
        } else {
            to.push(char);
        }
    }
    to
}

impl Page {
    /// Adds a folded table.
    pub fn fold(&mut self, id: &str, title: &str, it: &Table) {
        self.folds.push(Fold {
            id: id.to_owned(),
            title: title.to_owned(),
            body: table(title, it),
        });
    }

    /// Writes the page.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let policy =
            format!("default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'");
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { "runslice: " (self.title) }
                    style { (PreEscaped(STYLE)) (PreEscaped(style())) }
                }
                body {
                    main { (self.body()) }
                    footer { p {
                        "Made by runslice " (VERSION)
                        ". docs/events.md defines every number. "
                        "Point at a figure to see its values. Drag over a figure of time to see a "
                        "part of it. Both take JavaScript."
                    } }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        to.write_all(visible(&page.into_string()).as_bytes())?;
        writeln!(to)
    }

    fn body(&self) -> Markup {
        html! {
            h1 { (self.title) }
            section .verdict #verdict aria-label="Verdict" {
                @for (at, sentence) in self.verdict.iter().enumerate() {
                    p class=[(at == 0).then_some("first")] { (sentence) }
                }
                @if !self.answers.is_empty() {
                    dl .answers { @for (question, answer) in &self.answers {
                        dt { (question) } dd { (answer) }
                    } }
                }
            }
            @if let Some(chart) = &self.lead { (figure(chart)) }
            @for table in &self.tables { (table) }
            section #pictures aria-label="Pictures" {
                @for chart in &self.pictures { (figure(chart)) }
            }
            section #details aria-label="Details" {
                @for fold in &self.folds {
                    details id=(fold.id) { summary { (fold.title) } (fold.body) }
                }
                details #about {
                    summary { "Where this comes from" }
                    dl .about { @for (name, value) in &self.about {
                        dt { (name) } dd { (value) }
                    } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use base64::prelude::{BASE64_STANDARD, Engine as _};

    use super::*;

    /// The bytes that hexadecimal digits stand for, in base 64.
    fn base64(hex: &str) -> String {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("digits");
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        BASE64_STANDARD.encode(bytes)
    }

    /// A browser runs no script whose text is not the one that the page's policy names.
    #[test]
    fn the_policy_names_the_script() {
        let mut child = Command::new("sha256sum")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("coreutils");
        let mut to = child.stdin.take().expect("a pipe");
        to.write_all(SCRIPT.as_bytes()).expect("it reads");
        drop(to);
        let output = child.wait_with_output().expect("it ends");
        let hash = String::from_utf8(output.stdout).expect("text");
        assert_eq!(SCRIPT_HASH, format!("sha256-{}", base64(&hash[..64])));
    }

    #[test]
    fn whatever_names_say_a_page_has_one_script_and_no_address() {
        let mut hostile = Table::default().names("</table>").numbers("<b>");
        let bad = "</script><script>alert(1)</script><img src=x onerror=y>\"'&";
        hostile.row([bad.to_owned(), bad.to_owned()]);
        let page = Page {
            title: bad.to_owned(),
            verdict: vec![bad.to_owned()],
            answers: vec![(bad.to_owned(), bad.to_owned())],
            about: vec![(bad.to_owned(), bad.to_owned())],
            folds: vec![Fold {
                id: bad.to_owned(),
                title: bad.to_owned(),
                body: table(bad, &hostile),
            }],
            tables: vec![table(bad, &hostile)],
            ..Page::default()
        };
        let mut bytes = Vec::new();
        page.write(&mut bytes).expect("to memory");
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(text.matches("<script").count(), 1);
        assert_eq!(text.matches("</script").count(), 1);
        assert_eq!(text.matches("<img").count(), 0);
        for way_out in [
            "<link", "<iframe", "src=\"", "url(", "@import", "http:", "https:",
        ] {
            let body = text.replace(SVG, "");
            assert!(!body.contains(way_out), "{way_out}");
        }
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</"));
    }

    #[test]
    fn a_headline_is_as_much_of_a_text_as_twenty_words_allow() {
        let words = |count: usize| vec!["word"; count].join(" ");
        let short = format!("{}.", words(20));
        assert_eq!(headline(&short), std::slice::from_ref(&short));
        let two = format!("A {}. B.c {}. And so on.", words(8), words(12));
        let rest = format!("B.c {}. And so on.", words(12));
        assert_eq!(headline(&two), [format!("A {}.", words(8)), rest]);
        let parts = format!("a 0.1 {}; b {}.", words(8), words(12));
        let rest = format!("b {}.", words(12));
        assert_eq!(headline(&parts), [format!("a 0.1 {}.", words(8)), rest]);
        let named = format!("fifo {}. mlfq {}. eevdf so.", words(8), words(12));
        let rest = format!("mlfq {}. eevdf so.", words(12));
        assert_eq!(headline(&named), [format!("fifo {}.", words(8)), rest]);
        let long = words(30);
        assert_eq!(headline(&long), std::slice::from_ref(&long));
    }

    /// The name of the format, which is no address.
    const SVG: &str = "http://www.w3.org/2000/svg";
}
