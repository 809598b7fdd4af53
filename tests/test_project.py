"""Promises of the project as a whole: files, documents, dependencies, safety."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from core_models.model import heads_of
from core_models.prediction.passes import KINDS

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("app", "core_models", "viz", "zoo")
SOURCES = [
    ROOT / "app.py",
    *(f for p in (*PACKAGES, "benchmarks") for f in (ROOT / p).rglob("*.py")),
]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
BINARY = {".png", ".safetensors", ".woff2", ".xz", ".ico"}


@cache
def project_files() -> list[Path]:
    """Every file that is in the repository or about to be."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in found.decode().split("\0") if name and (ROOT / name).is_file()]


def requirements(name: str) -> dict[str, Requirement]:
    lines = (line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    found = [Requirement(line) for line in lines if line and not line.startswith("-")]
    return {normal(r.name): r for r in found}


def normal(name: str) -> str:
    name = {"sklearn": "scikit-learn"}.get(name, name)  # imported under another name
    return re.sub(r"[-_.]+", "-", name).lower()


# --- files ----------------------------------------------------------------------------------------


def test_no_test_waits_for_a_fixed_time():
    """Only what is slow on purpose sleeps: another process, a late server, a kill at any moment."""
    waiting = re.compile(
        r"wait_for_timeout|time\.sleep\(|asyncio\.sleep\((?!0\))|threading\.Timer|[( ]Timer\("
        r"|until\(lambda: False"
    )
    found = {
        path.relative_to(ROOT).as_posix(): waiting.findall(path.read_text("utf-8"))
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__)
    }
    assert {name for name, waits in found.items() if waits} <= {
        "tests/app/late.py",
        "tests/app/test_ask.py",
        "tests/app/test_server_kills.py",  # draws the moments at which servers are killed
        "tests/training/test_folder.py",
    }


def test_no_assert_looks_at_the_page_only_once():
    """An answer may still be on its way: ``expect`` waits for what such a call looks at once.

    Where once is meant, as for what must never stand there, the line ends with ``# at once``.
    """
    looks = {
        *("is_visible", "is_hidden", "is_checked", "is_disabled", "is_enabled", "is_editable"),
        *("input_value", "inner_text", "inner_html", "text_content", "get_attribute"),
        *("all_inner_texts", "all_text_contents"),
    }

    def once(node: ast.AST) -> bool:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        counts = node.func.attr == "count" and not node.args
        return counts or node.func.attr in looks

    found = []
    for path in (ROOT / "tests" / "app").glob("*.py"):
        text = path.read_text("utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assert) and any(map(once, ast.walk(node))):
                meant = lines[node.lineno - 1 : node.end_lineno]
                if not any(line.endswith("  # at once") for line in meant):
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []


def test_no_file_needs_large_file_storage():
    large = {str(f): f.stat().st_size for f in project_files() if f.stat().st_size > 10_000_000}
    assert large == {}


def test_no_paths_of_somebodys_machine():
    home = re.compile(r"(?<![\w.~])/(?:home|root|Users)/\w|[A-Z]:\\Users\\")
    named = [
        f"{file.relative_to(ROOT)}: {match.group()}"
        for file in project_files()
        if file.suffix not in BINARY and file != Path(__file__)
        for match in home.finditer(file.read_text("utf-8"))
    ]
    assert named == []


def test_licence_is_apache_2():
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert project()["license"] == "Apache-2.0"


def test_shipped_fonts_carry_their_licence():
    folders = {file.parent for file in project_files() if file.suffix == ".woff2"}
    without = [f for f in folders if not any("OFL" in p.name for p in f.iterdir())]
    assert without == []


# --- documents ------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda f: f.name)
def test_links_between_documents_lead_somewhere(document):
    text = re.sub(r"```.*?```|`[^`\n]+`", "", document.read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)", text)
    local = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in local if not (document.parent / link).exists()] == []


def test_documented_commands_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", document.read_text("utf-8"), re.DOTALL))
        assert set(re.findall(r"(?:^|`|=\S+ )make ([a-z]+)", code, re.M)) <= targets, document.name
        for module in re.findall(r"python -m ([\w.]+)", code):
            assert importlib.util.find_spec(module), f"{document.name}: {module}"


def test_every_setting_of_the_server_is_documented():
    rooms = [*(ROOT / "app").rglob("*.py"), *(ROOT / "core_models").rglob("*.py")]
    read = {
        name for file in rooms for name in re.findall(r'"(CLOZE_[A-Z_]+)"', file.read_text("utf-8"))
    }
    table = re.findall(r"^\| `(CLOZE_\w+)`", (ROOT / "docs/hosting.md").read_text("utf-8"), re.M)
    assert sorted(table) == sorted(read)


def test_python_of_the_documents_runs(tmp_path):
    """Each from its first block to its last, all in one process: it takes seconds to start."""
    code = []
    for name in ("README.md", "docs/library.md", "docs/trace.md"):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)
        assert blocks, name
        code.append(f"exec(compile({chr(10).join(blocks)!r}, '<{name}>', 'exec'), {{}})")
    done = python("-c", "\n".join(code), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_first_example_is_true_of_every_model_that_fills_gaps(tmp_path):
    text = (ROOT / "README.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    folders = sorted(path.parent for path in (ROOT / "assets" / "models").glob("*/config.json"))
    names = [folder.name for folder in folders if set(heads_of(folder)) & set(KINDS)]
    assert len(names) >= 10
    code = [
        f"print({name!r}); exec({block.replace('bert-mini', name, 1)!r}, {{}})" for name in names
    ]
    done = python("-c", "\n".join(code), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = {name: done.stdout.split(f"{name}\n", 1)[1].splitlines()[0] for name in names}
    knowing = {name for name, line in said.items() if "paris" in line.lower()}
    assert knowing == {name for name in names if "chinese" not in name}, said


def test_readme_header_fits_the_repository():
    header = yaml.safe_load((ROOT / "README.md").read_text("utf-8").split("---\n")[1])
    assert (ROOT / header["app_file"]).is_file()
    assert requirements("requirements.txt")["gradio"].specifier.contains(header["sdk_version"])
    assert header["license"] == "apache-2.0"
    assert len(header["short_description"]) <= 60


def test_changelog_starts_with_what_is_unreleased():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "[Unreleased]"


# --- dependencies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.13.0"])
def test_torch_of_a_space_is_accepted(version):
    assert requirements("requirements.txt")["torch"].specifier.contains(version)


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_tested_versions_lie_in_the_ranges(name):
    tested = requirements("constraints.txt")
    for package, wanted in requirements(name).items():
        (exact,) = tested[package].specifier
        assert exact.operator == "=="
        assert wanted.specifier.contains(exact.version), package


INSTALLED_AS = {"google": "protobuf"}
"""Packages whose modules have another name."""


def test_requirements_are_what_is_imported():
    imported = {
        name.split(".")[0]
        for file in SOURCES
        if "benchmarks" not in file.parts
        for name in imports(file)
    }
    foreign = imported - set(sys.stdlib_module_names) - {*PACKAGES}
    # Starlette is the web framework that Gradio is made of and hands us through app_kwargs.
    packages = {INSTALLED_AS.get(name, normal(name)) for name in foreign - {"starlette"}}
    assert packages == set(requirements("requirements.txt"))


def test_version_is_written_once_and_again_alike():
    import core_models

    assert core_models.__version__ == project()["version"]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


# --- safety ---------------------------------------------------------------------------------------

UNSAFE_MODULES = {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "torch.load", "torch.save"}
UNSAFE_OPTIONS = {"trust_remote_code", "allow_pickle"}


def imports(file: Path) -> set[str]:
    """Absolute names of the modules that a file imports, those for type checkers included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("file", SOURCES, ids=lambda f: str(f.relative_to(ROOT)))
def test_nothing_unpickles_or_runs_foreign_code(file):
    assert not {name.split(".")[0] for name in imports(file)} & UNSAFE_MODULES
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in UNSAFE_CALLS, f"line {node.lineno}"
            assert not {keyword.arg for keyword in node.keywords} & UNSAFE_OPTIONS


@pytest.mark.parametrize("module", ["core_models.training.folder", "core_models.training.settings"])
def test_watching_runs_loads_neither_torch_nor_gradio(module):
    code = f"import sys, {module}; print({{'torch', 'gradio'}} & set(sys.modules))"
    assert python("-c", code).stdout.strip() == "set()"


def test_the_core_loads_without_the_page():
    code = "import sys, core_models as cm; cm.load, cm.Trace; print('gradio' in sys.modules)"
    assert python("-c", code).stdout.strip() == "False"


@pytest.mark.slow
def test_the_page_opens_without_what_single_labs_need():
    """Each takes seconds to import; a lab that needs one asks for it when it is used."""
    heavy = {"sklearn", "scipy", "captum", "seqeval", "transformers", "datasets"}
    code = f"import sys, app.main; print({heavy} & set(sys.modules))"
    assert python("-c", code).stdout.strip() == "set()"


def python(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )
