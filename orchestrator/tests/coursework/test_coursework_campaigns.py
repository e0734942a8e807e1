# SPDX-License-Identifier: Apache-2.0
"""`netjoule coursework check`: campaigns that show nothing are refused in one sentence."""

import json

import coursework_folders as folders
import pytest
from golden_sentences import same_sentence

from netjoule.coursework.exercises import EXERCISES


def refused(folder, capsys, *words):
    """The one sentence of a refusal with exit code 4."""
    assert folders.checked(folder, *words) == 4
    seen = capsys.readouterr()
    assert seen.err.count("\n") == 1
    assert "defect of netjoule" not in seen.err
    return seen.err


def spoil(folder, change):
    folders.edit(folder / "envelope/campaign.json", change)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["workload"]["factors"].update(transport=["udp", "tcp"]),
        lambda d: d["workload"]["factors"].update(payload_bytes=[64, 64]),
        lambda d: d["workload"]["factors"].update(offered_rate_mbps=[6, 12]),
        lambda d: d["workload"]["factors"].update(offered_rate_mbps=[[6], 12, 24]),
        lambda d: d["workload"].update(blocks=2),
        lambda d: d["workload"].update(blocks=10**5),
        lambda d: d["workload"]["factors"].update(pacing=["absolute", "spin"]),
        lambda d: d["workload"]["factors"].update(window_us=list(range(1000))),
        lambda d: d["workload"]["factors"].update(parallel=64),
        lambda d: d["workload"]["factors"].update(direction="down"),
        lambda d: d["workload"]["flow"].update(generator="iperf3"),
        lambda d: d["workload"]["factors"].update(profile=[{"x": 1}]),
        lambda d: d["topology"]["link"].update(preset="seed-like"),
        lambda d: d["topology"].pop("link"),
        lambda d: d["topology"]["link"].update(overrides={"mcs": 1}),
        lambda d: d.update(status="interrupted"),
        lambda d: d.update(seed="x"),
        lambda d: d.update(schema_version=2),
        lambda d: d.update(seed=d["seed"] + 1),
    ],
)
def test_another_campaign_is_refused(handed_in, change, capsys):
    spoil(handed_in, change)
    same_sentence(refused(handed_in, capsys))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["workload"]["factors"].update(path=["rtt-10"]),
        lambda d: d["workload"]["flow"]["simulated"].update(delayed_acks=False),
        lambda d: d["topology"]["presets"]["scaling"].update({"practra-10": {"kind": "none"}}),
        lambda d: d["topology"]["presets"]["path"]["rtt-100"]["elements"].remove("access-100"),
        lambda d: d["topology"]["presets"]["path"]["rtt-100"]["elements"].append("nowhere"),
        lambda d: d["topology"]["elements"]["n1-100"].update(queue_packets=1000),
        lambda d: d["topology"].pop("presets"),
        lambda d: d["topology"].update(presets={}),
    ],
)
def test_another_simulated_campaign_is_refused(handed_in, change, capsys):
    folders.edit(handed_in / "scaling/campaign.json", change)
    same_sentence(refused(handed_in, capsys, "--exercise", "scaling"))


def test_a_simulated_campaign_with_a_defect_is_refused(handed_in, capsys):
    place = handed_in / "scaling/blocks/2/results.ndjson"
    place.write_text("".join(place.read_text().splitlines(keepends=True)[:-1]))
    same_sentence(refused(handed_in, capsys, "--exercise", "scaling"))


def test_paths_that_the_exercise_does_not_cross_may_differ(handed_in):
    place = handed_in / "scaling/campaign.json"
    folders.edit(place, lambda d: d["topology"]["elements"]["n1-50"].update(queue_packets=30))
    assert folders.checked(handed_in, "--exercise", "scaling") == 0


def test_a_campaign_with_a_defect_is_refused(handed_in, capsys):
    run = min((handed_in / "floor/runs").iterdir())
    folders.edit(run / "result.json", lambda d: d["nodes"][0].update(delta_p_w=77.0))
    said = refused(handed_in, capsys)
    assert "delta_p_w" in said
    same_sentence(said)


def test_a_link_that_does_not_saturate_as_its_model_is_no_campaign(tmp_path, right, capsys):
    def half(transport, payload_bytes, rate_mbps):
        return max(folders.cap_loss(transport, payload_bytes, rate_mbps), 0.85 if rate_mbps == 20.0 else 0.0)

    design = folders.designs(loss=half)
    folders.fly(tmp_path, "congestion", design["congestion"])
    folders.answer(tmp_path, right)
    said = refused(tmp_path, capsys, "--exercise", "congestion")
    same_sentence(said)


def test_a_floor_that_is_empty_everywhere_is_no_campaign(tmp_path, right, capsys):
    design = folders.designs(held_back=lambda *_: 0.05)["floor"]
    folders.fly(tmp_path, "floor", design)
    folders.answer(tmp_path, right)
    said = refused(tmp_path, capsys, "--exercise", "floor")
    same_sentence(said)


def test_a_floor_that_a_device_without_a_cpu_term_has_is_no_campaign(tmp_path, right, capsys):
    from netjoule_synthetic import LinearPower, Meter

    power = LinearPower(floor_w=0.0)
    design = folders.designs(meters=(Meter("client-cross-factor", power=power),), block_sd_ratio=0.0)
    folders.fly(tmp_path, "floor", design["floor"])
    folders.answer(tmp_path, right)
    same_sentence(refused(tmp_path, capsys, "--exercise", "floor"))


def test_a_question_that_the_campaign_does_not_decide_is_neither_right_nor_wrong(tmp_path, capsys):
    design = folders.designs(
        loss=lambda *cell: folders.cap_loss("udp", *cell[1:]) if cell[0] != "dccp" else 0.0
    )
    folders.fly_all(tmp_path, congestion=design["congestion"])
    folders.answer(tmp_path, folders.right_answers(tmp_path))
    assert folders.checked(tmp_path) == 4
    seen = capsys.readouterr()
    found = folders.verdicts([json.loads(line) for line in seen.out.splitlines()])
    assert {name for name, verdict in found.items() if verdict != "right"} == {
        "congestion.tcp_brings_more_because"
    }
    assert found["congestion.tcp_brings_more_because"] == "undecided"
    same_sentence(seen.err)


def test_tables_of_the_student_are_not_read(handed_in, capsys):
    for name in EXERCISES:
        (handed_in / name / "tables").mkdir(exist_ok=True)
        (handed_in / name / "tables/ea_summary.csv").write_text("meter_id,ea_j_per_mbit_mean\nclient-cpu,7\n")
    assert folders.checked(handed_in) == 0


def test_a_campaign_that_is_refused_hides_no_verdict_on_the_others(handed_in, capsys):
    for name in ("envelope", "congestion"):
        folders.edit(handed_in / name / "campaign.json", lambda d: d.update(status="interrupted"))
    assert folders.checked(handed_in) == 4
    seen = capsys.readouterr()
    found = [json.loads(line) for line in seen.out.splitlines()]
    assert folders.verdicts(found) == {
        n: "right" for n in folders.NAMES if n.startswith(("floor.", "scaling.", "transfers."))
    }
    refusals = [e for e in found if e["event"] == "refused"]
    assert [e["exercise"] for e in refusals] == ["envelope", "congestion"]
    assert seen.err.splitlines() == [f"netjoule: {e['detail']}" for e in refusals]
    assert all("is not finished" in e["detail"] for e in refusals)
