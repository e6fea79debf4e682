//! Sources of other people: their warnings are shown and stop nothing, and their headers may lie
//! anywhere.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{Clang, Error, FLAGS, paths};

/// An object, and what the compiler said about its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The object's bytes.
    pub object: Vec<u8>,
    /// Warnings as the compiler prints them; empty if there are none.
    pub warnings: String,
    /// The compiler's major version.
    pub clang: u32,
}

/// Longest that the compiler may take. The largest published schedulers take some seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// What sources ask for to know where their object will run.
const MACHINE: &str = if cfg!(target_arch = "aarch64") {
    "-D__TARGET_ARCH_arm64"
} else {
    "-D__TARGET_ARCH_x86"
};

/// Compiles `source`. Headers are looked for in its own folder, in `includes`, and in `headers`, in
/// this order. The object does not depend on where `headers` lies; what the compiler writes in
/// between goes into `scratch`, a folder of the caller's own.
///
/// # Errors
/// [`Error`] when there is no suitable clang, the source does not compile, the compiler does not
/// come to an end, or a file cannot be read or written.
pub fn compile_others(
    source: &Path,
    includes: &[&Path],
    headers: &Path,
    scratch: &Path,
) -> Result<Built, Error> {
    let clang = Clang::find()?;
    let folder = paths::folder(source)?;
    let (object, said) = (scratch.join("object"), scratch.join("said"));
    let headers = paths::canonical(headers)?;
    let mut command = Command::new(clang.path());
    command.args(FLAGS).arg(MACHINE);
    for include in includes {
        command.arg("-I").arg(paths::canonical(include)?);
    }
    // Names in the object, so that its bytes are the same wherever the headers were written.
    let mut map = std::ffi::OsString::from("-ffile-prefix-map=");
    map.push(&headers);
    map.push("=runslice");
    command.arg(map).arg("-I").arg(&headers);
    command.arg("-o").arg(&object).args(["-c", "--"]);
    command.arg(source.file_name().unwrap_or_default());
    let file = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Error::File { path, source }
    };
    let stderr = File::create(&said).map_err(file(&said))?;
    command.current_dir(folder).stdin(Stdio::null());
    let child = command.stdout(Stdio::null()).stderr(stderr).spawn();
    let is_well = wait(child.map_err(file(clang.path()))?, source, PATIENCE)?;
    let stderr = String::from_utf8_lossy(&fs::read(&said).map_err(file(&said))?).into_owned();
    if !is_well {
        return Err(Error::Compile {
            path: source.to_path_buf(),
            stderr,
        });
    }
    Ok(Built {
        object: fs::read(&object).map_err(file(&object))?,
        warnings: stderr,
        clang: clang.version(),
    })
}

/// Whether the compiler ended well; it is stopped when it takes longer than `patience`.
pub(crate) fn wait(mut child: Child, source: &Path, patience: Duration) -> Result<bool, Error> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if began.elapsed() < patience => sleep(Duration::from_millis(5)),
            Ok(None) => {
                // It has ended by itself if this fails.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::Endless {
                    path: source.to_path_buf(),
                    seconds: patience.as_secs(),
                });
            }
            Err(error) => {
                return Err(Error::File {
                    path: source.to_path_buf(),
                    source: error,
                });
            }
        }
    }
}
