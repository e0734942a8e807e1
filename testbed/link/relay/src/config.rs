// SPDX-License-Identifier: Apache-2.0
//! What does the configuration ask for? link_config.schema.json, read, merged over its preset, checked.
//!
//! Radio parameters come from the preset, then from `overrides` of the document, then from
//! `overrides` of the station.

use std::collections::HashSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use netjoule_link_model::access::AccessConfig;
use netjoule_link_model::path::config::ElementConfig;
use netjoule_link_model::path::ElementParams;
use netjoule_link_model::presets;
use netjoule_link_model::radio::RadioConfig;
use netjoule_link_model::range::within;
use netjoule_link_model::station::StationParams;

use crate::end::EndConfig;
use crate::error::{usage, LinkError};

/// Largest integer that every JSON reader keeps exactly.
const JSON_INTEGER_MAX: u64 = (1 << 53) - 1;

/// How packets get in and out of the namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Io {
    /// TUN when /dev/net/tun opens, else packet sockets.
    #[default]
    Auto,
    /// TUN devices.
    Tun,
    /// A veth pair per end and AF_PACKET sockets.
    Packet,
}

/// A station and its radio.
#[derive(Clone, Debug, PartialEq)]
pub struct StationConfig {
    /// Its interface.
    pub end: EndConfig,
    /// Its radio.
    pub radio: RadioConfig,
    /// The same for the model.
    pub params: StationParams,
}

/// The whole configuration, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The preset it started from.
    pub preset: presets::Preset,
    /// Seed of all chance.
    pub seed: u64,
    /// How packets get in and out.
    pub io: Io,
    /// Where statistics are served.
    pub stats_socket: PathBuf,
    /// Stations, at least one.
    pub stations: Vec<StationConfig>,
    /// Hosts behind the access point, at least one.
    pub wired: Vec<WiredConfig>,
}

/// A host behind the access point and the path to it.
#[derive(Clone, Debug, PartialEq)]
pub struct WiredConfig {
    /// Its interface.
    pub end: EndConfig,
    /// Elements of its path when the link starts, in order from the access point.
    pub elements: Vec<ElementParams>,
    /// The same as they were told.
    pub told: Vec<ElementConfig>,
}

/// What a running link is told: the elements of a path from now on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathDoc {
    /// Behind the access point, by its name: the far end of the path.
    pub host: String,
    /// In order from the access point.
    pub elements: Vec<ElementConfig>,
}

/// What a running link is told: the access network of a station from now on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessDoc {
    /// By its name.
    pub station: String,
    /// `None`: the air alone.
    pub access: Option<AccessConfig>,
}

/// One command to a running link, with the index of the station or host that it names.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A station's access network.
    Access(usize, AccessDoc),
    /// A host's path, and the parameters of its elements.
    Path(usize, PathDoc, Vec<ElementParams>),
}

impl Told {
    /// Reads and checks a command, which names one of the stations or of the hosts.
    ///
    /// # Errors
    /// [`LinkError::Usage`] with one sentence that names the place.
    pub fn parse(text: &str, stations: &[String], hosts: &[String]) -> Result<Self, LinkError> {
        let document: Value =
            serde_json::from_str(text).map_err(|error| usage(format!("command is not JSON: {error}")))?;
        if document.get("station").is_some() {
            let doc: AccessDoc = from_value("access", document)?;
            let station = position("access", "station", &doc.station, stations)?;
            return Ok(Self::Access(station, doc));
        }
        let doc: PathDoc = from_value("path", document)?;
        let host = position("path", "host", &doc.host, hosts)?;
        let params = params_of("path", &doc.elements)?;
        Ok(Self::Path(host, doc, params))
    }
}

fn position(place: &str, what: &str, name: &str, names: &[String]) -> Result<usize, LinkError> {
    let known = || usage(format!("{place}: no {what} is called {name:?}; use one of {}", names.join(", ")));
    names.iter().position(|each| each == name).ok_or_else(known)
}

fn params_of(place: &str, elements: &[ElementConfig]) -> Result<Vec<ElementParams>, LinkError> {
    within("number of elements", elements.len(), 0..=32)?;
    let params = |(index, element): (usize, &ElementConfig)| {
        element.params().map_err(|error| usage(format!("{place}, elements[{index}]: {error}")))
    };
    elements.iter().enumerate().map(params).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigDoc {
    #[serde(rename = "schema_version")]
    _schema_version: u32,
    preset: String,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    io: Io,
    stats_socket: PathBuf,
    #[serde(default)]
    overrides: Map<String, Value>,
    stations: Vec<StationDoc>,
    wired: Vec<WiredDoc>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StationDoc {
    name: String,
    netns: String,
    ifname: String,
    addresses: Vec<String>,
    #[serde(default = "default_mtu")]
    mtu: u32,
    #[serde(default)]
    overrides: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WiredDoc {
    name: String,
    netns: String,
    ifname: String,
    addresses: Vec<String>,
    #[serde(default = "default_mtu")]
    mtu: u32,
    #[serde(default)]
    elements: Vec<ElementConfig>,
}

fn default_mtu() -> u32 {
    1500
}

impl Config {
    /// Reads and checks a configuration document.
    ///
    /// # Errors
    /// [`LinkError::Usage`] with one sentence that names the place.
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        let document: Value =
            serde_json::from_str(text).map_err(|error| usage(format!("config is not JSON: {error}")))?;
        if !document.is_object() {
            return Err(usage("config must be a JSON object"));
        }
        // Before all else: every other field may be another version's.
        match document.get("schema_version") {
            Some(version) if *version != 2 => {
                return Err(usage(format!("config: schema_version {version} is not known; use 2")));
            }
            _ => {}
        }
        let doc: ConfigDoc = from_value("config", document)?;
        let preset = presets::find(&doc.preset).ok_or_else(|| unknown_preset(&doc.preset))?;
        let mut radio = presets::radio(&preset);
        radio.extend(doc.overrides);
        let stations = doc.stations.into_iter().enumerate();
        let hosts = doc.wired.into_iter().enumerate();
        let config = Self {
            preset,
            seed: within("seed", doc.seed, 0..=JSON_INTEGER_MAX)?,
            io: doc.io,
            stats_socket: doc.stats_socket,
            stations: stations.map(|(index, doc)| station(index, doc, &radio)).collect::<Result<_, _>>()?,
            wired: hosts.map(|(index, doc)| wired(index, doc)).collect::<Result<_, _>>()?,
        };
        config.check_ends()?;
        Ok(config)
    }

    /// All interfaces: the stations', then those of the hosts behind the access point.
    pub fn ends(&self) -> impl Iterator<Item = &EndConfig> {
        self.stations.iter().map(|station| &station.end).chain(self.wired.iter().map(|host| &host.end))
    }

    fn check_ends(&self) -> Result<(), LinkError> {
        within("number of stations", self.stations.len(), 1..=32)?;
        within("number of wired hosts", self.wired.len(), 1..=32)?;
        let (mut names, mut addresses) = (HashSet::new(), HashSet::new());
        for end in self.ends() {
            if !names.insert(&end.name) {
                return Err(usage(format!(
                    "config: two ends are named {:?}; give each its own name",
                    end.name
                )));
            }
            for (address, _) in &end.addresses {
                if !addresses.insert(address) {
                    return Err(usage(format!(
                        "config: address {address} is given twice; give each end its own"
                    )));
                }
            }
        }
        Ok(())
    }
}

fn unknown_preset(name: &str) -> LinkError {
    let known: Vec<&str> = presets::PRESETS.iter().map(|preset| preset.name).collect();
    usage(format!("config: preset {name:?} is not known; use one of {}", known.join(", ")))
}

fn from_value<T: serde::de::DeserializeOwned>(place: &str, value: Value) -> Result<T, LinkError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { place.to_owned() } else { format!("{place}, {path}") };
        usage(format!("{place}: {}", error.inner()))
    })
}

fn station(index: usize, doc: StationDoc, radio: &Map<String, Value>) -> Result<StationConfig, LinkError> {
    let place = format!("config, stations[{index}]");
    let mut merged = radio.clone();
    merged.extend(doc.overrides);
    let radio: RadioConfig = from_value(&format!("{place}, overrides"), Value::Object(merged))?;
    let params = radio
        .params(&doc.name)
        .map_err(|error| usage(format!("config, radio of {:?}: {error}", doc.name)))?;
    let end = EndConfig::check(&place, doc.name, &doc.netns, doc.ifname, &doc.addresses, doc.mtu)?;
    Ok(StationConfig { end, radio, params })
}

fn wired(index: usize, doc: WiredDoc) -> Result<WiredConfig, LinkError> {
    let place = format!("config, wired[{index}]");
    let end = EndConfig::check(&place, doc.name, &doc.netns, doc.ifname, &doc.addresses, doc.mtu)?;
    Ok(WiredConfig { end, elements: params_of(&place, &doc.elements)?, told: doc.elements })
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
