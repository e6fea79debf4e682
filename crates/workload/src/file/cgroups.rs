//! Reads cgroups.

use super::{FileReader, small};
use crate::parser::{Parser, range};
use crate::{Bandwidth, CGROUP_DEPTH_MAX, CGROUP_WEIGHTS, Cgroup, ROOT_CGROUP};
use model::file::{FileError, Problem};
use model::file::{FileTable, Text};

impl<'a> FileReader<'a> {
    pub(super) fn cgroups(&mut self) -> Result<Vec<Cgroup>, FileError> {
        let mut cgroups: Vec<Cgroup> = Vec::new();
        for (name, at, value) in self.cgroups.clone() {
            self.check_name(name, at)?;
            if name == "root" {
                return Err(self.source.error(at, Problem::Taken(name.to_owned())));
            }
            let mut table = FileTable::new(self.source, format!("[cgroup.{name}]"), value)?;
            let path = table.text("path", "a path, as \"/a/b\"")?;
            let (path, parent) = match path {
                Some(text) => (text.text.to_owned(), self.parent(text)?),
                None => (format!("/{name}"), ROOT_CGROUP),
            };
            if cgroups.iter().any(|other| other.path == path) {
                return Err(self.source.error(at, Problem::Taken(path)));
            }
            let weight = table.get("weight");
            let weight = weight.map_or(Ok(100), |weight| {
                self.integer(weight, CGROUP_WEIGHTS, "weight")
            });
            let weight = small(weight?);
            let max = self.max(&mut table)?;
            let idle = table.flag("idle")?;
            table.finish()?;
            self.names.cgroups.push((name.to_owned(), path.clone()));
            cgroups.push(Cgroup {
                name: name.to_owned(),
                path,
                parent,
                weight,
                max,
                idle,
            });
        }
        Ok(cgroups)
    }

    /// The parent of the cgroup at a path.
    fn parent(&self, text: Text) -> Result<u32, FileError> {
        let depth = text.text.matches('/').count();
        let is_path = text
            .text
            .strip_prefix('/')
            .is_some_and(|path| path.split('/').all(|part| !["", ".", ".."].contains(&part)));
        if !is_path || depth > CGROUP_DEPTH_MAX {
            let expected = format!("a path as `/a/b`, of at most {CGROUP_DEPTH_MAX} parts");
            let problem = Problem::unexpected(format!("\"{}\"", text.text), expected);
            return Err(self.source.error(text.place(0), problem));
        }
        let (parent, _) = text.text.rsplit_once('/').expect("it begins with one");
        self.at_path(
            if parent.is_empty() { "/" } else { parent },
            text,
            "cgroup above",
        )
    }

    /// The number of the cgroup at `path`; `text` is where the file says so.
    fn at_path(&self, path: &str, text: Text, what: &'static str) -> Result<u32, FileError> {
        if path == "/" {
            return Ok(ROOT_CGROUP);
        }
        let paths = self.names.cgroups.iter().map(|(_, path)| path.as_str());
        let found = crate::names::find(what, path, paths);
        found
            .map(|index| index + 1)
            .map_err(|problem| self.source.error(text.place(0), problem))
    }

    /// `max` and `burst`.
    fn max(&mut self, table: &mut FileTable<'a>) -> Result<Bandwidth, FileError> {
        let max = table.text("max", "a quota and a period, as \"20ms/100ms\"")?;
        let max = max
            .map(|text| self.read(text, Parser::bandwidth))
            .transpose()?;
        let mut max = max.unwrap_or_default();
        if let Some(text) = table.text("burst", "a span of time, as \"5ms\"")? {
            max.burst_us = self.read(text, Parser::micros)?;
            let most = max.quota_us.unwrap_or(0);
            if max.burst_us > most {
                let found = i64::try_from(max.burst_us).unwrap_or(i64::MAX);
                let problem = range(
                    "the burst in us",
                    found,
                    &format!("at most the quota, {most}"),
                );
                return Err(self.source.error(text.place(0), problem));
            }
        }
        Ok(max)
    }

    /// The cgroup of a group of tasks.
    pub(super) fn cgroup_of(&self, table: &mut FileTable<'a>) -> Result<Option<u32>, FileError> {
        let text = table.text("cgroup", "the path of a cgroup, as \"/a/b\"")?;
        text.map(|text| self.at_path(text.text, text, "cgroup"))
            .transpose()
    }
}
