//! What a stranger's program may do to the process: nothing. Each class of attack ends as it must
//! on each back end, and the memory that it took is measured.

use std::fs;
use std::sync::Arc;

use bpf::{Backend, Config, Instance};
use runslice_tests::attacks::{self, Attack, End};
use runslice_tests::both::{Player, table};
use runslice_tests::usage::memory;

/// Bytes that a program may make the process take.
const CAP: u64 = 16 << 20;

/// What the machine itself may take for a program that fills its maps, bytes: what it knows of
/// each element, and native code.
const OWN: u64 = 24 << 20;

/// How the attack ended, and by how much the process grew at its largest.
fn launch(attack: &Attack, backend: Backend) -> (End, u64) {
    // Sets the peak back to what is resident now (proc(5)).
    fs::write("/proc/self/clear_refs", "5").expect("one's own peak may be set back");
    let before = memory("VmRSS:");
    let config = Config {
        cpus: 64,
        budget: 12_000_000,
        memory_bytes: CAP,
        backend,
        ..Config::default()
    };
    let image = Arc::clone(&attack.image);
    image
        .check()
        .unwrap_or_else(|e| panic!("{}: {e}", attack.name));
    let end = match Instance::new(image, &table(), config) {
        Err(_) => End::Refused,
        Ok(mut vm) => match vm.call_program(0, &[], &mut Player::default()) {
            Ok(_) => End::Harmless,
            Err(fault) => {
                let text = format!("{:?}", fault.stop);
                let is = |name: &&str| text.split([' ', '(']).next() == Some(name);
                let name = [
                    "WildStore",
                    "Budget",
                    "CallDepth",
                    "StackOverflow",
                    "OutOfMemory",
                ]
                .iter()
                .find(|n| is(n));
                End::Stopped(name.unwrap_or_else(|| panic!("{}: {text}", attack.name)))
            }
        },
    };
    (end, memory("VmHWM:").saturating_sub(before))
}

/// One test, because the memory of the whole process is measured.
#[test]
fn every_attack_ends_as_it_must_and_takes_no_more_memory_than_the_caps() {
    let mut wrong = String::new();
    for attack in attacks::all() {
        for backend in [Backend::Interpreter, Backend::Jit] {
            let (end, grown) = launch(&attack, backend);
            println!(
                "{} on {backend:?}: {end:?}, {} KiB",
                attack.name,
                grown >> 10
            );
            if end != attack.end {
                wrong += &format!(
                    "{} on {backend:?}: {end:?}, not {:?}\n",
                    attack.name, attack.end
                );
            }
            if grown > CAP + OWN {
                wrong += &format!("{} on {backend:?}: took {grown} bytes\n", attack.name);
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
