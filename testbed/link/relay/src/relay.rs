// SPDX-License-Identifier: Apache-2.0
//! The running link: joins model, interfaces, clock and statistics in one thread.
//!
//! Events happen at the model's times; when this thread is late they are handled late but counted
//! from their own times, so that the next transmission follows the previous deadline, not the
//! wake-up. While packets wait for the air, new ones are read when the next event is due, not one by
//! one: that keeps the relay's CPU cost per transmission opportunity, not per packet.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use serde::Serialize;
use serde_json::{json, Value};

use netjoule_link_model::model::Model;
use netjoule_link_model::port::Port;
use netjoule_link_model::scaling::Lateness;

use crate::clock::{self, now_ns};
use crate::commands::Commands;
use crate::config::{Config, Told};
use crate::error::LinkError;
use crate::interface::KERNEL_QUEUE_PACKETS;
use crate::port::Ports;
use crate::publisher::Publisher;
use crate::routers::Routers;
use crate::routes::Routes;

/// Statistics interval.
const INTERVAL_NS: u64 = 100_000_000;
/// Below this distance to a deadline a sleep would only overshoot.
const SPIN_NS: u64 = 15_000;
/// Longest sleep while interfaces are not watched, so that the kernel's queues do not fill.
const UNWATCHED_NS: u64 = 1_000_000;
/// Longest time without a look at signals, standard input and new subscribers.
const CONTROL_NS: u64 = 20_000_000;
/// Room for the largest packet the configuration allows.
const BUFFER_BYTES: usize = 2304;

type Packet = Box<[u8]>;

/// A running link.
#[derive(Debug)]
pub struct Relay {
    model: Model<Packet>,
    ports: Ports,
    routes: Routes,
    routers: Routers,
    publisher: Publisher,
    signals: SignalFd,
    watch_stdin: bool,
    commands: Commands,
    stations: Vec<String>,
    hosts: Vec<String>,
    started_ns: u64,
    interval_end_ns: u64,
    control_due_ns: u64,
    unroutable: u64,
    /// At the model's events.
    lateness: Lateness,
}

/// Runs the link until a signal or, unless `keep`, the end of standard input.
///
/// # Errors
/// [`LinkError`] with one sentence.
pub fn run(config: &Config, keep: bool) -> Result<(), LinkError> {
    let signals = catch_signals()?;
    let publisher = Publisher::bind(&config.stats_socket)?;
    let ports = Ports::open(&config.ends().collect::<Vec<_>>(), config.io)?;
    clock::sharpen_timers();
    let mut relay = Relay::new(config, ports, publisher, signals, !keep);
    say(&relay.ready_line(config));
    let outcome = relay.serve();
    let mut last = relay.close();
    last["reason"] = json!(outcome?);
    say(&last);
    Ok(())
}

impl Relay {
    fn new(
        config: &Config,
        ports: Ports,
        publisher: Publisher,
        signals: SignalFd,
        watch_stdin: bool,
    ) -> Self {
        let started_ns = now_ns();
        let start_ns = started_ns - started_ns % INTERVAL_NS;
        let interval_end_ns = start_ns + INTERVAL_NS;
        let params = config.stations.iter().map(|station| station.params.clone()).collect();
        let paths: Vec<_> = config.wired.iter().map(|host| host.elements.clone()).collect();
        Self {
            model: Model::new(config.seed, params, &paths, start_ns, interval_end_ns),
            routes: Routes::new(
                config
                    .ends()
                    .enumerate()
                    .map(|(index, end)| (port_of(index, config.stations.len()), &end.addresses[..])),
            ),
            routers: Routers::new(config.wired.iter().map(|host| (&*host.end.name, &*host.told))),
            ports,
            publisher,
            signals,
            watch_stdin,
            commands: Commands::default(),
            stations: config.stations.iter().map(|station| station.end.name.clone()).collect(),
            hosts: config.wired.iter().map(|host| host.end.name.clone()).collect(),
            started_ns,
            interval_end_ns,
            control_due_ns: started_ns,
            unroutable: 0,
            lateness: Lateness::default(),
        }
    }

    /// Relays until something ends it: `signal` or `stdin`.
    fn serve(&mut self) -> Result<&'static str, LinkError> {
        loop {
            let now_ns = now_ns();
            self.note_lateness(now_ns);
            self.model.woke(now_ns);
            self.catch_up(now_ns)?;
            self.deliver()?;
            if let Some(end) = self.wait()? {
                return Ok(end);
            }
        }
    }

    /// Moves the model to `now_ns` and reads the interfaces, closing statistics intervals on the way.
    ///
    /// While events are overdue, only as many packets are read as find a place: what waits in the
    /// kernel came while those events should have made room. What is left then meets the full queue.
    fn catch_up(&mut self, now_ns: u64) -> Result<(), LinkError> {
        let mut unread = vec![true; self.ports.ports.len()];
        loop {
            self.read_ports(&mut unread, now_ns, false)?;
            let due_ns = self.model.next_event_ns().filter(|at_ns| *at_ns <= now_ns);
            match due_ns {
                Some(at_ns) if at_ns < self.interval_end_ns => self.model.step(now_ns),
                _ if self.interval_end_ns <= now_ns => self.close_interval(),
                _ => break,
            }
        }
        self.read_ports(&mut unread, now_ns, true)
    }

    /// Reads the interfaces that are `unread` until they are empty or, unless `all`, the queue is full.
    fn read_ports(&mut self, unread: &mut [bool], now_ns: u64, all: bool) -> Result<(), LinkError> {
        let mut buffer = [0u8; BUFFER_BYTES];
        for (index, port) in self.ports.ports.iter().enumerate() {
            if !unread[index] {
                continue;
            }
            let from = port_of(index, self.stations.len());
            // Bounded, so that a flood on one interface does not hold up the others.
            let most = if all { KERNEL_QUEUE_PACKETS } else { self.model.room(from) };
            for _ in 0..most {
                let Some(bytes) = port.read(&mut buffer).map_err(|error| broken(&error))? else {
                    unread[index] = false;
                    break;
                };
                let packet = &buffer[..bytes];
                match self.routes.find(from, packet) {
                    Some(to) => self.model.enqueue(now_ns, from, to, bytes as u32, packet.into()),
                    None => self.unroutable += 1,
                }
            }
        }
        Ok(())
    }

    fn close_interval(&mut self) {
        let end_ns = self.interval_end_ns;
        self.interval_end_ns += INTERVAL_NS;
        let stations = self.model.close_interval(end_ns, self.interval_end_ns);
        let mut lines = Vec::new();
        stations.iter().for_each(|line| encode(line, &mut lines));
        self.routers.lines(&mut self.model, end_ns).iter().for_each(|line| encode(line, &mut lines));
        self.publisher.publish(&lines);
    }

    fn deliver(&mut self) -> Result<(), LinkError> {
        while let Some(departure) = self.model.poll_departure() {
            let index = index_of(departure.to, self.stations.len());
            self.ports.ports[index].write(&departure.packet).map_err(|error| broken(&error))?;
        }
        Ok(())
    }

    /// Waits for the next event, packet or command.
    fn wait(&mut self) -> Result<Option<&'static str>, LinkError> {
        let wake_ns =
            self.model.next_wake_ns().map_or(self.interval_end_ns, |at_ns| at_ns.min(self.interval_end_ns));
        let now_ns = now_ns();
        let control_is_due = now_ns >= self.control_due_ns;
        let left_ns = wake_ns.saturating_sub(now_ns);
        if left_ns <= SPIN_NS && !control_is_due {
            while clock::now_ns() < wake_ns {
                std::hint::spin_loop();
            }
            return Ok(None);
        }
        let watch_ports = !self.model.has_waiting();
        let left_ns = if watch_ports { left_ns } else { left_ns.min(UNWATCHED_NS) };
        self.control_due_ns = now_ns + CONTROL_NS;
        self.poll(left_ns, watch_ports)
    }

    fn poll(&mut self, timeout_ns: u64, watch_ports: bool) -> Result<Option<&'static str>, LinkError> {
        let stdin = std::io::stdin();
        let mut fds = vec![readable(self.signals.as_fd()), readable(self.publisher.as_fd())];
        if watch_ports {
            fds.extend(self.ports.ports.iter().map(|port| readable(port.as_fd())));
        }
        if self.watch_stdin {
            fds.push(readable(stdin.as_fd()));
        }
        let timeout = TimeSpec::new((timeout_ns / 1_000_000_000) as i64, (timeout_ns % 1_000_000_000) as i64);
        match ppoll(&mut fds, Some(timeout), None) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(LinkError::Failed(format!("waiting for packets failed: {error}"))),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        drop(fds);
        if ready[0] {
            return Ok(Some("signal"));
        }
        if ready[1] {
            self.publisher.accept();
        }
        if self.watch_stdin && ready[ready.len() - 1] {
            let Some(lines) = self.commands.read(&stdin) else { return Ok(Some("stdin")) };
            lines.iter().for_each(|line| self.obey(line));
        }
        Ok(None)
    }

    /// Does what a command says, and answers what is in force then, or why nothing changed.
    fn obey(&mut self, command: &str) {
        let answer = self
            .change(command)
            .unwrap_or_else(|error| json!({"event": "error", "message": error.to_string()}));
        say(&answer);
    }

    fn change(&mut self, command: &str) -> Result<Value, LinkError> {
        Ok(match Told::parse(command, &self.stations, &self.hosts)? {
            Told::Path(host, doc, params) => {
                self.model.change_path(now_ns(), host, &params);
                self.routers.change(host, &doc.elements);
                json!({"event": "path", "host": doc.host, "elements": doc.elements})
            }
            Told::Access(station, doc) => {
                self.model.change_access(now_ns(), station, doc.access.as_ref())?;
                json!({"event": "access", "station": doc.station, "access": doc.access})
            }
        })
    }

    fn note_lateness(&mut self, now_ns: u64) {
        if let Some(late_ns) = self.model.next_wake_ns().and_then(|due_ns| now_ns.checked_sub(due_ns)) {
            self.lateness.add(late_ns);
        }
    }

    fn ready_line(&self, config: &Config) -> Value {
        let station = |station: &crate::config::StationConfig| {
            json!({"station": station.end.name, "ifname": station.end.ifname,
                   "phy_rate_mbps": station.params.framing.phy().rate_mbps()})
        };
        json!({
            "event": "ready", "version": env!("CARGO_PKG_VERSION"), "io": self.ports.io, "preset": config.preset.name, "fitted": config.preset.fitted,
            "seed": config.seed, "stats_socket": config.stats_socket,
            "stations": config.stations.iter().map(station).collect::<Vec<_>>(),
        })
    }

    /// Takes everything down and gives the final line.
    fn close(self) -> Value {
        let end_ns = now_ns();
        let totals = |(index, name): (usize, &String)| {
            let totals = self.model.totals(index);
            let mut line = json!(totals);
            line["station"] = json!(name);
            line["packets_tx"] = json!(totals.packets_tx);
            line["packets_rx"] = json!(totals.packets_rx);
            line
        };
        let drops = |(index, host): (usize, &String)| {
            let drops = self.model.wired_drops(index);
            json!({"host": host, "lost": drops.lost, "queue_drops": drops.full})
        };
        let late = &self.lateness;
        let last = json!({
            "event": "final", "duration_s": (end_ns - self.started_ns) as f64 / 1e9, "cpu_s": clock::cpu_s(),
            "stations": self.stations.iter().enumerate().map(totals).collect::<Vec<_>>(),
            "paths": self.hosts.iter().enumerate().map(drops).collect::<Vec<_>>(),
            "collisions": self.model.collisions(), "in_link": self.model.held(), "unroutable": self.unroutable,
            "kernel_drops": self.ports.ports.iter().map(|port| port.kernel_drops()).sum::<u64>(),
            "subscribers_dropped": self.publisher.dropped(), "wakes": late.count,
            "late_mean_us": late.mean_us(), "late_max_us": late.max_us(),
        });
        self.ports.close();
        last
    }
}

fn port_of(index: usize, stations: usize) -> Port {
    if index < stations {
        Port::Station(index)
    } else {
        Port::Wired(index - stations)
    }
}

fn index_of(port: Port, stations: usize) -> usize {
    match port {
        Port::Station(index) => index,
        Port::Wired(host) => stations + host,
    }
}

fn readable(fd: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::POLLIN)
}

/// Adds a statistics line.
fn encode(line: &impl Serialize, lines: &mut Vec<u8>) {
    // A struct of numbers and strings always serialises, and a Vec always takes it.
    let _ = serde_json::to_writer(&mut *lines, line);
    lines.push(b'\n');
}

/// One line on standard output; who started the link may have closed it, which is no failure.
fn say(line: &Value) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

fn broken(error: &std::io::Error) -> LinkError {
    LinkError::Failed(format!("an interface of the link failed: {error}; was it or its namespace removed?"))
}

/// Blocks SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP for all threads and gives them as a descriptor.
fn catch_signals() -> Result<SignalFd, LinkError> {
    let failed = |error: nix::errno::Errno| LinkError::Failed(format!("cannot catch signals: {error}"));
    let mut set = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM].into_iter().for_each(|signal| set.add(signal));
    // A blocked signal would reach the descriptor even when it is ignored.
    if !hangup_is_ignored() {
        set.add(Signal::SIGHUP);
    }
    set.thread_block().map_err(failed)?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(failed)
}

fn hangup_is_ignored() -> bool {
    // SAFETY: the structure is live; sigaction(2) only reads the disposition into it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
