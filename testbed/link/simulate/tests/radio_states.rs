// SPDX-License-Identifier: Apache-2.0
//! The program `netjoule-simulate radio-states` from outside.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn written(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn run(machine: &str, trace: &PathBuf, more: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_netjoule-simulate");
    let arguments = ["radio-states", "--machine", machine];
    Command::new(program).args(arguments).args(more).arg(trace).output().unwrap()
}

fn told(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_trace_is_answered_with_one_document() {
    let trace = written("two.csv", "t_s,direction,bytes\n0,down,1000\n0.79,down,1000\n");
    let answer = told(&run("aro-lte", &trace, &[]));
    assert_eq!((&answer["machine"], &answer["packets_passed"]), (&"aro-lte".into(), &2.into()));
    assert_eq!(answer["intervals"][0], serde_json::json!([0.0, 0.26, "PROMOTION"]));
    assert_eq!(answer["delays_s"], serde_json::json!({"mean": 0.145, "max": 0.26}));
    let sum = |field: &str| -> f64 {
        answer[field].as_object().unwrap().values().map(|value| value.as_f64().unwrap()).sum()
    };
    assert!((sum("time_by_state_s") - answer["t_end_s"].as_f64().unwrap()).abs() < 1e-9);
    assert!((sum("energy_by_state_j") - answer["energy_j"].as_f64().unwrap()).abs() < 1e-9);
    assert!((answer["tail_j"].as_f64().unwrap() - 11.05244).abs() < 1e-6, "{answer}");
}

#[test]
fn the_machine_of_an_answer_is_one_of_your_own() {
    let trace = written("one.csv", "t_s,direction,bytes\n0,up,40\n");
    let preset = told(&run("n9-umts", &trace, &["--until-s", "10"]));
    let document = serde_json::to_string_pretty(&preset["document"]).unwrap();
    let machine = written("mine.json", &document.replace("\"fach_tail_s\": 2.0", "\"fach_tail_s\": 5.0"));
    let mine = told(&run(machine.to_str().unwrap(), &trace, &["--until-s", "10"]));
    let seconds = |answer: &Value| answer["time_by_state_s"]["FACH"].as_f64();
    assert_eq!((seconds(&preset), seconds(&mine)), (Some(2.0), Some(5.0)));
}

#[test]
fn bad_input_ends_with_one_sentence_and_exit_code_2() {
    let good = written("good.csv", "t_s,direction,bytes\n5,up,40\n");
    let bad = written("bad.csv", "t_s,direction,bytes\n5,up,40\n6,up,x\n");
    let machine = written("bad.json", "{\"source\": \"\",\n \"machine\": {\"lte\": {\"x\": 1}}}");
    let machine = machine.to_str().unwrap();
    let cases: [(&str, &PathBuf, &[&str], &str); 5] = [
        ("aro-lte", &bad, &[], "bad.csv, line 3: bytes is"),
        ("aro-lte", &PathBuf::from("none.csv"), &[], "cannot read none.csv"),
        ("lte", &good, &[], "there is no machine"),
        (machine, &good, &[], "bad.json, line 2: unknown field `x`"),
        ("aro-lte", &good, &["--until-s", "4"], "--until-s is 4"),
    ];
    for (machine, trace, more, expected) in cases {
        let output = run(machine, trace, more);
        let sentence = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{sentence}");
        assert!(output.stdout.is_empty() && sentence.lines().count() == 1, "{sentence}");
        assert!(sentence.contains(expected), "{sentence:?} lacks {expected:?}");
    }
}
