// SPDX-License-Identifier: Apache-2.0
//! A profile as it is written down (protocols/contracts/schemas/profile.schema.json). Shape only; [`super::profile`]
//! makes sense of it.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Version of the document.
pub const SCHEMA_VERSION: u32 = 1;

/// A profile: exactly one of `messages`, `talk_spurts`, `video_chunks` and `trace`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What reports call it.
    pub name: String,
    /// What it stands for, where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Independent sizes and inter-departure times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Messages>,
    /// The same in spurts with silences between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub talk_spurts: Option<TalkSpurts>,
    /// Chunks of video that a player fetches while its buffer has room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video_chunks: Option<VideoChunks>,
    /// What was seen once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// Independent sizes and inter-departure times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    /// Size of a message.
    pub size_bytes: Distribution,
    /// Time from a message to the next.
    pub inter_departure_s: Distribution,
}

/// Messages in spurts with silences between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TalkSpurts {
    /// Length of a spurt. Its first message is due at its start.
    pub on_s: Distribution,
    /// Length of the silence behind it.
    pub off_s: Distribution,
    /// Size of a message.
    pub size_bytes: Distribution,
    /// Time from a message to the next in the same spurt.
    pub inter_departure_s: Distribution,
}

/// A player that fetches chunks of video while its buffer has room (ON-OFF).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoChunks {
    /// Size of a chunk.
    pub chunk_bytes: Distribution,
    /// Playing time of a chunk.
    pub chunk_s: f64,
    /// Size of the messages that a chunk is cut into; its last one has the rest, 16 bytes at least.
    pub message_bytes: f64,
    /// Rate at which the messages of a chunk are due.
    pub download_mbps: f64,
    /// Playing time in the buffer at which playing starts, and starts again after a stall.
    pub start_buffer_s: f64,
    /// Playing time that the buffer holds: a chunk is fetched when there is room for it.
    pub greatest_buffer_s: f64,
}

/// Departures as they were seen once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Lines of CSV under the header `t_s,bytes`. Times count from the first.
    pub csv: String,
    /// Time after which it begins again; played once without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_s: Option<f64>,
}

/// A distribution; a bare number is a constant. In the unit of the field that it stands in. What is drawn beyond `min`
/// or `max` is set to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Distribution(pub Law);

/// The distributions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "distribution", rename_all = "snake_case", deny_unknown_fields)]
pub enum Law {
    /// Always the same.
    Constant {
        /// What.
        value: f64,
    },
    /// Every whole unit (byte, ns) alike.
    Uniform {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// Memoryless.
    Exponential {
        /// Mean before it is bounded.
        mean: f64,
        /// Least value; 0 s or 16 bytes without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<f64>,
        /// Greatest value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
    },
    /// Gaussian.
    Normal {
        /// Mean before it is bounded.
        mean: f64,
        /// Standard deviation before it is bounded.
        standard_deviation: f64,
        /// Least value; 0 s or 16 bytes without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<f64>,
        /// Greatest value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
    },
    /// Heavy-tailed: P(X > x) = (scale / x)^shape.
    Pareto {
        /// Tail index.
        shape: f64,
        /// Least value.
        scale: f64,
        /// Greatest value.
        max: f64,
    },
    /// As counted.
    Empirical {
        /// What was seen.
        values: Vec<f64>,
        /// How often; alike without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weights: Option<Vec<u64>>,
    },
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Number(number) => {
                let value = number.as_f64().ok_or_else(|| serde::de::Error::custom("not a number"))?;
                Ok(Self(Law::Constant { value }))
            }
            other => Law::deserialize(other).map(Self).map_err(serde::de::Error::custom),
        }
    }
}

/// What is wrong with a profile, and in which field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field {field}: {what}")]
pub struct ProfileError {
    field: String,
    what: String,
}

impl ProfileError {
    pub(crate) fn new(field: &str, what: impl Into<String>) -> Self {
        Self { field: field.into(), what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_a_constant_and_a_law_is_named() {
        let messages: Messages = serde_json::from_str(
            r#"{"size_bytes": 300, "inter_departure_s": {"distribution": "exponential", "mean": 0.02}}"#,
        )
        .unwrap();
        assert_eq!(messages.size_bytes, Distribution(Law::Constant { value: 300.0 }));
        let Law::Exponential { mean, min, max } = messages.inter_departure_s.0 else { panic!("another law") };
        assert_eq!((mean, min, max), (0.02, None, None));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (text, word) in [
            (r#"{"distribution": "exponential"}"#, "mean"),
            (r#"{"distribution": "zipf", "mean": 1}"#, "zipf"),
            (r#"{"distribution": "uniform", "min": 1, "max": 2, "mode": 3}"#, "mode"),
            (r#""fast""#, "fast"),
        ] {
            let error = serde_json::from_str::<Distribution>(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        let text = r#"{"schema_version":1,"name":"x","messages":{"size_bytes":{"distribution":"empirical","values":[16.0,32.0],"weights":[1,2]},"inter_departure_s":{"distribution":"constant","value":0.5}}}"#;
        let document: Document = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&document).unwrap(), text);
    }
}
