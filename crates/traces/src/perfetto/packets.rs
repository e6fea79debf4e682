//! Packets, and the kernel events that wait for theirs.

use std::io::Write;

use model::{CpuId, SimTime};

use super::fields::{TRACE_PACKET, ftrace, packet};
use crate::protobuf::Message;
use crate::sinks::Output;

/// Every packet comes from one writer, which has this number.
const SEQUENCE: u64 = 1;

/// Bytes after which a bundle of one CPU's events becomes a packet.
const BUNDLE: usize = 16 << 10;

/// Writes packets.
#[derive(Debug)]
pub struct Packets<W> {
    pub output: Output<W>,
    /// Kernel events of one CPU that are not written yet; nothing if there are none.
    bundle: Message,
    /// Their CPU.
    cpu: CpuId,
}

impl<W: Write> Packets<W> {
    pub const fn new(writer: W) -> Self {
        Self {
            output: Output::new(writer),
            bundle: Message::new(),
            cpu: CpuId(0),
        }
    }

    /// Writes a packet that has what `fill` appends, after the kernel events that came before it.
    #[inline]
    pub fn packet(&mut self, fill: impl FnOnce(Message) -> Message) {
        self.write_bundle();
        self.write_packet(fill);
    }

    #[inline]
    fn write_packet(&mut self, fill: impl FnOnce(Message) -> Message) {
        let buffer = self.output.buffer();
        let written = Message::after(std::mem::take(buffer)).message(TRACE_PACKET, |to| {
            fill(to).number(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE)
        });
        *buffer = written.into_bytes();
        self.output.write_when_full();
    }

    pub fn write_bundle(&mut self) {
        if !self.bundle.is_empty() {
            let bundle = std::mem::take(&mut self.bundle);
            self.write_packet(|to| to.bytes(packet::FTRACE_EVENTS, bundle.as_bytes()));
            self.bundle = bundle.cleared();
        }
    }

    /// Adds a kernel event, the one of `field`, with what `fill` appends. It was raised on a CPU at
    /// a time by a thread.
    #[inline]
    pub fn ftrace(
        &mut self,
        (cpu, time, thread): (CpuId, SimTime, u64),
        field: u64,
        fill: impl FnOnce(Message) -> Message,
    ) {
        if self.cpu != cpu || self.bundle.len() >= BUNDLE {
            self.write_bundle();
        }
        let mut bundle = std::mem::take(&mut self.bundle);
        if bundle.is_empty() {
            self.cpu = cpu;
            bundle = bundle.number(ftrace::CPU, cpu.0.into());
        }
        self.bundle = bundle.message(ftrace::EVENT, |to| {
            to.number(ftrace::TIMESTAMP, time.as_nanos())
                .number(ftrace::PID, thread)
                .message(field, fill)
        });
    }
}
