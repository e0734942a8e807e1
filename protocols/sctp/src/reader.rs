// SPDX-License-Identifier: Apache-2.0
//! How do messages come out of an association, and when did they arrive?
//!
//! The kernel stamps the packet that begins a message. Of a message of several packets the last one counts, whose stamp is
//! not told: then the time of reading does, and is counted as such.

use std::io;
use std::os::fd::AsRawFd;

use netjoule_sockets::stream::TimestampedReader;
use netjoule_sockets::timestamps::TimestampCounts;
use netjoule_transport::{Arrival, Result};
use socket2::Socket;

use crate::kernel::{self, LARGEST_MESSAGE_BYTES};

/// The receiving side of one association.
pub(crate) struct Reader {
    stamped: TimestampedReader,
    buffer: Vec<u8>,
    /// Beginning of a message that came in part.
    partial: Vec<u8>,
    times: Times,
}

impl Reader {
    /// Have the kernel stamp what `socket` receives from now on. `ordered`: messages wait for those before them.
    pub(crate) fn new(socket: &Socket, ordered: bool) -> Result<Self> {
        let whole_bytes = kernel::fragmentation_point_bytes(socket.as_raw_fd());
        Ok(Self {
            stamped: TimestampedReader::new(socket)?,
            buffer: vec![0; LARGEST_MESSAGE_BYTES],
            partial: Vec::new(),
            times: Times { whole_bytes, ordered, latest_ns: i64::MIN, not_believed: 0 },
        })
    }

    /// Read what one call gives and hand a message to `sink` when it is whole; how many it was, `None` at the end of the
    /// association.
    ///
    /// # Errors
    /// The system's; `WouldBlock` when nothing is waiting.
    pub(crate) fn read(
        &mut self,
        socket: &Socket,
        sink: &mut dyn FnMut(Arrival<'_>),
    ) -> io::Result<Option<usize>> {
        let read = match self.stamped.read_message(socket, &mut self.buffer) {
            Ok(read) if read.length == 0 => return Ok(None),
            Ok(read) => read,
            // The association has ended in peace.
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => return Ok(None),
            Err(error) => return Err(error),
        };
        let part = &self.buffer[..read.length];
        if !read.ends || !self.partial.is_empty() {
            self.partial.extend_from_slice(part);
        }
        if read.ends {
            let message = if self.partial.is_empty() { part } else { &self.partial };
            let arrived_ns = self.times.of(message.len(), read.arrived_ns, read.read_ns);
            sink(Arrival { bytes: message, arrived_ns });
        }
        // What no peer of this program sends is thrown away before it fills the memory.
        if read.ends || self.partial.len() > 2 * LARGEST_MESSAGE_BYTES {
            self.partial.clear();
        }
        Ok(Some(usize::from(read.ends)))
    }

    /// Where the arrival times so far came from.
    pub(crate) fn timestamp_counts(&self) -> TimestampCounts {
        let told = self.stamped.timestamp_counts();
        let not_believed = self.times.not_believed.min(told.kernel);
        TimestampCounts { kernel: told.kernel - not_believed, read: told.read + not_believed, ..told }
    }
}

/// Which of two times is a message's arrival. Pure.
#[derive(Debug)]
struct Times {
    /// Messages up to this length are one packet; `None`: not known.
    whole_bytes: Option<usize>,
    ordered: bool,
    /// Latest arrival told so far.
    latest_ns: i64,
    /// Stamps that were not those of whole messages.
    not_believed: u64,
}

impl Times {
    fn of(&mut self, payload_bytes: usize, stamped_ns: i64, read_ns: i64) -> i64 {
        let is_one_packet = self.whole_bytes.is_some_and(|most| payload_bytes <= most);
        self.not_believed += u64::from(!is_one_packet);
        let arrived_ns = if is_one_packet { stamped_ns } else { read_ns };
        self.latest_ns = self.latest_ns.max(arrived_ns);
        // In order a message is there once those before it are.
        if self.ordered {
            self.latest_ns
        } else {
            arrived_ns
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ordered: bool) -> Times {
        Times { whole_bytes: Some(1_000), ordered, latest_ns: i64::MIN, not_believed: 0 }
    }

    #[test]
    fn a_message_of_several_packets_has_the_time_of_reading() {
        let mut times = times(false);
        assert_eq!(times.of(1_000, 5, 9), 5);
        assert_eq!(times.of(1_001, 5, 9), 9);
        assert_eq!(times.not_believed, 1);
        times.whole_bytes = None;
        assert_eq!((times.of(16, 5, 9), times.not_believed), (9, 2));
    }

    #[test]
    fn what_had_to_wait_for_its_turn_arrived_with_what_it_waited_for() {
        for (ordered, told) in [(true, [7, 7, 8]), (false, [7, 5, 8])] {
            let mut times = times(ordered);
            assert_eq!([7, 5, 8].map(|stamped_ns| times.of(16, stamped_ns, 9)), told);
        }
    }
}
