//! Policies by name: those that only tests run, and those that the project ships.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Test policies with their objects; `build.rs` writes the table.
pub const TESTED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/policies.rs"));

/// The object of the policy `name`, which may have knobs behind a colon.
///
/// # Errors
/// If there is none; the message lists the test policies.
pub fn object(name: &str) -> Result<Arc<[u8]>, String> {
    let tested = TESTED
        .iter()
        .find(|(own, _)| *own == name)
        .map(|(_, object)| *object);
    let shipped = || {
        let (name, knobs) = name.split_once(':').unwrap_or((name, ""));
        policies::find(name).map(|policy| policies::chosen(policy, knobs).object)
    };
    tested.or_else(shipped).map(Arc::from).ok_or_else(|| {
        let names: Vec<_> = TESTED.iter().map(|(name, _)| name).collect();
        format!("no policy is called `{name}`; test policies are {names:?}")
    })
}

/// The path of an object, compiled anew from a source below the calling package's
/// `tests/objects`. The file, and so the policy, is called as the source is.
#[macro_export]
macro_rules! object {
    ($name:expr) => {{
        let package = ::std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        $crate::policy::compile(
            &package
                .join("tests/objects")
                .join(format!("{}.bpf.c", $name)),
            env!("CARGO_TARGET_TMPDIR"),
            env!("CARGO_CRATE_NAME"),
        )
    }};
}

/// Compiles a policy's source into a folder that the program `user` has for itself below `parent`.
///
/// # Panics
/// When it does not compile, or the folder cannot be written.
#[must_use]
pub fn compile(source: &Path, parent: &str, user: &str) -> PathBuf {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies/include");
    let bytes = bpf_build::compile(source, &[&include]).unwrap_or_else(|error| panic!("{error}"));
    let folder = Path::new(parent).join("objects").join(user);
    fs::create_dir_all(&folder).expect("the folder for tests is writable");
    let name = source.file_stem().expect("a file").to_string_lossy();
    // Another thread may be reading the object of the same name: it is never seen half written.
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let fresh = folder.join(format!("{name}.{number}"));
    fs::write(&fresh, bytes).expect("the folder for tests is writable");
    let path = folder.join(format!("{name}.o"));
    fs::rename(&fresh, &path).expect("the folder for tests is writable");
    path
}
