// SPDX-License-Identifier: Apache-2.0
//! A network device of the sending host that is slower than the load.

use serde_json::Value;

use crate::harness::network::{in_own_network, run, Cable, FAR};
use crate::harness::{assert_honest, send, Server};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// What the device does not take is not sent and not lost, and no defect of the sender.
#[test]
fn what_a_full_device_does_not_take_is_held_back() {
    in_own_network("slow_devices::what_a_full_device_does_not_take_is_held_back", || {
        let cable = Cable::new();
        // Its queue holds more than a socket's buffer: the buffer fills, nothing is dropped.
        run("tc qdisc add dev near root tbf rate 2mbit burst 3000 limit 4000000");
        let server = Server::start_by(cable.far(), FAR, &[]);
        let (_, port) = server.control.rsplit_once(':').unwrap();
        let to = format!("{FAR}:{port}");
        let args = ["--to", &to, "-b", "8M", "-l", "1000", "-t", "2"];
        let limits = ["--pacing-limit", "min_achieved_ratio=0.99"];
        for more in [&[][..], &["--gso", "--window-us", "5000"], &["--tx-timestamps"]] {
            let finished = send(&[&args[..], &limits, more].concat());
            assert_eq!(finished.code, 0, "{}", finished.stderr);
            let report = finished.report();
            assert_honest(report);
            let (sender, certificate) = (&report["sender"], &report["pacing_certificate"]);
            assert!(number(&sender["transport_stats"]["refused_no_buffer"]) > 0.0, "{sender}");
            assert_eq!(report["receiver"]["messages_lost"], 0, "{report}");
            let not_sent = number(&sender["messages_not_sent"]);
            assert!(not_sent > 0.2 * number(&sender["messages_scheduled"]), "{sender}");
            let held_back = number(&certificate["held_back_not_sent_ratio"]);
            assert!((held_back - not_sent / number(&sender["messages_scheduled"])).abs() < 1e-9);
            assert_eq!(certificate["passed"], true, "{certificate}");
            if more == ["--tx-timestamps"] {
                assert_stamps_are_of_the_first_fill(sender);
            }
        }
    });
}

/// The queue fills once and is never empty again, so that only what was sent before the first refusal has stamps that can be
/// told apart: of messages 1 ms apart that leave 4.2 ms apart the last of these waited 3.2 ms for each of them.
fn assert_stamps_are_of_the_first_fill(sender: &Value) {
    let delay_us = &sender["departure_delay_us"];
    let not_stamped = number(&sender["transport_stats"]["departures_not_stamped"]);
    assert_eq!(number(&delay_us["stamped"]) + not_stamped, number(&sender["messages_sent"]), "{sender}");
    assert!(number(&delay_us["max"]) > 2_000.0 * number(&delay_us["stamped"]), "{sender}");
}
