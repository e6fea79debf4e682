//! The files that a page hands over.

use std::io::{self, Cursor};
use std::path::Path;

use ask::services::{FileKind, Files, Opened};

/// Files by name. There are no folders.
#[derive(Debug, Default)]
pub struct PageFiles(pub Vec<(String, Vec<u8>)>);

impl PageFiles {
    fn find(&self, path: &Path) -> Option<&[u8]> {
        let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, bytes)| &**bytes)
    }
}

impl Files for PageFiles {
    fn open(&self, path: &Path) -> io::Result<Opened> {
        let bytes = self.find(path).ok_or_else(|| {
            let why = "the page has no such file: drop it onto the page";
            io::Error::new(io::ErrorKind::NotFound, why)
        })?;
        Ok(Opened {
            content: Box::new(Cursor::new(bytes.to_vec())),
            bytes: Some(bytes.len() as u64),
        })
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        self.find(path).map(|_| FileKind::File)
    }
}
