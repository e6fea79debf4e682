use model::{EventKind, Header, Nanos, PrevState, SimTime, Sink as _, TaskGroup, TaskId};

use super::*;
use crate::Blocks;
use traces::testing::{self, with};

/// A half of a second in which a task runs for 1 ms out of 10, after a wait that grows from `wait`
/// by a tenth from turn to turn, and begins again every seventh turn. Every `preempts`th turn is
/// interrupted once.
fn half(name: &str, wait: u64, preempts: u64) -> Half {
    let none = u64::from(TaskId::NONE.0);
    let event = |at: u64, kind, a, b| with(testing::event(at, kind, 0, TaskId(0)), (0, a, b));
    let switch = |at, task: TaskId, prev: u64, left: PrevState| {
        let mut it = with(event(at, EventKind::Switch, prev, 0), (left as u8, 0, 0));
        it.task = task;
        it
    };
    let mut events = vec![event(0, EventKind::New, 0, none << 32)];
    for turn in 0..50 {
        let begin = 1 + turn * 10_000_000;
        let mut at = begin + wait + wait * (turn % 7) / 10;
        events.push(event(begin, EventKind::Wakeup, none, 0));
        events.push(switch(at, TaskId(0), none, PrevState::Idle));
        if turn % preempts == 0 {
            at += 500_000;
            events.push(switch(at, TaskId::NONE, 0, PrevState::Runnable));
            events.push(switch(at + wait, TaskId(0), none, PrevState::Idle));
            at += wait + 500_000;
        } else {
            at += 1_000_000;
        }
        events.push(switch(at, TaskId::NONE, 0, PrevState::Sleeping));
    }
    let length = Nanos::from_millis(500);
    let mut blocks = Blocks::new(length, BLOCKS, |name| name);
    blocks.begin(&Header {
        groups: vec![TaskGroup {
            name: name.to_owned(),
            nice: 0,
            count: 1,
        }],
        ..testing::header(1)
    });
    blocks.events(&events);
    blocks.finish(SimTime::ZERO + length);
    blocks.whole(BLOCKS)
}

/// Waits of half a millisecond, five under the null model.
fn trial(simulated: Half) -> Trial {
    Trial {
        first: half("t", 500_000, 5),
        second: half("t", 520_000, 5),
        simulated,
        null: half("t", 2_500_000, 1),
    }
}

fn row_of(trial: &Trial, part: SkillPart) -> SkillRow {
    let rows = score(trial, 1);
    let found = rows.into_iter().find(|it| it.part == part);
    found.expect("a row")
}

#[test]
fn a_simulation_that_does_what_the_machine_did_goes_all_the_way() {
    let trial = trial(half("t", 500_000, 5));
    for part in [
        SkillPart::Wait,
        SkillPart::Delay,
        SkillPart::Response,
        SkillPart::Preemptions,
    ] {
        let row = row_of(&trial, part);
        assert_eq!(row.verdict, PartVerdict::Trusted, "{row:?}");
        let all = ConfidenceInterval {
            value: 1.0,
            low: 1.0,
            high: 1.0,
        };
        assert_eq!(row.reach, Some(all), "{part:?}");
        assert!(row.ceiling.value > 0.8, "{row:?}");
    }
    // 520 us for 500, and 2500: the distance of logarithms is that of the medians.
    let waits = row_of(&trial, SkillPart::Wait).factors;
    assert!((waits.simulated / 1.04 - 1.0).abs() < 0.02, "{waits:?}");
    assert!(
        (waits.null / (2500.0 / 520.0) - 1.0).abs() < 0.02,
        "{waits:?}"
    );
    assert_eq!(waits.itself, waits.simulated);
}

/// Whichever half the recording was found to grow in.
#[test]
fn waits_of_a_recording_whose_queue_grew_get_no_verdict() {
    let grown = || Half {
        grown: ["t".to_owned()].into(),
        ..half("t", 500_000, 5)
    };
    let usual = || trial(half("t", 500_000, 5));
    let (mut first, mut second) = (usual(), usual());
    first.first = grown();
    second.second = grown();
    for trial in [first, second] {
        for part in [SkillPart::Wait, SkillPart::Delay, SkillPart::Response] {
            assert_eq!(row_of(&trial, part).verdict, PartVerdict::Grows, "{part:?}");
        }
        assert_eq!(
            row_of(&trial, SkillPart::Preemptions).verdict,
            PartVerdict::Trusted
        );
    }
    // A simulation whose queue grows where the machine's did not is simply wrong.
    assert_eq!(
        row_of(&trial(grown()), SkillPart::Wait).verdict,
        PartVerdict::Trusted
    );
}

#[test]
fn a_simulation_that_does_what_the_null_model_does_has_no_skill() {
    let trial = trial(half("t", 2_500_000, 1));
    for part in [SkillPart::Wait, SkillPart::Delay, SkillPart::Preemptions] {
        let row = row_of(&trial, part);
        assert_eq!(row.verdict, PartVerdict::NotTrusted, "{row:?}");
        let most = row.reach.map(|it| it.high);
        assert_eq!((row.skill.value, most), (0.0, Some(0.0)), "{row:?}");
    }
}

#[test]
fn where_the_null_model_is_as_good_as_the_machine_nothing_can_be_told() {
    // Everything uses the same share of the CPU, and nobody moves.
    let same = trial(half("t", 500_000, 5));
    assert_eq!(
        row_of(&same, SkillPart::Elapsed).verdict,
        PartVerdict::CannotBeTold
    );
    assert!(
        score(&same, 1)
            .iter()
            .all(|it| it.part != SkillPart::Migrations)
    );
    // But a simulation that is surely worse is not trusted.
    let mut worse = trial(half("t", 3_000_000, 5));
    worse.null = worse.first.clone();
    let row = row_of(&worse, SkillPart::Wait);
    assert_eq!(row.verdict, PartVerdict::NotTrusted, "{row:?}");
    assert!(row.skill.high < 0.0 && row.ceiling.value == 0.0, "{row:?}");
    assert_eq!(row.reach, None);
}

#[test]
fn what_only_one_side_has_is_left_out_and_said() {
    let mut trial = trial(half("t", 500_000, 5));
    let other = half("u", 500_000, 5).families.remove("u").expect("u");
    trial.second.families.insert("u".to_owned(), other);
    let row = row_of(&trial, SkillPart::Wait);
    assert_eq!(row.covered, 0.5, "{row:?}");
    assert_eq!(row.families.len(), 1);
    assert_eq!(row.families[0].weight, 1.0);
}

#[test]
fn rates_are_by_cpu_time_and_one_event_is_the_least() {
    let mut trial = trial(half("t", 500_000, 5));
    // 50 ms of CPU time: ten preemptions are 200 a second.
    let row = row_of(&trial, SkillPart::Preemptions);
    assert!((row.families[0].second - 200.0).abs() < 1e-6, "{row:?}");
    assert!((row.factors.null - 5.0).abs() < 1e-6, "{row:?}");
    // None counts as one.
    trial.null = half("t", 2_500_000, 1_000);
    let row = row_of(&trial, SkillPart::Preemptions);
    assert!((row.factors.null - 10.0).abs() < 1e-6, "{row:?}");
}

#[test]
fn the_draws_are_the_same_for_the_same_seed() {
    let trial = trial(half("t", 700_000, 4));
    assert_eq!(score(&trial, 3), score(&trial, 3));
    let [a, b] = [3, 4].map(|seed| row_of_seed(&trial, seed));
    assert!(
        a.skill.low < a.skill.value && a.skill.value < a.skill.high,
        "{a:?}"
    );
    assert_ne!(a.skill, b.skill);
}

fn row_of_seed(trial: &Trial, seed: u64) -> SkillRow {
    let rows = score(trial, seed);
    rows.into_iter()
        .find(|it| it.part == SkillPart::Wait)
        .expect("a row")
}

#[test]
fn the_thresholds_decide() {
    use PartVerdict::{CannotBeTold, NotTrusted, Roughly, Trusted, Undecided};
    // Skill, ceiling, reach and excess, from low to high.
    let cases = [
        ([0.9, 0.9], [0.1, 0.3], [0.5, 0.9], [0.9, 1.25], Trusted),
        ([0.9, 0.9], [0.1, 0.3], [0.5, 0.9], [1.0, 1.26], Roughly),
        ([0.9, 0.9], [0.1, 0.3], [0.49, 0.9], [0.9, 1.25], Undecided),
        ([0.9, 0.9], [0.1, 0.3], [0.1, 0.49], [0.9, 1.25], NotTrusted),
        (
            [0.9, 0.9],
            [0.1, 0.29],
            [0.5, 0.9],
            [0.9, 1.25],
            CannotBeTold,
        ),
        (
            [0.9, 0.9],
            [0.0, 0.5],
            [0.5, 0.9],
            [0.9, 1.25],
            CannotBeTold,
        ),
        ([-0.1, -0.1], [0.0, 0.5], [0.5, 0.9], [1.3, 1.3], NotTrusted),
        (
            [-0.1, -0.1],
            [0.0, 0.5],
            [0.5, 0.9],
            [0.9, 1.25],
            CannotBeTold,
        ),
    ];
    let interval = |[low, high]: [f64; 2]| ConfidenceInterval {
        value: f64::midpoint(low, high),
        low,
        high,
    };
    for (skill, ceiling, reach, excess, want) in cases {
        let all = [skill, ceiling, reach, excess].map(interval);
        assert_eq!(verdict(&all, 1.25), want, "{all:?}");
    }
    let worse = [[-0.1, -0.1], [0.0, 0.0], [0.0, 0.0], [2.0, 2.0]].map(interval);
    assert_eq!(verdict(&worse, 1.24), CannotBeTold);
}

#[test]
fn a_simulation_of_another_scheduler_that_is_still_better_than_nothing_is_rough() {
    let trial = trial(half("t", 900_000, 5));
    let row = row_of(&trial, SkillPart::Wait);
    assert_eq!(row.verdict, PartVerdict::Roughly, "{row:?}");
    let reach = row.reach.expect("a reach");
    assert!(reach.low >= REACH && row.excess.low > CLOSE, "{row:?}");
}
