// SPDX-License-Identifier: Apache-2.0
//! What can somebody do who is not the peer, or a peer who lies?
//!
//! Sequence-invalid packets change nothing and cause at most 8 Syncs a second; a server answers each Request once and with
//! no more than three times its bytes; floods cost bounded memory; blind packets do not end or feed a connection; absurd
//! options and acknowledgements neither crash nor speed up a sender.

mod floods;
mod intruders;
mod liars;
mod memory;
mod pair;
mod tyrants;

use netjoule_dccp::ccid::Ccid;
use netjoule_dccp::options::DccpOption;
use netjoule_dccp::PacketType;

use pair::{option_bytes, Forgery, Side};

const BOTH: [Ccid; 2] = [Ccid::TcpLike, Ccid::Tfrc];
const SIDES: [Side; 2] = [Side::Client, Side::Server];
/// Far outside every window, ahead and behind.
const FAR: [i64; 2] = [1 << 40, -(1 << 40)];

/// Types that an open connection judges by their numbers.
const JUDGED: [PacketType; 6] = [
    PacketType::Data,
    PacketType::Ack,
    PacketType::DataAck,
    PacketType::CloseReq,
    PacketType::Close,
    PacketType::Reset,
];

fn forgery<'a>(kind: PacketType, seq: i64, ack: i64) -> Forgery<'a> {
    let payload: &[u8] = if kind.carries_data() { b"forged" } else { b"" };
    Forgery { kind, seq, ack, options: &[], payload }
}

/// Options that would do something if they were read.
fn tempting_options() -> Vec<u8> {
    option_bytes(&[
        DccpOption::SlowReceiver,
        DccpOption::ChangeL { feature: 3, value: &[0, 0, 0, 0, 0, 33] },
        DccpOption::ConfirmR { feature: 3, value: &[0, 0, 0, 0, 0, 33] },
        DccpOption::AckVector { nonce: false, vector: &[0x3f, 0xff, 0x80] },
        DccpOption::ElapsedTime(77),
        DccpOption::ReceiveRate(1),
        DccpOption::Mandatory,
        DccpOption::Unknown { kind: 99, contents: &[1, 2, 3] },
    ])
}
