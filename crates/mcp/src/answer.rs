//! What a client gets: an answer, or why there is none.

use ask::ErrorKind;
use rmcp::model::CallToolResult;
use runslice::door::Status;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cut::{Cut, fit};
use crate::options::Owner;

/// The answer of a question.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The document, as the command line writes it.
    pub document: Value,
    /// What the command line ends with.
    pub status: Status,
    /// What is to be said besides.
    pub notes: Vec<String>,
}

/// Why there is none.
#[derive(Debug)]
pub enum NoAnswer {
    /// The question, a file or the computer is bad.
    Error(anyhow::Error),
    /// The time is over.
    Late,
    /// The client does not want it any more.
    Cancelled,
    /// An invariant of ours is broken.
    Broken,
}

/// An answer on its way.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// The exit status of the command line: 0 done, 3 a policy misbehaved, 5 a limit of `fail_if`
    /// is exceeded, 6 the runs do not decide.
    status: u8,
    /// The document that the command line writes with `--format json`.
    #[schemars(extend("type" = "object"))]
    answer: Value,
    /// What the command line says on standard error.
    notes: Vec<String>,
    /// What of `answer` was left out, because it would have been longer than a client wants.
    cut: Vec<Cut>,
}

impl Answered {
    /// An answer without anything wrong.
    pub const fn done(document: Value) -> Self {
        Self {
            document,
            status: Status::Done,
            notes: Vec::new(),
        }
    }

    /// In at most so many bytes as the owner gives.
    pub fn reply(self, owner: &Owner) -> CallToolResult {
        let mut answer = self.document;
        let cut = fit(&mut answer, owner.bytes);
        let reply = Reply {
            status: self.status.into(),
            answer,
            notes: self.notes,
            cut,
        };
        let value = serde_json::to_value(reply).expect("names and numbers become JSON");
        CallToolResult::structured(value)
    }
}

/// Why there is no answer. It is a result of the tool and no error of the protocol, which clients
/// do not show to whoever has asked (MCP 2025-11-25, server/tools, Error Handling).
pub fn refusal(failure: &NoAnswer, owner: &Owner) -> CallToolResult {
    let seconds = owner.time.as_secs();
    let (kind, words) = match failure {
        NoAnswer::Error(error) => (kind(error), runslice::in_words(error)),
        NoAnswer::Late => (
            "late",
            format!(
                "there is no answer after {seconds} s\n  ask for fewer runs or a shorter \
                 `duration`, or start runslice-mcp with more --seconds"
            ),
        ),
        NoAnswer::Cancelled => ("cancelled", "the client did not want the answer".to_owned()),
        NoAnswer::Broken => (
            "broken",
            "runslice itself failed, and says more on standard error\n  report it with the \
             arguments of this call"
                .to_owned(),
        ),
    };
    CallToolResult::structured_error(json!({ "error": { "kind": kind, "message": words } }))
}

/// In the words of the statuses of the command line.
fn kind(error: &anyhow::Error) -> &'static str {
    match ErrorKind::of(error) {
        ErrorKind::Usage => "usage",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Input => "failure",
        ErrorKind::Cancelled => "cancelled",
    }
}
