"""Problems: what fits together, gradients, and the way to attributes and back."""

import numpy as np
import pytest

import seqindex as sx
from seqindex.model.loss import LOSSES
from seqindex.model.problem import STUDENTS, TARGETS
from seqindex.model.reduction import REDUCTIONS


def positional_semantic(**keywords):
    return sx.Problem(
        sx.PositionalSemanticTarget(0.4, alignment=1.0), sx.Attention(2, sx.OppositeEncoding()), **keywords
    )


def test_nothing_is_compiled_when_it_is_built():
    target = sx.Target(lambda z: {"a": z[..., 0]}["a"], length=2)  # its kernel would warn, and warnings are errors
    problem = sx.Problem(target, sx.Attention(2, reduction="trace"))
    assert problem.length == 2
    assert target._kernel is None


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("length", [2, 3])
def test_field_gradient_against_finite_differences(length, reduction, loss):
    student = sx.Attention(length, reduction=reduction)
    target = sx.Target(lambda z: np.repeat(np.tanh(z).sum(-1)[:, None], student.outputs, 1), length)
    problem = sx.Problem(target, student, loss)
    zstar, z = np.random.default_rng(length).normal(size=(2, 8, length))
    gradient = problem.field_gradient(zstar, z)
    errors = []
    for h in (2e-2, 1e-2, 5e-3):
        shifts = h * np.eye(length)
        ahead = problem.loss_at(zstar[:, None], z[:, None] + shifts)
        behind = problem.loss_at(zstar[:, None], z[:, None] - shifts)
        errors.append(np.abs((ahead - behind) / (2 * h) - gradient).max())
    assert np.polyfit(np.log([4, 2, 1]), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize("loss", LOSSES)
def test_zero_residual(loss):
    student = sx.Attention(2)
    problem = sx.Problem(sx.PositionalSemanticTarget(0.0, alignment=1.0), student, loss)
    z = np.random.default_rng(0).normal(size=(4, 2))
    np.testing.assert_array_equal(problem.loss_at(z, z), 0.0)
    np.testing.assert_array_equal(problem.field_gradient(z, z), 0.0)


def test_mismatches():
    target = sx.PositionalSemanticTarget(0.4, alignment=1.0)
    with pytest.raises(ValueError, match=r"^target and student must have the same length, got 2 and 3$"):
        sx.Problem(target, sx.Attention(3))
    with pytest.raises(ValueError, match=r"^target and student must have the same number of outputs, got 4 and 1$"):
        sx.Problem(target, sx.Attention(2, reduction="trace"))
    with pytest.raises(ValueError, match=r"^loss must be one of 'square', 'norm', got 'frobenius'$"):
        sx.Problem(target, sx.Attention(2), loss="frobenius")


@pytest.mark.parametrize("value", [None, 3, "z1*z2", lambda z: z, sx.PositionalSemanticTarget, sx.OppositeEncoding()])
def test_no_target(value):
    with pytest.raises(TypeError, match=r"^target must be a target such as PositionalSemanticTarget\("):
        sx.Problem(value, sx.Attention(2))


@pytest.mark.parametrize("value", [None, "attention", sx.Attention, sx.PositionalSemanticTarget(0.5, alignment=1.0)])
def test_no_student(value):
    """Arguments in the wrong order end here too: a target has no Jacobian."""
    with pytest.raises(TypeError, match=r"^student must be a student such as Attention\(length=2\), got "):
        sx.Problem(sx.PositionalSemanticTarget(0.5, alignment=1.0), value)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("reduction", [*REDUCTIONS, sx.Reduction(np.random.default_rng(0).normal(size=(4, 2, 2)))])
@pytest.mark.parametrize("encoding", [None, sx.OppositeEncoding(), sx.Encoding([[1, 0], [0.6, 0.8]], [0.1, -0.2])])
def test_attrs_round_trip(encoding, reduction, loss):
    student = sx.Attention(2, encoding, reduction)
    if student.outputs == 4:
        target, needed = sx.PositionalSemanticTarget(1.0 / 3.0, alignment=0.9), None
    else:
        target = needed = sx.Target(lambda z: z[..., 0] * z[..., 1], 2)
    problem = sx.Problem(target, student, loss)
    attrs = problem.to_attrs()
    assert all(isinstance(value, str) for value in attrs.values())
    again = sx.Problem.from_attrs({**attrs, "other": 1}, target=needed)
    assert again.to_attrs() == attrs
    zstar, z = np.random.default_rng(1).normal(size=(2, 5, 2))
    np.testing.assert_array_equal(again.field_gradient(zstar, z), problem.field_gradient(zstar, z))
    np.testing.assert_array_equal(again.frame.positions, problem.frame.positions)


def test_attrs_survive_a_file(tmp_path):
    import xarray as xr

    problem = positional_semantic(loss="norm")
    xr.Dataset(attrs=problem.to_attrs()).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as data:
        assert sx.Problem.from_attrs(data.attrs).to_attrs() == problem.to_attrs()


def test_attrs_refused():
    attrs = positional_semantic().to_attrs()
    with pytest.raises(ValueError, match=r"^attrs must hold a problem, got none under 'target', 'student', 'loss'$"):
        sx.Problem.from_attrs({})
    del attrs["loss"]
    with pytest.raises(ValueError, match=r"^attrs must hold a problem, got none under 'loss'$"):
        sx.Problem.from_attrs(attrs)
    called = sx.Problem(sx.Target(lambda z: z[..., 0], 2), sx.Attention(2, reduction="trace")).to_attrs()
    with pytest.raises(ValueError, match=r"^target must be passed again, since a callable is stored only by its name"):
        sx.Problem.from_attrs(called)
    for key, kinds in (("target", TARGETS), ("student", STUDENTS)):
        broken = {**called, "target": positional_semantic().to_attrs()["target"], key: '{"kind": "Attenton"}'}
        with pytest.raises(ValueError, match=rf"^{key} kind must be one of '{next(iter(kinds))}'.*, got 'Attenton'"):
            sx.Problem.from_attrs(broken)
    for text in ("not json", "[]", "{}", '{"kind": "Attention"}', '{"kind": "Attention", "length": 2, "extra": 1}'):
        with pytest.raises(ValueError, match=r"^attrs must hold a problem, got student ") as caught:
            sx.Problem.from_attrs({**positional_semantic().to_attrs(), "student": text})
        assert "\n" not in str(caught.value)


def test_repr():
    text = repr(positional_semantic())
    assert text.startswith("Problem(PositionalSemanticTarget(omega=0.4")
    assert text.endswith("loss='square')")
