//! The command that explains a run of `sim`: of the words that made the run, those that `explain`
//! takes.

use ask::words;
use clap::{Arg, Command, CommandFactory as _};

use crate::cli::Cli;

/// Options that change a run, and that `explain` does not take.
const OTHERS: [&str; 5] = ["from", "cost-scale", "window", "start-jitter", "as-played"];
/// Options of both that do not belong to the one run that is explained, or that mean something else
/// there.
const LEFT_OUT: [&str; 6] = [
    "scheduler",
    "events",
    "output",
    "loader-output",
    "scheduler-stats",
    "scheduler-stats-every",
];

/// Whose run is explained.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A policy, as it stands on the command line.
    Policy(&'a str),
    /// A scheduler's own program.
    Program(&'a str),
}

/// The command that explains the longest waits of the run of `subject` which the words of a `sim`
/// have made; `seed`: that of the run, if it was derived. `None`: `explain` cannot make that run.
pub fn command(all: &[String], subject: Subject<'_>, seed: Option<u64>) -> Option<String> {
    let cli = Cli::command();
    let (sim, explain) = (cli.find_subcommand("sim")?, cli.find_subcommand("explain")?);
    let own_seed = seed.map(|seed| seed.to_string());
    let mut made = vec!["runslice", "explain"];
    match subject {
        Subject::Policy(policy) => made.push(policy),
        Subject::Program(program) => made.extend(["--scheduler", program]),
    }
    let mut rest = all.iter().skip(2).take_while(|word| *word != "--");
    while let Some(word) = rest.next() {
        // What is no option is a policy.
        let Some((option, has_value)) = option_of(sim, word) else {
            continue;
        };
        let value = if has_value { rest.next() } else { None };
        let name = option.get_long()?;
        if OTHERS.contains(&name) {
            return None;
        }
        let is_shared = named(explain, name).is_some() && !LEFT_OUT.contains(&name);
        if is_shared && (name != "seed" || seed.is_none()) {
            made.push(word);
            made.extend(value.map(String::as_str));
        }
    }
    if let Some(seed) = &own_seed {
        made.extend(["--seed", seed.as_str()]);
    }
    made.extend(["--worst", "5"]);
    Some(words::command(&made))
}

fn named<'a>(verb: &'a Command, name: &str) -> Option<&'a Arg> {
    let mut options = verb.get_arguments();
    options.find(|option| option.get_long() == Some(name))
}

/// The option of `verb` that `word` is, and whether the word behind it is its value.
fn option_of<'a>(verb: &'a Command, word: &str) -> Option<(&'a Arg, bool)> {
    let (option, is_whole) = if let Some(long) = word.strip_prefix("--") {
        let name = long.split('=').next()?;
        (named(verb, name)?, name == long)
    } else {
        let mut letters = word.strip_prefix('-')?.chars();
        let letter = letters.next();
        let mut options = verb.get_arguments();
        let option = options.find(|it| letter.is_some() && it.get_short() == letter)?;
        (option, letters.as_str().is_empty())
    };
    Some((option, is_whole && option.get_action().takes_values()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &str, subject: Subject<'_>, seed: Option<u64>) -> Option<String> {
        let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
        let command = command(&words, subject, seed)?;
        let words = shlex::split(&command).expect("words of a shell");
        Cli::of(&words).unwrap_or_else(|error| panic!("{command}: {error}"));
        Some(command)
    }

    #[test]
    fn a_run_is_explained_with_the_options_that_made_it_and_no_others() {
        let sim = "runslice sim fifo mlfq:queues=4 -w desk --cpus 2 --duration=2s -ox.html \
            --events e.jsonl --decisions --scale n=2 --fail-on wait=1s --memory 64";
        let mlfq = Subject::Policy("mlfq:queues=4");
        let made = "runslice explain mlfq:queues=4 -w desk --cpus 2 --duration=2s --scale n=2 \
            --memory 64";
        let want = |rest: &str| Some(format!("{made} {rest}--worst 5"));
        assert_eq!(asked(sim, mlfq, None), want(""));
        let many = format!("{sim} --seed 9 --runs 3 --jobs 2");
        assert_eq!(asked(&many, mlfq, Some(17)), want("--seed 17 "));
        assert_eq!(
            asked(&format!("{sim} --seed 9"), mlfq, None),
            want("--seed 9 ")
        );
        let program = "runslice sim fifo --scheduler ./mine -wdesk -- o1";
        let want = "runslice explain --scheduler './mine -p' -wdesk --worst 5";
        let made = asked(program, Subject::Program("./mine -p"), None);
        assert_eq!(made.as_deref(), Some(want));
    }

    #[test]
    fn what_explain_cannot_make_has_no_command() {
        for option in ["--from x.jsonl", "--from=x.jsonl", "--start-jitter 1ms"] {
            let sim = format!("runslice sim fifo {option}");
            assert_eq!(asked(&sim, Subject::Policy("fifo"), None), None, "{option}");
        }
    }
}
