//! Groups of processes whose limits and shares only the kernel's own scheduler enforces.

use std::fs;
use std::path::Path;

use super::{PreflightFinding, Severity, read};

/// How many groups a finding names.
const NAMED: usize = 3;

/// Settings of a group of processes for the kernel's own scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRule {
    /// `cpu.max`: at most so much CPU time.
    Quota,
    /// `cpu.weight` other than 100: another share than its neighbours.
    Weight,
    /// `cpu.uclamp.*`: a range of CPU speeds.
    Clamp,
}

impl GroupRule {
    /// What it means that the groups `names` have this rule; `None` when there are none.
    pub(super) fn finding(self, names: &[&str]) -> Option<PreflightFinding> {
        let (severity, what, way_out) = match self {
            Self::Quota => (
                Severity::Breaks,
                "a quota (cpu.max), which no policy enforces",
                "lift the quota, or give --ignore-cgroups",
            ),
            Self::Weight => (
                Severity::Changes,
                "a weight (cpu.weight), which policies ignore",
                "nothing, if shares do not matter meanwhile",
            ),
            Self::Clamp => (
                Severity::Changes,
                "limits of CPU speed (uclamp), which policies ignore",
                "nothing, if speeds do not matter meanwhile",
            ),
        };
        let (first, more) = names.split_at(names.len().min(NAMED));
        let mut who = first.join(", ");
        if !more.is_empty() {
            who += &format!(" and {} more", more.len());
        }
        let what = match names {
            [] => return None,
            [_] => format!("the group {who} has {what}"),
            _ => format!("the groups {who} have {what}"),
        };
        Some(PreflightFinding {
            severity,
            what,
            way_out: way_out.to_owned(),
        })
    }
}

/// The groups below `folder` that ask something of the kernel's scheduler, by path.
pub fn below(folder: &Path) -> Vec<(String, GroupRule)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(path) = open.pop() {
        let name = path
            .strip_prefix(folder)
            .unwrap_or(&path)
            .display()
            .to_string();
        found.extend(
            rules(&path)
                .into_iter()
                .map(|rule| (format!("/{name}"), rule)),
        );
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        open.extend(below.map(|entry| entry.path()));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// What one group asks.
fn rules(group: &Path) -> Vec<GroupRule> {
    let is_set = |name: &str, unset: &[&str]| {
        let text = read(group, name);
        let first = text.split_whitespace().next();
        first.is_some_and(|first| !unset.contains(&first))
    };
    let mut rules = Vec::new();
    // The second name is that of the older hierarchy of groups.
    if is_set("cpu.max", &["max"]) || is_set("cpu.cfs_quota_us", &["-1"]) {
        rules.push(GroupRule::Quota);
    }
    if is_set("cpu.weight", &["100"]) || is_set("cpu.shares", &["1024"]) {
        rules.push(GroupRule::Weight);
    }
    if is_set("cpu.uclamp.min", &["0.00", "0"]) || is_set("cpu.uclamp.max", &["max"]) {
        rules.push(GroupRule::Clamp);
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_groups_are_counted_instead_of_named() {
        let said = |names: &[&str]| GroupRule::Weight.finding(names).map(|finding| finding.what);
        assert_eq!(said(&[]), None);
        let one = "the group /a has a weight (cpu.weight), which policies ignore";
        assert_eq!(said(&["/a"]).as_deref(), Some(one));
        let many = "the groups /a, /b, /c and 2 more have a weight (cpu.weight), which policies \
                    ignore";
        assert_eq!(said(&["/a", "/b", "/c", "/d", "/e"]).as_deref(), Some(many));
    }
}
