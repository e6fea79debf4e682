//! What tasks are called.

use model::Header;

/// The name of member `index` of group `group`: the group's name when the workload declares one
/// member, else the name and the index, as in `shell.3`. Members of such a group that come to be
/// later, by forks, have an index too. A group without a name in the header is `group N`.
#[must_use]
pub fn task_name(header: &Header, group: u32, index: u32) -> String {
    match header.groups.get(group as usize) {
        Some(group) if group.count <= 1 && index == 0 => group.name.clone(),
        Some(group) => format!("{}.{index}", group.name),
        None => format!("group {group}.{index}"),
    }
}
