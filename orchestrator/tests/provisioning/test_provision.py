# SPDX-License-Identifier: Apache-2.0
import contextlib
import copy
import json
import os
import signal

import pytest
from golden_sentences import same_sentence
from lab_topology import LAB
from runner_fakes import new_campaign
from synthetic import workload

from netjoule.cli import results
from netjoule.cli.app import run_command
from netjoule.execution import runner
from netjoule.execution.runner import Outcome
from netjoule.hosts.ssh import HostInUse
from netjoule.provisioning import provision
from netjoule.topology.topology import Topology

SHELF = "shelf"
TIMING = {"idle_s": 5, "settle_s": 0.2, "warm_up_s": 2, "measure_s": 5, "tail_s": 0.3}
START = {"event": "start", "tasks": 4}
# OpenSSH 9.2, as Ansible joins its lines.
ANOTHER_KEY = (
    f"{'@' * 59} @ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @ {'@' * 59} IT IS POSSIBLE THAT SOMEONE "
    "IS DOING SOMETHING NASTY! ... Offending ED25519 key in /known_hosts:1 ... Host key verification failed."
)
NOT_THE_KNOWN_KEY = (
    "its SSH host key is not the known one; another machine answers there, or a new system: compare its key"
)
END = {"event": "end", "hosts": {"ap": {"changed": 2}, "laptop": {"changed": 1}}}


def task(name, role="base_host"):
    return {"event": "task", "name": name, "role": role}


def result(host, name, status, message="", check=False):
    words = {"message": message} if message else {}
    return {"event": "result", "host": host, "task": name, "status": status, "check": check} | words


@pytest.fixture
def rack(tmp_path, monkeypatch):
    monkeypatch.setenv("RACK_PASSPHRASE", "horse staple")
    (tmp_path / "rack.yaml").write_text(json.dumps(LAB))
    return str(tmp_path / "rack.yaml")


@pytest.fixture
def unlocked(monkeypatch):
    """Hosts that nobody has, nor could: there is no lab. Who asked for which of them."""
    asked = []

    @contextlib.contextmanager
    def held(topology, hosts, owner, *, all_needed, tell=None):
        asked.append((owner.work, list(hosts), all_needed))
        yield

    monkeypatch.setattr("netjoule.testbeds.lab.host_locks.held", held)
    return asked


@pytest.fixture
def playbook(tmp_path, monkeypatch, unlocked):
    """Puts a program with given words in the place of ansible-playbook; its folder keeps its arguments."""

    def put(*events, code=0, stderr="", noise=""):
        (tmp_path / "said").write_text("".join(json.dumps(event) + "\n" for event in events) + noise)
        (tmp_path / "complaint").write_text(stderr)
        program = tmp_path / "ansible-playbook"
        program.write_text(
            f'#!/bin/sh\ncd {tmp_path}\necho "$@" > arguments\nenv > environment\n'
            f"cat said\ncat complaint >&2\nexit {code}\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("NETJOULE_BIN_DIR", str(tmp_path))
        return tmp_path

    return put


def test_what_was_done_is_said(rack, playbook, capsys):
    folder = playbook(
        START,
        {"event": "play", "name": "Hosts"},
        task("Set the kernel"),
        result("ap", "Set the kernel", "changed"),
        END,
    )
    assert run_command(["provision", "--testbed", rack]) == 0
    seen = capsys.readouterr()
    same_sentence(seen.out)
    assert seen.err.splitlines() == ["Hosts:", "  changed  ap               Set the kernel"]
    words = (folder / "arguments").read_text().split()
    assert words[:2] == ["-i", rack]
    assert words[-1].endswith("ansible/site.yml")


@pytest.mark.parametrize(
    ("options", "book", "words"),
    [
        (["--check"], "site.yml", ["--check"]),
        (["--limit", "client"], "site.yml", ["--limit", "client"]),
        (["--limit", SHELF, "--teardown"], "teardown.yml", ["--limit", SHELF]),
    ],
)
def test_options_become_ansibles(rack, playbook, capsys, options, book, words):
    folder = playbook(START, END)
    assert run_command(["provision", "--testbed", rack, *options]) == 0
    _, _, *rest = (folder / "arguments").read_text().split()
    assert rest[:-1] == words
    assert rest[-1].endswith(book)
    same_sentence(capsys.readouterr().out)


def test_machines_get_the_events_as_they_are(rack, playbook, capsys):
    events = [START, task("Set the kernel"), result("ap", "Set the kernel", "ok"), END]
    playbook(*events, noise='a program of a task\n["no event"]\n')
    assert run_command(["provision", "--testbed", rack, "--json"]) == 0
    seen = capsys.readouterr()
    assert [json.loads(line) for line in seen.out.splitlines()] == events
    assert seen.err == ""


def test_each_failure_is_one_line_and_the_exit_code_is_1(rack, playbook, capsys):
    playbook(
        START,
        result("ap", "Check the channel", "failed", "Channel 52 needs radar duty; set dfs: true."),
        result(
            "laptop", "Install", "unreachable", "Failed to connect to the host via ssh: Connection refused"
        ),
        END,
        code=4,
    )
    assert run_command(["provision", "--testbed", rack]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "ap: Channel 52 needs radar duty; set dfs: true (task: Check the channel)",
        "laptop: cannot be logged in to: Connection refused; no sshd answers: install openssh-server there, "
        "or correct ssh.port (task: Install)",
        "netjoule: 2 of 2 hosts failed: ap, laptop; what is done stays done; repeat the command when the "
        "cause is away",
    ]


# What OpenSSH 9.2, sudo 1.9 and Ansible 2.19 say.
@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("ssh: connect to host 192.0.2.1 port 22: Connection refused", "no sshd answers"),
        ("ssh: connect to host 192.0.2.1 port 22: No route to host", "is it switched on"),
        ("ssh: connect to host 192.0.2.1 port 22: Connection timed out", "is it switched on"),
        ("root@192.0.2.1: Permission denied (publickey,password).", "ssh-copy-id"),
        ("Host key verification failed.", "log in once by hand"),
        ("ssh: Could not resolve hostname apx: Name or service not known", "correct control_address"),
        ("Missing sudo password", "ssh.become needs sudo without a password"),
        ("sudo: a password is required", "ssh.become needs sudo without a password"),
        ("/bin/sh: 1: /usr/bin/python3: not found", "install python3"),
        ("/bin/sh: line 1: /usr/bin/python3.11: command not found", "install python3"),
        ("no result came back from the host, which said Killed", "is its memory full"),
        ("no result came back from the host, which said tee: No space left on device", "disk is full"),
        ("No package matching 'chrony' is available", "can it reach its package server"),
        ("Failed to fetch http://mirror.example/x.deb  404  Not Found", "'apt-get update' there"),
        ("Failed to lock apt for exclusive operation: E:Could not get lock", "another apt runs there"),
        ("the sun does not shine", ""),
    ],
)
def test_remedies_of_logins(said, advice):
    found = provision.remedy(said, "192.0.2.1")
    assert found.startswith(advice) or advice in found
    assert bool(found) == bool(advice)


# What Ansible 2.19 says of its own workings, and what the user reads instead.
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            "unreachable",
            "Task failed: Failed to create temporary directory. In some cases, you may have been able to "
            "authenticate and did not have permissions on the target directory. Consider changing ...",
        ),
        (
            "unreachable",
            'Data could not be sent to remote host "192.0.2.1". Make sure this host can be reached ...',
        ),
        (
            "failed",
            "Task failed: Action failed: The module interpreter '/usr/bin/python3' was not found. "
            "Consider overriding the configured interpreter path for this host. See stdout/stderr for ...",
        ),
        (
            "unreachable",
            f"Failed to connect to the host via ssh: {ANOTHER_KEY}",
        ),
    ],
)
def test_ansibles_own_words_become_a_sentence(rack, playbook, capsys, status, said):
    playbook(START, result("ap", "Set", status, said), END, code=2)
    assert run_command(["provision", "--testbed", rack]) == 1
    same_sentence(capsys.readouterr().err.splitlines()[0])


@pytest.mark.parametrize(
    ("options", "code"),
    [([], 3), (["--check"], 3), (["--limit", "client"], 3), (["--limit", SHELF], 0), (["--teardown"], 0)],
)
def test_a_passphrase_that_is_not_there_is_missed_before_ansible_starts(
    rack, playbook, capsys, monkeypatch, options, code
):
    monkeypatch.delenv("RACK_PASSPHRASE")
    folder = playbook(START, END)
    assert run_command(["provision", "--testbed", rack, *options]) == code
    assert (folder / "arguments").exists() == (code == 0)
    assert ("wifi.passphrase" in capsys.readouterr().err) == (code != 0)


def test_sigterm_ends_ansible_too(rack, playbook):
    folder = playbook(START)
    (folder / "ansible-playbook").write_text(
        f"#!/bin/sh\ntrap 'echo ended >{folder}/ended; kill $!; exit 143' TERM\n"
        f"sleep 600 >/dev/null & cat {folder}/said\nwait\n"
    )

    def sink(event):
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        provision.run(provision.Request(folder / "rack.yaml"), sink)
    assert ended.value.code == 143
    assert (folder / "ended").read_text() == "ended\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_ansible_that_comes_to_no_host_is_quoted(rack, playbook, capsys):
    playbook(stderr="[WARNING]: something\n[ERROR]: rack.yaml, line 3: no such thing\n", code=1)
    assert run_command(["provision", "--testbed", rack]) == 1
    same_sentence(capsys.readouterr().err)
    playbook(code=7)
    assert run_command(["provision", "--testbed", rack]) == 1
    same_sentence(capsys.readouterr().err)


def test_the_environment_holds_secrets_and_no_settings_of_another_ansible(rack, playbook, monkeypatch):
    monkeypatch.setenv("RACK_PASSPHRASE", "correct horse battery")
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "json")
    monkeypatch.setenv("ANSIBLE_INVENTORY", "/elsewhere")
    folder = playbook(START, END)
    assert run_command(["provision", "--testbed", rack]) == 0
    environment = (folder / "environment").read_text()
    assert "RACK_PASSPHRASE=correct horse battery" in environment
    assert "ANSIBLE_STDOUT_CALLBACK=netjoule_events" in environment
    assert "/elsewhere" not in environment
    assert "battery" not in (folder / "arguments").read_text()


@pytest.mark.parametrize("trusted", [False, True])
def test_variables_beside_a_topology_are_read_when_they_are_trusted(rack, tmp_path, capfd, trusted):
    (tmp_path / "group_vars").mkdir()
    trap = tmp_path / "ran"
    code = {"base_host_run_dir": f"{{{{ lookup('ansible.builtin.pipe', 'touch {trap}') }}}}"}
    code |= {"ansible_remote_tmp": f"{{{{ lookup('ansible.builtin.pipe', 'touch {trap}; echo /tmp') }}}}"}
    (tmp_path / "group_vars/all.json").write_text(json.dumps(code))
    document = copy.deepcopy(LAB)
    for port, host in enumerate(document["hosts"].values(), start=1):
        host |= {"control_address": "127.0.0.1", "ssh": {"port": port}}
    (tmp_path / "rack.yaml").write_text(json.dumps(document))
    run_command(["provision", "--testbed", rack, *(["--trust-vars"] if trusted else [])])
    assert trap.exists() == trusted, capfd.readouterr()


@pytest.mark.parametrize(
    "words",
    [
        ["provision", "--limit", "clients"],
        ["provision", "--testbed", "testbed-topology.yaml"],
        ["doctor", "--testbed", "testbed-topology.yaml"],
    ],
)
def test_what_cannot_be_provisioned_is_refused_before_ansible_starts(rack, playbook, capsys, words):
    folder = playbook(START, END)
    assert run_command([*words, *([] if "--testbed" in words else ["--testbed", rack])]) == 2
    same_sentence(capsys.readouterr().err)
    assert not (folder / "arguments").exists()


def test_doctor_lists_each_comparison_and_exits_3(rack, playbook, capsys):
    comparisons = (
        result("ap", "Check the clock's offset", "ok", check=True),
        result("ap", "Read the kernel's settings", "ok"),
        result("laptop", "Check the path MTU", "failed", "10.78.0.2 does not answer laptop.", check=True),
        result("laptop", "Check that NetworkManager leaves", "skipped", check=True),
        result("laptop", "Count what differs", "failed", "laptop differs in traffic_host.", check=True),
    )
    folder = playbook(START, *comparisons, END, code=2)
    assert run_command(["doctor", "--testbed", rack]) == 3
    seen = capsys.readouterr()
    assert [line.split(maxsplit=1) for line in seen.out.splitlines()] == [
        ["ok", "ap: the clock's offset         as the topology says"],
        ["LACK", "laptop: the path MTU           10.78.0.2 does not answer laptop"],
    ]
    same_sentence(seen.err)
    assert (folder / "arguments").read_text().split()[-1].endswith("ansible/verify.yml")
    playbook(START, comparisons[0], END)
    assert run_command(["doctor", "--testbed", rack, "--json"]) == 0
    (finding,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (finding["event"], finding["ok"]) == ("finding", True)


@pytest.fixture
def two_rigs(rack, tmp_path):
    """The rack with a second rig beside it."""
    hosts = {name: {"control_address": f"192.0.2.{n}"} for n, name in enumerate(LAB["hosts"], 21)}
    right = {"hosts": hosts, "wifi": {"channel": 44}, "meters": {"ap-power": {"resource": "/dev/ttyUSB1"}}}
    (tmp_path / "rack.yaml").write_text(json.dumps(LAB | {"rigs": {"left": {}, "right": right}}))
    return rack


def test_rigs_are_provisioned_side_by_side_each_by_its_own_topology(two_rigs, playbook, unlocked, capsys):
    folder = playbook()
    # Each waits for the other: one after the other they would never end.
    (folder / "ansible-playbook").write_text(
        f'#!/bin/sh\ncp "$2" {folder}/held-to-$$\n'
        f"until [ $(ls {folder}/held-to-* | wc -l) = 2 ]; do sleep 0.05; done\n"
        f"echo '{json.dumps(START)}'; echo '{json.dumps(result('ap', 'Set the kernel', 'changed'))}'\n"
        f"echo '{json.dumps(END)}'\n"
    )
    assert run_command(["provision", "--testbed", two_rigs]) == 0
    seen = capsys.readouterr()
    assert [line.split(" (")[0] for line in seen.out.splitlines()] == [
        "rig left:",
        "2 hosts provisioned: 3 changes",
        "rig right:",
        "2 hosts provisioned: 3 changes",
    ]
    changed = {" ".join(line.split()) for line in seen.err.splitlines()}
    assert changed == {f"changed {rig}: ap Set the kernel" for rig in ("left", "right")}
    topologies = [json.loads(path.read_text()) for path in folder.glob("held-to-*")]
    assert {(one["rig"], one["hosts"]["ap"]["control_address"]) for one in topologies} == {
        ("left", "192.0.2.1"),
        ("right", "192.0.2.23"),
    }
    assert len(unlocked) == 2


def test_doctor_tells_of_each_rig(two_rigs, playbook, capsys):
    playbook(
        START,
        result("ap", "Check the clock's offset", "ok", check=True),
        result("laptop", "Check the path MTU", "failed", "10.78.0.2 does not answer laptop.", check=True),
        END,
        code=2,
    )
    assert run_command(["doctor", "--testbed", two_rigs]) == 3
    seen = capsys.readouterr()
    assert sorted(" ".join(line.split()) for line in seen.out.splitlines()) == [
        "LACK left: laptop: the path MTU 10.78.0.2 does not answer laptop",
        "LACK right: laptop: the path MTU 10.78.0.2 does not answer laptop",
        "ok left: ap: the clock's offset as the topology says",
        "ok right: ap: the clock's offset as the topology says",
    ]
    same_sentence(seen.err)


def test_a_rig_whose_ansible_comes_to_no_host_is_named(two_rigs, playbook, capsys):
    playbook(code=1, stderr="ERROR! no such file")
    assert run_command(["provision", "--testbed", two_rigs]) == 1
    assert "no such file" in capsys.readouterr().err


def test_doctor_tells_a_host_that_it_cannot_use_as_provision_does(rack, playbook, capsys):
    refused = "Failed to connect to the host via ssh: connect to host 192.0.2.1 port 22: Connection refused"
    hosts = ("laptop", "board", "ap")
    playbook(
        START,
        result("ap", "Read the kernel's settings", "unreachable", refused),
        result("board", "Read the kernel's settings", "unreachable", ANOTHER_KEY),
        result("laptop", "Read the kernel's settings", "failed", "Task failed: Missing sudo password"),
        result("laptop", "Ask chrony", "failed", "Missing sudo password"),
        *(result(name, "Count what differs", "failed", "It differs.", check=True) for name in hosts),
        END,
        code=4,
    )
    assert run_command(["doctor", "--testbed", rack]) == 3
    seen = capsys.readouterr()
    assert [" ".join(line.split()) for line in seen.out.splitlines()] == [
        "LACK ap: login cannot be logged in to: connect to host 192.0.2.1 port 22: Connection refused; no "
        "sshd answers: install openssh-server there, or correct ssh.port",
        f"LACK board: login cannot be logged in to: {NOT_THE_KNOWN_KEY}, then 'ssh-keygen -R "
        '"[board.control.example]:2222"\'',
        "LACK laptop: Read the kernel's settings Missing sudo password; ssh.become needs sudo without a "
        "password; or log in as root (ssh.user: root)",
    ]
    same_sentence(seen.err)


def test_doctor_ends_with_what_provisioning_sets_right_and_what_it_cannot(rack, playbook, capsys):
    refused = "Failed to connect to the host via ssh: connect to host 192.0.2.1 port 22: Connection refused"
    unasked = result("laptop", "Read the routes", "failed", "[Errno 2] No such file or directory: b'ip'")
    playbook(START, result("ap", "Read the routes", "unreachable", refused), unasked, END, code=4)
    assert run_command(["doctor", "--testbed", rack]) == 3
    same_sentence(capsys.readouterr().err)


def test_the_words_of_a_check_get_no_remedy_for_a_login(rack, playbook, capsys):
    said = "Give laptop a route. ping said: connect: Network is unreachable"
    playbook(START, result("laptop", "Check the path MTU", "failed", said, check=True), END, code=2)
    assert run_command(["doctor", "--testbed", rack]) == 3
    assert capsys.readouterr().out.rstrip().endswith(said)


def test_a_host_key_is_forgotten_where_it_is_known():
    laptop = LAB["hosts"]["laptop"] | {"ssh": {"known_hosts": "/keys/known"}}
    of = Topology.from_document(LAB | {"hosts": LAB["hosts"] | {"laptop": laptop}}, where="test")
    assert provision.known_as(of.host("laptop")) == '192.0.2.11 -f "/keys/known"'


@pytest.fixture
def went(monkeypatch):
    """Campaigns that came as far as their first run."""
    begun = []

    def run_campaign(campaign, sink):
        begun.append(campaign.path.name)
        return Outcome("complete", 0, 0)

    monkeypatch.setattr(runner, "run_campaign", run_campaign)
    monkeypatch.setattr(results, "after_a_run", lambda campaign, output: None)
    return begun


@pytest.fixture
def commands(rack, tmp_path):
    """The command that begins a campaign on the rack, and that which goes on with one."""
    (tmp_path / "workload.yaml").write_text(json.dumps(workload(timing=TIMING).document))
    new_campaign(tmp_path / "begun", where=Topology.from_document(LAB, where="test")).close()
    new = ["run", str(tmp_path / "workload.yaml"), "--testbed", rack, "--out", str(tmp_path / "new")]
    return {"run": new, "resume": ["resume", str(tmp_path / "begun")]}


@pytest.mark.parametrize(("command", "campaign"), [("run", "new"), ("resume", "begun")])
def test_a_campaign_begins_and_goes_on_only_where_the_hosts_are_as_described(
    commands, playbook, went, capsys, monkeypatch, command, campaign
):
    monkeypatch.setattr("netjoule.cli.launch.require_programs", lambda inputs: None)
    good = result("ap", "Check the clock's offset", "ok", check=True)
    bad = result("laptop", "Check the path MTU", "failed", "10.78.0.2 does not answer laptop.", check=True)
    folder = playbook(START, good, bad, END, code=2)
    assert run_command(commands[command]) == 3
    said = capsys.readouterr().err
    same_sentence(said)
    assert ("campaign.json says: laptop: the path MTU" in said) == (command == "resume")
    assert (folder / "arguments").read_text().split()[-1].endswith("ansible/verify.yml")
    assert went == []
    assert run_command([*commands[command], "--no-verify"]) == 0
    assert went == [campaign]


def test_resume_holds_the_hosts_to_the_campaigns_own_topology(commands, rack, playbook, went):
    folder = playbook(START, END)
    (folder / "ansible-playbook").write_text(f'#!/bin/sh\ncp "$2" {folder}/held-to\ncat {folder}/said\n')
    (folder / "rack.yaml").unlink()
    assert run_command(commands["resume"]) == 0
    assert json.loads((folder / "held-to").read_text()) == LAB
    assert went == ["begun"]


def test_resume_sees_the_variables_beside_the_topology_that_the_campaign_began_with(
    commands, rack, playbook, went, capsys, monkeypatch
):
    monkeypatch.setattr("netjoule.cli.launch.require_programs", lambda inputs: None)
    folder = playbook(START, END)
    for name, text in (("group_vars/all.yml", "base_host_governor: performance"), ("host_vars/ap.yml", "")):
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)
    assert run_command(commands["run"]) == 0
    same_sentence(capsys.readouterr().err)
    saw = "cat group_vars/all.yml; echo; ls"
    (folder / "ansible-playbook").write_text(
        f'#!/bin/sh\ncd "$(dirname "$2")" && ({saw}) >{folder}/saw\ncat {folder}/said\n'
    )
    resume = ["resume", str(folder / "new"), "--trust-vars"]
    assert run_command(resume) == 0
    assert (folder / "saw").read_text().split() == [
        *("base_host_governor:", "performance", "group_vars", "host_vars", "rack.yaml"),
    ]
    assert str(folder) not in (folder / "new/campaign.json").read_text()
    said = capsys.readouterr().err
    assert "is gone" not in said
    same_sentence(said)

    (folder / "new/.testbed").write_text("/no/such/folder/rack.yaml\n")
    assert run_command(resume) == 0
    assert (folder / "saw").read_text().split() == ["rack.yaml"]
    same_sentence(capsys.readouterr().err)


@pytest.mark.parametrize("touched", [False, True])
def test_a_campaign_whose_hosts_another_takes_first_leaves_no_folder(
    commands, playbook, capsys, monkeypatch, touched
):
    def run_campaign(campaign, sink):
        if touched:
            campaign.append_radio("laptop", [])
        raise HostInUse("it is in use by another", where="host ap")

    monkeypatch.setattr("netjoule.cli.launch.require_programs", lambda inputs: None)
    monkeypatch.setattr(runner, "run_campaign", run_campaign)
    folder = playbook(START, END)
    assert run_command(commands["run"]) == 2
    same_sentence(capsys.readouterr().err)
    assert (folder / "new").exists() == touched


def test_what_touches_hosts_first_takes_those_that_it_logs_in_to(rack, playbook, unlocked):
    playbook(START, END)
    assert run_command(["provision", "--testbed", rack, "--limit", "client"]) == 0
    assert run_command(["doctor", "--testbed", rack]) == 0
    assert unlocked == [
        ("'netjoule provision' with rack", ["laptop", "board"], False),
        ("'netjoule doctor' with rack", list(LAB["hosts"]), False),
    ]


@pytest.mark.parametrize("verify", [[], ["--no-verify"]])
def test_a_campaign_whose_hosts_are_out_of_reach_leaves_no_folder(tmp_path, capsys, monkeypatch, verify):
    """Ports 1 to 5 of this machine: nobody answers there."""
    monkeypatch.setattr("netjoule.cli.launch.require_programs", lambda inputs: None)
    hosts = {
        name: host | {"ssh": {"address": "127.0.0.1", "port": port}}
        for port, (name, host) in enumerate(LAB["hosts"].items(), start=1)
    }
    (tmp_path / "rack.yaml").write_text(json.dumps(LAB | {"hosts": hosts}))
    (tmp_path / "workload.yaml").write_text(json.dumps(workload(timing=TIMING).document))
    words = ["run", str(tmp_path / "workload.yaml"), "--testbed", str(tmp_path / "rack.yaml")]
    for _ in range(2):
        assert run_command([*words, "--out", str(tmp_path / "new"), *verify]) == 1
        same_sentence(capsys.readouterr().err)
    assert not (tmp_path / "new").exists()
