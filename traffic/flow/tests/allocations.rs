// SPDX-License-Identifier: Apache-2.0
//! Once a flow runs, nothing is allocated per message, acknowledgement or wake-up at either end. QUIC is left out, for
//! quiche allocates for every packet.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use netjoule_measure::host::now_ns;
use netjoule_measure::output::Output;
use netjoule_measure::wait::{Signals, Waiter};
use netjoule_traffic::control::FlowRequest;
use netjoule_traffic::registry;
use netjoule_traffic::sender::{self, Plan};
use netjoule_traffic::session::Session;
use netjoule_transport::{FlowSpec, Protocol, Role, State, Transport, Values};
use serde_json::json;

const MESSAGE_BYTES: u64 = 100;
/// What may differ between two flows: tables that grow with what they see.
const GROWTH: u64 = 100;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts for each thread.
struct Counting;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(block, layout, bytes) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn request(transport: &str, messages_per_s: u64) -> FlowRequest {
    let flow = json!({
        "flow_id": "00112233445566778899aabbccddeeff",
        "transport": transport,
        "direction": "up",
        "payload_bytes": MESSAGE_BYTES,
        "rate_bps": messages_per_s * MESSAGE_BYTES * 8,
        "duration_ns": 500_000_000_u64,
        "interval_ns": 100_000_000,
        "window_us": 0,
        "gso": false,
        "seed": 1,
        "data_address": "127.0.0.1",
        "control_apart": false,
    });
    serde_json::from_value(flow).unwrap()
}

fn spec(protocol: &dyn Protocol, role: Role, options: &Values) -> FlowSpec {
    FlowSpec {
        payload_bytes: MESSAGE_BYTES as usize,
        role,
        token: [7; 16],
        gso: false,
        seed: 1,
        rate_bps: 0,
        options: protocol.options(options).unwrap(),
        event_log: None,
    }
}

/// Receives until `is_over`; messages, and the allocations from the first message to the last.
fn receive(mut end: Box<dyn Transport>, is_over: &AtomicBool) -> (u64, u64) {
    let (mut waiter, mut fds) = (Waiter::new().unwrap(), Vec::new());
    let (mut messages, mut first, mut last) = (0, None, 0);
    while !is_over.load(Ordering::Relaxed) {
        fds.clear();
        end.poll_fds(&mut fds);
        let wakeup_ns = end.next_wakeup_ns().unwrap_or(i64::MAX).min(now_ns() + 20_000_000);
        waiter.wait(&fds, Some(wakeup_ns), now_ns()).unwrap();
        if end.service(now_ns()).unwrap() == State::Open {
            let count = end.receive(now_ns(), &mut |_| {}).unwrap();
            messages += count as u64;
            if count > 0 {
                last = ALLOCATIONS.get();
                first.get_or_insert(last);
            }
        }
    }
    (messages, last - first.unwrap_or(last))
}

/// Messages sent, allocations of the sender, allocations of the receiver.
fn allocations(transport: &str, options: &Values, messages_per_s: u64) -> [u64; 3] {
    let protocol = registry::protocol(transport).unwrap();
    let request = request(transport, messages_per_s);
    let plan = Plan::of(&request, request.constant_schedule(), protocol.kind());
    let signals = Signals::new().unwrap();
    let is_over = AtomicBool::new(false);
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let receiver = (transport != "null").then(|| {
            scope.spawn(|| {
                let end = protocol.listen(local, None, &spec(protocol, Role::Receiver, options)).unwrap();
                tell.send((end.local_address().unwrap(), end.offer())).unwrap();
                receive(end, &is_over)
            })
        });
        let (remote, offer) = if receiver.is_some() { told.recv().unwrap() } else { (local, Values::new()) };
        let end =
            protocol.connect(None, remote, &spec(protocol, Role::Sender, options), &offer, now_ns()).unwrap();
        let mut session = Session::new(end, None, &signals, None).unwrap();
        if transport != "null" {
            let is_open = |session: &mut Session<'_>| Ok(session.state == State::Open);
            session.wait_for("the flow", 20_000_000_000, is_open).unwrap();
        }
        let before = ALLOCATIONS.get();
        let sent = sender::run(&mut session, &plan, Output::Silent).unwrap();
        let of_sender = ALLOCATIONS.get() - before;
        is_over.store(true, Ordering::Relaxed);
        let (received, of_receiver) = receiver.map_or((0, 0), |thread| thread.join().unwrap());
        assert!(transport == "null" || received > sent.part.messages_sent / 2, "{transport}");
        [sent.part.messages_sent, of_sender, of_receiver]
    })
}

#[test]
fn a_running_flow_allocates_nothing() {
    let ccid = |number: u64| Values::from_iter([("ccid".to_owned(), number.into())]);
    let flows = ["null", "udp", "tcp"].map(|transport| (transport, Values::new()));
    for (transport, options) in flows.into_iter().chain([2, 3].map(|number| ("dccp", ccid(number)))) {
        let [few, many] = [200, 10_000].map(|rate| allocations(transport, &options, rate));
        assert!(many[0] > few[0] + 1_000, "{transport} {options:?}: {few:?} {many:?}");
        for (end, name) in [(1, "sender"), (2, "receiver")] {
            assert!(many[end] <= few[end] + GROWTH, "{transport} {options:?}, {name}: {few:?} {many:?}");
        }
    }
}
