//! Which scheduler runs when.

use model::{Advised, PolicySpec, Rng};

use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::policy;
use crate::scheduler::{self, LoaderOptions};

/// Name of the kernel's own scheduler.
pub const DEFAULT: &str = "default";
/// What its second arm is called.
pub const AGAIN: &str = "default again";

/// A scheduler that is measured.
#[derive(Clone, Debug)]
pub struct BenchArm {
    /// Its name in tables.
    pub name: String,
    /// `None`: the kernel's own.
    pub policy: Option<PolicySpec>,
}

/// One run of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchTurn {
    /// From 1.
    pub number: u64,
    /// Every scheduler has one run in each block; 0 for those that warm up.
    pub block: u32,
    /// Index of the scheduler.
    pub arm: usize,
}

/// The schedulers of a list such as `default,mlfq:queues=4,up=1,staircase`: the kernel's own twice,
/// and then the others. A word with `=` belongs to the policy before it.
///
/// Behind them come `schedulers`, commands of schedulers' own programs.
///
/// # Errors
/// When a policy is unknown, or listed twice.
pub fn arms(list: &[String], schedulers: &[String]) -> anyhow::Result<Vec<BenchArm>> {
    let words = policy::list(&COMPUTER, list);
    let own = |name: &str| BenchArm {
        name: name.to_owned(),
        policy: None,
    };
    let mut arms = vec![own(DEFAULT), own(AGAIN)];
    let mut policies = Vec::new();
    for word in words.iter().filter(|word| *word != DEFAULT) {
        if word.is_empty() {
            let list = list.join(" ");
            let message = Advised::new(
                format!("`{list}` has an empty name"),
                "write default,POLICY,POLICY",
            );
            return Err(UsageError::new(message).into());
        }
        policies.push(policy::find(&COMPUTER, word)?);
    }
    for text in schedulers {
        policies.push(scheduler::policy_of(text, &LoaderOptions::default())?);
    }
    for policy in policies {
        if arms.iter().any(|arm| arm.name == policy.name) {
            return Err(UsageError::new(format!("`{}` is listed twice", policy.name)).into());
        }
        arms.push(BenchArm {
            name: policy.name.clone(),
            policy: Some(policy),
        });
    }
    Ok(arms)
}

/// The order of all runs: first `warmup` of each scheduler, then `runs` blocks in each of which
/// every scheduler has its turn, in an order drawn from `seed`. What drifts slowly on the computer
/// so meets all of them alike.
pub fn turns(arms: usize, warmup: u32, runs: u32, seed: u64) -> Vec<BenchTurn> {
    let blocks = (0..warmup).map(|_| 0).chain(1..=runs);
    let mut rng = Rng::new(seed, 0);
    let mut turns = Vec::new();
    let mut numbers = 1..;
    for block in blocks {
        let mut order: Vec<usize> = (0..arms).collect();
        // Fisher and Yates.
        for at in (1..arms).rev() {
            let other = rng.below(at as u64 + 1) as usize;
            order.swap(at, other);
        }
        turns.extend(
            order
                .into_iter()
                .zip(&mut numbers)
                .map(|(arm, number)| BenchTurn { number, block, arm }),
        );
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<String> {
        arms(&[list.to_owned()], &[])
            .unwrap()
            .into_iter()
            .map(|arm| arm.name)
            .collect()
    }

    #[test]
    fn the_kernels_own_is_always_there_twice_and_knobs_stay_with_their_policy() {
        assert_eq!(names("fifo"), ["default", "default again", "fifo"]);
        assert_eq!(names("default"), ["default", "default again"]);
        assert_eq!(
            names("mlfq:queues=4,up=1,default,fifo"),
            ["default", "default again", "mlfq:queues=4,up=1", "fifo"]
        );
    }

    #[test]
    fn schedulers_programs_stand_behind_the_policies() {
        let programs = ["/x/scx_a -p".to_owned()];
        let arms = arms(&["fifo".to_owned()], &programs).unwrap();
        let program = arms[3].policy.as_ref().and_then(|it| it.program.as_ref());
        assert_eq!(arms[3].name, "scx_a -p");
        assert_eq!(program.unwrap().command, ["/x/scx_a", "-p"]);
        let twice = [&programs[..], &programs[..]].concat();
        assert!(super::arms(&[], &twice).unwrap_err().is::<UsageError>());
    }

    #[test]
    fn a_wrong_list_is_a_usage_error() {
        for bad in ["", "fifo,", "fifo,fifo", "no-such", "default,up=1"] {
            let error = arms(&[bad.to_owned()], &[]).unwrap_err();
            assert!(error.is::<UsageError>(), "{bad}: {error}");
        }
    }

    #[test]
    fn every_block_has_every_scheduler_once_in_an_order_of_the_seed() {
        let order = turns(3, 2, 40, 5);
        assert_eq!(order.len(), 3 * 42);
        let numbers: Vec<u64> = order.iter().map(|turn| turn.number).collect();
        assert_eq!(numbers, (1..=126).collect::<Vec<_>>());
        let mut orders = Vec::new();
        for (at, block) in order.chunks(3).enumerate() {
            let arms: Vec<usize> = block.iter().map(|turn| turn.arm).collect();
            let mut sorted = arms.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
            let number = u32::try_from(at).unwrap().saturating_sub(1);
            assert!(block.iter().all(|turn| turn.block == number), "{block:?}");
            orders.push(arms);
        }
        orders.sort();
        orders.dedup();
        assert_eq!(orders.len(), 6, "all orders of three come up in 42 blocks");
        assert_eq!(order, turns(3, 2, 40, 5));
        assert_ne!(order, turns(3, 2, 40, 6));
    }
}
