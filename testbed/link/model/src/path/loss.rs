// SPDX-License-Identifier: Apache-2.0
//! Which packets does chance take? Each with the same probability, on its own.

use super::element::{Dropped, Element, Parcel};
use crate::rng::Rng;
use crate::tally::Tally;

/// Independent loss.
#[derive(Debug)]
pub struct Loss<P> {
    ratio: f64,
    rng: Rng,
    ready: Option<Parcel<P>>,
}

impl<P> Loss<P> {
    /// Loses a packet with probability `ratio`, 0 to 1.
    pub fn new(ratio: f64, rng: Rng) -> Self {
        Self { ratio, rng, ready: None }
    }
}

impl<P> Element<P> for Loss<P> {
    fn enqueue(&mut self, _now_ns: u64, parcel: Parcel<P>) -> Result<(), Dropped> {
        if self.rng.chance(self.ratio) {
            return Err(Dropped::Lost);
        }
        self.ready = Some(parcel);
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.ready.as_ref().map(|_| 0)
    }

    fn advance(&mut self, _now_ns: u64) {}

    fn poll(&mut self) -> Option<Parcel<P>> {
        self.ready.take()
    }

    fn held(&self) -> Tally {
        super::element::tally(&self.ready)
    }

    fn drain(&mut self) -> Vec<Parcel<P>> {
        self.ready.take().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_holds() {
        let mut loss = Loss::new(0.02, Rng::new(1, 1));
        let lost = (0..100_000).filter(|at_ns| {
            let parcel = Parcel { packet: Some(()), ip_bytes: 100 };
            let taken = loss.enqueue(*at_ns, parcel);
            assert_eq!(loss.poll().is_some(), taken.is_ok());
            taken == Err(Dropped::Lost)
        });
        let lost = lost.count();
        assert!((1_850..2_150).contains(&lost), "{lost}");
    }
}
