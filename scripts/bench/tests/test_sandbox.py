# SPDX-License-Identifier: Apache-2.0
"""The namespaces of a bench: there while it runs, gone after it, also when it is stopped; true CPU time."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOM = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.netns

IN_PAIR = """
    import subprocess, sys, time
    from netjoule_bench.sandbox.veth import enter_sandbox, pair, inside, SENDER_NETNS, RECEIVER_ADDRESS
    enter_sandbox(sys.orig_argv[1:])
    with pair():
"""


def start(body):
    program = textwrap.dedent(IN_PAIR) + textwrap.indent(textwrap.dedent(body), " " * 4)
    environment = os.environ | {"PYTHONPATH": str(ROOM)}
    environment.pop("NETJOULE_BENCH_INSIDE", None)
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def namespaces():
    return {str(path.readlink()) for path in Path("/proc").glob("[0-9]*/ns/net") if os.access(path, os.R_OK)}


def test_the_wire_carries_packets():
    done = start("subprocess.run(inside(SENDER_NETNS, ['ping', '-c1', '-W5', RECEIVER_ADDRESS]), check=True)")
    said, _ = done.communicate()
    assert done.returncode == 0, said
    assert "1 received" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_bench_leaves_nothing(number):
    body = """
        child = subprocess.Popen(inside(SENDER_NETNS, ['sleep', '600']))
        net = subprocess.check_output(inside(SENDER_NETNS, ['readlink', '/proc/self/ns/net']), text=True)
        print('net', net, flush=True)
        time.sleep(600)
    """
    bench = start(body)
    line = next(line for line in bench.stdout if line.startswith("net "))
    namespace = line.split()[1]
    assert namespace in namespaces()
    os.killpg(bench.pid, number)
    bench.communicate()
    assert bench.returncode != 0
    assert namespace not in namespaces()


def test_a_trains_segmentation_can_be_left_to_software():
    body = """
        from netjoule_bench.sandbox.veth import software_segmentation
        def state():
            told = subprocess.check_output(inside(SENDER_NETNS, ['ethtool', '-k', 'va']), text=True)
            return next(line.split()[1] for line in told.splitlines() if 'tx-udp-segmentation' in line)
        before = state()
        with software_segmentation():
            meanwhile = state()
        print('states', before, meanwhile, state())
    """
    said, _ = start(body).communicate()
    assert "states on off on" in said


BURN = """
import threading, time
def work():
    until = time.thread_time() + 0.05
    while time.thread_time() < until:
        pass
thread = threading.Thread(target=work)
thread.start()
thread.join()
work()
print(time.process_time())
"""


def test_cpu_time_is_the_schedulers_own_and_counts_threads_that_have_ended():
    body = f"""
        from netjoule_bench.sandbox.processes import Running
        with Running(SENDER_NETNS, [sys.executable, '-c', {BURN!r}]) as running:
            ended = running.finish()
        print('cpu', ended.cpu_s, ended.text.strip())
    """
    said, _ = start(body).communicate()
    cpu_s, own_s = (float(word) for word in said.split("cpu ")[1].split())
    assert cpu_s >= own_s >= 0.1


def test_a_program_that_fails_says_why_and_one_that_hangs_is_ended():
    body = """
        from netjoule_bench.sandbox.processes import Running
        with Running(SENDER_NETNS, ['sleep', '600']) as hanging:
            pid = hanging._process.pid
        import os
        print('gone', not os.path.exists(f'/proc/{pid}'))
        try:
            with Running(SENDER_NETNS, ['sh', '-c', 'echo no luck; exit 3']) as failing:
                failing.finish()
        except RuntimeError as problem:
            print('why', problem)
    """
    said, _ = start(body).communicate()
    assert "gone True" in said
    assert "ended with 3: no luck" in said
