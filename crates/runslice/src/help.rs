//! Help in the order in which it is read: examples, then what is required, then options by what
//! they are about. The short help (`-h`) leaves out options that few need; `--help` has them all.

mod pages;

use clap::Command;
use show::table::wrapped;

use crate::look::width;
use pages::{GROUPS, HEADINGS, PAGES, PROGRAM, RARE, START};

/// Widest help, in columns, also on wider terminals.
const WIDEST: usize = 100;

/// The command line with its help arranged.
#[must_use]
pub fn arranged(program: Command) -> Command {
    let program = each(statuses_last(program), "");
    let groups = grouped(&program);
    program.before_help(groups).help_template(
        "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}\
         {after-help}",
    )
}

/// Arranges the page of each verb below `command`, whose words are `path`.
fn each(command: Command, path: &str) -> Command {
    command.mut_subcommands(|verb| {
        let path = format!("{path} {}", verb.get_name());
        let verb = each(verb, &path);
        page(verb, path.trim_start())
    })
}

/// One verb's page: its examples, its options under headings, its exit statuses in `--help` only.
fn page(verb: Command, path: &str) -> Command {
    let examples = PAGES.iter().find(|(of, _)| *of == path);
    let verb = statuses_last(verb).mut_args(|arg| {
        let id = arg.get_id().as_str();
        let is_rare = RARE.contains(&id) || PROGRAM.contains(&id);
        // Nobody reads an example whose options the page leaves out.
        let is_shown = examples.is_some_and(|(_, of)| has_option(of, arg.get_long()));
        let heading = HEADINGS.iter().find(|(_, ids)| ids.contains(&id));
        let arg = if is_rare && !is_shown {
            arg.hide_short_help(true)
        } else {
            arg
        };
        match heading {
            Some((heading, _)) if !arg.is_positional() => arg.help_heading(*heading),
            _ => arg,
        }
    });
    match examples {
        Some((_, examples)) => {
            let examples = listed("Examples:", examples, width().min(WIDEST));
            verb.before_help(examples).help_template(
                "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n\
                 {all-args}{after-help}",
            )
        }
        None => verb,
    }
}

/// Whether one of these examples has an option of this name.
fn has_option(examples: &[(&str, &str)], long: Option<&str>) -> bool {
    let is_it = |word: &str| word.strip_prefix("--").is_some_and(|it| Some(it) == long);
    examples
        .iter()
        .any(|(command, _)| command.split(' ').any(is_it))
}

/// Moves exit statuses from the short help into `--help`.
fn statuses_last(command: Command) -> Command {
    match command.get_after_help().cloned() {
        Some(statuses) => command.after_long_help(statuses).after_help(None::<&str>),
        None => command,
    }
}

/// Commands, each with what it is for behind it, or above it where the line has no room: whoever
/// types a note that was wrapped would type its end as a command.
fn listed(title: &str, examples: &[(&str, &str)], room: usize) -> String {
    let longest = |(command, _): &(&str, &str)| command.chars().count();
    let column = examples.iter().map(longest).max().unwrap_or(0);
    let notes = examples.iter().map(|(_, note)| note.chars().count()).max();
    let fits = column + notes.unwrap_or(0) + "    # ".len() <= room;
    let lines = examples.iter().map(|(command, note)| match *note {
        "" => format!("\n  {command}"),
        note if fits => format!("\n  {command:<column$}  # {note}"),
        note => {
            let line = format!("\n  {command}  # {note}");
            if line.trim_start_matches('\n').chars().count() <= room {
                line
            } else {
                format!("\n  # {note}\n  {command}")
            }
        }
    });
    title.to_owned() + &lines.collect::<String>()
}

/// All verbs in their groups, each with its purpose.
fn grouped(program: &Command) -> String {
    let purpose = |verb: &str| {
        let command = program.find_subcommand(verb);
        let about = command.and_then(Command::get_about);
        about.map(ToString::to_string).unwrap_or_default()
    };
    let longest = |(_, verbs): &(&str, &[&str])| verbs.iter().map(|it| it.len()).max();
    let column = GROUPS.iter().filter_map(longest).max().unwrap_or(0);
    let room = width().min(WIDEST).saturating_sub(column + 4).max(20);
    let first = width().min(WIDEST);
    let mut text = listed("Start here, in an empty folder:", START, first) + "\n";
    for (title, verbs) in GROUPS {
        text += &format!("\n{title}:\n");
        for verb in *verbs {
            let mut name = *verb;
            for line in wrapped(&purpose(verb), room) {
                text += &format!("  {name:<column$}  {line}\n");
                name = "";
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    fn pages_of(command: &Command, path: &str, into: &mut Vec<String>) {
        for verb in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            if verb.get_name() != "help" {
                let path = format!("{path} {}", verb.get_name());
                into.push(path.trim_start().to_owned());
                pages_of(verb, &path, into);
            }
        }
    }

    #[test]
    fn each_verb_is_in_one_group() {
        let program = Cli::command();
        let verbs = program.get_subcommands().filter(|it| !it.is_hide_set());
        let all: BTreeSet<_> = verbs.map(Command::get_name).collect();
        let grouped: Vec<_> = GROUPS
            .iter()
            .flat_map(|(_, verbs)| verbs.iter().copied())
            .collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), all);
        assert_eq!(grouped.len(), all.len(), "a verb is in two groups");
    }

    #[test]
    fn the_purpose_of_each_verb_takes_one_line_of_80_columns() {
        let program = Cli::command();
        for verb in program.get_subcommands() {
            let about = verb
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            let width = about.chars().count();
            assert!(width <= 65, "{}: {width} columns", verb.get_name());
        }
    }

    #[test]
    fn each_page_has_examples_that_the_command_line_takes() {
        let mut pages = Vec::new();
        pages_of(&Cli::command(), "", &mut pages);
        let shown: Vec<_> = PAGES.iter().map(|(path, _)| (*path).to_owned()).collect();
        let sorted = |mut all: Vec<String>| {
            all.sort();
            all
        };
        assert_eq!(sorted(shown), sorted(pages));
        let examples = PAGES.iter().flat_map(|(_, examples)| examples.iter());
        for (command, _) in examples.chain(START) {
            let typed = command.split(" > ").next().expect("a first part");
            let words = shlex::split(&typed.replace("$$", "1"));
            let words = words.expect("quotes are closed");
            assert!(
                command.chars().count() + 2 <= 80,
                "{command}: wider than 80 columns"
            );
            if words[0] == "runslice" {
                let read = Cli::of(&words);
                assert!(read.is_ok(), "{command}: {}", read.unwrap_err());
            }
        }
    }

    #[test]
    fn no_line_of_examples_is_wrapped_on_a_terminal_of_80_columns() {
        for (path, examples) in PAGES.iter().copied().chain([("", START)]) {
            for line in listed("Examples:", examples, 80).lines() {
                assert!(line.chars().count() <= 80, "{path}: {line}");
            }
        }
    }

    #[test]
    fn each_id_that_is_arranged_is_an_argument_of_some_verb() {
        fn ids(command: &Command, into: &mut BTreeSet<String>) {
            into.extend(command.get_arguments().map(|it| it.get_id().to_string()));
            command.get_subcommands().for_each(|it| ids(it, into));
        }
        let mut all = BTreeSet::new();
        ids(&Cli::command(), &mut all);
        for id in RARE
            .iter()
            .chain(HEADINGS.iter().flat_map(|(_, ids)| ids.iter()))
        {
            assert!(all.contains(*id), "no verb has {id}");
        }
    }

    #[test]
    fn the_short_help_has_the_options_of_its_examples() {
        let mut program = arranged(Cli::command());
        for (path, examples) in PAGES {
            let mut verb = &mut program;
            for name in path.split(' ') {
                verb = verb.find_subcommand_mut(name).expect("a verb");
            }
            let help = verb.clone().term_width(80).render_help().to_string();
            let (_, options) = help.split_once("Usage:").expect("a usage");
            let own = format!("runslice {path} ");
            let of_it = examples.iter().filter_map(|it| it.0.strip_prefix(&own));
            // Those of the verbs below it have options of their own.
            let is_below = |name: &str| verb.find_subcommand(name).is_some();
            let of_it = of_it.filter(|it| !it.split(' ').next().is_some_and(is_below));
            let words = of_it.flat_map(|it| it.split(' ').take_while(|word| *word != "--"));
            for option in words.filter(|word| word.starts_with("--")) {
                assert!(options.contains(option), "{path} -h lacks {option}");
            }
        }
    }

    #[test]
    fn the_short_help_of_each_verb_takes_at_most_two_screens() {
        fn measure(command: &mut Command, path: &str) {
            let help = command.clone().term_width(80).render_help().to_string();
            let lines = help.lines().count();
            assert!(lines <= 80, "{path} -h has {lines} lines");
            for verb in command.get_subcommands_mut() {
                let path = format!("{path} {}", verb.get_name());
                measure(verb, &path);
            }
        }
        measure(&mut arranged(Cli::command()), "runslice");
    }
}
