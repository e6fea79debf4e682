//! An explanation in its forms.

pub mod json;
pub mod text;

pub use ask::explain::Explanation;

#[cfg(test)]
mod tests;
