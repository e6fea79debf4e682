//! A chat: rooms of users who speak in turn, four threads a user, all over loopback sockets.
//!
//! A user's client and the server have a thread each that reads and one that writes. What the
//! writers are to send stands in queues. The server gives each message to all others of the room,
//! and the user whose turn it then is speaks next, so a room has one message under way. Writers
//! yield their CPU each time that they have emptied their queue.
//!
//! Source: the structure of `VolanoMark` as its published source has it (`COM.volano.Mark`, its
//! paced chat), which "Scalable Linux Scheduling" (Molloy and Honeyman, FREENIX 2001) ran.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use super::processes::{Gate, Processes};
use super::{Error, LoadOutcome, count, rate};
use crate::play::shared::MemoryPlan;
use crate::play::sys;

/// What one writer sends and one reader reads at a time.
const CHUNK: usize = 1 << 16;
/// A thread here needs little.
const STACK: usize = 128 << 10;

/// Whether the four of a user share their memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatKind {
    /// All of the chat are threads of one process; queues are monitors.
    Thread,
    /// Each is a process; queues are pipes.
    Process,
}

/// A chat.
#[derive(Clone, Debug)]
pub struct Chat {
    /// Rooms, at least 1.
    pub rooms: u32,
    /// Users of each room, at least 2.
    pub users: u32,
    /// What each user says, at least 1.
    pub messages: u32,
    /// Bytes of a message, 1 to 65536.
    pub bytes: usize,
    /// Writers yield when their queue is empty.
    pub yields: bool,
    /// All speak at once instead of in turn.
    pub flood: bool,
    /// Threads or processes.
    pub kind: ChatKind,
}

impl Default for Chat {
    /// The sizes of the paper's smallest run.
    fn default() -> Self {
        Self {
            rooms: 5,
            users: 20,
            messages: 100,
            bytes: 100,
            yields: true,
            flood: false,
            kind: ChatKind::Thread,
        }
    }
}

impl Chat {
    /// Chats until all has been said and heard.
    ///
    /// # Errors
    /// When a size cannot be, or the system lacks room.
    ///
    /// # Panics
    /// If a message was lost or heard twice.
    pub fn run(&self) -> Result<LoadOutcome, Error> {
        self.check()?;
        sys::raise_file_limit();
        let mut plan = MemoryPlan::default();
        plan.longs(2);
        let [yields, heard] = plan.build()?.longs else {
            unreachable!("two were asked for");
        };
        let totals = Totals { yields, heard };
        let users = self.connect()?;
        let mut processes = Processes::new()?;
        let expected = match self.kind {
            ChatKind::Thread => {
                processes.spawn("chat", |gate| self.all_as_threads(&users, totals, gate))?;
                1
            }
            ChatKind::Process => {
                for part in self.parts(&users) {
                    let name = part.role.name();
                    processes.spawn(name, |gate| {
                        gate.pass();
                        self.play(&part, totals)
                    })?;
                }
                users.len() * Role::ALL.len()
            }
        };
        let began = processes.open(expected)?;
        let usage = processes.wait()?;
        let time = began.elapsed();
        let sent = u64::from(self.rooms) * u64::from(self.users) * u64::from(self.messages);
        let read = totals.heard.load(Ordering::SeqCst);
        let others = u64::from(self.users - 1);
        assert_eq!(read, sent * others, "each heard what all others said");
        let mut outcome = LoadOutcome::default();
        outcome.add("time", "s", time.as_secs_f64());
        outcome.add("messages", "", count(sent + read));
        outcome.add("messages_per_s", "1/s", rate(sent + read, time));
        outcome.add("yields", "", count(totals.yields.load(Ordering::SeqCst)));
        let switches = count(usage.switches()) / count(sent + read);
        outcome.add("switches_per_message", "", switches);
        outcome.add_usage(usage);
        Ok(outcome)
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = if self.rooms == 0 || self.messages == 0 {
            "a chat has at least one room and one message"
        } else if self.users < 2 {
            "a room has at least two users: nobody hears the only one"
        } else if !(1..=CHUNK).contains(&self.bytes) {
            "a message has 1 to 65536 bytes"
        } else {
            return Ok(());
        };
        Err(Error::Size(wrong.to_owned()))
    }

    /// Every user with its connection and queues.
    fn connect(&self) -> Result<Vec<User>, Error> {
        let doing = || format!("connect {} users over loopback", self.rooms * self.users);
        let connect = || -> io::Result<Vec<User>> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let address = listener.local_addr()?;
            let all = (0..self.rooms).flat_map(|room| (0..self.users).map(move |at| (room, at)));
            all.map(|(room, at)| {
                let client = TcpStream::connect(address)?;
                let (server, _) = listener.accept()?;
                client.set_nodelay(true)?;
                server.set_nodelay(true)?;
                Ok(User {
                    room,
                    at,
                    client,
                    server,
                    to_say: Queue::new(self.kind)?,
                    to_hear: Queue::new(self.kind)?,
                })
            })
            .collect()
        };
        connect().map_err(Error::doing(doing()))
    }

    /// What each thread or process does, in the order in which they are made.
    fn parts<'a>(&self, users: &'a [User]) -> Vec<Part<'a>> {
        let mut rooms: BTreeMap<u32, Arc<Mutex<Vec<&User>>>> = BTreeMap::new();
        for user in users {
            let room = rooms.entry(user.room).or_default();
            room.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(user);
        }
        let part = |user: &'a User, role| Part {
            user,
            role,
            room: Arc::clone(&rooms[&user.room]),
        };
        users
            .iter()
            .flat_map(|user| Role::ALL.map(|role| part(user, role)))
            .collect()
    }

    fn all_as_threads(&self, users: &[User], totals: Totals, gate: Gate) -> io::Result<()> {
        let start = Start::default();
        thread::scope(|scope| {
            for part in self.parts(users) {
                let start = &start;
                let work = move || {
                    start.wait();
                    let name = part.role.name();
                    if let Err(error) = self.play(&part, totals) {
                        // The others would wait for ever for what this one does not send.
                        let _ = writeln!(io::stderr(), "load: {name}: {error}");
                        sys::exit(1);
                    }
                };
                let builder = thread::Builder::new().stack_size(STACK);
                if let Err(error) = builder.spawn_scoped(scope, work) {
                    // Those that are there wait for a start that does not come.
                    let _ = writeln!(io::stderr(), "load: no room for all threads: {error}");
                    sys::exit(1);
                }
            }
            gate.pass();
            start.give();
        });
        Ok(())
    }

    /// Does one of the four jobs of a user, to its end.
    fn play(&self, part: &Part, totals: Totals) -> io::Result<()> {
        let user = part.user;
        let others = u64::from(self.users - 1) * u64::from(self.messages);
        match part.role {
            Role::ClientReader => {
                self.listen(user)?;
                totals.heard.fetch_add(others, Ordering::SeqCst);
                Ok(())
            }
            Role::ClientWriter => {
                let own = u64::from(self.messages);
                self.send(&user.client, &user.to_say, own, totals)
            }
            Role::ServerReader => self.hand_round(part),
            Role::ServerWriter => self.send(&user.server, &user.to_hear, others, totals),
        }
    }

    /// Hears all that others say, and speaks when it is this user's turn: when as many messages
    /// have been said in the room as users before it, in each round.
    fn listen(&self, user: &User) -> io::Result<()> {
        let all = u64::from(self.users) * u64::from(self.messages);
        if self.flood {
            user.to_say.put(u64::from(self.messages))?;
            let others = all - u64::from(self.messages);
            return self.read(&user.client, others, &mut |_| Ok(()));
        }
        let mut said = 0;
        let is_due = |said: u64| said < all && said % u64::from(self.users) == u64::from(user.at);
        if is_due(said) {
            said += 1;
            user.to_say.put(1)?;
        }
        let others = all - u64::from(self.messages);
        self.read(&user.client, others, &mut |messages| {
            for _ in 0..messages {
                said += 1;
                if is_due(said) {
                    said += 1;
                    user.to_say.put(1)?;
                }
            }
            Ok(())
        })
    }

    /// Gives what a user says to the writers of all others of the room.
    fn hand_round(&self, part: &Part) -> io::Result<()> {
        let user = part.user;
        self.read(&user.server, self.messages.into(), &mut |messages| {
            for _ in 0..messages {
                let room = part.room.lock().unwrap_or_else(PoisonError::into_inner);
                let others = room.iter().filter(|other| other.at != user.at);
                others
                    .into_iter()
                    .try_for_each(|other| other.to_hear.put(1))?;
            }
            Ok(())
        })
    }

    /// Sends `total` messages as they come into the queue.
    fn send(
        &self,
        mut to: &TcpStream,
        queue: &Queue,
        total: u64,
        totals: Totals,
    ) -> io::Result<()> {
        let message = vec![b'x'; self.bytes];
        let (mut sent, mut yields) = (0, 0);
        while sent < total {
            let taken = queue.take_all()?;
            for _ in 0..taken {
                to.write_all(&message)?;
            }
            sent += taken;
            if self.yields {
                sys::yield_cpu();
                yields += 1;
            }
        }
        totals.yields.fetch_add(yields, Ordering::SeqCst);
        Ok(())
    }

    /// Reads `total` messages and tells `each` how many came at a time.
    fn read(
        &self,
        mut from: &TcpStream,
        total: u64,
        each: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut bytes = vec![0; CHUNK];
        let (mut whole, mut rest) = (0, 0);
        while whole < total {
            let read = from.read(&mut bytes)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            rest += read;
            let messages = (rest / self.bytes) as u64;
            rest %= self.bytes;
            whole += messages;
            each(messages)?;
        }
        Ok(())
    }
}

/// What all add up.
#[derive(Clone, Copy)]
struct Totals {
    yields: &'static AtomicU64,
    heard: &'static AtomicU64,
}

/// A user with its connection.
#[derive(Debug)]
struct User {
    room: u32,
    /// Its place in the room, from 0.
    at: u32,
    client: TcpStream,
    server: TcpStream,
    /// Between the client's reader and its writer.
    to_say: Queue,
    /// Between the server's readers and this user's writer.
    to_hear: Queue,
}

/// One of the four jobs of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    ClientReader,
    ClientWriter,
    ServerReader,
    ServerWriter,
}

impl Role {
    const ALL: [Self; 4] = [
        Self::ClientReader,
        Self::ClientWriter,
        Self::ServerReader,
        Self::ServerWriter,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::ClientReader => "client-reader",
            Self::ClientWriter => "client-writer",
            Self::ServerReader => "server-reader",
            Self::ServerWriter => "server-writer",
        }
    }
}

/// A job, for whom, and the room's monitor: the server hands one message round at a time.
/// Processes have a copy each, which locks nothing; in turn there is nothing to lock.
struct Part<'a> {
    user: &'a User,
    role: Role,
    room: Arc<Mutex<Vec<&'a User>>>,
}

/// How many messages wait for a writer. All messages are alike.
#[derive(Debug)]
enum Queue {
    Monitor(Mutex<u64>, Condvar),
    /// A byte a message.
    Pipe(PipeReader, PipeWriter),
}

impl Queue {
    fn new(kind: ChatKind) -> io::Result<Self> {
        Ok(match kind {
            ChatKind::Thread => Self::Monitor(Mutex::default(), Condvar::new()),
            ChatKind::Process => {
                let (reader, writer) = io::pipe()?;
                Self::Pipe(reader, writer)
            }
        })
    }

    fn put(&self, messages: u64) -> io::Result<()> {
        match self {
            Self::Monitor(waiting, changed) => {
                *waiting.lock().unwrap_or_else(PoisonError::into_inner) += messages;
                changed.notify_one();
                Ok(())
            }
            Self::Pipe(_, to) => {
                let mut to: &PipeWriter = to;
                let bytes = vec![1; usize::try_from(messages).unwrap_or(CHUNK)];
                to.write_all(&bytes)
            }
        }
    }

    /// Waits for at least one and takes all there are.
    fn take_all(&self) -> io::Result<u64> {
        match self {
            Self::Monitor(waiting, changed) => {
                let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                let mut waiting = changed
                    .wait_while(waiting, |waiting| *waiting == 0)
                    .unwrap_or_else(PoisonError::into_inner);
                Ok(std::mem::take(&mut *waiting))
            }
            Self::Pipe(from, _) => {
                let mut from: &PipeReader = from;
                let mut bytes = [0; 4096];
                Ok(from.read(&mut bytes)? as u64)
            }
        }
    }
}

/// The start of all threads.
#[derive(Default)]
struct Start {
    given: Mutex<bool>,
    changed: Condvar,
}

impl Start {
    fn wait(&self) {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.changed.wait_while(given, |given| !*given);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }

    fn give(&self) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Chat {
        Chat {
            rooms: 2,
            users: 4,
            messages: 5,
            ..Chat::default()
        }
    }

    #[test]
    fn everybody_hears_what_all_others_of_the_room_say() {
        for kind in [ChatKind::Thread, ChatKind::Process] {
            for flood in [false, true] {
                let chat = Chat {
                    kind,
                    flood,
                    ..small()
                };
                let outcome = chat.run().unwrap();
                // 2 rooms, 4 users, 5 messages, each sent once and heard three times.
                assert_eq!(outcome.value("messages"), Some(160.0), "{kind:?} {flood}");
                // Each of the writers has emptied its queue at least once.
                assert!(
                    outcome.value("yields") >= Some(16.0),
                    "{kind:?} {outcome:?}"
                );
            }
        }
    }

    #[test]
    fn in_turn_each_message_is_a_drain_of_its_own_and_wakes_those_who_wait_for_it() {
        let outcome = small().run().unwrap();
        // 40 messages of clients, each alone in its queue; the server's writers may have found two
        // rounds at once, but never more than the four that they lag behind at most.
        let yields = outcome.value("yields").unwrap();
        assert!(
            (40.0 + 120.0 / 4.0..=160.0).contains(&yields),
            "{outcome:?}"
        );
        let quiet = Chat {
            yields: false,
            ..small()
        };
        assert_eq!(quiet.run().unwrap().value("yields"), Some(0.0));
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        let alone = Chat {
            users: 1,
            ..small()
        };
        let error = alone.run().unwrap_err().to_string();
        assert!(error.contains("at least two users"), "{error}");
        let none = Chat {
            rooms: 0,
            ..small()
        };
        assert!(none.run().is_err());
        let huge = Chat {
            bytes: CHUNK + 1,
            ..small()
        };
        assert!(huge.run().is_err());
    }
}
