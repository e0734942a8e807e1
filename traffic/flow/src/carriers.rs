// SPDX-License-Identifier: Apache-2.0
//! `carriers`: what can carry DCCP on this host, and why not the rest.

use netjoule_dccp_carriers::CarrierStatus;
use serde_json::{json, Value};

use netjoule_measure::failure::Outcome;
use netjoule_measure::output::{self, Output};

/// Run `carriers`; the exit code is 0 whatever is missing.
pub fn run(output: Output) -> Outcome<u8> {
    let found = netjoule_dccp_carriers::carriers();
    if output == Output::Json {
        output::write(&Value::from_iter(found.iter().map(document)).to_string())?;
    } else {
        found.iter().try_for_each(|status| output::write(&sentence(status)))?;
    }
    Ok(0)
}

fn document(status: &CarrierStatus) -> Value {
    match &status.missing {
        None => json!({ "name": status.name, "available": true }),
        Some(reason) => json!({ "name": status.name, "available": false, "reason": reason }),
    }
}

fn sentence(status: &CarrierStatus) -> String {
    let verdict = status.missing.as_ref().map_or_else(|| "yes".to_owned(), |reason| format!("no: {reason}"));
    format!("{:6} {}: {verdict}", status.name, status.description)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_with_its_reason() {
        let there = CarrierStatus { name: "udp", description: "DCCP over UDP", missing: None };
        let missing = CarrierStatus { missing: Some("no privilege".into()), ..there.clone() };
        assert_eq!(document(&there), json!({ "name": "udp", "available": true }));
        assert_eq!(document(&missing)["reason"], "no privilege");
        assert_eq!(sentence(&missing), "udp    DCCP over UDP: no: no privilege");
    }
}
