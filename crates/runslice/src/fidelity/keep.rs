//! Requests and plays of `fidelity`, written to their folder.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use anyhow::bail;
use ask::fidelity::asked::{AskedPlays, Play, PlaysRequest};
use ask::fidelity::kept::{Kept, events_file, events_name, file};

use super::Brought;
use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::{interrupt, output};

/// A new request, or the same as before: it is written to the folder, which may have it already.
///
/// # Errors
/// When two plays would have one name, the folder is for something else, or it takes no files.
pub fn request(
    asked: AskedPlays,
    texts: Vec<String>,
    folder: &Path,
) -> anyhow::Result<PlaysRequest> {
    let request = PlaysRequest::new(&COMPUTER, asked, texts, folder)?;
    match fs::symlink_metadata(PlaysRequest::file(folder)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            output::make_folder(&request.loads())?;
            for (path, text) in request.files()? {
                output::write_whole(&path, text.as_bytes())?;
            }
        }
        _ => {
            let known = PlaysRequest::read(&COMPUTER, folder)?;
            if known.asked != request.asked || known.texts != request.texts {
                let message = format!(
                    "{} has plays of another request: choose another folder with --folder, or \
                     judge these with --from {}",
                    folder.display(),
                    folder.display()
                );
                return Err(UsageError::new(message).into());
            }
        }
    }
    Ok(request)
}

/// Keeps what a play brought, with its events, which lie in `from` if there are any.
///
/// # Errors
/// When it brought no run, or the folder takes no file.
pub fn play(
    brought: &Brought,
    request: &PlaysRequest,
    play: &Play,
    from: &Path,
) -> anyhow::Result<()> {
    let text = match &brought.printed {
        Ok(text) => text,
        Err(why) => bail!("{why}"),
    };
    let kept = Kept::of_document(&COMPUTER, text, (request, play))?;
    let events = from.join(events_name(play));
    if events.exists() {
        let to = events_file(&request.folder, play);
        make(to.parent())?;
        let mut events = File::open(&events).map_err(model::CannotRead::at(events.display()))?;
        let copied = folder::create(&to).and_then(|mut to| io::copy(&mut events, &mut to));
        copied.map_err(model::CannotWrite::at(to.display()))?;
    }
    let path = file(&request.folder, play);
    make(path.parent())?;
    let text = serde_json::to_string(&kept)?;
    output::write_whole(&path, (text + "\n").as_bytes())?;
    interrupt::made(1);
    Ok(())
}

fn make(folder: Option<&Path>) -> anyhow::Result<()> {
    folder.map_or(Ok(()), output::make_folder)
}

#[cfg(test)]
mod tests;
