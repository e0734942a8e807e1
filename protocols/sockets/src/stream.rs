// SPDX-License-Identifier: Apache-2.0
//! Reading a byte stream with the kernel's time stamps: each read has the stamp of the last packet in it.

use std::io;
use std::os::fd::AsRawFd;

use socket2::Socket;

use crate::ancillary::{self, enable_rx_timestamps};
use crate::timestamps::{ClockReading, TimestampClock, TimestampCounts};
use crate::Result;

/// What one call read of a socket that keeps messages apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Bytes of it; 0 when the peer will send no more.
    pub length: usize,
    /// They end the message (`MSG_EOR`).
    pub ends: bool,
    /// When they were read, `CLOCK_MONOTONIC` ns.
    pub read_ns: i64,
    /// When the packet that began the message arrived, `CLOCK_MONOTONIC` ns: by the kernel's stamp, or `read_ns` where
    /// there is none to believe.
    pub arrived_ns: i64,
}

/// Reads a TCP socket and tells when the bytes arrived.
#[derive(Debug)]
pub struct TimestampedReader {
    clock: TimestampClock,
    /// Arrival of the last byte so far. A packet that fills a gap makes bytes readable that came before it.
    latest_ns: i64,
}

impl TimestampedReader {
    /// Have the kernel stamp what `socket` receives from now on.
    pub fn new(socket: &Socket) -> Result<Self> {
        enable_rx_timestamps(socket)?;
        Ok(Self::without_stamps())
    }

    /// Every byte arrived when it was read: for sockets whose stamps are of other bytes than those read.
    pub fn without_stamps() -> Self {
        let look = ClockReading::take();
        Self { clock: TimestampClock::new(look), latest_ns: look.before_ns }
    }

    /// Read what is waiting into `buffer`; the number of bytes (0 at the end of the stream) and when the last of them
    /// arrived, `CLOCK_MONOTONIC` ns: by the kernel's stamp, or the time of reading where there is none to believe.
    pub fn read(&mut self, socket: &Socket, buffer: &mut [u8]) -> io::Result<(usize, i64)> {
        let Message { length, arrived_ns, .. } = self.read_message(socket, buffer)?;
        if length == 0 {
            return Ok((0, self.latest_ns));
        }
        self.latest_ns = self.latest_ns.max(arrived_ns);
        Ok((length, self.latest_ns))
    }

    /// The same of a socket that keeps messages apart (SCTP): `arrived_ns` is the message's own.
    pub fn read_message(&mut self, socket: &Socket, buffer: &mut [u8]) -> io::Result<Message> {
        let read = ancillary::read(socket.as_raw_fd(), buffer)?;
        let mut message = Message {
            length: read.length,
            ends: read.flags & libc::MSG_EOR != 0,
            read_ns: self.clock.now_ns(),
            arrived_ns: self.latest_ns,
        };
        if read.length > 0 {
            self.clock.look(ClockReading::take());
            message.read_ns = self.clock.now_ns();
            message.arrived_ns = self.clock.monotonic_ns(read.ancillary.stamp_ns).unwrap_or(message.read_ns);
        }
        Ok(message)
    }

    /// Where the arrival times of all reads so far came from.
    pub fn timestamp_counts(&self) -> TimestampCounts {
        self.clock.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamps::now_ns;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn bytes_have_the_time_at_which_they_came_not_at_which_they_were_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nodelay(true).unwrap();
        let far = Socket::from(listener.accept().unwrap().0);
        let mut reader = TimestampedReader::new(&far).unwrap();
        let mut buffer = [0; 64];
        // The kernel switches stamping on a moment after it was asked.
        let stamped_while_sending = (0..1_000).any(|_| {
            let before_ns = now_ns();
            near.write_all(&[1; 30]).unwrap();
            let after_ns = now_ns();
            std::thread::sleep(std::time::Duration::from_millis(2));
            let (length, arrived_ns) = reader.read(&far, &mut buffer).unwrap();
            assert_eq!(length, 30);
            assert!(arrived_ns >= before_ns - 2_000);
            arrived_ns <= after_ns + 2_000
        });
        assert!(stamped_while_sending);
        assert_eq!(reader.read(&far, &mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(near);
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(reader.read(&far, &mut buffer).unwrap().0, 0);
    }
}
