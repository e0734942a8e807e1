# SPDX-License-Identifier: Apache-2.0
"""`netjoule coursework`: right answers pass, wrong ones are told, campaigns that show nothing are refused."""

import csv
import json
import re
import shutil
import zipfile
from pathlib import Path

import coursework_folders as folders
import pytest

import netjoule_contracts as contracts
from netjoule import analysis, programs, topology, workload, yamlfile
from netjoule.check import check_campaign
from netjoule.cli import run_command
from netjoule.coursework import start as starting
from netjoule.coursework.cells import CannotTell, Cell, Cells, Run
from netjoule.coursework.exercises import EXERCISES
from netjoule.coursework.interval import half_width, t_quantile, told_apart
from netjoule.coursework.question import Number, OneOf
from netjoule.errors import HostLacks
from netjoule.forecast import forecast

ROOT = Path(__file__).parents[2]
QUESTIONS = [(e.name, q) for e in EXERCISES.values() for q in e.questions]
NAMES = [f"{name}.{question.name}" for name, question in QUESTIONS]


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    """Three campaigns, never changed."""
    folder = tmp_path_factory.mktemp("coursework")
    for name, design in folders.designs().items():
        folders.fly(folder, name, design)
    return folder


@pytest.fixture(scope="module")
def right(flown):
    return folders.right_answers(flown)


@pytest.fixture
def handed_in(flown, right, tmp_path):
    """The same with right answers, to be changed."""
    folder = tmp_path / "coursework"
    shutil.copytree(flown, folder)
    folders.answer(folder, right)
    return folder


def checked(folder, *words):
    """Exit code, and the events of a check."""
    return run_command(["coursework", "check", str(folder), "--json", *words])


def events(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def verdicts(found):
    return {f"{e['exercise']}.{e['question']}": e["verdict"] for e in found if e["event"] == "answer"}


# -- answers ----------------------------------------------------------------------------------------


def test_right_answers_pass(handed_in, capsys):
    assert checked(handed_in) == 0
    found = events(capsys)
    assert verdicts(found) == dict.fromkeys(NAMES, "right")
    assert found[-1] == {
        "event": "coursework",
        "folder": str(handed_in),
        "right": len(NAMES),
        "wrong": 0,
        "missing": 0,
        "undecided": 0,
    }
    assert run_command(["coursework", "check", str(handed_in)]) == 0
    assert f"all {len(NAMES)} answers are right" in capsys.readouterr().out


def wrong(question, answer):
    """An answer that is off by a third, or another choice."""
    if not question.choices:
        return answer * 1.3 + 0.1
    return next(choice for choice in question.choices if choice != answer)


def test_each_wrong_answer_is_told_with_what_to_look_at_and_without_what_is_right(handed_in, right, capsys):
    spoilt = {
        name: {q.name: wrong(q, right[name][q.name]) for q in exercise.questions}
        for name, exercise in EXERCISES.items()
    }
    folders.answer(handed_in, spoilt)
    assert checked(handed_in) == 1
    seen = capsys.readouterr()
    found = [json.loads(line) for line in seen.out.splitlines()]
    assert verdicts(found) == dict.fromkeys(NAMES, "wrong")
    for event, (name, question) in zip(found, QUESTIONS, strict=False):
        assert event["words"].endswith(question.look_at)
        answer = right[name][question.name]
        told = f"{answer:.2g}" if isinstance(answer, float) else str(answer)
        if isinstance(answer, float):
            assert told not in re.findall(r"\d[\d.]*", event["words"]), question.name
    assert re.search(rf"0 of {len(NAMES)} answers are right, {len(NAMES)} wrong, 0 missing", seen.err)


@pytest.mark.parametrize(("exercise", "question"), QUESTIONS, ids=NAMES)
def test_one_wrong_answer_is_one_wrong_answer(flown, right, exercise, question):
    from netjoule.coursework import cells
    from netjoule.coursework.question import judge

    found = cells.read(flown / exercise)
    for other in EXERCISES[exercise].questions:
        assert judge(exercise, other, right[exercise][other.name], found).verdict == "right"
    told = judge(exercise, question, wrong(question, right[exercise][question.name]), found)
    assert (told.exercise, told.question, told.verdict) == (exercise, question.name, "wrong")
    assert told.words.endswith(question.look_at)
    assert judge(exercise, question, None, found).verdict == "missing"


def test_an_unanswered_question_is_missing_and_asked_again(handed_in, right, capsys):
    exercises = {name: dict(answers) for name, answers in right.items()}
    exercises["floor"]["floor_w"] = None
    del exercises["floor"]["floor_share_ratio"]
    folders.answer(handed_in, exercises)
    assert checked(handed_in) == 1
    found = {e["question"]: e for e in events(capsys) if e["event"] == "answer"}
    assert {name for name, e in found.items() if e["verdict"] == "missing"} == {
        "floor_w",
        "floor_share_ratio",
    }
    assert found["floor_w"]["words"].endswith("?")


def test_an_exercise_without_campaign_says_how_to_make_it(handed_in, capsys):
    shutil.rmtree(handed_in / "congestion")
    assert checked(handed_in) == 1
    missing = [e for e in events(capsys) if e.get("verdict") == "missing"]
    assert {e["exercise"] for e in missing} == {"congestion"}
    command = "netjoule run coursework-congestion --testbed testbed/topologies/seed-like.yaml --out"
    assert all(command in e["words"] for e in missing)


def test_one_exercise_can_be_checked_alone(handed_in, right, capsys):
    for other in ("floor", "congestion"):
        shutil.rmtree(handed_in / other)
    folders.answer(handed_in, {"envelope": right["envelope"], "floor": None})
    assert checked(handed_in, "--exercise", "envelope") == 0
    assert set(verdicts(events(capsys)).values()) == {"right"}
    assert checked(handed_in, "--exercise", "swimming") == 2
    assert "no exercise 'swimming'; there are envelope, floor, congestion" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1000, "a factor of 1000: look at the unit"),
        (0.001, "a factor of 1000: look at the unit"),
        (8, "a factor of 8: bits or bytes"),
        (0.125, "a factor of 8: bits or bytes"),
        (100, "a factor of 100: percent or a ratio"),
        (-1, "the other sign"),
        (1.5, ""),
    ],
)
def test_a_known_slip_is_named(factor, words):
    number = Number(0.37, 0.02)
    assert not number.holds(0.37 * factor)
    assert words in number.slip(0.37 * factor)
    assert bool(number.slip(0.37 * factor)) == bool(words)


def test_a_number_holds_within_the_wider_of_its_tolerances():
    assert Number(10, 0.02).holds(10.2)
    assert not Number(10, 0.02).holds(10.21)
    assert Number(0.001, 0.02, 0.01).holds(0.0109)
    assert not Number(0.001, 0.02, 0.01).holds(0.0111)
    assert Number(0.0, 0.02, 0.01).holds(-0.01)
    assert not Number(5.0, 0.02).holds("5")
    assert not Number(1.0, 0.02).holds(True)
    assert OneOf(frozenset({"udp", "tcp"})).holds("udp")
    assert not OneOf(frozenset({"udp", "tcp"})).holds("quic")


# -- what is right ----------------------------------------------------------------------------------


def test_intervals_are_those_of_printed_tables():
    for degrees, printed in folders.T_975.items():
        assert t_quantile(degrees) == pytest.approx(printed, abs=6e-5)
    assert half_width([1.0, 2.0, 3.0]) == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    with pytest.raises(ValueError, match="two blocks"):
        half_width([1.0])
    assert told_apart([2.0, 2.1, 2.2], [1.0, 1.05, 1.1])
    assert not told_apart([1.0, 2.0, 3.0], [2.0, 1.0, 3.1])
    assert not told_apart([2.0], [1.0])


def cell(transport, values, name="ea_j_per_mbit", payload_bytes=64, rate_mbps=6.0):
    key = (transport, payload_bytes, rate_mbps)
    return [(key, Run(block, {name: value})) for block, value in enumerate(values, start=1)]


def test_transports_that_are_not_told_apart_are_both_right():
    question = next(q for n, q in QUESTIONS if q.name == "dearest_transport")
    near = Cells([*cell("udp", [1, 1.1, 0.9]), *cell("tcp", [2, 2.4, 1.7]), *cell("quic", [2.1, 2.2, 1.8])])
    assert question.right(near) == OneOf(frozenset({"tcp", "quic"}))
    apart = Cells([*cell("udp", [1, 1.1, 0.9]), *cell("tcp", [2, 2.1, 1.9]), *cell("quic", [3, 3.1, 2.8])])
    assert question.right(apart) == OneOf(frozenset({"quic"}))


def test_a_cell_counts_blocks_once_and_says_what_it_lacks():
    key = ("udp", 64, 12.0)
    runs = (Run(1, {"floor_w": 1.0}), Run(1, {"floor_w": 3.0}), Run(2, {"floor_w": 5.0}), Run(3, {}))
    assert Cell(key, runs).mean("floor_w") == pytest.approx(3.5)
    with pytest.raises(CannotTell, match=r"no run of udp, 64 B, 12 Mb/s has loss_ratio$"):
        Cell(key, runs).mean("loss_ratio")
    spun = Cell(key, (Run(1, {}, floor_reason="floor_spinning"),))
    with pytest.raises(CannotTell, match=r"has floor_w \(floor_spinning\)"):
        spun.mean("floor_w")
    with pytest.raises(CannotTell, match="extrapolated"):
        Cell(key, (Run(1, {"floor_w": 1.0}, hollow=True),)).mean("floor_w")
    with pytest.raises(CannotTell, match="no run of udp, 64 B, 12 Mb/s counts"):
        Cells([]).at("udp", 64, 12)
    with pytest.raises(CannotTell, match="needs two"):
        Cell(key, (Run(1, {"loss_ratio": 0.1}),)).half_width("loss_ratio")


def test_invalid_and_superseded_runs_do_not_count(tmp_path):
    from netjoule.coursework import cells

    design = folders.designs(invalid_share=0.5, invalid_error_w=50.0)["envelope"]
    folders.fly(tmp_path, "envelope", design)
    with (tmp_path / "envelope/plan.csv").open(newline="") as handle:
        assert {"invalid", "superseded"} <= {row["status"] for row in csv.DictReader(handle)}
    found = cells.read(tmp_path / "envelope").at("udp", 64, 12)
    expected = folders.values(tmp_path / "envelope", ("udp", 64, 12.0), "ea_j_per_mbit")
    assert list(found.by_block("ea_j_per_mbit").values()) == pytest.approx(expected)
    assert len(expected) == folders.BLOCKS


def test_r_s_tables_hold_the_right_answers(handed_in, capsys):
    """Who reads the tables that `netjoule analyse` writes is right."""
    try:
        analysis.require_r()
    except HostLacks as error:
        pytest.skip(str(error))
    for name in EXERCISES:
        analysis.run_analysis("analyse", handed_in / name, lambda _: None)

    def row(exercise, transport, rate):
        with (handed_in / exercise / "tables/ea_summary.csv").open(newline="") as handle:
            return next(
                r
                for r in csv.DictReader(handle)
                if (r["meter_id"], r["transport"], r["payload_bytes"]) == ("client-cpu", transport, "64")
                and float(r["offered_rate_mbps"]) == rate
            )

    def of(exercise, transport, rate, column):
        return float(row(exercise, transport, rate)[column])

    with (handed_in / "envelope/tables/envelope.csv").open(newline="") as handle:
        band = next(
            r
            for r in csv.DictReader(handle)
            if (r["meter_id"], r["transport"], float(r["offered_rate_mbps"])) == ("client-cpu", "udp", 12.0)
        )
    ea, above = "ea_j_per_mbit_mean", "ea_above_floor_j_per_mbit"
    goodput = of("congestion", "udp", 20, "goodput_mbps")
    width = of("envelope", "udp", 12, "ea_ci95_high") - of("envelope", "udp", 12, "ea_ci95_low")
    read = {
        "envelope": {
            "least_ea_payload_bytes": int(band["payload_bytes_least"]),
            "udp_ea_j_per_mbit": of("envelope", "udp", 12, ea),
            "udp_ea_half_width_j_per_mbit": width / 2,
            "udp_envelope_ratio": (
                float(band["ea_greatest_j_per_mbit"]) / float(band["ea_least_j_per_mbit"])
            ),
            "dearest_transport": "quic",
            "holds_for_a_real_laptop": False,
        },
        "floor": {
            "floor_w": of("floor", "udp", 12, "floor_w"),
            "floor_share_ratio": of("floor", "udp", 12, "floor_ratio"),
            "udp_ea_above_floor_j_per_mbit": of("floor", "udp", 12, above),
            "quic_over_udp_ea_ratio": of("floor", "quic", 12, ea) / of("floor", "udp", 12, ea),
            "quic_over_udp_above_floor_ratio": of("floor", "quic", 12, above) / of("floor", "udp", 12, above),
            "transports_differ_more": "above_floor",
            "floor_grows_with": "messages_per_second",
        },
        "congestion": {
            "udp_goodput_mbps": goodput,
            "udp_arrivals_pps": goodput * 1e6 / 512,
            "udp_loss_ratio": of("congestion", "udp", 20, "loss_ratio"),
            "dccp_not_sent_ratio": 1 - of("congestion", "dccp", 20, "achieved_ratio"),
            "dccp_loss_ratio": of("congestion", "dccp", 20, "loss_ratio"),
            "cheaper_transport": "dccp",
            "tcp_frames_per_message": of("congestion", "tcp", 20, "frames_per_message"),
            "tcp_brings_more_because": "messages_share_packets",
            "cap_is_measured": False,
        },
    }
    folders.answer(handed_in, read)
    assert checked(handed_in) == 0, capsys.readouterr().out


# -- campaigns that do not do -----------------------------------------------------------------------


def refused(folder, capsys, *words):
    """The one sentence of a refusal with exit code 4."""
    assert checked(folder, *words) == 4
    seen = capsys.readouterr()
    assert seen.err.count("\n") == 1
    assert "defect of netjoule" not in seen.err
    return seen.err


def spoil(folder, change):
    folders.edit(folder / "envelope/campaign.json", change)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d["workload"].update(transports=["udp", "tcp"]), "its transports are not quic, tcp, udp"),
        (lambda d: d["workload"].update(payload_bytes=[64, 64]), "its payload_bytes are not 64, 1440"),
        (
            lambda d: d["workload"].update(offered_rate_mbps=[6, 12]),
            "its offered_rate_mbps are not 6.0, 12.0",
        ),
        (lambda d: d["workload"].update(offered_rate_mbps=[[6], 12, 24]), "its offered_rate_mbps are not"),
        (lambda d: d["workload"].update(blocks=2), "its blocks are not 3 to 40"),
        (lambda d: d["workload"].update(blocks=10**5), "its blocks are not 3 to 40"),
        (lambda d: d["workload"].update(pacing=["absolute", "spin"]), "its pacing is not absolute"),
        (lambda d: d["workload"].update(window_us=list(range(1000))), "its window_us is not 0"),
        (lambda d: d["workload"].update(parallel=64), "its parallel is not 1"),
        (lambda d: d["workload"].update(direction="down"), "its direction is not up"),
        (lambda d: d["workload"].update(generator="iperf3"), "its generator is not netjoule-traffic"),
        (lambda d: d["workload"].update(profile={"x": 1}), "it has a profile"),
        (lambda d: d["topology"]["link"].update(preset="seed-like"), "its link is not ideal-216"),
        (lambda d: d["topology"].pop("link"), "its link is not ideal-216"),
        (
            lambda d: d["topology"]["link"].update(overrides={"mcs": 1}),
            "parameters of its link are changed",
        ),
        (
            lambda d: d.update(status="interrupted"),
            "is not finished; go on with 'netjoule resume",
        ),
        (lambda d: d.update(seed="x"), "seed: 'x' is not of type 'integer'"),
        (lambda d: d.update(schema_version=2), "schema_version: 1 was expected"),
        (lambda d: d.update(seed=d["seed"] + 1), "'netjoule check"),
    ],
)
def test_another_campaign_is_refused(handed_in, change, sentence, capsys):
    spoil(handed_in, change)
    assert sentence in refused(handed_in, capsys)


def test_a_campaign_with_a_defect_is_refused(handed_in, capsys):
    run = next((handed_in / "floor/runs").iterdir())
    folders.edit(run / "result.json", lambda d: d["nodes"][0].update(delta_p_w=77.0))
    said = refused(handed_in, capsys)
    assert "delta_p_w" in said
    assert f"'netjoule check {handed_in / 'floor'}' names each" in said


def test_a_link_that_does_not_saturate_as_its_model_is_no_campaign(tmp_path, right, capsys):
    def half(transport, payload_bytes, rate_mbps):
        return max(folders.cap_loss(transport, payload_bytes, rate_mbps), 0.85 if rate_mbps == 20.0 else 0.0)

    design = folders.designs(loss=half)
    folders.fly(tmp_path, "congestion", design["congestion"])
    folders.answer(tmp_path, right)
    said = refused(tmp_path, capsys, "--exercise", "congestion")
    assert (
        "not as its model must have it: udp, 64 B, 20 Mb/s brings 3 Mb/s, and the link's cap is 6.14 Mb/s"
        in said
    )
    assert "close other programs and run it again" in said


def test_a_floor_that_is_empty_everywhere_is_no_campaign(tmp_path, right, capsys):
    design = folders.designs(held_back=lambda *_: 0.05)["floor"]
    folders.fly(tmp_path, "floor", design)
    folders.answer(tmp_path, right)
    said = refused(tmp_path, capsys, "--exercise", "floor")
    assert (
        "the campaign answers nothing: no run of udp, 64 B, 12 Mb/s has floor_w (floor_achieved_low)" in said
    )


def test_a_floor_that_a_device_without_a_cpu_term_has_is_no_campaign(tmp_path, right, capsys):
    from netjoule_synthetic import LinearPower, Meter

    power = LinearPower(floor_w=0.0)
    design = folders.designs(meters=(Meter("client-cross-factor", power=power),), block_sd_ratio=0.0)
    folders.fly(tmp_path, "floor", design["floor"])
    folders.answer(tmp_path, right)
    assert "not between 0 and P_A - P_I" in refused(tmp_path, capsys, "--exercise", "floor")


def test_a_question_that_the_campaign_does_not_decide_is_neither_right_nor_wrong(tmp_path, capsys):
    design = folders.designs(
        loss=lambda *cell: folders.cap_loss("udp", *cell[1:]) if cell[0] != "dccp" else 0.0
    )
    for name, one in designs_of(design).items():
        folders.fly(tmp_path, name, one)
    folders.answer(tmp_path, folders.right_answers(tmp_path))
    assert checked(tmp_path) == 4
    seen = capsys.readouterr()
    found = verdicts([json.loads(line) for line in seen.out.splitlines()])
    assert {name for name, verdict in found.items() if verdict != "right"} == {
        "congestion.tcp_brings_more_because"
    }
    assert found["congestion.tcp_brings_more_because"] == "undecided"
    assert f"1 of {len(NAMES)} questions cannot be decided" in seen.err


def designs_of(changed):
    """The changed design for congestion, the others as they are."""
    return folders.designs() | {"congestion": changed["congestion"]}


def test_tables_of_the_student_are_not_read(handed_in, capsys):
    for name in EXERCISES:
        (handed_in / name / "tables").mkdir()
        (handed_in / name / "tables/ea_summary.csv").write_text("meter_id,ea_j_per_mbit_mean\nclient-cpu,7\n")
    assert checked(handed_in) == 0


# -- what is shipped --------------------------------------------------------------------------------


def test_the_contract_has_the_questions():
    exercises = contracts.schema("coursework_answers")["properties"]["exercises"]["properties"]
    assert list(exercises) == list(EXERCISES)
    for name, exercise in EXERCISES.items():
        fields = exercises[name]["properties"]
        assert list(fields) == [question.name for question in exercise.questions]
        for question in exercise.questions:
            field = fields[question.name]
            assert field["description"] == question.asks
            if question.choices in ((True, False), ()):
                kind = "boolean" if question.choices else "number"
                assert field["type"] == [kind, "null"]
            else:
                assert field["enum"] == [*question.choices, None]
            if not question.choices:
                assert field["unit"] == question.unit


def test_the_workloads_are_those_of_the_exercises_and_take_less_than_an_hour():
    total_s = 0.0
    for exercise in EXERCISES.values():
        of = workload.load(ROOT / f"workloads/{exercise.workload}.yaml")
        where = topology.load(ROOT / (exercise.testbed or "testbed-topology.yaml"))
        assert set(of.transports) == exercise.transports
        assert set(of.payload_bytes) == exercise.payload_bytes
        assert set(of.offered_rate_mbps) == exercise.offered_rate_mbps
        assert where.document["link"]["preset"] == exercise.preset
        assert where.meters[0].meter_id == "client-cpu", "hints name it"
        assert of.blocks >= 5, "three would make wide intervals"
        total_s += forecast(of, where).duration_s
    assert total_s < 30 * 60, "an hour with set-up, analysis and thinking"


def test_the_page_asks_what_is_checked_and_gives_the_commands():
    page = (ROOT / "docs/coursework.md").read_text(encoding="utf-8")
    for exercise in EXERCISES.values():
        assert exercise.run_command("results/coursework") in page
        for question in exercise.questions:
            assert f"`{question.name}`" in page, question.name


def test_start_makes_a_sheet_that_is_read_and_asks_every_question(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    folder = tmp_path / "new"
    assert run_command(["coursework", "start", str(folder)]) == 0
    assert capsys.readouterr().out.split() == [str(folder / "answers.yaml"), str(folder / "report.Rmd")]
    document = yamlfile.load(folder / "answers.yaml")
    yamlfile.hold(document, "coursework_answers")
    asked = [f"{name}.{field}" for name, fields in document.value["exercises"].items() for field in fields]
    assert asked == NAMES
    assert {value for fields in document.value["exercises"].values() for value in fields.values()} == {None}
    text = " ".join((folder / "answers.yaml").read_text().replace("#", "").split())
    assert all(question.asks in text for _, question in QUESTIONS)
    assert "title:" in (folder / "report.Rmd").read_text()
    assert run_command(["coursework", "check", str(folder)]) == 1
    assert run_command(["coursework", "start", str(folder)]) == 2
    assert "exists and is not empty; choose another folder" in capsys.readouterr().err


@pytest.fixture
def bundles(flown, tmp_path, monkeypatch):
    """Bundles as `netjoule publish` packs them, where the shipped ones are looked for."""
    golden = tmp_path / "results/golden"
    golden.mkdir(parents=True)
    for exercise in EXERCISES.values():
        with zipfile.ZipFile(golden / f"{exercise.workload}.zip", "w") as bundle:
            source = flown / exercise.name
            for path in sorted(p for p in source.rglob("*") if p.is_file()):
                bundle.write(path, f"some-name/{path.relative_to(source).as_posix()}")
    own = programs.shipped
    monkeypatch.setattr(programs, "shipped", lambda name: tmp_path / name if "golden" in name else own(name))
    return golden


def test_start_with_golden_gives_campaigns_to_answer_from(bundles, right, tmp_path, capsys):
    folder = tmp_path / "new"
    assert run_command(["coursework", "start", str(folder), "--golden"]) == 0
    for name in EXERCISES:
        assert list(check_campaign(folder / name)) == []
    folders.answer(folder, right)
    assert checked(folder) == 0


@pytest.mark.parametrize("name", ["/tmp/evil", "a/../../evil", "alone"])
def test_a_bundle_that_leaves_its_folder_is_refused(tmp_path, name, capsys):
    bundle = tmp_path / "x.zip"
    with zipfile.ZipFile(bundle, "w") as packed:
        packed.writestr(zipfile.ZipInfo(name), "x")
    with pytest.raises(starting.InvalidData, match="it holds"):
        starting.unpack(bundle, tmp_path / "out/in")
    assert [p.name for p in tmp_path.rglob("*")] == ["x.zip"]
