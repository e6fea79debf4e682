//! The functions of the simulated kernel, called in random order with random arguments from random
//! callbacks, with the machine's own checks on; every sixteenth time on both back ends, because
//! a translation takes ten times as long as the run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runslice_tests::scripted;
use sim::Backend;

fuzz_target!(|bytes: &[u8]| {
    let sum = bytes
        .iter()
        .fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(*byte));
    let _ = if sum.is_multiple_of(16) {
        scripted::check(bytes)
    } else {
        scripted::run(&scripted::spec(bytes), Backend::Interpreter)
    };
});
