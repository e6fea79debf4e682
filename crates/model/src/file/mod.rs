//! Files that people write: TOML tables that know where everything in them stands, and errors that
//! say the file, the line and the column.

mod error;
mod table;
mod typed;

pub use error::{EvalError, FileError, Place, Problem, nearest};
pub use table::{Source, Table, Text, Value, describe, text, texts};
pub use typed::read;
