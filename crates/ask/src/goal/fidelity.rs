//! How far simulated figures were from those of a kernel, as docs/fidelity.md says it. A change
//! that is smaller is no ground to choose a scheduler by.

/// Figures whose errors were measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Waits for a CPU.
    Waits,
    /// Times on a CPU in one turn.
    Slices,
    /// Shares of CPU time.
    Cpu,
    /// The time until the load is done.
    Elapsed,
    /// What the load counts.
    Work,
    /// None of these.
    Unmeasured,
}

/// The largest error of a class, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Played divided by simulated, as the table has it.
    pub ratio: f64,
    /// Its row in the table.
    pub row: &'static str,
}

/// The table of all errors here: of the two that set plays beside simulations the one in which the
/// computer's load has no effect.
pub const TABLE: &str = "docs/fidelity.md, \"Played and simulated\", counting VM";

impl Class {
    /// The largest error of this class in the table; the largest of all where the class has none.
    #[must_use]
    pub const fn error(self) -> Measured {
        let (ratio, row) = match self {
            Self::Waits | Self::Unmeasured => (5.80, "chat under fifo, client_reader, wakeup p99"),
            Self::Slices => (1.84, "chat under fifo, client_reader, runslice p50"),
            Self::Cpu => (0.41, "desk under o1, cc, share"),
            Self::Elapsed => (5.54, "chat under fifo, all, elapsed"),
            Self::Work => (0.33, "desk under o1, job, compiled"),
        };
        Measured { ratio, row }
    }
}

impl Measured {
    /// By which factor, from 1 on, a simulated figure was wrong, either way.
    #[must_use]
    pub fn factor(self) -> f64 {
        self.ratio.max(1.0 / self.ratio)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Which class a figure of the table is of; counters have names of their own.
    fn class_of(figure: &str) -> Class {
        match figure.split(' ').next().unwrap_or_default() {
            "wakeup" => Class::Waits,
            "runslice" => Class::Slices,
            "share" => Class::Cpu,
            "elapsed" => Class::Elapsed,
            _ => Class::Work,
        }
    }

    /// The rows of the second table below "Played and simulated": workload, task, figure, ratio.
    fn table() -> Vec<(String, f64, Class)> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fidelity.md");
        let text = fs::read_to_string(path).unwrap();
        let section = text.split("\n## Played and simulated\n").nth(1).unwrap();
        // What follows in parts of its own is of other figures.
        let section = section.split("\n## ").next().unwrap();
        let section = section.split("\n### ").next().unwrap();
        let table = section.split("\nIn a counting VM").nth(1).unwrap();
        let lines = table.lines().filter(|line| line.starts_with("| ")).skip(2);
        let mut before = [String::new(), String::new()];
        let mut rows = Vec::new();
        for line in lines {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            for (at, cell) in before.iter_mut().zip(&cells[1..3]) {
                if !cell.is_empty() {
                    cell.split(',').next().unwrap().clone_into(at);
                }
            }
            let Ok(ratio) = cells[6].parse() else {
                continue;
            };
            let [load, task] = &before;
            let row = format!("{load}, {task}, {}", cells[3]);
            rows.push((row, ratio, class_of(cells[3])));
        }
        rows
    }

    #[test]
    fn each_error_is_the_largest_of_its_class_in_the_document() {
        let rows = table();
        assert!(rows.len() > 10, "{rows:?}");
        let factor = |ratio: f64| ratio.max(1.0 / ratio);
        for class in [
            Class::Waits,
            Class::Slices,
            Class::Cpu,
            Class::Elapsed,
            Class::Work,
            Class::Unmeasured,
        ] {
            let its = rows
                .iter()
                .filter(|it| class == Class::Unmeasured || it.2 == class);
            let largest = its
                .max_by(|a, b| factor(a.1).total_cmp(&factor(b.1)))
                .unwrap();
            let said = class.error();
            assert_eq!(
                (said.row, said.ratio),
                (largest.0.as_str(), largest.1),
                "{class:?}"
            );
        }
    }
}
