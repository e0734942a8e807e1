// SPDX-License-Identifier: Apache-2.0
//! What whoever started the program says over stdin: when to begin, and what a meter reads.

use std::io::BufRead;

use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::output::Output;
use serde::Deserialize;
use tokio::sync::mpsc;

/// Say that everything is ready, and wait for the word. No packet has been sent by then.
pub(crate) fn hold() -> Outcome<()> {
    Output::Json.event("ready", serde_json::json!({}))?;
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(Failure::system("read stdin"))?;
    match line.trim() {
        "go" => Ok(()),
        "" => Code::Interrupted.fail("stdin ended before the line go came"),
        other => Code::Usage.fail(format!("stdin says {other:?}, not go")),
    }
}

/// Lines of a meter, joules each; from a thread, as stdin cannot be waited for.
pub(crate) fn energy_lines(is_wanted: bool) -> mpsc::UnboundedReceiver<f64> {
    #[derive(Deserialize)]
    struct Line {
        energy_j: f64,
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    if is_wanted {
        std::thread::spawn(move || {
            let lines = std::io::stdin().lines().map_while(Result::ok);
            for line in lines.filter_map(|line| serde_json::from_str::<Line>(&line).ok()) {
                if sender.send(line.energy_j).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}
