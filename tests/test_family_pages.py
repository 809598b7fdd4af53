"""Each family has a page, and what a page says of the code is what the code says."""

import re
import shlex

import pytest

import core_models as cm
from benchmarks import families as pages
from core_models.families import FAMILIES

NAMES = [pages.OVERVIEW, pages.CAUSAL, *FAMILIES]


def text_of(name: str) -> str:
    return (pages.FOLDER / f"{name}.md").read_text("utf-8")


def test_every_family_has_a_page_and_every_page_a_family():
    assert {file.stem for file in pages.FOLDER.iterdir()} == set(NAMES)


@pytest.fixture(scope="module")
def parts():
    return pages.parts()


@pytest.mark.parametrize("name", NAMES)
def test_the_generated_part_is_up_to_date(name, parts):
    text = text_of(name)
    part = parts[f"{name}.md"]
    assert pages.insert(text, part) == text, "run: python -m benchmarks.families"


def test_a_page_without_markers_is_named_as_such():
    with pytest.raises(ValueError, match="lacks the markers"):
        pages.insert("no markers here", "text")


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    links = re.findall(r"\]\(([^)#\s]+)", re.sub(r"```.*?```", "", text_of(name), flags=re.DOTALL))
    local = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in local if not (pages.FOLDER / link).exists()] == []


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_short(name):
    assert [line for line in text_of(name).splitlines() if len(line) > 140] == []


@pytest.mark.parametrize("name", FAMILIES)
def test_lines_to_try_name_sizes_that_exist(name):
    text = text_of(name)
    tried = [shlex.split(a) for a in re.findall(r"core_models (?:count|diff) ([^\n#`]+)", text)]
    named = re.findall(r'cm\.(?:size|count)\("([^"]+)"\)', text)
    assert tried
    assert named
    for size in (*named, *(argument for line in tried for argument in line)):
        cm.size(size)
