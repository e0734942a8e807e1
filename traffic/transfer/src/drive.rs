// SPDX-License-Identifier: Apache-2.0
//! Does what the scheduler asks for until every file is there or given up.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use netjoule_measure::failure::{Failure, Outcome};
use netjoule_measure::host;
use netjoule_scheduler::dispatch::{Action, Ended};
use netjoule_scheduler::path;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use crate::fault::{Fault, Trouble};
use crate::fetch::{self, Part, Transfer};
use crate::job::Job;
use crate::network::origin::Origin;
use crate::pace::Pace;
use crate::power_model::PowerModel;
use crate::prepare::buffer_bytes;
use crate::progress::{Progress, Seen};

/// Length of the report's intervals.
const INTERVAL: Duration = Duration::from_millis(100);

/// Intervals between two notes of what has come.
const NOTE_EVERY: u64 = 10;

/// A file begins anew so often, at most; what breaks off each time for as long as a server is waited for, too.
const MOST_RESTARTS: u32 = 5;

type Ending = (u64, Result<(), Trouble>);

/// What is known of the path beforehand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownPath {
    pub(crate) rate_mbps: Option<f64>,
    pub(crate) rtt_ms: Option<f64>,
}

/// Who tells what the transfer takes: a meter's lines, or a model, which is asked at each tick.
pub(crate) struct Energy {
    pub(crate) lines: mpsc::UnboundedReceiver<f64>,
    pub(crate) model: Option<PowerModel>,
}

/// A transfer that is over.
pub(crate) struct Done {
    pub(crate) transfer: Rc<Transfer>,
    pub(crate) pace: Pace,
    /// CPU time of this process meanwhile.
    pub(crate) cpu_ns: i64,
}

/// A transfer under way.
pub(crate) struct Run {
    transfer: Rc<Transfer>,
    tasks: HashMap<u64, (usize, AbortHandle)>,
    ended: mpsc::UnboundedSender<Ending>,
    endings: mpsc::UnboundedReceiver<Ending>,
    energy: Energy,
    modelled_j: f64,
    known: KnownPath,
    pace: Pace,
    progress: Progress,
    start_cpu_ns: i64,
    ticks: u64,
}

/// Sends how a part ended, even when its task panics: the transfer would wait for it for ever.
struct Sent {
    ended: mpsc::UnboundedSender<Ending>,
    id: u64,
    result: Option<Result<(), Trouble>>,
}

impl Drop for Sent {
    fn drop(&mut self) {
        let failed = || Trouble::Final(Fault::new("internal", "this program failed: report what it printed"));
        // Nobody listens any more when the transfer was interrupted.
        let _ = self.ended.send((self.id, self.result.take().unwrap_or_else(|| Err(failed()))));
    }
}

impl Run {
    /// It begins now.
    pub(crate) fn new(transfer: Rc<Transfer>, known: KnownPath, energy: Energy, progress: Progress) -> Self {
        let (ended, endings) = mpsc::unbounded_channel();
        Self {
            transfer,
            tasks: HashMap::new(),
            ended,
            endings,
            energy,
            modelled_j: 0.0,
            known,
            pace: Pace::new(host::now_ns()),
            progress,
            start_cpu_ns: host::total_ns(),
            ticks: 0,
        }
    }

    /// Until every file is there or given up, or a signal comes.
    pub(crate) async fn work(mut self) -> Outcome<Done> {
        let watch = |kind| signal(kind).map_err(Failure::system("watch for signals"));
        let mut signals =
            [watch(SignalKind::interrupt())?, watch(SignalKind::terminate())?, watch(SignalKind::hangup())?];
        let mut ticker = tokio::time::interval(INTERVAL);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.settle_those_there();
        while self.start_what_is_next() {
            let [interrupt, terminate, hang_up] = &mut signals;
            tokio::select! {
                Some(ending) = self.endings.recv() => self.take(ending),
                Some(energy_j) = self.energy.lines.recv() => self.used(energy_j),
                _ = ticker.tick() => self.tick(),
                _ = interrupt.recv() => self.interrupt(),
                _ = terminate.recv() => self.interrupt(),
                _ = hang_up.recv() => self.interrupt(),
            }
            while let Ok(ending) = self.endings.try_recv() {
                self.take(ending);
            }
        }
        self.pace.tick(host::now_ns(), self.transfer.bytes.get());
        self.progress.end();
        let cpu_ns = host::total_ns() - self.start_cpu_ns;
        Ok(Done { transfer: self.transfer, pace: self.pace, cpu_ns })
    }

    /// Files of which an earlier run has left everything.
    fn settle_those_there(&mut self) {
        for file in 0..self.transfer.jobs.len() {
            self.settle(file);
        }
    }

    /// Does what the scheduler asks for; false when nothing is left to do.
    fn start_what_is_next(&mut self) -> bool {
        let elapsed_ns = (host::now_ns() - self.pace.start_ns).max(0) as u64;
        let actions = self.transfer.scheduler.borrow_mut().poll(elapsed_ns);
        let most = self.transfer.scheduler.borrow().connections().max(1);
        self.transfer.most_connections.set(most);
        self.transfer.pools.borrow().values().for_each(|pool| pool.allow(most));
        for action in actions {
            // A part that another one has shortened notices when its bytes are no longer its own.
            if let Action::Start { part, file, first, end } = action {
                self.start(Part { id: part, file, first, next: first, end });
            }
        }
        !(self.tasks.is_empty() && self.transfer.scheduler.borrow().is_finished())
    }

    fn start(&mut self, part: Part) {
        let (id, file, ended) = (part.id, part.file, self.ended.clone());
        let work = fetch::part(self.transfer.clone(), part);
        let task = tokio::task::spawn_local(async move {
            let mut ending = Sent { ended, id, result: None };
            ending.result = Some(work.await);
        });
        self.tasks.insert(id, (file, task.abort_handle()));
    }

    fn take(&mut self, (id, result): Ending) {
        // What was stopped meanwhile has ended already.
        let Some((file, _)) = self.tasks.remove(&id) else { return };
        let how = if result.is_ok() { Ended::Done } else { Ended::Failed };
        self.transfer.scheduler.borrow_mut().ended(id, how);
        match result {
            Ok(()) => self.settle(file),
            Err(Trouble::Restart(fault)) => self.restart(file, fault),
            Err(Trouble::Final(fault)) => self.give_up(file, &fault),
            Err(Trouble::Server(fault)) => self.give_up_server(file, &fault),
            Err(Trouble::Fatal(fault)) => self.give_up_all(&fault),
            Err(Trouble::Unanswered(words) | Trouble::Broken(words) | Trouble::Busy(_, words)) => {
                self.give_up(file, &Fault::new("connection", words));
            }
            Err(Trouble::Moved(url)) => {
                self.give_up(file, &Fault::new("http_status", format!("too many redirects, to {url}")));
            }
        }
    }

    /// A file of which everything has come is verified and gets its name.
    fn settle(&mut self, file: usize) {
        let job = &self.transfer.jobs[file];
        let is_over = self.transfer.scheduler.borrow().is_over(file);
        if is_over && job.outcome.borrow().is_none() {
            let outcome = job.finish();
            job.outcome.replace(Some(outcome));
        }
    }

    fn restart(&mut self, file: usize, fault: Fault) {
        self.stop(|other| other == file);
        let job = &self.transfer.jobs[file];
        let patience = self.transfer.options.patience;
        // A connection that breaks off may be better after a while.
        let may_heal = fault.code == "connection"
            && job.restarting_since.get().is_none_or(|since| since.elapsed() <= patience);
        if job.restarts.get() >= MOST_RESTARTS && !may_heal {
            let sentence = format!("{}; {} new starts did not help", fault.sentence, job.restarts.get());
            return self.give_up(file, &Fault { sentence, ..fault });
        }
        job.restart();
        self.transfer.again();
        self.transfer.scheduler.borrow_mut().restart(file, job.item.size);
    }

    fn give_up(&mut self, file: usize, fault: &Fault) {
        self.stop(|other| other == file);
        let job = &self.transfer.jobs[file];
        if job.outcome.borrow().is_some() {
            return;
        }
        self.transfer.scheduler.borrow_mut().give_up(file);
        if matches!(fault.code, "signature" | "length") {
            job.discard();
        }
        job.outcome.replace(Some(Err(fault.clone())));
    }

    fn give_up_server(&mut self, file: usize, fault: &Fault) {
        let transfer = self.transfer.clone();
        let origin = |file: usize| Origin::of(&transfer.jobs[file].url.borrow());
        let server = origin(file);
        (0..transfer.jobs.len())
            .filter(|other| origin(*other) == server)
            .for_each(|other| self.give_up(other, fault));
    }

    /// What has come is noted for a later run.
    fn give_up_all(&mut self, fault: &Fault) {
        (0..self.transfer.jobs.len()).for_each(|file| self.give_up(file, fault));
        self.note();
    }

    /// End parts without waiting for what they would say.
    fn stop(&mut self, is_one: impl Fn(usize) -> bool) {
        let transfer = &self.transfer;
        self.tasks.retain(|id, (file, task)| {
            let goes = is_one(*file);
            if goes {
                task.abort();
                transfer.scheduler.borrow_mut().ended(*id, Ended::Failed);
            }
            !goes
        });
    }

    fn interrupt(&mut self) {
        self.give_up_all(&Fault::new("interrupted", "interrupted: the same command goes on from here"));
    }

    fn used(&mut self, energy_j: f64) {
        self.pace.used(host::now_ns(), energy_j);
        self.transfer.scheduler.borrow_mut().used((energy_j.max(0.0) * 1e6) as u64);
    }

    fn tick(&mut self) {
        self.pace.tick(host::now_ns(), self.transfer.bytes.get());
        self.model();
        self.ticks += 1;
        if self.ticks.is_multiple_of(NOTE_EVERY) {
            self.note();
            self.measure_path();
        }
        if self.progress.is_shown() {
            self.progress.show(&self.seen());
        }
    }

    fn seen(&self) -> Seen {
        let jobs = &self.transfer.jobs;
        let of = jobs.iter().map(|job| job.size.get()).sum::<Option<u64>>();
        // What was there before has come, too; what came twice has come once.
        let there = of.map(|of| of.saturating_sub(self.transfer.scheduler.borrow().left_bytes()));
        Seen {
            over_n: jobs.iter().filter(|job| job.outcome.borrow().is_some()).count(),
            files_n: jobs.len(),
            bytes: there.unwrap_or(self.transfer.bytes.get()),
            of,
            rate_bytes_per_s: self.pace.rate(),
            power_w: self.pace.power_w(),
        }
    }

    /// What the model says of the last interval, as if a meter had.
    fn model(&mut self) {
        let (Some(model), Some(last)) = (self.energy.model, self.pace.last()) else { return };
        let connections = self.transfer.pools.borrow().values().map(|pool| pool.busy()).sum();
        self.modelled_j += model.energy_j(last, connections);
        self.used(self.modelled_j);
    }

    /// For a later run. What cannot be noted is fetched again then.
    fn note(&self) {
        let under_way = |job: &&Job| !matches!(*job.outcome.borrow(), Some(Ok(())));
        self.transfer.jobs.iter().filter(under_way).for_each(|job| drop(job.note()));
    }

    /// Tell the scheduler what the path is like once that can be told.
    fn measure_path(&self) {
        let facts = &self.transfer.options.facts;
        let KnownPath { rate_mbps, rtt_ms } = self.known;
        let rtt_ns = rtt_ms.map(|ms| (ms * 1e6) as u64).or(facts.rtt().map(|rtt| rtt.as_nanos() as u64));
        let (Some(rtt_ns), Some(best)) = (rtt_ns, self.pace.best_rate(rtt_ns.unwrap_or(0))) else { return };
        self.transfer.scheduler.borrow_mut().measured(path::Path {
            bandwidth_bytes_per_s: rate_mbps.map_or(best, |mbps| mbps * 125_000.0) as u64,
            rtt_ns,
            buffer_bytes: buffer_bytes(self.transfer.options.window_bytes.map(u64::from)),
        });
    }
}
