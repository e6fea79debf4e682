//! A web server that makes a page for each request, asked by ab.
//!
//! Source: the set-up of "Using the Staircase Scheduler for Linux Kernel 2.6" (Santosa, 2005):
//! Apache with a process for each connection and a calendar page in PHP, `ab -c150 -n4000`. The
//! page is ours. Where Apache or PHP is missing, a server of our own with as many processes
//! computes as long as the paper's page took, and the outcome says so.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::levels::Behaviour;
use super::processes::{self, Processes};
use super::server::{Root, Server, listens, wait_until_free};
use super::{Error, LoadOutcome, behind, own_folder};
use crate::play::spin::Spin;
use folder::OwnFolder;

/// How long a server may take to be ready.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the processes of a server before may take to be gone.
const GONE: Duration = Duration::from_secs(30);
/// Modules that Debian's Apache does not have built in; the first is the server's kind.
const MODULES: [(&str, &str); 2] = [
    ("mpm_prefork_module", "mod_mpm_prefork.so"),
    ("authz_core_module", "mod_authz_core.so"),
];

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebServer {
    /// Apache with PHP if both are there, else our own.
    Best,
    /// Our own.
    Own,
}

/// Requests for a page.
#[derive(Clone, Debug)]
pub struct Web {
    /// Where the packages' files are.
    pub root: PathBuf,
    /// Connections at a time, 1 to 20000.
    pub clients: u32,
    /// Requests, at least as many.
    pub requests: u32,
    /// Processes of the server.
    pub workers: u32,
    /// What our own server computes for a request. The paper's page took 4.09 ms.
    pub work: Duration,
    /// The port on the loopback.
    pub port: u16,
    /// Which server.
    pub which: WebServer,
    /// The folder below which the run writes, in folders of its own.
    pub folder: PathBuf,
    /// Tasks that go on beside it by their rules. ab does not wait for them.
    pub beside: Vec<Behaviour>,
}

impl Web {
    /// Starts the server, asks for the page, stops it.
    ///
    /// # Errors
    /// When ab is missing, or a program fails.
    pub fn run(&self) -> Result<LoadOutcome, Error> {
        if self.clients == 0 || self.requests < self.clients || self.workers == 0 {
            let wrong = "there is at least one client and worker, and a request for each client";
            return Err(Error::Size(wrong.to_owned()));
        }
        self.beside.iter().try_for_each(Behaviour::check)?;
        let root = Root(self.root.clone());
        let ab = root.program("ab", "apache2-utils")?;
        let mut outcome = LoadOutcome::default();
        let apache = match self.which {
            WebServer::Best => Apache::find(&root),
            WebServer::Own => Err("it was asked for".to_owned()),
        };
        let (mut own, mut server, mut places) = (None, None, None);
        match apache {
            Ok(apache) => {
                let places = places.insert(self.places()?);
                server = Some(self.start_apache(&root, &apache, places)?);
            }
            Err(why) => {
                own = Some(self.start_own()?);
                let ms = self.work.as_secs_f64() * 1e3;
                outcome.notes.push(format!(
                    "the server is our own, {} processes that compute {ms:.2} ms for a page: {why}",
                    self.workers
                ));
            }
        }
        let mut command = root.command(&ab);
        command
            .args([
                "-q",
                "-c",
                &self.clients.to_string(),
                "-n",
                &self.requests.to_string(),
            ])
            .args([
                "-s",
                "300",
                &format!("http://127.0.0.1:{}/calendar.php", self.port),
            ])
            .stderr(Stdio::inherit());
        let mut beside = self.start_beside()?;
        let (usage, said) = processes::output("ab", "apache2-utils", &mut command)?;
        let others = beside.end();
        drop(server);
        drop(own);
        drop(places);
        tell(&said, &mut outcome).ok_or_else(|| Error::Tool {
            program: "ab".to_owned(),
            words: format!("its answer is not understood: {}", said.trim()),
        })?;
        outcome.add_usage(usage);
        if !self.beside.is_empty() {
            outcome.add("beside_cpu", "s", others.cpu().as_secs_f64());
        }
        Ok(outcome)
    }

    /// The tasks beside, which begin when all are there.
    fn start_beside(&self) -> Result<Processes, Error> {
        let spin = Spin::calibrate();
        let mut processes = Processes::new()?;
        for task in &self.beside {
            processes.spawn(&task.name, |gate| task.act(spin, gate))?;
        }
        processes.open(processes.len())?;
        Ok(processes)
    }

    /// Makes the server's folders.
    fn places(&self) -> Result<Places, Error> {
        let [server, pages] = [(); 2].map(|()| own_folder(&self.folder));
        let (server, pages) = (server?, pages?);
        // The processes that answer have given up root.
        let shown = pages.show_to_all();
        shown.map_err(Error::file("show", pages.path()))?;
        Ok(Places { server, pages })
    }

    fn start_apache(&self, root: &Root, apache: &Apache, places: &Places) -> Result<Server, Error> {
        let write = |path: PathBuf, text: String| {
            fs::write(&path, text).map_err(Error::file("write", &path))
        };
        write(places.pages.join("calendar.php"), PAGE.to_owned())?;
        let configuration = places.server.join("httpd.conf");
        write(configuration.clone(), self.configuration(apache, places))?;
        let mut command = root.command(&apache.program);
        command
            .arg("-d")
            .arg(places.server.path())
            .arg("-f")
            .arg(&configuration);
        command.args(["-D", "FOREGROUND"]).env("TZ", "UTC");
        wait_until_free(self.port, GONE)?;
        let mut server = Server::start("apache2", command, &places.server.join("log"))?;
        server.wait(PATIENCE, || listens(self.port))?;
        Ok(server)
    }

    /// All that Apache is told. It is one process for each connection.
    fn configuration(&self, apache: &Apache, places: &Places) -> String {
        let folder = places.server.path().display();
        let pages = places.pages.path().display();
        let modules = MODULES.map(|(name, file)| (name, apache.modules.join(file)));
        let php = ("php_module", apache.php.clone());
        let load =
            |(name, path): (&str, PathBuf)| format!("LoadModule {name} {}\n", path.display());
        let modules: String = modules.into_iter().chain([php]).map(load).collect();
        let Self { workers, port, .. } = self;
        format!(
            "ServerRoot {folder}\nServerName localhost\nListen 127.0.0.1:{port}\n\
             PidFile {folder}/pid\nDefaultRuntimeDir {folder}\nErrorLog {folder}/errors\n\
             {modules}User #65534\nGroup #65534\nDocumentRoot {pages}\nKeepAlive Off\n\
             StartServers {workers}\nMinSpareServers {workers}\nMaxSpareServers {workers}\n\
             ServerLimit {workers}\nMaxRequestWorkers {workers}\nListenBacklog 511\n\
             <Directory {pages}>\nRequire all granted\n</Directory>\n\
             <FilesMatch \"\\.php$\">\nSetHandler application/x-httpd-php\n</FilesMatch>\n"
        )
    }

    /// Processes that accept, compute and answer.
    fn start_own(&self) -> Result<Processes, Error> {
        let address = (Ipv4Addr::LOCALHOST, self.port);
        let listener = TcpListener::bind(address);
        let listener = listener.map_err(Error::doing(format!("listen on {}", self.port)))?;
        let spin = Spin::calibrate();
        let work = u64::try_from(self.work.as_nanos()).unwrap_or(u64::MAX);
        let mut processes = Processes::new()?;
        for _ in 0..self.workers {
            processes.spawn("httpd", |gate| {
                gate.pass();
                let mut bytes = [0; 4096];
                loop {
                    let (mut client, _) = listener.accept()?;
                    // One that goes away without asking is no failure.
                    if client.read(&mut bytes).unwrap_or(0) > 0 {
                        spin.burn(work);
                        let _ = client.write_all(ANSWER.as_bytes());
                    }
                }
            })?;
        }
        processes.open(self.workers as usize)?;
        Ok(processes)
    }
}

/// What our own server answers.
const ANSWER: &str = "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n\
                      <p>calendar</p>";
/// A calendar of a year.
const PAGE: &str = "<?php
echo '<html><body><table>';
for ($month = 1; $month <= 12; $month++) {
    $first = mktime(0, 0, 0, $month, 1, 2005);
    echo '<tr><th>', date('F', $first), '</th></tr><tr>';
    for ($day = 1; $day <= date('t', $first); $day++) {
        $time = mktime(0, 0, 0, $month, $day, 2005);
        echo '<td>', date('D', $time), ' ', $day, '</td>';
    }
    echo '</tr>';
}
echo '</table></body></html>';
";

/// Where Apache's files are.
#[derive(Debug)]
struct Places {
    /// What only its first process reads and writes.
    server: OwnFolder,
    /// What the processes that answer read.
    pages: OwnFolder,
}

/// Apache with PHP, where it lies.
#[derive(Debug)]
struct Apache {
    program: PathBuf,
    modules: PathBuf,
    php: PathBuf,
}

impl Apache {
    /// Why it is not there, in words.
    fn find(root: &Root) -> Result<Self, String> {
        let missing = |error: Error| error.to_string();
        let program = root.program("apache2", "apache2-bin").map_err(missing)?;
        let modules = root.path("usr/lib/apache2/modules");
        let modules = modules.ok_or("there are no modules of apache2")?;
        let entries = fs::read_dir(&modules).map_err(|error| error.to_string())?;
        let mut names = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_php = |path: &Path| {
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            name.is_some_and(|name| name.starts_with("libphp"))
        };
        let php = names.find(|path| is_php(path));
        Ok(Self {
            program,
            modules,
            php: php.ok_or("there is no PHP for apache2; it is in libapache2-mod-php")?,
        })
    }
}

/// Reads ab's report. `None` if it is not one.
fn tell(said: &str, outcome: &mut LoadOutcome) -> Option<()> {
    let line = |begin| behind(said, begin);
    let first = |text: &str| -> Option<f64> { text.split_whitespace().next()?.parse().ok() };
    outcome.add("time", "s", first(line("Time taken for tests:")?)?);
    outcome.add("requests", "", first(line("Complete requests:")?)?);
    outcome.add("failed", "", first(line("Failed requests:")?)?);
    outcome.add(
        "requests_per_s",
        "1/s",
        first(line("Requests per second:")?)?,
    );
    // min mean sd median max
    let total: Vec<f64> = line("Total:")?
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [min, mean, sd, p50, max] = total.try_into().ok()?;
    let p95 = first(line("95%")?)?;
    for (name, value) in [
        ("min", min),
        ("mean", mean),
        ("sd", sd),
        ("p50", p50),
        ("p95", p95),
        ("max", max),
    ] {
        outcome.add(format!("request_{name}"), "ms", value);
    }
    outcome.add_spread(min, p95, max);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "
Concurrency Level:      4
Time taken for tests:   0.455 seconds
Complete requests:      400
Failed requests:        2
   (Connect: 0, Receive: 0, Length: 2, Exceptions: 0)
Requests per second:    879.03 [#/sec] (mean)
Time per request:       4.551 [ms] (mean)

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.1      0       1
Processing:     1    4   1.5      4      22
Waiting:        1    4   1.5      4      22
Total:          2    5   1.5      4      23

Percentage of the requests served within a certain time (ms)
  50%      4
  95%      7
 100%     23 (longest request)
";

    /// One request to our own server, where no package is.
    fn small() -> Web {
        Web {
            root: std::env::temp_dir(),
            clients: 1,
            requests: 1,
            workers: 1,
            work: Duration::ZERO,
            port: 8099,
            which: WebServer::Own,
            folder: std::env::temp_dir(),
            beside: Vec::new(),
        }
    }

    #[test]
    fn the_report_of_ab_is_read() {
        let mut outcome = LoadOutcome::default();
        tell(REPORT, &mut outcome).unwrap();
        let of = |name: &str| outcome.value(name).unwrap();
        assert_eq!(
            (of("time"), of("requests"), of("failed")),
            (0.455, 400.0, 2.0)
        );
        assert_eq!((of("request_max"), of("request_p95")), (23.0, 7.0));
        assert_eq!((of("max_less_min"), of("p95_less_min")), (21.0, 5.0));
        assert_eq!(
            tell(
                "apr_socket_connect(): refused\n",
                &mut LoadOutcome::default()
            ),
            None
        );
    }

    #[test]
    fn our_own_server_answers_with_a_whole_page() {
        let web = Web {
            root: "/".into(),
            clients: 1,
            requests: 1,
            workers: 2,
            work: Duration::from_micros(10),
            port: 0,
            which: WebServer::Own,
            folder: std::env::temp_dir(),
            beside: Vec::new(),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let web = Web { port, ..web };
        let _server = web.start_own().unwrap();
        for _ in 0..3 {
            let mut client = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            client
                .write_all(b"GET /calendar.php HTTP/1.0\r\n\r\n")
                .unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(
                head.contains(&format!("Content-Length: {}", body.len())),
                "{answer}"
            );
        }
    }

    #[test]
    fn the_configuration_names_the_modules_where_they_are() {
        let apache = Apache {
            program: "/p/apache2".into(),
            modules: "/p/modules".into(),
            php: "/p/modules/libphp8.2.so".into(),
        };
        let web = Web {
            root: "/p".into(),
            clients: 4,
            requests: 8,
            workers: 4,
            work: Duration::ZERO,
            port: 8099,
            which: WebServer::Best,
            folder: std::env::temp_dir(),
            beside: Vec::new(),
        };
        let places = web.places().unwrap();
        let text = web.configuration(&apache, &places);
        let pages = format!("DocumentRoot {}", places.pages.path().display());
        for line in [
            "LoadModule mpm_prefork_module /p/modules/mod_mpm_prefork.so",
            "LoadModule php_module /p/modules/libphp8.2.so",
            "MaxRequestWorkers 4",
            "Listen 127.0.0.1:8099",
            &pages,
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }

    #[test]
    fn without_ab_its_package_is_named() {
        let web = small();
        let error = web.run().unwrap_err();
        assert!(matches!(&error, Error::Missing { .. }), "{error}");
        let none = Web { clients: 0, ..web };
        assert!(matches!(none.run().unwrap_err(), Error::Size(_)));
    }
    #[test]
    fn tasks_beside_work_until_they_are_ended_and_a_rule_that_takes_no_time_is_refused() {
        let hog = Behaviour::parse("service/5: run", |_| Ok(Duration::ZERO)).unwrap();
        let mut web = Web {
            beside: vec![hog],
            ..small()
        };
        let much = Duration::from_millis(20);
        let used = (0..10).map(|at| {
            let mut processes = web.start_beside().unwrap();
            std::thread::sleep(much * (1 << at));
            processes.check().unwrap();
            processes.end().cpu()
        });
        assert!(used.into_iter().any(|cpu| cpu >= much), "it does not work");
        let nothing = Behaviour::parse("idle: run 1ms", |_| Ok(Duration::ZERO)).unwrap();
        web.beside = vec![nothing];
        assert!(matches!(web.run().unwrap_err(), Error::Size(_)));
    }
}
