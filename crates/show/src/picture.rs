//! A figure as a PNG file: its SVG, rasterised.

use std::sync::Arc;

use model::Advice;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Options, Tree, fontdb};

use crate::figure::{self, Chart};

/// `DejaVu Sans` 2.37 with the letters of Europe, Greek and Cyrillic and the signs of figures, so
/// that a picture does not depend on what is installed. How it was made: assets/README.md.
const FONT: &[u8] = include_bytes!("../assets/figures.ttf");
/// Points of the picture to a unit of the figure: letters of 12 units stay sharp on dense screens.
const SCALE: f32 = 2.0;

/// Why a figure is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// Nothing of it could be seen.
    #[error("the figure has no size")]
    NoSize,
    /// Its points do not fit into memory.
    #[error("the figure is too large")]
    TooLarge,
    /// Its drawing is no SVG.
    #[error("cannot read the figure's drawing: {0}")]
    Drawing(#[from] usvg::Error),
    /// The points could not be packed.
    #[error("cannot pack the figure: {0}")]
    Packing(String),
}

impl Advice for PictureError {
    fn advice(&self) -> Option<String> {
        None
    }
}

/// What turns figures into pictures.
pub struct Painter {
    options: Options<'static>,
}

impl Default for Painter {
    /// Reads the font.
    fn default() -> Self {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(FONT.to_vec());
        let options = Options {
            fontdb: Arc::new(fonts),
            ..Options::default()
        };
        Self { options }
    }
}

impl Painter {
    /// The figure as the bytes of a PNG file, as it looks on a light screen.
    ///
    /// # Errors
    /// When it is too large for a picture.
    pub fn paint(&self, chart: &Chart) -> Result<Vec<u8>, PictureError> {
        // Without the style of dark screens.
        let svg = figure::svg(chart, false);
        let tree = Tree::from_str(&svg, &self.options)?;
        let size = tree.size().to_int_size();
        let size = size.scale_by(SCALE).ok_or(PictureError::NoSize)?;
        let points = Pixmap::new(size.width(), size.height());
        let mut points = points.ok_or(PictureError::TooLarge)?;
        let transform = Transform::from_scale(SCALE, SCALE);
        resvg::render(&tree, transform, &mut points.as_mut());
        let packed = points.encode_png();
        packed.map_err(|error| PictureError::Packing(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::figure::{Axis, Body, Curve, Ink, Join, Quantity};

    use super::*;

    fn points(title: &str, curve: &[(u64, Option<u64>)]) -> Pixmap {
        let chart = Chart {
            id: "wait".to_owned(),
            title: title.to_owned(),
            subtitle: "mlfq < o1".to_owned(),
            description: String::new(),
            body: Body::Curves {
                x: Axis::new("time", Quantity::Time),
                y: Axis::new("wait", Quantity::Time),
                span: Some((0, 1_000_000)),
                curves: vec![Curve {
                    name: "all".to_owned(),
                    ink: Ink::of_schedulers(["mlfq"])[0],
                    join: Join::Line,
                    points: curve.to_vec(),
                }],
            },
        };
        let bytes = Painter::default().paint(&chart).unwrap();
        Pixmap::decode_png(&bytes).unwrap()
    }

    fn colours(points: &Pixmap) -> HashSet<(u8, u8, u8)> {
        let colour =
            |it: &resvg::tiny_skia::PremultipliedColorU8| (it.red(), it.green(), it.blue());
        points.pixels().iter().map(colour).collect()
    }

    #[test]
    fn a_picture_has_the_paper_the_ink_and_the_curve_of_its_figure() {
        let picture = points(
            "Latency",
            &[(0, Some(5)), (500_000, Some(900)), (1_000_000, Some(3))],
        );
        assert_eq!(picture.width(), 1640);
        let colours = colours(&picture);
        // White, the first colour of the palette, the ink of titles, and the edge of an axis.
        for colour in [
            (255, 255, 255),
            (0, 0x72, 0xb2),
            (0x1a, 0x1a, 0x1a),
            (0x5a, 0x5a, 0x5a),
        ] {
            assert!(colours.contains(&colour), "{colour:?} is missing");
        }
    }

    #[test]
    fn letters_are_drawn_and_those_outside_of_the_font_do_no_harm() {
        let with = |title: &str| points(title, &[(0, Some(5))]);
        let [latin, greek, none, far] = ["Latency", "Ωμέγα", "", "等待"].map(with);
        let ink = |picture: &Pixmap| {
            let dark = |it: &&resvg::tiny_skia::PremultipliedColorU8| it.red() < 0x80;
            // The title stands above 46 units, the subtitle below it is the same in all.
            let head = picture.pixels().iter().take(1640 * 44);
            head.filter(dark).count()
        };
        assert!(ink(&latin) > ink(&none) + 100);
        assert!(ink(&greek) > ink(&none) + 100);
        assert_ne!(latin.data(), greek.data());
        assert!(ink(&far) >= ink(&none));
    }
}
