// SPDX-License-Identifier: Apache-2.0
//! The connections to one server: how many are open, and which one takes the next request.
//!
//! An idle connection comes first, then a new one while there may be more, then the one with the fewest requests: for
//! HTTP/2 and /3 over a long path it is connections that help, not streams.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::Notify;

use crate::fault::{Fault, Trouble};
use crate::network::connection::Connection;
use crate::network::options::{Options, Server};
use crate::network::origin::Origin;

/// Connections to one server.
pub(crate) struct Pool {
    origin: Origin,
    options: Rc<Options>,
    /// Requests at once on one connection, where its HTTP has that.
    streams: u32,
    addresses: RefCell<Vec<SocketAddr>>,
    connections: RefCell<Vec<Rc<Connection>>>,
    opening: Cell<u32>,
    most: Cell<u32>,
    freed: Notify,
    /// Whether there was ever a connection.
    was_reached: Cell<bool>,
    /// Since when no connection could be opened.
    failing_since: Cell<Option<Instant>>,
    /// Since the beginning.
    pub(crate) opened: Cell<u64>,
    /// Of the last connection.
    pub(crate) server: RefCell<Server>,
}

/// The right to ask for one thing on a connection.
pub(crate) struct Lease {
    pool: Rc<Pool>,
    /// The connection.
    pub(crate) connection: Rc<Connection>,
    is_clean: bool,
}

impl Pool {
    /// No connection yet.
    pub(crate) fn new(origin: Origin, options: Rc<Options>, streams: u32, most: u32) -> Self {
        Self {
            origin,
            options,
            streams,
            addresses: RefCell::default(),
            connections: RefCell::default(),
            opening: Cell::new(0),
            most: Cell::new(most.max(1)),
            freed: Notify::new(),
            was_reached: Cell::new(false),
            failing_since: Cell::new(None),
            opened: Cell::new(0),
            server: RefCell::default(),
        }
    }

    /// So many connections from now on; idle ones above that are closed.
    pub(crate) fn allow(&self, most: u32) {
        let most = most.max(1);
        if self.most.replace(most) == most {
            return;
        }
        let mut connections = self.connections.borrow_mut();
        let mut surplus = connections.len().saturating_sub(most as usize);
        connections.retain(|connection| {
            let goes = surplus > 0 && connection.streams.get() == 0;
            surplus -= usize::from(goes);
            !goes
        });
        self.freed.notify_waiters();
    }

    /// Connections that have a request.
    pub(crate) fn busy(&self) -> usize {
        self.connections.borrow().iter().filter(|connection| connection.streams.get() > 0).count()
    }

    /// A connection that has become idle goes where there are more than are wanted.
    fn close_surplus(&self, connection: &Rc<Connection>) {
        let mut connections = self.connections.borrow_mut();
        if connection.streams.get() == 0 && connections.len() > self.most.get() as usize {
            connections.retain(|other| !Rc::ptr_eq(other, connection));
        }
    }

    /// A connection for one request, opened if need be; waits while all are busy.
    pub(crate) async fn lease(self: &Rc<Self>) -> Result<Lease, Trouble> {
        loop {
            let freed = self.freed.notified();
            if let Some(connection) = self.idle().or_else(|| self.shared()) {
                return Ok(self.lent(connection));
            }
            if self.may_open() {
                let connection = Rc::new(self.open().await?);
                self.connections.borrow_mut().push(connection.clone());
                return Ok(self.lent(connection));
            }
            freed.await;
        }
    }

    fn may_open(&self) -> bool {
        self.connections.borrow().len() + (self.opening.get() as usize) < self.most.get() as usize
    }

    fn idle(&self) -> Option<Rc<Connection>> {
        let mut connections = self.connections.borrow_mut();
        connections.retain(|connection| connection.is_usable() || connection.streams.get() > 0);
        let is_idle = |connection: &&Rc<Connection>| connection.is_usable() && connection.streams.get() == 0;
        connections.iter().find(is_idle).cloned()
    }

    /// The one with the fewest requests that takes another, where no further connection may be opened.
    fn shared(&self) -> Option<Rc<Connection>> {
        if self.may_open() {
            return None;
        }
        let connections = self.connections.borrow();
        let has_room = |connection: &&Rc<Connection>| {
            connection.is_usable() && connection.streams.get() < connection.most_streams(self.streams)
        };
        connections.iter().filter(has_room).min_by_key(|connection| connection.streams.get()).cloned()
    }

    fn lent(self: &Rc<Self>, connection: Rc<Connection>) -> Lease {
        connection.streams.set(connection.streams.get() + 1);
        Lease { pool: self.clone(), connection, is_clean: false }
    }

    async fn open(&self) -> Result<Connection, Trouble> {
        let _place = Opening::new(self);
        let addresses = self.resolve().await?;
        let opened = Connection::open(&self.origin, &addresses, &self.options).await;
        let connection = opened.map_err(|trouble| match trouble {
            Trouble::Unanswered(words) if self.is_lost() => Trouble::Server(Fault::new("connection", words)),
            other => other,
        })?;
        self.was_reached.set(true);
        self.failing_since.set(None);
        self.opened.set(self.opened.get() + 1);
        let mut server = self.server.borrow_mut();
        *server = Server { software: server.software.take(), ..connection.server.clone() };
        Ok(connection)
    }

    /// A server that was never there will hardly come; one that was may come back for a while.
    fn is_lost(&self) -> bool {
        let since = self.failing_since.get().unwrap_or_else(Instant::now);
        self.failing_since.set(Some(since));
        !self.was_reached.get() || since.elapsed() > self.options.patience
    }

    async fn resolve(&self) -> Result<Vec<SocketAddr>, Trouble> {
        if self.addresses.borrow().is_empty() {
            let found = tokio::net::lookup_host((self.origin.host.as_str(), self.origin.port)).await;
            let found = found.map_err(|error| {
                let words = format!("{} has no address: {error}", self.origin.host);
                Trouble::Server(Fault::new("connection", words))
            })?;
            *self.addresses.borrow_mut() = found.collect();
        }
        Ok(self.addresses.borrow().clone())
    }
}

/// Counts a connection while it is being opened, and tells those who wait when that is over, be it well or not.
struct Opening<'a>(&'a Pool);

impl<'a> Opening<'a> {
    fn new(pool: &'a Pool) -> Self {
        pool.opening.set(pool.opening.get() + 1);
        Self(pool)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.opening.set(self.0.opening.get() - 1);
        self.0.freed.notify_waiters();
    }
}

impl Lease {
    /// The answer came to its end: the connection is as good as before.
    pub(crate) fn is_over(&mut self) {
        self.is_clean = true;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let connection = &self.connection;
        connection.streams.set(connection.streams.get() - 1);
        connection.answered.set(connection.answered.get() + 1);
        // HTTP/1.1 cannot leave an answer out; the others reset its stream.
        if !self.is_clean && connection.most_streams(2) == 1 {
            connection.retire();
        }
        self.pool.close_surplus(connection);
        self.pool.freed.notify_waiters();
    }
}
