//! Where things stand in a drawing: nothing lies outside or over something else, and what belongs
//! together stands together.

use super::super::chart::{Curve, DotPanel, DotRow, Join, Lane};
use super::super::scale::{Axis, Quantity};
use super::*;

/// What begins with `start`, up to the end of its tag.
fn tags<'a>(svg: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    let all = svg.match_indices(start).map(|(at, _)| &svg[at..]);
    all.map(|it| &it[..it.find('>').expect("every tag ends")])
}

/// The number of an attribute: `x="5.5"`.
fn number(tag: &str, name: &str) -> f64 {
    let (_, rest) = tag.split_once(&format!(" {name}=\"")).expect(name);
    let (number, _) = rest.split_once('"').expect("an attribute ends");
    number.parse().expect("a number")
}

/// All numbers in the path of a tag.
fn path(tag: &str) -> Vec<f64> {
    let (_, rest) = tag.split_once(" d=\"").expect("a path");
    let (path, _) = rest.split_once('"').expect("an attribute ends");
    let parts = path.split(|it: char| it.is_ascii_alphabetic() || it == ' ');
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(|part| part.parse().expect("a number")).collect()
}

/// Left, top, right and bottom of each area in which something is drawn.
fn areas(svg: &str) -> Vec<[f64; 4]> {
    let of = |tag: &str| {
        let [x, y, width, height] = ["x", "y", "width", "height"].map(|it| number(tag, it));
        [x, y, x + width, y + height]
    };
    tags(svg, "<svg class=\"area\"").map(of).collect()
}

/// Where the text stands that begins like this.
fn text_at(svg: &str, text: &str) -> (f64, f64) {
    let at = svg.find(&format!(">{text}")).expect(text);
    let tag = &svg[svg[..at].rfind("<text").expect("a text")..];
    (number(tag, "x"), number(tag, "y"))
}

fn chart(body: Body) -> Chart {
    let [id, title, subtitle, description] = ["x", "title", "subtitle", "said"].map(str::to_owned);
    Chart {
        id,
        title,
        subtitle,
        description,
        body,
    }
}

fn curve(join: Join, points: &[(u64, u64)]) -> Curve {
    Curve {
        name: "curve".into(),
        ink: Ink::kind(0),
        join,
        points: points.iter().map(|&(x, y)| (x, Some(y))).collect(),
    }
}

fn dots(panels: usize) -> Body {
    let row = |name: &str| DotRow {
        name: name.into(),
        ink: Ink::kind(0),
        dots: vec![(1, "low".into()), (9, "high".into())],
        value: String::new(),
        bar: Some((2, 8)),
        middle: Some((5, "middle".into())),
        published: Some((6, "theirs".into())),
    };
    let panel = |at: usize| DotPanel {
        name: format!("panel {at}"),
        axis: Axis::new("", Quantity::Time),
        span: Some((0, 10)),
        marks: Vec::new(),
        origin: Some((5, (4, 6))),
        rows: vec![row("upper"), row("lower")],
    };
    Body::Dots {
        panels: (0..panels).map(panel).collect(),
    }
}

#[test]
fn every_letter_that_means_something_in_xml_is_escaped() {
    let text = "<a b=\"1\" c='2'>&\t\u{e4}\u{1f600}";
    let want = "&lt;a b=&quot;1&quot; c=&#39;2&#39;&gt;&amp;\t\u{e4}\u{1f600}";
    assert_eq!(escape(text), want);
    assert_eq!(escape("\u{1}\u{7f}\u{9f}\u{fffe}"), "\u{fffd}".repeat(4));
}

#[test]
fn a_legend_has_as_many_rows_as_its_names_need_and_ends_before_the_edge() {
    let drawn = |many: usize| {
        let of = |at: usize| Curve {
            name: format!("a curve with a long name, number {at};"),
            ..curve(Join::Line, &[(0, 0), (9, 9)])
        };
        svg(
            &chart(Body::Curves {
                x: Axis::new("time", Quantity::Time),
                y: Axis::new("count", Quantity::Count),
                span: None,
                curves: (0..many).map(of).collect(),
            }),
            false,
        )
    };
    let places = |many: usize| {
        let text = drawn(many);
        let at = |at| text_at(&text, &format!("a curve with a long name, number {at};"));
        (0..many).map(at).collect::<Vec<_>>()
    };
    // About 290 pixels each: two have room beside each other.
    let five = places(5);
    let left = five[0].0;
    for (at, place) in five.iter().enumerate() {
        let (row, column) = (at / 2, at % 2);
        assert_eq!(place.1, five[0].1 + 18.0 * row as f64, "{at}");
        assert_eq!(place.0, if column == 0 { left } else { five[1].0 }, "{at}");
    }
    assert!(five[1].0 > left + 250.0 && five[1].0 < 540.0);
    let top = |many| areas(&drawn(many))[0][1];
    assert_eq!((top(2) - top(1), top(5) - top(2)), (18.0, 36.0));
}

#[test]
fn panels_of_curves_stand_below_each_other_under_their_names() {
    let curves = ["one", "two", "three"].map(|name| Curve {
        name: name.into(),
        ..curve(Join::Step, &[(0, 100), (9, 120)])
    });
    let text = svg(
        &chart(Body::Panels {
            x: Axis::new("time", Quantity::Time),
            y: Axis::new("priority", Quantity::Count),
            span: (0, 9),
            curves: curves.to_vec(),
        }),
        false,
    );
    let areas = areas(&text);
    assert_eq!(areas.len(), 3);
    for (area, name) in areas.iter().zip(["one<", "two<", "three<"]) {
        let (x, y) = text_at(&text, name);
        assert!(x == area[0] && y < area[1] && y > area[1] - 14.0, "{name}");
        assert_eq!((area[0], area[2]), (areas[0][0], areas[0][2]));
        assert_eq!(area[3] - area[1], areas[0][3] - areas[0][1]);
    }
    for pair in areas.windows(2) {
        let gap = pair[1][1] - pair[0][3];
        assert!((18.0..40.0).contains(&gap), "{gap}");
    }
    // The step from 100 to 120 goes through most of each panel, and not out of it.
    for (area, tag) in areas.iter().zip(tags(&text, "<path class=\"l")) {
        let drawn = path(tag);
        let heights = [drawn[1], drawn[3]];
        assert!(
            heights.iter().all(|y| (area[1]..=area[3]).contains(y)),
            "{drawn:?}"
        );
        assert!(drawn[1] - drawn[3] > (area[3] - area[1]) / 2.0, "{drawn:?}");
    }
    // One axis below has the marks of all.
    let below = number(&text, "height") - areas[2][3];
    assert!((40.0..90.0).contains(&below), "{below}");
}

#[test]
fn a_heading_begins_above_the_axis_but_where_room_is_short_or_names_stand() {
    let curves = chart(Body::Curves {
        x: Axis::new("time", Quantity::Time),
        y: Axis::new("count", Quantity::Count),
        span: None,
        curves: vec![curve(Join::Line, &[(0, 0), (9, 9)])],
    });
    let both = both_widths(&curves);
    let (wide, narrow) = both.split_at(both.find("</svg>\n<svg xmlns").expect("two drawings"));
    let left = |svg: &str| text_at(&svg[svg.find("<rect").expect("paper")..], "title").0;
    assert_eq!(left(wide), areas(wide)[0][0]);
    assert_eq!(left(narrow), 12.0);
    assert_eq!(left(&svg(&chart(dots(1)), false)), 12.0);
}

#[test]
fn panels_of_a_grid_stand_beside_and_below_each_other() {
    let panel = |at: usize| {
        let points = [(0, 0), (9, 9)];
        (format!("panel {at}"), vec![curve(Join::Line, &points)])
    };
    let text = svg(
        &chart(Body::Grid {
            x: Axis::new("time", Quantity::Time),
            y: Axis::new("count", Quantity::Count),
            names: vec![("curve".into(), Ink::kind(0))],
            panels: (0..4).map(panel).collect(),
        }),
        false,
    );
    let [first, second, third, fourth] = areas(&text)[..] else {
        panic!("four areas: {text}");
    };
    // They begin below the heading, with no more than their names between.
    let heading = &text[text.find("</desc>").expect("a description")..];
    let heading = text_at(heading, "subtitle").1;
    assert!(
        first[1] > heading + 10.0 && first[1] < heading + 60.0,
        "{first:?} {heading}"
    );
    // Three have room beside each other, as far from each other, and end where the figure does.
    assert_eq!((first[1], first[3]), (third[1], third[3]));
    assert!(first[2] < second[0] && second[0] - first[2] == third[0] - second[2]);
    let right = f64::from(WIDTHS[0] as u16) - third[2];
    assert!((18.0..21.0).contains(&right), "{right}");
    assert_eq!((fourth[0], fourth[2]), (first[0], first[2]));
    for (at, area) in [first, second, third, fourth].into_iter().enumerate() {
        let (x, y) = text_at(&text, &format!("panel {at}"));
        // Its name stands above it, and the marks of the one above do not reach it.
        assert!(x == area[0] && y < area[1] && y > area[1] - 12.0, "{at}");
    }
    assert!(fourth[1] > first[3] + 30.0);
    // One axis at the left has texts, for all in its row: their marks end left of it.
    for tag in tags(&text, "<text class=\"pale\"").filter(|it| it.contains("\"end\"")) {
        assert!(
            number(tag, "x") < first[0] && number(tag, "x") > 0.0,
            "{tag}"
        );
    }
    // Below the last row are its marks and what all of them are.
    let below = number(&text, "height") - fourth[3];
    assert!((30.0..70.0).contains(&below), "{below}");
}

#[test]
fn a_long_mark_at_the_end_is_not_cut_off_by_the_edge() {
    let mut body = dots(2);
    let Body::Dots { panels } = &mut body else {
        panic!("dots");
    };
    let end = "a long text at the very end";
    panels[1].marks = vec![(0, "begin".into()), (10, end.into())];
    let text = svg(&chart(body), false);
    let half = end.len() as f64 * 6.8 / 2.0;
    let right = text_at(&text, end).0 + half;
    assert!((810.0..=819.0).contains(&right), "{right}");
    // Where there is room a text stands in the middle below its mark.
    let ends: Vec<_> = tags(&text, "<path class=\"edge\"").map(path).collect();
    let begin = text_at(&text, "begin").0;
    assert!(ends.iter().any(|it| it[0] == begin), "{begin}");
}

#[test]
fn texts_of_marks_do_not_lie_on_each_other_and_the_last_one_stays() {
    let mut body = dots(1);
    let Body::Dots { panels } = &mut body else {
        panic!("dots");
    };
    let texts = ["0", "+10", "+20", "+30", "+40 points"];
    panels[0].marks = (0..).zip(texts.map(str::to_owned)).collect();
    panels[0].span = Some((0, 30));
    let text = svg(&chart(body), true);
    let ends = texts.iter().filter(|it| text.contains(&format!(">{it}<")));
    let ends = ends.map(|it| {
        let (x, half) = (text_at(&text, it).0, it.len() as f64 * 6.8 / 2.0);
        (x - half, x + half)
    });
    let ends: Vec<(f64, f64)> = ends.collect();
    assert!(ends.windows(2).all(|it| it[0].1 < it[1].0), "{ends:?}");
    assert!(
        ends.len() < texts.len(),
        "all have room: the test tells nothing"
    );
    assert!(text.contains(">+40 points<"), "{text}");
}

#[test]
fn a_mark_and_an_interval_stand_where_a_curve_has_the_same_point() {
    let points = [(0, 0), (100, 50), (400, 200)];
    let bars = [(100, 50), (100, 150)];
    let text = svg(
        &chart(Body::Curves {
            x: Axis::new("hogs", Quantity::Count),
            y: Axis::new("count", Quantity::Count),
            span: None,
            curves: vec![
                curve(Join::Line, &points),
                curve(Join::Mark, &points),
                curve(Join::Bars, &bars),
            ],
        }),
        false,
    );
    let inside = &text[text.find("<svg class=\"area\"").expect("an area")..];
    let paths: Vec<Vec<f64>> = tags(inside, "<path class=\"l").map(path).collect();
    let [line, marks @ .., interval] = paths.as_slice() else {
        panic!("no paths: {text}");
    };
    assert_eq!((line.len(), marks.len(), interval.len()), (6, 3, 3));
    for (at, mark) in marks.iter().enumerate() {
        // It is ten pixels wide, and begins at its left corner.
        assert_eq!((mark[0] + 5.0, mark[1]), (line[2 * at], line[2 * at + 1]));
    }
    let [left, _, right, bottom] = areas(&text)[0];
    // 100 is a quarter of the way, and the interval goes up from the curve's point.
    assert!(
        (line[2] - left - (right - left) / 4.0).abs() < 0.2,
        "{line:?}"
    );
    assert_eq!((interval[0], interval[1]), (line[2], line[3]));
    assert!(interval[2] < interval[1] && interval[1] < bottom);
}

#[test]
fn each_cpu_has_a_row_of_its_own_under_its_name() {
    let drawn = |cpus: usize| {
        let lane = |at: usize| Lane {
            name: format!("CPU {at};"),
            stretches: vec![(0, 40, 0), (60, 100, 1)],
            told: Vec::new(),
        };
        svg(
            &chart(Body::Lanes {
                span: (0, 100),
                names: vec!["one".into(), "two".into()],
                lanes: (0..cpus).map(lane).collect(),
            }),
            false,
        )
    };
    for (cpus, row) in [(1_usize, 26.0), (3, 26.0), (40, 15.0), (200, 7.0)] {
        let text = drawn(cpus);
        let [left, top, right, bottom] = areas(&text)[0];
        // Two pixels more above and below, for lines along the edge.
        let (top, bottom) = (top + 2.0, bottom - 2.0);
        assert_eq!(bottom - top, row * cpus as f64, "{cpus}");
        let rules: Vec<_> = tags(&text, "<path class=\"rule\"").map(path).collect();
        let paths: Vec<_> = tags(&text, "<path class=\"f").map(path).collect();
        assert_eq!((rules.len(), paths.len()), (cpus, 2 * cpus));
        for at in 0..cpus {
            let begin = top + at as f64 * row;
            for stretch in &paths[2 * at..2 * at + 2] {
                let (x, y, width, height) = (stretch[0], stretch[1], stretch[2], stretch[3]);
                assert_eq!((y, y + height), (begin, rules[at][1]), "{cpus}: {at}");
                assert!((width - (right - left) * 0.4).abs() < 0.2 && height < row);
                assert!(x == left || (x + width - right).abs() < 0.2);
            }
            if row > 12.0 {
                let name = text_at(&text, &format!("CPU {at};"));
                assert!(name.0 < left && name.1 > begin && name.1 < begin + row);
            }
        }
    }
    // Names are twelve pixels high: of thin rows every second one has its name.
    assert!(drawn(200).contains("CPU 2;<") && !drawn(200).contains("CPU 1;<"));
}

#[test]
fn panels_of_dots_stand_in_two_columns_with_each_row_beside_its_name() {
    let text = svg(&chart(dots(5)), false);
    let title = |at: usize| text_at(&text, &format!("panel {at}<"));
    let columns: Vec<f64> = (0..5).map(|at| title(at).0).collect();
    assert_eq!(columns[0], 12.0);
    assert!(columns[1] > 400.0 && columns[1] < 440.0);
    assert_eq!(columns[2..], [columns[0], columns[1], columns[0]]);
    assert_eq!((title(0).1, title(2).1), (title(1).1, title(3).1));
    assert!(title(0).1 < title(2).1 && title(2).1 < title(4).1);
    let rules: Vec<_> = tags(&text, "<path class=\"rule\"").map(path).collect();
    assert_eq!(rules.len(), 10, "two rows each");
    let circles: Vec<_> = tags(&text, "<circle").collect();
    let bands: Vec<_> = tags(&text, "<rect class=\"band\"").collect();
    for (at, rule) in rules.iter().enumerate() {
        let (left, y, width) = (rule[0], rule[1], rule[2]);
        let panel = at / 2;
        // The axis ends before the next column, and begins behind the names.
        let end = if panel % 2 == 0 { columns[1] } else { 820.0 };
        assert!(left > columns[panel] + 40.0 && left + width < end, "{at}");
        // A band goes through both rows of its panel.
        let (top, height) = (number(bands[panel], "y"), number(bands[panel], "height"));
        assert_eq!(y, top + height / 4.0 * (1 + 2 * (at % 2)) as f64);
        for (circle, part) in circles[2 * at..2 * at + 2].iter().zip([0.1, 0.9]) {
            let x = left + part * width;
            assert!((number(circle, "cx") - x).abs() < 0.2, "{circle}");
            assert_eq!(number(circle, "cy"), y);
        }
    }
}

#[test]
fn the_last_mark_below_dots_has_the_unit() {
    let text = svg(&chart(dots(1)), false);
    let below = tags(&text, "<text class=\"pale\"").filter(|it| it.contains("\"middle\""));
    let marks: Vec<&str> = below
        .map(|tag| {
            let at = text.find(tag).expect("it is in the text") + tag.len() + 1;
            &text[at..at + text[at..].find('<').expect("it ends")]
        })
        .collect();
    let (last, others) = marks.split_last().expect("an axis has marks");
    assert!(last.ends_with(" ns") && others.len() > 1, "{marks:?}");
    assert!(
        others.iter().all(|it| it.parse::<u64>().is_ok()),
        "{marks:?}"
    );
}

#[test]
fn a_point_without_neighbours_is_a_round_dot() {
    let mut points = curve(Join::Line, &[(0, 1), (100, 2), (200, 3)]);
    points.points.insert(1, (50, None));
    let text = svg(
        &chart(Body::Curves {
            x: Axis::new("time", Quantity::Time),
            y: Axis::new("count", Quantity::Count),
            span: None,
            curves: vec![points],
        }),
        false,
    );
    let inside = &text[text.find("<svg class=\"area\"").expect("an area")..];
    let paths: Vec<&str> = tags(inside, "<path class=\"l").collect();
    let [line, dots] = paths.as_slice() else {
        panic!("{paths:?}");
    };
    assert_eq!((path(line).len(), path(dots).len()), (4, 3));
    assert!(dots.contains("stroke-linecap=\"round\"") && number(dots, "stroke-width") > 4.0);
}

#[test]
fn names_of_rows_are_not_cut_while_there_is_room() {
    let drawn = |name: &str| {
        let lane = Lane {
            name: name.to_owned(),
            stretches: vec![(0, 100, 0)],
            told: vec!["first\nsecond".to_owned()],
        };
        svg(
            &chart(Body::Lanes {
                span: (0, 100),
                names: vec!["one".into()],
                lanes: vec![lane],
            }),
            false,
        )
    };
    let name = "rr:slice_ns=10ms,more=1";
    let text = drawn(name);
    let [left, ..] = areas(&text)[0];
    let (x, _) = text_at(&text, name);
    // It ends left of the bars and begins on the paper.
    assert!(x < left && x - name.len() as f64 * 6.8 > 0.0, "{x} {left}");
    assert!(text.contains("data-n=\"first\nsecond\" data-whole=\"\""));
    assert!(drawn(&"long ".repeat(60)).contains('\u{2026}'));
}

#[test]
fn names_of_dots_that_have_no_room_beside_them_stand_above() {
    let mut body = dots(2);
    let Body::Dots { panels } = &mut body else {
        panic!("dots");
    };
    let names = ["hogs later with 16 of them", "hogs later with 32 of them"];
    for (row, name) in panels[0].rows.iter_mut().zip(names) {
        row.name = name.to_owned();
    }
    let text = svg(&chart(body), false);
    assert!(!text.contains('\u{2026}'), "{text}");
    let rules: Vec<_> = tags(&text, "<path class=\"rule\"").map(path).collect();
    let places = names.map(|name| text_at(&text, &format!("{name}</text>")));
    for (rule, (x, y)) in rules.iter().zip(places) {
        // The letters end above the dots of their row, and begin below those of the one before.
        assert!(
            rule[0] == x && (6.0..14.0).contains(&(rule[1] - y)),
            "{rule:?}"
        );
    }
    assert!(places[1].1 - 12.0 > rules[0][1], "{rules:?} {places:?}");
    // The other panel has short names, beside their rows.
    assert!(rules[2][0] > rules[0][0] + 400.0 && rules[3][1] - rules[2][1] == 20.0);
}

#[test]
fn dots_that_a_pointer_cannot_tell_apart_are_one_element() {
    let drawn = |many: u64| {
        let mut body = dots(1);
        let Body::Dots { panels } = &mut body else {
            panic!("dots");
        };
        panels[0].rows.truncate(1);
        panels[0].rows[0].dots = (0..many).map(|at| (at % 10, "a run".to_owned())).collect();
        svg(&chart(body), false)
    };
    assert_eq!(drawn(10).matches("<circle").count(), 10);
    let many = drawn(11);
    assert_eq!(many.matches("<circle").count(), 0);
    let dots = tags(&many, "<path class=\"l")
        .find(|it| it.contains("round"))
        .expect("dots");
    assert_eq!(dots.matches('M').count(), 11);
}

#[test]
fn what_a_row_comes_to_stands_right_of_its_axis() {
    let mut body = dots(2);
    let Body::Dots { panels } = &mut body else {
        panic!("dots");
    };
    panels[0].rows[0].value = "12.5 ms, better".to_owned();
    let text = svg(&chart(body), false);
    let (right, y) = text_at(&text, "12.5 ms");
    let rules: Vec<_> = tags(&text, "<path class=\"rule\"").map(path).collect();
    let end = rules[0][0] + rules[0][2];
    assert!(end < right - 15.0 * 6.8, "{end} {right}");
    assert_eq!(y, rules[0][1] + 4.0);
    assert!(
        rules[2][2] > rules[0][2],
        "a panel without values has all the room"
    );
}

#[test]
fn labels_and_marks_of_panels_beside_each_other_do_not_meet_and_are_not_cut() {
    let panel = |at: usize| {
        (
            format!("panel {at}"),
            vec![curve(Join::Line, &[(1_000, 1), (1_000_000_000, 9)])],
        )
    };
    let logarithmic = Axis {
        logarithmic: true,
        ..Axis::new("wait", Quantity::Time)
    };
    let label = "share of waits at least so long, logarithmic";
    let text = svg(
        &chart(Body::Grid {
            x: logarithmic,
            y: Axis::new(label, Quantity::Count),
            names: vec![("curve".into(), Ink::kind(0))],
            panels: (0..3).map(panel).collect(),
        }),
        false,
    );
    let areas = areas(&text);
    let below = tags(&text, "<text class=\"pale\"").filter(|it| it.contains("\"middle\""));
    let mut places: Vec<f64> = below.map(|tag| number(tag, "x")).collect();
    places.sort_by(f64::total_cmp);
    // Marks such as "1 \u{b5}s" have four letters at most.
    for pair in places.windows(2) {
        assert!(pair[1] - pair[0] >= 4.0 * 6.0, "{places:?}");
    }
    assert!(areas[1][0] > areas[0][2]);
    assert!(!text.contains('\u{2026}'), "{text}");
}
