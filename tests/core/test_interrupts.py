"""An interruption is an interruption, whenever it comes."""

import os
import signal
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import drmdp
from drmdp.operators.conic import cone as conic_cone
from drmdp.ui.interrupts import not_lost, put_off, terminated_like_interrupted


@pytest.fixture
def ctrl_c():
    """Send SIGINT to this process, which takes it as in a terminal even if whoever runs the tests
    ignores it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_clarabel_reads_its_data(ctrl_c, monkeypatch):
    """It is no error in the data: the best result is returned."""
    asked = []

    class Matrix(sparse.csc_matrix):
        @property
        def indptr(self):
            if asked and asked.pop():
                ctrl_c()
            return self.__dict__["_indptr"]

        @indptr.setter
        def indptr(self, array):
            self.__dict__["_indptr"] = array

    monkeypatch.setattr(conic_cone, "sparse", SimpleNamespace(csc_matrix=Matrix))
    model, ambiguity = drmdp.instances.ring(7, 3, discount=0.9), drmdp.Wasserstein(0.1, "l2", 2)
    method = drmdp.ValueIteration(backend="conic")
    found = drmdp.solve(
        model, ambiguity, method, tol=0, callback=lambda r: asked.append(r.iteration == 3)
    )
    assert found.status == "interrupted"
    assert found.n_iters == 3
    assert np.all(found.lower <= found.upper)


def test_ctrl_c_waits_where_it_is_put_off(ctrl_c):
    done = []

    def work(fails):
        with put_off():
            ctrl_c()
            done.append(1)
            if fails:
                raise ValueError("bad data")

    for fails in (False, True):  # an interruption counts for more than what it comes with
        with pytest.raises(KeyboardInterrupt):
            work(fails)
    with put_off(), put_off():
        done.append(2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with put_off():
        ctrl_c()
    thread = threading.Thread(target=lambda: done.append(put_off().__enter__()))
    thread.start()
    thread.join()
    assert done == [1, 1, 2, None]


@pytest.mark.parametrize("how", ["as it is", "swallowed", "another error", "an exit"])
def test_ctrl_c_is_not_lost_where_a_library_swallows_it(ctrl_c, how):
    done = []

    def library():
        try:
            ctrl_c()
            threading.Event().wait(10)
        except KeyboardInterrupt:
            if how == "as it is":
                raise
            if how == "an exit":
                raise SystemExit(1) from None
            if how == "another error":
                raise ValueError("in the child") from None
        done.append(1)

    def load():
        with not_lost():
            library()

    with pytest.raises(KeyboardInterrupt):
        load()
    assert done == ([1] if how == "swallowed" else [])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_python_swallows_itself_is_not_complained_of(ctrl_c, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: told.append(event.exc_type))

    class Callback:
        def __init__(self, work):
            self.work = work

        def __del__(self):
            self.work()

    def load():
        with not_lost():
            Callback(lambda: {}["own"])  # which is somebody else's error
            Callback(lambda: (ctrl_c(), threading.Event().wait(10)))

    with pytest.raises(KeyboardInterrupt):
        load()
    assert told == [KeyError]


def test_without_ctrl_c_errors_are_as_they_are(ctrl_c):
    def fail():
        with not_lost():
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with not_lost():
        ctrl_c()


@pytest.mark.parametrize("ignored", [False, True], ids=["", "Ctrl-C is ignored"])
def test_sigterm_does_what_ctrl_c_does_while_it_is_asked_to(ctrl_c, ignored):
    before = signal.getsignal(signal.SIGTERM)
    if ignored:  # as in a job in the background
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def ended():
        with terminated_like_interrupted():
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait(10)

    with pytest.raises(KeyboardInterrupt):
        ended()
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_waits_like_ctrl_c(ctrl_c):
    done = []

    def busy():
        with terminated_like_interrupted(), put_off():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        busy()
    assert done


def test_a_handler_of_somebody_else_stays(ctrl_c):
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append(True))
    try:
        with terminated_like_interrupted():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen
