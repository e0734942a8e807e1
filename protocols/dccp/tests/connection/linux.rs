// SPDX-License-Identifier: Apache-2.0
//! Packets that Linux really sent (captures of samueljero/dccp2tcp), as input to our ends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_dccp::ccid::{Ccid, Ecn};
use netjoule_dccp::connection::{Carriage, Config};
use netjoule_dccp::listener::Verdict;
use netjoule_dccp::options::DccpOption;
use netjoule_dccp::packet::WireSeq;
use netjoule_dccp::{Connection, Listener, Packet, PacketType, Seq48, State};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(132, 235, 3, 166));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(132, 235, 3, 42));
const PERF: u32 = 0x5045_5246;
const REQUEST: &str =
    "de4f13890c00b12c01008fb23949cc1f504552460000290664eb25142005010203220501020301200402000120040401";
const RESPONSE: &str = "1389de4f150081d00300f22ced9fa7c000008fb23949cc1f504552462a0864eb25140002290648cfef50210601020203230601020203012004020023050200000120040401230504010101200406010122040601";
const ISS: u64 = 0x8fb2_3949_cc1f;
const MS: i64 = 1_000_000;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

/// The kernel's Request gets a Response that answers every Change in it.
#[test]
fn a_request_of_linux_is_answered() {
    let config = Config {
        carriage: Carriage::Ip { local: SERVER, remote: SERVER },
        local_port: 5001,
        ccids: vec![Ccid::TcpLike, Ccid::Tfrc],
        ..Config::default()
    };
    let mut listener = Listener::new(config, vec![PERF], 4, [1; 16]);
    let peer = SocketAddr::new(CLIENT, 56_911);
    let verdict = listener.handle(0, Ecn::NotEct, peer, &bytes(REQUEST), &mut || 77);
    let Verdict::Reply(reply) = verdict else {
        panic!("{verdict:?}");
    };
    assert!(netjoule_dccp::checksum::verify(SERVER, CLIENT, &reply));
    let packet = Packet::parse(&reply).expect("ours");
    assert_eq!(packet.kind, PacketType::Response);
    assert_eq!(packet.service_code, Some(PERF));
    assert_eq!(packet.ack, Some(WireSeq::Long(Seq48::new(ISS))));
    let options: Vec<_> = packet.options().collect();
    let (both, zero, one): (&[u8], &[u8], &[u8]) = (&[2, 2, 3], &[0, 0, 1], &[1, 0, 1]);
    for expected in [
        DccpOption::ConfirmR { feature: 1, value: both },
        DccpOption::ConfirmL { feature: 1, value: both },
        DccpOption::ConfirmR { feature: 2, value: zero },
        DccpOption::ConfirmR { feature: 4, value: one },
        DccpOption::TimestampEcho { echo: 0x64eb_2514, elapsed: 0 },
    ] {
        assert!(options.contains(&expected), "{expected:?} in {options:?}");
    }
}

/// The kernel's Response takes our client to PARTOPEN; its Ack answers every Change.
#[test]
fn a_response_of_linux_is_taken() {
    let config = Config {
        carriage: Carriage::Ip { local: CLIENT, remote: SERVER },
        local_port: 56_911,
        remote_port: 5001,
        service_code: PERF,
        ccids: vec![Ccid::TcpLike, Ccid::Tfrc],
        ..Config::default()
    };
    let mut client = Connection::connect(config, 0, &mut || ISS);
    let mut out = Vec::new();
    client.poll_transmit(0, &mut out).expect("a Request");
    client.handle(2 * MS, Ecn::NotEct, &bytes(RESPONSE));
    assert_eq!(client.state(), State::PartOpen);
    assert_eq!(client.ccids(), Some((Ccid::TcpLike, Ccid::TcpLike)));
    out.clear();
    client.poll_transmit(2 * MS, &mut out).expect("an Ack");
    let packet = Packet::parse(&out).expect("ours");
    assert_eq!(packet.kind, PacketType::Ack);
    assert_eq!(packet.ack, Some(WireSeq::Long(Seq48::new(0xf22c_ed9f_a7c0))));
    let options: Vec<_> = packet.options().collect();
    for (left, feature, selected) in [(false, 2, 0), (false, 4, 1), (false, 6, 1), (true, 6, 1)] {
        let found = options.iter().any(|option| match *option {
            DccpOption::ConfirmL { feature: f, value } => left && f == feature && value[0] == selected,
            DccpOption::ConfirmR { feature: f, value } => !left && f == feature && value[0] == selected,
            _ => false,
        });
        assert!(found, "{feature} {selected} in {options:?}");
    }
    let echo = DccpOption::TimestampEcho { echo: 0x48cf_ef50, elapsed: 0 };
    assert!(options.contains(&echo), "{options:?}");
}
