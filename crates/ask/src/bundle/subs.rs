//! Schedulers below the policy of a bundle. The header has a part for each; their objects stand
//! behind that of the policy, in the same order.

use std::sync::Arc;

use anyhow::ensure;
use model::{Nanos, PolicySpec, SetUp, SubSpec};
use serde::{Deserialize, Serialize};

use super::{Run, shown};

/// What the header says of one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubHeader {
    cgroup: String,
    name: String,
    table: Option<String>,
    set: Vec<(String, String)>,
    setup: Vec<Run>,
    attach_at_ns: u64,
    detach_at_ns: Option<u64>,
    /// Bytes of the object.
    object_bytes: usize,
}

/// What the header says of those below `policy`.
pub(super) fn headers(policy: &PolicySpec) -> Vec<SubHeader> {
    let header = |sub: &SubSpec| SubHeader {
        cgroup: sub.cgroup.clone(),
        name: sub.policy.name.clone(),
        table: sub.policy.table.clone(),
        set: sub.policy.set.clone(),
        setup: sub.policy.setup.iter().map(Run::from).collect(),
        attach_at_ns: sub.attach_at.get(),
        detach_at_ns: sub.detach_at.map(Nanos::get),
        object_bytes: sub.policy.object.len(),
    };
    policy.subs.iter().map(header).collect()
}

/// The objects of `policy` and of those below it, one behind the other.
pub(super) fn objects(policy: &PolicySpec) -> Vec<u8> {
    let subs = policy.subs.iter().map(|sub| &*sub.policy.object);
    let all: Vec<&[u8]> = [&*policy.object].into_iter().chain(subs).collect();
    all.concat()
}

/// The object of the policy, and the schedulers below it, of a bundle with these `objects`.
///
/// # Errors
/// If there are more or less bytes than the headers say, or more schedulers than can be.
pub(super) fn read(
    headers: Vec<SubHeader>,
    object_bytes: usize,
    objects: &[u8],
) -> anyhow::Result<(&[u8], Vec<SubSpec>)> {
    ensure!(
        headers.len() <= SubSpec::MOST,
        "the bundle has more than {} schedulers",
        SubSpec::MOST
    );
    let lens = headers.iter().map(|it| it.object_bytes);
    let all = lens.fold(object_bytes, usize::saturating_add);
    super::check_length(objects, all)?;
    let (object, mut rest) = objects.split_at(object_bytes);
    let mut subs = Vec::with_capacity(headers.len());
    for header in headers {
        let (own, behind) = rest.split_at(header.object_bytes);
        rest = behind;
        let latest = header.attach_at_ns.max(header.detach_at_ns.unwrap_or(0));
        ensure!(
            latest <= i64::MAX.cast_unsigned(),
            "a scheduler of the bundle would be attached after the end of time"
        );
        subs.push(SubSpec {
            cgroup: header.cgroup,
            policy: PolicySpec {
                name: shown(header.name),
                object: Arc::from(own),
                table: header.table,
                set: header.set,
                setup: header.setup.into_iter().map(SetUp::from).collect(),
                program: None,
                subs: Vec::new(),
            },
            attach_at: Nanos::new(header.attach_at_ns),
            detach_at: header.detach_at_ns.map(Nanos::new),
        });
    }
    Ok((object, subs))
}

#[cfg(test)]
mod tests {
    use model::MachineSpec;

    use super::super::Bundle;
    use super::*;
    use crate::services::Services;

    fn policy(name: &str, object: &[u8], subs: Vec<SubSpec>) -> PolicySpec {
        PolicySpec {
            name: name.to_owned(),
            object: Arc::from(object),
            table: None,
            set: vec![("slice".to_owned(), name.to_owned())],
            setup: Vec::new(),
            program: None,
            subs,
        }
    }

    fn bundle() -> Bundle {
        let sub = |cgroup: &str, object: &[u8]| SubSpec {
            cgroup: cgroup.to_owned(),
            policy: policy(cgroup, object, Vec::new()),
            attach_at: Nanos::from_millis(3),
            detach_at: (cgroup == "b").then(|| Nanos::from_millis(5)),
        };
        let subs = vec![sub("a", b"first\n"), sub("b", b""), sub("c", b"third")];
        Bundle {
            policy: policy("root", b"\x7fELF", subs),
            machine: MachineSpec::default(),
            bound: None,
        }
    }

    #[test]
    fn schedulers_below_a_policy_are_read_as_they_were_written() {
        let (wrote, file) = (bundle().policy, bundle().write());
        let read = Bundle::read(&Services::default(), &file).unwrap().policy;
        assert_eq!(format!("{read:?}"), format!("{wrote:?}"));
    }

    #[test]
    fn an_object_too_short_or_too_long_is_refused() {
        let file = bundle().write();
        let longer = [&file[..], b"x"].concat();
        let shorter = &file[..file.len() - 1];
        for file in [&longer[..], shorter] {
            let error = Bundle::read(&Services::default(), file).unwrap_err();
            assert!(
                error.to_string().contains("should have 15 bytes"),
                "{error}"
            );
        }
        let text = String::from_utf8_lossy(&file).into_owned();
        let huge = text.replace(
            "\"object_bytes\":6",
            "\"object_bytes\":18446744073709551615",
        );
        assert_ne!(huge, text);
        assert!(Bundle::read(&Services::default(), huge.as_bytes()).is_err());
    }
}
