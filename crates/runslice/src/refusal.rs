//! What somebody is told whose command line clap refuses, in the form of all other errors: what is
//! wrong, and what to do.

use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _};
use model::{Advice as _, Advised};

use crate::cli::Cli;
use crate::left_out;

/// What is wrong and what to do for `error`; none where it is no refusal but help or a version.
pub fn words(error: &clap::Error) -> Option<Advised> {
    let refused = Refused(error);
    Some(match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        ErrorKind::InvalidSubcommand => {
            let name = refused.text(ContextKind::InvalidSubcommand);
            if refused.names().len() == 1
                && let Some(words) = left_out::unknown_command(&name)
            {
                return Some(words);
            }
            // The most similar one stands last. Clap takes no two letters for a slip.
            let meant = refused.texts(ContextKind::SuggestedSubcommand).pop();
            let meant = meant.or_else(|| refused.nearest_command(&name));
            let help = refused.help("lists all commands");
            Advised::new(
                format!("there is no command `{name}`"),
                did_you_mean(meant) + &help,
            )
        }
        ErrorKind::UnknownArgument => refused.unknown_argument(),
        ErrorKind::MissingRequiredArgument => {
            let missing = refused.texts(ContextKind::InvalidArg);
            let are = if missing.len() > 1 { "are" } else { "is" };
            let missing = missing.join("` and `");
            let usage = format!("write `{}`", refused.usage());
            Advised::new(format!("`{missing}` {are} missing"), usage)
        }
        ErrorKind::InvalidValue => refused.invalid_value(),
        ErrorKind::ValueValidation => {
            let (value, option) = (refused.text(ContextKind::InvalidValue), refused.option());
            Advised::new(
                format!("invalid value `{value}` for `{option}`"),
                refused.reason(),
            )
        }
        ErrorKind::ArgumentConflict => refused.conflict(),
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            Advised::new(first, refused.help("shows how"))
        }
    })
}

/// One of the values of an option, in the words for a wrong one.
pub fn no_value(value: &str, option: &str, all: &str) -> Advised {
    let what = format!("invalid value `{value}` for `{option}`");
    Advised::new(what, format!("there are: {all}"))
}

fn did_you_mean(name: Option<String>) -> String {
    name.map_or_else(String::new, |name| format!("did you mean `{name}`? "))
}

/// An error, and what clap knows of it.
struct Refused<'a>(&'a clap::Error);

impl Refused<'_> {
    fn texts(&self, kind: ContextKind) -> Vec<String> {
        match self.0.get(kind) {
            Some(ContextValue::Strings(texts)) => texts.clone(),
            Some(ContextValue::StyledStrs(texts)) => {
                texts.iter().map(ToString::to_string).collect()
            }
            Some(ContextValue::None) | None => Vec::new(),
            Some(other) => vec![other.to_string()],
        }
    }

    fn text(&self, kind: ContextKind) -> String {
        self.texts(kind).concat()
    }

    /// The option or argument that is wrong, without the name of its value.
    fn option(&self) -> String {
        let option = self.text(ContextKind::InvalidArg);
        match option.split_once(" <") {
            Some((name, _)) => name.to_owned(),
            None => option,
        }
    }

    /// How the command is called, in one line.
    fn usage(&self) -> String {
        let usage = self.text(ContextKind::Usage);
        let usage = usage.trim_start().trim_start_matches("Usage:");
        let words: Vec<&str> = usage.split_whitespace().collect();
        words.join(" ")
    }

    /// The names that the command is called by, the program's first.
    fn names(&self) -> Vec<String> {
        let usage = self.usage();
        let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
        let names = usage.split(' ').take_while(is_name);
        let names: Vec<String> = names.map(str::to_owned).collect();
        if names.is_empty() {
            vec!["runslice".to_owned()]
        } else {
            names
        }
    }

    /// The command that `name` probably is.
    fn nearest_command(&self, name: &str) -> Option<String> {
        let mut command = &Cli::command();
        for name in &self.names()[1..] {
            command = command.find_subcommand(name)?;
        }
        let known = command.get_subcommands().map(Command::get_name);
        model::file::nearest(name, known).map(str::to_owned)
    }

    /// Where one can read more; `does` says what for.
    fn help(&self, does: &str) -> String {
        format!("`{} --help` {does}", self.names().join(" "))
    }

    fn unknown_argument(&self) -> Advised {
        let name = self.text(ContextKind::InvalidArg);
        if !name.starts_with('-') {
            return Advised::new(
                format!("`{name}` is one word too many"),
                self.help("shows what may follow"),
            );
        }
        if let Some(words) = left_out::unknown_option(&name) {
            return words;
        }
        // It may belong to another command: "'runslice sim --seed' exists".
        let elsewhere = self.texts(ContextKind::Suggested);
        let elsewhere = elsewhere.iter().find(|it| it.ends_with("' exists"));
        let elsewhere = elsewhere.and_then(|it| Some(it.split('\'').nth(1)?.to_owned()));
        let meant = self.texts(ContextKind::SuggestedArg).pop().or(elsewhere);
        let help = self.help("lists all options");
        Advised::new(
            format!("there is no option `{name}`"),
            did_you_mean(meant) + &help,
        )
    }

    fn invalid_value(&self) -> Advised {
        let value = self.text(ContextKind::InvalidValue);
        let all = self.texts(ContextKind::ValidValue).join(", ");
        if !value.is_empty() {
            let left_out = left_out::unknown_format(&value);
            return left_out.unwrap_or_else(|| no_value(&value, &self.option(), &all));
        }
        let option = self.text(ContextKind::InvalidArg);
        let todo = if all.is_empty() {
            "write it behind the option".to_owned()
        } else {
            format!("there are: {all}")
        };
        Advised::new(format!("`{option}` lacks its value"), todo)
    }

    fn conflict(&self) -> Advised {
        let option = self.text(ContextKind::InvalidArg);
        let others = self.texts(ContextKind::PriorArg);
        if others.is_empty() || others.contains(&option) {
            return Advised::new(format!("`{option}` is given twice"), "leave one out");
        }
        let others = others.join("`, `");
        Advised::new(
            format!("`{option}` cannot be used with `{others}`"),
            "leave one out",
        )
    }

    /// What a value must be.
    fn reason(&self) -> String {
        let Some(source) = std::error::Error::source(self.0) else {
            return String::new();
        };
        if let Some(wrong) = source.downcast_ref::<ParseIntError>() {
            return match wrong.kind() {
                IntErrorKind::PosOverflow => "give a smaller number".to_owned(),
                _ => "give a whole number that is not below 0".to_owned(),
            };
        }
        if let Some(own) = source.downcast_ref::<Advised>() {
            return own.in_full();
        }
        let reason = source.to_string();
        // Clap says the range of a number in words alone.
        let range = reason
            .split_once(" is not in ")
            .and_then(|(_, range)| range.split_once(".."));
        match range {
            Some((least, "")) => format!("give a number from {least} on"),
            Some((least, most)) => {
                let most = most.trim_start_matches('=');
                format!("give a number from {least} to {most}")
            }
            None => reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(command: &str) -> Option<Advised> {
        let result = Cli::of(command.split(' '));
        words(&result.expect_err(command))
    }

    /// Commands, what is wrong with them, and how the advice begins.
    const REFUSALS: &[(&str, &str, &str)] = &[
        (
            "runslice simulate fifo",
            "there is no command `simulate`",
            "did you mean `sim`? `runsl",
        ),
        (
            "runslice stat tops",
            "there is no command `tops`",
            "did you mean `top`? `runslice stat",
        ),
        (
            "runslice smi fifo",
            "there is no command `smi`",
            "did you mean `sim`? `runsl",
        ),
        (
            "runslice stat tpo",
            "there is no command `tpo`",
            "did you mean `top`? `runslice stat",
        ),
        (
            "runslice sim fifo --cpu 4",
            "there is no option `--cpu`",
            "did you mean `--cpus`? `runs",
        ),
        (
            "runslice completions bash zsh",
            "`zsh` is one word too many",
            "`runslice completions --h",
        ),
        (
            "runslice sim -w desk",
            "`<POLICY>...` is missing",
            "write `runslice sim --workload",
        ),
        (
            "runslice completions cmd",
            "invalid value `cmd` for `<SHELL>`",
            "there are: bash, elvish",
        ),
        (
            "runslice sim fifo -w",
            "`--workload <WORKLOAD>` lacks its value",
            "write it behind",
        ),
        (
            "runslice sim fifo --format",
            "`--format <FORMAT>` lacks its value",
            "there are: human",
        ),
        (
            "runslice sim a --cpus 5000",
            "invalid value `5000` for `--cpus`",
            "give a number from 1 to",
        ),
        (
            "runslice sim a --cpus four",
            "invalid value `four` for `--cpus`",
            "give a whole number",
        ),
        (
            "runslice sim a --seed -1",
            "invalid value `-1` for `--seed`",
            "give a whole number",
        ),
        (
            "runslice sim a --hz 123",
            "invalid value `123` for `--hz`",
            "a kernel ticks 100, 250",
        ),
        (
            "runslice sim a -w desk --from b",
            "`--workload <WORKLOAD>` cannot",
            "leave one out",
        ),
        (
            "runslice sim a --cpus 1 --cpus 2",
            "`--cpus <NUMBER>` is given twice",
            "leave one out",
        ),
    ];

    #[test]
    fn every_refusal_says_what_is_wrong_and_what_to_do() {
        let told = |words: &str| told(words).expect("a refusal");
        for (command, what, advice) in REFUSALS {
            let told = told(command);
            let said = told.in_full();
            let begins = told.advice.is_some_and(|it| it.starts_with(advice));
            assert!(told.what.starts_with(what) && begins, "{command}: {said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn help_is_no_refusal() {
        for command in [
            "runslice --help",
            "runslice --version",
            "runslice help sim",
            "runslice",
        ] {
            assert_eq!(told(command), None, "{command}");
        }
    }
}
