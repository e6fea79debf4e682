//! Bodies about who gets the CPU at a wakeup, which hold on both machines.

use super::{Body, Scenario, TraceTurn, Yield, assert_survived, ms};

/// Under Staircase a fresh slice preempts on the same stair. It does so, too, when a real-time task
/// wakes its owner and so has the CPU at that moment: the task that this one displaced counts.
///
/// Nice 19 has one stair, so that both stand on it all the time, and an interval of 10 ms there.
#[must_use]
pub fn a_real_time_waker_hides_no_equal() -> Body {
    let scenario = Scenario {
        name: "a_real_time_waker_hides_no_equal",
        policy: "staircase",
        knobs: "",
        until_ms: 1_500,
        tables: "[chan.motion]\nkind = \"pipe\"\n\
                 [task.hog]\ncpus = \"1\"\nnice = 19\ndo = \"run(inf)\"\n\
                 [task.pointer]\ncpus = \"1\"\nnice = 19\n\
                 do = \"loop(inf)[ recv(motion), run(300us) ]\"\n\
                 [task.mouse]\ncpus = \"1\"\npolicy = \"fifo:1\"\nstart = \"20ms\"\n\
                 do = \"loop(inf)[ sleep(33ms), send(motion) ]\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        let mouse = run.turns("mouse")[0].task;
        let pointer = run.turns("pointer").into_iter();
        let woken: Vec<TraceTurn> = pointer.filter(|turn| turn.behind == Some(mouse)).collect();
        assert!(woken.len() >= 20, "{woken:?}");
        let waited = woken.iter().filter_map(TraceTurn::wait);
        // Behind the hog it would wait for half an interval in the mean.
        let short = waited.filter(|wait| wait.get() < ms(1)).count();
        assert!(short * 10 >= woken.len() * 7, "{woken:?}");
    };
    Body { scenario, check }
}
