// SPDX-License-Identifier: Apache-2.0
//! Reading a byte stream with the kernel's time stamps: each read has the stamp of the last packet in it.

use std::io;
use std::mem;
use std::os::fd::AsRawFd;

use socket2::Socket;

use crate::datagram::{ask_for_stamps, Beside, CONTROL_WORDS};
use crate::stamps::{ClockLook, StampClock, StampCounts};
use crate::Result;

/// Reads a TCP socket and tells when the bytes arrived.
#[derive(Debug)]
pub struct StampedReader {
    clock: StampClock,
    /// Arrival of the last byte so far. A packet that fills a gap makes bytes readable that came before it.
    latest_ns: i64,
}

impl StampedReader {
    /// Have the kernel stamp what `socket` receives from now on.
    pub fn new(socket: &Socket) -> Result<Self> {
        ask_for_stamps(socket)?;
        let look = ClockLook::take();
        Ok(Self { clock: StampClock::new(look), latest_ns: look.before_ns })
    }

    /// Read what is waiting into `buffer`; the number of bytes (0 at the end of the stream) and when the last of them
    /// arrived, `CLOCK_MONOTONIC` ns: by the kernel's stamp, or the time of reading where there is none to believe.
    pub fn read(&mut self, socket: &Socket, buffer: &mut [u8]) -> io::Result<(usize, i64)> {
        let mut control = [0_u64; CONTROL_WORDS];
        let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: all-zero bytes are a valid msghdr.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_iov = &mut vector;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the header points to live buffers of the lengths it tells.
        let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, libc::MSG_DONTWAIT) };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        if length == 0 {
            return Ok((0, self.latest_ns));
        }
        self.clock.look(ClockLook::take());
        // SAFETY: the kernel filled the control buffer above up to msg_controllen.
        let beside = unsafe { Beside::of(&header) };
        let arrived_ns = self.clock.monotonic_ns(beside.stamp_ns).unwrap_or(self.clock.now_ns());
        self.latest_ns = self.latest_ns.max(arrived_ns);
        Ok((length, self.latest_ns))
    }

    /// Where the arrival times of all reads so far came from.
    pub fn stamp_counts(&self) -> StampCounts {
        self.clock.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamps::now_ns;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn bytes_have_the_time_at_which_they_came_not_at_which_they_were_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nodelay(true).unwrap();
        let far = Socket::from(listener.accept().unwrap().0);
        let mut reader = StampedReader::new(&far).unwrap();
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
