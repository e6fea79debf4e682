//! The metrics of a scheduler's own program, which it serves on a socket.
//!
//! Source of the protocol: crate `scx_stats` 1.1.4, `src/client.rs` and `src/server.rs`. A line of
//! JSON asks, `{"req":"stats","args":{"target":"top"}}`; a line answers, with `errno` 0 and the
//! metrics as `args.resp`. The connection stays open: metrics may be those since the last question.

use std::io::{self, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::Context as _;
use model::{Nanos, SimTime};
use serde_json::{Value, json};

use super::samples::Samples;
use crate::output::{self, ResultsFile};

/// Where the program has its socket, below the folder of the simulated machine's files.
pub const SOCKET: &str = "run/scx/root/stats";
/// How a file ends that has the metrics as `OpenMetrics`.
const ENDING: &str = "openmetrics";
/// Longest answer.
const MOST_BYTES: usize = 16 << 20;
/// All answers that are kept as lines.
const LINES_BYTES: u64 = 1 << 30;
/// Memory of those that are written at the end of the run.
const SAMPLES_BYTES: u64 = 256 << 20;
/// How long an answer may take.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// Where answers go.
pub enum KeptMetrics {
    /// Each as a line of JSON.
    Lines(ResultsFile),
    /// All, at the end of the run, as `OpenMetrics`.
    Samples(ResultsFile, Samples),
}

impl KeptMetrics {
    /// Into this file, in the form that its ending says.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn into_file(path: &Path) -> anyhow::Result<Self> {
        let to = output::create(path)?;
        let is_exposition = path.extension().is_some_and(|it| it == ENDING);
        Ok(if is_exposition {
            Self::Samples(to, Samples::default())
        } else {
            Self::Lines(to)
        })
    }

    /// Takes an answer, and gives how many bytes there are after `before` of them.
    fn take(&mut self, before: u64, now: SimTime, stats: &Value) -> io::Result<u64> {
        match self {
            Self::Lines(to) => {
                let line = json!({"time_ns": now.as_nanos(), "stats": stats}).to_string();
                writeln!(to, "{line}")?;
                Ok(before + line.len() as u64 + 1)
            }
            Self::Samples(_, samples) => Ok(samples.add(now, stats)),
        }
    }

    /// How many bytes are kept at most.
    const fn most(&self) -> u64 {
        match self {
            Self::Lines(_) => LINES_BYTES,
            Self::Samples(..) => SAMPLES_BYTES,
        }
    }

    fn close(&mut self) -> io::Result<()> {
        match self {
            Self::Lines(to) => to.flush(),
            Self::Samples(to, samples) => {
                samples.write(to)?;
                to.flush()
            }
        }
    }
}

/// Somebody who asks for the metrics, in simulated time.
pub struct Client {
    every: Nanos,
    next: SimTime,
    stream: Option<UnixStream>,
    /// When the question was put whose answer is awaited.
    asked: Option<SimTime>,
    answer: Vec<u8>,
    to: KeptMetrics,
    answers: u64,
    bytes: u64,
    /// Why the last question had no answer.
    lost: Option<String>,
    /// Whether the run has begun and not ended.
    pub is_running: bool,
}

impl Client {
    /// Asks every `every` and writes the answers to `to`.
    pub fn new(every: Nanos, to: KeptMetrics) -> Self {
        Self {
            every,
            next: SimTime::ZERO + every,
            stream: None,
            asked: None,
            answer: Vec::new(),
            to,
            answers: 0,
            bytes: 0,
            lost: None,
            is_running: false,
        }
    }

    /// Asks, if it is time to, or takes what was answered. `connect` connects to [`SOCKET`] without
    /// waiting, and the connection does not wait either.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn look(
        &mut self,
        now: SimTime,
        connect: impl FnOnce() -> io::Result<UnixStream>,
    ) -> io::Result<()> {
        if let Some(asked) = self.asked {
            self.take(now)?;
            if self.asked.is_some() && now.since(asked) > PATIENCE {
                self.lose(&format!("it has not answered for {PATIENCE}"));
            }
            return Ok(());
        }
        if now >= self.next && self.bytes < self.to.most() {
            while self.next <= now {
                self.next = self.next + self.every;
            }
            match self.ask(connect) {
                Ok(()) => self.asked = Some(now),
                Err(error) => self.lose(&error.to_string()),
            }
        }
        Ok(())
    }

    fn ask(&mut self, connect: impl FnOnce() -> io::Result<UnixStream>) -> io::Result<()> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect()?,
        };
        let stream = self.stream.insert(stream);
        stream.write_all(b"{\"req\":\"stats\",\"args\":{\"target\":\"top\"}}\n")
    }

    fn take(&mut self, now: SimTime) -> io::Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        let mut bytes = [0; 1 << 16];
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => {
                    self.lose("it closed the connection");
                    return Ok(());
                }
                Ok(count) => self.answer.extend(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    self.lose(&error.to_string());
                    return Ok(());
                }
            }
            if self.answer.len() > MOST_BYTES {
                self.lose("its answer is longer than 16 MiB");
                return Ok(());
            }
            if self.answer.ends_with(b"\n") {
                break;
            }
        }
        self.asked = None;
        let answer = std::mem::take(&mut self.answer);
        match metrics(&answer) {
            Ok(stats) => {
                self.answers += 1;
                self.bytes = self.to.take(self.bytes, now, &stats)?;
                Ok(())
            }
            Err(why) => {
                self.lost = Some(why);
                Ok(())
            }
        }
    }

    fn lose(&mut self, why: &str) {
        self.hang_up();
        self.answer.clear();
        self.lost = Some(why.to_owned());
    }

    /// Ends the connection, so that the program's threads end that serve it.
    pub fn hang_up(&mut self) {
        self.stream = None;
        self.asked = None;
    }

    /// Writes all to the file, and says if the program has told nothing.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn close(mut self) -> anyhow::Result<Option<String>> {
        self.to.close().context("--scheduler-stats")?;
        if self.bytes >= self.to.most() {
            let most = self.to.most() >> 20;
            let kept = "--scheduler-stats: kept the first";
            return Ok(Some(format!(
                "{kept} {most} MiB of metrics, and asked no more"
            )));
        }
        if self.answers > 0 {
            return Ok(None);
        }
        let why = self.lost.map_or_else(
            || format!("the run ended before {}", self.every),
            |why| format!("its socket is var/{SOCKET}: {why}"),
        );
        Ok(Some(format!("--scheduler-stats: no metrics: {why}")))
    }
}

/// The metrics in an answer.
fn metrics(line: &[u8]) -> Result<Value, String> {
    let answer: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let response = answer["args"]["resp"].clone();
    match answer["errno"].as_i64() {
        Some(0) => Ok(response),
        errno => Err(format!("errno {}: {response}", errno.unwrap_or(-1))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;

    use super::*;

    #[test]
    fn an_answer_has_metrics_or_the_reason_why_not() {
        let good = metrics(b"{\"errno\":0,\"args\":{\"resp\":{\"nr\":3}}}\n");
        assert_eq!(good, Ok(json!({"nr": 3})));
        let bad = metrics(b"{\"errno\":22,\"args\":{\"resp\":\"no such target\"}}\n");
        assert_eq!(bad, Err("errno 22: \"no such target\"".to_owned()));
        for broken in [&b""[..], b"[]\n", b"{}\n", b"{\"errno\":\"x\"}\n"] {
            assert!(metrics(broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn a_program_that_accepts_and_never_answers_is_asked_again_on_another_connection() {
        let to = KeptMetrics::into_file(Path::new("/dev/null")).expect("a file");
        let mut client = Client::new(Nanos::from_secs(1), to);
        let mut peers = Vec::new();
        for second in 0..40 {
            let connect = || {
                let (own, peer) = UnixStream::pair()?;
                own.set_nonblocking(true)?;
                peers.push(peer);
                Ok(own)
            };
            let now = SimTime::ZERO + Nanos::from_secs(second);
            client.look(now, connect).expect("it can be written");
        }
        assert_eq!(peers.len(), 4);
        let said = client.close().expect("it can be written");
        let said = said.expect("no metrics");
        assert!(said.contains("it has not answered for 10"), "{said}");
    }

    #[test]
    fn the_ending_of_the_file_says_in_which_form_metrics_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = |name: &str| {
            let path = folder.path().join(name);
            let to = KeptMetrics::into_file(&path).expect("a file");
            let mut client = Client::new(Nanos::from_secs(1), to);
            let (own, mut peer) = UnixStream::pair().expect("a pair");
            own.set_nonblocking(true).expect("it does not wait");
            let mut own = Some(own);
            for second in 1..=3 {
                let now = SimTime::ZERO + Nanos::from_secs(second);
                client
                    .look(now, || Ok(own.take().expect("one connection")))
                    .expect("asked");
                let mut asked = String::new();
                io::BufReader::new(&peer)
                    .read_line(&mut asked)
                    .expect("a question");
                assert!(asked.contains("\"target\":\"top\""), "{asked}");
                let answer = json!({"errno": 0, "args": {"resp": {"nr": second}}});
                writeln!(peer, "{answer}").expect("an answer");
                client
                    .look(now, || Err(io::Error::other("open already")))
                    .expect("kept");
            }
            assert_eq!(client.close().expect("it can be written"), None);
            std::fs::read_to_string(path).expect("it is there")
        };
        let line = |second: u64| {
            let ns = second * 1_000_000_000;
            format!("{}\n", json!({"time_ns": ns, "stats": {"nr": second}}))
        };
        assert_eq!(kept("a.jsonl"), [1, 2, 3].map(line).concat());
        let want = "# TYPE runslice_scheduler_nr unknown\n\
            runslice_scheduler_nr 1 1.000000000\n\
            runslice_scheduler_nr 2 2.000000000\n\
            runslice_scheduler_nr 3 3.000000000\n# EOF\n";
        assert_eq!(kept("a.openmetrics"), want);
    }
}
