"""When objects are freed: closed in use, in hooks, by other threads, at the end of the program, after a fork."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import lockstep
from conftest import own_graph


def program(source, *arguments, seconds=60, **environment):
    """Runs a program of its own, since a mistake here ends the process. Its output, after a normal end."""
    head = "import os, sys, threading, time\nimport numpy as np\nimport lockstep\n"
    head += "x, y = np.random.rand(256, 1, 28, 28).astype(np.float32), np.random.randint(0, 10, 256)\n"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", head + textwrap.dedent(source), *arguments],
                          capture_output=True, text=True, timeout=seconds * (5 if os.environ.get("SANITIZER") else 1), env={**os.environ, **environment})  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# ---- close() during a use


@pytest.mark.parametrize("what", ["data", "model", "trainer"])
def test_close_in_a_hook_waits_for_the_run(what):
    out = program("""
        model, data = lockstep.Model("mlp"), lockstep.Dataset.from_arrays(x, y)
        trainer = lockstep.Trainer(model, batch=16)
        closing = {"data": data, "model": model, "trainer": trainer}[sys.argv[1]]
        freed = closing._finalizer
        print(trainer.run(data, steps=60, on_step=lambda report: closing.close()).steps, closing.closed, closing._state.pointer)
        try:
            trainer.run(data, steps=1) if closing is not model else model.fingerprint
        except lockstep.ClosedError as error:
            print(error)
        """, what)  # fmt: skip
    name = {"data": "Dataset", "model": "Model", "trainer": "Trainer"}[what]
    assert out == f"60 True None\nthis {name} is closed\n"


@pytest.mark.parametrize("what", ["data", "model"])
def test_close_in_a_callback_of_train_waits_for_the_run(what):
    out = program("""
        model, data = lockstep.Model("mlp"), lockstep.Dataset.from_arrays(x, y)
        closing = {"data": data, "model": model}[sys.argv[1]]
        heard = []
        def close(step):
            closing.close()
            heard.append(closing._state.pointer is not None)
        print(lockstep.train(model, data, epochs=5, batch=16, on_step=close).steps, all(heard), closing.closed, closing._state.pointer)
        """, what)  # fmt: skip
    assert out == "80 True True None\n"


def test_close_by_another_thread_and_by_a_sample():
    assert program("""
        data = lockstep.Dataset.from_arrays(x, y)
        threading.Timer(0.1, data.close).start()
        print(lockstep.train("mlp", data, epochs=200, batch=16, eval_every=0).steps, data.closed)
        class Samples:
            def __len__(self):
                return 256
            def __getitem__(self, index):
                if index == 100 and hasattr(self, "data"):
                    self.data.close()
                return x[index], int(y[index])
        own = Samples()
        own.data = data = lockstep.Dataset.wrap(own, classes=10)
        print(lockstep.train("mlp", data, epochs=3, batch=16).steps, data.closed)
        own.data = data = lockstep.Dataset.wrap(own, classes=10)
        print(data.arrays()[1].sum() == y.sum(), data.closed, data._state.pointer)
        """) == "3200 True\n48 True\nTrue True None\n"  # fmt: skip


def test_close_races_with_calls(digits):
    """Objects that many threads close and use at once: a call comes to its end or says that the object is closed."""
    images, labels = digits
    wrong = []

    def use(call):
        try:
            for _ in range(100):
                call()
        except lockstep.ClosedError:
            pass
        except BaseException as error:
            wrong.append(error)

    for turn in range(20):
        model = lockstep.Model("mlp")
        trainer, data = lockstep.Trainer(model, batch=16), lockstep.Dataset.from_arrays(images, labels)
        calls = [lambda: model.predict(images[:8]), lambda: trainer.step(images[:16], labels[:16]), lambda: data[3], lambda: trainer.run(data, steps=1)]
        threads = [threading.Thread(target=use, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        time.sleep(0.002 * turn)
        for thing in (data, trainer, model) if turn % 2 else (model, trainer, data):
            thing.close()
        for thread in threads:
            thread.join()
        assert all(thing._state.pointer is None for thing in (data, trainer, model))
    assert not wrong


def test_a_graph_in_use_is_not_given_away(digits):
    heard = []

    def take(step):
        with pytest.raises(lockstep.InvalidError, match="this Graph is in use"):
            lockstep.Model(graph)
        heard.append(step)

    with own_graph() as graph:
        assert lockstep.train(graph, digits, steps=2, batch=64, on_step=take).steps == 2
        assert len(heard) == 2
        with lockstep.Model(graph):
            assert graph.closed


# ---- calls in hooks


def test_what_a_hook_may_call(digits):
    """Steps inside a run are refused; looking at it is not."""
    images, labels = digits
    marks = []
    for nosy in (False, True):
        data, heard = lockstep.Dataset.from_arrays(images, labels), []
        with lockstep.Model("mlp") as model, lockstep.Trainer(model, batch=64) as trainer:

            def hook(report):
                if not nosy:
                    return
                for call in (lambda: trainer.step(images[:8], labels[:8]), lambda: trainer.run(data), trainer.update, trainer.zero_grad,
                             lambda: trainer.backward(images[:8], labels[:8]), lambda: trainer.load("x"),
                             lambda: trainer.gradients()["fc1.bias"]):  # fmt: skip
                    with pytest.raises(lockstep.InvalidError, match=r"inside run\(\) of the same trainer"):
                        call()
                heard.append((trainer.evaluate(data).samples, trainer.lr, trainer.position.steps, model.predict(images[:2]).shape))

            assert trainer.run(data, on_step=hook).steps == 5
            assert trainer.step(images[:64], labels[:64]).steps == 6
            marks.append(model.fingerprint)
    assert marks[0] == marks[1] and [each[0] for each in heard] == [320] * 5


# ---- the end of the program


@pytest.mark.parametrize("run", [
    'lockstep.train("mlp", (x, y), epochs=10**6, batch=16, eval_every=0, on_step=ready)',
    'lockstep.train("mlp", lockstep.Dataset.wrap(list(zip(x, y)), classes=10), epochs=10**6, batch=16, eval_every=0, on_step=ready)',
    'lockstep.Trainer(lockstep.Model("mlp"), batch=16).run((x, y), steps=10**9, on_step=ready)',
    'trainer.step(x[:16], y[:16]), ready(0)',
    'model.predict(x), ready(0)',
])  # fmt: skip
def test_the_end_of_the_program_stops_threads(run):
    out = program(f"""
        model = lockstep.Model("mlp")
        trainer = lockstep.Trainer(model, batch=16)
        begun = threading.Event()
        def ready(step):
            begun.set()
        def work():
            while True:
                {run}
        threading.Thread(target=work, daemon=True).start()
        begun.wait()
        print("the end")
        """)
    assert out == "the end\n"


# ---- fork


def test_a_fork_is_told_to_spawn():
    out = program("""
        model = lockstep.Model("mlp")
        trainer, data = lockstep.Trainer(model, batch=16), lockstep.Dataset.from_arrays(x, y)
        trainer.step(x[:16], y[:16])
        if os.fork() == 0:
            for call in (lambda: model.predict(x), lambda: trainer.step(x[:16], y[:16]), lambda: data[0], lambda: trainer.lr,
                         lambda: lockstep.train(model, data, steps=1), lambda: lockstep.Trainer(model)):
                try:
                    call()
                except lockstep.Error as error:
                    assert 'multiprocessing.set_start_method("spawn")' in str(error), error
                    print(type(error).__name__, flush=True)
            for thing in (trainer, model, data):
                thing.close()
            sys.exit()  # an end as any other: nothing of the parent's is freed or waited for
        print(os.wait()[1], flush=True)
        print(trainer.step(x[:16], y[:16]).steps)
        """)
    assert out == "Error\n" * 6 + "0\n2\n"


def test_objects_are_not_copied(model, digits):
    with lockstep.Trainer(model, batch=4) as trainer:
        for thing, message in (
            (model, "a Model cannot be copied, pickled or sent to another process: .*state_dict"),
            (trainer, r"a Trainer cannot .*: save\(\) it"),
            (lockstep.Dataset.from_arrays(*digits), "a Dataset cannot .*: make it there"),
            (lockstep.Graph(), "a Graph cannot .*: build it there"),
            (model.parameters(), r"the parameters cannot .*: model.state_dict\(\)"),
            (trainer.gradients(), r"the gradients cannot .*: dict\(trainer.gradients\(\)\)"),
        ):
            for copying in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match=message):
                    copying(thing)
    assert pickle.loads(pickle.dumps(model.state_dict())).keys() == model.parameters().keys()
    with pytest.raises(lockstep.Error) as caught:
        lockstep.Model.load("nowhere")
    again = pickle.loads(pickle.dumps(caught.value))  # as processes of a pool send it
    assert (type(again), str(again)) == (lockstep.NotFoundError, str(caught.value)) and type(again).__module__ == "lockstep"


def test_objects_say_what_they_are(model, digits):
    graph = lockstep.Graph()
    x = graph.input(1, 28, 28)
    assert repr(x) == "<lockstep.Value 0 of <lockstep.Graph, not finished>>"
    graph.finish(graph.linear(x, "fc", out_features=10))
    assert repr(graph) == "<lockstep.Graph: 1 layers, 7850 parameters>"
    with lockstep.Trainer(model, batch=4, lr=0.5) as trainer:
        trainer.step(digits[0][:4], digits[1][:4])
        assert repr(trainer) == f"<lockstep.Trainer of {model!r}: 1 steps, lr 0.5>"
        assert repr(trainer.gradients()) == f"<gradients of {trainer!r}>"
    graph.close()
    assert (repr(trainer), repr(graph)) == ("<lockstep.Trainer, closed>", "<lockstep.Graph, closed>")


def test_what_is_closed_in_use_is_freed():
    """The arrays of a dataset go with it, once nothing uses it."""
    images, labels = np.zeros((64, 1, 28, 28), np.float32), np.zeros(64, np.int32)
    data = lockstep.Dataset.from_arrays(images, labels, classes=10)
    before = sys.getrefcount(images)
    lockstep.train("mlp", data, steps=2, batch=16, on_step=lambda step: data.close())
    assert data._state.pointer is None
    del data
    gc.collect()
    assert sys.getrefcount(images) < before


# ---- leaks


def test_a_thousand_objects_leave_nothing_behind():
    """Bytes in use, of C and of Python: 1,000 cycles keep less than the smallest cffi object each, which is 80 bytes."""
    if os.environ.get("SANITIZER"):
        pytest.skip("the sanitizer has a malloc of its own")
    out = program("""
        import ctypes, gc
        names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
        Info = type("Info", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in names.split()]})
        mallinfo2 = ctypes.CDLL(None).mallinfo2  # glibc's: all arenas
        mallinfo2.restype = Info

        def once():
            graph = lockstep.Graph()
            graph.finish(graph.linear(graph.input(1, 28, 28), "fc", out_features=10))
            with lockstep.Model(graph) as model, lockstep.Dataset.from_arrays(images, labels) as data:
                model.set_devices(1, 1)
                model.predict(images)
                with lockstep.Trainer(model, batch=8, devices=1, threads=1) as trainer:
                    trainer.run(data)
            wrapped = lockstep.Dataset.wrap(samples, classes=10)
            assert wrapped[1][1] == labels[1]

        def growth(cycles, leak):
            def used():
                gc.collect()
                info = mallinfo2()
                return info.uordblks + info.hblkhd
            before = used()
            for _ in range(cycles):
                once()
                leak()
            return (used() - before) / cycles

        images, labels, leaked = x[:8], y[:8], []
        samples = list(zip(images, labels))
        growth(200, lambda: None)
        print(growth(1000, lambda: None))
        print(growth(200, lambda: leaked.append(bytes(200))))
        """, seconds=400, PYTHONMALLOC="malloc")  # fmt: skip
    clean, leaking = map(float, out.split())
    assert clean < 40
    assert leaking > 150  # or nothing was measured
