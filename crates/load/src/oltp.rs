//! A database that many clients change, asked by sysbench.
//!
//! Source: the set-up of "Using the Staircase Scheduler for Linux Kernel 2.6" (Santosa, 2005):
//! `InnoDB` tables and sysbench's OLTP test. `MariaDB` stands for `MySQL` 3.23, and tables are as
//! small as a guest's memory needs. The server begins without tables of its own (accounts, time
//! zones, statistics): no transaction asks for them, and to make them takes as long as a hundred.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::processes;
use super::server::{Root, Server};
use super::{Error, LoadOutcome, behind, own_folder};

/// How long the server may take to be ready.
const PATIENCE: Duration = Duration::from_secs(200);
/// The database; the server takes a folder for one.
const DATABASE: &str = "test";

/// Transactions.
#[derive(Clone, Debug)]
pub struct Oltp {
    /// Where the packages' files are.
    pub root: PathBuf,
    /// Clients at a time, each with a thread of the server.
    pub threads: u32,
    /// Transactions of all clients together.
    pub transactions: u32,
    /// Rows of the table.
    pub rows: u32,
    /// The folder below which the tables and the socket are, in a folder of their own.
    pub folder: PathBuf,
}

impl Oltp {
    /// Starts a new server, fills it, asks it, stops it.
    ///
    /// # Errors
    /// When a program is missing or fails.
    pub fn run(&self) -> Result<LoadOutcome, Error> {
        if self.threads == 0 || self.transactions == 0 || self.rows == 0 {
            let wrong = "there is at least one thread, one transaction and one row";
            return Err(Error::Size(wrong.to_owned()));
        }
        let root = Root(self.root.clone());
        let server = root.program("mariadbd", "mariadb-server-core")?;
        let sysbench = root.program("sysbench", "sysbench")?;
        let folder = own_folder(&self.folder)?;
        let database = folder.join("data").join(DATABASE);
        fs::create_dir_all(&database).map_err(Error::file("make", &database))?;
        let socket = folder.join("socket");
        let mut command = server_command(&root, &server, folder.path());
        command.arg(format!("--socket={}", socket.display()));
        // The server's own tables (accounts, time zones) are never made: no transaction of sysbench
        // asks for them, and making them took two fifths of the server's CPU time.
        command.arg("--skip-grant-tables");
        let mut running = Server::start("mariadbd", command, &folder.join("log"))?;
        running.wait(PATIENCE, || UnixStream::connect(&socket).is_ok())?;
        let ask = |what: &str| -> Result<String, Error> {
            let mut command = root.command(&sysbench);
            if let Some(scripts) = root.path("usr/share/sysbench") {
                command.env("LUA_PATH", format!("{}/?.lua", scripts.display()));
            }
            command
                .args(["--db-driver=mysql", "--mysql-user=root"])
                .arg(format!("--mysql-db={DATABASE}"))
                .arg(format!("--mysql-socket={}", socket.display()))
                .args(["--tables=1", "--time=0", "--rand-seed=1"])
                .arg(format!("--table-size={}", self.rows))
                .arg(format!("--threads={}", self.threads))
                .arg(format!("--events={}", self.transactions))
                .args(["oltp_read_write", what])
                .stderr(Stdio::inherit());
            processes::output("sysbench", "sysbench", &mut command).map(|(_, said)| said)
        };
        ask("prepare")?;
        let said = ask("run")?;
        drop(running);
        let mut outcome = LoadOutcome::default();
        tell(&said, &mut outcome).ok_or_else(|| Error::Tool {
            program: "sysbench".to_owned(),
            words: format!("its answer is not understood: {}", said.trim()),
        })?;
        Ok(outcome)
    }
}

/// The command that starts the server with its files in `folder`.
fn server_command(root: &Root, program: &Path, folder: &Path) -> Command {
    let mut command = root.command(program);
    command
        .args(["--no-defaults", "--user=root", "--skip-networking"])
        .arg(format!("--datadir={}", folder.join("data").display()))
        .args(["--innodb-use-native-aio=0", "--innodb-buffer-pool-size=16M"])
        .args([
            "--innodb-log-file-size=8M",
            "--innodb-flush-log-at-trx-commit=1",
        ])
        .args(["--aria-log-file-size=8M", "--key-buffer-size=1M"])
        // They would be kept in a table of the server's own.
        .arg("--innodb-stats-persistent=0")
        .arg(format!("--pid-file={}", folder.join("pid").display()));
    if let Some(share) = root.path("usr/share/mysql") {
        command.arg(format!("--lc-messages-dir={}", share.display()));
    }
    if let Some(plugins) = root.path("usr/lib/mysql/plugin") {
        command.arg(format!("--plugin-dir={}", plugins.display()));
    }
    command
}

/// Reads sysbench's report (1.0.20). `None` if it is not one.
fn tell(said: &str, outcome: &mut LoadOutcome) -> Option<()> {
    let line = |begin| behind(said, begin);
    let first = |text: &str| -> Option<f64> {
        let word = text.split_whitespace().next()?;
        word.trim_end_matches('s').parse().ok()
    };
    outcome.add("time", "s", first(line("total time:")?)?);
    outcome.add("transactions", "", first(line("transactions:")?)?);
    let per_s = line("transactions:")?.split('(').nth(1)?;
    outcome.add("transactions_per_s", "1/s", first(per_s)?);
    outcome.add("deadlocks", "", first(line("ignored errors:")?)?);
    let latency = said.split("Latency (ms):").nth(1)?;
    let of = |begin| first(behind(latency, begin)?);
    let (min, max) = (of("min:")?, of("max:")?);
    let p95 = of("95th percentile:")?;
    outcome.add("transaction_min", "ms", min);
    outcome.add("transaction_mean", "ms", of("avg:")?);
    outcome.add("transaction_p95", "ms", p95);
    outcome.add("transaction_max", "ms", max);
    outcome.add_spread(min, p95, max);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "
SQL statistics:
    queries performed:
        read:                            5600
        total:                           8000
    transactions:                        400    (92.50 per sec.)
    queries:                             8000   (1850.00 per sec.)
    ignored errors:                      1      (0.23 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          4.3243s
    total number of events:              400

Latency (ms):
         min:                                    5.25
         avg:                                   43.12
         max:                                  225.50
         95th percentile:                       89.16
         sum:                                17248.00
";

    #[test]
    fn the_report_of_sysbench_is_read() {
        let mut outcome = LoadOutcome::default();
        tell(REPORT, &mut outcome).unwrap();
        let of = |name: &str| outcome.value(name).unwrap();
        assert_eq!((of("time"), of("transactions_per_s")), (4.3243, 92.5));
        assert_eq!(
            (of("transaction_mean"), of("max_less_min")),
            (43.12, 220.25)
        );
        assert_eq!(of("deadlocks"), 1.0);
        assert_eq!(
            tell("FATAL: unable to connect\n", &mut LoadOutcome::default()),
            None
        );
    }

    #[test]
    fn without_the_server_its_package_is_named() {
        let oltp = Oltp {
            root: std::env::temp_dir(),
            threads: 1,
            transactions: 1,
            rows: 1,
            folder: std::env::temp_dir(),
        };
        let error = model::Advice::in_full(&oltp.run().unwrap_err());
        assert!(error.contains("mariadb-server-core"), "{error}");
        let none = Oltp { rows: 0, ..oltp };
        assert!(matches!(none.run().unwrap_err(), Error::Size(_)));
    }
}
