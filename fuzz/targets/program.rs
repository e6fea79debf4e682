//! Programs as strange as the loader lets through: the interpreter and native code agree on
//! results, faults and their places, counts, costs, calls of the host, and memory.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use runslice_tests::{both, program};

fuzz_target!(|bytes: &[u8]| {
    let (image, budget) = program::generate_from(bytes);
    image.check().expect("a well-formed program");
    if let Err(difference) = both::compare(&Arc::new(image), budget) {
        panic!("budget {budget}: {difference}");
    }
});
