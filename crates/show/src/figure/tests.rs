//! Figures as a reader gets them.

use super::*;
use model::{EventKind, PrevState};
use stats::schedstat::{Interval, SchedstatReader};
use traces::testing::StreamWriter;

const MS: u64 = 1_000_000;

/// Two tasks take turns of 10 ms on a CPU for a second; the policy moves one up and down.
fn collected() -> Collector {
    let mut stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .born(0, 1, 1, 0)
        .wakeup(0, 0, 0)
        .wakeup(0, 1, 0)
        .switch(0, 0, None, Some(0));
    for turn in 1..100 {
        let (from, to) = ((turn + 1) % 2, turn % 2);
        let prev = Some((from as u32, PrevState::Runnable));
        let priority = 100 + turn % 40;
        stream = stream.switch(turn * 10 * MS, 0, prev, Some(to as u32)).on(
            turn * 10 * MS,
            EventKind::Report,
            to as u32,
            (turn / 10) << 32 | priority,
            0,
        );
    }
    let mut collector = Collector::new(None);
    stream.feed(&mut collector, 1, 1000 * MS);
    collector
}

fn charts() -> Vec<Chart> {
    let run = collected();
    let mut charts = run.charts();
    charts.extend(comparison(&[&run]));
    charts
}

/// The elements of an SVG, opened and closed: a small check of well-formed XML.
fn elements(svg: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut seen = Vec::new();
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("every tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if tag.starts_with('?') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{svg}");
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap_or_default().to_owned();
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        seen.push(name.clone());
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<String>::new());
    seen
}

#[test]
fn every_figure_of_a_run_is_drawn_with_title_and_description() {
    let ids: Vec<String> = charts().iter().map(|chart| chart.id.clone()).collect();
    let wanted = [
        "calls",
        "priority",
        "level",
        "cpus",
        "latency",
        "runslice",
        "busy",
        "wakeup-histogram",
        "delay-histogram",
    ];
    // Two tasks at the only CPU are no imbalance.
    let wanted_with_imbalance = [&wanted[..6], &["imbalance"], &wanted[6..]].concat();
    assert_eq!(ids, wanted_with_imbalance);
    for chart in charts() {
        let text = svg(&chart, true);
        let seen = elements(&text);
        for element in ["svg", "title", "desc", "path", "text"] {
            assert!(
                seen.iter().any(|name| name == element),
                "{}: {element}",
                chart.id
            );
        }
        assert!(
            text.contains("policy fifo, workload test, 1 CPU, HZ 250"),
            "{}",
            chart.id
        );
        assert!(
            text.contains("role=\"img\"") && text.contains("time") || chart.id.contains("hist")
        );
        // Nothing is fetched: the only address is the name of the format.
        assert_eq!(text.matches("http").count(), 1, "{}", chart.id);
    }
}

/// A hundred switches a second, in each piece of time about as many.
#[test]
fn rates_are_calls_per_second_in_the_middle_of_their_piece_of_time() {
    let charts = collected().charts();
    let Body::Curves { curves, .. } = &charts[0].body else {
        panic!("calls are curves");
    };
    assert_eq!(
        (charts[0].id.as_str(), curves[0].name.as_str()),
        ("calls", "switches")
    );
    let points: Vec<(u64, u64)> = curves[0]
        .points
        .iter()
        .map(|&(time, rate)| (time, rate.expect("no time is without a rate")))
        .collect();
    // In thousandths; the pieces are of one length and fill the second.
    let length = 2 * points[0].0;
    let last = points.len() as u64 - 1;
    for (at, &(time, _)) in (0..last).zip(&points) {
        assert_eq!(time, at * length + length / 2);
    }
    let rest = 1000 * MS - last * length;
    assert_eq!(points[last as usize].0, last * length + rest / 2);
    let calls: u128 = (0..)
        .zip(&points)
        .map(|(at, &(_, rate))| {
            u128::from(rate) * u128::from(if at == last { rest } else { length })
        })
        .sum();
    let calls = calls as f64 / 1e12;
    assert!((calls - 100.0).abs() < 0.001, "{calls}");
}

#[test]
fn calls_of_the_policy_and_kicks_have_curves_if_there_were_any() {
    let mut stream = StreamWriter::new();
    for at in 0..10 {
        stream = stream.on(at * 100 * MS, EventKind::Callback, 0, 0, 0);
        stream = stream.on(at * 100 * MS, EventKind::Kick, 0, 0, 0);
        stream = stream.on(at * 100 * MS, EventKind::Kick, 0, 0, 0);
    }
    let mut collector = Collector::new(None);
    stream.feed(&mut collector, 1, 1000 * MS);
    let charts = collector.charts();
    let Body::Curves { curves, .. } = &charts[0].body else {
        panic!("calls are curves");
    };
    let mean = |name: &str| {
        let curve = curves.iter().find(|curve| curve.name == name).expect(name);
        let rates: Vec<u64> = curve.points.iter().filter_map(|(_, rate)| *rate).collect();
        rates.iter().sum::<u64>() as f64 / rates.len() as f64 / 1000.0
    };
    let callbacks = mean("callbacks of the policy");
    // The last piece of time is short, so its rate is a little high.
    assert!((callbacks - 10.0).abs() < 2.0, "{callbacks}");
    assert!((mean("kicks") - 2.0 * callbacks).abs() < 1e-3);
    let without = collected().charts();
    let Body::Curves { curves, .. } = &without[0].body else {
        panic!("calls are curves");
    };
    assert_eq!(curves.len(), 3, "nobody told of the policy's calls");
}

/// Of priorities the lower is the better one, so it is drawn above; of levels it is not.
#[test]
fn a_better_priority_is_drawn_above() {
    let inverted = |id: &str| {
        let charts = collected().charts();
        let chart = charts.iter().find(|chart| chart.id == id).expect(id);
        match &chart.body {
            Body::Panels { y, .. } => y.inverted,
            _ => panic!("panels"),
        }
    };
    assert_eq!((inverted("priority"), inverted("level")), (true, false));
}

/// Each group runs for 10 ms.
#[test]
fn groups_beyond_the_colours_are_called_others_and_there_are_none_before() {
    let names = |groups: u32| {
        let mut stream = StreamWriter::new();
        for group in 0..groups {
            stream = stream.born(0, group, group, 0).wakeup(0, group, 0);
        }
        for group in 0..groups {
            let prev = group.checked_sub(1).map(|it| (it, PrevState::Runnable));
            stream = stream.switch(u64::from(group) * 10 * MS, 0, prev, Some(group));
        }
        let mut collector = Collector::new(None);
        stream.feed(&mut collector, 1, u64::from(groups) * 10 * MS);
        let charts = collector.charts();
        let chart = charts.iter().find(|chart| chart.id == "cpus");
        match chart.map(|chart| &chart.body) {
            Some(Body::Lanes { names, .. }) => names.clone(),
            other => panic!("{other:?}"),
        }
    };
    let colours = ink::COLOURS as u32;
    let fits = names(colours);
    assert_eq!(fits.len(), ink::COLOURS);
    assert!(fits.iter().all(|name| name != "others"), "{fits:?}");
    let more = names(colours + 2);
    assert_eq!(more.len(), ink::COLOURS + 1);
    assert_eq!(more.last().map(String::as_str), Some("others"));
}

#[test]
fn a_figure_in_which_nothing_differs_is_a_line_of_text() {
    let charts = charts();
    let level = |id: &str| charts.iter().find(|it| it.id == id).expect(id).level();
    // The one CPU is busy all the time, and two tasks at the only one are no imbalance.
    assert_eq!(level("busy").as_deref(), Some("100 %"));
    assert_eq!(level("imbalance").as_deref(), Some("0"));
    for id in ["calls", "latency", "wakeup-histogram", "cpus"] {
        assert_eq!(level(id), None, "{id}");
    }
}

#[test]
fn names_from_outside_cannot_leave_their_place() {
    let chart = Chart {
        id: "x".into(),
        title: "</text><script>alert(1)</script>".into(),
        subtitle: "a & b \u{1} \"quoted\"".into(),
        description: "<!--".into(),
        body: Body::Curves {
            x: Axis::new("<x>", Quantity::Time),
            y: Axis::new("'y'", Quantity::Count),
            span: None,
            curves: ["<a>", "b"]
                .map(|name| Curve {
                    name: name.into(),
                    ink: Ink::GREY,
                    join: Join::Line,
                    points: vec![(0, Some(1)), (5, None), (7, Some(u64::MAX))],
                })
                .to_vec(),
        },
    };
    let text = svg(&chart, true);
    assert!(
        !elements(&text)
            .iter()
            .any(|name| name == "script" || name == "a")
    );
    assert!(!text.contains('\u{1}'));
}

#[test]
fn a_curve_keeps_its_peak_however_many_points_it_has() {
    let points = (0..100_000_u64).map(|x| (x, Some(u64::from(x == 50_000) * 1_000)));
    let curve = Curve {
        name: "peak".into(),
        ink: Ink::GREY,
        join: Join::Line,
        points: points.collect(),
    };
    let chart = Chart {
        id: "peak".into(),
        title: String::new(),
        subtitle: String::new(),
        description: String::new(),
        body: Body::Curves {
            x: Axis::new("time", Quantity::Time),
            y: Axis::new("count", Quantity::Count),
            span: None,
            curves: vec![curve],
        },
    };
    let text = svg(&chart, false);
    // The axis ends with the peak, so the curve touches the top of its frame, 46 pixels down.
    assert!(
        text.contains(" 46L") || text.contains(" 46 "),
        "{}",
        &text[..2000]
    );
    assert!(text.len() < 100_000, "{} bytes", text.len());
}

#[test]
fn a_published_mark_on_the_edge_is_drawn_whole_and_time_is_cut_where_the_frame_ends() {
    let curve = |join| Curve {
        name: "a".into(),
        ink: Ink::kind(0),
        join,
        points: vec![(1, Some(3)), (128, Some(4))],
    };
    let drawn = |quantity, curves| {
        let body = Body::Curves {
            x: Axis::new("hogs", quantity),
            y: Axis::new("response", Quantity::Count),
            span: None,
            curves,
        };
        let [id, title, subtitle, description] = ["x"; 4].map(str::to_owned);
        let chart = Chart {
            id,
            title,
            subtitle,
            description,
            body,
        };
        svg(&chart, true)
    };
    let with_marks = || vec![curve(Join::Line), curve(Join::Mark)];
    let marked = drawn(Quantity::Count, with_marks());
    assert!(marked.contains("overflow=\"visible\""), "{marked}");
    assert!(!drawn(Quantity::Count, vec![curve(Join::Line)]).contains("overflow"));
    // Of a time a script shows a part, and the rest must not be seen beside it.
    assert!(!drawn(Quantity::Time, with_marks()).contains("overflow"));
}

#[test]
fn runs_over_each_other_have_names_that_tell_them_apart() {
    let mut other = collected();
    other.header.as_mut().unwrap().seed = 8;
    let charts = comparison(&[&collected(), &other]);
    let Body::Curves { curves, .. } = &charts[0].body else {
        panic!("latency is a curve");
    };
    let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
    assert_eq!(names, ["fifo, test, seed 7", "fifo, test, seed 8"]);
    assert!(comparison(&[]).is_empty());
}

#[test]
fn a_log_of_statistics_has_its_figures() {
    let text = "version 4\ntimestamp 0\ncpu0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
        totals 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
        version 4\ntimestamp 1000\n\
        cpu0 0 0 0 0 0 0 40 100 4 6 110 55 80 0 0 0 0 0 0 0 500 200 10\n\
        totals 0 0 0 0 0 0 40 100 4 6 110 55 80 0 0 0 0 0 0 0\n";
    let mut reader = SchedstatReader::new(text.as_bytes());
    let mut next = || reader.next_snapshot().unwrap().unwrap();
    let log = Statistics {
        name: "paper".into(),
        hz: 1000,
        intervals: vec![Interval::new(&next(), &next()).unwrap()],
    };
    let charts = of_statistics(&[log]);
    let value = |id: &str| {
        let chart = charts
            .iter()
            .find(|chart| chart.id == format!("statistics-{id}"));
        let Some(Body::Curves { curves, .. }) = chart.map(|chart| &chart.body) else {
            panic!("no {id}");
        };
        assert_eq!(curves[0].points[0].0, 500 * MS);
        curves[0].points[0].1.unwrap()
    };
    assert_eq!((value("latency"), value("runslice")), (20 * MS, 50 * MS));
    assert_eq!((value("imbalance"), value("busy")), (500, 500_000));
    assert_eq!((value("balance"), value("schedule")), (110_000, 40_000));
}
