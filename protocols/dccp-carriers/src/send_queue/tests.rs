// SPDX-License-Identifier: Apache-2.0
//! Packets through a send queue into sockets of this process, by every way.

use super::*;
use netjoule_sockets::{datagram, socket};
use socket2::{Domain, Type};
use std::io::Read as _;

fn pair() -> (Socket, Socket) {
    let [one, other] = [(); 2].map(|()| socket::datagram("127.0.0.1:0".parse().unwrap()).unwrap());
    one.connect(&other.local_addr().unwrap()).unwrap();
    (one, other)
}

fn sizes(socket: &Socket) -> Vec<usize> {
    let mut buffer = [0; 2048];
    let next = || datagram::receive_one(socket.as_raw_fd(), &mut buffer).unwrap();
    std::iter::from_fn(next).map(|one| one.length).collect()
}

/// Every way, fresh.
fn ways() -> [SendCall; 3] {
    [SendCall::Single, SendCall::batched(), SendCall::Train]
}

#[test]
fn packets_keep_their_borders_and_order_with_and_without_trains() {
    for way in ways() {
        let (near, far) = pair();
        let name = format!("{way:?}");
        let mut send_queue = SendQueue::new(way, IpVersion::V4);
        let wanted = [16, 16, 16, 24, 24, 12, 1000, 1000, 999, 16];
        for size in wanted {
            send_queue.space().extend(std::iter::repeat_n(0x04, size));
            send_queue.push(&near, size, Ecn::Ect0).unwrap();
        }
        send_queue.flush(&near).unwrap();
        assert_eq!(sizes(&far), wanted, "{name}");
        assert_eq!(
            (send_queue.data_packets, send_queue.data_bytes),
            (10, wanted.iter().sum::<usize>() as u64)
        );
        assert!(send_queue.space().is_empty() && !send_queue.is_blocked());
    }
}

#[test]
fn every_packet_keeps_its_ecn_field() {
    use Ecn::{Ect0, NotEct};
    let wanted =
        [(16, NotEct), (16, Ect0), (1000, Ect0), (1000, Ect0), (1000, NotEct), (1000, Ect0), (16, NotEct)];
    for (address, ip_version) in [("127.0.0.1:0", IpVersion::V4), ("[::1]:0", IpVersion::V6)] {
        for way in ways() {
            let name = format!("{way:?}");
            let [near, far] = [(); 2].map(|()| socket::datagram(address.parse().unwrap()).unwrap());
            near.connect(&far.local_addr().unwrap()).unwrap();
            assert!(ecn::switch_on(&far, ip_version));
            let mut send_queue = SendQueue::new(way, ip_version);
            for (size, field) in wanted {
                send_queue.space().extend(std::iter::repeat_n(0x04, size));
                send_queue.push(&near, size, field).unwrap();
            }
            send_queue.flush(&near).unwrap();
            let mut buffer = [0; 2048];
            let arrived = std::iter::from_fn(|| datagram::receive_one(far.as_raw_fd(), &mut buffer).unwrap());
            let arrived: Vec<_> = arrived.map(|one| (one.length, ecn::field(one.ecn))).collect();
            assert_eq!(arrived, wanted, "{address}, {name}");
        }
    }
}

#[test]
fn long_trains_are_cut() {
    for way in ways() {
        let (near, far) = pair();
        let mut send_queue = SendQueue::new(way, IpVersion::V4);
        for _ in 0..150 {
            send_queue.space().extend([0; 1456]);
            send_queue.push(&near, 1456, Ecn::Ect0).unwrap();
        }
        send_queue.flush(&near).unwrap();
        assert_eq!(sizes(&far), [1456; 150]);
    }
}

#[test]
fn a_train_from_elsewhere_leaves_behind_what_is_waiting() {
    for (way, together) in ways().into_iter().zip([1, 44, 44]) {
        let (near, far) = pair();
        let name = format!("{way:?}");
        let mut send_queue = SendQueue::new(way, IpVersion::V4);
        assert_eq!(send_queue.most_batched(1456), together);
        send_queue.space().extend([0x04; 1480]);
        send_queue.push(&near, 1480, Ecn::Ect0).unwrap();
        send_queue.send_train(&near, &vec![0x04; 1456 * together], 1456, Ecn::Ect0).unwrap();
        let wanted = [&[1480][..], &vec![1456; together]].concat();
        assert_eq!(sizes(&far), wanted, "{name}");
        assert_eq!(send_queue.data_packets, wanted.len() as u64);
        assert_eq!(send_queue.data_bytes, wanted.iter().sum::<usize>() as u64);
    }
}

#[test]
fn a_train_that_a_full_socket_refuses_waits_in_the_queue() {
    // Unlike a UDP socket over loopback, this one says when it is full.
    let (near, far) = Socket::pair(Domain::UNIX, Type::DGRAM, None).unwrap();
    let mut send_queue = SendQueue::new(SendCall::Single, IpVersion::V4);
    let most = 100_000;
    let full = (0..most).find(|_| {
        send_queue.send_train(&near, &[0x04; 1000], 1000, Ecn::NotEct).unwrap();
        send_queue.is_blocked()
    });
    assert!(full.is_some() && send_queue.space().len() == 1000);
    send_queue.send_train(&near, &[0x04; 900], 900, Ecn::NotEct).unwrap();
    assert_eq!((send_queue.refused_packets, send_queue.space().len()), (1, 1000));
    far.recv(&mut [std::mem::MaybeUninit::uninit(); 2000]).unwrap();
    send_queue.flush(&near).unwrap();
    assert!(!send_queue.is_blocked() && send_queue.space().is_empty());
}

/// The kernel takes a part of what leaves together: the rest waits, nothing goes twice.
#[test]
fn what_a_full_socket_leaves_of_a_shared_call_waits_in_order() {
    let (near, far) = Socket::pair(Domain::UNIX, Type::DGRAM, None).unwrap();
    let mut send_queue = SendQueue::new(SendCall::batched(), IpVersion::V4);
    let mut sent = 0_u32;
    while !send_queue.is_blocked() {
        for _ in 0..50 {
            send_queue.space().extend(std::iter::repeat_n(sent.to_be_bytes(), 100).flatten());
            send_queue.push(&near, 400, Ecn::NotEct).unwrap();
            sent += 1;
            if send_queue.is_blocked() {
                break;
            }
        }
        send_queue.flush(&near).unwrap();
        assert!(sent < 100_000, "the socket is never full");
    }
    let mut arrived = Vec::new();
    while arrived.len() < sent as usize {
        let mut packet = [0; 500];
        let length = (&far).read(&mut packet).unwrap();
        assert_eq!(length, 400);
        arrived.push(u32::from_be_bytes(std::array::from_fn(|at| packet[at])));
        send_queue.flush(&near).unwrap();
    }
    assert_eq!(arrived, (0..sent).collect::<Vec<_>>());
    assert!(!send_queue.is_blocked() && send_queue.space().is_empty());
    assert_eq!(send_queue.refused_packets, 0);
}

#[test]
fn an_unconnected_socket_calls_the_destination() {
    let [near, far] = [(); 2].map(|()| socket::datagram("127.0.0.1:0".parse().unwrap()).unwrap());
    let mut send_queue = SendQueue::new(SendCall::Train, IpVersion::V4);
    send_queue.set_destination(far.local_addr().unwrap().as_socket());
    for _ in 0..3 {
        send_queue.space().extend([0; 20]);
        send_queue.push(&near, 20, Ecn::Ect0).unwrap();
    }
    assert_eq!(sizes(&far), [20; 3]);
}
