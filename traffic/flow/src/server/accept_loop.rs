// SPDX-License-Identifier: Apache-2.0
//! Who comes in when: serves the accept queue, gives each flow a process of its own, ends everything in order.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use netjoule_transport::PollFd;
use serde_json::json;

use super::accept_queue::{self, AcceptQueue, Entry};
use super::admission::{Admission, Ended, FlowLimit};
use super::descriptors;
use super::flow;
use super::log_lines;
use super::shared::Server;
use crate::arguments::{ServeArgs, MOST_FLOWS};
use crate::control::failure_message;
use crate::control::greeting::Guest;
use crate::control::secret::Secret;
use netjoule_measure::background::Background;
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::stdout_lock;
use netjoule_measure::wait::Waiter;

/// Listen, say so, and let clients in until told to end; the exit code.
pub(crate) fn run(server: Server<'_>, background: Option<Background>) -> Outcome<u8> {
    let (args, output) = (server.args, server.output);
    let secret = Secret::find(args.secret.as_deref(), |name| std::env::var_os(name))?;
    stdout_lock::share_stdout().map_err(Failure::system("share stdout with the flows' processes"))?;
    let files = descriptors::raise_limit()?;
    // Where descriptors are few, one flow is what a server must have; the further ones of a command share the margin.
    let connections = descriptors::connections(files, args.max_flows.map_or(1, u64::from))?;
    let control = SocketAddr::new(args.control_bind.unwrap_or(args.bind), args.port);
    let listener = TcpListener::bind(control).map_err(|error| {
        Failure::new(
            Code::Refused,
            format!("cannot listen on {control}: {error} (choose another --bind or --port)"),
        )
    })?;
    let address = listener.local_addr().map_err(Failure::system("read the control address"))?;
    let listening = json!({
        "control": address.to_string(),
        "connections": connections,
        "asks_for_secret": secret.is_some(),
    });
    let mut accept_loop = AcceptLoop {
        server,
        accept_queue: AcceptQueue::open(listener, connections, secret)?,
        admission: Admission::new(most_flows(args)),
        waiter: Waiter::new().map_err(Failure::system("open a timer"))?,
        fds: Vec::new(),
        closing: false,
        has_served: false,
    };
    // Last: who hears it may count on what a server needs being there.
    output.event("listening", listening)?;
    output.say(|| log_lines::awaited(address))?;
    if connections < descriptors::ENOUGH_CONNECTIONS {
        output.complain(&format!(
            "only {connections} control connections may wait: the limit on open files is {files} (ulimit -n)"
        ));
    }
    background.map_or(Ok(()), Background::settle)?;
    accept_loop.run()
}

/// The server's own process: one thread, which waits for everything at once.
struct AcceptLoop<'a> {
    server: Server<'a>,
    accept_queue: AcceptQueue,
    admission: Admission,
    waiter: Waiter,
    fds: Vec<PollFd>,
    closing: bool,
    /// A flow was let in.
    has_served: bool,
}

/// Where the descriptors of a look begin.
struct Looked {
    flows: usize,
    accept_queue: usize,
    told_to_end: bool,
}

impl AcceptLoop<'_> {
    /// Let clients in until told to end; the exit code: 1 when that stopped a flow.
    fn run(&mut self) -> Outcome<u8> {
        loop {
            let looked = self.look()?;
            if looked.told_to_end {
                break;
            }
            self.remove_ended(looked.flows);
            if self.server.args.one_off && self.has_served && self.admission.is_empty() {
                break;
            }
            self.accept_queue.serve(host::now_ns(), &|index| self.waiter.ready(looked.accept_queue + index));
            while let Some(entry) = self.next_entry() {
                self.let_in(entry);
            }
        }
        self.closing = true;
        self.accept_queue.close();
        self.admission.stop();
        let mut interrupted = false;
        while !self.admission.is_empty() {
            let looked = self.look()?;
            interrupted |= self.remove_ended(looked.flows);
        }
        Ok(u8::from(interrupted))
    }

    /// The first client for whose flow there is room.
    fn next_entry(&mut self) -> Option<Entry> {
        let room =
            |peer, guest: &Guest| self.admission.has_room_for(peer, guest.hello.flow.command_id.as_deref());
        self.accept_queue.take(room)
    }

    /// Sleep until something happens.
    fn look(&mut self) -> Outcome<Looked> {
        let now_ns = host::now_ns();
        let readable = |fd| PollFd { fd, read: true, write: false };
        let heeds_stdin = self.server.args.exit_with_stdin && !self.closing;
        self.fds.clear();
        self.fds.push(readable(self.server.signals.fd()));
        if heeds_stdin {
            self.fds.push(readable(std::io::stdin().as_raw_fd()));
        }
        let flows = self.fds.len();
        self.admission.poll_fds(&mut self.fds);
        let accept_queue = self.fds.len();
        self.accept_queue.poll_fds(now_ns, &mut self.fds);
        let deadline_ns = self.accept_queue.next_deadline_ns(now_ns);
        self.waiter.wait(&self.fds, deadline_ns, now_ns).map_err(Failure::system("wait for clients"))?;
        let stdin_ended = heeds_stdin
            && self.waiter.ready(1)
            && !matches!(std::io::stdin().lock().read(&mut [0; 4096]), Ok(1..));
        let told_to_end = (self.waiter.ready(0) && self.server.signals.take()) || stdin_ended;
        Ok(Looked { flows, accept_queue, told_to_end })
    }

    /// See which flows have ended; whether one of them had been told to stop.
    fn remove_ended(&mut self, flows: usize) -> bool {
        let ended = self.admission.clear(&|index| self.waiter.ready(flows + index));
        for (flow_id, failure) in ended.iter().filter_map(Ended::failure) {
            self.server.tell_failure(flow_id, &failure, None);
        }
        ended.contains(&Ended::Interrupted)
    }

    /// Give a client a process for its flow, or tell it that there is none.
    fn let_in(&mut self, entry: Entry) {
        let Entry { stream, peer, guest } = entry;
        let flow = guest.hello.flow.clone();
        let mut waiting = Some((stream, guest));
        self.has_served = true;
        let started = self.admission.start(peer, &flow, || {
            self.accept_queue.close();
            waiting.take().is_some_and(|(stream, guest)| flow::serve(&self.server, stream, &guest))
        });
        if let (Err(failure), Some((mut stream, _))) = (started, waiting) {
            accept_queue::tell(&mut stream, &failure_message(&failure));
            self.server.tell_failure(&flow.flow_id, &failure, None);
        }
    }
}

/// How many flows at once the arguments ask for.
fn most_flows(args: &ServeArgs) -> FlowLimit {
    match (args.max_flows, args.max_flows_per_peer) {
        (None, None) => FlowLimit::OneCommand,
        (all, per_peer) => {
            let all = all.map_or(MOST_FLOWS, |all| all as usize);
            FlowLimit::Flows { all, per_peer: per_peer.map_or(all, |most| most as usize) }
        }
    }
}
