//! Arguments of a call: taken out by type, refused by name.

use std::ops::RangeInclusive;

use anyhow::Context as _;
use ask::error::UsageError;
use model::{Advice as _, Advised, suggest};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Some arguments of a tool; several parts make all of them.
pub trait Part: DeserializeOwned + JsonSchema {}

impl<T: DeserializeOwned + JsonSchema> Part for T {}

/// The schema of a part.
pub type PartSchema = fn() -> Schema;

/// The schema of a part by its type.
pub fn schema_of<T: Part>() -> Schema {
    schemars::schema_for!(T)
}

/// The schema of a tool that has these parts. No other argument is allowed.
pub fn schema(parts: &[PartSchema]) -> Map<String, Value> {
    let mut whole = Map::new();
    whole.insert("type".to_owned(), "object".into());
    for part in parts {
        let Some(part) = part().as_object().cloned() else {
            continue;
        };
        for (name, value) in part {
            match (&*name, value) {
                ("properties" | "$defs", Value::Object(more)) => {
                    let all = whole.entry(name).or_insert_with(|| Map::new().into());
                    all.as_object_mut().expect("an object").extend(more);
                }
                ("required", Value::Array(more)) => {
                    let all = whole
                        .entry(name)
                        .or_insert_with(|| Vec::<Value>::new().into());
                    all.as_array_mut().expect("a list").extend(more);
                }
                _ => {}
            }
        }
    }
    whole.insert("additionalProperties".to_owned(), false.into());
    whole
}

/// The arguments of a call that nobody has taken yet.
#[derive(Clone, Debug)]
pub struct Arguments {
    all: Map<String, Value>,
    rest: Map<String, Value>,
}

impl Arguments {
    /// The arguments of a tool with this schema.
    ///
    /// # Errors
    /// When one has another name than those of the schema, or one of these is missing.
    pub fn new(given: Map<String, Value>, schema: &Map<String, Value>) -> Result<Self, UsageError> {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.unwrap_or(&none);
        // Some clients send null for what they leave out.
        let given = given.into_iter().filter(|(_, value)| !value.is_null());
        let given: Map<String, Value> = given.collect();
        for name in given.keys() {
            if !properties.contains_key(name) {
                let known = properties.keys().map(String::as_str);
                let what = format!("there is no argument `{name}`");
                return Err(usage(what, suggest::hint(name, known)));
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        for name in required {
            if !given.contains_key(name) {
                let what = format!("the argument `{name}` is missing");
                return Err(usage(what, about(properties, name)));
            }
        }
        let rest = given.clone();
        Ok(Self { all: given, rest })
    }

    /// Takes the arguments of a part.
    ///
    /// # Errors
    /// When one has the wrong type; the message names it.
    pub fn take<T: Part>(&mut self) -> Result<T, UsageError> {
        let schema = schema_of::<T>();
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.cloned().unwrap_or_default();
        let mut own = Map::new();
        for name in properties.keys() {
            own.extend(self.rest.remove_entry(name));
        }
        serde_path_to_error::deserialize(Value::Object(own)).map_err(|error| {
            let path = error.path().to_string();
            let name = path.split(['.', '[']).next().unwrap_or_default();
            let what = format!("`{path}`: {}", error.inner());
            usage(what, about(&properties, name))
        })
    }

    /// Whether the call has this argument.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// Refuses arguments that nobody takes, because of what `why` says.
    ///
    /// # Errors
    /// When there is one; the message names it.
    pub fn finish(&self, why: &str) -> Result<(), UsageError> {
        match self.rest.keys().next() {
            Some(name) => Err(usage(
                format!("`{name}` has no effect: {why}"),
                "leave it out",
            )),
            None => Ok(()),
        }
    }

    /// Those of them whose name `keeps`.
    #[must_use]
    pub fn only(&self, keeps: impl Fn(&str) -> bool) -> Self {
        let all = self.all.iter().filter(|(name, _)| keeps(name));
        Self {
            all: all.map(|(name, it)| (name.clone(), it.clone())).collect(),
            rest: Map::new(),
        }
    }

    /// The command line that asks for the same: the values of `positional`, then the others as
    /// options.
    pub fn command(&self, verb: &str, positional: &[&str]) -> Vec<String> {
        let mut words = vec!["runslice".to_owned(), verb.to_owned()];
        let first = positional.iter().filter_map(|it| self.all.get(*it));
        words.extend(first.flat_map(values));
        for (name, value) in &self.all {
            if name == "files" || positional.contains(&name.as_str()) {
                continue;
            }
            let option = format!("--{}", option(name).replace('_', "-"));
            if let Value::Bool(is_set) = value {
                words.extend(is_set.then_some(option));
                continue;
            }
            words.extend(
                values(value)
                    .into_iter()
                    .flat_map(|it| [option.clone(), it]),
            );
        }
        words
    }
}

/// An argument that is a list has the name of many, and its option that of one.
fn option(name: &str) -> &str {
    match name {
        "goals" => "goal",
        "metrics" => "metric",
        "properties" => "property",
        name => name,
    }
}

/// A value as words of a command line.
fn values(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(values).collect(),
        Value::Object(entries) => {
            let each = entries.iter().flat_map(|(name, value)| {
                let all = values(value).into_iter();
                all.map(move |it| format!("{name}={it}"))
            });
            each.collect()
        }
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

/// What the schema says of an argument.
fn about(properties: &Map<String, Value>, name: &str) -> String {
    let said = properties.get(name).and_then(|it| it.get("description"));
    let said = said.and_then(Value::as_str).unwrap_or_default();
    format!("`{name}`: {}", said.replace('\n', " "))
}

/// An error of a call that asks for something that does not exist.
pub fn usage(what: impl Into<String>, advice: impl Into<String>) -> UsageError {
    UsageError::new(Advised::new(what.into(), advice.into()))
}

/// A number that must be in `range`.
///
/// # Errors
/// When it is not.
pub fn within<T: TryFrom<u64>>(
    name: &str,
    value: Option<u64>,
    range: RangeInclusive<u64>,
) -> anyhow::Result<Option<T>> {
    let Some(value) = value else { return Ok(None) };
    if !range.contains(&value) {
        let (least, most) = range.into_inner();
        let advice = format!("give a number from {least} to {most}");
        return Err(wrong(name, value, advice).into());
    }
    let number = T::try_from(value).ok().context("the range fits the type")?;
    Ok(Some(number))
}

/// What `parse` reads in a text.
///
/// # Errors
/// When it reads nothing.
pub fn parsed<T, E: Into<Advised>>(
    name: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, UsageError> {
    let read =
        text.map(|text| parse(text).map_err(|error| wrong(name, text, error.into().in_full())));
    read.transpose()
}

/// What `parse` reads in each text of a list.
///
/// # Errors
/// When it reads nothing in one.
pub fn all_parsed<T, E: Into<Advised>>(
    name: &str,
    texts: &[String],
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<T>, UsageError> {
    let all = texts
        .iter()
        .map(|text| parse(text).map_err(|error| wrong(name, text, error.into().in_full())));
    all.collect()
}

fn wrong(name: &str, value: impl std::fmt::Display, advice: String) -> UsageError {
    usage(format!("invalid value `{value}` for `{name}`"), advice)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct First {
        /// Policies to simulate.
        policies: Vec<String>,
        #[serde(default)]
        goals: Vec<String>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Second {
        /// CPUs of the machine.
        cpus: Option<u64>,
        is_all: Option<bool>,
    }

    fn read(given: &Value) -> Result<Arguments, UsageError> {
        let schema = schema(&[schema_of::<First>, schema_of::<Second>]);
        Arguments::new(given.as_object().unwrap().clone(), &schema)
    }

    fn said(error: &UsageError) -> (String, String) {
        let advised = Advised::of(error);
        (advised.what, advised.advice.unwrap_or_default())
    }

    #[test]
    fn parts_share_the_arguments_of_a_call() {
        let mut arguments = read(&json!({
            "policies": ["fifo", "a b"], "cpus": 4, "goals": ["p99 wait"], "is_all": true
        }))
        .unwrap();
        let command = arguments.command("sim", &["policies"]);
        let words = [
            "runslice", "sim", "fifo", "a b", "--cpus", "4", "--goal", "p99 wait",
        ];
        assert_eq!(command[..8], words);
        assert_eq!(command[8..], ["--is-all"]);
        let first: First = arguments.take().unwrap();
        let second: Second = arguments.take().unwrap();
        assert_eq!((first.policies.len(), first.goals.len()), (2, 1));
        assert_eq!((second.cpus, second.is_all), (Some(4), Some(true)));
    }

    #[test]
    fn a_mistake_is_told_with_its_argument_and_what_that_is_for() {
        let (what, advice) = said(&read(&json!({ "polices": ["fifo"] })).unwrap_err());
        assert_eq!(what, "there is no argument `polices`");
        assert!(advice.contains("policies"), "{advice}");
        let (what, advice) = said(&read(&json!({ "cpus": 4 })).unwrap_err());
        assert_eq!(what, "the argument `policies` is missing");
        assert_eq!(advice, "`policies`: Policies to simulate.");
        let mut arguments = read(&json!({ "policies": ["x", 7], "cpus": "four" })).unwrap();
        let (what, _) = said(&arguments.take::<First>().unwrap_err());
        assert!(
            what.starts_with("`policies[1]`: invalid type: integer `7`"),
            "{what}"
        );
        let (what, advice) = said(&arguments.take::<Second>().unwrap_err());
        assert!(
            what.starts_with("`cpus`: invalid type: string \"four\""),
            "{what}"
        );
        assert_eq!(advice, "`cpus`: CPUs of the machine.");
    }

    #[test]
    fn a_number_outside_its_range_is_refused() {
        assert_eq!(within::<u16>("cpus", Some(7), 1..=1024).unwrap(), Some(7));
        assert_eq!(within::<u16>("cpus", None, 1..=1024).unwrap(), None);
        let error = within::<u16>("cpus", Some(0), 1..=1024).unwrap_err();
        assert_eq!(
            runslice::in_words(&error),
            "invalid value `0` for `cpus`\n  give a number from 1 to 1024"
        );
    }

    #[test]
    fn null_is_as_good_as_nothing() {
        let mut arguments = read(&json!({ "policies": [], "cpus": null })).unwrap();
        assert_eq!(arguments.take::<Second>().unwrap().cpus, None);
        assert_eq!(arguments.command("sim", &["policies"]).len(), 2);
    }
}
