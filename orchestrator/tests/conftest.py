# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Helpers of these tests (synthetic.py) are modules beside them or in their rooms; importlib adds no folder.
for folder in (
    "cli",
    "gate",
    "gate/outputs",
    "loads",
    "loads/transfer",
    "rigs",
    "publishing",
    "validation",
    "coursework",
    "analysis",
    "testbeds",
    ".",
):
    sys.path.insert(0, str(Path(__file__).parent / folder))


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished synthetic campaign; copy it before changing it."""
    import synthetic

    return synthetic.finished(tmp_path_factory.mktemp("golden") / "tiny")


@pytest.fixture
def campaign_dir(golden: Path, tmp_path: Path) -> Path:
    """A finished synthetic campaign of one's own, without its lock file."""
    place = tmp_path / golden.name
    shutil.copytree(golden, place)
    return place


@pytest.fixture(scope="session")
def canary_campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with names of every kind in every place; nobody changes it."""
    import canaries

    return canaries.campaign(tmp_path_factory.mktemp("canaries") / "bench")


@pytest.fixture
def secrets_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the canaries' references to secrets mean."""
    import canaries

    monkeypatch.setenv(canaries.SECRET_VARIABLE, canaries.SECRET_VALUE)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Campaigns of the exercises of the coursework, never changed."""
    import coursework_folders as folders

    folder = tmp_path_factory.mktemp("coursework")
    folders.fly_all(folder)
    return folder


@pytest.fixture(scope="session")
def right(finished: Path) -> dict[str, dict[str, Any]]:
    """What is right of them."""
    import coursework_folders as folders

    return folders.right_answers(finished)


@pytest.fixture
def handed_in(finished: Path, right: dict[str, dict[str, Any]], tmp_path: Path) -> Path:
    """The same with right answers, to be changed."""
    import coursework_folders as folders

    folder = tmp_path / "coursework"
    shutil.copytree(finished, folder)
    folders.answer(folder, right)
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    import report_pages
    from chromium import Chromium

    program = shutil.which("chromium")
    if program is None:
        report_pages.lacking("there is no chromium; 'scripts/setup.sh test' installs it")
    with Chromium(str(program), tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Opens pages; in the end none of them may have done what it should not."""
    from chromium import Page
    from report_pages import DESK

    pages: list[Page] = []

    def opened(path: Path, fragment: str = "", **size: Any) -> Page:
        pages.append(Page(browser, **(size or DESK)))
        return pages[-1].open(path, fragment)

    yield opened
    told = [page.problems() for page in pages]
    for page in pages:
        page.close()
    assert told == [[] for _ in pages]


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 12 runs."""
    import report_pages

    return report_pages.of_design(tmp_path_factory.mktemp("few"), report_pages.tiny())


@pytest.fixture(scope="session")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a small sweep, which published values stand beside."""
    import report_pages

    return report_pages.of_design(tmp_path_factory.mktemp("beside"), report_pages.beside())


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 7,680 runs."""
    import report_pages

    return report_pages.of_design(tmp_path_factory.mktemp("many"), report_pages.many())
