//! Damaged files: any bytes give an image or an error, never a panic.

use super::{bytes, target};
use bpf::{Object, Target};

/// A generator of test cases; any sequence that is the same every time will do.
struct Cases(u64);

impl Cases {
    fn next(&mut self, below: usize) -> usize {
        // Source: Marsaglia (2003), "Xorshift RNGs", the triple 13, 7, 17.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

/// Loads damaged bytes; returns whether they linked, so that a test sees both outcomes.
fn load(file: &[u8], target: &Target) -> bool {
    let linked = Object::parse(file).and_then(|object| {
        let _ = object.missing(target);
        object.link(target)
    });
    match linked {
        Ok(image) => {
            image.check().expect("a linked image keeps the rules");
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

/// Changes a few bytes, with a preference for the values that break arithmetic.
fn damage(file: &mut [u8], cases: &mut Cases) {
    for _ in 0..=cases.next(4) {
        let at = cases.next(file.len());
        file[at] = match cases.next(4) {
            0 => 0xff,
            1 => 0,
            2 => file[at] ^ 1 << cases.next(8),
            _ => cases.next(256) as u8,
        };
    }
}

#[test]
fn changed_bytes_never_cause_a_panic() {
    let target = target();
    let mut cases = Cases(0x9e37_79b9_7f4a_7c15);
    for name in ["core.bpf.c", "whole.bpf.c", "needy.bpf.c"] {
        let file = bytes(name);
        let mut linked = 0;
        for _ in 0..1500 {
            let mut file = file.clone();
            damage(&mut file, &mut cases);
            linked += u32::from(load(&file, &target));
        }
        // Most bytes are debug information; the cases must reach both outcomes to mean anything.
        assert!(linked < 1500, "{name}: no damage was noticed");
    }
}

#[test]
fn damaged_types_never_cause_a_panic() {
    let target = target();
    let mut cases = Cases(0x2545_f491_4f6c_dd1d);
    let file = bytes("whole.bpf.c");
    let magic = [0x9f, 0xeb, 1, 0];
    let starts: Vec<_> = (0..file.len() - 4)
        .filter(|&at| file[at..at + 4] == magic)
        .collect();
    assert!(starts.len() >= 2, "the file has .BTF and .BTF.ext");
    for _ in 0..3000 {
        let mut file = file.clone();
        let start = starts[cases.next(starts.len())];
        let end = (start + 4096).min(file.len());
        damage(&mut file[start..end], &mut cases);
        load(&file, &target);
    }
}

#[test]
fn a_damaged_kernel_never_causes_a_panic() {
    let object = Object::parse(&bytes("whole.bpf.c")).unwrap();
    let kernel = bytes("kernel.h");
    let mut cases = Cases(0xda94_2042_e4dd_58b5);
    let mut parsed = 0;
    for _ in 0..2000 {
        let mut kernel = kernel.clone();
        damage(&mut kernel, &mut cases);
        if let Ok(target) = Target::new("toy", (6, 18, 0), &kernel) {
            parsed += 1;
            let _ = object.link(&target);
            let _ = target.field("task", "scx.slice");
            assert!(target.functions().count() < 100);
        }
    }
    assert!((1..2000).contains(&parsed), "{parsed}");
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let target = target();
    let file = bytes("whole.bpf.c");
    for len in (0..file.len()).step_by(7) {
        assert!(
            !load(&file[..len], &target),
            "{len} of {} bytes",
            file.len()
        );
    }
}
