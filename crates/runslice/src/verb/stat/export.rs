//! `runslice stat export`: the counters for Prometheus.

mod exposition;
mod kernel;

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use model::Advised;
use stats::schedstat::{
    FieldUnit, HzEvidence, Layout, LayoutField, SchedstatReader, Snapshot, TimeUnit,
};

use exposition::{Exposition, Kind, Value};

use super::processes;
use crate::exit::{Status, UsageError};
use crate::schedstat::{hz_of, statistics};
use crate::{interrupt, on_kernel};

/// Arguments of `runslice stat export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Address of this machine to listen on. With --processes, everyone who can reach it sees the
    /// names of processes.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9437", value_parser = address)]
    listen: SocketAddr,

    /// Text format of the metrics. Default: `OpenMetrics` for whoever asks for it by `Accept`, else
    /// Prometheus's own.
    #[arg(long, value_name = "FORMAT")]
    format: Option<TextFormat>,

    /// Print the metrics once instead of answering requests.
    #[arg(long, conflicts_with = "listen")]
    once: bool,

    /// Also export the counters of each thread of each process.
    #[arg(long)]
    processes: bool,

    /// Most threads to export: those that had a CPU for the longest time. Others are counted.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, requires = "processes",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    processes_max: u32,

    /// File with the statistics.
    #[arg(long, value_name = "FILE", default_value = "/proc/schedstat")]
    from: PathBuf,

    /// Jiffies per second (HZ) of the kernel that wrote the statistics. Used for versions up to 14.
    /// Default: 1000.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    hz: Option<u32>,

    /// For schedstat versions after 17: read the CPU lines as version 17.
    #[arg(long)]
    cpu_lines: bool,
}

/// Text formats of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TextFormat {
    /// Prometheus's text format 0.0.4
    Prometheus,
    /// `OpenMetrics` 1.0.0
    #[value(name = "openmetrics")]
    OpenMetrics,
}

impl TextFormat {
    /// What an answer says that it is.
    const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    fn text(self, all: &Exposition) -> String {
        match self {
            Self::Prometheus => all.prometheus(),
            Self::OpenMetrics => all.openmetrics(),
        }
    }

    /// What somebody accepts; scrapers name the form that they like best first.
    fn accepted(headers: &[httparse::Header<'_>]) -> Self {
        let mut accepts = headers
            .iter()
            .filter(|it| it.name.eq_ignore_ascii_case("accept"));
        let is_named = accepts.any(|it| {
            let value = String::from_utf8_lossy(it.value).to_ascii_lowercase();
            value.contains("application/openmetrics-text")
        });
        if is_named {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }
}

/// An address to listen on, in the words of whoever gives a wrong one.
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "give an address of this machine with its port, such as 127.0.0.1:9437")
}

/// Longest request that is read, in bytes.
const REQUEST_MAX: u64 = 8 << 10;
/// Most header lines of a request.
const HEADERS_MAX: usize = 64;
/// How long somebody may take to ask.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most connections that are served at once; others are closed. Small HTTP libraries make a thread
/// for each connection without a limit, and large ones bring an asynchronous runtime.
const CONNECTIONS_MAX: usize = 64;

/// Prints the metrics or answers requests until a signal ends it.
///
/// # Errors
/// When the statistics cannot be read or the address is taken.
pub fn run(request: &Export) -> anyhow::Result<Status> {
    if !request.listen.ip().is_loopback() {
        let message = Advised::new(
            "--listen: only addresses of this machine, such as 127.0.0.1:9437",
            "let a server that checks who asks stand before it",
        );
        return Err(UsageError::new(message).into());
    }
    let first = read(&request.from, request.cpu_lines)?;
    let hz = match first.layout().time_unit {
        // Nothing that is exported is in jiffies then.
        TimeUnit::Nanoseconds => 1,
        TimeUnit::Jiffies | TimeUnit::Either => {
            let mut evidence = HzEvidence::default();
            evidence.snapshot(&first);
            hz_of(request.hz, None, &evidence)?
        }
    };
    if request.once {
        let format = request.format.unwrap_or(TextFormat::Prometheus);
        let text = format.text(&everything(&first, hz, request));
        io::stdout().write_all(text.as_bytes())?;
        return Ok(Status::Done);
    }
    let listener = TcpListener::bind(request.listen)
        .with_context(|| format!("cannot answer at {}", request.listen))?;
    interrupt::end_at_once();
    writeln!(
        io::stderr(),
        "runslice: http://{}/metrics",
        listener.local_addr()?
    )?;
    serve(&listener, request, hz);
    Ok(Status::Done)
}

/// Answers each connection on a thread of its own, so that nobody waits for one that is slow.
fn serve(listener: &TcpListener, request: &Export, hz: u32) {
    let open = AtomicUsize::new(0);
    let open = &open;
    std::thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let serving = move || {
                // One that asks badly is no reason to stop for the others.
                let _ = answer(stream, request, hz);
                open.fetch_sub(1, Ordering::Relaxed);
            };
            if std::thread::Builder::new()
                .spawn_scoped(scope, serving)
                .is_err()
            {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    });
}

fn read(path: &Path, cpu_lines: bool) -> anyhow::Result<Snapshot> {
    let named = || path.display().to_string();
    let file = statistics(path)?;
    let mut reader = SchedstatReader::new(BufReader::new(file)).with_later_versions(cpu_lines);
    match reader.next_snapshot().with_context(named)? {
        Some(snapshot) => Ok(snapshot),
        None => bail!("{}: no snapshot", named()),
    }
}

fn answer(mut stream: TcpStream, request: &Export, hz: u32) -> io::Result<()> {
    let head = asked(&mut stream)?;
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut asked = httparse::Request::new(&mut headers);
    if !asked.parse(&head).is_ok_and(|status| status.is_complete()) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let method = asked.method.unwrap_or_default();
    // What stands behind a question mark is nobody's business here.
    let path = asked
        .path
        .unwrap_or_default()
        .split('?')
        .next()
        .unwrap_or_default();
    let format = request.format;
    let format = format.unwrap_or_else(|| TextFormat::accepted(asked.headers));
    let (status, kind, body) = match [method, path] {
        _ if !for_this_machine(asked.headers, asked.version == Some(0)) => (
            "403 Forbidden",
            "text/plain",
            "Host must be localhost or an address of this machine, such as 127.0.0.1\n".to_owned(),
        ),
        ["GET" | "HEAD", "/metrics"] => match read(&request.from, request.cpu_lines) {
            Ok(snapshot) => (
                "200 OK",
                format.content_type(),
                format.text(&everything(&snapshot, hz, request)),
            ),
            Err(error) => (
                "503 Service Unavailable",
                "text/plain",
                format!("{}\n", crate::exit::in_full(&error)),
            ),
        },
        ["GET" | "HEAD", "/"] => {
            let body = "<!DOCTYPE html><title>runslice</title><a href=\"/metrics\">/metrics</a>\n";
            ("200 OK", "text/html", body.to_owned())
        }
        ["GET" | "HEAD", ..] => ("404 Not Found", "text/plain", "only /metrics\n".to_owned()),
        _ => (
            "405 Method Not Allowed",
            "text/plain",
            "only GET\n".to_owned(),
        ),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    )?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// Whether a request names this machine in its one line `Host`. A browser on this machine asks here
/// for any page whose name its owner has led to 127.0.0.1, and lets that page read the answer (DNS
/// rebinding); `Host` is then that page's name. Who speaks HTTP/1.0 may leave the line out, which
/// no browser does.
fn for_this_machine(headers: &[httparse::Header<'_>], optional: bool) -> bool {
    let hosts = headers
        .iter()
        .filter(|it| it.name.eq_ignore_ascii_case("host"));
    let hosts = hosts.map(|it| std::str::from_utf8(it.value).unwrap_or_default());
    let hosts: Vec<&str> = hosts.collect();
    match hosts.as_slice() {
        [] => optional,
        [host] => is_loopback(host),
        _ => false,
    }
}

/// Whether a `Host`, which is a name or an address and perhaps a port, is this machine's own.
fn is_loopback(host: &str) -> bool {
    let bracket = host.rfind(']').map_or(0, |end| end + 1);
    let (name, port) = match host[bracket..].rfind(':') {
        Some(colon) => (&host[..bracket + colon], &host[bracket + colon + 1..]),
        None => (host, ""),
    };
    let v6 = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let loopback = match v6 {
        Some(address) => address
            .parse()
            .is_ok_and(|address: Ipv6Addr| address.is_loopback()),
        None => {
            name.eq_ignore_ascii_case("localhost")
                || name
                    .parse()
                    .is_ok_and(|address: Ipv4Addr| address.is_loopback())
        }
    };
    loopback && (port.is_empty() || port.parse::<u16>().is_ok())
}

/// The head of a request, to its end.
fn asked(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let end = Instant::now() + PATIENCE;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() as u64 > REQUEST_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => head.extend_from_slice(&part[..count]),
        }
    }
    Ok(head)
}

/// Names that the node exporter gives to the same numbers, and what they are.
const NODE: [(&str, &str, &str); 3] = [
    (
        "cpu_time",
        "node_schedstat_running_seconds_total",
        "Time that tasks ran on the CPU.",
    ),
    (
        "run_delay",
        "node_schedstat_waiting_seconds_total",
        "Time that tasks waited that then ran on the CPU.",
    ),
    (
        "pcnt",
        "node_schedstat_timeslices_total",
        "How often a task was given the CPU.",
    ),
];

/// All metrics.
fn everything(snapshot: &Snapshot, hz: u32, request: &Export) -> Exposition {
    let mut out = metrics(snapshot, hz);
    kernel::add(&mut out, Path::new("/"));
    add_counters(&mut out, on_kernel::policy_counters());
    if request.processes {
        add_processes(&mut out, Path::new("/proc"), request.processes_max as usize);
    }
    out
}

/// Adds what the policy that runslice runs here counts itself.
fn add_counters(out: &mut Exposition, policy: Option<(String, Vec<(String, u64)>)>) {
    let Some((policy, counters)) = policy else {
        return;
    };
    let help = "What the attached policy counts, by its own names.";
    out.family("runslice_policy_counter_total", Kind::Counter, help);
    for (counter, value) in counters {
        let labels = [("policy", &*policy), ("counter", &*counter)];
        out.value(&labels, Value::Whole(value));
    }
}

/// The kernel's counters of CPUs and scheduling domains.
fn metrics(snapshot: &Snapshot, hz: u32) -> Exposition {
    let mut out = Exposition::default();
    let layout = snapshot.layout();
    for (index, field) in layout.cpu.iter().enumerate() {
        let node = NODE.iter().find(|(name, ..)| *name == field.name);
        let (name, help) = match node {
            Some((_, name, help)) => ((*name).to_owned(), (*help).to_owned()),
            None => (
                format!("runslice_schedstat_{}_total", field.name),
                format!("Counter {} of a CPU.", field.name),
            ),
        };
        out.family(name, Kind::Counter, help);
        for cpu in snapshot.cpus() {
            let value = value(field, cpu.values()[index], layout, hz);
            out.value(&[("cpu", &cpu.number().to_string())], value);
        }
    }
    for (index, field) in layout.domain.iter().enumerate() {
        let name = format!("runslice_schedstat_domain_{}_total", field.name);
        let help = format!("Counter {} of a scheduling domain.", field.name);
        out.family(name, Kind::Counter, help);
        for cpu in snapshot.cpus() {
            for domain in cpu.domains() {
                let [number, level] = [cpu.number().to_string(), domain.level().to_string()];
                let labels = [
                    ("cpu", &*number),
                    ("domain", &*level),
                    ("name", domain.name()),
                ];
                out.value(&labels, Value::Whole(domain.values()[index]));
            }
        }
    }
    out
}

/// Times in seconds, all else as it is.
fn value(field: &LayoutField, value: u64, layout: &Layout, hz: u32) -> Value {
    if field.unit != FieldUnit::Time {
        return Value::Whole(value);
    }
    match layout.time_unit {
        TimeUnit::Nanoseconds => Value::Nanos(value),
        TimeUnit::Jiffies | TimeUnit::Either => {
            let ns = u128::from(value) * 1_000_000_000 / u128::from(hz);
            Value::Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
        }
    }
}

/// A number of a process.
type Number = fn(&processes::Process) -> Value;

/// Adds at most `most` threads, by their numbers: those that had a CPU for the longest time.
fn add_processes(out: &mut Exposition, proc: &Path, most: usize) {
    let mut tasks: Vec<_> = processes::read(proc).into_iter().collect();
    tasks.sort_by_key(|(thread, task)| (std::cmp::Reverse(task.counters.cpu_time), *thread));
    let left_out = tasks.len().saturating_sub(most);
    tasks.truncate(most);
    tasks.sort_by_key(|(thread, _)| *thread);
    let help = "Threads that --processes-max leaves out.";
    out.family("runslice_process_left_out", Kind::Gauge, help);
    out.value(&[], Value::Whole(left_out as u64));
    let metrics: [(&str, &str, Number); 3] = [
        ("running_seconds", "Time on a CPU of the thread.", |task| {
            Value::Nanos(task.counters.cpu_time)
        }),
        (
            "waiting_seconds",
            "Time that it was runnable and had no CPU.",
            |task| Value::Nanos(task.counters.run_delay),
        ),
        ("timeslices", "How often it was given a CPU.", |task| {
            Value::Whole(task.counters.pcnt)
        }),
    ];
    for (name, help, of) in metrics {
        out.family(
            format!("runslice_process_{name}_total"),
            Kind::Counter,
            help,
        );
        for (thread, task) in &tasks {
            let [pid, tid] = [task.process.to_string(), thread.to_string()];
            let labels = [("pid", &*pid), ("tid", &*tid), ("comm", &*task.name)];
            out.value(&labels, of(task));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_of_a_process_is_exported_with_its_process() {
        let name = format!("runslice-export-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        for (thread, name) in [("7", "main"), ("8", "worker")] {
            let task = folder.join(format!("7/task/{thread}"));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("comm"), name).unwrap();
            std::fs::write(task.join("schedstat"), "5000000000 6 9\n").unwrap();
        }
        let exported = |most| {
            let mut out = Exposition::default();
            add_processes(&mut out, &folder, most);
            out.prometheus()
        };
        let out = exported(2);
        std::fs::write(folder.join("7/task/8/schedstat"), "5000000001 6 9\n").unwrap();
        let one = exported(1);
        std::fs::remove_dir_all(folder).unwrap();
        assert!(
            one.contains("worker") && !one.contains("comm=\"main\""),
            "{one}"
        );
        assert!(one.contains("\nrunslice_process_left_out 1\n"), "{one}");
        assert!(out.contains("\nrunslice_process_left_out 0\n"), "{out}");
        for labels in ["tid=\"7\",comm=\"main\"", "tid=\"8\",comm=\"worker\""] {
            let line = format!("runslice_process_timeslices_total{{pid=\"7\",{labels}}} 9");
            assert!(out.lines().any(|it| it == line), "{out}");
        }
    }

    fn snapshot(version: u32) -> Snapshot {
        let layout = Layout::of(version).unwrap();
        let mut snapshot = Snapshot::new(layout, 9);
        let counters: Vec<u64> = (1..=layout.cpu.len() as u64).map(|n| n * 500).collect();
        snapshot.push_cpu(3, &counters);
        if !layout.domain.is_empty() {
            snapshot.push_domain(1, "M\"C", "f", &vec![7; layout.domain.len()]);
        }
        snapshot
    }

    #[test]
    fn what_the_node_exporter_has_too_has_its_name() {
        let text = metrics(&snapshot(17), 1).prometheus();
        let lines = [
            "node_schedstat_running_seconds_total{cpu=\"3\"} 0.000003500",
            "node_schedstat_waiting_seconds_total{cpu=\"3\"} 0.000004000",
            "node_schedstat_timeslices_total{cpu=\"3\"} 4500",
            "runslice_schedstat_sched_cnt_total{cpu=\"3\"} 1500",
            "runslice_schedstat_domain_lb_cnt_busy_total{cpu=\"3\",domain=\"1\",name=\"M\\\"C\"} 7",
        ];
        for line in lines {
            assert!(text.lines().any(|known| known == line), "{line}: {text}");
        }
        // Each metric is introduced once, before its values.
        let types = text.lines().filter(|line| line.starts_with("# TYPE "));
        let mut names: Vec<&str> = types.filter_map(|line| line.split(' ').nth(2)).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), all), (9 + 45, 9 + 45));
    }

    #[test]
    fn whoever_accepts_openmetrics_gets_it() {
        let accepted = |value: &str| {
            let name = "accept";
            let value = value.as_bytes();
            TextFormat::accepted(&[httparse::Header { name, value }])
        };
        // Prometheus 3.5, scrape/scrape.go.
        let scraper = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3,*/*;q=0.2";
        assert_eq!(accepted(scraper), TextFormat::OpenMetrics);
        assert_eq!(accepted("text/html,*/*;q=0.8"), TextFormat::Prometheus);
        assert_eq!(TextFormat::accepted(&[]), TextFormat::Prometheus);
    }

    #[test]
    fn only_names_and_addresses_of_this_machine_are_answered() {
        let good = [
            "localhost",
            "LocalHost:9437",
            "127.0.0.1",
            "127.9.9.9:80",
            "[::1]",
            "[::1]:9",
        ];
        for host in good {
            assert!(is_loopback(host), "{host}");
        }
        let bad = [
            "",
            ":9437",
            "page.example",
            "page.example:9437",
            "localhost.page.example",
            "127.0.0.1.page.example",
            "localhost:port",
            "10.0.0.1",
            "[::2]:9",
            "::1",
            "[127.0.0.1]",
            "]",
        ];
        for host in bad {
            assert!(!is_loopback(host), "{host}");
        }
        let asked = |head: &str, optional| {
            let text = format!("GET /metrics HTTP/1.1\r\n{head}");
            let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let mut request = httparse::Request::new(&mut headers);
            assert!(request.parse(text.as_bytes()).unwrap().is_complete());
            for_this_machine(request.headers, optional)
        };
        assert!(asked("Accept: a:b\r\nHOST: localhost\r\n\r\n", false));
        assert!(asked("\r\n", true) && !asked("\r\n", false));
        let two = "Host: localhost\r\nHost: page.example\r\n\r\n";
        assert!(!asked(two, true));
    }

    #[test]
    fn a_policy_s_counters_have_its_names() {
        let mut out = Exposition::default();
        add_counters(&mut out, None);
        assert_eq!(out.prometheus(), "");
        let counters = vec![("kicks".to_owned(), 7), ("a\"b".to_owned(), 0)];
        add_counters(&mut out, Some(("mlfq".to_owned(), counters)));
        let out = out.prometheus();
        for line in [
            "runslice_policy_counter_total{policy=\"mlfq\",counter=\"kicks\"} 7",
            "runslice_policy_counter_total{policy=\"mlfq\",counter=\"a\\\"b\"} 0",
        ] {
            assert!(out.lines().any(|it| it == line), "{line}: {out}");
        }
    }

    #[test]
    fn jiffies_become_seconds() {
        let text = metrics(&snapshot(4), 1_000).prometheus();
        assert!(text.contains("node_schedstat_running_seconds_total{cpu=\"3\"} 10.500000000\n"));
    }

    #[test]
    fn this_process_is_exported() {
        let mut text = Exposition::default();
        add_processes(&mut text, Path::new("/proc"), usize::MAX);
        let text = text.prometheus();
        let name = format!(
            "runslice_process_timeslices_total{{pid=\"{}\",",
            std::process::id()
        );
        assert!(text.contains(&name));
    }
}
