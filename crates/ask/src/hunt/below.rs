//! Cgroups for random loads, which have none by themselves where schedulers are to be attached.

use std::fmt::Write as _;

use model::{Rng, SubSpec};
use toml::Value;

/// Draws of these cgroups are apart from all others of a seed.
const STREAM: u64 = 15 << 60;
/// At most so many tasks move others.
const MOVERS: u64 = 2;
/// They wait for up to a second, short times as often as long ones.
const PAUSES: u64 = 11;

/// A cgroup of a load.
struct Cgroup {
    /// Of its table.
    name: String,
    path: String,
}

/// The load of trial `number` of `seed` with the cgroups of `subs`. Half of its groups of tasks are
/// born in one of them, and some tasks come and go.
pub(super) fn with_cgroups(text: String, (seed, number): (u64, u64), subs: &[SubSpec]) -> String {
    if subs.is_empty() {
        return text;
    }
    let mut rng = Rng::new(seed, STREAM + number);
    let stem = free_stem(&text, subs);
    let mut all = String::new();
    let cgroups = declared(&text, &stem, subs);
    let mut parts = text.split("[task.");
    all += parts.next().unwrap_or_default();
    let mut tasks: Vec<(&str, u64)> = Vec::new();
    for part in parts {
        let (name, rest) = part.split_once("]\n").unwrap_or((part, ""));
        let own = rest.split("\n[").next().unwrap_or(rest);
        let _ = writeln!(all, "[task.{name}]");
        if value(own, "cgroup").is_none() && rng.below(2) == 0 {
            let path = &one_of(&mut rng, &cgroups).path;
            let _ = writeln!(all, "cgroup = {}", Value::String(path.clone()));
        }
        all += rest;
        let count = value(own, "count").map_or(Some(1), |it| it.parse().ok());
        tasks.push((name, count.unwrap_or(1)));
    }
    tasks.retain(|(_, count)| *count > 0);
    for cgroup in cgroups.iter().filter(|it| it.name.starts_with(&stem)) {
        let path = Value::String(cgroup.path.clone());
        let _ = write!(all, "[cgroup.{}]\npath = {path}\n", cgroup.name);
    }
    if tasks.is_empty() {
        return all;
    }
    for mover in 0..rng.below(MOVERS + 1) {
        let (group, count) = *one_of(&mut rng, &tasks);
        let task = format!("{group}[{}]", rng.below(count));
        let cgroup = &one_of(&mut rng, &cgroups).name;
        let [pause, other] = [(); 2].map(|()| 1_u64 << rng.below(PAUSES));
        let _ = write!(
            all,
            "[task.{stem}_mover{mover}]\ndo = \"loop(inf)[ sleep({pause}ms), \
             cgroup_move({task}, {cgroup}), sleep({other}ms), cgroup_move({task}, root) ]\"\n"
        );
    }
    all
}

fn one_of<'a, T>(rng: &mut Rng, all: &'a [T]) -> &'a T {
    &all[rng.below(all.len() as u64) as usize]
}

/// What stands behind `key` in the lines of a table.
fn value<'a>(table: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = table.lines();
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
}

/// The begin of names that neither the load nor who asks for a cgroup has.
fn free_stem(text: &str, subs: &[SubSpec]) -> String {
    let mut stem = "below".to_owned();
    while text.contains(&stem) || subs.iter().any(|sub| sub.cgroup.contains(&stem)) {
        stem.push('_');
    }
    stem
}

/// The cgroups that `subs` name, each behind those above it. The load may have some already.
fn declared(text: &str, stem: &str, subs: &[SubSpec]) -> Vec<Cgroup> {
    let mut all: Vec<Cgroup> = Vec::new();
    for sub in subs {
        let asked = sub.cgroup.strip_prefix('/').unwrap_or(&sub.cgroup);
        let mut path = String::new();
        for part in asked.split('/') {
            path = format!("{path}/{part}");
            if all.iter().any(|it| it.path == path) {
                continue;
            }
            // A path that is left out is that of the name.
            let is_there = path[1..] == *part && text.contains(&format!("[cgroup.{part}]\n"));
            let name = if is_there {
                part.to_owned()
            } else {
                format!("{stem}{}", all.len())
            };
            let path = path.clone();
            all.push(Cgroup { name, path });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{Nanos, PolicySpec};
    use workload::{Workload, generate};

    use super::*;

    fn sub(cgroup: &str) -> SubSpec {
        SubSpec {
            cgroup: cgroup.to_owned(),
            policy: PolicySpec::of_object("x", Arc::from([])),
            attach_at: Nanos::ZERO,
            detach_at: None,
        }
    }

    #[test]
    fn a_random_load_gets_the_cgroups_that_are_asked_for_and_tasks_in_and_beside_them() {
        // Some loads have cgroups of these names, and one is a name that would be taken.
        for asked in [
            &["app"][..],
            &["g0", "/g0/a \"b\"", "g7"],
            &["below0", "x/y/z", "/x"],
        ] {
            let subs: Vec<_> = asked.iter().map(|it| sub(it)).collect();
            let (mut inside, mut beside, mut moved) = (0, 0, 0);
            for number in 0..300 {
                let plain = generate::trial(1, number, true).text;
                assert_eq!(with_cgroups(plain.clone(), (1, number), &[]), plain);
                let text = with_cgroups(plain.clone(), (1, number), &subs);
                assert_eq!(text, with_cgroups(plain, (1, number), &subs));
                let load = Workload::parse(&text, "trial.toml");
                let load = load.unwrap_or_else(|error| panic!("{error}\n{text}"));
                for asked in asked {
                    let path = format!("/{}", asked.trim_start_matches('/'));
                    let of_path = load.cgroups.iter().filter(|it| it.path == path);
                    assert_eq!(of_path.count(), 1, "{asked}: {text}");
                    let mut of_name = load.cgroups.iter().filter(|it| it.name == *asked);
                    assert!(of_name.all(|it| it.path == path), "{text}");
                }
                let is_inside = |group: &&workload::Group| group.cgroup.is_some();
                inside += load.groups.iter().filter(is_inside).count();
                beside += load.groups.iter().filter(|it| !is_inside(it)).count();
                moved += text.matches("cgroup_move(").count();
            }
            assert!(inside > 100 && beside > 100 && moved > 100, "{asked:?}");
        }
    }
}
