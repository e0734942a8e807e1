// SPDX-License-Identifier: Apache-2.0
//! Structures that a kernel fills (getsockopt(2)), read by field offset.
//!
//! They only ever grow at their end, so an older kernel returns a shorter one and the fields beyond it are left out. Offsets
//! are the ABI of every 64-bit architecture.

use std::os::fd::RawFd;

use netjoule_sockets::socket;

use crate::Values;

/// Report name, offset and width in bytes of a field that goes into the report.
pub type Field = (&'static str, usize, usize);

/// What the kernel said.
#[derive(Debug, Clone)]
pub struct KernelStructure {
    /// Its fields.
    pub fields: &'static [Field],
    /// As many bytes as this kernel has.
    pub bytes: Vec<u8>,
}

impl KernelStructure {
    /// Ask for at most `most_bytes`; `None` when the kernel does not answer.
    pub fn read(
        fd: RawFd,
        (level, option): (i32, i32),
        most_bytes: usize,
        fields: &'static [Field],
    ) -> Option<Self> {
        let mut bytes = vec![0; most_bytes];
        let length = socket::get_option_bytes(fd, level, option, &mut bytes).ok()?;
        bytes.truncate(length);
        Some(Self { fields, bytes })
    }

    /// A field by its report name; `None` when this kernel does not have it.
    pub fn field(&self, name: &str) -> Option<u64> {
        let (_, offset, width) = self.fields.iter().find(|(field, ..)| *field == name)?;
        self.number(*offset, *width)
    }

    /// The number of 1, 4 or 8 bytes at `offset`.
    pub fn number(&self, offset: usize, width: usize) -> Option<u64> {
        let bytes = self.bytes.get(offset..offset + width)?;
        Some(match width {
            1 => bytes[0].into(),
            4 => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        })
    }

    /// Every field that this kernel has, for the report.
    pub fn values(&self) -> Values {
        let value = |name| Some((String::from(name), self.field(name)?.min((1 << 53) - 1).into()));
        self.fields.iter().filter_map(|(name, ..)| value(*name)).collect()
    }
}
