//! Many users who each work through a list of small jobs: a mix in the manner of AIM7.
//!
//! Every user has the same jobs, as many of each class as the mix says, in an order of its own.
//! What counts is how many jobs all users together finish a minute, over numbers of users.
//!
//! Source: the driver and work files of OSDL's AIM7 for the structure. Neither its jobs nor its
//! work files are here: the seven classes and their shares are ours.

use std::fs::{self, File};
use std::hint::{black_box, spin_loop};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use model::Rng;

use super::processes::Processes;
use super::{Error, LoadCell, LoadOutcome, LoadTable, Usage, count, own_folder, percent, rate};
use folder::OwnFolder;

/// A mix.
#[derive(Clone, Debug)]
pub struct Aim7 {
    /// Numbers of users, one run each.
    pub users: Vec<u32>,
    /// Jobs of each user.
    pub jobs: u32,
    /// Size of a job in percent of the usual, which is 5 to 50 million turns of a loop.
    pub percent: u32,
    /// Decides order and size of the jobs.
    pub seed: u64,
    /// The folder below which files are written, in a folder of their own.
    pub folder: PathBuf,
}

/// A kind of job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Arithmetic.
    Cpu,
    /// Writes and reads memory that it gets from the system and gives back.
    Memory,
    /// Words to and fro through two pipes.
    Pipe,
    /// The same through a socket of the loopback.
    Socket,
    /// Writes a file and reads it.
    Disk,
    /// Writes a file and waits until it is on the disk.
    Sync,
    /// Starts programs and waits for them.
    Exec,
}

/// The mix: how many of a hundred jobs are of a class.
const MIX: [(Class, u32); 7] = [
    (Class::Cpu, 45),
    (Class::Memory, 20),
    (Class::Pipe, 5),
    (Class::Socket, 5),
    (Class::Disk, 10),
    (Class::Sync, 5),
    (Class::Exec, 10),
];

/// Bytes of a write.
const BLOCK: usize = 8 << 10;

impl Aim7 {
    /// Runs the mix with each number of users.
    ///
    /// # Errors
    /// When a size cannot be, a file cannot be written, or a job fails.
    pub fn run(&self) -> Result<LoadOutcome, Error> {
        if self.users.is_empty() || self.users.contains(&0) || self.jobs == 0 || self.percent == 0 {
            let wrong = "a mix has at least one user, one job and one percent";
            return Err(Error::Size(wrong.to_owned()));
        }
        let folder = own_folder(&self.folder)?;
        let mut table = LoadTable {
            name: "users".to_owned(),
            columns: vec!["users", "time_us", "jobs_per_min"],
            rows: Vec::new(),
        };
        let (mut peak, mut peak_users) = (0.0, 0);
        let mut sum = Usage::default();
        let mut outcome = LoadOutcome::default();
        for users in &self.users {
            let (usage, time) = self.run_with(*users, &folder)?;
            sum += usage;
            let per_min = 60.0 * rate(u64::from(*users) * u64::from(self.jobs), time);
            outcome.add(format!("jobs_per_min_{users}"), "1/min", per_min);
            outcome.add(format!("cpu_{users}"), "%", percent(usage.cpu(), time));
            if per_min > peak {
                (peak, peak_users) = (per_min, *users);
            }
            let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            let whole = |value: f64| LoadCell::Word(format!("{value:.1}"));
            let row = vec![
                LoadCell::Number(u64::from(*users)),
                LoadCell::Number(time_us),
                whole(per_min),
            ];
            table.rows.push(row);
        }
        outcome.add("peak_jobs_per_min", "1/min", peak);
        outcome.add("peak_users", "", count(peak_users.into()));
        outcome.add_usage(sum);
        outcome.tables.push(table);
        Ok(outcome)
    }

    fn run_with(&self, users: u32, folder: &OwnFolder) -> Result<(Usage, Duration), Error> {
        let mut processes = Processes::new()?;
        for user in 0..users {
            let jobs = self.jobs_of(user);
            let path = folder.join(&format!("user-{user}"));
            processes.spawn("aim", move |gate| {
                gate.pass();
                let result = jobs.iter().try_for_each(|job| job.run(&path));
                // Not there: no job wrote one.
                let _ = fs::remove_file(&path);
                result
            })?;
        }
        let began = processes.open(processes.len())?;
        let usage = processes.wait()?;
        Ok((usage, began.elapsed()))
    }

    /// The jobs of a user in its order: as many of each class as the mix says.
    fn jobs_of(&self, user: u32) -> Vec<Job> {
        let mut classes = classes(self.jobs);
        let mut rng = Rng::new(self.seed, u64::from(user));
        // Durstenfeld (1964), "Algorithm 235: Random permutation".
        for last in (1..classes.len()).rev() {
            let other = rng.below(last as u64 + 1);
            classes.swap(last, usize::try_from(other).expect("it is below a length"));
        }
        let mut job = |class| Job {
            class,
            tenths: (1 + rng.below(10)) * u64::from(self.percent),
        };
        classes.into_iter().map(&mut job).collect()
    }
}

/// So many jobs of each class as the mix says, and what is missing to the sum from the first
/// class, which is the largest.
fn classes(jobs: u32) -> Vec<Class> {
    let mut classes = Vec::new();
    for (class, share) in MIX {
        let number = u64::from(jobs) * u64::from(share) / 100;
        classes.extend((0..number).map(|_| class));
    }
    let jobs = usize::try_from(jobs).expect("32 bits fit");
    classes.resize(jobs, Class::Cpu);
    classes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    class: Class,
    /// Size: thousandths of the largest, that is tenths times percent.
    tenths: u64,
}

impl Job {
    /// `most` at the largest size, at least 1.
    fn sized(self, most: u64) -> u64 {
        (most * self.tenths / 1000).max(1)
    }

    fn run(self, path: &Path) -> io::Result<()> {
        match self.class {
            Class::Cpu => compute(self.sized(10_000_000)),
            Class::Memory => self.touch(),
            Class::Pipe => self.talk_through_pipes(),
            Class::Socket => self.talk_through_a_socket(),
            Class::Disk => self.write(path, false),
            Class::Sync => self.write(path, true),
            Class::Exec => self.start_programs(),
        }
    }

    fn touch(self) -> io::Result<()> {
        for _ in 0..self.sized(20) {
            let mut bytes = vec![0_u8; 1 << 20];
            for at in (0..bytes.len()).step_by(64) {
                bytes[at] = 1;
            }
            let copy = black_box(bytes.clone());
            black_box(copy.iter().map(|byte| u64::from(*byte)).sum::<u64>());
            spin_loop();
        }
        Ok(())
    }

    fn talk_through_pipes(self) -> io::Result<()> {
        let (from_here, to_there) = io::pipe()?;
        let (from_there, to_here) = io::pipe()?;
        self.talk((from_there, to_there), (from_here, to_here))
    }

    fn talk_through_a_socket(self) -> io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let here = TcpStream::connect(listener.local_addr()?)?;
        let (there, _) = listener.accept()?;
        here.set_nodelay(true)?;
        there.set_nodelay(true)?;
        self.talk((here.try_clone()?, here), (there.try_clone()?, there))
    }

    /// Words go to a second thread and come back, one at a time.
    fn talk<R: io::Read + Send, W: io::Write + Send>(
        self,
        here: (R, W),
        there: (R, W),
    ) -> io::Result<()> {
        let rounds = self.sized(1000);
        let echo = |(mut from, mut to): (R, W)| -> io::Result<()> {
            let mut word = [0; 8];
            for _ in 0..rounds {
                from.read_exact(&mut word)?;
                to.write_all(&word)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(move || echo(there));
            let (mut from, mut to) = here;
            let mut word = [0; 8];
            for _ in 0..rounds {
                to.write_all(&[1; 8])?;
                from.read_exact(&mut word)?;
            }
            other.join().expect("it does not panic")
        })
    }

    fn write(self, path: &Path, sync: bool) -> io::Result<()> {
        let blocks = self.sized(if sync { 16 } else { 128 });
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        let mut block = vec![7; BLOCK];
        for _ in 0..blocks {
            file.write_all(&block)?;
        }
        if sync {
            return file.sync_all();
        }
        file.rewind()?;
        (0..blocks).try_for_each(|_| file.read_exact(&mut block))
    }

    /// This program itself, because it is there for certain.
    fn start_programs(self) -> io::Result<()> {
        let me = std::env::current_exe()?;
        for _ in 0..self.sized(4) {
            let mut command = Command::new(&me);
            let command = command.arg("--version").stdout(Stdio::null());
            let status = command.stdin(Stdio::null()).status()?;
            if !status.success() {
                return Err(io::Error::other(format!("{}: {status}", me.display())));
            }
        }
        Ok(())
    }
}

/// Turns of a loop that the compiler cannot shorten.
fn compute(turns: u64) -> io::Result<()> {
    let mut value = 1_u64;
    for turn in 0..turns {
        value = value.wrapping_mul(6_364_136_223_846_793_005) ^ turn;
        // An emulated CPU lets the others run at this.
        if turn % 4096 == 0 {
            spin_loop();
        }
    }
    black_box(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aim() -> Aim7 {
        Aim7 {
            users: vec![1, 2],
            jobs: 20,
            percent: 1,
            seed: 1,
            folder: std::env::temp_dir(),
        }
    }

    #[test]
    fn the_mix_is_whole_and_each_user_has_it_in_an_order_of_its_own() {
        assert_eq!(MIX.iter().map(|(_, share)| share).sum::<u32>(), 100);
        let number = |class| classes(100).iter().filter(|it| **it == class).count();
        assert_eq!((number(Class::Cpu), number(Class::Exec)), (45, 10));
        assert_eq!(classes(7).len(), 7);
        let order = |user| -> Vec<Class> {
            let jobs = aim().jobs_of(user);
            jobs.iter().map(|job| job.class).collect()
        };
        assert_ne!(order(0), order(1));
        assert_eq!(aim().jobs_of(3), aim().jobs_of(3));
    }

    #[test]
    fn each_class_of_jobs_does_its_work() {
        let folder = OwnFolder::new().unwrap();
        let path = folder.join("file");
        for (class, _) in MIX.iter().filter(|(class, _)| *class != Class::Exec) {
            let job = Job {
                class: *class,
                tenths: 10,
            };
            job.run(&path)
                .unwrap_or_else(|error| panic!("{class:?}: {error}"));
        }
    }

    #[test]
    fn every_number_of_users_has_its_figure_and_the_peak_is_one_of_them() {
        let mut small = aim();
        // Without the class that starts this test program again.
        small.jobs = 9;
        let outcome = small.run().unwrap();
        let peak = outcome.value("peak_jobs_per_min").unwrap();
        let of = |users| outcome.value(&format!("jobs_per_min_{users}")).unwrap();
        assert!((peak - f64::max(of(1), of(2))).abs() < 1e-9, "{outcome:?}");
        assert_eq!(outcome.tables[0].rows.len(), 2);
        let none = Aim7 {
            users: Vec::new(),
            ..aim()
        };
        assert!(none.run().is_err());
    }
}
