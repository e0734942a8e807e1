// SPDX-License-Identifier: Apache-2.0
//! The packet types (RFC 4340 section 5.1, RFC 5596 section 2.2.1) and what each may carry.

/// Packet types (RFC 4340 section 5.1). Reserved numbers 11 to 15 do not parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketType {
    /// Client asks for a connection.
    Request = 0,
    /// Server agrees.
    Response = 1,
    /// Application data.
    Data = 2,
    /// Acknowledgement.
    Ack = 3,
    /// Data with an acknowledgement.
    DataAck = 4,
    /// Server asks the client to close.
    CloseReq = 5,
    /// Close, to be answered by Reset.
    Close = 6,
    /// The end.
    Reset = 7,
    /// Resynchronise after loss bursts.
    Sync = 8,
    /// Answer to Sync.
    SyncAck = 9,
    /// Middlebox state for simultaneous open (RFC 5596).
    Listen = 10,
}

/// All of them, each at the place of its number, with their names without "DCCP-".
const ALL: [(PacketType, &str); 11] = [
    (PacketType::Request, "Request"),
    (PacketType::Response, "Response"),
    (PacketType::Data, "Data"),
    (PacketType::Ack, "Ack"),
    (PacketType::DataAck, "DataAck"),
    (PacketType::CloseReq, "CloseReq"),
    (PacketType::Close, "Close"),
    (PacketType::Reset, "Reset"),
    (PacketType::Sync, "Sync"),
    (PacketType::SyncAck, "SyncAck"),
    //= rfc5596#2.2.1
    //# *  Type has the value 10, assigned by IANA to denote a DCCP-Listen
    (PacketType::Listen, "Listen"),
];

impl PacketType {
    /// From the four bits on the wire; `None` for the reserved ones.
    pub fn from_number(number: u8) -> Option<Self> {
        ALL.get(usize::from(number)).map(|(kind, _)| *kind)
    }

    /// Its number on the wire.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Its name without "DCCP-".
    pub const fn name(self) -> &'static str {
        ALL[self as usize].1
    }

    /// Carries application data: Request, Response, Data, DataAck (section 5).
    pub const fn carries_data(self) -> bool {
        matches!(self, Self::Request | Self::Response | Self::Data | Self::DataAck)
    }

    /// Data packet in the sense of congestion control and NDP Count (section 7.7): Data and DataAck, Request, Response
    /// count as data only when they carry some.
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::DataAck)
    }

    /// Has an acknowledgement number: all but Request, Data and Listen.
    pub const fn has_ack(self) -> bool {
        !matches!(self, Self::Request | Self::Data | Self::Listen)
    }

    /// Has a service code: Request, Response, Listen.
    pub const fn has_service_code(self) -> bool {
        matches!(self, Self::Request | Self::Response | Self::Listen)
    }

    /// May have the short form of sequence numbers (X=0).
    pub const fn may_be_short(self) -> bool {
        //= rfc4340#5.2
        //# These packets MAY contain application data and MUST use 48-bit sequence numbers (X=1).
        //= rfc4340#5.3
        //# DCCP-Response packets MAY contain application data and MUST use 48-bit sequence numbers (X=1).
        //= rfc4340#5.5
        //# Both packet types MUST use 48-bit sequence numbers (X=1).
        //= rfc4340#5.6
        //# DCCP-Resets MUST use 48-bit sequence numbers (X=1).
        //= rfc4340#5.7
        //# Both packet types MUST use 48-bit sequence numbers (X=1).
        //= rfc5596#2.2.1
        //# X MUST be 1 (the generic header must be used).
        //= rfc5596#2.2.1
        //# The value of X MUST be set to 1.
        matches!(self, Self::Data | Self::Ack | Self::DataAck)
    }
}
