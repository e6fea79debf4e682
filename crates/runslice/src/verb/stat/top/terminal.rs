//! The terminal: keys without waiting for the end of a line, a screen of its own, and all of it
//! put back.
//!
//! `stty` changes and restores the line's settings, as calls for that are not safe Rust.

use std::io::{self, Read as _, Write as _};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// A terminal in the state that a screen needs; dropped, it is as it was.
#[derive(Debug)]
pub struct Terminal {
    was: String,
}

fn stty(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("stty")
        .args(arguments)
        .stdin(Stdio::inherit())
        .output()
        .context("cannot run stty, which sets up the terminal")?;
    if !output.status.success() {
        bail!("stty: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Terminal {
    /// Takes the terminal that standard input is.
    ///
    /// # Errors
    /// When it is none.
    pub fn take() -> anyhow::Result<Self> {
        let was = stty(&["-g"])?;
        let terminal = Self { was };
        // A read waits a tenth of a second; Control-C is a key, so that all is put back.
        stty(&["-icanon", "-echo", "-isig", "min", "0", "time", "1"])?;
        // The alternative screen, without a cursor.
        io::stdout().write_all(b"\x1b[?1049h\x1b[?25l")?;
        io::stdout().flush()?;
        Ok(terminal)
    }

    /// Rows and columns.
    pub fn size(&self) -> (usize, usize) {
        let size = stty(&["size"]).unwrap_or_default();
        let mut words = size.split(' ').map(|word| word.parse().unwrap_or(0));
        match (words.next(), words.next()) {
            (Some(rows), Some(columns)) if rows > 0 && columns > 0 => (rows, columns),
            _ => (24, 80),
        }
    }

    /// Shows lines, from the top of the screen.
    ///
    /// # Errors
    /// When the terminal has gone.
    pub fn show(&self, lines: &[String]) -> io::Result<()> {
        let mut frame = String::from("\x1b[H");
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                frame.push_str("\r\n");
            }
            frame.push_str(line);
            frame.push_str("\x1b[K");
        }
        frame.push_str("\x1b[J");
        let mut out = io::stdout();
        out.write_all(frame.as_bytes())?;
        out.flush()
    }

    /// Keys that were pressed within a tenth of a second.
    ///
    /// # Errors
    /// When the terminal has gone.
    pub fn keys(&self) -> io::Result<Vec<u8>> {
        let mut keys = [0; 32];
        let count = io::stdin().lock().read(&mut keys)?;
        Ok(keys[..count].to_vec())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = io::stdout().write_all(b"\x1b[?25h\x1b[?1049l");
        let _ = io::stdout().flush();
        let _ = stty(&[&self.was]);
    }
}
