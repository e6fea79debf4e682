//! What played tasks are called.

use workload::Workload;

/// Bytes of a task's name in the kernel without the zero (`TASK_COMM_LEN` - 1, 6.18).
const LENGTH: usize = 15;

/// The kernel's name for a task: the group's, with the index behind a dot if there are several. A
/// name that is too long is cut, and has the group's number behind a `~`, so that no two groups
/// get the same.
#[must_use]
pub fn comm(workload: &Workload, group: u32, index: u32) -> [u8; LENGTH + 1] {
    let mut name = stem(workload, group);
    if workload.groups[group as usize].count != 1 {
        name += &format!(".{index}");
    }
    let mut bytes = [0; LENGTH + 1];
    let length = name.len().min(LENGTH);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

/// The part of their names in the kernel that all tasks of a group have in common.
#[must_use]
pub fn stem(workload: &Workload, group: u32) -> String {
    let declared = &workload.groups[group as usize];
    // A dot and the digits of the largest index; forked groups get four.
    let digits = match declared.count {
        1 => 0,
        0 => 5,
        count => 1 + (count - 1).to_string().len(),
    };
    if declared.name.len() + digits <= LENGTH {
        return declared.name.clone();
    }
    let number = format!("~{group}");
    let kept = LENGTH.saturating_sub(digits + number.len());
    let end = declared.name.floor_char_boundary(kept);
    format!("{}{number}", &declared.name[..end])
}

/// A number for a task that no other task of the workload gets.
#[must_use]
pub fn serial(group: u32, index: u32) -> u32 {
    // At most 65,536 members a group are played.
    (group << 16 | index & 0xffff).wrapping_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_kernel_and_differ_between_groups() {
        let text = "[workload]\nname = \"w\"\n\
            [task.shell]\ndo = \"run(1ms)\"\n\
            [task.client_reader]\ncount = 200\ndo = \"run(1ms)\"\n\
            [task.client_readers]\ncount = 200\ndo = \"run(1ms)\"\n";
        let workload = Workload::parse(text, "w.toml").unwrap();
        let name = |group, index| {
            let bytes = comm(&workload, group, index);
            let end = bytes.iter().position(|byte| *byte == 0).unwrap();
            String::from_utf8(bytes[..end].to_vec()).unwrap()
        };
        assert_eq!(name(0, 0), "shell");
        assert_eq!(name(1, 7), "client_re~1.7");
        assert_eq!(name(2, 199), "client_re~2.199");
        assert_eq!(stem(&workload, 2), "client_re~2");
        assert_ne!(serial(0, 3), serial(3, 0));
    }
}
