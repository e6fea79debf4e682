//! The front door of loaders: calls of bpf(2) in any order with any arguments.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runslice_tests::choices::Choices;
use runslice_tests::door;

fuzz_target!(|bytes: &[u8]| {
    let _ = door::play(&mut Choices::Bytes(bytes));
});
