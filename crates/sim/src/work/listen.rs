//! Listening sockets: connections that wait to be accepted.

use std::collections::VecDeque;

use model::{SimTime, TaskId};
use workload::{Listener, Woken};

/// One listening socket.
#[derive(Clone, Debug)]
pub(super) struct Listening {
    /// Connections that may wait: one more than the backlog (`sk_acceptq_is_full()`, Linux 6.18,
    /// `include/net/sock.h`).
    room: usize,
    woken: Woken,
    /// What came with each connection, and when the client first tried.
    connections: VecDeque<(i64, SimTime)>,
    acceptors: VecDeque<TaskId>,
}

impl Listening {
    pub fn new(declared: &Listener) -> Self {
        Self {
            room: declared.backlog as usize + 1,
            woken: declared.woken,
            connections: VecDeque::new(),
            acceptors: VecDeque::new(),
        }
    }

    /// A connection comes in: whom it wakes; `None` if there is no room.
    pub fn connect(&mut self, value: i64, since: SimTime) -> Option<Option<TaskId>> {
        if self.connections.len() >= self.room {
            return None;
        }
        self.connections.push_back((value, since));
        Some(match self.woken {
            Woken::First => self.acceptors.pop_front(),
            Woken::Last => self.acceptors.pop_back(),
        })
    }

    /// The connection that has waited longest; `None`: there is none, and `task` waits.
    pub fn accept(&mut self, task: TaskId) -> Option<(i64, SimTime)> {
        let connection = self.connections.pop_front();
        if connection.is_none() {
            self.acceptors.push_back(task);
        }
        connection
    }
}
