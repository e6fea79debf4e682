//! Energies of placements, as the kernel's energy model and published examples have them.

use std::collections::BTreeMap;

use model::{CpuClass, Hardware, Opp};

/// Room to spare that the kernel's governor gives, as numerator and denominator.
const HEADROOM: (u64, u64) = (5, 4);
/// None: the example of the kernel's document.
const NO_HEADROOM: (u64, u64) = (1, 1);

/// The frequency of CPUs of `class` of which the busiest is used so much; `None`: not so fast.
fn frequency(class: &CpuClass, used: u64, headroom: (u64, u64)) -> Option<usize> {
    let (more, of) = headroom;
    let need = |at: usize| class.performance(at) * of >= used * more;
    let mut all = 0..class.opps.len();
    all.find(|at| need(*at) && !class.is_inefficient(*at))
}

/// Energy of a second in microjoules: that of each CPU at the frequency of its clock, for its part
/// of the time. `None`: a CPU has too much to do.
fn energy(hardware: &Hardware, used: &[u64], headroom: (u64, u64)) -> Option<u64> {
    let mut sum = 0;
    for cpus in hardware.domains().iter() {
        let class = hardware.class(cpus[0].0);
        let of = |cpu: &model::CpuId| used[cpu.index()];
        let most = cpus.iter().map(of).max().unwrap_or(0);
        let all: u64 = cpus.iter().map(of).sum();
        let at = frequency(class, most, headroom)?;
        sum += all * class.opps[at].uw? / class.performance(at);
    }
    Some(sum)
}

/// The least energy of tasks of `sizes` for each choice of classes, the least first.
fn placements(hardware: &Hardware, sizes: &[u64]) -> Vec<(u64, Vec<String>)> {
    let cpus = hardware.cpus.len();
    let mut best: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for number in 0..cpus.pow(sizes.len() as u32) {
        let mut used = vec![0; cpus];
        let mut classes = Vec::new();
        let mut rest = number;
        for size in sizes {
            used[rest % cpus] += size;
            classes.push(hardware.class((rest % cpus) as u16).name.clone());
            rest /= cpus;
        }
        let Some(energy) = energy(hardware, &used, HEADROOM) else {
            continue;
        };
        classes.sort();
        let known = best.entry(classes).or_insert(energy);
        *known = energy.min(*known);
    }
    let mut sorted: Vec<_> = best
        .into_iter()
        .map(|(classes, energy)| (energy, classes))
        .collect();
    sorted.sort();
    sorted
}

/// The machine of example 2 in `sched-energy.rst`.
fn example() -> Hardware {
    let class = |name: &str, capacity, opps: [(u32, u64); 3]| CpuClass {
        opps: opps
            .iter()
            .map(|&(khz, mw)| Opp {
                khz,
                uw: Some(mw * 1_000),
            })
            .collect(),
        ..CpuClass::plain(name.to_owned(), capacity)
    };
    Hardware {
        classes: vec![
            class("little", 512, [(170, 50), (341, 150), (512, 300)]),
            class("big", 1024, [(512, 400), (768, 800), (1024, 1700)]),
        ],
        cpus: vec![0, 0, 1, 1],
        places: Some(model::HardwarePlaces {
            domain: vec![0, 0, 1, 1],
            ..model::HardwarePlaces::default()
        }),
        ..Hardware::default()
    }
}

/// O1 and O2: a task of 200 wakes on CPU 0, beside 200, 100, 600 and 500. The document's own sums
/// are 1364, 1485 and 1437, with some terms rounded. With the room that the kernel gives, CPU 0 and
/// CPU 1 are as good, and it stays.
#[test]
fn the_example_of_the_kernels_document_comes_out() {
    let hardware = example();
    let sums = |headroom| {
        [1, 3, 0].map(|cpu: usize| {
            let mut used = [200, 100, 600, 500];
            used[cpu] += 200;
            energy(&hardware, &used, headroom).map(|uj| uj / 1_000)
        })
    };
    assert_eq!(sums(NO_HEADROOM), [Some(1365), Some(1486), Some(1438)]);
    let [there, far, stays] = sums(HEADROOM);
    assert_eq!(there, stays, "a tie, in which the previous CPU wins");
    assert!(far > stays, "{far:?} {stays:?}");
}

/// O4: what is cheapest for one task does not rise with its size.
#[test]
fn the_cheapest_class_for_a_lone_task_changes_where_it_was_computed() {
    let pixel6 = Hardware::find("pixel6").expect("it is there");
    let mut changes = Vec::new();
    for size in 1..=800 {
        let class = placements(&pixel6, &[size])[0].1[0].clone();
        if changes.last().is_none_or(|(_, last)| *last != class) {
            changes.push((size, class));
        }
    }
    let want = [
        (1, "A55"),
        (53, "A76"),
        (141, "X1"),
        (146, "A76"),
        (181, "X1"),
    ];
    assert_eq!(changes, want.map(|(size, class)| (size, class.to_owned())));
}

/// O3, of the Pixel 6: LISA's small task (0.911 of 16 ms, at most 68) and its big one (7.781, 540).
#[test]
fn placements_of_small_and_big_tasks_cost_what_was_computed() {
    let pixel6 = Hardware::find("pixel6").expect("it is there");
    let milliwatts = |sizes: &[u64], classes: &[&str]| {
        let all = placements(&pixel6, sizes);
        let found = all.iter().find(|(_, its)| its == classes);
        (found.expect("it fits").0 / 1_000, all[0].1 == classes)
    };
    assert_eq!(milliwatts(&[68], &["A76"]), (22, true));
    assert_eq!(milliwatts(&[68], &["A55"]), (27, false));
    assert_eq!(milliwatts(&[68], &["X1"]), (30, false));
    assert_eq!(milliwatts(&[68; 3], &["A55", "A76", "A76"]), (72, true));
    assert_eq!(milliwatts(&[68; 3], &["A55"; 3]), (82, false));
    assert_eq!(milliwatts(&[68; 3], &["X1"; 3]), (91, false));
    assert_eq!(milliwatts(&[540; 2], &["X1"; 2]), (1208, true));
}

/// O11, of a machine whose table has CPUs alone: tasks gathered on fewer CPUs cost more.
#[test]
fn gathering_tasks_costs_energy_where_only_cpus_are_in_the_table() {
    let pixel6 = Hardware::find("pixel6").expect("it is there");
    let of = |used: [u64; 8]| energy(&pixel6, &used, HEADROOM).expect("it fits");
    let (apart, together) = (
        of([60, 60, 0, 0, 0, 0, 0, 0]),
        of([120, 0, 0, 0, 0, 0, 0, 0]),
    );
    assert!(apart < together, "{apart} {together}");
    // The note's figures: 42.5 and 70.4 mW.
    assert_eq!((apart / 100, together / 100), (424, 704));
}
