//! The right by which a policy shares the CPUs: what it declares, or what its user says.

use bpf::Object;
use explain::why::{CgroupWeights, Observer, Right};
use model::{Advice as _, Advised, PolicySpec};
use workload::RunSpec;

use crate::note::Topic;
use crate::services::Services;

/// The section of an object that names its right, as `license` names its licence. A loader passes
/// over it: it is no map and no program.
pub const SECTION: &str = "right";

/// Reads `weight`, `cgroup`, `rank`, `deadline` or `none`.
///
/// # Errors
/// When it is none of them.
pub fn parse(text: &str) -> Result<Right, Advised> {
    Right::of_word(text.trim()).ok_or_else(|| {
        let words = Right::ALL.map(Right::word).join(", ");
        Advised::new(
            format!("`{text}` is no right"),
            format!("write one of {words}"),
        )
    })
}

/// The right that the object of `policy` declares. `None`: it declares none, or a word that is no
/// right, or it is a program, whose object is not known.
#[must_use]
pub fn declared(policy: &PolicySpec) -> Option<Right> {
    let object = Object::parse(&policy.object).ok()?;
    Right::of_word(object.text(SECTION)?.trim())
}

/// Says of a policy whose object declares a word that is no right that it counts for nothing.
pub fn say_misspelt(services: &Services<'_>, policy: &PolicySpec) {
    let Ok(object) = Object::parse(&policy.object) else {
        return;
    };
    let word = object.text(SECTION).unwrap_or_default();
    let word = word.trim();
    if !word.is_empty()
        && let Err(wrong) = parse(word)
    {
        let text = format!("{} declares no right: {}", policy.name, wrong.in_full());
        services.note(Topic::Run, text);
    }
}

/// An observer of the run of `spec` that judges shares by `right`, or by what the policy declares.
#[must_use]
pub fn observer(spec: &RunSpec, right: Option<Right>, observer: Observer) -> Observer {
    judged_by(right.or_else(|| declared(&spec.policy)), spec, observer)
}

/// The same, whatever the policy declares.
pub(crate) fn judged_by(right: Option<Right>, spec: &RunSpec, observer: Observer) -> Observer {
    observer.with_right(right).with_cgroups(cgroups_of(spec))
}

fn cgroups_of(spec: &RunSpec) -> CgroupWeights {
    let workload = &spec.workload;
    let tree = workload.cgroups.iter();
    let groups = workload.groups.iter();
    let limits = workload.cgroups.iter().map(|it| {
        let quota = it.max.quota_us?;
        Some((quota, it.max.period_us))
    });
    CgroupWeights {
        tree: tree.map(|it| (it.parent, it.weight)).collect(),
        of_groups: groups.map(|group| group.cgroup).collect(),
        limits: limits.collect(),
    }
}
