//! Tables and operations of what is shared, and of what comes from outside.

use super::{parse, refusal};
use crate::*;
use model::{CpuId, Nanos, Rng};

#[test]
fn everything_in_the_tables_of_devices_arrives_in_the_tree() {
    let workload = parse(
        "stop = \"arrival:page\"\nscale = { n = 3 }\n\
         [chan.c]\nkind = \"tcp\"\ncount = 2\n\
         [lock.row]\nkind = \"keyed\"\nkeys = \"n * 1000\"\nhot = 30\nhot_percent = 75\n\
         [lock.tree]\nkind = \"rw\"\ncount = 4\nhandoff = \"barge\"\n\
         [sem.s]\nvalue = \"n\"\ncount = 2\n[cond.full]\n\
         [listen.web]\nbacklog = 511\nretry = \"3s\"\nwake = \"lifo\"\n\
         [arrival.page]\nkind = \"closed\"\nusers = 150\nthink = \"exp(1ms)\"\nlimit = 4000\n\
         connect = \"web\"\ncpu = 1\ncost = \"3us\"\nstart = \"1s\"\n\
         [arrival.job]\nkind = \"periodic\"\nrate = 3\njitter = \"exp(1us)\"\nsend = \"c[n - 2]\"\n\
         [task.t]\ndo = \"run(1ms)\"\n",
    );
    let keys = Keys {
        count: 3000,
        hot: 30,
        percent: 75,
    };
    assert_eq!(workload.locks[0].kind, LockKind::Keyed(keys));
    assert_eq!(
        (workload.locks[0].count, workload.locks[1].count),
        (3000, 4)
    );
    assert_eq!(workload.locks[1].handoff, Handoff::Barge);
    assert_eq!(
        (workload.semaphores[0].value, workload.semaphores[0].count),
        (3, 2)
    );
    assert_eq!(workload.conditions[0].name, "full");
    let web = &workload.listeners[0];
    assert_eq!(
        (web.backlog, web.retry, web.woken),
        (511, Nanos::from_secs(3), Woken::Last)
    );
    let [page, job] = &workload.requests[..] else {
        panic!("two arrivals")
    };
    assert_eq!(page.limit, Some(4000));
    assert!(matches!(page.demand, Demand::Closed { users: 150, .. }));
    assert_eq!(
        (page.irq.cpu, page.irq.start),
        (CpuId(1), Nanos::from_secs(1))
    );
    assert!(matches!(&page.to, Entrance::Listener(place) if place.of == 0));
    let period = Nanos::new(333_333_333);
    assert!(matches!(
        &job.demand,
        Demand::Open(Arrival::Periodic { period: found, jitter: Some(_) }) if *found == period
    ));
    assert_eq!(job.to.index(), 1);
    assert_eq!(workload.spans, ["page", "job"]);
    assert_eq!(
        workload.counters,
        [
            "web_retries",
            "page_lost",
            "page_retries",
            "job_lost",
            "job_retries"
        ]
    );
    assert_eq!(workload.stop.requests, [0]);
}

#[test]
fn a_transfer_goes_on_where_the_last_one_ended_unless_it_says_another_place() {
    let place = |at: &str| {
        let tables = format!("[disk.d]\n[task.t]\ndo = \"read(d, 4KiB{at})\"\n");
        match &parse(&tables).groups[0].body[0].op {
            Operation::Device(DeviceOp::Read { at, .. }) => at.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((place(""), place(", seq")), (Where::Next, Where::Next));
    assert_eq!(place(", rand"), Where::Anywhere);
    assert_eq!(place(", at(7)"), Where::At(Expr::Number(7)));
}

#[test]
fn sizes_of_a_disk_are_counted_in_pages_and_a_fifth_of_its_cache_may_be_dirty() {
    let disk = |keys: &str| {
        let workload = parse(&format!("[disk.d]\n{keys}[task.t]\ndo = \"run(1ms)\"\n"));
        workload.disks[0].clone()
    };
    let own = disk(
        "size = \"1MiB\"\nrequest = \"16KiB\"\nahead = \"32KiB\"\ncache = \"lru:4MiB\"\n\
         dirty = \"12KiB\"\n",
    );
    assert_eq!((own.pages, own.request, own.ahead), (256, 4, 8));
    assert_eq!((own.cache, own.dirty), (Cache::Recent(Some(1024)), 3));
    let usual = disk("cache = \"lru:4MiB\"\n");
    assert_eq!((usual.ahead, usual.dirty), (0, 204));
    // Where the cache has no size of its own they are 64 MiB.
    assert_eq!(disk("cache = \"lru\"\n").dirty, 16 * 1024);
}

#[test]
fn hot_keys_are_drawn_as_often_as_is_said_and_all_others_alike() {
    let drawn = |percent| {
        let keys = Keys {
            count: 10,
            hot: 2,
            percent,
        };
        let mut rng = Rng::new(5, 0);
        let mut counts = [0_u32; 10];
        for _ in 0..10_000 {
            counts[keys.draw(&mut rng) as usize] += 1;
        }
        counts
    };
    let near = |count: u32, want: u32| count.abs_diff(want) < want / 10;
    assert!(drawn(0).into_iter().all(|count| near(count, 1_000)));
    // Half of all draws are hot, and of the others a tenth each falls upon any key.
    let counts = drawn(50);
    let (hot, others) = counts.split_at(2);
    assert!(
        hot.iter().all(|count| near(*count, 2_500 + 500)),
        "{counts:?}"
    );
    assert!(others.iter().all(|count| near(*count, 500)), "{counts:?}");
    assert_eq!(drawn(100)[2..], [0; 8]);
}

#[test]
fn mistakes_in_the_tables_of_devices_are_named_with_their_place() {
    let cases = [
        (
            "[lock.l]\nkind = \"keyed\"\n",
            "test.toml:3:1: [lock.l] lacks `keys`",
        ),
        (
            "[lock.l]\nkind = \"keyed\"\nkeys = 5\nhot = 6\n",
            "test.toml:6:7: hot is 6; expected 1 to 5",
        ),
        (
            "[lock.l]\nkind = \"keyed\"\nkeys = 5\nhot = 2\n",
            "lacks `hot_percent`",
        ),
        ("[lock.l]\nkeys = 5\n", "test.toml:4:1: unknown key"),
        (
            "[sem.s]\nvalue = -1\n",
            "test.toml:4:9: value is -1; expected 0 to",
        ),
        (
            "[listen.l]\nwake = \"all\"\n",
            "expected \"fifo\" or \"lifo\"",
        ),
        (
            "[chan.c]\nkind = \"queue\"\n[arrival.a]\nkind = \"poisson\"\nsend = \"c\"\n",
            "[arrival.a] lacks `rate`",
        ),
        (
            "[chan.c]\nkind = \"queue\"\n[arrival.a]\nkind = \"poisson\"\nrate = 9\n",
            "[arrival.a] lacks `send`",
        ),
        (
            "[chan.c]\nkind = \"queue\"\n[arrival.a]\nkind = \"poisson\"\nrate = 9\nevery = \
             \"1s\"\n",
            "found `every` and `rate`; expected one of them",
        ),
        (
            "[chan.c]\nkind = \"queue\"\n[arrival.a]\nkind = \"closed\"\nsend = \"c\"\n",
            "[arrival.a] lacks `users`",
        ),
        (
            "[chan.c]\nkind = \"queue\"\ncount = 2\n[arrival.a]\nkind = \"poisson\"\nrate = 1\n\
             send = \"c[2]\"\n",
            "test.toml:9:9: the instance is 2; expected 0 to 1",
        ),
    ];
    for (tables, want) in cases {
        let message = refusal(&format!("{tables}[task.t]\ndo = \"run(1ms)\"\n"));
        assert!(message.contains(want), "{tables}{message}");
    }
}

#[test]
fn mistakes_in_operations_on_devices_are_named() {
    let tables = "[lock.l]\n[lock.k]\nkind = \"keyed\"\nkeys = 9\n[sem.s]\ncount = 2\n[cond.c]\n\
                  [listen.a]\n";
    let cases = [
        (
            "unlock_all(l)",
            "found `l`; expected a lock of the kind \"keyed\"",
        ),
        (
            "let x = randkey(l)",
            "expected a lock of the kind \"keyed\"",
        ),
        ("lock(k)", "`k` has 9 instances; say which: `k[i]`"),
        ("sem_wait(s)", "`s` has 2 instances"),
        ("wait(c)", "found `)`; expected `,`"),
        ("accept(b)", "unknown listening socket `b`"),
        ("done(a)", "unknown arrival `a`"),
        ("lock(l) else run(1ms)", "found `run`; expected `[`"),
        ("send(got)", "unknown channel `got`"),
        ("let got = 1", "`got` is taken"),
    ];
    for (ops, want) in cases {
        let message = refusal(&format!("{tables}[task.t]\ndo = \"{ops}\"\n"));
        assert!(message.contains(want), "{ops}: {message}");
    }
}
