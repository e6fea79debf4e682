//! A machine as textbooks have it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What comes first where arrivals and the end of a quantum fall into one instant, on a machine as
/// textbooks have it: one CPU, nothing but work takes time, and a quantum ends to the nanosecond.
///
/// In each instant running tasks end their work first, and the choice of who runs comes last.
/// Books differ in what lies between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Textbook {
    /// Arrivals stand in the queue before the task whose quantum ends.
    #[default]
    ArrivalsFirst,
    /// The task whose quantum ends stands in the queue before arrivals, as in the programs
    /// for homework of Arpaci-Dusseau, "Operating Systems: Three Easy Pieces".
    ArrivalsLast,
}

impl Textbook {
    /// Each order with its name. The last name is another one of the default.
    pub const NAMED: [(&str, Self); 3] = [
        ("textbook", Self::ArrivalsFirst),
        ("textbook:arrivals=last", Self::ArrivalsLast),
        ("textbook:arrivals=first", Self::ArrivalsFirst),
    ];
}

impl fmt::Display for Textbook {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.iter().find(|(_, order)| order == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

impl FromStr for Textbook {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::NAMED.iter().find(|(name, _)| *name == text);
        let names = Self::NAMED.map(|(name, _)| name).join(", ");
        named.map_or_else(|| Err(format!("give one of {names}")), |(_, it)| Ok(*it))
    }
}

impl From<Textbook> for String {
    fn from(order: Textbook) -> Self {
        order.to_string()
    }
}

impl TryFrom<String> for Textbook {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_is_read_as_it_is_written() {
        for (name, order) in Textbook::NAMED {
            assert_eq!(name.parse(), Ok(order));
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        let said = "textbook:arrivals=never".parse::<Textbook>().unwrap_err();
        assert!(said.contains("textbook:arrivals=last"), "{said}");
    }
}
