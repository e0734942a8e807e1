// SPDX-License-Identifier: Apache-2.0
//! Where arrival times came from, among a transport's statistics.

use netjoule_sockets::timestamps::TimestampCounts;

use crate::Values;

/// Name of [`TimestampCounts::kernel`] among a transport's statistics.
pub const KERNEL_STAMPS: &str = "arrivals_stamped_by_kernel";
/// Name of [`TimestampCounts::read`].
pub const READ_STAMPS: &str = "arrivals_stamped_when_read";

/// Put the counts among a transport's statistics, under the names that the engine looks for.
pub fn report(counts: TimestampCounts, values: &mut Values) {
    values.insert(KERNEL_STAMPS.into(), counts.kernel.into());
    values.insert(READ_STAMPS.into(), counts.read.into());
    values.insert("wall_clock_steps".into(), counts.clock_steps.into());
}
