//! The objects that the build makes: each one links against the simulated kernel, completely.

use std::collections::BTreeSet;

use bpf::{Image, MemberValue, Object, Target};
use model::{Kernel, MachineSpec};

fn kernel() -> Target {
    sim::target(&MachineSpec::default())
}

/// Name and object of every policy, the shipped ones and those for tests.
fn objects() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let shipped = policies::ALL
        .iter()
        .chain(policies::LESSONS)
        .chain(policies::CID_LESSONS)
        .map(|policy| (policy.name, policy.object));
    shipped.chain(runslice_tests::policy::TESTED.iter().copied())
}

/// Whether a policy has topological numbers of CPUs, so that 7.3 alone has all that it needs.
fn is_cid_form(name: &str) -> bool {
    name == "partition" || name.contains("sub") || name.starts_with("cid")
}

fn link(name: &str, object: &[u8]) -> Image {
    let object = Object::parse(object).unwrap_or_else(|error| panic!("{name}: {error}"));
    let of = |kernel| {
        sim::target(&MachineSpec {
            kernel,
            ..MachineSpec::default()
        })
    };
    let target = match name {
        // A callback and a lock that 6.18 has not.
        "cgroups-idle" | "slab-resilient" | "locks-crossed" | "sub-7-2" => of(Kernel::V7_2),
        "reoffers" => of(Kernel::V7_1),
        _ if is_cid_form(name) => of(Kernel::V7_3),
        "names-6-12" => of(Kernel::V6_12),
        _ => kernel(),
    };
    object
        .link(&target)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What policies use where it exists and do without on 6.18: `exists()` stands before each call.
/// Some of the tests' policies are for newer kernels only, and one is for 6.12, too.
const NEWER: [&str; 4] = [
    "scx_bpf_task_set_slice",
    "scx_bpf_dispatch",
    "scx_bpf_reenqueue_local___v2___compat",
    // What the cid form forbids.
    "scx_bpf_task_cpu",
];

#[test]
fn every_policy_links_and_nothing_in_it_is_poisoned() {
    for (name, object) in objects() {
        let image = link(name, object);
        let lacks = |poison: &str, it: &str| poison.contains(&format!("`{it}`"));
        let denies = |poison: &str, it: &str| poison.contains(&format!(" {it} is not allowed"));
        let is_newer = |poison: &str| {
            NEWER
                .iter()
                .any(|it| lacks(poison, it) || denies(poison, it))
        };
        let unexpected = image.poisons.iter().filter(|poison| !is_newer(poison));
        assert_eq!(unexpected.collect::<Vec<_>>(), [""; 0], "{name}");
        let tables = if name == "scripted" { 3 } else { 1 };
        assert_eq!(image.struct_ops.len(), tables, "{name}");
        for table in &image.struct_ops {
            let form = if is_cid_form(name) {
                "sched_ext_ops_cid"
            } else {
                "sched_ext_ops"
            };
            assert_eq!(table.type_name, form, "{name}");
        }
        assert_eq!(image.license, "GPL", "{name}");
    }
}

#[test]
fn every_shipped_policy_survives_hotplug_and_carries_its_name() {
    for policy in policies::ALL {
        let image = link(policy.name, policy.object);
        let members = &image.struct_ops[0].members;
        let has = |wanted: &str| members.iter().any(|(name, _)| name == wanted);
        assert!(has("cpu_online") && has("cpu_offline"), "{}", policy.name);
        let name = members.iter().find(|(name, _)| name == "name");
        let expected = MemberValue::Bytes(policy.name.as_bytes().to_vec());
        assert_eq!(
            name,
            Some(&("name".to_owned(), expected)),
            "{}",
            policy.name
        );
    }
}

#[test]
fn every_knob_of_a_shipped_policy_says_what_it_does_and_starts_within_its_limits() {
    for policy in policies::ALL {
        let image = link(policy.name, policy.object);
        assert!(!image.knobs.is_empty(), "{}", policy.name);
        for knob in &image.knobs {
            assert!(
                !knob.doc.is_empty() && !knob.unit.is_empty(),
                "{}",
                knob.name
            );
            assert!(
                (knob.min..=knob.max).contains(&knob.default),
                "{}",
                knob.name
            );
        }
    }
}

#[test]
fn every_shipped_policy_reports_through_the_maps_that_hosts_read() {
    for policy in policies::ALL {
        let image = link(policy.name, policy.object);
        let map = |name: &str| image.maps.iter().find(|map| map.name == name);
        let counters = map("runslice_counters").expect(policy.name);
        let report = map("runslice_report").expect(policy.name);
        let names = image
            .symbols
            .iter()
            .find(|symbol| symbol.name == "runslice_counter_names")
            .expect(policy.name);
        assert_eq!(counters.max_entries * 32, names.size, "{}", policy.name);
        // u32 priority, u32 level, u64 flags.
        assert_eq!(report.value_size, 16, "{}", policy.name);
    }
}

/// What a kernel calls by value must have the value of that kernel in the linked code.
#[test]
fn constants_of_the_linked_kernel_replace_those_of_the_header() {
    let changed = "SCX_KICK_IDLE = 1LLU << 0";
    let parts = [
        "#define SIMULATED_KERNEL 6018\n",
        include_str!("../../crates/sim/kernel/6.18/types.h"),
        include_str!("../../crates/sim/kernel/6.18/ops.h"),
        include_str!("../../crates/sim/kernel/6.18/constants.h"),
        include_str!("../../crates/sim/kernel/6.18/functions.h"),
        include_str!("../../crates/sim/kernel/6.18/loader.h"),
        "#define EMITTED_BY_THIS_VERSION\n",
        include_str!("../../crates/sim/kernel/emitted.h"),
    ];
    let header = parts.concat();
    assert!(header.contains(changed));
    let folder = std::env::temp_dir().join(format!("runslice-policies-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("other.h");
    let other = header.replace(changed, "SCX_KICK_IDLE = 1LLU << 41");
    std::fs::write(&source, other).unwrap();
    let types = bpf_build::compile(&source, &[]).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let other = Target::new("other", (6, 18, 15), &types).unwrap();

    let fifo = Object::parse(policies::find("fifo").unwrap().object).unwrap();
    let constants = |target: &Target| -> BTreeSet<u64> {
        let code = fifo.link(target).unwrap().code;
        let pairs = code
            .windows(2)
            .filter(|pair| pair[0].code == 0x18 && pair[0].src == 0);
        pairs
            .map(|pair| u64::from(pair[0].imm as u32) | u64::from(pair[1].imm as u32) << 32)
            .collect()
    };
    assert!(constants(&other).contains(&(1 << 41)));
    assert!(!constants(&kernel()).contains(&(1 << 41)));
}

/// The recorded prototypes of what policies of others call most; a slip here would make the
/// loader call their functions absent.
#[test]
fn prototypes_of_6_18_are_declared_as_that_kernel_has_them() {
    let kernel = kernel();
    let arguments = |name: &str| {
        let prototype = kernel
            .prototype(name)
            .unwrap_or_else(|| panic!("{name} is missing"));
        prototype
            .split_once('(')
            .unwrap()
            .1
            .trim_end_matches(')')
            .split(',')
            .count()
    };
    assert_eq!(arguments("scx_bpf_dsq_insert"), 4);
    assert_eq!(arguments("scx_bpf_dsq_insert_vtime"), 5);
    assert_eq!(arguments("scx_bpf_dsq_move_to_local"), 1);
    assert_eq!(arguments("scx_bpf_select_cpu_and"), 5);
    assert_eq!(arguments("scx_bpf_error_bstr"), 3);
    assert_eq!(arguments("bpf_stream_vprintk_impl"), 5);
    // These came with 6.19 and later.
    for later in [
        "scx_bpf_dsq_insert___v2",
        "scx_bpf_task_set_slice",
        "scx_bpf_dsq_peek",
    ] {
        assert_eq!(kernel.prototype(later), None, "{later}");
    }
}
