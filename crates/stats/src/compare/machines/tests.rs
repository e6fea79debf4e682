use model::Rng;

use super::*;

fn waits(values: &[u64]) -> Waits {
    Waits::new(values.iter().map(|value| (*value, 1)))
}

fn group(name: &str) -> Group {
    Group {
        name: name.to_owned(),
        tasks: 2,
        runs: 40,
        share: 250_000,
        wakeup_p50_ns: Some(1_000_000),
        wakeup_p99_ns: Some(8_000_000),
        waits: waits(&[1_000_000, 8_000_000]),
        ..Group::default()
    }
}

fn run(policy: &str, groups: &[Group]) -> MachineRun {
    MachineRun {
        load: "load".to_owned(),
        policy: policy.to_owned(),
        seed: 1,
        before_ns: 0,
        elapsed_ns: 1_000_000_000,
        switches: 100,
        groups: groups.to_vec(),
    }
}

fn of(cells: &[FigurePair], measure: MachineMeasure) -> &FigurePair {
    let mut found = cells.iter().filter(|cell| cell.measure == measure);
    found.next().expect("it is compared")
}

#[test]
fn a_factor_is_the_same_in_both_directions_and_one_of_the_same_run() {
    let (few, many) = (
        run("fifo", &[group("t")]),
        run(
            "fifo",
            &[Group {
                runs: 100,
                share: 500_000,
                ..group("t")
            }],
        ),
    );
    for (first, second) in [(&few, &many), (&many, &few)] {
        let cells = cells(first, second);
        assert_eq!(of(&cells, MachineMeasure::Runs).factor, Some(2.5));
        assert_eq!(of(&cells, MachineMeasure::Share).factor, Some(2.0));
        assert_eq!(of(&cells, MachineMeasure::WakeupP50).factor, Some(1.0));
        assert_eq!(of(&cells, MachineMeasure::Switches).factor, Some(1.0));
    }
    let same = cells(&many, &many);
    assert!(same.iter().all(|cell| cell.factor == Some(1.0)), "{same:?}");
}

#[test]
fn runs_are_those_of_a_task_so_that_numbers_of_tasks_do_not_count() {
    let twice = Group {
        tasks: 4,
        runs: 80,
        ..group("t")
    };
    let cells = cells(&run("fifo", &[group("t")]), &run("fifo", &[twice]));
    let cell = of(&cells, MachineMeasure::Runs);
    assert_eq!((cell.reference, cell.factor), (Some(20_000), Some(1.0)));
}

#[test]
fn what_is_below_the_floor_on_both_machines_is_exact() {
    let short = |wait: u64, share: u64| Group {
        wakeup_p50_ns: Some(wait),
        share,
        ..group("t")
    };
    let cells = cells(
        &run("fifo", &[short(7_000, 900)]),
        &run("fifo", &[short(0, 0)]),
    );
    assert_eq!(of(&cells, MachineMeasure::WakeupP50).factor, Some(1.0));
    assert_eq!(of(&cells, MachineMeasure::Share).factor, Some(1.0));
    let long = super::cells(
        &run("fifo", &[short(40_000, 4_000)]),
        &run("fifo", &[short(0, 0)]),
    );
    assert_eq!(of(&long, MachineMeasure::WakeupP50).factor, Some(4.0));
    assert_eq!(of(&long, MachineMeasure::Share).factor, Some(4.0));
}

#[test]
fn a_figure_that_one_machine_lacks_has_no_factor_and_is_counted() {
    let never = Group {
        wakeup_p50_ns: None,
        wakeup_p99_ns: None,
        ..group("t")
    };
    let (ours, theirs) = (
        run("fifo", &[group("t"), group("rest")]),
        run("fifo", &[never]),
    );
    let pairs = [Pair::new(&ours, &theirs)];
    let score = MachinesScore::of(&pairs, |_| true);
    // Share, runs and waits of the group, and the machine's switches.
    assert_eq!((score.cells, score.lacking), (4, 2));
    assert_eq!(score.median(MachineMeasure::WakeupP50), None);
    assert!(
        pairs[0].cells.iter().all(|cell| cell.group != "rest"),
        "only one has it"
    );
    assert!(worst(&pairs).iter().all(|(_, cell)| cell.factor.is_none()));
}

#[test]
fn the_distance_of_waits_that_are_all_k_times_as_long_is_the_logarithm_of_k() {
    for seed in 0..50 {
        let mut rng = Rng::new(seed, 0);
        let values: Vec<u64> = (0..=rng.below(40))
            .map(|_| 20_000 + rng.below(1 << 30))
            .collect();
        let times = 2 + rng.below(9);
        let longer: Vec<u64> = values.iter().map(|value| value * times).collect();
        let got = waits(&values).distance(&waits(&longer)).unwrap();
        let want = libm::log(times as f64);
        assert!(
            (got - want).abs() < 1e-9,
            "seed {seed}: {got} is not {want}"
        );
    }
}

#[test]
fn the_distance_is_the_area_between_quantiles_also_of_unequal_numbers() {
    // Of 3 and 2 values: sixths of the ranks, each with its quantiles on both sides.
    let (a, b) = ([20_000, 40_000, 80_000], [20_000, 160_000]);
    let ranks = [(0, 0), (0, 0), (1, 0), (1, 1), (2, 1), (2, 1)];
    let log = |value: u64| libm::log(value as f64);
    let areas = ranks.map(|(i, j): (usize, usize)| (log(a[i]) - log(b[j])).abs());
    let want = areas.iter().sum::<f64>() / 6.0;
    let got = waits(&a).distance(&waits(&b)).unwrap();
    assert!((got - want).abs() < 1e-12, "{got} is not {want}");
    let back = waits(&b).distance(&waits(&a)).unwrap();
    assert!((got - back).abs() < 1e-12, "it has no direction");
    // How often each occurs does not matter, only in which part.
    let tenfold = Waits::new(a.map(|value| (value, 10)));
    assert!((tenfold.distance(&waits(&b)).unwrap() - want).abs() < 1e-12);
    assert_eq!(waits(&a).distance(&waits(&[])), None);
    assert_eq!(
        waits(&[3]).distance(&waits(&[9_999])),
        Some(0.0),
        "both below the floor"
    );
}

/// Runs of policies whose shares are these, with all else alike.
fn shares(shares: &[(&str, u64)]) -> Vec<MachineRun> {
    let of = |(policy, share): &(&str, u64)| {
        run(
            policy,
            &[Group {
                share: *share,
                ..group("t")
            }],
        )
    };
    shares.iter().map(of).collect()
}

#[test]
fn the_order_counts_pairs_of_policies_that_are_a_fifth_apart() {
    let reference = shares(&[
        ("a", 100_000),
        ("b", 119_000),
        ("c", 240_000),
        ("d", 480_000),
    ]);
    let other = shares(&[
        ("a", 300_000),
        ("b", 200_000),
        ("c", 400_000),
        ("d", 350_000),
    ]);
    let pairs: Vec<Pair<'_>> = reference
        .iter()
        .zip(&other)
        .map(|(ours, theirs)| Pair::new(ours, theirs))
        .collect();
    let score = MachinesScore::of(&pairs, |_| true);
    // a and b are not apart. Of the other five only c and d are in another order.
    assert_eq!(score.order, Order { pairs: 5, alike: 4 });
    // Of the pairs in which c takes part: a, b, and d in another order.
    let of_c = MachinesScore::of(&pairs, |pair| pair.reference.policy == "c");
    assert_eq!(of_c.order, Order { pairs: 3, alike: 2 });
    assert_eq!(of_c.median(MachineMeasure::Share), Some(400.0 / 240.0));
}

#[test]
fn clear_pairs_are_those_that_the_reference_orders_alike_with_another_seed() {
    let reference = shares(&[("a", 100_000), ("b", 200_000), ("c", 400_000)]);
    // With another seed b and c change places; a stays behind both.
    let again = shares(&[("a", 100_000), ("b", 400_000), ("c", 200_000)]);
    // Here a and c do.
    let other = shares(&[("a", 300_000), ("b", 400_000), ("c", 200_000)]);
    let runs = reference.iter().zip(&again).zip(&other);
    let pairs: Vec<_> = runs
        .map(|((ours, again), theirs)| Pair::new(ours, theirs).again(again))
        .collect();
    let score = MachinesScore::of(&pairs, |_| true);
    // a and b alike, a and c not; b and c are not clear.
    assert_eq!(score.order, Order { pairs: 3, alike: 1 });
    assert_eq!(score.clear, Order { pairs: 2, alike: 1 });
    let alone: Vec<_> = pairs
        .iter()
        .map(|pair| Pair::new(pair.reference, pair.other))
        .collect();
    let score = MachinesScore::of(&alone, |_| true);
    assert_eq!(score.clear, Order::default(), "no other seed was played");
}

#[test]
fn policies_are_ordered_within_one_load_and_one_seed_only() {
    let reference = shares(&[("a", 100_000), ("b", 400_000)]);
    let mut elsewhere = reference.clone();
    elsewhere[1].seed = 2;
    let pairs: Vec<_> = elsewhere.iter().map(|it| Pair::new(it, it)).collect();
    assert_eq!(MachinesScore::of(&pairs, |_| true).order, Order::default());
    let same: Vec<_> = reference.iter().map(|it| Pair::new(it, it)).collect();
    assert_eq!(
        MachinesScore::of(&same, |_| true).order,
        Order { pairs: 1, alike: 1 }
    );
}

#[test]
fn what_the_other_machine_makes_equal_is_not_in_the_same_order() {
    let reference = shares(&[("a", 100_000), ("b", 400_000)]);
    let other = shares(&[("a", 250_000), ("b", 250_000)]);
    let pairs: Vec<_> = reference
        .iter()
        .zip(&other)
        .map(|(a, b)| Pair::new(a, b))
        .collect();
    assert_eq!(
        MachinesScore::of(&pairs, |_| true).order,
        Order { pairs: 1, alike: 0 }
    );
}

#[test]
fn the_worst_figures_come_first_and_exact_ones_not_at_all() {
    let reference = shares(&[("a", 100_000), ("b", 100_000), ("c", 100_000)]);
    let other = shares(&[("a", 150_000), ("b", 300_000), ("c", 100_000)]);
    let pairs: Vec<_> = reference
        .iter()
        .zip(&other)
        .map(|(a, b)| Pair::new(a, b))
        .collect();
    let found: Vec<_> = worst(&pairs)
        .iter()
        .map(|(at, cell)| (*at, cell.factor))
        .collect();
    assert_eq!(found, [(1, Some(3.0)), (0, Some(1.5))]);
}

#[test]
fn a_median_is_the_middle_or_between_the_two_in_the_middle() {
    assert_eq!(median(vec![]), None);
    assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
}

#[test]
fn a_run_is_the_same_when_it_was_written_and_read() {
    let whole = Group {
        counters: vec![("done".to_owned(), 7)],
        ..group("t")
    };
    let run = run("fifo:slice_ns=5000000", &[whole]);
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<MachineRun>(&text).unwrap(), run);
}

#[test]
fn waits_of_a_file_are_brought_into_order_and_no_count_is_too_large() {
    let read = |text: &str| serde_json::from_str::<Waits>(text).unwrap();
    assert_eq!(
        read("[[90000,1],[20000,2],[5,0]]"),
        read("[[20000,2],[90000,1]]")
    );
    let most = format!("[[20000,{0}],[30000,{0}],[40000,{0}]]", u64::MAX);
    let want = (libm::log(1.0) + libm::log(1.5) + libm::log(2.0)) / 3.0;
    let got = read(&most).distance(&waits(&[20_000])).unwrap();
    assert!((got - want).abs() < 1e-9, "{got} is not {want}");
}

#[test]
fn a_percentile_is_the_value_that_so_many_do_not_exceed_if_there_are_enough() {
    let waits = Waits::new([(30, 10), (10, 80), (20, 10)]);
    assert_eq!(waits.permille_of(800, 100), Some(10.0));
    assert_eq!(waits.permille_of(801, 100), Some(20.0));
    assert_eq!(waits.permille_of(1000, 100), Some(30.0));
    assert_eq!(waits.permille_of(1, 1), Some(10.0));
    assert_eq!(waits.permille_of(900, 101), None);
    assert_eq!(Waits::default().permille_of(900, 0), None);
}
