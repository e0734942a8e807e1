// SPDX-License-Identifier: Apache-2.0
//! Where an end of a flow may record what happens to its connection: a file in a folder that this end's user named. The
//! other end has no say in it.

use std::path::{Path, PathBuf};

use netjoule_measure::failure::{Failure, Outcome};

/// The file of this `end` ("client" or "server") of the flow `flow_id`, without its ending; makes the folder. `None` when no
/// folder was named. A flow's name has letters, digits and dashes only (`control::expect_hello`).
pub(crate) fn stem(folder: Option<&Path>, flow_id: &str, end: &str) -> Outcome<Option<PathBuf>> {
    let Some(folder) = folder else { return Ok(None) };
    std::fs::create_dir_all(folder)
        .map_err(Failure::system(format!("make the folder {} (--qlog)", folder.display())))?;
    Ok(Some(folder.join(format!("{flow_id}-{end}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_can_share_a_folder() {
        let folder = std::env::temp_dir().join(format!("netjoule-log-{}", std::process::id()));
        let stems = ["client", "server"].map(|end| stem(Some(&folder), "ab-12", end).unwrap().unwrap());
        assert_eq!(stems[0], folder.join("ab-12-client"));
        assert_ne!(stems[0], stems[1]);
        std::fs::remove_dir(&folder).unwrap();
        assert_eq!(stem(None, "ab-12", "client"), Ok(None));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let error = stem(Some(Path::new("/proc/no-such")), "ab", "client").unwrap_err();
        assert!(error.message.contains("/proc/no-such") && error.message.contains("--qlog"), "{error}");
    }
}
