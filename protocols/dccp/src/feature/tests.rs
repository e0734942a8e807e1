// SPDX-License-Identifier: Apache-2.0
//! Two ends that negotiate, option by option.

use super::negotiation::Write;
use super::{Feature, Location, Negotiation, Role, Speech};
use crate::ccid::Violation;
use crate::options::{DccpOption, OptionIter};
use crate::reset::ResetCode;
use crate::seqno::Seq48;

const ALL_OPTIONS: Write = Write { answers: true, keep_answers: false, repeats: false, room_bytes: 500 };

fn end(role: Role) -> Negotiation {
    let mut end = Negotiation::new(role, Seq48::new(100));
    end.set_first_received(Seq48::new(100));
    end
}

/// Options of `from` on a packet numbered `seq`, taken by `to`.
fn carry(from: &mut Negotiation, to: &mut Negotiation, seq: u64, ack: u64) -> Result<usize, Violation> {
    let mut bytes = Vec::new();
    from.put_options(Seq48::new(seq), ALL_OPTIONS, &mut bytes);
    let (mut mandatory, mut count) = (false, 0);
    for option in OptionIter::new(&bytes) {
        let (speech, about) = match option {
            DccpOption::Mandatory => {
                mandatory = true;
                continue;
            }
            DccpOption::ChangeL { feature, value } => (Speech::Change(Location::Remote), (feature, value)),
            DccpOption::ChangeR { feature, value } => (Speech::Change(Location::Local), (feature, value)),
            DccpOption::ConfirmL { feature, value } => (Speech::Confirm(Location::Remote), (feature, value)),
            DccpOption::ConfirmR { feature, value } => (Speech::Confirm(Location::Local), (feature, value)),
            other => panic!("{other:?}"),
        };
        to.on_option(speech, about, mandatory, Seq48::new(seq), Some(Seq48::new(ack)))?;
        mandatory = false;
        count += 1;
    }
    to.end_of_packet(Seq48::new(seq));
    Ok(count)
}

fn take(end: &mut Negotiation, speech: Speech, option: (u8, &[u8]), seq: u64) -> Result<(), Violation> {
    end.on_option(speech, option, false, Seq48::new(seq), Some(Seq48::new(100)))
}

fn written(end: &mut Negotiation, seq: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    end.put_options(Seq48::new(seq), ALL_OPTIONS, &mut bytes);
    bytes
}

/// Section 6.5: the server's first choice that the client has too.
#[test]
fn the_servers_list_rules() {
    let (mut client, mut server) = (end(Role::Client), end(Role::Server));
    client.ask(Feature::Ccid, Location::Remote, &[2, 3, 1], false);
    server.accept(Feature::Ccid, Location::Local, &[3, 2, 1]);
    assert_eq!(carry(&mut client, &mut server, 100, 100), Ok(1));
    assert_eq!(server.value(Feature::Ccid, Location::Local), 3);
    assert_eq!(client.value(Feature::Ccid, Location::Remote), 2, "not before the Confirm");
    assert_eq!(written(&mut server.clone(), 101), [33, 7, 1, 3, 3, 2, 1]);
    assert_eq!(carry(&mut server, &mut client, 101, 100), Ok(1));
    assert_eq!(client.value(Feature::Ccid, Location::Remote), 3);
    assert!(client.is_settled(Feature::Ccid, Location::Remote));
    assert!(written(&mut client, 102).is_empty() && written(&mut server, 102).is_empty());
}

#[test]
fn without_a_shared_entry_the_value_stays() {
    let (mut client, mut server) = (end(Role::Client), end(Role::Server));
    client.ask(Feature::Ccid, Location::Local, &[3], false);
    server.accept(Feature::Ccid, Location::Remote, &[2]);
    assert_eq!(carry(&mut client, &mut server, 100, 100), Ok(1));
    assert_eq!(carry(&mut server, &mut client, 101, 100), Ok(1));
    assert_eq!(client.value(Feature::Ccid, Location::Local), 2);
    client.ask(Feature::Ccid, Location::Local, &[3], true);
    let failure = carry(&mut client, &mut server, 102, 102);
    assert_eq!(failure, Err(Violation { code: ResetCode::MandatoryError, data: [32, 1, 3] }));
}

#[test]
fn a_simultaneous_negotiation_agrees() {
    let (mut client, mut server) = (end(Role::Client), end(Role::Server));
    client.ask(Feature::Ccid, Location::Remote, &[2, 3], false);
    server.ask(Feature::Ccid, Location::Local, &[3, 2], false);
    let mut to_client = Vec::new();
    server.put_options(Seq48::new(100), ALL_OPTIONS, &mut to_client);
    assert_eq!(to_client, [32, 5, 1, 3, 2]);
    assert_eq!(carry(&mut client, &mut server, 101, 100), Ok(1));
    take(&mut client, Speech::Change(Location::Remote), (1, &[3, 2]), 100).expect("valid");
    client.end_of_packet(Seq48::new(100));
    assert_eq!(carry(&mut server, &mut client, 102, 101), Ok(1));
    assert_eq!(client.value(Feature::Ccid, Location::Remote), 3);
    assert_eq!(server.value(Feature::Ccid, Location::Local), 3);
}

#[test]
fn non_negotiable_values_are_told_and_taken() {
    let (mut client, mut server) = (end(Role::Client), end(Role::Server));
    client.tell(Feature::SequenceWindow, 1024);
    assert_eq!(written(&mut client.clone(), 100), [32, 9, 3, 0, 0, 0, 0, 4, 0]);
    assert_eq!(carry(&mut client, &mut server, 100, 100), Ok(1));
    assert_eq!(server.value(Feature::SequenceWindow, Location::Remote), 1024);
    assert_eq!(carry(&mut server, &mut client, 101, 100), Ok(1));
    assert_eq!(client.value(Feature::SequenceWindow, Location::Local), 1024);
    // Invalid values and Change R get an empty Confirm.
    take(&mut server, Speech::Change(Location::Remote), (3, &[0, 0, 0, 0, 0, 1]), 102).expect("no Reset");
    assert_eq!(written(&mut server, 103), [35, 3, 3]);
    server.end_of_packet(Seq48::new(102));
    take(&mut server, Speech::Change(Location::Local), (3, &[0, 0, 0, 0, 4, 0]), 104).expect("no Reset");
    assert_eq!(written(&mut server, 105), [33, 3, 3]);
    assert_eq!(server.value(Feature::SequenceWindow, Location::Remote), 1024);
}

/// A request that changes while a Change is under way: the old Confirm does not count.
#[test]
fn unstable_waits_for_the_newest_confirm() {
    let (mut client, mut server) = (end(Role::Client), end(Role::Server));
    client.tell(Feature::SequenceWindow, 1000);
    assert_eq!(carry(&mut client, &mut server, 100, 100), Ok(1));
    client.tell(Feature::SequenceWindow, 2000);
    assert_eq!(carry(&mut server, &mut client, 101, 100), Ok(1));
    assert_eq!(client.value(Feature::SequenceWindow, Location::Local), 100, "UNSTABLE ignores");
    assert_eq!(carry(&mut client, &mut server, 102, 101), Ok(1));
    let late = [0, 0, 0, 0, 3, 0xe8];
    take(&mut client, Speech::Confirm(Location::Local), (3, &late), 103).expect("older than FGSS: ignored");
    client.end_of_packet(Seq48::new(103));
    assert_eq!(carry(&mut server, &mut client, 104, 102), Ok(1));
    assert_eq!(client.value(Feature::SequenceWindow, Location::Local), 2000);
}

/// The packet with the newest Change is lost, a later one arrives, and only then the first Change is answered.
#[test]
fn a_late_confirm_of_an_earlier_value_is_no_error() {
    let (mut client, mut server) = (end(Role::Client), end(Role::Server));
    client.tell(Feature::SequenceWindow, 1000);
    assert_eq!(carry(&mut client, &mut server, 100, 100), Ok(1));
    client.tell(Feature::SequenceWindow, 2000);
    assert!(!written(&mut client, 102).is_empty());
    assert_eq!(carry(&mut server, &mut client, 101, 103), Ok(1));
    assert_eq!(client.value(Feature::SequenceWindow, Location::Local), 100);
    assert!(client.has_open_changes());
    let newest = [0, 0, 0, 0, 7, 0xd0];
    let confirm = |client: &mut Negotiation, value: &[u8], seq: u64| {
        client.on_option(
            Speech::Confirm(Location::Local),
            (3, value),
            false,
            Seq48::new(seq),
            Some(Seq48::new(104)),
        )
    };
    confirm(&mut client, &newest, 102).expect("right");
    assert_eq!(client.value(Feature::SequenceWindow, Location::Local), 2000);
    // Told once only, another value is an error.
    client.tell(Feature::SequenceWindow, 3000);
    written(&mut client, 105);
    let wrong = client.on_option(
        Speech::Confirm(Location::Local),
        (3, &newest),
        false,
        Seq48::new(106),
        Some(Seq48::new(105)),
    );
    assert_eq!(wrong.map_err(|violation| violation.code), Err(ResetCode::OptionError));
}

#[test]
fn confirms_that_are_wrong_reset() {
    let mut client = end(Role::Client);
    client.ask(Feature::SendNdpCount, Location::Local, &[1], false);
    client.tell(Feature::SequenceWindow, 1000);
    written(&mut client, 100);
    let confirm = Speech::Confirm(Location::Local);
    for (number, value) in [(7, &[0, 1, 0][..]), (7, &[1, 0]), (3, &[0, 0, 0, 0, 0, 99]), (3, &[1]), (3, &[])]
    {
        let failure = take(&mut client.clone(), confirm, (number, value), 101);
        assert_eq!(
            failure.map_err(|violation| violation.code),
            Err(ResetCode::OptionError),
            "{number} {value:?}"
        );
    }
    // An empty Confirm of a feature that need not be understood leaves it as it was.
    take(&mut client, confirm, (7, &[]), 101).expect("no Reset");
    assert_eq!(client.value(Feature::SendNdpCount, Location::Local), 0);
    assert!(client.is_settled(Feature::SendNdpCount, Location::Local));
    // Nor is the peer asked again.
    client.ask(Feature::SendNdpCount, Location::Local, &[1, 0], false);
    assert!(
        client.is_settled(Feature::SendNdpCount, Location::Local) && written(&mut client, 102).is_empty()
    );
}

#[test]
fn unknown_features_get_an_empty_confirm_once_and_are_bounded() {
    let mut server = end(Role::Server);
    for number in 20..120 {
        take(&mut server, Speech::Change(Location::Remote), (number, &[1]), 101).expect("no Reset");
    }
    let bytes = written(&mut server, 102);
    assert_eq!(bytes.len(), 16 * 3);
    assert_eq!(bytes[..6], [35, 3, 20, 35, 3, 21]);
    assert!(written(&mut server, 103).is_empty());
    take(&mut server, Speech::Confirm(Location::Remote), (77, &[1]), 104).expect("ignored");
}

#[test]
fn options_out_of_order_are_ignored() {
    let mut server = end(Role::Server);
    let change = Speech::Change(Location::Remote);
    take(&mut server, change, (5, &[0, 4]), 105).expect("valid");
    server.end_of_packet(Seq48::new(105));
    take(&mut server, change, (5, &[0, 9]), 104).expect("ignored");
    take(&mut server, change, (5, &[0, 9]), 105).expect("ignored");
    assert_eq!(server.value(Feature::AckRatio, Location::Remote), 4);
    // Erratum 974: after half the circle of numbers, FGSR is not taken for the future.
    let mut far = Seq48::new(105);
    for _ in 0..4 {
        far = far.add(1 << 45);
        server.clamp(far, far);
    }
    server.on_option(change, (5, &[0, 7]), false, far.add(1), None).expect("valid");
    assert_eq!(server.value(Feature::AckRatio, Location::Remote), 7);
}

#[test]
fn room_is_kept_and_what_did_not_fit_comes_later() {
    let mut client = end(Role::Client);
    client.tell(Feature::SequenceWindow, 1000);
    client.ask(Feature::EcnIncapable, Location::Local, &[1], true);
    let narrow = Write { room_bytes: 6, ..ALL_OPTIONS };
    let mut bytes = Vec::new();
    client.put_options(Seq48::new(100), narrow, &mut bytes);
    assert!(!bytes.is_empty());
    assert_eq!(bytes, [1, 32, 4, 4, 1]);
    assert!(client.has_new_changes() && client.has_open_changes());
    assert_eq!(written(&mut client, 101), [32, 9, 3, 0, 0, 0, 0, 3, 0xe8]);
}
