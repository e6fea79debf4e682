use model::SimTime;

use super::*;

fn points_of(asked: &Interleave, most: u64) -> Vec<u64> {
    let mut all = Interleaving::new(asked, 2);
    let mut found = Vec::new();
    while all.points < most {
        all.points += 1;
        if all.points == all.next {
            assert!(!all.length().is_zero());
            found.push(all.points);
            all.plan();
        }
    }
    found
}

#[test]
fn stalls_come_as_often_as_was_asked_and_again_with_the_same_seed() {
    let asked = |seed| Interleave::Seeded {
        seed,
        every: 50,
        stall: Nanos::from_micros(20),
    };
    let found = points_of(&asked(1), 100_000);
    assert!((1_900..2_100).contains(&found.len()), "{}", found.len());
    assert_eq!(found, points_of(&asked(1), 100_000));
    assert_ne!(found, points_of(&asked(2), 100_000));
}

#[test]
fn stalls_that_are_named_come_where_they_are_named() {
    let stall = |point| Stall {
        point,
        span: Nanos::new(5),
    };
    let asked = Interleave::At([3, 4, 90].map(stall).to_vec());
    assert_eq!(points_of(&asked, 1_000), [3, 4, 90]);
}

#[test]
fn who_waits_to_be_alone_keeps_nobody_else_from_it() {
    let mut all = Interleaving::new(&Interleave::At(Vec::new()), 4);
    let turns = [0, 1, 2].map(|cpu| all.begin_turn(CpuId(cpu)));
    assert_eq!(turns, [0, 1, 2]);
    let waits = [
        TurnWait::Alone,
        TurnWait::Lock(LockKey::RunQueue(CpuId(3))),
        TurnWait::Until(SimTime::ZERO),
    ];
    for (turn, wait) in turns.into_iter().zip(waits) {
        all.turns[turn].as_mut().unwrap().waits = Some(wait);
    }
    assert_eq!(all.busy(), 2);
    all.turns[1] = None;
    assert_eq!(all.begin_turn(CpuId(3)), 1, "a number is used again");
}
