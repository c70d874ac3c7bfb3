"""The project's own promises: light imports, documented names, commands that README and CI share, recipes that run."""

import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import seqindex as sx
from seqindex.gaussian.simd import WIDTH

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))


def blocks_of(document, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


def python(code, **environment):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("layer", ["theory", "sgd", "model"])
def test_layers_below_plotting_stay_light(layer):
    """Every module of the layer, not only its empty ``__init__``."""
    code = f"""
import importlib, pkgutil, sys
import seqindex.{layer} as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print(sorted(name for name in ("matplotlib", "torch") if name in sys.modules))
"""
    assert python(code).strip() == "[]"


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, seqindex; print([n for n in ('numpy', 'numba', 'scipy', 'xarray') if n in sys.modules])"
    assert python(code).strip() == "[]"


@pytest.mark.parametrize("name", sx.__all__)
def test_public_names_are_documented(name):
    value = getattr(sx, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        text = inspect.getdoc(value) or ""
        assert ">>> " in text, f"{name} needs an example in its docstring"


def test_public_names_resolve_lazily():
    assert set(sx.__all__) <= set(dir(sx))
    with pytest.raises(AttributeError, match=r"^module 'seqindex' has no attribute 'Attenton'$"):
        sx.Attenton  # noqa: B018


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_rules(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert not re.search(r"fastmath\s*=\s*True|[\"']fastmath[\"']\s*:\s*True", text)


def test_version_is_stated_once():
    project = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{sx.__version__}"' in project
    assert f"version: {sx.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {sx.__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("mark", ["main job", "tests"])
def test_readme_commands(mark):
    """A fresh machine needs one line: environment, installation, job."""
    found = re.findall(
        rf"^<!-- {mark} -->\n```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert len(found) == 1
    assert found[0].startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert found[0].count("\n") == 1


def test_ci_runs_the_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text()
    assert "<!-- tests -->" in script
    assert "pytest" not in script.replace("PYTEST_ADDOPTS", ""), "the command stands in README.md alone"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_readme_example_runs():
    (example,) = blocks_of("README.md", "python")
    unknown = set(re.findall(r"\bsx\.(\w+)", example)) - set(sx.__all__)
    if unknown:
        pytest.skip(f"not exported yet: {sorted(unknown)}")
    assert "share of runs" in python(example)


def recipe(number, tmp_path):
    """Recipe ``number`` of CONTRIBUTING.md as a module in a file, since compiled code is cached by file."""
    path = tmp_path / f"recipe_{number}.py"
    path.write_text(blocks_of("CONTRIBUTING.md", "python")[number])
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_recipe_of_a_target_and_a_student(tmp_path):
    target = recipe(0, tmp_path).ProductTarget(3, scale=2.0)
    student = recipe(1, tmp_path).SquareNetwork(3)
    problem = sx.Problem(target, student)
    zstar, z, r = np.random.default_rng(0).normal(size=(3, 3, WIDTH))
    y, f, c, work = np.empty((1, WIDTH)), np.empty((1, WIDTH)), np.empty((3, WIDTH)), np.empty((1, WIDTH))
    target.kernel.function(zstar, target.kernel.parameters, y)
    np.testing.assert_allclose(y, target(zstar.T).T, rtol=1e-14)
    student.kernel.forward(z, student.kernel.parameters, work, f)
    student.kernel.backward(z, student.kernel.parameters, work, r[:1].copy(), c)
    np.testing.assert_allclose(f, student(z.T).T, rtol=1e-13)
    np.testing.assert_allclose(c, student.pull_back(z.T, r[:1].T).T, rtol=1e-13)
    np.testing.assert_allclose(student.jacobian(z.T)[:, 0], student.pull_back(z.T, np.ones((WIDTH, 1))), rtol=1e-14)
    assert problem.field_gradient(zstar.T, z.T).shape == (WIDTH, 3)
    for thing in (target, student):
        assert type(thing).from_spec(thing.spec()).spec() == thing.spec()


def test_recipes_of_an_encoding_and_a_reduction(tmp_path):
    encoding = recipe(2, tmp_path).LinearEncoding(4)
    np.testing.assert_array_equal(encoding.matrix[:, 0], [-0.75, -0.25, 0.25, 0.75])
    student = sx.Attention(4, encoding, recipe(3, tmp_path).FirstRow())
    assert student.outputs == 4
    np.testing.assert_array_equal(student(np.ones(4)), np.full(4, 0.25))
    assert student.spec()["reduction"] == {"name": "first_row"}
