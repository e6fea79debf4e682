//! Whether a policy keeps limits under a load.

use pyo3::prelude::*;
use testing::Test;

use crate::wait::wait;

/// Machine, runs, seed of the first run, longest simulated time.
type Course = (String, u32, Option<u64>, String);

/// What a test of `runslice-test` says of a policy that breaks a limit; `None` if it keeps all.
#[pyfunction]
pub fn check(
    py: Python<'_>,
    policy: String,
    load: String,
    what: (Vec<String>, Vec<(String, i64)>),
    how: Course,
) -> PyResult<Option<String>> {
    let ((limits, scale), (machine, runs, seed, duration)) = (what, how);
    wait(py, move |services| {
        let limits: Vec<&str> = limits.iter().map(String::as_str).collect();
        let scale: Vec<(&str, i64)> = scale.iter().map(|it| (&*it.0, it.1)).collect();
        let test = Test {
            policy: &policy,
            load: &load,
            scale: &scale,
            machine: &machine,
            limits: &limits,
            runs,
            seed,
            duration: &duration,
        };
        let broken = testing::broken(services, &test)?;
        Ok(broken.map(|it| it.to_string()))
    })
}
