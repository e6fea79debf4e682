//! What a client may ask: one file a tool, and the arguments that several have.

mod bundle;
mod choose;
mod compare;
mod evaluate;
mod explain;
mod gate;
mod hunt;
mod list;
mod parts;
mod score;
mod sim;

use crate::answer::Answered;
use crate::arguments::{Arguments, PartSchema, schema_of};
use crate::desk::Desk;

pub use parts::FilesPart;
use parts::{LoadPart, MachinePart, PreparePart};

/// What makes an answer out of arguments.
type Ask = fn(&mut Arguments, &Desk<'_>) -> anyhow::Result<Answered>;

/// A tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolOf {
    /// Its name: that of the verb of the command line.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Whether it writes into the owner's folder.
    pub writes: bool,
    /// Its arguments.
    pub parts: &'static [PartSchema],
    /// Answers.
    pub ask: Ask,
}

/// Every tool.
pub static ALL: [ToolOf; 10] = [
    ToolOf {
        name: "list",
        about: "List the built-in policies, workloads and machines, or the columns of results; or \
                show one of them with its knobs or parameters.",
        writes: false,
        parts: &[schema_of::<list::ListPart>, schema_of::<FilesPart>],
        ask: list::ask,
    },
    ToolOf {
        name: "sim",
        about: "Simulate policies under a workload: waits, wakeup latencies, CPU time and goals \
                of each group of tasks.",
        writes: false,
        parts: &[
            schema_of::<sim::SimPart>,
            schema_of::<LoadPart>,
            schema_of::<MachinePart>,
            schema_of::<PreparePart>,
            schema_of::<FilesPart>,
        ],
        ask: sim::ask,
    },
    ToolOf {
        name: "compare",
        about: "Say whether policies differ, by how much and how certainly: of results that are \
                kept in files, or of runs that are made now.",
        writes: false,
        parts: &[
            schema_of::<compare::ComparePart>,
            schema_of::<LoadPart>,
            schema_of::<MachinePart>,
            schema_of::<PreparePart>,
            schema_of::<FilesPart>,
        ],
        ask: compare::ask,
    },
    ToolOf {
        name: "explain",
        about: "Say why a task waited or a policy was ejected, with the line of its source.",
        writes: false,
        parts: &[
            schema_of::<explain::ExplainPart>,
            schema_of::<LoadPart>,
            schema_of::<MachinePart>,
            schema_of::<PreparePart>,
            schema_of::<FilesPart>,
        ],
        ask: explain::ask,
    },
    ToolOf {
        name: "hunt",
        about: "Search random loads and machines for a run in which a policy fails, and explain \
                it. With --write the run is kept for `explain`.",
        writes: true,
        parts: &[
            schema_of::<hunt::HuntPart>,
            schema_of::<MachinePart>,
            schema_of::<PreparePart>,
            schema_of::<FilesPart>,
        ],
        ask: hunt::ask,
    },
    ToolOf {
        name: "evaluate",
        about: "Score policies that a program wrote against a baseline; limits come first. Says \
                what to change, with the line.",
        writes: false,
        parts: &[schema_of::<evaluate::EvaluatePart>, schema_of::<FilesPart>],
        ask: evaluate::ask,
    },
    ToolOf {
        name: "gate",
        about: "Say whether a new version of a policy may replace an old one: what is worse, with \
                the line. With --write the runs that show it are kept for `explain`.",
        writes: true,
        parts: &[schema_of::<gate::GatePart>, schema_of::<FilesPart>],
        ask: gate::ask,
    },
    ToolOf {
        name: "choose",
        about: "Say which scheduler suits a load, by goals, and whether to stay or to change.",
        writes: false,
        parts: &[
            schema_of::<choose::ChoosePart>,
            schema_of::<LoadPart>,
            schema_of::<MachinePart>,
            schema_of::<FilesPart>,
        ],
        ask: choose::ask,
    },
    ToolOf {
        name: "score",
        about: "Say how far the simulation of a recorded trace can be trusted, and for what.",
        writes: false,
        parts: &[
            schema_of::<score::ScorePart>,
            schema_of::<MachinePart>,
            schema_of::<FilesPart>,
        ],
        ask: score::ask,
    },
    ToolOf {
        name: "bundle",
        about: "Save a policy with its variables, set-up and machine in one file. It takes \
                --write.",
        writes: true,
        parts: &[
            schema_of::<bundle::BundlePart>,
            schema_of::<MachinePart>,
            schema_of::<PreparePart>,
            schema_of::<FilesPart>,
        ],
        ask: bundle::ask,
    },
];

/// The tool of this name.
pub fn find(name: &str) -> Option<&'static ToolOf> {
    ALL.iter().find(|it| it.name == name)
}

/// The names of all.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|it| it.name)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::arguments::schema;

    #[test]
    fn every_argument_says_what_it_is() {
        for tool in &ALL {
            let schema = schema(tool.parts);
            let properties = schema["properties"].as_object().unwrap();
            for (name, property) in properties {
                let about = property.get("description").and_then(Value::as_str);
                assert!(
                    about.is_some_and(|it| it.len() > 10),
                    "{} {name}",
                    tool.name
                );
            }
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        }
    }

    #[test]
    fn no_two_parts_of_a_tool_have_an_argument_of_one_name() {
        for tool in &ALL {
            let count = |schema: &Value| schema["properties"].as_object().unwrap().len();
            let parts = tool.parts.iter().map(|it| it().to_value());
            let all: usize = parts.map(|it| count(&it)).sum();
            let whole = Value::Object(schema(tool.parts));
            assert_eq!(count(&whole), all, "{}", tool.name);
        }
    }
}
