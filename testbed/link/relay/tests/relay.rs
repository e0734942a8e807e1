// SPDX-License-Identifier: Apache-2.0
//! The running relay between real namespaces, with TUN and with packet sockets.

mod netns;

use std::io::{BufRead, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use netjoule_link::clock::now_ns;
use netjoule_link::netns::Netns;
use netns::{failed, interfaces, listener, tun_opens, udp, with_namespaces, Bench, Relay, BINARY};
use nix::sys::signal::Signal;
use serde_json::{json, Value};

/// Both ways in, or only packet sockets where TUN is closed (which then has to be said clearly).
fn each_io(body: impl Fn(&str)) {
    if tun_opens() {
        body("tun");
    } else {
        let (code, message) = Bench::new("tun").refuse();
        assert_eq!(code, 3, "{message}");
        assert!(message.contains("/dev/net/tun"), "{message}");
        eprintln!("*** TUN is closed here: only packet sockets are tested");
    }
    body("packet");
}

/// Sends `count` numbered datagrams and checks that each comes.
fn exchange(from: &UdpSocket, to: &UdpSocket, count: u32) {
    let target = to.local_addr().unwrap();
    let mut buffer = [0u8; 2048];
    for number in 0..count {
        let mut message = vec![0u8; 1440];
        message[..4].copy_from_slice(&number.to_be_bytes());
        from.send_to(&message, target).unwrap();
        let (bytes, source) = to.recv_from(&mut buffer).unwrap();
        assert_eq!((bytes, &buffer[..4]), (1440, &number.to_be_bytes()[..]));
        assert_eq!(source, from.local_addr().unwrap());
    }
}

#[test]
fn datagrams_pass_in_both_directions_and_versions() {
    with_namespaces("datagrams_pass_in_both_directions_and_versions", || {
        each_io(|io| {
            let bench = Bench::new(io);
            let relay = bench.start(&[]);
            assert_eq!(relay.ready["io"], io);
            for (client, second, server) in
                [("10.77.0.2:0", "10.77.0.3:0", "10.77.0.1:0"), ("[fd77::2]:0", "[fd77::3]:0", "[fd77::1]:0")]
            {
                let (client, second, server) =
                    (udp(&bench.client, client), udp(&bench.second, second), udp(&bench.server, server));
                exchange(&client, &server, 20);
                exchange(&server, &client, 20);
                exchange(&client, &second, 20);
            }
            let last = relay.finish();
            assert_eq!((&last["event"], &last["reason"]), (&json!("final"), &json!("stdin")));
            let client = &last["stations"][0];
            assert_eq!((&client["packets_tx"], &client["packets_rx"]), (&json!(80), &json!(40)), "{last}");
            assert_eq!(last["stations"][1]["packets_rx"], 40);
        });
    });
}

#[test]
fn the_path_changes_while_the_link_is_up_and_the_link_says_what_it_is_then() {
    with_namespaces("the_path_changes_while_the_link_is_up_and_the_link_says_what_it_is_then", || {
        let mut bench = Bench::new("packet");
        let far = Netns::create().unwrap();
        bench.config["wired"].as_array_mut().unwrap().push(json!(
            {"name": "origin", "netns": far.path(), "ifname": "eth0", "addresses": ["10.77.0.8/24"],
             "elements": [{"delay_ms": 5}]}
        ));
        let mut relay = bench.start(&[]);
        let (client, server) = (udp(&bench.client, "10.77.0.2:0"), udp(&bench.server, "10.77.0.1:0"));
        let origin = udp(&far, "10.77.0.8:0");
        let round_trip_ns = |one: &UdpSocket, other: &UdpSocket| {
            let start_ns = now_ns();
            exchange(one, other, 1);
            exchange(other, one, 1);
            now_ns() - start_ns
        };
        let mut told = |elements: Value| {
            let command = json!({"host": "server", "elements": elements});
            writeln!(relay.stdin.as_mut().unwrap(), "{command}").unwrap();
            let said = relay.line();
            (said, round_trip_ns(&client, &server))
        };
        let (said, round_ns) = told(json!([{"delay_ms": 30}, {"delay_ms": 20}]));
        assert_eq!((&said["event"], &said["host"]), (&json!("path"), &json!("server")));
        assert_eq!(said["elements"][1]["delay_ms"], 20.0);
        assert!(round_ns > 100_000_000, "{round_ns} ns");
        // The other host's path is its own; between the two are both.
        assert!((10_000_000..100_000_000).contains(&round_trip_ns(&client, &origin)));
        assert!(round_trip_ns(&server, &origin) > 110_000_000);
        let (said, same_ns) = told(json!([{"delay_ms": -1}]));
        assert_eq!(said["event"], "error", "{said}");
        assert!(same_ns > 100_000_000, "nothing changed");
        let (_, round_ns) = told(json!([]));
        assert!(round_ns < 100_000_000, "{round_ns} ns");
        assert_eq!(relay.finish()["in_link"], 0);
    });
}

#[test]
fn a_router_lowers_its_rate_to_the_load_in_one_direction_and_loses_nothing() {
    with_namespaces("a_router_lowers_its_rate_to_the_load_in_one_direction_and_loses_nothing", || {
        let mut bench = Bench::new("packet");
        bench.config["wired"][0]["elements"] = json!([
            {"rate_mbps": 10, "queue_packets": 42, "direction": "up", "scaling": {"kind": "practra", "interval_ms": 10}},
            {"delay_ms": 5},
        ]);
        let relay = bench.start(&[]);
        let (client, server) = (udp(&bench.client, "10.77.0.2:0"), udp(&bench.server, "10.77.0.1:0"));
        let mut stats = bench.subscribe();
        // One at a time, each on its way for five milliseconds and more: at most 2.3 Mb/s, for two seconds.
        exchange(&client, &server, 333);
        let end_ns = now_ns();
        let mut lines: Vec<Value> = Vec::new();
        while lines.last().is_none_or(|line| line["t_end_ns"].as_u64().unwrap() < end_ns) {
            let line = next_line(&mut stats);
            lines.extend((line["kind"] == "router").then_some(line));
        }
        relay.finish();
        let sum = |name: &str| lines.iter().map(|line| line[name].as_u64().unwrap_or(0)).sum::<u64>();
        // The other direction does not scale.
        assert!(lines
            .iter()
            .all(|line| line["direction"] == "up" && line["element"] == 1 && line["host"] == "server"));
        assert!(lines.windows(2).all(|pair| pair[0]["t_end_ns"] == pair[1]["t_start_ns"]));
        assert_eq!((sum("dropped_packets"), &lines[0]["scaling"]), (0, &json!("practra")));
        assert!(sum("arrived_bytes") >= 330 * 1468, "{} bytes", sum("arrived_bytes"));
        // Down by a step each 10 ms, until the next lower rate would be less than what comes.
        let told = |line: &Value, name: &str| line[name].as_f64().unwrap();
        for line in &lines[5..] {
            let linear = told(line, "mean_rate_mbps") / 10.0;
            assert!(
                (0.0999..0.5).contains(&linear)
                    && (linear.powi(3) - 1e-9..linear).contains(&told(line, "mean_cubic")),
                "{line}"
            );
        }
        // Every 10 ms it is asked for its rate, more or less late.
        assert!(
            sum("ticks") >= 9 * lines.len() as u64 / 2,
            "{} ticks in {} lines",
            sum("ticks"),
            lines.len()
        );
        assert!(lines.iter().all(|line| line["ticks"] == Value::Null
            || told(line, "tick_late_mean_us") <= told(line, "tick_late_max_us")));
    });
}

#[test]
fn a_stream_arrives_whole() {
    with_namespaces("a_stream_arrives_whole", || {
        each_io(|io| {
            let mut bench = Bench::new(io);
            bench.config["overrides"] = json!({"mpdu_error_ratio": 0.05});
            let relay = bench.start(&[]);
            let server = listener(&bench.server, "10.77.0.1:0");
            let target = server.local_addr().unwrap();
            let sent: Vec<u8> =
                (0..4_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            let copy = sent.clone();
            let mut stream = bench.client.run(|| TcpStream::connect(target).map_err(failed)).unwrap();
            let writer = std::thread::spawn(move || stream.write_all(&copy).unwrap());
            let mut received = Vec::new();
            server.accept().unwrap().0.read_to_end(&mut received).unwrap();
            writer.join().unwrap();
            assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
            let last = relay.finish();
            assert!(last["stations"][0]["retries"].as_u64().unwrap() > 0, "{last}");
        });
    });
}

#[test]
fn the_wired_path_delays_and_loses() {
    with_namespaces("the_wired_path_delays_and_loses", || {
        let mut bench = Bench::new("auto");
        bench.config["wired"][0]["elements"] = json!([{"delay_ms": 15}]);
        let relay = bench.start(&[]);
        let (client, server) = (udp(&bench.client, "10.77.0.2:0"), udp(&bench.server, "10.77.0.1:0"));
        for _ in 0..5 {
            let start_ns = now_ns();
            exchange(&client, &server, 1);
            exchange(&server, &client, 1);
            assert!(now_ns() - start_ns >= 30_000_000);
        }
        relay.finish();
        bench.config["wired"][0]["elements"][0]["loss_ratio"] = json!(1.0);
        let relay = bench.start(&[]);
        let (client, server) = (udp(&bench.client, "10.77.0.2:0"), udp(&bench.server, "10.77.0.1:0"));
        let mut stats = bench.subscribe();
        (0..50).for_each(|_| assert_eq!(client.send_to(b"gone", server.local_addr().unwrap()).unwrap(), 4));
        let mut on_air = 0;
        while on_air < 50 {
            on_air += next_line(&mut stats)["frames_tx"].as_u64().unwrap_or(0);
        }
        let last = relay.finish();
        assert_eq!((&last["paths"][0]["lost"], &last["in_link"]), (&json!(50), &json!(0)), "{last}");
    });
}

#[test]
fn a_radio_that_sleeps_holds_the_first_packet_and_the_link_tells_what_it_spent() {
    with_namespaces("a_radio_that_sleeps_holds_the_first_packet_and_the_link_tells_what_it_spent", || {
        let bench = Bench::new("packet");
        let mut relay = bench.start(&[]);
        let mut told = |access: Value| {
            let command = json!({"station": "client", "access": access});
            writeln!(relay.stdin.as_mut().unwrap(), "{command}").unwrap();
            relay.line()
        };
        let said = told(json!({"radio_states": "lte"}));
        assert_eq!(said["event"], "error", "{said}");
        let said = told(json!({"radio_states": "mobisys12", "rate_mbps": 100}));
        assert_eq!(
            (&said["event"], &said["access"]["radio_states"]),
            (&json!("access"), &json!("mobisys12"))
        );
        let (client, server) = (udp(&bench.client, "10.77.0.2:0"), udp(&bench.server, "10.77.0.1:0"));
        let mut stats = bench.subscribe();
        // Nothing listens before a whole interval has been told.
        let mut lines = vec![next_access(&mut stats)];
        let way_ns = || {
            let start_ns = now_ns();
            exchange(&client, &server, 1);
            now_ns() - start_ns
        };
        let first_ns = way_ns();
        assert!((260_000_000..400_000_000).contains(&first_ns), "{first_ns} ns");
        let next_ns = way_ns();
        assert!(next_ns < 130_000_000, "{next_ns} ns");
        while lines[lines.len() - 1]["access"]["state"] != "idle" || lines.len() < 20 {
            lines.push(next_access(&mut stats));
            assert!(lines.len() < 200, "it never sleeps again");
        }
        relay.finish();
        let sum = |state: &str, what: &str| {
            let told = |line: &Value| line["access"]["states"][state][what].as_f64().unwrap_or(0.0);
            lines.iter().map(told).sum::<f64>()
        };
        let near = |actual: f64, expected: f64| assert!((actual / expected - 1.0).abs() < 1e-3, "{actual} J");
        near(sum("PROMOTION", "energy_j"), 0.26 * 1.21);
        near(sum("LONG_DRX", "energy_j"), 250.0 * (0.002 * 1.68 + 0.038 * 1.06));
        // Two packets of 1,468 bytes; continuous reception lasts 0.1 s from the second one on.
        let reception_s = sum("CR", "time_s");
        assert!((0.1..0.25).contains(&reception_s), "{reception_s} s");
        near(sum("CR", "energy_j"), 1.288 * reception_s + 2.0 * 1468.0 * 8e-6 * 0.438_39);
    });
}

/// The next line of the first station.
fn next_access(stats: &mut impl BufRead) -> Value {
    loop {
        let line = next_line(stats);
        if line["station"] == "client" {
            return line;
        }
    }
}

fn next_line(stats: &mut impl BufRead) -> Value {
    let mut line = String::new();
    stats.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Reads on behind the last station's line of an interval; when it ended.
fn end_of_interval(stats: &mut impl BufRead) -> u64 {
    loop {
        let line = next_line(stats);
        if line["station"] == "second" {
            return line["t_end_ns"].as_u64().unwrap();
        }
    }
}

fn contract(name: &str) -> jsonschema::Validator {
    let path =
        format!("{}/../../../protocols/contracts/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn statistics_are_contiguous_complete_and_by_contract() {
    with_namespaces("statistics_are_contiguous_complete_and_by_contract", || {
        let bench = Bench::new("auto");
        assert!(contract("link_config").is_valid(&bench.config));
        let relay = bench.start(&[]);
        let contract = contract("link_stats");
        let mut subscribers = [bench.subscribe(), bench.subscribe()];
        // The second may have come an interval after the first: both go on behind one that both have.
        let mut ends_ns = subscribers.each_mut().map(end_of_interval);
        while ends_ns[0] != ends_ns[1] {
            let behind = usize::from(ends_ns[1] < ends_ns[0]);
            ends_ns[behind] = end_of_interval(&mut subscribers[behind]);
        }
        let (client, server) = (udp(&bench.client, "10.77.0.2:0"), udp(&bench.server, "10.77.0.1:0"));
        let mut lines: [Vec<Value>; 2] = Default::default();
        let mut sent = 0;
        // Two stations: 20 lines are a second. Traffic in the first half, none in the second.
        for turn in 0..20 {
            if turn < 10 {
                exchange(&client, &server, 10);
                sent += 10;
            }
            for (stats, lines) in subscribers.iter_mut().zip(&mut lines) {
                let line = next_line(stats);
                assert!(contract.is_valid(&line), "{line}");
                lines.push(line);
            }
        }
        assert_eq!(lines[0], lines[1]);
        let mine: Vec<&Value> = lines[0].iter().filter(|line| line["station"] == "client").collect();
        assert_eq!(mine.len(), 10);
        for pair in mine.windows(2) {
            assert_eq!(pair[0]["t_end_ns"], pair[1]["t_start_ns"]);
            assert_eq!(
                pair[1]["t_end_ns"].as_u64().unwrap() - pair[1]["t_start_ns"].as_u64().unwrap(),
                100_000_000
            );
        }
        let sum = |name: &str| mine.iter().map(|line| line[name].as_f64().unwrap()).sum::<f64>();
        assert_eq!(
            (sum("frames_tx"), sum("ppdus_tx"), sum("retries"), sum("drops")),
            (sent as f64, sent as f64, 0.0, 0.0)
        );
        // 1440 + 28 + 54 bytes: 15 symbols and the preamble; an ACK back for each.
        assert!((sum("airtime_tx_s") - sent as f64 * 100e-6).abs() < 1e-9);
        assert!((sum("airtime_rx_s") - sent as f64 * 28e-6).abs() < 1e-9);
        assert_eq!(
            (&mine[9]["frames_tx"], &mine[9]["mcs"], &mine[9]["phy_rate_mbps"]),
            (&json!(0), &json!(13), &json!(216.0))
        );
        relay.finish();
        assert!(!bench.stats_socket.exists());
    });
}

#[test]
fn an_idle_link_costs_nothing() {
    with_namespaces("an_idle_link_costs_nothing", || {
        let bench = Bench::new("auto");
        let relay = bench.start(&[]);
        let mut stats = bench.subscribe();
        (0..40).for_each(|_| assert_eq!(next_line(&mut stats)["frames_tx"], 0));
        let last = relay.finish();
        // Two seconds with ten wake-ups a second; a polling relay would use all of them.
        assert!(last["cpu_s"].as_f64().unwrap() < 0.05, "{last}");
        assert_eq!(last["unroutable"].as_u64().map(|count| count < 20), Some(true), "{last}");
    });
}

/// Waits until the namespace holds nothing but what it began with (the kernel removes namespaces
/// of dead processes in the background).
fn wait_for_removal(bench: &Bench) {
    let deadline_ns = now_ns() + 10_000_000_000;
    let left = || [&bench.client, &bench.second, &bench.server].map(interfaces).concat();
    while left().iter().any(|name| name == "wlan0" || name == "eth0") {
        assert!(now_ns() < deadline_ns, "still there: {:?}", left());
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn signal(relay: &Relay, signal: Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(relay.child.id() as i32), signal).unwrap();
}

#[test]
fn nothing_is_left_after_any_end() {
    with_namespaces("nothing_is_left_after_any_end", || {
        each_io(|io| {
            let bench = Bench::new(io);
            bench.start(&[]).finish();
            let now = [&bench.client, &bench.second, &bench.server].map(interfaces).concat();
            assert!(!now.iter().any(|name| name == "wlan0" || name == "eth0"), "{now:?}");

            let mut relay = bench.start(&["--keep"]);
            drop(relay.stdin.take());
            let mut stats = bench.subscribe();
            (0..6).for_each(|_| assert_eq!(next_line(&mut stats)["kind"], "station"));
            signal(&relay, Signal::SIGTERM);
            assert_eq!(relay.last_words()["reason"], "signal");

            let with_hangup = |how| {
                let mut command = Command::new("env");
                command.args([how, BINARY]);
                bench.start_by(command, &[])
            };
            let relay = with_hangup("--default-signal=HUP");
            signal(&relay, Signal::SIGHUP);
            assert_eq!(relay.last_words()["reason"], "signal");

            // As nohup(1) starts it.
            let relay = with_hangup("--ignore-signal=HUP");
            let mut stats = bench.subscribe();
            signal(&relay, Signal::SIGHUP);
            (0..6).for_each(|_| assert_eq!(next_line(&mut stats)["kind"], "station"));
            assert_eq!(relay.finish()["reason"], "stdin");

            let mut relay = bench.start(&[]);
            relay.child.kill().unwrap();
            assert_eq!(relay.child.wait().unwrap().signal(), Some(9));
            wait_for_removal(&bench);
            // The socket file of the dead is replaced.
            assert!(bench.stats_socket.exists());
            bench.start(&[]).finish();
        });
    });
}

#[test]
fn what_cannot_be_set_up_is_said_in_one_line() {
    with_namespaces("what_cannot_be_set_up_is_said_in_one_line", || {
        let refused = |change: &dyn Fn(&mut Bench), code: i32, part: &str| {
            let mut bench = Bench::new("auto");
            change(&mut bench);
            let (found, message) = bench.refuse();
            assert_eq!((found, message.lines().count()), (code, 1), "{message}");
            assert!(message.contains(part), "{message:?} lacks {part:?}");
            assert!(!bench.stats_socket.exists());
        };
        refused(&|bench| bench.config["preset"] = json!("fast"), 2, "preset \"fast\" is not known");
        refused(
            &|bench| bench.config["wired"][0]["netns"] = json!("/run/netns/none-such"),
            2,
            "there is no network namespace",
        );
        refused(
            &|bench| bench.config["wired"][0]["netns"] = bench.config["stations"][0]["netns"].clone(),
            2,
            "same network namespace",
        );
        refused(&|bench| bench.config["stats_socket"] = json!("/none/such/dir.sock"), 2, "cannot listen");

        let taken = Bench::new("packet");
        let relay = taken.start(&[]);
        refused(
            &|bench| {
                bench.config["stations"][0]["netns"] = json!(taken.client.path());
                bench.config["io"] = json!("packet");
            },
            1,
            "interface wlan0 of \"client\"",
        );
        relay.finish();
    });
}
