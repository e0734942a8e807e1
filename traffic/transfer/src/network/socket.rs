// SPDX-License-Identifier: Apache-2.0
//! A TCP connection that says what it was like: its round trip and the window that it announced.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use netjoule_transport::kernel_structure::KernelStructure;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};

/// Longest wait for the other end of a connection to answer.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection asks the kernel how it is after so many bytes.
const LOOK_AFTER_BYTES: usize = 256 << 10;

/// Offsets in the kernel's `struct tcp_info` (include/uapi/linux/tcp.h): `tcpi_min_rtt` and `tcpi_rcv_wnd`.
const MIN_RTT_US: usize = 148;
const RECEIVE_WINDOW_BYTES: usize = 232;

/// What the connections of a transfer were like.
#[derive(Debug, Default)]
pub(crate) struct PathFacts {
    /// Shortest round trip, us; 0 when there was none.
    rtt_us: Cell<u64>,
    /// Largest window that a connection announced, bytes.
    pub(crate) window_bytes: Cell<u64>,
}

impl PathFacts {
    /// Shortest round trip so far.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        Some(self.rtt_us.get()).filter(|us| *us > 0).map(Duration::from_micros)
    }

    /// A round trip of a connection.
    pub(crate) fn round_trip(&self, us: u64) {
        if us > 0 && (self.rtt_us.get() == 0 || us < self.rtt_us.get()) {
            self.rtt_us.set(us);
        }
    }

    /// A window that a connection has.
    pub(crate) fn window(&self, bytes: u64) {
        self.window_bytes.set(self.window_bytes.get().max(bytes));
    }
}

/// The connection.
#[derive(Debug)]
pub(crate) struct Watched {
    stream: TcpStream,
    facts: Rc<PathFacts>,
    /// Bytes that came since it looked.
    unseen_bytes: usize,
}

impl Watched {
    /// Connect to the first of `addresses` that answers. `window_bytes` caps the receive buffer (SO_RCVBUF),
    /// set before the handshake, which tells how windows are scaled; what the kernel makes of it stands in the facts.
    pub(crate) async fn connect(
        addresses: &[SocketAddr],
        window_bytes: Option<u32>,
        facts: Rc<PathFacts>,
    ) -> io::Result<Self> {
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match connect_one(*address, window_bytes, &facts).await {
                Ok(stream) => return Ok(Self { stream, unseen_bytes: LOOK_AFTER_BYTES, facts }),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn look(&mut self) {
        self.unseen_bytes = 0;
        let of = (libc::IPPROTO_TCP, libc::TCP_INFO);
        let Some(info) = KernelStructure::read(self.stream.as_raw_fd(), of, 256, &[]) else { return };
        self.facts.round_trip(info.number(MIN_RTT_US, 4).filter(|us| *us < u64::from(u32::MAX)).unwrap_or(0));
        self.facts.window(info.number(RECEIVE_WINDOW_BYTES, 4).unwrap_or(0));
    }
}

async fn connect_one(
    address: SocketAddr,
    window_bytes: Option<u32>,
    facts: &PathFacts,
) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(bytes) = window_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    let started = Instant::now();
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, socket.connect(address));
    let stream = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    facts.round_trip(started.elapsed().as_micros() as u64);
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.unseen_bytes += buffer.filled().len() - before;
        if self.unseen_bytes >= LOOK_AFTER_BYTES {
            self.look();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
