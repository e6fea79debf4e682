//! Reading cgroups and deadline tasks, and what is said about bad ones.

use super::{parse, refusal, refusal_of};
use crate::{Bandwidth, Budget, CgroupOp, DeviceOp, Expr, Operation, SchedPolicy, Target};
use model::Nanos;

const TREE: &str = "[cgroup.a]\nweight = 300\nmax = \"20ms/50ms\"\nburst = \"5ms\"\n\
                    [cgroup.b]\npath = \"/a/b\"\nidle = true\n[cgroup.c]\nmax = \"2ms\"\n";

#[test]
fn a_tree_of_cgroups_arrives() {
    let workload = parse(&format!(
        "{TREE}[task.t]\ncgroup = \"/a/b\"\ndo = \"run(1ms)\"\n[task.u]\ndo = \"run(1ms)\"\n\
         [task.v]\ncgroup = \"/\"\ndo = \"run(1ms)\"\n"
    ));
    let [a, b, c] = &workload.cgroups[..] else {
        panic!("three cgroups")
    };
    assert_eq!(
        (a.path.as_str(), a.parent, a.weight, a.idle),
        ("/a", 0, 300, false)
    );
    assert_eq!(
        (b.path.as_str(), b.parent, b.weight, b.idle),
        ("/a/b", 1, 100, true)
    );
    assert_eq!((c.path.as_str(), c.parent), ("/c", 0));
    let max = |quota_us, period_us, burst_us| Bandwidth {
        quota_us,
        period_us,
        burst_us,
    };
    assert_eq!(a.max, max(Some(20_000), 50_000, 5_000));
    assert_eq!(b.max, max(None, 100_000, 0));
    assert_eq!(c.max, max(Some(2_000), 100_000, 0));
    let groups: Vec<_> = workload.groups.iter().map(|group| group.cgroup).collect();
    assert_eq!(groups, [Some(2), None, Some(0)]);
}

#[test]
fn operations_on_cgroups_arrive() {
    let workload = parse(&format!(
        "{TREE}[task.t]\ncount = 2\ndo = \"cgroup_move(self, root), cgroup_move(t[1], b, process), \
         cgroup_weight(a, 7), cgroup_max(c, 3ms/4ms), cgroup_max(c, inf), cgroup_idle(b, 0)\"\n"
    ));
    let ops: Vec<_> = (workload.groups[0].body.iter())
        .map(|step| match &step.op {
            Operation::Device(DeviceOp::Cgroup(op)) => op.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    let other = Target::Member {
        group: 0,
        index: Expr::Number(1),
    };
    let moved = |target, to, process| CgroupOp::Move {
        target,
        to,
        process,
    };
    assert_eq!(ops[0], moved(Target::Me, 0, false));
    assert_eq!(ops[1], moved(other, 2, true));
    let weight = Expr::Number(7);
    assert_eq!(ops[2], CgroupOp::Weight { of: 1, weight });
    let max = |quota_us, period_us| Bandwidth {
        quota_us,
        period_us,
        burst_us: 0,
    };
    assert_eq!(
        ops[3],
        CgroupOp::Max {
            of: 3,
            max: max(Some(3_000), 4_000)
        }
    );
    assert_eq!(
        ops[4],
        CgroupOp::Max {
            of: 3,
            max: max(None, 100_000)
        }
    );
    let idle = Expr::Number(0);
    assert_eq!(ops[5], CgroupOp::Idle { of: 2, idle });
}

#[test]
fn bad_cgroups_are_refused_with_their_place() {
    let task = "[task.t]\ndo = \"run(1ms)\"\n";
    for (tables, want) in [
        ("[cgroup.root]\n", "3:9: `root` is taken"),
        (
            "[cgroup.a]\n[cgroup.b]\npath = \"/a\"\n",
            "4:9: `/a` is taken",
        ),
        (
            "[cgroup.b]\npath = \"a\"\n",
            "4:9: found \"a\"; expected a path",
        ),
        ("[cgroup.b]\npath = \"/a//b\"\n", "expected a path"),
        ("[cgroup.b]\npath = \"/../b\"\n", "expected a path"),
        ("[cgroup.b]\npath = \"/\"\n", "expected a path"),
        (
            "[cgroup.b]\npath = \"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16\"\n",
            "of at most 15 parts",
        ),
        (
            "[cgroup.b]\npath = \"/aa/b\"\n[cgroup.aa]\n",
            "4:9: unknown cgroup above `/aa`",
        ),
        (
            "[cgroup.b]\nweight = 0\n",
            "weight is 0; expected 1 to 10000",
        ),
        (
            "[cgroup.b]\nmax = \"20ms/2s\"\n",
            "the period in us is 2000000",
        ),
        ("[cgroup.b]\nmax = \"20us\"\n", "the quota in us is 20"),
        ("[cgroup.b]\nmax = \"1.0005ms\"\n", "whole microseconds"),
        (
            "[cgroup.b]\nburst = \"1ms\"\n",
            "the burst in us is 1000; expected at most the quota, 0",
        ),
        ("[cgroup.b]\nshare = 1\n", "unknown key `share`"),
    ] {
        let message = refusal(&format!("{tables}{task}"));
        assert!(message.contains(want), "{tables}: {message}");
    }
    let message = refusal("[cgroup.web]\n[task.t]\ncgroup = \"/wev\"\ndo = \"run(1ms)\"\n");
    assert_eq!(
        message,
        "test.toml:5:11: unknown cgroup `/wev`; did you mean `/web`?"
    );
}

#[test]
fn bad_operations_on_cgroups_are_refused_with_their_place() {
    for (ops, want) in [
        ("cgroup_move(self, nobody)", "unknown cgroup `nobody`"),
        (
            "cgroup_weight(root, 5)",
            "found `root`; expected another cgroup",
        ),
        ("cgroup_move(self, root, thread)", "expected `process`"),
    ] {
        let message = refusal_of(ops);
        assert!(message.contains(want), "{ops}: {message}");
    }
}

#[test]
fn a_deadline_task_arrives_with_its_budget() {
    let workload = parse(
        "[task.t]\npolicy = \"deadline:1ms/2ms/3ms\"\n\
         do = \"setpolicy(self, deadline:2ms/5ms), setpolicy(self, normal)\"\n",
    );
    let budget = |[runtime, deadline, period]: [u64; 3]| {
        SchedPolicy::Deadline(Budget {
            runtime: Nanos::from_millis(runtime),
            deadline: Nanos::from_millis(deadline),
            period: Nanos::from_millis(period),
        })
    };
    assert_eq!(workload.groups[0].policy, budget([1, 2, 3]));
    let Operation::SetPolicy { policy, .. } = workload.groups[0].body[0].op else {
        panic!("the first operation sets a policy")
    };
    assert_eq!(policy, budget([2, 5, 5]));
}

#[test]
fn budgets_that_the_kernel_refuses_are_refused() {
    for (policy, want) in [
        ("deadline", "expected `:`"),
        ("deadline:1ms", "expected `/`"),
        (
            "deadline:1us/1ms",
            "the runtime in ns is 1000; expected 1024 or more",
        ),
        (
            "deadline:3ms/2ms",
            "the runtime in ns is 3000000; expected at most the deadline",
        ),
        (
            "deadline:1ms/3ms/2ms",
            "the deadline in ns is 3000000; expected at most the period",
        ),
        (
            "deadline:5us/50us",
            "the period in ns is 50000; expected 100000 to 4194304000",
        ),
        ("deadline:5us/5s", "the period in ns is 5000000000"),
    ] {
        let message = refusal(&format!(
            "[task.t]\npolicy = \"{policy}\"\ndo = \"run(1ms)\"\n"
        ));
        assert!(message.contains(want), "{policy}: {message}");
    }
    let bound = "[task.t]\npolicy = \"deadline:1ms/2ms\"\ncpus = \"0\"\ndo = \"run(1ms)\"\n";
    let message = refusal(bound);
    assert!(
        message.contains("the kernel refuses to bind a deadline task"),
        "{message}"
    );
}
