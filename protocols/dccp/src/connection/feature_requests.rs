// SPDX-License-Identifier: Apache-2.0
//! Which feature values this end wants, and what an agreed value does (RFC 4340 section 6.4, RFC 4341 section 4,
//! RFC 4342 section 4, RFC 6323 section 3).

use super::{Connection, Halves};
use crate::ccid::Ccid;
use crate::feature::table::{MAX_SEQUENCE_WINDOW, MIN_SEQUENCE_WINDOW};
use crate::feature::{Feature, Location, Negotiation};

/// Sequence Window in round trips' worth of packets (section 7.5.2: about five).
const WINDOW_PER_RTT: u64 = 5;
/// Shortest time between looks at the Sequence Window and the Ack Ratio.
const MIN_TUNE_NS: i64 = 1_000_000;

impl Connection {
    /// Client: what the Request asks for.
    pub(super) fn request_as_client(&mut self) {
        let numbers = self.ccid_numbers();
        // Without CCID 2 in the list a peer that knows nothing else must not go on with the default.
        let mandatory = !numbers.contains(&2);
        for location in [Location::Local, Location::Remote] {
            //= rfc4340#10
            //# If this is unacceptable for a DCCP endpoint, that endpoint MUST send Mandatory
            //# Change(CCID) options on its first packets.
            self.features.ask(Feature::Ccid, location, &numbers, mandatory);
        }
        self.request_always();
        if let [only] = self.config.ccids[..] {
            self.request_for_ccids(only, only);
        }
    }

    /// Server: what is acceptable when the Request asks, set before its options are read.
    pub(super) fn accept_as_server(&mut self) {
        let numbers = self.ccid_numbers();
        for location in [Location::Local, Location::Remote] {
            self.features.accept(Feature::Ccid, location, &numbers);
        }
        let ccids = self.config.ccids.clone();
        self.accept_for_ccids(&ccids, &ccids);
    }

    /// What this end can do with one of these CCIDs for the data that it sends, and for the data that it receives.
    fn accept_for_ccids(&mut self, sends: &[Ccid], receives: &[Ccid]) {
        let sends_tfrc = sends.contains(&Ccid::Tfrc);
        let receives_tfrc = receives.contains(&Ccid::Tfrc);
        let receives_tcp_like = receives.contains(&Ccid::TcpLike);
        for (feature, able) in [
            (Feature::SendAckVector, receives_tcp_like),
            (Feature::SendLossEventRate, receives_tfrc),
            (Feature::SendRttEstimate, sends_tfrc),
        ] {
            let list: &[u8] = if able { &[1, 0] } else { &[0] };
            self.features.accept(feature, Location::Local, list);
        }
    }

    /// Server: what the Response asks for, once the Request's options are read.
    pub(super) fn request_as_server(&mut self) {
        let numbers = self.ccid_numbers();
        for location in [Location::Local, Location::Remote] {
            let value = self.features.value(Feature::Ccid, location);
            if !numbers.contains(&(value as u8)) {
                //= rfc4340#10.3
                //# (Such a server MUST send Mandatory Change(CCID) options on its DCCP-Response, so CCID-specific options on any
                //# other packet won't refer to CCID 2.)
                self.features.ask(Feature::Ccid, location, &numbers, true);
            }
        }
        self.request_always();
        if let (Some(sends), Some(receives)) =
            (self.likely_ccid(Location::Local), self.likely_ccid(Location::Remote))
        {
            self.request_for_ccids(sends, receives);
        }
    }

    /// The CCID agreed, or, while it is being negotiated, the first choice.
    fn likely_ccid(&self, location: Location) -> Option<Ccid> {
        if self.features.is_settled(Feature::Ccid, location) {
            Ccid::from_number(self.features.value(Feature::Ccid, location) as u8)
        } else {
            self.config.ccids.first().copied()
        }
    }

    fn ccid_numbers(&self) -> Vec<u8> {
        let mut numbers: Vec<u8> = self.config.ccids.iter().map(|ccid| ccid.number()).collect();
        if numbers.is_empty() {
            numbers.push(Ccid::TcpLike.number());
        }
        numbers
    }

    /// Requests that do not hang on the CCID.
    fn request_always(&mut self) {
        //= rfc4340#12.1
        //# DCCP A MUST be able to read ECN bits from received frames' IP headers when ECN Incapable/A is
        //# zero.
        if !self.config.ecn {
            //= rfc4340#12.1
            //# If a DCCP is not ECN capable, it MUST send Mandatory "Change L(ECN Incapable, 1)" options to the other endpoint until
            //# acknowledged (by "Confirm R(ECN Incapable, 1)") or the connection closes.
            self.ask_unless(Feature::EcnIncapable, Location::Local, 1, true);
        }
        let window = self.config.sequence_window.clamp(MIN_SEQUENCE_WINDOW, MAX_SEQUENCE_WINDOW);
        self.features.tell(Feature::SequenceWindow, window);
        let coverage = self.config.checksum_coverage.min(15);
        if coverage > 0 {
            self.features.ask(Feature::MinChecksumCoverage, Location::Remote, &[coverage, 0], false);
        }
    }

    /// Requests that follow from the CCID of the data sent from here and of the data received here.
    fn request_for_ccids(&mut self, sends: Ccid, receives: Ccid) {
        let sender = sends.requirements();
        if sender.send_ack_vector {
            self.ask_unless(Feature::SendAckVector, Location::Remote, 1, true);
        }
        if sender.send_ndp_count {
            self.ask_unless(Feature::SendNdpCount, Location::Local, 1, false);
        }
        if sender.send_loss_event_rate {
            self.ask_unless(Feature::SendLossEventRate, Location::Remote, 1, false);
        }
        let receiver = receives.requirements();
        if receiver.send_ndp_count {
            self.ask_unless(Feature::SendNdpCount, Location::Remote, 1, false);
        }
        if receives == Ccid::Tfrc {
            self.ask_unless(Feature::SendRttEstimate, Location::Remote, 1, false);
        }
    }

    /// Ask for a Boolean feature unless it has the value already, or is being asked for.
    fn ask_unless(&mut self, feature: Feature, location: Location, value: u8, mandatory: bool) {
        let settled = self.features.is_settled(feature, location);
        if settled && self.features.value(feature, location) != u64::from(value) {
            let list: &[u8] = if mandatory { &[value] } else { &[value, 1 - value] };
            self.features.ask(feature, location, list, mandatory);
        }
    }

    /// Put agreed values to work.
    pub(super) fn apply_features(&mut self) {
        if !self.features.take_changed() {
            return;
        }
        let window = self.features.value(Feature::SequenceWindow, Location::Local);
        // An acknowledgement may be as old as this end has said, whether or not the peer has confirmed it.
        self.sequence.window_sent = window.max(self.features.told(Feature::SequenceWindow));
        self.sequence.window_received = self.features.value(Feature::SequenceWindow, Location::Remote);
        let ratio = self.features.value(Feature::AckRatio, Location::Remote);
        if let Some(halves) = &mut self.halves {
            halves.sender.set_sequence_window(window);
            halves.receiver.set_ack_ratio(ratio as u16);
            tell_options(&self.features, halves);
        }
        self.timers.settle_features(&self.features);
    }

    /// Start congestion control as soon as both CCIDs are agreed; true once it runs.
    pub(super) fn start_halves(&mut self, now_ns: i64) -> bool {
        if self.halves.is_some() {
            return true;
        }
        let settled = |location| self.features.is_settled(Feature::Ccid, location);
        if !settled(Location::Local) || !settled(Location::Remote) {
            return false;
        }
        let agreed = |location| {
            Ccid::from_number(self.features.value(Feature::Ccid, location) as u8).unwrap_or(Ccid::TcpLike)
        };
        let (sends, receives) = (agreed(Location::Local), agreed(Location::Remote));
        let first = self.sequence.gss.add(1);
        let segment_bytes = self.max_payload_bytes();
        let mut sender = (self.ccids.sender)(sends, now_ns, first, segment_bytes);
        let mut receiver = (self.ccids.receiver)(receives, now_ns);
        sender.set_sequence_window(self.sequence.window_sent);
        let ratio = self.features.value(Feature::AckRatio, Location::Remote);
        receiver.set_ack_ratio(ratio as u16);
        if let Some(rtt_ns) = self.handshake_rtt_ns {
            sender.set_initial_rtt(rtt_ns);
            receiver.set_initial_rtt(rtt_ns);
        }
        let mut halves = Halves { sender, receiver };
        tell_options(&self.features, &mut halves);
        self.halves = Some(halves);
        self.accept_for_ccids(&[sends], &[receives]);
        self.request_for_ccids(sends, receives);
        // No changes of the CCID later on (section 10.5: endpoints MAY refuse).
        for (location, ccid) in [(Location::Local, sends), (Location::Remote, receives)] {
            self.features.accept(Feature::Ccid, location, &[ccid.number()]);
        }
        true
    }

    //= rfc4340#7.5.2
    //# Endpoints SHOULD send Change L(Sequence Window) options, as necessary, as the connection progresses.
    //= rfc4340#7.5.2
    //# Also, an endpoint MUST NOT persistently send more than its Sequence Window number of packets per round-trip time; that
    //# is, DCCP A MUST NOT persistently send more than Sequence Window/A packets per RTT.
    /// Follow the speed: Sequence Window at about five round trips' worth of packets, looked at once per round trip.
    pub(super) fn tune_features(&mut self, now_ns: i64) {
        self.tune_ack_ratio();
        if now_ns < self.timers.tune_ns || !self.state.is_established() {
            return;
        }
        self.timers.tune_ns = now_ns.saturating_add(self.timer_rtt_ns().max(MIN_TUNE_NS));
        let Some(halves) = &self.halves else { return };
        let flight = halves.sender.packets_per_rtt();
        let told = self.features.told(Feature::SequenceWindow);
        let wanted = flight.saturating_mul(WINDOW_PER_RTT);
        if wanted > told {
            // Twice what is needed now: slow start doubles with every round trip.
            let window = wanted.saturating_mul(2).min(MAX_SEQUENCE_WINDOW);
            self.features.tell(Feature::SequenceWindow, window);
            self.sequence.window_sent = self.sequence.window_sent.max(window);
        }
    }

    /// The peer hears of another Ack Ratio with the next acknowledgement.
    fn tune_ack_ratio(&mut self) {
        let wanted = self.halves.as_ref().and_then(|halves| halves.sender.wanted_ack_ratio());
        if let Some(ratio) = wanted {
            self.features.tell(Feature::AckRatio, u64::from(ratio));
        }
    }

    /// ECN field for packets of an established connection.
    pub(super) fn ecn_field(&self) -> crate::ccid::Ecn {
        //= rfc4340#12.1
        //# If the ECN Incapable/A feature is one, then all of DCCP B's packets MUST be sent as ECN incapable.
        //= rfc4340#12.2
        //# an endpoint sending packets to an ECN-incapable receiver MUST send its packets as ECN
        //# incapable
        if self.config.ecn && self.features.value(Feature::EcnIncapable, Location::Remote) != 1 {
            crate::ccid::Ecn::Ect0
        } else {
            crate::ccid::Ecn::NotEct
        }
    }

    //= rfc4340#12.1
    //# Furthermore, it MUST NOT accept any data until the other endpoint sends "Confirm R(ECN Incapable, 1)".
    /// Data of the peer may be delivered.
    pub(super) fn accepts_data(&self) -> bool {
        self.config.ecn || self.features.value(Feature::EcnIncapable, Location::Local) == 1
    }

    /// CsCov for a payload of this size: what was configured, if the peer accepts it.
    pub(super) fn coverage(&self, payload_bytes: usize) -> u8 {
        let coverage = self.config.checksum_coverage.min(15);
        if coverage == 0 {
            return 0;
        }
        let least = self.features.value(Feature::MinChecksumCoverage, Location::Remote);
        let accepted = least > 0 && u64::from(coverage) >= least;
        //= rfc4340#9.2
        //# The value (CsCov-1)*4 MUST be less than or equal to the length of the application data.
        if accepted && usize::from(coverage - 1) * 4 <= payload_bytes {
            coverage
        } else {
            0
        }
    }
}

/// Tell congestion control which of its options were agreed.
fn tell_options(features: &Negotiation, halves: &mut Halves) {
    let on = |feature, location| features.value(feature, location) == 1;
    halves.sender.set_rtt_estimate_feature(on(Feature::SendRttEstimate, Location::Local));
    halves.receiver.set_rtt_estimate_feature(on(Feature::SendRttEstimate, Location::Remote));
    if features.is_settled(Feature::SendLossEventRate, Location::Local) {
        halves.receiver.set_loss_event_rate_feature(on(Feature::SendLossEventRate, Location::Local));
    }
}
