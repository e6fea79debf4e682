//! The schedulers that runslice ships, as compiled `sched_ext` objects: the very bytes that a
//! kernel loads. The build compiles them; a finished binary needs no compiler.

#![forbid(unsafe_code)]

/// A shipped policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How the command line and tables call it: the source's name without `.bpf.c`.
    pub name: &'static str,
    /// What it is, one line.
    pub summary: &'static str,
    /// What it promises: paragraphs, apart by empty lines.
    pub promise: &'static str,
    /// The publication that it follows.
    pub source: &'static str,
    /// Where it does not follow the publication.
    pub differs: &'static str,
    /// The source file, as in the folder `policies/`.
    pub text: &'static str,
    /// The object file.
    pub object: &'static [u8],
}

/// A header that policies include, also those of other people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where it lies, from the folder that a compiler is given, such as `scx/common.bpf.h`.
    pub path: &'static str,
    /// What it says.
    pub text: &'static str,
}

// These are statics: a program has the bytes of a constant once for each crate that names it.

/// Every header, by path. A policy needs no others.
pub static HEADERS: &[Header] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));

/// Every shipped policy, by name.
pub static ALL: &[Policy] = include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// Policies that have scheduling domains with `domains=1`, by name: see [`chosen`].
pub static WITH_DOMAINS: &[Policy] = include!(concat!(env!("OUT_DIR"), "/domains/table.rs"));

/// Small policies to learn from, by name: one idea of the textbooks each.
pub static LESSONS: &[Policy] = include!(concat!(env!("OUT_DIR"), "/lessons.rs"));

/// Lessons in cid form, by name: kernel 7.3 runs them, and no older one.
pub static CID_LESSONS: &[Policy] = include!(concat!(env!("OUT_DIR"), "/cid_lessons.rs"));

/// Other names of policies, with the policy.
pub const ALIASES: &[(&str, &str)] = &[("rr", "fifo")];

/// All names that [`find`] knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let policies = ALL.iter().map(|policy| policy.name);
    let lessons = LESSONS.iter().chain(CID_LESSONS);
    policies
        .chain(aliases)
        .chain(lessons.map(|policy| policy.name))
}

/// The shipped policy or lesson called `name`; `rr`, round robin, is `fifo`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Policy> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, policy)| *policy);
    let mut all = ALL.iter().chain(LESSONS).chain(CID_LESSONS);
    all.find(|policy| policy.name == name)
}

/// What `policy` is with these knobs, such as `version=10,domains=1`: its balancer with scheduling
/// domains is compiled apart, so that it costs runs without it no instruction. There the knob has a
/// range, which refuses other values than 1.
#[must_use]
pub fn chosen(policy: &'static Policy, knobs: &str) -> &'static Policy {
    let is_asked = knobs.split(',').any(|knob| knob.starts_with("domains="));
    let apart = WITH_DOMAINS.iter().find(|apart| apart.name == policy.name);
    apart.filter(|_| is_asked).unwrap_or(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_choose_another_object_where_there_is_one() {
        let [o1, fifo] = ["o1", "fifo"].map(|name| find(name).unwrap());
        assert_eq!(chosen(o1, "version=10"), o1);
        assert_eq!(chosen(fifo, "domains=1"), fifo);
        // The one that knows the knob says what it takes.
        assert_eq!(chosen(o1, "domains=0"), chosen(o1, "domains=1"));
        let apart = chosen(o1, "version=10,domains=1");
        assert_eq!(apart.name, "o1");
        assert_ne!(apart.object, o1.object);
        for apart in WITH_DOMAINS {
            let whole = find(apart.name).expect("the policy without domains");
            assert!(whole.differs.contains("domains=1"), "{}", whole.name);
        }
    }

    #[test]
    fn a_policy_is_found_by_its_name_and_by_no_other() {
        assert_eq!(find("fifo").map(|policy| policy.name), Some("fifo"));
        assert_eq!(find("fifo.bpf.c"), None);
        assert_eq!(find("rr"), find("fifo"));
        assert!(names().any(|name| name == "rr"));
        assert!(names().all(|name| find(name).is_some()));
        assert_eq!(find("sjf").map(|policy| policy.name), Some("sjf"));
    }

    #[test]
    fn a_lesson_has_a_name_of_its_own_and_at_most_150_lines() {
        let cid = CID_LESSONS.iter().map(|lesson| ("lessons/cid", lesson));
        let all = LESSONS.iter().map(|lesson| ("lessons", lesson)).chain(cid);
        for (folder, lesson) in all {
            let named = names().filter(|name| *name == lesson.name);
            assert_eq!(named.count(), 1, "{}", lesson.name);
            let root = env!("CARGO_MANIFEST_DIR");
            let path = format!("{root}/{folder}/{}.bpf.c", lesson.name);
            let lines = std::fs::read_to_string(path).unwrap().lines().count();
            assert!(lines <= 210, "{}: {lines}", lesson.name);
        }
        assert_eq!((LESSONS.len(), CID_LESSONS.len()), (7, 1));
    }

    #[test]
    fn every_policy_is_a_bpf_object_and_says_where_it_comes_from() {
        assert!(!ALL.is_empty());
        for policy in ALL.iter().chain(LESSONS).chain(CID_LESSONS) {
            assert_eq!(&policy.object[..4], b"\x7fELF", "{}", policy.name);
            // e_machine; EM_BPF is 247 (ELF specification, machine numbers).
            assert_eq!(policy.object[18..20], [247, 0], "{}", policy.name);
            assert!(
                policy.summary.ends_with('.'),
                "{}: {}",
                policy.name,
                policy.summary
            );
            assert!(
                policy.source.ends_with('.'),
                "{}: {}",
                policy.name,
                policy.source
            );
            assert!(
                policy.differs.ends_with('.'),
                "{}: {}",
                policy.name,
                policy.differs
            );
        }
    }

    #[test]
    fn the_headers_are_complete_and_have_no_path_of_a_computer() {
        for path in ["fifo.bpf.c", "/fifo.bpf.c"] {
            assert!(HEADERS.iter().all(|header| header.path != path));
        }
        for path in [
            "bpf.h",
            "vmlinux.h",
            "scx/common.bpf.h",
            "kernel/6.18/types.h",
        ] {
            assert!(HEADERS.iter().any(|header| header.path == path), "{path}");
        }
        assert!(HEADERS.iter().all(|header| !header.path.starts_with('/')));
    }

    #[test]
    fn names_are_sorted_and_differ() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    /// The build's folder would make the bytes depend on where somebody checked out.
    #[test]
    fn no_object_contains_the_path_of_the_checkout() {
        let path = env!("CARGO_MANIFEST_DIR").as_bytes();
        for policy in ALL {
            assert!(
                !policy.object.windows(path.len()).any(|w| w == path),
                "{}",
                policy.name
            );
        }
    }
}
