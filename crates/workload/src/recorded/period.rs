//! Whether a task sleeps for a length or until the next of its periods, and which it missed.

use std::cell::Cell;

use model::Nanos;

use super::Act;

/// Fewer sleeps tell nothing.
const LEAST: usize = 8;
/// Turns of one period that tell what one usually runs: fewer cannot outvote an odd one.
const LEAST_TURNS: usize = 3;
/// At most so many differences, evenly drawn of all, are tried as the period.
const TRIED: usize = 64;

/// The period that the sleeps by the clock in a script keep, if they keep one:
/// what lies between their ends, less whole periods, varies by at most a fiftieth of the period,
/// and by less than half of what their lengths vary. (Who sleeps for a length has it the other way
/// round: its ends vary by what it ran and waited.) What varies is told by medians, because periods
/// are missed.
pub fn kept(script: &[Act]) -> Option<Nanos> {
    let sleeps = script.windows(2).filter_map(|pair| match *pair {
        [Act::Sleep(length), Act::Woken(end)] => Some((length.get(), end.get())),
        _ => None,
    });
    let (lengths, ends): (Vec<u64>, Vec<u64>) = sleeps.unzip();
    if lengths.len() < LEAST {
        return None;
    }
    let between: Vec<u64> = ends
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .collect();
    let period = steadiest(&between)?;
    let off = median(between.iter().map(|it| off(*it, period)).collect());
    let middle = median(lengths.clone());
    let varied = median(lengths.iter().map(|it| it.abs_diff(middle)).collect());
    (off <= period / 50 && off < varied / 2).then_some(Nanos::new(period))
}

/// How far `difference` is from the nearest multiple of `period`, which is not 0.
fn off(difference: u64, period: u64) -> u64 {
    let rest = difference % period;
    rest.min(period - rest)
}

/// The period that most differences are multiples of, to within a fiftieth of it, and the longest
/// of several: who is often late has ends that lie many periods apart. It is one of the differences
/// itself, or the median of those that are as long.
fn steadiest(between: &[u64]) -> Option<u64> {
    let mut sorted: Vec<u64> = between.iter().copied().filter(|it| *it > 0).collect();
    sorted.sort_unstable();
    let fitting = |period: u64| {
        let fits = |it: &&u64| **it > period / 2 && off(**it, period) <= period / 50;
        between.iter().filter(fits).count()
    };
    let step = sorted.len().div_ceil(TRIED).max(1);
    let tried = sorted.iter().step_by(step).copied();
    let (_, period) = tried.map(|period| (fitting(period), period)).max()?;
    sorted.retain(|it| it.abs_diff(period) <= period / 50);
    Some(median(sorted))
}

/// What a task does from one end of a sleep to the next.
struct PeriodTurn {
    /// CPU time.
    ran: u64,
    /// Periods from end to end.
    periods: u64,
}

/// A script whose sleeps by the clock keep `period`, with sleeps until the ends of periods that it
/// was too late for.
///
/// Who does something once a period does not sleep when that took longer than the period: two jobs
/// are one turn. Under a scheduler that has the first one done in time there is a sleep between
/// them. A turn over several periods has as many jobs as it ran multiples of what a turn of one
/// period usually runs (the median), but no more than periods; each is taken to need the same. Who
/// leaves out a job that it is too late for runs no longer, and keeps its turn as it is. `spare` is
/// how many sleeps may be added, and becomes what is left; a turn that needs more stays as it is.
pub fn with_missed(script: &[Act], period: Nanos, spare: &Cell<u64>) -> Vec<Act> {
    let turns = turns(script, period.get());
    let usual = turns.iter().filter(|turn| turn.periods == 1);
    let usual: Vec<u64> = usual.map(|turn| turn.ran).collect();
    let usual = if usual.len() < LEAST_TURNS {
        0
    } else {
        median(usual)
    };
    let (mut turns, mut out) = (turns.iter(), Vec::with_capacity(script.len()));
    let mut ends: Vec<(u64, Nanos)> = Vec::new();
    let mut ran = 0;
    for act in script {
        match *act {
            Act::Sleep(_) => {}
            Act::Woken(until) => {
                out.push(Act::SleepUntil(until));
                let cut = turns.next().map(|turn| turn.ends(usual, spare));
                let moment = |(end, periods)| (end, until + Nanos::new(periods * period.get()));
                ends = cut.into_iter().flatten().map(moment).collect();
                ends.reverse();
                ran = 0;
            }
            Act::Run(span) => {
                let until = ran + span.get();
                while let Some((end, moment)) = ends.pop_if(|(end, _)| *end <= until) {
                    out.extend((end > ran).then(|| Act::Run(Nanos::new(end - ran))));
                    out.push(Act::SleepUntil(moment));
                    ran = end;
                }
                out.extend((until > ran).then(|| Act::Run(Nanos::new(until - ran))));
                ran = until;
            }
            act => out.push(act),
        }
    }
    out
}

/// The turns between the sleeps by the clock.
fn turns(script: &[Act], period: u64) -> Vec<PeriodTurn> {
    let mut turns = Vec::new();
    let (mut since, mut ran) = (None, 0);
    for act in script {
        match *act {
            Act::Run(span) => ran += span.get(),
            Act::Woken(until) => {
                if let Some(since) = since.replace(until) {
                    let lasted = until.get().saturating_sub(since.get());
                    let periods = (lasted + period / 2) / period;
                    turns.push(PeriodTurn { ran, periods });
                }
                ran = 0;
            }
            _ => {}
        }
    }
    turns
}

impl PeriodTurn {
    /// How much it has run at the end of each of its jobs but the last, and how many periods of the
    /// turn are over when the next one begins, if a turn of one period usually runs for `usual`;
    /// 0: not known. Jobs that are left out are evenly spread.
    fn ends(&self, usual: u64, spare: &Cell<u64>) -> Vec<(u64, u64)> {
        let jobs = (self.ran + usual / 2).checked_div(usual);
        let jobs = jobs.unwrap_or(0).min(self.periods);
        let Some(left) = spare.get().checked_sub(jobs.saturating_sub(1)) else {
            return Vec::new();
        };
        spare.set(left);
        let part = |all: u64, job: u64| {
            let part = u128::from(all) * u128::from(job) / u128::from(jobs);
            u64::try_from(part).expect("a part is no more than all")
        };
        let ends = (1..jobs).map(|job| (part(self.ran, job), part(self.periods, job)));
        ends.collect()
    }
}

/// The middle one, the upper of two.
fn median(mut values: Vec<u64>) -> u64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable(middle).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scripted;

    fn is_16_ms(sleeps: &[Act]) -> bool {
        kept(sleeps).is_some_and(|period| period.get().abs_diff(16_000_000) <= 40_000)
    }

    fn is_none(sleeps: &[Act]) -> bool {
        kept(sleeps).is_none()
    }

    const fn sleep(length: Nanos, end: Nanos) -> [Act; 2] {
        [Act::Sleep(length), Act::Woken(end)]
    }

    /// Sleeps of a task that ran for these microseconds between them.
    fn sleeps(ran: &[u64], length: impl Fn(u64, u64) -> u64) -> Vec<Act> {
        let mut now = 0;
        let sleeps = ran.iter().flat_map(|us| {
            now += us * 1_000;
            let length = length(now, *us);
            now += length;
            sleep(Nanos::new(length), Nanos::new(now))
        });
        sleeps.collect()
    }

    const RAN: [u64; 10] = [
        900, 3_000, 1_500, 7_000, 200, 4_000, 2_500, 12_000, 600, 5_000,
    ];

    #[test]
    fn a_difference_is_as_far_from_a_multiple_whether_it_is_longer_or_shorter() {
        let differences = [16, 32, 17, 15, 33, 31, 8, 24];
        assert_eq!(differences.map(|it| off(it, 16)), [0, 0, 1, 1, 1, 1, 8, 8]);
    }

    #[test]
    fn a_timer_of_16_ms_is_kept_through_a_missed_period() {
        // One turn takes longer than the period, whose end is missed.
        let mut ran = RAN;
        ran[3] = 20_000;
        let until_next = |now: u64, _| 16_000_000 - now % 16_000_000;
        assert!(is_16_ms(&sleeps(&ran, until_next)));
        // An interrupt that comes up to 40 us late.
        let late = |now, us| until_next(now, us) + us * 13 % 40 * 1_000;
        assert!(is_16_ms(&sleeps(&ran, late)));
    }

    /// As a window under a scheduler that let it draw on time in 7 of 240 periods.
    #[test]
    fn a_timer_that_is_nearly_always_missed_is_kept() {
        let late = [
            99_000, 5_000, 180_000, 350_000, 3_000, 230_000, 400_000, 3_500,
        ];
        let ran: Vec<u64> = late.into_iter().cycle().take(24).collect();
        let until_next = |now: u64, _| 16_000_000 - now % 16_000_000;
        assert!(is_16_ms(&sleeps(&ran, until_next)));
    }

    #[test]
    fn a_sleep_of_one_length_and_one_of_any_length_are_no_timers() {
        assert!(is_none(&sleeps(&RAN, |_, _| 16_000_000)));
        let any = |now: u64, _| now.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 30_000_000;
        assert!(is_none(&sleeps(&RAN, any)));
        // It hardly runs: nothing tells, and a length it stays.
        assert!(is_none(&sleeps(&[1; 10], |_, _| 16_000_000)));
    }

    #[test]
    fn few_sleeps_and_none_tell_nothing() {
        let until_next = |now: u64, _| 16_000_000 - now % 16_000_000;
        assert!(is_none(&sleeps(&RAN[..7], until_next)));
        assert!(is_none(&sleeps(&[], until_next)));
        let still = [sleep(Nanos::ZERO, Nanos::new(5)); 9];
        assert!(is_none(&still.concat()));
    }

    const fn ms(count: u64) -> Nanos {
        Nanos::from_millis(count)
    }

    /// Turns of so many milliseconds, each behind a sleep that ends then.
    fn script(turns: &[(u64, u64)]) -> Vec<Act> {
        let acts = turns.iter();
        let turn = |&(until, ran): &(u64, u64)| {
            let [sleep, woken] = sleep(ms(1), ms(until));
            [sleep, woken, Act::Run(ms(ran))]
        };
        acts.flat_map(turn).collect()
    }

    #[test]
    fn a_job_that_was_too_late_gets_its_sleep_back() {
        let mut turns: Vec<(u64, u64)> = (0..9).map(|at| (16 * at, 4)).collect();
        // Two periods with two jobs, three with two, two with one that is left out.
        turns.extend([(144, 8), (176, 8), (224, 4), (256, 4)]);
        let got = with_missed(&script(&turns), ms(16), &Cell::new(9));
        let until = |at| Act::SleepUntil(ms(at));
        let run = |span| Act::Run(ms(span));
        let want = [
            [until(144), run(4), until(160), run(4)],
            [until(176), run(4), until(192), run(4)],
            [until(224), run(4), until(256), run(4)],
        ];
        assert_eq!(got[18..], want.concat());
        assert_eq!(got[..2], [until(0), run(4)]);
    }

    #[test]
    fn several_jobs_in_one_turn_are_evenly_spread() {
        let mut turns: Vec<(u64, u64)> = (0..9).map(|at| (16 * at, 4)).collect();
        // Three periods with three jobs, and one behind them.
        turns.extend([(144, 12), (192, 4)]);
        let got = with_missed(&script(&turns), ms(16), &Cell::new(9));
        let job = |at| [Act::SleepUntil(ms(at)), Act::Run(ms(4))];
        assert_eq!(got[18..], [144, 160, 176, 192].map(job).concat());
    }

    #[test]
    fn what_a_task_does_beside_running_stays_where_it_was() {
        let mut acts = script(&(0..9).map(|at| (16 * at, 4)).collect::<Vec<_>>());
        let inside = [
            Act::Run(ms(3)),
            Act::Does(Scripted::Yield),
            Act::Run(ms(5)),
            Act::Does(Scripted::Count(0, 1)),
        ];
        acts.extend(sleep(ms(1), ms(144)));
        acts.extend(inside);
        acts.extend(sleep(ms(1), ms(176)));
        let got = with_missed(&acts, ms(16), &Cell::new(1));
        let want = [
            Act::SleepUntil(ms(144)),
            Act::Run(ms(3)),
            Act::Does(Scripted::Yield),
            Act::Run(ms(1)),
            Act::SleepUntil(ms(160)),
            Act::Run(ms(4)),
            Act::Does(Scripted::Count(0, 1)),
            Act::SleepUntil(ms(176)),
        ];
        assert_eq!(got[18..], want);
    }

    #[test]
    fn without_usual_turns_nothing_is_cut() {
        let late: Vec<(u64, u64)> = (0..20).map(|at| (32 * at, 8)).collect();
        let got = with_missed(&script(&late), ms(16), &Cell::new(99));
        assert_eq!(got.len(), 40);
    }

    #[test]
    fn a_turn_with_more_jobs_than_may_be_added_stays_as_it_is() {
        let mut turns: Vec<(u64, u64)> = (0..9).map(|at| (16 * at, 4)).collect();
        turns.extend([
            (144, 40_000_000),
            (16 * 10_000_000, 8),
            (16 * 10_000_002, 4),
        ]);
        let spare = Cell::new(1);
        let got = with_missed(&script(&turns), ms(16), &spare);
        assert_eq!((got.len(), spare.get()), (2 * 12 + 2, 0));
    }
}
