//! The loader: bytes become an object, an image and an instance, or an error.
#![no_main]

use std::sync::{Arc, LazyLock};

use bpf::{Config, Image, Instance, Object, Target};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use model::{MachineSpec, Rng};
use runslice_tests::{both, hostile};

static TARGET: LazyLock<Target> = LazyLock::new(|| sim::target(&MachineSpec::default()));

fn load(bytes: &[u8]) -> Option<Image> {
    let mut object = Object::parse(bytes).ok()?;
    let _ = object.missing(&TARGET);
    if let Err(error) = object.link(&TARGET) {
        // What is said of it must not fail either.
        let _ = error.to_string();
    }
    // Every program, those too that a kernel would not load by itself.
    let names: Vec<String> = object
        .programs()
        .map(|(name, ..)| name.to_owned())
        .collect();
    for name in names {
        object.set_autoload(&name, true).expect("it was listed");
    }
    object.link(&TARGET).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let Some(image) = load(bytes) else { return };
    image.check().expect("the loader checked it");
    let config = Config {
        memory_bytes: 5 << 20,
        lenient: true,
        ..Config::default()
    };
    let _ = Instance::new(Arc::new(image), &both::table(), config).map_err(|e| e.to_string());
});

fuzz_mutator!(
    |bytes: &mut [u8], size: usize, max_size: usize, seed: u32| {
        if seed % 4 == 0 {
            return libfuzzer_sys::fuzzer_mutate(bytes, size, max_size);
        }
        let mut rng = Rng::new(seed.into(), 0);
        for _ in 0..1 + rng.below(3) {
            hostile::damage_a_section(&mut bytes[..size], &mut rng);
        }
        size
    }
);
