//! A server that a load starts and stops: Debian's programs, installed or unpacked elsewhere.

use std::env;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use model::Advised;

use super::Error;
use crate::play::sys;

/// Where Debian's packages put programs.
const FOLDERS: [&str; 4] = ["usr/sbin", "usr/bin", "sbin", "bin"];
/// Where they put shared libraries.
const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "usr/lib"];
/// From one look at a server to the next.
const PAUSE: Duration = Duration::from_millis(50);

/// A tree with the files of packages: `/`, or a folder in which some were unpacked.
#[derive(Clone, Debug)]
pub struct Root(pub PathBuf);

impl Root {
    /// Where a file of a package lies, if it is there.
    pub fn path(&self, below: &str) -> Option<PathBuf> {
        let path = self.0.join(below);
        path.exists().then_some(path)
    }

    /// A program of a package.
    ///
    /// # Errors
    /// When it is not there, with the package to install.
    pub fn program(&self, name: &str, package: &str) -> Result<PathBuf, Error> {
        let paths = FOLDERS.map(|folder| self.0.join(folder).join(name));
        let found = paths.into_iter().find(|path| path.is_file());
        found.ok_or_else(|| Error::Missing {
            program: name.to_owned(),
            way: format!("it is in the package {package}"),
        })
    }

    /// The command for a program of this tree, with the libraries of this tree.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if self.0 != Path::new("/") {
            let own = LIBRARIES.map(|folder| self.0.join(folder));
            let before = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
            let all = own.into_iter().chain(env::split_paths(&before));
            let joined = env::join_paths(all.filter(|it| !it.as_os_str().is_empty()));
            command.env("LD_LIBRARY_PATH", joined.unwrap_or_default());
        }
        command.stdin(Stdio::null());
        command
    }
}

/// A server that runs. Dropping it ends it and what it started.
#[derive(Debug)]
pub struct Server {
    child: Child,
    name: String,
    /// What it has printed.
    log: PathBuf,
}

impl Server {
    /// Starts `command` in a group of its own; what it prints goes into `log`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Self, Error> {
        let file = fs::File::create(log).map_err(Error::file("write", log))?;
        let other = file.try_clone().map_err(Error::file("write", log))?;
        command.stdout(file).stderr(other).process_group(0);
        let child = command.spawn();
        Ok(Self {
            child: child.map_err(Error::doing(format!("start `{name}`")))?,
            name: name.to_owned(),
            log: log.to_owned(),
        })
    }

    /// Waits until `is_ready`, at most for `limit`.
    ///
    /// # Errors
    /// When it ends before, or takes longer; with its last words.
    pub fn wait(&mut self, limit: Duration, is_ready: impl Fn() -> bool) -> Result<(), Error> {
        let began = Instant::now();
        while !is_ready() {
            let ended = self.child.try_wait();
            if let Some(status) = ended.map_err(Error::doing("wait for a server"))? {
                return Err(self.failure(&format!("it ended with {status}")));
            }
            if began.elapsed() > limit {
                return Err(self.failure(&format!("it was not ready after {} s", limit.as_secs())));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn failure(&self, what: &str) -> Error {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last = log
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or_default();
        Error::Tool {
            program: self.name.clone(),
            words: format!("{what}: {last}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = libc::pid_t::try_from(self.child.id()).expect("numbers of processes fit");
        sys::kill_group(pid);
        // It is gone already, or now.
        let _ = self.child.wait();
    }
}

/// Waits until nobody listens on this port of the loopback, at most for `limit`: processes of a
/// server that was just ended hold its socket until they are gone, and would be taken for the next.
///
/// # Errors
/// When somebody still does.
pub fn wait_until_free(port: u16, limit: Duration) -> Result<(), Error> {
    let began = Instant::now();
    while listens(port) {
        if began.elapsed() > limit {
            let words = Advised::new("somebody else does", "end that, or ask for another port");
            return Err(Error::System {
                doing: format!("listen on {port}"),
                source: io::Error::new(io::ErrorKind::AddrInUse, words),
            });
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Whether somebody listens on this port of the loopback.
pub fn listens(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_is_no_endless_wait_and_says_its_last_words() {
        let log = env::temp_dir().join(format!("runslice-server-{}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such module; exit 3"]);
        let mut server = Server::start("sh", command, &log).unwrap();
        let error = server
            .wait(Duration::from_secs(3600), || false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("exit status: 3: no such module"), "{error}");
        fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_server_ends_when_it_is_dropped() {
        let log = env::temp_dir().join(format!("runslice-server-drop-{}", std::process::id()));
        let mut command = Command::new("sleep");
        command.arg("3600");
        let mut server = Server::start("sleep", command, &log).unwrap();
        server.wait(Duration::from_secs(60), || true).unwrap();
        let pid = server.child.id();
        drop(server);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_port_is_free_once_nobody_listens() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = wait_until_free(port, Duration::ZERO)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("listen on {port}: somebody else")),
            "{error}"
        );
        let end = thread::spawn(move || {
            thread::sleep(4 * PAUSE);
            drop(listener);
        });
        wait_until_free(port, Duration::from_secs(3600)).unwrap();
        end.join().unwrap();
    }

    #[test]
    fn a_program_that_is_not_there_names_its_package() {
        let root = Root(env::temp_dir());
        let error = root.program("apache2", "apache2-bin").unwrap_err();
        let error = model::Advice::in_full(&error);
        assert!(error.contains("apache2-bin"), "{error}");
        assert!(Root("/".into()).program("sh", "dash").is_ok());
    }
}
