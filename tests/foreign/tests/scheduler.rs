//! What the scheduler promises.

runslice_test::scheduler! {
    fn nobody_waits_for_long(
        policy: "src/mine.bpf.c",
        load: "desk",
        machine: "4cpu-2llc-nosmt",
        limits: &["max wait < 2s"],
        duration: "2s",
    );
}
