// SPDX-License-Identifier: Apache-2.0
//! What do the configured parameters of a path's element come to in the model?

use serde::{Deserialize, Serialize};

use super::bursts::BurstParams;
use super::serialiser::QueueLimit;
use super::sleeper::SleepParams;
use super::{Acts, ElementParams, Service};
use crate::range::{within, ParameterError};
use crate::scaling::fixed::FixedParams;
use crate::scaling::practra::PractRaParams;
use crate::scaling::varying::VaryingParams;

const MTU_BYTES: u64 = 1500;
/// Equal steps of the rate set, where none is given.
const STEPS: u32 = 10;
/// Of the time that a full queue takes at the highest rate, where no delay limit is given.
const DELAY_LIMIT_SHARE: f64 = 0.9;
/// So long the first of several packets waits for the others, where no time is given.
const COLLECT_US: f64 = 1000.0;
/// Of a rate that may be in use under `headroom`, where none is given.
const UTILISATION: f64 = 0.95;

/// One element of a path; names, units and ranges as in link_config.schema.json.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ElementConfig {
    /// One-way delay, ms.
    pub delay_ms: f64,
    /// Rate, Mb/s of IP bytes; `None` or 0 = not limited.
    pub rate_mbps: Option<f64>,
    /// Share of packets lost.
    pub loss_ratio: f64,
    /// Packets that wait for the rate or are being sent.
    pub queue_packets: usize,
    /// Bytes of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// In which direction `bursts`, `varying` and `scaling` act; in the other one the element has its highest rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Acts>,
    /// Other traffic that enters here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bursts: Option<BurstsConfig>,
    /// A rate that chance changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub varying: Option<VaryingConfig>,
    /// A rate that the element sets itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<ScalingConfig>,
}

impl Default for ElementConfig {
    fn default() -> Self {
        Self {
            delay_ms: 0.0,
            rate_mbps: None,
            loss_ratio: 0.0,
            queue_packets: 1000,
            queue_bytes: None,
            direction: None,
            bursts: None,
            varying: None,
            scaling: None,
        }
    }
}

/// Bursts of other traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstsConfig {
    mean_burst_ms: f64,
    cycle_ms: f64,
    rate_mbps: f64,
}

/// A rate that chance changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaryingConfig {
    min_rate_mbps: f64,
    max_rate_mbps: f64,
    mean_interval_ms: f64,
}

/// How an element scales its rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ScalingConfig {
    /// Always the highest rate; its record is kept.
    None,
    /// One rate below the highest.
    Fixed {
        /// That rate.
        rate_mbps: f64,
    },
    /// [`super::sleeper`].
    Sleep {
        /// To fall asleep.
        sleep_us: f64,
        /// To wake up.
        wake_us: f64,
        /// It wakes for so many packets; 1 unless told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        collect_packets: Option<usize>,
        /// Or when the first has waited so long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        collect_us: Option<f64>,
    },
    /// [`crate::scaling::practra`].
    Practra(PractraConfig),
    /// Its variant that rises before a queue is there.
    Headroom(PractraConfig),
}

/// Settings of practRA and of `headroom`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PractraConfig {
    /// Minimum rate change interval.
    pub interval_ms: f64,
    /// Ten equal steps up to the element's rate unless told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates_mbps: Vec<f64>,
    /// 0.25 unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// `interval_ms` unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<f64>,
    /// 1 ms unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_ms: Option<f64>,
    /// 0.9 of what a full queue takes at the highest rate unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_limit_ms: Option<f64>,
    /// The same as a share of what a full queue takes; of both the tighter one counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_limit_ratio: Option<f64>,
    /// Until the first tick; drawn from the seed unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_ms: Option<f64>,
    /// Of `headroom` alone; 0.95 unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
}

impl ElementConfig {
    /// The model's parameters.
    ///
    /// # Errors
    /// [`ParameterError`] names the value that cannot be.
    pub fn params(&self) -> Result<ElementParams, ParameterError> {
        let queue = QueueLimit {
            packets: within("queue_packets", self.queue_packets, 1..=100_000)?,
            bytes: within("queue_bytes", self.queue_bytes.unwrap_or(u64::MAX), MTU_BYTES..=u64::MAX)?,
        };
        Ok(ElementParams {
            delay_ns: ns("delay_ms", self.delay_ms, 0.0..=10_000.0)?,
            service: self.service(queue)?,
            loss_ratio: within("loss_ratio", self.loss_ratio, 0.0..=1.0)?,
            queue,
            bursts: self.bursts.as_ref().map(BurstsConfig::params).transpose()?,
            acts: self.direction.unwrap_or_default(),
        })
    }

    fn service(&self, queue: QueueLimit) -> Result<Service, ParameterError> {
        let rate_mbps = self.rate_mbps.filter(|rate_mbps| *rate_mbps != 0.0);
        let rate_mbps = rate_mbps.map(|mbps| rate("rate_mbps", mbps)).transpose()?;
        match (&self.varying, &self.scaling, rate_mbps) {
            (None, None, None) => Ok(Service::Unlimited),
            (None, None, Some(rate_mbps)) => Ok(Service::Fixed(rate_mbps)),
            (Some(varying), None, None) => varying.params().map(Service::Varying),
            (None, Some(scaling), Some(rate_mbps)) => scaling.service(rate_mbps, queue),
            (None, Some(_), None) => {
                Err(ParameterError("scaling needs rate_mbps, the highest rate of the element".to_owned()))
            }
            (Some(_), ..) => Err(ParameterError(
                "varying says the rate: give no rate_mbps and no scaling beside it".to_owned(),
            )),
        }
    }
}

impl BurstsConfig {
    fn params(&self) -> Result<BurstParams, ParameterError> {
        let cycle_ns = ns("bursts.cycle_ms", self.cycle_ms, 1.0..=3_600_000.0)?;
        Ok(BurstParams {
            mean_burst_ns: ns("bursts.mean_burst_ms", self.mean_burst_ms, 0.001..=self.cycle_ms)?,
            cycle_ns,
            rate_mbps: rate("bursts.rate_mbps", self.rate_mbps)?,
            ip_bytes: MTU_BYTES as u32,
        })
    }
}

impl VaryingConfig {
    fn params(&self) -> Result<VaryingParams, ParameterError> {
        let max_rate_mbps = rate("varying.max_rate_mbps", self.max_rate_mbps)?;
        Ok(VaryingParams {
            min_rate_mbps: within("varying.min_rate_mbps", self.min_rate_mbps, 0.001..=max_rate_mbps)?,
            max_rate_mbps,
            mean_interval_ns: ns("varying.mean_interval_ms", self.mean_interval_ms, 0.1..=3_600_000.0)?,
        })
    }
}

impl ScalingConfig {
    /// Its kind, as it is written.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fixed { .. } => "fixed",
            Self::Sleep { .. } => "sleep",
            Self::Practra(_) => "practra",
            Self::Headroom(_) => "headroom",
        }
    }

    fn service(&self, max_rate_mbps: f64, queue: QueueLimit) -> Result<Service, ParameterError> {
        let rate_mbps = match self {
            Self::None => max_rate_mbps,
            Self::Fixed { rate_mbps } => within("scaling.rate_mbps", *rate_mbps, 0.001..=max_rate_mbps)?,
            Self::Practra(practra) if practra.utilisation.is_some() => {
                return Err(ParameterError("scaling.utilisation is of kind headroom alone".to_owned()));
            }
            Self::Practra(practra) => {
                return practra.params(max_rate_mbps, queue, None).map(Service::PractRa)
            }
            Self::Headroom(practra) => {
                let utilisation = Some(practra.utilisation.unwrap_or(UTILISATION));
                return practra.params(max_rate_mbps, queue, utilisation).map(Service::PractRa);
            }
            Self::Sleep { sleep_us, wake_us, collect_packets, collect_us } => {
                return Ok(Service::Sleep(SleepParams {
                    rate_mbps: max_rate_mbps,
                    sleep_ns: ns("scaling.sleep_us in ms", sleep_us / 1e3, 0.0..=1_000.0)?,
                    wake_ns: ns("scaling.wake_us in ms", wake_us / 1e3, 0.0..=1_000.0)?,
                    collect_packets: within(
                        "scaling.collect_packets",
                        collect_packets.unwrap_or(1),
                        1..=queue.packets,
                    )?,
                    collect_ns: ns(
                        "scaling.collect_us in ms",
                        collect_us.unwrap_or(COLLECT_US) / 1e3,
                        0.0..=1_000.0,
                    )?,
                }));
            }
        };
        Ok(Service::Scaled(FixedParams { rate_mbps, max_rate_mbps }))
    }
}

impl PractraConfig {
    fn params(
        &self,
        max_rate_mbps: f64,
        queue: QueueLimit,
        utilisation: Option<f64>,
    ) -> Result<PractRaParams, ParameterError> {
        let Self { interval_ms, rates_mbps, weight, window_ms, delta_ms, phase_ms, .. } = self;
        let interval_ns = ns("scaling.interval_ms", *interval_ms, 0.1..=60_000.0)?;
        let queue_packets = (queue.packets as u64).min(queue.bytes / MTU_BYTES);
        let queue_bits = (8 * queue_packets * MTU_BYTES) as f64;
        let delay_limit_ms = self.delay_limit_ms(queue_bits / max_rate_mbps / 1e3)?;
        let rates_mbps: Vec<f64> = if rates_mbps.is_empty() {
            (1..=STEPS).map(|step| max_rate_mbps * f64::from(step) / f64::from(STEPS)).collect()
        } else {
            within("number of scaling.rates_mbps", rates_mbps.len(), 2..=100)?;
            rates_mbps.iter().map(|mbps| rate("scaling.rates_mbps", *mbps)).collect::<Result<_, _>>()?
        };
        if rates_mbps.last() != Some(&max_rate_mbps) {
            return Err(ParameterError(format!(
                "the last of scaling.rates_mbps must be rate_mbps, {max_rate_mbps}"
            )));
        }
        let params = PractRaParams {
            rates_mbps,
            weight: weight.unwrap_or(0.25),
            window_ns: ns("scaling.window_ms", window_ms.unwrap_or(*interval_ms), 0.1..=60_000.0)?,
            interval_ns,
            stall_ns: ns("scaling.delta_ms", delta_ms.unwrap_or(1.0), 0.0..=60_000.0)?,
            delay_limit_ns: ns("scaling.delay_limit_ms", delay_limit_ms, 0.0..=60_000.0)?,
            phase_ns: phase_ms
                .map(|phase_ms| ns("scaling.phase_ms", phase_ms, 0.0..=60_000.0))
                .transpose()?,
            utilisation,
        };
        params.check(queue_bits as u64 - MTU_BYTES * 8)?;
        Ok(params)
    }

    /// The delay limit where a full queue takes `full_ms` at the highest rate; of two the tighter one.
    fn delay_limit_ms(&self, full_ms: f64) -> Result<f64, ParameterError> {
        let limit_ms = self.delay_limit_ms.unwrap_or(f64::INFINITY);
        let is_told = self.delay_limit_ms.is_some() && self.delay_limit_ratio.is_none();
        let ratio = self.delay_limit_ratio.unwrap_or(DELAY_LIMIT_SHARE);
        let ratio = within("scaling.delay_limit_ratio", ratio, 0.0..=1.0)?;
        Ok(if is_told { limit_ms } else { limit_ms.min(ratio * full_ms) })
    }
}

fn ns(what: &str, value_ms: f64, range: std::ops::RangeInclusive<f64>) -> Result<u64, ParameterError> {
    Ok((within(what, value_ms, range)? * 1e6).round() as u64)
}

fn rate(what: &str, value_mbps: f64) -> Result<f64, ParameterError> {
    within(what, value_mbps, 0.001..=1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn params(document: Value) -> Result<ElementParams, ParameterError> {
        serde_json::from_value::<ElementConfig>(document).unwrap().params()
    }

    #[test]
    fn practra_has_the_studys_defaults() {
        let document =
            json!({"rate_mbps": 10, "queue_packets": 42, "scaling": {"kind": "practra", "interval_ms": 100}});
        let Service::PractRa(found) = params(document).unwrap().service else { panic!("practra") };
        assert_eq!(found.rates_mbps, (1..=10).map(f64::from).collect::<Vec<_>>());
        assert_eq!((found.weight, found.window_ns, found.interval_ns), (0.25, 100_000_000, 100_000_000));
        assert_eq!((found.stall_ns, found.delay_limit_ns, found.phase_ns), (1_000_000, 45_360_000, None));
        for (limit_ms, ratio, delay_limit_ns) in [(None, 0.5, 25_200_000), (Some(9), 0.5, 9_000_000)] {
            let scaling = json!({"kind": "practra", "interval_ms": 100, "delay_limit_ms": limit_ms, "delay_limit_ratio": ratio});
            let document = json!({"rate_mbps": 10, "queue_packets": 42, "scaling": scaling});
            let shorter = PractRaParams { delay_limit_ns, ..found.clone() };
            assert_eq!(params(document).unwrap().service, Service::PractRa(shorter));
        }
        let headroom = json!({"rate_mbps": 10, "queue_packets": 42, "scaling": {"kind": "headroom", "interval_ms": 100}});
        let variant = PractRaParams { utilisation: Some(0.95), ..found };
        assert_eq!(params(headroom).unwrap().service, Service::PractRa(variant));
    }

    #[test]
    fn the_tighter_limit_of_the_queue_counts() {
        let scaling = json!({"kind": "practra", "interval_ms": 100});
        let document =
            json!({"rate_mbps": 10, "queue_packets": 42, "queue_bytes": 30_000, "scaling": scaling});
        let Service::PractRa(found) = params(document).unwrap().service else { panic!("practra") };
        assert_eq!(found.delay_limit_ns, 21_600_000);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        let practra = |more: Value| {
            let mut scaling = json!({"kind": "practra", "interval_ms": 10});
            scaling.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"rate_mbps": 10, "queue_packets": 42, "scaling": scaling})
        };
        for (document, part) in [
            (json!({"scaling": {"kind": "none"}}), "scaling needs rate_mbps"),
            (
                json!({"rate_mbps": 10, "scaling": {"kind": "fixed", "rate_mbps": 11}}),
                "scaling.rate_mbps is 11",
            ),
            (practra(json!({"delay_limit_ratio": 1.5})), "scaling.delay_limit_ratio"),
            (practra(json!({"delay_limit_ms": 55.5})), "never rise from 9 to 10 Mb/s"),
            (practra(json!({"rates_mbps": [1, 5]})), "the last of scaling.rates_mbps must be rate_mbps, 10"),
            (practra(json!({"rates_mbps": [1e-300, 10]})), "scaling.rates_mbps is 0.000"),
            (practra(json!({"delta_ms": 10})), "delta is 10 ms"),
            (practra(json!({"phase_ms": 11})), "phase in ms is 11"),
            (practra(json!({"utilisation": 0.9})), "scaling.utilisation is of kind headroom alone"),
            (practra(json!({"kind": "headroom", "utilisation": 1.5})), "utilisation is 1.5"),
            (
                json!({"rate_mbps": 1, "varying": {"min_rate_mbps": 1, "max_rate_mbps": 2, "mean_interval_ms": 5}}),
                "varying says the rate",
            ),
            (
                json!({"varying": {"min_rate_mbps": 3, "max_rate_mbps": 2, "mean_interval_ms": 5}}),
                "varying.min_rate_mbps is 3",
            ),
            (
                json!({"bursts": {"mean_burst_ms": 9, "cycle_ms": 5, "rate_mbps": 1}}),
                "bursts.mean_burst_ms is 9",
            ),
            (json!({"queue_bytes": 1000}), "queue_bytes is 1000"),
        ] {
            let message = params(document).unwrap_err().to_string();
            assert!(message.contains(part), "{message:?} lacks {part:?}");
        }
    }
}
