use explain::why::{Act, Fault, Finding, QueueView, Situation, Standing, Tier, Victim};
use model::{CpuId, Nanos, SimTime, TaskId};
use sim::Deed;

use super::cure::Cure;
use super::{Trials, become_what_ended, is_certain, is_contract, may_end, wait};

fn at(ms: u64) -> SimTime {
    SimTime::ZERO + Nanos::from_millis(ms)
}

fn act(ms: u64) -> Act {
    Act {
        time: at(ms),
        cpu: CpuId(0),
        callback: "enqueue",
        place: None,
    }
}

/// Shell waits from 1 s to 3 s.
fn finding(fault: Fault) -> Finding {
    Finding {
        fault,
        verdict: explain::why::Verdict {
            tier: fault.tier(),
            ..explain::why::Verdict::default()
        },
        time: at(3_000),
        scheduler: None,
        message: None,
        stopped: None,
        victim: Some(Victim {
            task: TaskId(0),
            name: "shell".to_owned(),
            pid: 100,
            since: Some(at(1_000)),
            waited: Nanos::from_secs(2),
            standing: Standing::Queue(5),
            put: Some(act(1_200)),
            trigger: None,
        }),
        culprit: None,
        also: None,
        queue: None,
        idle: Vec::new(),
        holders: Vec::new(),
        longest: None,
        waiting: 1,
    }
}

/// Four CPUs, of which the task may use three: one idles and two are held.
fn situation(standing: Standing) -> Situation {
    Situation {
        standing,
        usable: [0, 1, 2].map(CpuId).to_vec(),
        idle: vec![CpuId(1)],
        held: vec![CpuId(0), CpuId(2)],
        read: vec![5],
        others: [3, 4].map(TaskId).to_vec(),
        cpus: 4,
        round: Nanos::from_millis(100),
    }
}

#[test]
fn cures_come_in_the_order_of_their_steps_and_deeds_before_rules() {
    let places = [
        Standing::Nowhere,
        Standing::Queue(5),
        Standing::Queue(6),
        Standing::Global,
        Standing::Local(CpuId(1)),
        Standing::Local(CpuId(2)),
    ];
    for place in places {
        let all = Cure::of(&situation(place));
        let ranks: Vec<_> = all.iter().map(|cure| cure.rank()).collect();
        assert!(ranks.is_sorted(), "{all:?}");
        assert!(!all.is_empty());
    }
    let first = |place| Cure::of(&situation(place))[0];
    assert_eq!(first(Standing::Nowhere), Cure::Put(None));
    assert_eq!(first(Standing::Queue(5)), Cure::Kick(CpuId(1)));
    assert_eq!(first(Standing::Queue(6)), Cure::Insert(5));
}

#[test]
fn who_is_in_a_local_queue_is_cured_at_its_cpu_or_taken_to_another_one() {
    let all = Cure::of(&situation(Standing::Local(CpuId(2))));
    let others = [0, 1].map(|cpu| Cure::Put(Some(CpuId(cpu))));
    assert!(others.iter().all(|cure| all.contains(cure)), "{all:?}");
    assert!(all.contains(&Cure::EndSlice(CpuId(2))), "{all:?}");
    assert!(!all.contains(&Cure::Kick(CpuId(1))), "{all:?}");
}

#[test]
fn a_placebo_is_done_to_nobody_that_a_cure_names() {
    let task = TaskId(0);
    let it = situation(Standing::Queue(5));
    let fault = Fault::ForgottenKick;
    let kicks = Cure::Kick(CpuId(1)).elsewhere(task, &it, fault);
    let wanted: Vec<_> = [0, 2, 3].map(|cpu| vec![Deed::Kick(CpuId(cpu))]).to_vec();
    assert_eq!(kicks, wanted);
    for cure in Cure::of(&it) {
        for placebo in cure.elsewhere(task, &it, fault) {
            assert_ne!(placebo, cure.deeds(task));
        }
    }
    let puts = Cure::Put(None).elsewhere(task, &it, fault);
    assert_eq!(puts.len(), it.others.len());
    // Whoever is taken out of a queue shows that it is read.
    let takes = |fault| Cure::Take(CpuId(0), false).elsewhere(task, &it, fault);
    let to_others = takes(Fault::PassedOver).len() - takes(Fault::UnreadQueue).len();
    assert_eq!(to_others, it.others.len());
}

#[test]
fn a_contract_is_an_ejection_or_a_task_that_nobody_can_reach() {
    for (fault, is_one) in [
        (Fault::Lost, true),
        (Fault::UnreachableQueue, true),
        (Fault::UnreadQueue, false),
        (Fault::ForgottenKick, false),
        (Fault::CpuHeld, false),
        (Fault::Outranked, false),
    ] {
        assert_eq!(is_contract(&finding(fault)), is_one, "{fault:?}");
    }
    let queue = |looks| QueueView {
        id: 5,
        of: None,
        is_passed_by: false,
        depth: 1,
        last_look: None,
        looks,
        overtaken: 0,
        readers: Vec::new(),
        empty_dispatch: None,
        other_look: None,
    };
    for (looks, is_one) in [((0, 0), true), ((257, 126), false)] {
        let unread = Finding {
            queue: Some(queue(looks)),
            ..finding(Fault::UnreadQueue)
        };
        assert_eq!(is_contract(&unread), is_one);
        assert!(!is_certain(&unread), "the policy may come back to it");
    }
    assert!(is_certain(&finding(Fault::Lost)) && !is_certain(&finding(Fault::CpuHeld)));
    let ejected = Finding {
        message: Some("shell[100] failed to run for 30s".to_owned()),
        ..finding(Fault::CpuHeld)
    };
    assert!(Trials::none(&ejected, "a dump").accuses());
    assert!(!Trials::none(&finding(Fault::CpuHeld), "a dump").accuses());
}

/// No answer names one class while what ended the fault is of another one.
#[test]
fn a_finding_becomes_of_the_class_whose_cure_ended_it() {
    let mut stalled = finding(Fault::Stall);
    stalled.culprit = Some(act(1_100));
    become_what_ended(&mut stalled, Cure::Kick(CpuId(1)));
    assert_eq!(stalled.fault, Fault::ForgottenKick);
    assert_eq!(stalled.tier(), Some(Tier::NoRival));
    let put = stalled.culprit.map(|it| it.time);
    assert_eq!(put, Some(at(1_200)), "what put it there");
    for cure in Cure::of(&situation(Standing::Queue(6))) {
        assert!(cure.is_of(&finding(cure.fault())), "{cure:?}");
    }
    for fault in [Fault::Skipped, Fault::UnreadQueue, Fault::ForgottenKick] {
        assert!(!Cure::EndSlice(CpuId(0)).is_of(&finding(fault)));
    }
    // Of a queue that nobody was asked to read, the kick is what was missing.
    assert!(!Cure::KickIdle.is_of(&finding(Fault::UnreadQueue)));
}

#[test]
fn cures_of_a_share_are_tried_where_somebody_lags_or_the_kernel_ended_it() {
    let ends = Cure::EndSlice(CpuId(0));
    assert!(!may_end(&finding(Fault::ForgottenKick), ends));
    assert!(may_end(&finding(Fault::ForgottenKick), Cure::KickIdle));
    assert!(may_end(&finding(Fault::CpuHeld), ends));
    let mut told = finding(Fault::ForgottenKick);
    told.message = Some("shell[100] failed to run for 30s".to_owned());
    assert!(may_end(&told, ends));
}

#[test]
fn moments_lie_in_the_wait_and_the_earliest_comes_first() {
    assert_eq!(
        wait::moments(&finding(Fault::CpuHeld)),
        [at(1_200), at(2_000)]
    );
    let with = |ms| Finding {
        culprit: Some(act(ms)),
        ..finding(Fault::CpuHeld)
    };
    assert_eq!(
        wait::moments(&with(1_100)),
        [at(1_100), at(1_200), at(2_000)]
    );
    // Before the wait there was nothing to end, and at its end there is no time left.
    assert_eq!(wait::moments(&with(500)), [at(1_200), at(2_000)]);
    assert_eq!(wait::moments(&with(2_999)), [at(1_200), at(2_000)]);
    let nobody = Finding {
        victim: None,
        ..finding(Fault::CpuHeld)
    };
    assert_eq!(wait::moments(&nobody), []);
}
