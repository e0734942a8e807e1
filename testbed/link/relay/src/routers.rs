// SPDX-License-Identifier: Apache-2.0
//! What do the routers on the paths say of an interval? A statistics line each, link_router.schema.json.

use netjoule_link_model::model::Model;
use netjoule_link_model::path::config::ElementConfig;
use netjoule_link_model::path::told::{RouterStep, RouterTold};
use serde::Serialize;

/// The routers of all paths, which a change of a path replaces.
#[derive(Debug)]
pub struct Routers {
    /// By the host at the far end: its name, and the routers on the way up to it and down from it.
    paths: Vec<(String, [Vec<RouterTold>; 2])>,
}

/// What one router did in an interval, in one direction.
#[derive(Debug, Serialize)]
pub struct RouterLine<'a> {
    schema_version: u32,
    kind: &'static str,
    host: &'a str,
    direction: &'static str,
    element: usize,
    scaling: &'a str,
    t_start_ns: u64,
    t_end_ns: u64,
    #[serde(flatten)]
    step: RouterStep,
}

impl Routers {
    /// Those of the paths to these hosts, by name and elements.
    pub fn new<'a>(paths: impl Iterator<Item = (&'a str, &'a [ElementConfig])>) -> Self {
        Self { paths: paths.map(|(host, elements)| (host.to_owned(), RouterTold::ways(elements))).collect() }
    }

    /// The path to a host consists of other elements now.
    pub fn change(&mut self, host: usize, elements: &[ElementConfig]) {
        self.paths[host].1 = RouterTold::ways(elements);
    }

    /// What each did until `end_ns`, since it was asked last or its path was set.
    pub fn lines<P: 'static>(&self, model: &mut Model<P>, end_ns: u64) -> Vec<RouterLine<'_>> {
        let mut lines = Vec::new();
        for (index, (host, ways)) in self.paths.iter().enumerate() {
            let records = model.routers(index, end_ns);
            for ((direction, routers), records) in ["up", "down"].into_iter().zip(ways).zip(records) {
                lines.extend(routers.iter().zip(records).map(|(router, record)| RouterLine {
                    schema_version: 1,
                    kind: "router",
                    host,
                    direction,
                    element: router.element,
                    scaling: &router.kind,
                    t_start_ns: record.t_start_ns,
                    t_end_ns: record.t_end_ns,
                    step: record.into(),
                }));
            }
        }
        lines
    }
}
