//! Draws a figure as SVG, which stands alone or inside of HTML.
//!
//! Colours are attributes, so that every program that knows SVG shows them; the style of a dark
//! screen overrides them. Curves differ in their dashes as well as in colour.

mod dots;
mod lanes;
mod paper;
mod plot;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::chart::{Body, Chart};
use super::ink::Ink;

use paper::Paper;

/// Width of a figure on a page that is wide enough, and of one on a telephone.
const WIDTHS: [i64; 2] = [820, 400];

/// Draws `chart`. With `alone` the text is a whole file.
#[must_use]
pub fn svg(chart: &Chart, alone: bool) -> String {
    drawn(chart, alone, Paper::new(WIDTHS[0], ""))
}

/// Draws `chart` twice for a page, whose style shows the one that it has room for: on a telephone
/// the letters of a wide figure could not be read.
#[must_use]
pub fn both_widths(chart: &Chart) -> String {
    let wide = drawn(chart, false, Paper::new(WIDTHS[0], "wide"));
    wide + &drawn(chart, false, Paper::new(WIDTHS[1], "narrow"))
}

/// Draws `chart` once for all screens, as for a telephone.
#[must_use]
pub fn narrow(chart: &Chart) -> String {
    drawn(chart, false, Paper::new(WIDTHS[1], ""))
}

fn drawn(chart: &Chart, alone: bool, mut paper: Paper) -> String {
    let names = matches!(chart.body, Body::Dots { .. });
    paper.heading(&chart.title, &chart.subtitle, names);
    match &chart.body {
        Body::Curves { .. } => paper.curves(&chart.body),
        Body::Panels { .. } => paper.panels(&chart.body),
        Body::Grid { .. } => paper.grid(&chart.body),
        Body::Dots { panels } => paper.dots(panels),
        Body::Lanes { span, names, lanes } => paper.lanes(*span, names, lanes),
    }
    let (width, height, class) = (paper.width, paper.bottom, paper.class);
    let mut out = String::new();
    if alone {
        out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    }
    let mut id = chart.id.clone();
    if class == "narrow" {
        id.push_str("-narrow");
    }
    let class = match class {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\"{class} viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" \
         font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\">\n\
         <title id=\"{id}-t\">{}: {}</title>\n<desc id=\"{id}-d\">{}</desc>\n",
        escape(&chart.title),
        escape(&chart.subtitle),
        escape(&chart.description),
        id = escape(&id),
    );
    if alone {
        let _ = writeln!(out, "<style>{}</style>", style());
    }
    let _ = writeln!(
        out,
        "<rect class=\"paper\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
    );
    out.push_str(&paper.out);
    out.push_str("</svg>\n");
    out
}

/// The style of dark screens, for a page with figures in it; a figure alone brings its own.
#[must_use]
pub fn style() -> String {
    let mut dark = String::from(
        ".paper{fill:#17191c}.ink{fill:#ececec}.pale{fill:#a8a8a8}.rule{stroke:#3a3d42}\
         .edge{stroke:#8a8d92}.band{fill:#2a2d32}",
    );
    for (index, colour) in Ink::dark() {
        let _ = write!(
            dark,
            ".l{index}{{stroke:{colour}}}.f{index}{{fill:{colour}}}"
        );
    }
    format!("@media (prefers-color-scheme: dark){{{dark}}}")
}

/// Text as XML has it. What XML cannot have is replaced.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{7f}'..='\u{9f}' => out.push('\u{fffd}'),
            '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => {
                out.push(letter);
            }
            _ => out.push('\u{fffd}'),
        }
    }
    out
}
