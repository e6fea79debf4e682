//! Files that people write: TOML tables that know where everything in them stands, and errors that
//! say the file, the line and the column.

mod error;
mod table;
mod typed;

pub use error::{EvalError, FileError, FilePlace, Problem, nearest};
pub use table::{FileTable, FileValue, Source, Text, describe, text, texts};
pub use typed::read;
