//! What is built in: policies with their knobs and sources, loads, kernels.

use ask::workload_arg::SHIPPED;
use bpf::Object;
use model::Kernel;
use policies::Policy;
use serde_json::{Value, json};

/// Everything that a page offers.
pub fn all() -> anyhow::Result<Value> {
    let policies = policies::ALL.iter().map(|it| policy(it, false));
    let lessons = policies::LESSONS.iter().map(|it| policy(it, true));
    let policies = policies.chain(lessons);
    let policies: Vec<Value> = policies.collect::<anyhow::Result<_>>()?;
    let loads = SHIPPED
        .iter()
        .map(|it| json!({ "name": it.name, "summary": it.summary(), "text": it.text }));
    let kernels: Vec<String> = Kernel::ALL.iter().map(|it| it.name().to_owned()).collect();
    Ok(json!({
        "version": show::VERSION,
        "policies": policies,
        "loads": loads.collect::<Vec<_>>(),
        "kernels": kernels,
        "kernel": Kernel::default().name(),
    }))
}

fn policy(policy: &Policy, is_lesson: bool) -> anyhow::Result<Value> {
    let object = Object::parse(policy.object)?;
    let image = ask::kernel::link(&object, Kernel::default())?;
    let knobs = image.knobs.iter().map(|knob| {
        json!({
            "name": knob.name, "unit": knob.unit, "doc": knob.doc, "default": knob.default,
            "min": knob.min, "max": knob.max,
        })
    });
    Ok(json!({
        "name": policy.name, "summary": policy.summary, "promise": policy.promise,
        "source": policy.source, "lesson": is_lesson, "text": policy.text,
        "knobs": knobs.collect::<Vec<_>>(),
    }))
}
