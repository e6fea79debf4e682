//! The text of a workload as tables that can be left out.

use model::Nanos;
use toml::{Table, Value};

use super::operations::{self, Ops};

/// The text, table by table, in its order: tasks are born in that order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables {
    all: Vec<Section>,
}

#[derive(Clone, Debug, PartialEq)]
struct Section {
    /// The line `[...]`; empty for what stands above the first one.
    head: String,
    keys: Table,
}

/// What every workload needs.
const NEEDED: &str = "[workload]";

impl Tables {
    /// Reads a text; `None` if it is not TOML.
    pub fn read(text: &str) -> Option<Self> {
        let mut all = Vec::new();
        let mut head = String::new();
        let mut body = String::new();
        for line in text.lines() {
            let is_head = line.trim_start().starts_with('[');
            // Within a list of several lines the text so far is no table yet.
            if is_head && let Ok(keys) = body.parse::<Table>() {
                all.push(Section { head, keys });
                head = line.split('#').next().unwrap_or(line).trim().to_owned();
                body.clear();
            } else {
                body += line;
                body.push('\n');
            }
        }
        let keys = body.parse().ok()?;
        all.push(Section { head, keys });
        all.retain(|section| !section.head.is_empty() || !section.keys.is_empty());
        Some(Self { all })
    }

    /// The text.
    pub fn text(&self) -> String {
        let sections = self.all.iter().map(|section| {
            let keys = section.keys.iter();
            let keys = keys.map(|(key, value)| format!("{key} = {value}\n"));
            format!("{}\n{}", section.head, keys.collect::<String>())
        });
        sections.collect::<Vec<_>>().join("\n")
    }

    /// With its tasks in another order, in which they are born; `order` gives a permutation of so
    /// many numbers.
    pub fn with_tasks_in_order(&self, order: &mut dyn FnMut(usize) -> Vec<usize>) -> Self {
        let is_task = |at: &usize| self.all[*at].head.starts_with("[task.");
        let places: Vec<usize> = (0..self.all.len()).filter(is_task).collect();
        let mut mixed = self.clone();
        for (place, from) in places.iter().zip(order(places.len())) {
            mixed.all[*place] = self.all[places[from]].clone();
        }
        mixed
    }

    /// Tasks begin by up to so much later, if nothing is said of that yet.
    pub fn set_start_jitter(&mut self, most: Nanos) {
        let workload = self.all.iter_mut().find(|it| it.head == NEEDED);
        if let Some(workload) = workload {
            let jitter = || Value::String(format!("{}ns", most.get()));
            workload.keys.entry("start_jitter").or_insert_with(jitter);
        }
    }

    /// Adds a group of so many tasks that are born before all others, and end at once.
    pub fn add_first_task(&mut self, name: &str, count: u64) {
        let first = self.all.iter().position(|it| it.head.starts_with("[task."));
        let mut keys = Table::new();
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        keys.insert("count".to_owned(), Value::Integer(count));
        keys.insert("do".to_owned(), Value::String("run(10us)".to_owned()));
        let section = Section {
            head: format!("[task.{name}]"),
            keys,
        };
        self.all.insert(first.unwrap_or(self.all.len()), section);
    }

    /// How many operations there are.
    pub fn operations(&self) -> usize {
        let all = self.all.iter().filter_map(Section::operations);
        all.map(|ops| operations::count(&ops)).sum()
    }

    /// Without some tables: halves, quarters, and so on down to single ones.
    pub fn without_some(&self) -> Vec<Self> {
        let free: Vec<usize> = (0..self.all.len())
            .filter(|at| self.all[*at].head != NEEDED)
            .collect();
        let mut variants = Vec::new();
        for gone in operations::chunks(free.len()) {
            let gone: Vec<usize> = free[gone].to_vec();
            let mut kept = self.clone();
            let mut at = 0;
            kept.all.retain(|_| {
                at += 1;
                !gone.contains(&(at - 1))
            });
            variants.push(kept);
        }
        variants
    }

    /// With fewer of what a table has several of.
    pub fn fewer_tasks(&self) -> Vec<Self> {
        let mut variants = Vec::new();
        for (at, section) in self.all.iter().enumerate() {
            let counts: Vec<i64> = match section.keys.get("count") {
                Some(Value::Integer(count)) => vec![1, count / 4, count / 2, count - 1],
                Some(_) => vec![1, 2, 3, 4],
                None => continue,
            };
            let now = section.keys.get("count").and_then(Value::as_integer);
            let mut counts: Vec<_> = counts
                .into_iter()
                .filter(|it| *it > 0 && now.is_none_or(|now| *it < now))
                .collect();
            counts.dedup();
            variants.extend(counts.into_iter().map(|count| {
                let mut fewer = self.clone();
                let keys = &mut fewer.all[at].keys;
                keys.insert("count".to_owned(), Value::Integer(count));
                fewer
            }));
        }
        variants
    }

    /// Without one key, or with 1 for its number: a CPU of a low number needs fewer CPUs. A table
    /// may need a key, then the text is refused.
    pub fn fewer_keys(&self) -> Vec<Self> {
        let mut variants = Vec::new();
        for (at, section) in self.all.iter().enumerate() {
            for (key, value) in section.keys.iter().filter(|(key, _)| *key != "do") {
                let mut fewer = self.clone();
                fewer.all[at].keys.remove(key);
                variants.push(fewer);
                if key != "count" && value.as_integer().is_some_and(|number| number > 1) {
                    let mut lower = self.clone();
                    lower.all[at].keys.insert(key.clone(), Value::Integer(1));
                    variants.push(lower);
                }
            }
        }
        variants
    }

    /// With fewer operations of one group.
    pub fn fewer_operations(&self) -> Vec<Self> {
        let mut variants = Vec::new();
        for (at, section) in self.all.iter().enumerate() {
            let Some(ops) = section.operations() else {
                continue;
            };
            variants.extend(operations::smaller(&ops).into_iter().map(|ops| {
                let mut fewer = self.clone();
                let text = Value::String(operations::text(&ops));
                fewer.all[at].keys.insert("do".to_owned(), text);
                fewer
            }));
        }
        variants
    }
}

impl Section {
    /// What a group of tasks does.
    fn operations(&self) -> Option<Ops> {
        let text = match self.keys.get("do")? {
            Value::String(text) => text.clone(),
            Value::Array(texts) => {
                let texts: Option<Vec<_>> = texts.iter().map(Value::as_str).collect();
                texts?.join(", ")
            }
            _ => return None,
        };
        operations::read(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A comment.\n[workload]\nname = \"w\"\n\n[task.b] # first\n\
        do = [\n  \"run(1ms), sleep(2ms)\",\n  \"loop(3)[ yield ]\",\n]\ncount = 5\n\
        [task.a]\ndo = \"run(inf)\"\ncount = \"n\"\n";

    #[test]
    fn a_text_keeps_its_tables_in_their_order() {
        let tables = Tables::read(TEXT).unwrap();
        let text = tables.text();
        let heads: Vec<_> = text.lines().filter(|line| line.starts_with('[')).collect();
        assert_eq!(heads, ["[workload]", "[task.b]", "[task.a]"]);
        assert_eq!(Tables::read(&text), Some(tables.clone()));
        assert_eq!(tables.operations(), 5);
        assert_eq!(Tables::read("[a]\nb = \n"), None);
    }

    #[test]
    fn each_variant_has_less() {
        let tables = Tables::read(TEXT).unwrap();
        let without = tables.without_some();
        let kept: Vec<_> = without.iter().map(|it| it.all.len()).collect();
        assert_eq!(kept, [1, 2, 2]);
        assert!(without.iter().all(|it| it.all[0].head == NEEDED));
        let low = Tables::read("[hotplug.h]\ncpu = 7\noffline = \"1s\"\n").unwrap();
        let lower = low.fewer_keys().into_iter();
        let lower: Vec<_> = lower.map(|it| it.all[0].keys.get("cpu").cloned()).collect();
        let [one, seven] = [1, 7].map(|cpu| Some(Value::Integer(cpu)));
        assert_eq!(lower, [None, one, seven]);
        let counts = tables.fewer_tasks();
        let of_b: Vec<_> = counts
            .iter()
            .map(|it| it.all[1].keys["count"].as_integer().unwrap())
            .collect();
        assert_eq!(of_b, [1, 2, 4, 5, 5, 5, 5]);
        let fewer = tables.fewer_operations();
        assert!(fewer.iter().all(|it| it.operations() < 5 || it != &tables));
        assert_eq!(fewer.iter().map(Tables::operations).min(), Some(3));
    }
}
