//! A run as a script that shows it on a kernel, for whoever has virtme-ng.

use ask::shrink::Case;
use ask::words;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use model::Advised;
use workload::RunSpec;

use crate::confirm::{LOAD, OBJECT, cannot_play, play_words};
use crate::exit::UsageError;

/// Bytes of an encoded line, which is a third longer.
const LINE_BYTES: usize = 57;
/// What ends a text within the script.
const END: &str = "END_OF_FILE";

/// The script that plays the run of `case`, which `spec` is.
///
/// # Errors
/// When no kernel can play the run.
pub fn script(case: &Case, spec: &RunSpec) -> anyhow::Result<String> {
    if let Some(why) = cannot_play(spec) {
        let message = Advised::new(
            format!("{why}: --script has nothing to play"),
            "leave out --script",
        );
        return Err(UsageError::new(message).into());
    }
    let words = play_words(case, spec, spec.seed);
    let command = words::quoted(&words::command(&words));
    let cpus = spec.machine.cpus;
    let kernel = spec.machine.kernel.name();
    let (object, load) = (encoded(&spec.policy.object), &case.workload.text);
    let end = end_of(load);
    Ok(format!(
        "#!/bin/sh\n\
         # Plays a load under a sched_ext policy on {cpus} CPUs, in a machine of virtme-ng.\n\
         # The run was found on a simulated Linux {kernel}. Status 3: the kernel ended the\n\
         # policy.\n\
         #\n\
         # usage: sh SCRIPT [OPTIONS OF vng]: none in the tree of a kernel that is built,\n\
         # else for example -r v{kernel}. It needs vng, and runslice on root's PATH.\n\
         set -eu\n\
         for program in vng runslice base64; do\n\
         \x20   command -v \"$program\" >/dev/null && continue\n\
         \x20   echo \"$program is missing\" >&2\n\
         \x20   exit 4\n\
         done\n\
         # The guest has its own /tmp and /run.\n\
         folder=$(mktemp -d -p \"$PWD\")\n\
         trap 'rm -rf \"$folder\"' EXIT\n\
         base64 -d >\"$folder/{OBJECT}\" <<'{END}'\n\
         {object}{END}\n\
         cat >\"$folder/{LOAD}\" <<'{end}'\n\
         {load}\n\
         {end}\n\
         vng --cpus {cpus} --memory 1G --user root \"$@\" --exec \"cd '$folder' && \"{command}\n",
    ))
}

/// A line that is none of `text`.
fn end_of(text: &str) -> String {
    let mut end = END.to_owned();
    while text.lines().any(|line| line == end) {
        end.push('_');
    }
    end
}

/// Base64, in lines (RFC 4648, section 4).
fn encoded(bytes: &[u8]) -> String {
    let lines = bytes.chunks(LINE_BYTES);
    lines
        .map(|line| BASE64_STANDARD.encode(line) + "\n")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_as_the_standard_says() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(encoded(bytes.as_bytes()).trim_end(), text);
        }
        assert_eq!(encoded(b"foobar"), "Zm9vYmFy\n");
        assert!(encoded(&[7; 500]).lines().all(|line| line.len() <= 76));
    }

    #[test]
    fn a_text_cannot_end_itself() {
        assert_eq!(end_of("a\nb"), END);
        assert_eq!(end_of("a\nEND_OF_FILE\nrm -rf /"), "END_OF_FILE_");
    }
}
