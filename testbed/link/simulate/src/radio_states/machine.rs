// SPDX-License-Identifier: Apache-2.0
//! Which machine is meant? A preset by its name, or the document in a file whose name ends with `.json`.

use netjoule_link_model::radio_states::params::MachineDocument;
use netjoule_link_model::radio_states::presets::{find, NAMES};
use netjoule_link_model::range::ParameterError;

/// The preset of that name, or what `read` finds in the file of that name.
///
/// # Errors
/// [`ParameterError`] names the presets, or file and line.
pub fn of(
    name: &str,
    read: impl FnOnce(&str) -> Result<String, ParameterError>,
) -> Result<MachineDocument, ParameterError> {
    match find(name) {
        Some(preset) => Ok(preset),
        None if name.ends_with(".json") => parse(name, &read(name)?),
        None => Err(ParameterError(format!(
            "there is no machine {name:?}; give {}, or a file that ends with .json",
            NAMES.join(", ")
        ))),
    }
}

fn parse(name: &str, text: &str) -> Result<MachineDocument, ParameterError> {
    serde_json::from_str(text).map_err(|error| {
        let sentence = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = sentence.strip_suffix(&place).unwrap_or(&sentence);
        ParameterError(format!("{name}, line {}: {what}", error.line()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_needs_no_file_and_a_file_is_told_with_its_line() {
        let no_file = |name: &str| Err(ParameterError(format!("cannot read {name}")));
        assert_eq!(of("aro-lte", no_file), Ok(find("aro-lte").unwrap()));
        let text = serde_json::to_string_pretty(&find("aro-wifi").unwrap()).unwrap();
        let found = of("mine.json", |_| Ok(text.clone())).unwrap();
        assert_eq!(found, find("aro-wifi").unwrap());
        let wrong = text.replace("\"psm_w\"", "\"psm\"");
        for (name, text, expected) in [
            ("lte", None, "there is no machine \"lte\"; give energybox-s2, "),
            ("none.json", None, "cannot read none.json"),
            ("mine.json", Some(wrong), "mine.json, line 5: unknown field `psm`"),
            ("mine.json", Some("{\n".to_owned()), "mine.json, line 2: EOF"),
        ] {
            let read = |name: &str| text.clone().map_or_else(|| no_file(name), Ok);
            let sentence = of(name, read).unwrap_err().to_string();
            assert!(sentence.contains(expected), "{sentence:?} lacks {expected:?}");
        }
    }
}
