// SPDX-License-Identifier: Apache-2.0
//! Where control connections wait: a helper thread accepts them, reads their first line, and hands one over at a time.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::channel;
use crate::control::{self, Hello, Message};
use crate::failure::{Code, Failure, Outcome};

/// How long a client may take for its first line.
const HELLO: Duration = Duration::from_secs(5);
/// How long a client waits for a flow that is just ending before it is told that the server is busy.
const PATIENCE: Duration = Duration::from_secs(1);
/// Control connections that may wait for their first line at once.
const VISITORS: usize = 16;

/// A client that may come in: its connection, what was read beyond the hello, the hello.
pub(crate) type Visitor = (TcpStream, Vec<u8>, Hello);

/// Where clients wait for the main thread.
pub(crate) struct Lobby {
    visitors: mpsc::Receiver<Visitor>,
    bell: UnixStream,
    slot: Arc<Slot>,
}

/// Room for one flow.
#[derive(Default)]
struct Slot {
    taken: Mutex<bool>,
    freed: Condvar,
}

impl Slot {
    /// Take the room, waiting [`PATIENCE`] for a flow that is just ending; false when it stays taken.
    fn take(&self) -> bool {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.freed.wait_timeout_while(taken, PATIENCE, |taken| *taken);
        let (mut taken, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        if outcome.timed_out() {
            return false;
        }
        *taken = true;
        true
    }

    fn free(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.freed.notify_one();
    }
}

impl Lobby {
    /// Start the helper thread.
    pub(crate) fn open(listener: TcpListener) -> Outcome<Self> {
        let (bell, button) = UnixStream::pair().map_err(Failure::system("open a socket pair"))?;
        bell.set_nonblocking(true).map_err(Failure::system("prepare a socket pair"))?;
        let (sender, visitors) = mpsc::channel();
        let slot = Arc::new(Slot::default());
        let door = Door { sender, button: Arc::new(button), slot: slot.clone(), waiting: Arc::default() };
        std::thread::Builder::new()
            .name("accept".into())
            .spawn(move || door.accept_forever(&listener))
            .map_err(Failure::system("start a thread"))?;
        Ok(Self { visitors, bell, slot })
    }

    /// Descriptor that is readable when a client waits.
    pub(crate) fn bell(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// Answer the bell; the client that rang. It has the only place until [`Self::free`].
    pub(crate) fn visitor(&self) -> Option<Visitor> {
        let _ = (&self.bell).read(&mut [0]);
        self.visitors.try_recv().ok()
    }

    /// Let the next client in.
    pub(crate) fn free(&self) {
        self.slot.free();
    }
}

/// The accepting side of the lobby.
#[derive(Clone)]
struct Door {
    sender: mpsc::Sender<Visitor>,
    button: Arc<UnixStream>,
    slot: Arc<Slot>,
    waiting: Arc<AtomicUsize>,
}

impl Door {
    fn accept_forever(self, listener: &TcpListener) {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(_) => {
                    // Out of descriptors or memory: wait for some to come back instead of spinning.
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                }
            };
            if self.waiting.fetch_add(1, Ordering::AcqRel) >= VISITORS {
                self.waiting.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let door = self.clone();
            let thread = std::thread::Builder::new().name("hello".into()).spawn(move || {
                door.meet(stream);
                door.waiting.fetch_sub(1, Ordering::AcqRel);
            });
            if thread.is_err() {
                self.waiting.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    /// Read the hello; hand the client over or say why not.
    fn meet(&self, mut stream: TcpStream) {
        let mut rest = Vec::new();
        let outcome = read_hello(&mut stream, &mut rest).and_then(|hello| {
            if !self.slot.take() {
                return Err(Failure::new(
                    Code::Busy,
                    "the server is busy with another flow; try again later",
                ));
            }
            Ok(hello)
        });
        match outcome {
            Ok(hello) => {
                if let Ok(stream) = stream.try_clone() {
                    let handed_over = self.sender.send((stream, rest, hello)).is_ok();
                    if handed_over && (&*self.button).write_all(b"!").is_ok() {
                        return;
                    }
                }
                self.slot.free();
            }
            Err(failure) => {
                let line = control::encode(&failure_message(&failure));
                let _ =
                    stream.set_write_timeout(Some(HELLO)).and_then(|()| stream.write_all(line.as_bytes()));
            }
        }
    }
}

fn read_hello(stream: &mut TcpStream, received: &mut Vec<u8>) -> Outcome<Hello> {
    let deadline = Instant::now() + HELLO;
    let mut bytes = [0; 4096];
    loop {
        if let Some(line) = channel::take_line(received)? {
            return control::expect_hello(&line);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::new(Code::Timeout, "no hello within 5 s"));
        }
        let length = stream
            .set_read_timeout(Some(left))
            .and_then(|()| stream.read(&mut bytes))
            .map_err(|error| Failure::new(Code::Timeout, format!("no hello: {error}")))?;
        if length == 0 {
            return Err(Failure::new(Code::ControlLost, "the client left without a hello"));
        }
        received.extend_from_slice(&bytes[..length]);
    }
}

/// A failure as a control message.
pub(crate) fn failure_message(failure: &Failure) -> Message {
    Message::Failure { code: failure.code.name().into(), message: failure.message.clone() }
}
