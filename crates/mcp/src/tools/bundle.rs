//! A policy with everything that was decided about it, in one file.

use ask::pack::Pack;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::parts::{MachinePart, PreparePart};
use crate::answer::Answered;
use crate::arguments::Arguments;
use crate::desk::Desk;

/// What of a bundle no other tool has.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct BundlePart {
    /// Policy to save: a built-in name, a BPF object, a C source (.bpf.c) or another bundle, with
    /// knobs behind a colon.
    policy: String,
    /// Name of the file to write, such as mine.bundle. It lies in the folder of --write; one that
    /// is there already stays.
    output: String,
}

/// Checks that the policy can be made ready, and writes the file.
///
/// # Errors
/// When nothing may be written, or the policy is bad.
pub fn ask(arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<Answered> {
    let own: BundlePart = arguments.take()?;
    // Who may not write is told so at once.
    desk.place(&own.output)?;
    let machine: MachinePart = arguments.take()?;
    let prepare: PreparePart = arguments.take()?;
    let question = Pack {
        scheduler: prepare.policy(desk, &own.policy)?,
        setup_only: false,
        workload: None,
        scale: Vec::new(),
        machine: machine.change()?,
        seed: None,
        duration: None,
    };
    let packed = question.ask(&desk.services);
    let bundle = packed.map_err(ask::Error::into_cause)?.bundle;
    let bytes = bundle.write();
    let file = desk.write(&own.output, &bytes)?;
    Ok(Answered::done(json!({
        "file": file,
        "bytes": bytes.len(),
        "policy": bundle.policy.name,
        "machine": bundle.machine,
    })))
}
