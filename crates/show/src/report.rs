//! What runs came to: tables, pages, documents, and checks for pull requests.

pub mod checks;
mod goals;
pub mod human;
pub mod json;
mod one_table;
pub mod page;
pub mod runs;

pub use ask::stated::stated;
pub use one_table::{TableName, of as table};
