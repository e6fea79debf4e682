//! What a program may be built without, and what somebody is told who asks it for that. `make demo`
//! builds such a program.

use model::Advised;

/// The commands that are there with the feature `live` alone.
const KERNEL_COMMANDS: [&str; 10] = [
    "run", "set", "status", "stop", "play", "record", "load", "vm", "doctor", "bench",
];

/// What this program lacks, the feature that has it, and what to do.
pub fn words(what: &str, feature: &str) -> Advised {
    Advised::new(
        format!("this runslice was built without {what} (feature `{feature}`)"),
        format!(
            "`cargo install runslice --features {feature}` or `make release` builds one with it"
        ),
    )
}

/// Message for the command `name`, if the program was built without it.
pub fn unknown_command(name: &str) -> Option<Advised> {
    let is_one = KERNEL_COMMANDS.contains(&name);
    is_one.then(|| words(&format!("the command `{name}`"), "live"))
}

/// Message for the option `name`, if the program was built without it.
pub fn unknown_option(name: &str) -> Option<Advised> {
    let is_one = name == "--png" && !cfg!(feature = "png");
    is_one.then(|| words("pictures as PNG files", "png"))
}

/// Message for the format `name`, if the program was built without it.
pub fn unknown_format(name: &str) -> Option<Advised> {
    let is_one = name == "parquet" && !cfg!(feature = "parquet");
    is_one.then(|| words("tables as Parquet files", "parquet"))
}

#[cfg(test)]
mod tests {
    use clap::{Command, Subcommand as _};

    use super::*;
    use crate::cli::Cli;
    use crate::{on_kernel, refusal};

    #[test]
    fn what_was_left_out_is_told_with_its_feature_and_the_command_that_has_it() {
        let told = model::Advice::in_full(&words("pictures as PNG files", "png"));
        assert_eq!(
            told,
            "this runslice was built without pictures as PNG files (feature `png`); `cargo install \
             runslice --features png` or `make release` builds one with it"
        );
    }

    #[test]
    fn a_command_of_a_kernel_is_there_or_its_refusal_says_what_to_do() {
        let own = on_kernel::KernelVerb::augment_subcommands(Command::new("runslice"));
        let mut own: Vec<&str> = own.get_subcommands().map(Command::get_name).collect();
        if own.is_empty() {
            for name in KERNEL_COMMANDS {
                for words in [&["runslice", name][..], &["runslice", "help", name]] {
                    let error = Cli::of(words.iter().copied()).expect_err("it is not there");
                    let told = refusal::words(&error).expect("a refusal");
                    assert_eq!(Some(told), unknown_command(name), "{words:?}");
                }
            }
            return;
        }
        let mut known = KERNEL_COMMANDS;
        own.sort_unstable();
        known.sort_unstable();
        assert_eq!(own, known);
    }
}
