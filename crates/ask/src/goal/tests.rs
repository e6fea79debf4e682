use model::{Nanos, Sink as _};
use stats::{CounterReport, DeadlineReport, GroupReport, HardwareReport, Lengths, SpanReport};

use super::*;

fn goal(text: &str) -> Goal {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    model::Advice::in_full(&text.parse::<Goal>().unwrap_err())
}

#[test]
fn goals_are_read_and_written_alike() {
    for text in [
        "p99 wait of nginx",
        "p99.9 delay of my clock",
        "mean slice of cc",
        "lower p50 slice of cc",
        "max sleep",
        "p90 span request of web",
        "late frame of window",
        "late of window",
        "late",
        "work compiled of job",
        "work of job",
        "throughput",
        "cpu of hog",
        "time",
    ] {
        assert_eq!(goal(text).to_string(), text);
        assert_eq!(goal(&goal(text).to_string()), goal(text));
    }
    assert_eq!(goal("median wait of all"), goal("p50  wait"));
    assert_eq!(goal("lower p99 wait"), goal("p99 wait"));
}

#[test]
fn which_way_is_good_is_known() {
    for (text, better, measure) in [
        ("p99 wait", Better::Lower, Measure::Nanos),
        ("p50 slice", Better::Higher, Measure::Nanos),
        ("lower p50 slice", Better::Lower, Measure::Nanos),
        ("late", Better::Lower, Measure::Millionths),
        ("throughput", Better::Higher, Measure::Rate),
        ("cpu of a", Better::Higher, Measure::Millionths),
        ("time", Better::Lower, Measure::Nanos),
    ] {
        assert_eq!(
            (goal(text).better(), goal(text).measure()),
            (better, measure),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_goal_is_told_how_goals_are_written() {
    assert!(refused("wait of nginx").contains("write `p99 wait of nginx`"));
    assert!(refused("p99 wat of nginx").contains("did you mean `wait`?"));
    assert!(refused("p99 span").contains("does not name the span"));
    assert!(refused("higher late").contains("leave out"));
    for text in [
        "",
        "p0 wait",
        "p100 wait",
        "p99.99 wait",
        "p wait",
        "late a b",
        "9",
    ] {
        let said = refused(text);
        assert!(
            said.contains("`p99 wait of GROUP`") || said.contains("which wait"),
            "{said}"
        );
    }
}

#[test]
fn a_thread_of_a_trace_belongs_to_the_name_that_it_shares() {
    assert_eq!(
        ["web-71", "cc.3", "a-b", "-7", "x86", "k.1-2"].map(family),
        ["web", "cc", "a-b", "-7", "x86", "k.1"]
    );
    let whose = Whose::Groups("web".to_owned());
    assert!(whose.holds("web-71") && whose.holds("web") && !whose.holds("webber-1"));
    let whose = Whose::Groups("web*".to_owned());
    assert!(whose.holds("webber-1") && !whose.holds("nginx-1"));
}

/// A run in which nothing happens.
fn measured() -> Metrics {
    let mut metrics = Metrics::new();
    metrics.begin(&workload::Workload::default().header(
        "fifo",
        &model::MachineSpec::default(),
        1,
        None,
    ));
    metrics.finish(SimTime::from_nanos(2_000_000_000));
    metrics
}

/// A report with a group of each name, and one of each thing of `web-1`.
fn report() -> Report {
    let mut report = measured().report();
    let group = |name: &str, share| GroupReport {
        name: name.to_owned(),
        share: Millionths(share),
        ..report.all.clone()
    };
    report.groups = vec![group("web-1", 5), group("web-2", 6), group("cc", 7)];
    let late = |group: &str, met, missed| DeadlineReport {
        group: group.to_owned(),
        name: "frame".to_owned(),
        word: "late".to_owned(),
        met,
        late: missed,
        skipped: 0,
        missed,
        lateness: stats::Spread::default(),
        grows: false,
    };
    report.deadlines = vec![late("web-1", 6, 2), late("web-2", 0, 0)];
    report.spans = vec![SpanReport {
        group: "web-1".to_owned(),
        name: "request".to_owned(),
        length: Lengths {
            p99: Some(Nanos::new(9)),
            ..Lengths::default()
        },
        grows: false,
    }];
    report.counters = vec![CounterReport {
        group: "cc".to_owned(),
        name: "compiled".to_owned(),
        total: 30,
    }];
    report
}

#[test]
fn values_are_sums_over_the_groups_that_are_meant() {
    let (metrics, report) = (finished(), report());
    let value = |text: &str| goal(text).value(&metrics, &report);
    assert_eq!(value("late frame of web"), Some(250_000.0));
    assert_eq!(value("late of web-2"), None, "nothing was due");
    assert_eq!(value("work compiled of cc"), Some(15.0));
    assert_eq!(value("cpu of web"), Some(11.0));
    for text in ["cpu of nobody", "work of nobody"] {
        assert_eq!(value(text).map(f64::to_bits), Some(0), "{text}: not -0");
    }
    assert_eq!(value("time"), Some(2e9));
    assert_eq!(value("p99 wait of web"), None, "nobody was woken");
}

fn finished() -> Metrics {
    let mut metrics = Metrics::new();
    let header = workload::Workload::default();
    let machine = model::MachineSpec::default();
    metrics.begin(&header.header("fifo", &machine, 1, None));
    metrics.finish(SimTime::ZERO);
    metrics
}

#[test]
fn a_name_that_the_load_does_not_have_is_refused_with_what_it_has() {
    let report = report();
    let said = |text: &str| model::Advice::in_full(&goal(text).check(&report).unwrap_err());
    let unknown = said("p99 wait of wev");
    assert!(
        unknown.contains("no group `wev`; did you mean `web`? There are: web, cc"),
        "{unknown}"
    );
    assert!(said("late fram of web").contains("no deadline `fram`; did you mean `frame`?"));
    assert!(said("p99 span request of cc").contains("no span `request`"));
    assert!(said("work compild of cc").contains("did you mean `compiled`?"));
    let none = said("late of cc");
    assert!(none.contains("these tasks have no deadline; this load offers: late frame of web-1"));
    assert!(
        none.contains("p99 wait of web, p99 wait of cc, time"),
        "{none}"
    );
    for text in [
        "p99 wait of w*",
        "late frame",
        "work",
        "time",
        "max span request of web",
    ] {
        goal(text).check(&report).unwrap();
    }
    for text in offered(&report) {
        goal(&text).check(&report).unwrap();
    }
}

#[test]
fn the_goals_that_a_load_states_are_goals() {
    let report = report();
    let of = |metric: &str| Goal::of_metric(metric, &report).map(|it| it.to_string());
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(of("deadline.web-1.frame.missed"), is("late frame of web-1"));
    assert_eq!(
        of("span.web-1.request.length_ns_p99"),
        is("p99 span request of web-1")
    );
    assert_eq!(of("machine.elapsed_ns"), is("time"));
    assert_eq!(of("counter.cc.compiled.total"), None);
}

#[test]
fn energy_is_that_of_the_machine_or_of_the_groups_that_are_meant() {
    let metrics = measured();
    let mut report = metrics.report();
    let goal: Goal = "energy".parse().expect("a goal");
    assert_eq!(goal.to_string(), "energy");
    let said = goal.check(&report).unwrap_err();
    assert!(said.to_string().contains("power"), "{said}");
    let row = |group: &str, work, energy| HardwareReport {
        group: group.to_owned(),
        work: Nanos::new(work),
        energy_uj: Some(energy),
        ..HardwareReport::default()
    };
    let group = |name: &str| GroupReport {
        name: name.to_owned(),
        ..report.all.clone()
    };
    report.groups = vec![group("web-1"), group("web-2")];
    report.hardware = vec![
        row("web-1", 1_000_000, 2_000),
        row("web-2", 500_000, 500),
        row("all", 2_100_000, 7_000),
    ];
    let value = |goal: &str| {
        let goal: Goal = goal.parse().expect("a goal");
        assert_eq!(goal.check(&report), Ok(()));
        goal.value(&metrics, &report)
    };
    assert_eq!(value("energy"), Some(7_000.0));
    assert_eq!(value("energy of web"), Some(2_500.0));
    assert_eq!(value("work per joule"), Some(300_000.0));
    assert_eq!(value("work per joule of web"), Some(600_000.0));
    let goal: Goal = "work per joule of web".parse().expect("a goal");
    assert_eq!(
        (goal.to_string().as_str(), goal.better()),
        ("work per joule of web", Better::Higher)
    );
}
