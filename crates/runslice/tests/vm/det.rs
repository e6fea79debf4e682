//! Counted time: a run repeats to the byte, and samples differ as far as they say.

use runslice_tests::guest;

/// What a counted guest prints when hackbench has run under a policy: its time, then what
/// schedstat has counted since the kernel began.
fn hackbench(policy: &str, more: &[&str]) -> String {
    let script = format!(
        "echo 1 >/proc/sys/kernel/sched_schedstats
         runslice run {policy} -- timeout 60 hackbench -g 1 -l 40 || exit 1
         cat /proc/schedstat"
    );
    let guest = guest!().counted().with("hackbench").options(more);
    guest.good(&script, &[]).stdout
}

/// Seconds, as hackbench says.
fn time(said: &str) -> f64 {
    let time = said.lines().find_map(|line| line.strip_prefix("Time: "));
    time.and_then(|time| time.trim().parse().ok())
        .unwrap_or_else(|| panic!("no time in {said}"))
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn hackbench_under_a_policy_repeats_its_output_and_schedstat() {
    let first = hackbench("mlfq", &[]);
    assert!(
        first.contains("\ncpu1 ") && first.contains("domain0 "),
        "{first}"
    );
    assert!(time(&first) > 0.0);
    assert!(
        first == hackbench("mlfq", &[]),
        "two counted runs differ from: {first}"
    );
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn five_samples_of_hackbench_differ_and_agree() {
    let samples: Vec<String> = (1..=5)
        .map(|seed| hackbench("mlfq", &["--seed", &seed.to_string()]))
        .collect();
    let mut times: Vec<f64> = samples.iter().map(|said| time(said)).collect();
    times.sort_by(f64::total_cmp);
    let [least, most] = [times[0], times[4]];
    let spread = (most - least) / times[2] * 100.0;
    println!(
        "median {} s, {least} to {most} s, spread {spread:.1} %",
        times[2]
    );
    for (at, one) in samples.iter().enumerate() {
        assert!(
            !samples[at + 1..].contains(one),
            "two samples are the same: {times:?}"
        );
    }
    // The same work, within what samples of one workload may differ.
    assert!(most < 2.0 * least, "{times:?}");
}
