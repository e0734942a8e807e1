// SPDX-License-Identifier: Apache-2.0
//! Both ends of a connection of HTTP/1.1: the client asks for a range of a file, the server sends it in segments.
//!
//! A connection opens by the client's SYN, which the server's SYN answers; with TLS 1.3 the client's hello and the server's
//! flight follow. Each message of the client is answered by data; one that is not answered in time is sent again, with
//! twice the time (RFC 6298), since the path may lose it.

use netjoule_link_model::path::element::earlier;

use crate::ends::{Content, Ends, FlowTotals, Packet, Way};
use crate::segment::{Ack, Segment};
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::{Sender, SenderParams};

const FIRST_TIMEOUT_NS: u64 = 1_000_000_000;
const CONTROL_BYTES: u32 = 52;
/// ClientHello with its packet's headers, and the server's flight with a certificate of one link.
const HELLO_BYTES: u32 = 570;
const FLIGHT_SEGMENTS: u64 = 2;
/// Numbers of messages: the SYN, then the hello or the first request.
const OPEN: u64 = 0;
const HELLO: u64 = 1;

/// Parameters of both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionParams {
    /// Of the server's TCP.
    pub sender: SenderParams,
    /// Size of a data packet with its headers.
    pub packet_bytes: u32,
    /// Of these the headers of TCP and IP.
    pub header_bytes: u32,
    /// HTTP headers of a response.
    pub response_header_bytes: u32,
    /// A request with all headers.
    pub request_bytes: u32,
    /// Whether TLS 1.3 comes before the first request.
    pub has_tls: bool,
}

impl ConnectionParams {
    fn segment_bytes(&self) -> u64 {
        u64::from(self.packet_bytes - self.header_bytes)
    }
}

/// A message of the client that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Message {
    number: u64,
    /// Segments of its answer.
    answer: u64,
    due_ns: u64,
    timeout_ns: u64,
}

/// A client and its server.
#[derive(Debug)]
pub struct HttpEnds {
    params: ConnectionParams,
    sender: Sender,
    receiver: Receiver,
    ack: Option<Ack>,
    /// The next message has this number.
    next_message: u64,
    /// What the server has heard of, and how far its data goes.
    heard: u64,
    available: u64,
    waiting: Option<Message>,
    is_new: bool,
    /// A range that waits until the connection is open.
    wanted: Option<u64>,
    /// Of the range that comes: the first segment of its response, and its bytes.
    coming: Option<(u64, u64)>,
    told: u64,
    is_closed: bool,
}

impl HttpEnds {
    /// A connection that opens when it is asked for something.
    pub fn new(params: ConnectionParams) -> Self {
        let mut sender = Sender::new(params.sender);
        sender.limit(0);
        Self {
            params,
            sender,
            receiver: Receiver::new(true),
            ack: None,
            next_message: OPEN,
            heard: 0,
            available: 0,
            waiting: None,
            is_new: true,
            wanted: None,
            coming: None,
            told: 0,
            is_closed: false,
        }
    }

    /// Asks for so many bytes of a file; the range before must have come.
    pub fn request(&mut self, now_ns: u64, bytes: u64) {
        if self.next_message == OPEN {
            self.wanted = Some(bytes);
            self.send(now_ns, 1);
        } else {
            self.ask(now_ns, bytes);
        }
    }

    fn ask(&mut self, now_ns: u64, bytes: u64) {
        self.coming = Some((self.receiver.in_order(), bytes));
        self.told = 0;
        self.send(now_ns, self.segments_of(bytes));
    }

    fn send(&mut self, now_ns: u64, answer: u64) {
        let timeout_ns = FIRST_TIMEOUT_NS;
        let number = self.next_message;
        self.next_message += 1;
        self.is_new = true;
        self.waiting = Some(Message { number, answer, due_ns: now_ns + timeout_ns, timeout_ns });
    }

    /// Bytes of the range that have come.
    pub fn delivered(&self) -> u64 {
        let Some((first, bytes)) = self.coming else { return 0 };
        let segments = self.receiver.in_order().saturating_sub(first);
        let body = segments * self.params.segment_bytes();
        body.saturating_sub(u64::from(self.params.response_header_bytes)).min(bytes)
    }

    /// Whether the whole response has come that was asked for.
    pub fn is_done(&self) -> bool {
        let has_come = |(first, bytes)| self.receiver.in_order() >= first + self.segments_of(bytes);
        self.wanted.is_none() && self.coming.is_some_and(has_come)
    }

    /// Segments of a response with so many bytes of a file.
    fn segments_of(&self, bytes: u64) -> u64 {
        (bytes + u64::from(self.params.response_header_bytes)).div_ceil(self.params.segment_bytes())
    }

    /// Bytes that have come since the last call.
    pub fn news(&mut self) -> u64 {
        let delivered = self.delivered();
        delivered - std::mem::replace(&mut self.told, delivered)
    }

    /// Whether there would be [`HttpEnds::news`], or the response has just ended.
    pub fn has_news(&self) -> bool {
        self.delivered() > self.told || self.is_done()
    }

    /// The client goes away: the server sends no more, and what is on its way is for nobody.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.sender.limit(self.sender.highest());
    }

    fn message_bytes(&self, number: u64) -> u32 {
        match number {
            OPEN => CONTROL_BYTES,
            HELLO if self.params.has_tls => HELLO_BYTES,
            _ => self.params.request_bytes + self.params.header_bytes,
        }
    }

    /// The client has data: what it waited for is answered, and the next step of opening may follow.
    fn client_takes(&mut self, now_ns: u64, number: u64) {
        let before = self.receiver.in_order();
        self.ack = self.receiver.take(now_ns, number);
        let Some(waiting) = self.waiting.filter(|_| self.receiver.in_order() > before) else { return };
        let opens = self.wanted.is_some();
        let is_whole = self.receiver.in_order() >= self.answered_by(waiting);
        if !opens || is_whole {
            self.waiting = None;
        }
        match (waiting.number, self.wanted) {
            (OPEN, Some(_)) if self.params.has_tls => self.send(now_ns, FLIGHT_SEGMENTS),
            (_, Some(bytes)) if is_whole => {
                self.wanted = None;
                self.ask(now_ns, bytes);
            }
            _ => {}
        }
    }

    /// In-order segments when a message of the opening is answered: SYN, then the flight.
    fn answered_by(&self, waiting: Message) -> u64 {
        if waiting.number == OPEN {
            1
        } else {
            1 + waiting.answer
        }
    }

    fn server_takes(&mut self, number: u64, answer: u64) {
        if number == self.heard {
            self.heard += 1;
            self.available += answer;
            self.sender.limit(self.available);
        }
    }
}

impl Ends for HttpEnds {
    fn next_ns(&self) -> Option<u64> {
        if self.is_closed {
            return None;
        }
        let message = self.waiting.map(|message| message.due_ns);
        earlier(message, earlier(self.sender.next_ns(), self.receiver.next_ns()))
    }

    fn poll(&mut self, now_ns: u64) -> Option<Packet> {
        if self.is_closed {
            return None;
        }
        self.sender.expire(now_ns);
        if let Some(message) = &mut self.waiting {
            if message.due_ns <= now_ns {
                message.timeout_ns *= 2;
                message.due_ns = now_ns + message.timeout_ns;
                self.is_new = true;
            }
            if std::mem::take(&mut self.is_new) {
                let number = message.number;
                let content = Content::Tcp(Segment::Message(number));
                return Some(Packet { way: Way::Up, content, ip_bytes: self.message_bytes(number) });
            }
        }
        if let Some(ack) = self.ack.take().or_else(|| self.receiver.poll(now_ns)) {
            let content = Content::Tcp(Segment::Ack(ack));
            return Some(Packet { way: Way::Up, content, ip_bytes: CONTROL_BYTES });
        }
        let number = self.sender.poll(now_ns)?;
        let ip_bytes = if number == 0 { CONTROL_BYTES } else { self.params.packet_bytes };
        Some(Packet { way: Way::Down, content: Content::Tcp(Segment::Data(number)), ip_bytes })
    }

    fn take(&mut self, now_ns: u64, _way: Way, content: Content) {
        if self.is_closed {
            return;
        }
        match content {
            Content::Tcp(Segment::Data(number)) => self.client_takes(now_ns, number),
            Content::Tcp(Segment::Ack(told)) => self.sender.take(now_ns, told),
            Content::Tcp(Segment::Message(number)) => {
                let answer =
                    self.waiting.filter(|message| message.number == number).map(|message| message.answer);
                if let Some(answer) = answer {
                    self.server_takes(number, answer);
                }
            }
            Content::Dccp(_) => {}
        }
    }

    fn totals(&self) -> FlowTotals {
        self.sender.counts()
    }

    fn window(&self) -> f64 {
        self.sender.window()
    }
}
