//! The terminal: keys without waiting for the end of a line, a screen of its own, and all of it
//! put back.

use std::io;
use std::time::Duration;

use anyhow::Context as _;
use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::DefaultTerminal;

use super::screen::{Screen, TopInterval};

/// A terminal in the state that a screen needs. Dropped, it is as it was, and after a panic, too.
#[derive(Debug)]
pub struct Terminal(DefaultTerminal);

impl Terminal {
    /// Takes the terminal that standard output is.
    ///
    /// # Errors
    /// When it is none.
    pub fn take() -> anyhow::Result<Self> {
        ratatui::try_init()
            .map(Self)
            .context("cannot set up the terminal")
    }

    /// Shows the screen.
    ///
    /// # Errors
    /// When the terminal has gone.
    pub fn show(&mut self, screen: &Screen, interval: &TopInterval) -> io::Result<()> {
        self.0.draw(|frame| screen.draw(frame, interval)).map(drop)
    }

    /// Keys that were pressed within a tenth of a second, and whether the terminal's size changed.
    ///
    /// # Errors
    /// When the terminal has gone.
    pub fn keys(&self) -> io::Result<(Vec<KeyEvent>, bool)> {
        let (mut keys, mut resized) = (Vec::new(), false);
        let mut patience = Duration::from_millis(100);
        while event::poll(patience)? {
            patience = Duration::ZERO;
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => keys.push(key),
                Event::Resize(..) => resized = true,
                _ => {}
            }
        }
        Ok((keys, resized))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
