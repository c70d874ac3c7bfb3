"""Block functions against their NumPy twins, for everything registered in the model layer."""

import numpy as np
import pytest

from seqindex.gaussian.simd import ROWS, WIDTH
from seqindex.model import blocks
from seqindex.model.attention import SCORES, Attention
from seqindex.model.encoded_target import EncodedTarget
from seqindex.model.link import Target
from seqindex.model.loss import LOSSES
from seqindex.model.problem import STUDENTS, TARGETS, Problem
from seqindex.model.reduction import REDUCTIONS, Projection, Reduction
from seqindex.model.target import PositionalSemanticTarget
from seqindex.model.tied import TiedNetwork
from seqindex.model.untied import UntiedNetwork

LENGTHS = [1, 2, 3, 5]


def dense(length):
    return Reduction(np.random.default_rng(10 + length).standard_normal((3, length, length)))


def projection(length):
    left, right = np.random.default_rng(20 + length).standard_normal((2, length))
    return Projection(left, right)


CASES = {**{name: lambda length, name=name: REDUCTIONS[name]() for name in REDUCTIONS}}
CASES |= {"projection": projection, "dense": dense, "zero": lambda length: Reduction(np.zeros((2, length, length)))}
EXAMPLES = {
    "PositionalSemanticTarget": lambda length: PositionalSemanticTarget(
        0.3, alignment_matrix=np.random.default_rng(length).dirichlet(np.ones(length), length)
    ),
    "EncodedTarget": lambda length: EncodedTarget(0.3, "linear"),
    "Target": lambda length: Target(lambda z: np.exp(-(z**2)), length),
    "Attention": lambda length: Attention(length),
    "TiedNetwork": lambda length: TiedNetwork(length, "tanh", np.cos(np.arange(length))),
    "UntiedNetwork": lambda length: UntiedNetwork(length, "softplus"),
}


def block(rows, seed, scale=1.5):
    return np.random.default_rng(seed).normal(0.0, scale, (rows, WIDTH))


def target_block(target, z):
    y = np.full((target.outputs, WIDTH), np.nan)
    kernel = target.kernel
    kernel.function(np.ascontiguousarray(z), kernel.parameters, y)
    return y


def student_block(student, z, r):
    kernel = student.kernel
    work = np.full((kernel.work_rows, WIDTH), np.nan)
    f = np.full((student.outputs, WIDTH), np.nan)
    c = np.full((student.length, WIDTH), np.nan)
    kernel.forward(z, kernel.parameters, work, f)
    kernel.backward(z, kernel.parameters, work, r, c)
    return f, c


def loss_block(loss, y, f):
    r = np.full_like(f, np.nan)
    blocks.compiled(loss.kernel, blocks.LOSS)(y, f, r)
    return r


def close(got, wanted, atol=2e-14):
    np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=atol * max(1.0, float(np.abs(wanted).max(initial=0.0))))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("reduction", CASES)
@pytest.mark.parametrize("scores", SCORES)
def test_attention(scores, reduction, length):
    student = Attention(length, reduction=CASES[reduction](length), scores=scores)
    z, r = block(length, 1), block(student.outputs, 2)
    f, c = student_block(student, z, r)
    close(f, student(z.T).T)
    close(c, student.pull_back(z.T, r.T).T)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", STUDENTS)
def test_every_student(kind, length):
    student = EXAMPLES[kind](length)
    z, r = block(length, 3), block(student.outputs, 4)
    f, c = student_block(student, z, r)
    close(f, student(z.T).T)
    close(c, student.pull_back(z.T, r.T).T)
    close(np.einsum("nkl,kn->ln", student.jacobian(z.T), r), student.pull_back(z.T, r.T).T)
    combinations, core = student.combinations, student.core
    close(combinations @ combinations.T, np.eye(core.length))
    close(core(z.T @ combinations.T), student(z.T))
    close(core.pull_back(z.T @ combinations.T, r.T) @ combinations, student.pull_back(z.T, r.T))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", TARGETS)
def test_every_target(kind, length):
    target = EXAMPLES[kind](length)
    z = block(target.length, 5)
    close(target_block(target, z), target(z.T).T)


@pytest.mark.parametrize("outputs", [1, 4, 9])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_every_loss(loss, outputs):
    y, f = block(outputs, 6), block(outputs, 7)
    f[:, 0] = y[:, 0]
    close(loss_block(loss, y, f), loss.gradient((f - y).T).T)
    assert (loss_block(loss, y, f)[:, 0] == 0.0).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_whole_gradient(loss):
    """Target, forward, loss and backward in the order of the simulation equal ``Problem.field_gradient``."""
    problem = Problem(PositionalSemanticTarget(0.4, alignment=1.0), Attention(2), loss)
    zstar, z = block(2, 8), block(2, 9)
    y = target_block(problem.target, zstar)
    f, _ = student_block(problem.student, z, np.zeros((4, WIDTH)))
    r = loss_block(problem.loss, y, f)
    _, c = student_block(problem.student, z, r)
    close(c, problem.field_gradient(zstar.T, z.T).T, atol=1e-13)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("scores", SCORES)
def test_large_fields_stay_finite(scores, length):
    """Scores of 3600 next to zeros: whatever is in one lane, the others do not feel it."""
    student = Attention(length, scores=scores)
    rng = np.random.default_rng(11)
    z = rng.choice([-60.0, 0.0, 60.0, 1e-3], (length, WIDTH))
    r = block(student.outputs, 12)
    f, c = student_block(student, z, r)
    assert np.isfinite(c).all()
    close(f, student(z.T).T)
    close(c, student.pull_back(z.T, r.T).T, atol=1e-12)
    if scores == "softmax":
        np.testing.assert_allclose(f.reshape(length, length, WIDTH).sum(1), 1.0, rtol=1e-14)
    z[:, 0] = 0.3
    one, _ = student_block(student, z, r)
    np.testing.assert_array_equal(one[:, 1:], f[:, 1:])


@pytest.mark.parametrize("length", [2, 3])
@pytest.mark.parametrize("scores", SCORES)
def test_nan_stays_in_its_lane(scores, length):
    student = Attention(length, scores=scores)
    z, r = block(length, 13), block(student.outputs, 14)
    z[0, 5] = np.nan
    f, c = student_block(student, z, r)
    assert np.isnan(f[:, 5]).any()
    assert np.isnan(c[:, 5]).any()
    assert np.isfinite(np.delete(f, 5, 1)).all()
    assert np.isfinite(np.delete(c, 5, 1)).all()
    y = target_block(EXAMPLES["PositionalSemanticTarget"](length), z)
    assert np.isnan(y[:, 5]).any()
    assert np.isfinite(np.delete(y, 5, 1)).all()


def test_every_kind_has_an_example():
    missing = {*TARGETS, *STUDENTS} - {*EXAMPLES}
    assert not missing, f"add one to EXAMPLES for each new kind: {missing}"


def test_a_wrong_twin_is_rejected():
    """Negative control: the transposed matrix is no solution."""
    student = Attention(3)
    z = block(3, 15)
    f, _ = student_block(student, z, block(9, 16))
    with pytest.raises(AssertionError):
        close(f, np.swapaxes(student(z.T).reshape(-1, 3, 3), -1, -2).reshape(-1, 9).T)


def test_kernels_have_the_signatures_of_the_main_loop():
    assert blocks.TARGET.args[0] == ROWS
    kernel = Attention(2).kernel
    assert blocks.FORWARD.args in kernel.forward.signatures
    assert blocks.BACKWARD.args in kernel.backward.signatures
