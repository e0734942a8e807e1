# SPDX-License-Identifier: Apache-2.0
"""The workflows that docs/ci.md gives away: what the services' own contracts, and actionlint, say of them."""

import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from go_programs import ACTIONLINT, built

CI = Path(__file__).parents[3] / "docs/ci"


class Loader(yaml.SafeLoader):
    """YAML 1.2's truth values, as the services read them: `on` is a word."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:bool"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), list("tf"))


def read(name: str) -> dict:
    return yaml.load((CI / name).read_text(encoding="utf-8"), Loader)


@pytest.mark.parametrize(
    ("name", "schema"), [("github.yml", "vendor.github-workflows"), ("gitlab.yml", "vendor.gitlab-ci")]
)
def test_the_service_knows_every_key(name, schema):
    contract = get_builtin_schema(schema)
    kind = jsonschema.validators.validator_for(contract)
    assert [error.message for error in kind(contract).iter_errors(read(name))] == []
    spoilt = read(name)
    spoilt.setdefault("jobs", spoilt)["one"] = {"script": [{"a": 1}], "runs-on": 3}
    assert not kind(contract).is_valid(spoilt)


def test_actionlint_finds_nothing(tmp_path):
    program = built(ACTIONLINT, tmp_path)
    config = tmp_path / "actionlint.yaml"
    config.write_text("self-hosted-runner: {labels: [netjoule]}\n")
    done = subprocess.run(
        [program, "-no-color", "-config-file", config, CI / "github.yml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_jobs_do_not_fail_where_nothing_was_decided():
    assert read("gitlab.yml")[".energy"]["allow_failure"] == {"exit_codes": [4]}
    (step,) = [one["run"] for one in read("github.yml")["jobs"]["gate"]["steps"] if "run" in one]
    for code, expected in ((0, 0), (1, 1), (2, 2), (3, 3), (4, 0)):
        script = f"netjoule() {{ return {code}; }}\n{step}"
        words = ["bash", "-e", "-c", script]
        assert subprocess.run(words, env={"PATH": "/usr/bin:/bin"}, check=False).returncode == expected


def test_no_job_waits_where_the_service_would_cancel_it():
    github, gitlab = read("github.yml"), read("gitlab.yml")
    assert "concurrency" not in github
    assert all("concurrency" not in job for job in github["jobs"].values())
    assert all("resource_group" not in job for job in gitlab.values())
