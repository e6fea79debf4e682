//! What is built in.

use anyhow::Context as _;
use ask::error::UsageError;
use ask::kernel;
use ask::workload_arg::{self, SHIPPED, Shipped};
use bpf::Object;
use model::{Hardware, suggest};
use policies::Policy;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use show::report::TableName;

use crate::answer::Answered;
use crate::arguments::{Arguments, usage};
use crate::desk::Desk;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ListPart {
    /// What to list. Default: policies.
    #[serde(default)]
    what: What,
    /// Show all of this policy, workload or machine instead: what it is for, its source, its knobs
    /// or parameters.
    name: Option<String>,
}

/// Kinds of what is built in.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum What {
    /// Schedulers.
    #[default]
    Policies,
    /// Loads.
    Workloads,
    /// What `hardware` may name.
    Machines,
    /// The columns of results, and what they mean.
    Columns,
}

/// Lists.
///
/// # Errors
/// When nothing has the name.
pub fn ask(arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<Answered> {
    let own: ListPart = arguments.take()?;
    let document = match (&own.name, own.what) {
        (Some(name), _) => in_full(name, desk)?,
        (None, What::Policies) => json!({ "policies": policies() }),
        (None, What::Workloads) => {
            let all = SHIPPED.iter().map(|it| named(it.name, &it.summary()));
            json!({ "workloads": all.collect::<Vec<_>>() })
        }
        (None, What::Machines) => {
            let all = Hardware::shipped().iter();
            let all = all.map(|(name, text)| named(name, first_line(text)));
            json!({ "machines": all.collect::<Vec<_>>() })
        }
        (None, What::Columns) => json!({ "columns": columns() }),
    };
    Ok(Answered::done(document))
}

fn named(name: &str, summary: &str) -> Value {
    json!({ "name": name, "summary": summary })
}

fn policies() -> Vec<Value> {
    let of = |kind: &'static str, all: &'static [Policy]| {
        let each = all.iter();
        each.map(move |it| json!({ "name": it.name, "kind": kind, "summary": it.summary }))
    };
    let all = of("policy", policies::ALL);
    let lessons = of("lesson", policies::LESSONS);
    let newest = of("lesson with kernel 7.3", policies::CID_LESSONS);
    all.chain(lessons).chain(newest).collect()
}

fn columns() -> Vec<Value> {
    let tables = TableName::ALL.iter();
    let all = tables.flat_map(|(table, name, _)| {
        let columns = table.columns().into_iter();
        columns.map(
            move |[column, _, about]| json!({ "table": name, "column": column, "meaning": about }),
        )
    });
    all.collect()
}

fn first_line(text: &str) -> &str {
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches(['#', ' ']).trim_end_matches('.')
}

fn in_full(name: &str, desk: &Desk<'_>) -> anyhow::Result<Value> {
    if let Some(policy) = policies::find(name) {
        return policy_in_full(policy);
    }
    if let Some(shipped) = SHIPPED.iter().find(|it| it.name == name) {
        return workload_in_full(shipped, desk);
    }
    if let Some((name, text)) = Hardware::shipped().iter().find(|it| it.0 == name) {
        return Ok(json!({ "machine": name, "summary": first_line(text), "text": text }));
    }
    Err(nothing_called(name).into())
}

fn nothing_called(name: &str) -> UsageError {
    let known = policies::names().chain(SHIPPED.iter().map(|it| it.name));
    let known = known.chain(Hardware::shipped().iter().map(|it| it.0));
    let hint = suggest::hint(name, known);
    usage(format!("nothing built in is called `{name}`"), hint)
}

fn policy_in_full(policy: &Policy) -> anyhow::Result<Value> {
    let object = Object::parse(policy.object).context(policy.name)?;
    let kernel = kernel::checked(&object)[0];
    let knobs = kernel::link(&object, kernel).context(policy.name)?.knobs;
    let knobs = knobs.iter().map(|it| {
        json!({
            "name": it.name,
            "default": it.default,
            "least": it.min,
            "most": it.max,
            "unit": it.unit,
            "does": it.doc,
        })
    });
    Ok(json!({
        "policy": policy.name,
        "summary": policy.summary,
        "promise": policy.promise,
        "source": policy.source,
        "differs": policy.differs,
        "knobs": knobs.collect::<Vec<_>>(),
        "resource": format!("runslice://policies/{}.bpf.c", policy.name),
    }))
}

fn workload_in_full(shipped: &Shipped, desk: &Desk<'_>) -> anyhow::Result<Value> {
    let workload = workload_arg::find(&desk.services, shipped.name, &[])?;
    let groups = workload.groups.iter();
    let groups = groups.map(|it| json!({ "name": it.name, "count": it.count, "nice": it.nice }));
    let scale = workload.scale.iter();
    let scale = scale.map(|(name, value)| json!({ "name": name, "default": value }));
    Ok(json!({
        "workload": shipped.name,
        "summary": shipped.summary(),
        "machine": workload.machine,
        "seed": workload.seed,
        "duration_ns": workload.stop.after.map(model::Nanos::get),
        "groups": groups.collect::<Vec<_>>(),
        "parameters": scale.collect::<Vec<_>>(),
        "resource": format!("runslice://workloads/{}.toml", shipped.name),
    }))
}
