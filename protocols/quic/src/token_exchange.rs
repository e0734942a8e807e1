// SPDX-License-Identifier: Apache-2.0
//! Has the client proven the flow's token, and does it know that it was believed?
//!
//! Both transports of this crate greet the same way on the connection's only stream: the client writes
//! the 16-byte token, the server answers with one byte. Only then is either end open, so that nothing of the
//! set-up happens in the idle window that follows.

use netjoule_transport::TOKEN_BYTES;

/// The client's first bidirectional stream (RFC 9000 section 2.1): the only stream of a flow.
pub(crate) const STREAM: u64 = 0;

const WELCOME: u8 = 1;

/// How far the token exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Not finished.
    Underway,
    /// Both ends know.
    Done,
    /// The other end said something else.
    Wrong,
}

/// One end of the token exchange.
#[derive(Debug)]
pub(crate) enum TokenExchange {
    /// The end that shows the token.
    Client {
        /// The flow's token.
        token: [u8; TOKEN_BYTES],
        /// How much of it was written.
        written: usize,
    },
    /// The end that checks it.
    Server {
        /// The flow's token.
        token: [u8; TOKEN_BYTES],
        /// What came so far.
        received: Vec<u8>,
    },
}

impl TokenExchange {
    /// The client's end.
    pub(crate) fn client(token: [u8; TOKEN_BYTES]) -> Self {
        Self::Client { token, written: 0 }
    }

    /// The server's end.
    pub(crate) fn server(token: [u8; TOKEN_BYTES]) -> Self {
        Self::Server { token, received: Vec::with_capacity(TOKEN_BYTES) }
    }

    /// Does what the established connection `quic` allows.
    pub(crate) fn advance(&mut self, quic: &mut quiche::Connection) -> quiche::Result<Progress> {
        match self {
            Self::Client { token, written } => {
                *written += write_some(quic, &token[*written..])?;
                let mut answer = [0];
                let count = read_some(quic, &mut answer)?;
                Ok(judge_answer(&answer[..count]))
            }
            Self::Server { token, received } => {
                // Never past the token: what follows are messages.
                let mut bytes = [0; TOKEN_BYTES];
                let count = read_some(quic, &mut bytes[received.len()..])?;
                received.extend_from_slice(&bytes[..count]);
                Ok(match judge_token(received, token) {
                    Progress::Done if write_some(quic, &[WELCOME])? == 0 => Progress::Underway,
                    progress => progress,
                })
            }
        }
    }
}

/// What a client makes of the server's answer so far.
pub(crate) fn judge_answer(answer: &[u8]) -> Progress {
    match answer {
        [] => Progress::Underway,
        [WELCOME] => Progress::Done,
        _ => Progress::Wrong,
    }
}

/// What a server makes of the token so far. One that is too short is not yet wrong.
pub(crate) fn judge_token(received: &[u8], token: &[u8; TOKEN_BYTES]) -> Progress {
    if received.len() < TOKEN_BYTES {
        Progress::Underway
    } else if same(received, token) {
        Progress::Done
    } else {
        Progress::Wrong
    }
}

/// Compares without telling by its duration how many bytes were right.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn write_some(quic: &mut quiche::Connection, bytes: &[u8]) -> quiche::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    match quic.stream_send(STREAM, bytes, false) {
        Err(quiche::Error::Done) => Ok(0),
        outcome => outcome,
    }
}

fn read_some(quic: &mut quiche::Connection, into: &mut [u8]) -> quiche::Result<usize> {
    if into.is_empty() {
        return Ok(0);
    }
    match quic.stream_recv(STREAM, into) {
        Ok((count, _)) => Ok(count),
        // The second: the client has not opened the stream yet.
        Err(quiche::Error::Done | quiche::Error::InvalidStreamState(_)) => Ok(0),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn tokens_are_compared_whole() {
        assert!(same(b"0123", b"0123"));
        assert!(!same(b"0123", b"0124"));
        assert!(!same(b"0123", b"1123"));
        assert!(!same(b"0123", b"012"));
    }
}
