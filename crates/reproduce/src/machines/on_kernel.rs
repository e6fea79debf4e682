//! The machines of `reproduce` that are kernels.

mod kernels;
mod missing;
mod probed;

pub use kernels::run;

#[cfg(test)]
mod tests {
    use crate::experiments::experiment::{self, PointWork};
    use crate::experiments::files::Files;

    use crate::machines::ProgramFiles;

    /// Every file is right, and every test and figure asks for what there is.
    #[test]
    fn every_file_that_is_built_in_can_be_run() {
        let files = Files::embedded();
        let names = files.on_kernels();
        assert!(!names.is_empty());
        for name in names {
            let experiment = experiment::read_real(&files, name, &ProgramFiles)
                .unwrap_or_else(|error| panic!("{error:#}"));
            let guest = experiment.guest.as_ref().expect("it is for kernels");
            let speed = vm::Speed::from_mips(guest.mips);
            assert!(speed.is_some(), "{name}: {} MIPS", guest.mips);
            let points = experiment.sets.iter().flat_map(|set| &set.points);
            for point in points {
                let PointWork::Command(words) = &point.work else {
                    panic!("{name}: a model");
                };
                assert_eq!(words[..2], ["runslice", "load"], "{name}");
                assert!(
                    words.ends_with(&["--format".to_owned(), "json".to_owned()]),
                    "{name}"
                );
            }
            assert!(!experiment.statements.is_empty(), "{name} decides nothing");
        }
    }
}
