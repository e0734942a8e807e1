// SPDX-License-Identifier: Apache-2.0
//! What can be said on a control connection.

use netjoule_transport::Values;
use serde::{Deserialize, Serialize};

use super::request::{FlowRequest, INTERVALS};
use super::text::printable;
use crate::intervals::Interval;
use crate::report::{Generator, PathFacts, ReceiverPart, SenderPart};
use crate::traces::CongestionSample;
use netjoule_measure::clock_offset::Exchange;
use netjoule_measure::failure::{Code, Failure};

/// Version of this protocol; both ends must have the same.
pub const VERSION: u32 = 3;
/// What a hello starts with.
pub const PROTOCOL: &str = "netjoule";
/// Intervals per line; keeps a line well under [`super::LINE_BYTES`].
pub const INTERVALS_PER_LINE: usize = 80;
/// Samples of congestion control per line.
pub const SAMPLES_PER_LINE: usize = 80;
/// Samples of congestion control per flow.
pub const SAMPLES: usize = INTERVALS + 2;
/// Characters of a profile per line; escaped they stay well under [`super::LINE_BYTES`].
pub const PROFILE_CHARACTERS_PER_LINE: usize = 10_000;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// Client: who I am and what I want.
    Hello(Box<Hello>),
    /// Server: prove that you know the shared secret.
    Challenge {
        /// Server's nonce, in hexadecimal.
        nonce: String,
    },
    /// Client: I know it.
    Proof {
        /// The client's proof ([`crate::control::secret`]), in hexadecimal.
        proof: String,
    },
    /// Server: come in.
    Welcome(Box<Welcome>),
    /// Either: this flow ends here, for this reason.
    Failure {
        /// Name of a [`Code`].
        code: String,
        /// One sentence.
        message: String,
    },
    /// Client: some of the profile that the server is to send by, in order.
    Profile {
        /// At most [`PROFILE_CHARACTERS_PER_LINE`].
        part: String,
    },
    /// Server: the data path stands.
    Open,
    /// Client: what time is it?
    Clock {
        /// Client's clock, ns.
        asked_ns: i64,
    },
    /// Server: its clock.
    ClockAnswer {
        /// The question's time stamp.
        asked_ns: i64,
        /// Server's clock at arrival of the question, ns.
        arrived_ns: i64,
        /// Server's clock at the answer, ns.
        answered_ns: i64,
    },
    /// Client: what a comparison of clocks gave.
    Compared {
        /// All four time stamps.
        exchange: Exchange,
    },
    /// Client: start. `offset_ns` is the server's clock minus the client's.
    Go {
        /// Clock offset for one-way delays, ns.
        offset_ns: i64,
    },
    /// Server: started.
    Started,
    /// Either: please end the flow early.
    Stop,
    /// Sending end: nothing more will come.
    Finished {
        /// Messages sent in all.
        messages_sent: u64,
    },
    /// Some of this end's intervals, in order.
    Intervals {
        /// At most [`INTERVALS_PER_LINE`].
        intervals: Vec<Interval>,
    },
    /// Some of this end's intervals as they close, for who watches; they stand in [`Self::Intervals`], too.
    Live {
        /// At most [`INTERVALS_PER_LINE`].
        intervals: Vec<Interval>,
    },
    /// Some of the sending end's samples of congestion control, in order.
    Congestion {
        /// At most [`SAMPLES_PER_LINE`].
        samples: Vec<CongestionSample>,
    },
    /// The sending end's half of the report.
    SenderPart {
        /// Counts.
        sender: Box<SenderPart>,
        /// Path and packets.
        path: PathFacts,
    },
    /// The receiving end's half of the report.
    ReceiverPart {
        /// Counts.
        receiver: Box<ReceiverPart>,
    },
    /// Client: all done, close.
    End,
}

/// The client's first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: String,
    /// [`VERSION`].
    pub version: u32,
    /// Program of the client.
    pub generator: Generator,
    /// Boot of the client's host.
    pub boot_id: String,
    /// Client's nonce for proofs of a shared secret, in hexadecimal.
    pub nonce: String,
    /// What is asked for.
    pub flow: FlowRequest,
}

/// The server's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// Program of the server.
    pub generator: Generator,
    /// Boot of the server's host.
    pub boot_id: String,
    /// Port of the data path.
    pub data_port: u16,
    /// The flow's secret, in hexadecimal.
    pub token: String,
    /// What the transport needs to connect.
    pub offer: Values,
    /// The server's proof of a shared secret, in hexadecimal; none where it asked for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// A failure that the peer sent, with its sentence made fit for a terminal: one line, not endless.
pub fn refusal(code: &str, message: &str) -> Failure {
    Failure::new(Code::named(code), printable(message, 500))
}

/// A failure as a message.
pub fn failure_message(failure: &Failure) -> Message {
    Message::Failure { code: failure.code.name().into(), message: failure.message.clone() }
}
