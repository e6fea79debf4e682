//! What the user calls a scheduler below another one: `CGROUP=POLICY`.

use model::{Advised, Nanos, SubSpec, span};

use crate::error::UsageError;
use crate::policy;
use crate::services::Services;

/// What stands in front of the policy.
#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    cgroup: &'a str,
    attach_at: Nanos,
    detach_at: Option<Nanos>,
}

/// Finds the scheduler that `text` names: `CGROUP=POLICY`, with a time behind the cgroup
/// (`app@2s=POLICY`) attached then, with a part of the run (`app@2s..5s=POLICY`) also taken off.
///
/// # Errors
/// If it is not written so, or there is no such policy.
pub fn find(services: &Services<'_>, text: &str) -> anyhow::Result<SubSpec> {
    let wrong = || {
        UsageError::new(Advised::new(
            format!("--sub `{text}` is no cgroup and policy"),
            "write CGROUP=POLICY, with a time CGROUP@TIME=POLICY or CGROUP@TIME..TIME=POLICY",
        ))
    };
    let (place, argument) = text.split_once('=').ok_or_else(wrong)?;
    let place = read(place).ok_or_else(wrong)?;
    if argument.is_empty() {
        return Err(wrong().into());
    }
    let found = policy::find(services, argument);
    if found.is_err() && argument.contains(" -") {
        return Err(UsageError::new(Advised::new(
            format!("--sub `{text}` is a command: a program attaches nothing below another one"),
            "give its file alone, whose object is taken, with knobs for what it would set",
        ))
        .into());
    }
    Ok(SubSpec {
        cgroup: place.cgroup.to_owned(),
        policy: found?,
        attach_at: place.attach_at,
        detach_at: place.detach_at,
    })
}

/// Finds those that all of `texts` name; see [`find`].
///
/// # Errors
/// If there are more than [`SubSpec::MOST`].
pub fn find_all(services: &Services<'_>, texts: &[String]) -> anyhow::Result<Vec<SubSpec>> {
    if texts.len() > SubSpec::MOST {
        let (asked, most) = (texts.len(), SubSpec::MOST);
        let text = format!("--sub is given {asked} times: {most} are enough");
        return Err(UsageError::new(text).into());
    }
    texts.iter().map(|text| find(services, text)).collect()
}

/// `CGROUP`, `CGROUP@TIME` or `CGROUP@TIME..TIME`.
fn read(place: &str) -> Option<Place<'_>> {
    let (cgroup, times) = place.rsplit_once('@').unwrap_or((place, "0s"));
    let (begin, end) = match times.split_once("..") {
        Some((begin, end)) => (begin, Some(end)),
        None => (times, None),
    };
    let attach_at = span::parse(begin).ok()?;
    let detach_at = end.map(span::parse).transpose().ok()?;
    let is_in_order = detach_at.is_none_or(|end| end > attach_at);
    let latest = Nanos::new(i64::MAX.cast_unsigned());
    let is_early = attach_at.max(detach_at.unwrap_or(attach_at)) <= latest;
    (!cgroup.is_empty() && is_in_order && is_early).then_some(Place {
        cgroup,
        attach_at,
        detach_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::tests::FILES;

    #[test]
    fn times_stand_behind_the_cgroup() {
        let place = |cgroup, begin, end: Option<u64>| {
            let ms = Nanos::from_millis;
            Some(Place {
                cgroup,
                attach_at: ms(begin),
                detach_at: end.map(ms),
            })
        };
        for (text, wanted) in [
            ("app", place("app", 0, None)),
            ("/a/b", place("/a/b", 0, None)),
            ("app@2s", place("app", 2_000, None)),
            ("a@b@50ms..2s", place("a@b", 50, Some(2_000))),
            ("", None),
            ("@2s", None),
            ("app@soon", None),
            ("app@2s..1s", None),
            ("app@..1s", None),
            ("app@9999999999999999s", None),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_policy_has_its_knobs_behind_a_colon() {
        let sub = find(&FILES, "app@1s=mlfq:queues=5").unwrap();
        assert_eq!((&*sub.cgroup, &*sub.policy.name), ("app", "mlfq:queues=5"));
        assert_eq!(sub.policy.set.len(), 1);
        for wrong in [
            "app",
            "app=",
            "=mlfq",
            "app@1s..=mlfq",
            "app=no-such-policy",
        ] {
            assert!(find(&FILES, wrong).is_err(), "{wrong}");
        }
        let command = find(&FILES, "app=scx_qmap -c /app").unwrap_err();
        assert!(command.to_string().contains("is a command"), "{command}");
        let many = vec!["app=mlfq".to_owned(); SubSpec::MOST + 1];
        assert!(find_all(&FILES, &many).is_err());
        assert_eq!(find_all(&FILES, &many[1..]).unwrap().len(), SubSpec::MOST);
    }
}
