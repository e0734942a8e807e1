# SPDX-License-Identifier: Apache-2.0
"""Workers of Dask distributed, one per rig: started on this machine, or behind a scheduler that runs already.

Dask says which worker is free, and shows it; whose a block is, the campaign's folder and the rig's lock say.
Its scheduler runs whatever it is sent (it unpickles): so it listens on loopback alone, or speaks TLS.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any

from netjoule.core.errors import HostLacks, NetjouleError, RunFailed, UsageError, refused
from netjoule.core.signals import handled_by, termination_signals
from netjoule.rigs.block import RESUME, Done, execute_block
from netjoule.rigs.simulated_batch import execute_batch

if TYPE_CHECKING:
    from distributed import Client, Future

LOOPBACK = "127.0.0.1"
TLS_FILES = ("ca-file", "client.cert", "client.key")
"""Of a client, among Dask's settings distributed.comm.tls."""
_TOPIC = "netjoule"
_CONFIG = {
    "distributed.scheduler.allowed-failures": 1,
    "distributed.scheduler.work-stealing": False,
    "distributed.comm.timeouts.connect": "20s",
    "distributed.worker.daemon": False,  # a worker starts processes
    "distributed.admin.tick.limit": "30s",
    "distributed.admin.tick.interval": "500ms",
    "distributed.worker.profile.enabled": False,  # its samples would cost a simulation a tenth of its time
}
WORKER_TTL_S = 20.0
"""A worker that is not heard of for so long is taken for lost, and its block runs elsewhere."""
_READY_S = 60.0
_FOLDERS = "netjoule-rigs-"


@dataclass(frozen=True, slots=True)
class Returned:
    """The end of a task: what its blocks came to, or what it failed of.

    Attributes:
        blocks: all that it was given.
        done: of those that it came to.
    """

    blocks: tuple[int, ...]
    done: tuple[Done, ...]
    error: NetjouleError | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """Something that a worker said of its blocks."""

    event: dict[str, Any]


def require() -> None:
    """Refuse without Dask.

    Raises:
        HostLacks: saying how to get it.
    """
    if importlib.util.find_spec("distributed") is None:
        raise HostLacks(
            "several rigs are run by the Python package distributed (Dask), which is not installed",
            next_step="pip install --no-deps --require-hashes -r scripts/requirements-rigs.txt",
        )


class SchedulerLost(RunFailed):
    """Nobody gives out blocks any more."""


class Workers:
    """Workers that are there, and the blocks that they have.

    Args:
        client: connected.
        names: of the rigs.
        campaign: folder of the campaign, which all of them see under this path.
        put: takes `Returned` and `Told` as they come, from another thread.
        program: runs a block, see `block.RESUME`; none simulates blocks in the worker itself.
    """

    def __init__(
        self,
        client: Client,
        names: Sequence[str],
        campaign: Path,
        put: Callable[[Returned | Told], None],
        program: Sequence[str],
    ) -> None:
        self._client, self._campaign, self._put, self._program = client, campaign, put, program
        self._names, self._retired = set(names), set[str]()
        self._futures: dict[tuple[int, ...], Future[tuple[Done, ...]]] = {}
        self._count = 0
        client.subscribe_topic(_TOPIC, lambda event: put(Told(event[1])))

    @property
    def dashboard(self) -> str:
        """Its address; /metrics beside it is for Prometheus."""
        return str(self._client.dashboard_link)

    def rigs(self) -> list[str]:
        """Names of the rigs whose workers are there; where none is, one that may yet come is waited for."""
        if not self._addresses() and self._retired < self._names:
            with suppress(TimeoutError):
                self._client.wait_for_workers(1, timeout=_READY_S)
        return sorted(self._addresses())

    def submit(self, above: Mapping[int, int], rig: str) -> None:
        """Have blocks run, on this rig if its worker is there when its turn comes; see `execute_block`."""
        self._count += 1
        of = tuple(above)
        address = self._addresses().get(rig)
        future = self._client.submit(
            _task,
            str(self._campaign),
            dict(above),
            self._program,
            key=f"block-{of[0]}-{self._count}",
            pure=False,
            resources={"rig": 1},
            workers=[address] if address else None,
            allow_other_workers=address is not None,
        )
        self._futures[of] = future
        future.add_done_callback(lambda future: self._end(of, future))

    def _end(self, of: tuple[int, ...], future: Future[tuple[Done, ...]]) -> None:
        self._put(_returned(of, future))
        self._futures.pop(of, None)

    def retire(self, rig: str) -> None:
        """Give a rig no more blocks."""
        self._retired.add(rig)
        if address := self._addresses().get(rig):
            self._client.retire_workers([address], close_workers=True)

    def _addresses(self) -> dict[str, str]:
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        found = {str(one["name"]): address for address, one in workers.items()}
        return {name: address for name, address in found.items() if name in self._names - self._retired}


@contextmanager
def workers(
    names: Sequence[str],
    campaign: Path,
    put: Callable[[Returned | Told], None],
    *,
    scheduler: str | None = None,
    program: Sequence[str] = RESUME,
    worker_ttl_s: float = WORKER_TTL_S,
) -> Iterator[Workers]:
    """Workers for rigs, while the body runs.

    Args:
        names: of the rigs; each worker is called like its rig.
        campaign, put, program: see `Workers`.
        scheduler: address of one that runs; by default workers on this machine.
        worker_ttl_s: see `WORKER_TTL_S`; of a scheduler that runs already its own.

    Raises:
        UsageError: for a scheduler elsewhere without TLS.
        HostLacks, RunFailed: when the scheduler or workers are missing.
    """
    require()
    import dask
    from distributed import Client

    security = None if scheduler is None else security_of(scheduler)
    config = {**_CONFIG, "distributed.scheduler.worker-ttl": f"{worker_ttl_s:g}s"}
    with dask.config.set(config), ExitStack() as stack:
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what it tells we tell
        if scheduler is not None:
            _require_answer(scheduler, security)
        address: Any = scheduler or stack.enter_context(_local(names, stack))
        client = stack.enter_context(Client(address, security=security, set_as_default=False))
        found = Workers(client, names, campaign, put, program)
        client.register_plugin(_plugin())
        _require_workers(client, found, names)
        yield found


def security_of(scheduler: str) -> Any:
    """TLS for a scheduler by Dask's own settings, None for one on loopback.

    Raises:
        UsageError: when it is elsewhere and speaks no TLS, or the files for that are not set.
        HostLacks: when one of them is missing.
    """
    scheme, _, place = scheduler.rpartition("://")
    if scheme in ("", "tcp") and _on_loopback(place.rpartition(":")[0]):
        return None
    if scheme != "tls":
        raise UsageError(
            "a Dask scheduler runs whatever it is sent: one that is not on loopback needs TLS",
            where=f"--scheduler {scheduler}",
            next_step=f"start it with TLS and name it tls://{place}",
        )
    import dask
    from distributed.security import Security

    for name in TLS_FILES:
        file = dask.config.get(f"distributed.comm.tls.{name}", None)
        variable = f"DASK_DISTRIBUTED__COMM__TLS__{name.upper().replace('-', '_').replace('.', '__')}"
        if not file:
            raise UsageError(
                f"Dask's setting distributed.comm.tls.{name} is empty",
                where=f"--scheduler {scheduler}",
                next_step=f"set {variable} to a file",
            )
        if not Path(file).is_file():
            raise HostLacks(f"no file {file}", where=variable)
    return Security(require_encryption=True)


def _require_answer(scheduler: str, security: Any) -> None:
    """Raise RunFailed where no scheduler answers: Dask's client hangs at one that speaks no TLS."""
    from distributed.comm.core import connect

    async def connected() -> None:
        comm = await connect(scheduler, **(security.get_connection_args("client") if security else {}))
        await comm.close()

    try:
        asyncio.run(connected())
    except (OSError, TimeoutError, ValueError) as error:  # the last where TLS is answered without
        raise RunFailed(
            f"no Dask scheduler answers at {scheduler}: {error}",
            next_step="start it and name it as its log does, tcp:// or tls://, or leave --scheduler out",
        ) from error


def _on_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ip_address(host.strip("[]")).is_loopback
    return False


@contextmanager
def _local(names: Sequence[str], stack: ExitStack) -> Iterator[Any]:
    """A scheduler and a worker for each rig on this machine, which listen on loopback."""
    from distributed import Nanny, Scheduler, SpecCluster

    _sweep()
    prefix = f"{_FOLDERS}{os.getpid()}-"
    folder = stack.enter_context(TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True))
    options = {
        "host": LOOPBACK,
        "nthreads": 1,
        "resources": {"rig": 1},
        "memory_limit": 0,
        "local_directory": folder,
        "silence_logs": logging.CRITICAL,
        "dashboard": False,
    }
    scheduler = {
        "cls": Scheduler,
        "options": {"host": LOOPBACK, "port": 0, "dashboard_address": f"{LOOPBACK}:0"},
    }
    specs = {name: {"cls": Nanny, "options": {**options, "name": name}} for name in names}
    came: list[int] = []
    try:
        # Half a cluster cannot be ended: a signal is felt once it is whole.
        with handled_by(lambda number, _frame: came.append(number), termination_signals()):
            cluster = SpecCluster(specs, scheduler, name="netjoule", silence_logs=logging.CRITICAL)
    except OSError as error:
        raise refused("start", Path("Dask's workers"), error) from error
    except RuntimeError as error:
        raise RunFailed(
            f"Dask's workers do not start: {str(error).rstrip('.')}",
            next_step=f"run it again; where it stays so see whether {LOOPBACK} is up (ip link set lo up)",
        ) from error
    with cluster:
        for number in came[:1]:
            signal.raise_signal(number)
        yield cluster


def _sweep() -> None:
    """Remove folders of workers whose command was killed."""
    for folder in Path(gettempdir()).glob(f"{_FOLDERS}*-*"):
        pid = folder.name.removeprefix(_FOLDERS).partition("-")[0]
        if not Path("/proc", pid).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _require_workers(client: Client, found: Workers, names: Sequence[str]) -> None:
    with suppress(TimeoutError):
        client.wait_for_workers(len(names), timeout=_READY_S)
    if missing := sorted(set(names) - set(found.rigs())):
        raise RunFailed(
            f"no worker is called {', '.join(missing)} within {_READY_S:g} s",
            next_step="start one per rig: dask worker ADDRESS"
            f" --name {missing[0]} --nthreads 1 --resources rig=1",
        )


def _plugin() -> Any:
    """For each worker, those that are started anew, too: Ctrl-C in a terminal is the campaign's alone."""
    from distributed import WorkerPlugin

    def setup(_plugin: Any, worker: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    # Made so, as Dask may be missing where types are checked.
    return type("NoInterrupts", (WorkerPlugin,), {"name": "netjoule", "setup": setup})()


def _task(campaign: str, above: Mapping[int, int], program: Sequence[str]) -> tuple[Done, ...]:
    """What Dask runs."""
    from distributed import get_worker

    worker = get_worker()

    def tell(event: Mapping[str, Any]) -> None:
        worker.log_event(_TOPIC, dict(event))

    folder, rig = Path(campaign), str(worker.name)
    if not program:
        return execute_batch(folder, above, rig, tell)
    return tuple(
        execute_block(folder, block, rig, known, tell, program=program) for block, known in above.items()
    )


def _returned(of: tuple[int, ...], future: Future[tuple[Done, ...]]) -> Returned:
    """What a task came to."""
    from distributed.scheduler import KilledWorker

    if future.cancelled():
        return Returned(of, (), SchedulerLost("the Dask scheduler is gone"))
    error = future.exception()
    if error is None:
        return Returned(of, future.result())
    if isinstance(error, KilledWorker):
        error = RunFailed(f"two workers died of block {of[0]}", code="worker_lost")
    elif not isinstance(error, NetjouleError):
        error = RunFailed(f"{type(error).__name__}: {error}")
    return Returned(of, (), error)
