use super::*;

fn good() -> MachineFacts {
    MachineFacts {
        release: "6.18.15+deb13-amd64".to_owned(),
        state: Some(ClassState::Disabled),
        attached: None,
        holder: None,
        lacking: Vec::new(),
        has_types: true,
        is_administrator: true,
        is_interpreting: false,
        is_locked_down: false,
        isolated: String::new(),
        tickless: String::new(),
        has_sysrq: true,
        groups: Vec::new(),
    }
}

/// The only finding's severity and text.
fn only(facts: &MachineFacts) -> (Severity, String) {
    match judge(facts).as_slice() {
        [finding] => (finding.severity, finding.what.clone()),
        findings => panic!("{findings:?}"),
    }
}

#[test]
fn nothing_stands_in_the_way_on_a_machine_that_has_all() {
    assert_eq!(judge(&good()), []);
}

#[test]
fn each_obstacle_is_named() {
    let obstacles = [
        (
            MachineFacts {
                state: None,
                ..good()
            },
            "has no sched_ext",
        ),
        (
            MachineFacts {
                state: Some(ClassState::Enabled),
                attached: Some("lavd".to_owned()),
                ..good()
            },
            "the scheduler lavd is attached already",
        ),
        (
            MachineFacts {
                has_types: false,
                ..good()
            },
            "does not describe its types",
        ),
        (
            MachineFacts {
                is_administrator: false,
                ..good()
            },
            "may not administer",
        ),
        (
            MachineFacts {
                is_interpreting: true,
                ..good()
            },
            "net.core.bpf_jit_enable=0",
        ),
        (
            MachineFacts {
                is_locked_down: true,
                ..good()
            },
            "locked down",
        ),
        (
            MachineFacts {
                isolated: "2-3".to_owned(),
                ..good()
            },
            "CPUs 2-3 are isolated",
        ),
    ];
    for (facts, words) in obstacles {
        let (severity, what) = only(&facts);
        assert_eq!(severity, Severity::Blocks, "{what}");
        assert!(what.contains(words), "{what}");
    }
}

#[test]
fn options_that_the_kernel_was_built_without_are_named() {
    let (severity, what) = only(&MachineFacts {
        state: None,
        lacking: vec!["CONFIG_BPF_JIT", "CONFIG_SCHED_CLASS_EXT"],
        ..good()
    });
    assert_eq!(severity, Severity::Blocks);
    let want = "has no sched_ext; it is built without CONFIG_SCHED_CLASS_EXT, CONFIG_BPF_JIT";
    assert!(what.ends_with(want), "{what}");
    let (severity, what) = only(&MachineFacts {
        lacking: vec!["CONFIG_BPF_EVENTS"],
        ..good()
    });
    assert_eq!(severity, Severity::Changes);
    assert!(what.contains("CONFIG_BPF_EVENTS: play and trace"), "{what}");
}

#[test]
fn an_old_kernel_is_refused_unless_asked_for() {
    let old = MachineFacts {
        release: "6.12.1".to_owned(),
        ..good()
    };
    let (severity, what) = only(&old);
    assert_eq!(severity, Severity::Untested);
    assert!(what.contains("older than 6.16"), "{what}");
}

#[test]
fn a_kernel_that_is_newer_than_the_tested_ones_is_named_and_takes_policies() {
    let new = |release: &str| MachineFacts {
        release: release.to_owned(),
        ..good()
    };
    let (severity, what) = only(&new("7.4.0-rc1"));
    assert_eq!(severity, Severity::Changes);
    assert!(what.contains("newer than 7.3"), "{what}");
    for tested in ["6.16.12", "7.3.4+deb13-amd64"] {
        assert_eq!(judge(&new(tested)), []);
    }
}

#[test]
fn whoever_holds_the_scheduler_is_named_with_the_way_past_it() {
    let found = |name: &str, service: Option<&str>| {
        let found = judge(&MachineFacts {
            state: Some(ClassState::Enabled),
            attached: Some("lavd".to_owned()),
            holder: Some(Holder {
                pid: 31,
                name: name.to_owned(),
                service: service.map(str::to_owned),
            }),
            ..good()
        });
        format!("{}; {}", found[0].what, found[0].way_out)
    };
    let service = found("scx_lavd", Some("scx.service"));
    let want = "the scheduler lavd is attached already by scx_lavd of scx.service (process 31); \
                --replace stops scx.service for the time; systemctl stop scx.service for good";
    assert_eq!(service, want);
    let cron = found("scx_lavd", Some("cron.service"));
    assert!(
        cron.ends_with("end the process that runs it: kill 31"),
        "{cron}"
    );
    let plain = found("scx_lavd", None);
    assert!(
        plain.ends_with("end the process that runs it: kill 31"),
        "{plain}"
    );
    let own = found("runslice", None);
    assert!(own.contains("; runslice stop ends it"), "{own}");
    let own = found("runslice", Some("own.service"));
    assert!(own.contains("; runslice stop ends it"), "{own}");
    // `runslice stop` ends it, too, but systemctl tells of it.
    let unit = found("runslice", Some("runslice@o1.service"));
    assert!(
        unit.ends_with(
            "--replace stops runslice@o1.service for the time; systemctl stop \
             runslice@o1.service for good"
        ),
        "{unit}"
    );
}

#[test]
fn sysrq_s_is_let_through_by_all_or_by_its_own_bit() {
    for (setting, want) in [
        ("0", false),
        ("1", true),
        ("438", true),
        ("176", false),
        ("", false),
    ] {
        assert_eq!(sysrq_detaches(setting), want, "{setting}");
    }
    let (severity, what) = only(&MachineFacts {
        has_sysrq: false,
        ..good()
    });
    assert_eq!(severity, Severity::Changes);
    assert!(what.contains("SysRq-S"), "{what}");
}

#[test]
fn a_quota_breaks_and_a_weight_only_changes() {
    let groups = vec![
        ("/a".to_owned(), GroupRule::Weight),
        ("/b".to_owned(), GroupRule::Quota),
    ];
    let found = judge(&MachineFacts {
        groups,
        tickless: "1".to_owned(),
        ..good()
    });
    let severities: Vec<_> = found.iter().map(|finding| finding.severity).collect();
    assert_eq!(
        severities,
        [Severity::Breaks, Severity::Changes, Severity::Changes]
    );
}

#[test]
fn facts_are_read_from_the_kernels_files() {
    let root = std::env::temp_dir().join(format!("runslice-facts-{}", std::process::id()));
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/sys/kernel/osrelease", "6.18.15\n");
    write("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
    write("sys/kernel/sched_ext/state", "enabled\n");
    write("sys/kernel/sched_ext/root/ops", "lavd\n");
    write("sys/kernel/btf/vmlinux", "");
    write(
        "sys/kernel/security/lockdown",
        "none integrity [confidentiality]\n",
    );
    write("proc/sys/net/core/bpf_jit_enable", "0\n");
    write("sys/devices/system/cpu/isolated", "\n");
    write("sys/devices/system/cpu/nohz_full", "(null)\n");
    write("proc/sys/kernel/sysrq", "438\n");
    write(
        "boot/config-6.18.15",
        "#\nCONFIG_SCHED_CLASS_EXT=y\nCONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=y\n\
         CONFIG_DEBUG_INFO_BTF=y\nCONFIG_BPF_EVENTS=y\n# CONFIG_SCHEDSTATS is not set\n",
    );
    write("proc/31/comm", "scx_lavd\n");
    write("proc/31/fdinfo/4", "link_type:\tstruct_ops\nmap_id:\t5\n");
    write("sys/fs/cgroup/old/cpu.cfs_quota_us", "50000\n");
    write("sys/fs/cgroup/old/cpu.shares", "1024\n");
    write("sys/fs/cgroup/web/cpu.max", "50000 100000\n");
    write("sys/fs/cgroup/web/cpu.weight", "100\n");
    write("sys/fs/cgroup/idle/cpu.max", "max 100000\n");
    write("sys/fs/cgroup/idle/cpu.weight", "10\n");
    let facts = MachineFacts::below(&root);
    fs::remove_dir_all(&root).unwrap();
    let want = MachineFacts {
        release: "6.18.15".to_owned(),
        state: Some(ClassState::Enabled),
        attached: Some("lavd".to_owned()),
        holder: Some(Holder {
            pid: 31,
            name: "scx_lavd".to_owned(),
            service: None,
        }),
        lacking: vec!["CONFIG_SCHEDSTATS"],
        is_interpreting: true,
        is_locked_down: true,
        groups: vec![
            ("/idle".to_owned(), GroupRule::Weight),
            ("/old".to_owned(), GroupRule::Quota),
            ("/web".to_owned(), GroupRule::Quota),
        ],
        ..good()
    };
    assert_eq!(facts, want);
}
