//! `--open`: shows a trace in Perfetto's page, which takes it from this computer.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use model::{Advised, CannotRead};

use crate::interrupt;
use crate::say::say;

/// The page takes traces from this port of the computer that shows it, and from no other.
const PORT: u16 = 9001;
const PAGE: &str = "https://ui.perfetto.dev";
/// A client that says nothing is given up.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of a request.
const REQUEST_MAX: u64 = 16 << 10;

/// Says where the page shows `trace`, and waits until it has taken it.
///
/// # Errors
/// When the file cannot be read, or somebody else has the port.
pub fn show(trace: &Path) -> anyhow::Result<()> {
    let bytes = fs::read(trace).map_err(CannotRead::at(trace.display()))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).map_err(|error| {
        anyhow!(Advised::new(
            format!("the trace cannot be served at port {PORT}: {error}"),
            "end what listens there, or open the file by hand in the page"
        ))
    })?;
    // Nobody else on this computer guesses it.
    let name = format!(
        "{:016x}.pftrace",
        RandomState::new().build_hasher().finish()
    );
    let address = format!("http://127.0.0.1:{PORT}/{name}");
    say("sim", &format!("open {PAGE}/#!/?url={address}"));
    interrupt::end_at_once();
    Ok(serve(&listener, &name, &bytes)?)
}

/// Answers until somebody has got the trace.
fn serve(listener: &TcpListener, name: &str, bytes: &[u8]) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept()?;
        // A client that breaks off may come again.
        if answer(&stream, name, bytes).unwrap_or(false) {
            return Ok(());
        }
    }
}

/// Answers one request; whether it has got the trace.
fn answer(stream: &TcpStream, name: &str, bytes: &[u8]) -> io::Result<bool> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.take(REQUEST_MAX)).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let mut words = first.split(' ');
    let (method, path) = (words.next(), words.next());
    let is_it = path.and_then(|it| it.strip_prefix('/')) == Some(name);
    let (status, body) = match method {
        Some("GET") if is_it => ("200 OK", bytes),
        Some("OPTIONS") if is_it => ("204 No Content", &[][..]),
        _ => ("404 Not Found", &[][..]),
    };
    let mut to = stream;
    write!(
        to,
        "HTTP/1.1 {status}\r\nAccess-Control-Allow-Origin: {PAGE}\r\n\
         Access-Control-Allow-Private-Network: true\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    )?;
    to.write_all(body)?;
    to.flush()?;
    Ok(status.starts_with("200"))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_page_gets_the_trace_once_and_others_get_nothing() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || serve(&listener, "name.pftrace", b"the trace"));
        let asked = |line: &str| {
            let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            write!(client, "{line} HTTP/1.1\r\nOrigin: {PAGE}\r\n\r\n").unwrap();
            let mut said = String::new();
            client.read_to_string(&mut said).unwrap();
            said
        };
        for line in [
            "GET /",
            "GET /other.pftrace",
            "POST /name.pftrace",
            "",
            "GET",
        ] {
            let said = asked(line);
            assert!(
                said.starts_with("HTTP/1.1 404 ") && said.ends_with("\r\n\r\n"),
                "{said}"
            );
        }
        let said = asked("OPTIONS /name.pftrace");
        assert!(said.starts_with("HTTP/1.1 204 "), "{said}");
        assert!(said.contains("Allow-Private-Network: true"), "{said}");
        let said = asked("GET /name.pftrace");
        assert!(
            said.contains(&format!("Allow-Origin: {PAGE}\r\n")),
            "{said}"
        );
        assert!(said.ends_with("\r\n\r\nthe trace"), "{said}");
        server.join().unwrap().unwrap();
    }
}
