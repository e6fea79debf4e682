//! Bare systems of Debian, made with what this system's own apt knows.

use std::path::Path;
use std::process::Command;

/// Where this system gets Debian's packages from, whatever its own release is.
#[must_use]
pub fn mirror() -> Option<String> {
    let words = [
        "indextargets",
        "--format",
        "$(ORIGIN) $(CODENAME) $(REPO_URI)",
        "Created-By: Packages",
    ];
    let output = Command::new("apt-get").args(words).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| {
        let [origin, codename, mirror] = line.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        // The archive of security updates is another one.
        (origin == "Debian" && !codename.contains('-')).then(|| mirror.to_owned())
    })
}

/// Makes a bare system of `suite` in `place`, a folder or a file `*.tar`; `options` are for
/// mmdebstrap.
///
/// # Panics
/// If mmdebstrap, root or the network is missing.
pub fn make(suite: &str, place: &Path, options: &[&str]) {
    let mirror = mirror().expect("apt's sources name no archive of Debian");
    let is_root = Command::new("sh")
        .args(["-c", "test $(id -u) = 0"])
        .status();
    assert!(
        is_root.is_ok_and(|status| status.success()),
        "making a root takes root"
    );
    let made = Command::new("mmdebstrap")
        .args(options)
        .arg(suite)
        .arg(place)
        .arg(&mirror)
        .output();
    let made = made.expect("no mmdebstrap: `apt install mmdebstrap`");
    assert!(
        made.status.success(),
        "mmdebstrap {suite}: is there a network?"
    );
}
