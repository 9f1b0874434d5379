#!/usr/bin/env python3
"""make_results.py DIR: results, a run and a forecast for the tests of lockstep report, in the shape of the published
tables. Figures come from small formulas, so that tests know what to expect; nothing here was measured.

  DIR/throughput/results.json  nodes x devices x batch, 7 repeats; one speedup above ideal
  DIR/epochs/results.json      training on hosts lm1 and lm6, one and two nodes, with courses
  DIR/walltime/results.json    whole runs on unequal nodes gn01..gn05
  DIR/strategies/results.json  AllReduce and PS at 1gbit and 10gbit; a rate above the wire's limit
  DIR/states/results.json      points that are pending, skipped and failed beside one that is done
  DIR/launches/results.json    the first with several launches, some busy, and simulated points
  DIR/hostile/results.json     names full of markup
  DIR/run/                     run.json and metrics.jsonl
  DIR/forecast.json            what lockstep plan would predict for the strategies
"""
import json
import math
import os
import sys

MACHINE = {"host": "lab1", "cpu": "Example CPU @ 2.40GHz", "system": "Linux 6.1.0", "lockstep": "0.1.0",
           "kernels": "xsmm", "isa": "avx512", "mpi": "Open MPI v4.1.4", "cores": 16, "memory_bytes": 64 << 30,
           "gflop_per_s_core": 98.5}


def job(**change):
    base = {"kind": "bench", "model": "bert-mini", "data": "", "optimizer": "adam", "shape": "1", "nodes": 1,
            "devices": 1, "threads": 1, "servers": 0, "batch_per_device": 32, "strategy": "local", "wire": "fp32", "rate": "",
            "replay": 0, "warmup": 20, "steps": 100, "epochs": 0, "samples": 0, "arguments": ""}
    assert not set(change) - set(base), change
    return {**base, **change}


def point(the_job, speeds, state="done", key=None, **change):
    base = {"key": key or json.dumps(the_job, sort_keys=True)[:240], "job": the_job, "state": state, "reason": "",
            "tokens_per_s": 0.0, "compute_ms": 0.0, "exposed_ms": 0.0, "wait_ms": 0.0, "update_ms": 0.0,
            "gradient_bytes": 0.0, "gflop_per_s": 0.0, "peak_rss_bytes": 2.5e8, "accuracy": 0.0, "nodes": [],
            "rates": [], "epochs": []}
    samples = the_job["batch_per_device"] * the_job["devices"]
    base["repeats"] = [{"samples_per_s": r, "step_ms": 1e3 * samples / r, "wall_s": 3 + 100 * samples / r} for r in speeds]
    return {**base, **change}


def times(p, exposed, wait):
    """Split the step of a point; what is left is compute and a little update."""
    step = sorted(r["step_ms"] for r in p["repeats"])[len(p["repeats"]) // 2]
    p.update(exposed_ms=exposed * step, wait_ms=wait * step, update_ms=0.03 * step,
             compute_ms=(0.97 - exposed - wait) * step)
    return p


def node(host, devices, step, compute, exposed, sent=0.0, received=None):
    return {"host": host, "devices": devices, "compute_ms": compute * step, "exposed_ms": exposed * step,
            "wait_ms": (0.97 - compute - exposed) * step, "sent_bytes": sent,
            "received_bytes": sent if received is None else received}


def around(rate):
    return [rate * f for f in (1.0, 0.998, 1.002, 0.999, 1.001, 1.0, 1.003)]


def sweep(name, table, points, title=""):
    return {"format": "lockstep results", "version": 2, "sweep": name, "title": title, "table": table,
            "started": "2026-01-31T12:00:00Z", "quick": 0, "machine": MACHINE, "points": points}


def throughput():
    points = []
    for batch, one in ((96, 149.8), (64, 149.6), (32, 145.2), (24, 140.4)):
        for nodes, per in ((1, 1), (1, 8), (2, 8), (4, 8)):
            devices = nodes * per
            speedup = devices ** (0.99 - 0.6 / batch)
            if batch == 24 and (nodes, per) == (1, 8):
                speedup = 8.6
            j = job(model="bert-base", batch_per_device=batch, nodes=nodes, devices=devices, shape="+".join([str(per)] * nodes),
                    strategy="allreduce" if nodes > 1 else "local", rate="100gbit" if nodes > 1 else "")
            p = times(point(j, around(one * speedup), gradient_bytes=4.4e8, tokens_per_s=one * speedup * 128),
                      0.02 * math.log2(devices) if devices > 1 else 0, 0.01 if devices > 1 else 0)
            step = p["repeats"][0]["step_ms"]
            p["nodes"] = [node(f"lab{n + 1}", per, step, 0.85 + 0.02 * n, 0.05, 4.4e8 if nodes > 1 else 0)
                          for n in range(nodes)]
            points.append(p)
    return sweep("oneflow-bert", "throughput", points, "BERT pretraining: throughput by nodes, devices and batch")


def course(rate, epochs, steps, devices):
    rates = [{"step": s, "samples_per_s": rate * (1 - 0.2 * math.exp(-s / 300)),
              "loss": 2.3 * math.exp(-s / 400) + 0.08 + 0.02 * math.sin(s)} for s in range(200, epochs * steps + 1, 200)]
    done = [{"epoch": e, "seconds": 60000 / rate, "test_seconds": 10000 / rate / 3,
             "accuracy": 1 - 0.14 * 0.6 ** e - 0.004 * devices, "test_loss": 0.4 * 0.6 ** e} for e in range(epochs)]
    return rates, done


def epochs():
    points = []
    one = {"lm6": 120.7, "lm1": 81.84}
    for model, slower in (("resnet18", 1.0), ("resnet50", 0.5)):
        for hosts, shape in ((["lm6"], "1"), (["lm1"], "1"), (["lm6"], "2"), (["lm1"], "2"), (["lm1"], "4"),
                             (["lm1", "lm6"], "1+1"), (["lm1", "lm6"], "3+2")):
            devices = [int(d) for d in shape.split("+")]
            rate = slower * one[hosts[0]] * sum(devices) * (0.97 if len(hosts) == 1 else 0.84) ** (sum(devices) > 1)
            j = job(kind="train", model=model, data="mnist", shape=shape, nodes=len(hosts), devices=sum(devices),
                    batch_per_device=128, strategy="allreduce" if len(hosts) > 1 else "local",
                    rate="1gbit" if len(hosts) > 1 else "", epochs=4, samples=60000)
            rates, done = course(rate, 4, -(-60000 // (128 * sum(devices))), sum(devices))
            p = point(j, [rate], key=f"{model}/{'+'.join(hosts)}/{shape}", rates=rates, epochs=done,
                      accuracy=done[-1]["accuracy"], gradient_bytes=4.47e7)
            step = p["repeats"][0]["step_ms"]
            p["nodes"] = [node(h, d, step, 0.8 if h == "lm1" else 0.55, 0.1, 4.47e7 if len(hosts) > 1 else 0)
                          for h, d in zip(hosts, devices)]
            points.append(p)
    return sweep("distml-resnet", "epochs", points, "ResNets on MNIST with Adam")


def walltime():
    points = []
    speed = {"gn01": 1.0, "gn02": 1.19, "gn03": 0.94, "gn04": 1.0, "gn05": 0.7}
    for hosts, per in [([h], d) for d in (1, 2) for h in speed] + [(["gn01", "gn02"], 1), (["gn03", "gn05"], 1),
                                                                    (["gn01", "gn02", "gn03"], 1)]:
        devices = len(hosts) * per
        rate = 13000 * min(speed[h] for h in hosts) * devices ** 0.9
        j = job(kind="train", model="cnn", data="bigmnist", batch_per_device=512, nodes=len(hosts), devices=devices, epochs=10,
                shape="+".join([str(per)] * len(hosts)), samples=72000000)
        p = point(j, [rate], key=f"cnn/{'+'.join(hosts)}/{per}")
        p["repeats"][0]["wall_s"] = 720000000 / rate
        p["nodes"] = [node(h, per, p["repeats"][0]["step_ms"], 0.9 * min(speed[k] for k in hosts) / speed[h], 0.02)
                      for h in hosts]
        points.append(p)
    return sweep("rcc-bigmnist", "walltime", points, "bigMNIST on unequal nodes")


def strategies():
    points = []
    for model, one, batch, gradient, words in (("resnet18", 74.3, 128, 4.47e7, 0), ("bert-mini", 214.0, 8, 4.5e7, 128)):
        def add(nodes, devices, strategy, rate, speed, servers=0):
            workers = nodes
            j = job(model=model, batch_per_device=batch, nodes=nodes, devices=devices, strategy=strategy, rate=rate,
                    servers=servers, shape="+".join([str(devices // workers)] * workers))
            p = point(j, around(one * speed), gradient_bytes=gradient, tokens_per_s=one * speed * words)
            gone = 1 - speed / devices
            points.append(times(p, max(0, 0.8 * gone), max(0, 0.1 * gone)))
            step = p["repeats"][0]["step_ms"]
            if nodes > 1:
                p["nodes"] = [node(f"lab{n + 1}", 0 if n >= workers else devices // workers, step, 0.8 - gone / 2,
                                   max(0.01, gone / 2)) for n in range(nodes + servers)]
        add(1, 1, "local", "", 1.0)
        for devices in (2, 4, 8):
            add(1, devices, "local", "", 0.97 * devices)
        for rate, cost in (("1gbit", 0.30), ("10gbit", 0.04)):
            for nodes in (2, 3):
                add(nodes, 4 * nodes, "allreduce", rate, 4 * nodes * (1 - cost))
                add(nodes, 4 * nodes, "ps", rate, 4 * nodes * (1 - 1.6 * cost), servers=1)
    return sweep("distml-strategies", "strategies", points, "AllReduce against parameter servers")


def states():
    def skip(**j):
        return job(model="cnn", **j)
    return sweep("sweep", "throughput", [
        point(skip(), [1000.0, 1010.0, 990.0], key="cnn/1"),
        point(skip(devices=2, shape="2"), [], state="pending", key="cnn/2"),
        point(skip(devices=4, shape="4"), [], state="skipped", key="cnn/4", reason="4 devices need 4 cores, there are 2"),
        point(skip(devices=8, shape="8"), [], state="failed", key="cnn/8", reason="lockstep bench: exit status 1"),
    ])


def launches():
    s = throughput()
    for i, p in enumerate(s["points"]):
        p["job"]["replay"] = int(p["job"]["nodes"] > 1)
        p["launches"] = [{"wall_s": 9.0, "load": 0.8 * (k == 1), "steal": 0.001, "mhz": 2400.0, "busy": int(k == 1),
                          "again": int(k == 2), "reason": "exit status 1" if k == 3 and i == 1 else ""} for k in range(4)]
        for k, r in enumerate(p["repeats"]):
            r["launch"] = k % 3
        p["settings"] = [{"name": "optimizer", "original": "adamw", "ours": "adam"}]
    return {**s, "version": 3}


BAD = "<script>alert(1)</script>|`x`*b*[y](javascript:z)&amp;\"'"


def hostile():
    points = []
    for devices in (1, 2, 4):
        j = job(model=BAD, data="<img src=x>", batch_per_device=16, devices=devices, shape=str(devices), epochs=2, samples=640,
                kind="train")
        p = times(point(j, [100.0 * devices], key=BAD + str(devices)), 0.1, 0.1)
        p["nodes"] = [node("--></title><b>h", devices, 10.0, 0.8, 0.1)]
        p["epochs"] = [{"epoch": e, "seconds": 1.0, "test_seconds": 0.5, "accuracy": 0.5 + e / 10, "test_loss": None}
                       for e in range(2)]
        p["rates"] = [{"step": 10 * s, "samples_per_s": 100.0, "loss": None if s == 2 else 1.0 / s} for s in (1, 2, 3)]
        points.append(p)
    points.append(point(job(model=BAD, devices=8, shape="8"), [], state="failed", key="bad\ttab" + BAD,
                        reason="</ul><script>alert(2)</script>"))
    s = sweep(BAD[:60], "", points, "T</title><script>alert(3)</script>")
    s["machine"] = {**MACHINE, "host": "h|<i>", "cpu": BAD}
    return s


def run(directory):
    os.makedirs(directory, exist_ok=True)
    settings = {"model": "cnn", "data": "glyphs", "samples": 2000, "epochs": 3, "batch": 128, "global-batch": 256,
                "optimizer": "adam", "devices": 2, "threads": 1, "servers": 0, "placement": "allreduce", "wire": "fp32"}
    with open(os.path.join(directory, "run.json"), "w") as file:
        json.dump({"lockstep": "0.1.0", "compiler": "gcc", "started": "2026-01-31T12:00:00Z", "kernels": "xsmm",
                   "isa": "avx2", "settings": settings, "machine": {"hostname": "lab1", "kernel": "Linux 6.1",
                                                                    "cpu": "Example", "cores": 2, "threads": 2,
                                                                    "memory_bytes": None}, "resumes": []}, file)
    hosts = ["lm1", "lm6", "a-host-with-a-very-long-name.cluster.example.org", "<script>alert(5)</script>"]
    with open(os.path.join(directory, "metrics.jsonl"), "w") as file:
        for e in range(3):
            took_part = hosts[:3] if e == 1 else hosts
            print(json.dumps({"kind": "start", "step": 8 * e, "time": 10.0 * e + 2, "generation": e + 1, "nodes": len(took_part),
                              "devices": len(took_part), "hosts": ",".join(f"{host}:1" for host in took_part),
                              "source": ("new", "snapshot", "checkpoint")[e], "steps_again": 2 * e}), file=file)
            stop = [{"kind": "stop", "step": 0, "time": 10.0 * e + 9, "outcome": ("lost", "regroup", "ended")[e]}]
            if e == 0:
                stop[0]["why"] = f"node 3 ({hosts[3]}) has not responded for 30.0 s; this node was waiting for a message"
                stop.append({"kind": "host", "step": 0, "time": 9.0, "host": hosts[3], "event": "lost", "why": stop[0]["why"]})
            elif e == 1:
                stop.append({"kind": "host", "step": 0, "time": 20.0, "host": hosts[3], "event": "back"})
            for s in range(1, 4):
                step = 8 * e + 2 * s
                print(json.dumps({"kind": "step", "step": step, "time": 1.0 * step, "loss": 2.3 / step,
                                  "samples_per_s": 3000.0 + step, "lr": 0.001 / (e + 1), "wait_s": 0.0}), file=file)
            print(json.dumps({"kind": "epoch", "step": 8 * (e + 1), "time": 1.0, "loss": 1.0, "accuracy": 0.5,
                              "seconds": 0.75, "epoch": e}), file=file)
            print(json.dumps({"kind": "test", "step": 8 * (e + 1), "time": 1.0, "loss": 0.9 - e / 10,
                              "accuracy": 0.6 + e / 10, "seconds": 0.25, "epoch": e, "is_best": int(e < 2),
                              "stale": int(e == 2)}), file=file)
            for line in stop:
                print(json.dumps(line), file=file)
        print(json.dumps({"kind": "early_stop", "step": 24, "time": 1.0, "best": 0.8, "best_step": 16, "stale": 1}), file=file)
    classes(os.path.join(directory, "eval.json"), [f"{word} digit" for word in "zero one two three four".split()] +
            [f"class {i}" for i in range(5, 20)])


def classes(path, names):
    """Most samples are right; what is wrong is taken for the next class, or the one after it."""
    n = len(names)
    confusion = [[90 - i if k == i else 7 + i % 3 if k == (i + 1) % n else 3 if k == (i + 2) % n else 0
                  for k in range(n)] for i in range(n)]
    rows = []
    for i, name in enumerate(names):
        support, predicted, correct = sum(confusion[i]), sum(row[i] for row in confusion), confusion[i][i]
        rows.append({"label": i, "name": name, "support": support, "predicted": predicted, "correct": correct,
                     "precision": correct / predicted, "recall": correct / support, "f1": 2 * correct / (predicted + support)})
    samples = sum(map(sum, confusion))
    with open(path, "w") as file:
        json.dump({"format": "lockstep class metrics", "version": 1, "data": "glyphs", "fingerprint": "0123456789abcdef",
                   "samples": samples, "loss": 0.7, "accuracy": sum(confusion[i][i] for i in range(n)) / samples, "top": 5,
                   "top_accuracy": 0.99, "classes": rows, "confusion": confusion}, file)


def forecast():
    rows = []
    for rate, cost in (("1gbit", 0.30), ("10gbit", 0.04)):
        for strategy, more in (("allreduce", 1.0), ("ps", 1.6)):
            for nodes in (1, 2, 3, 4, 8, 16, 32, 64):
                if nodes == 1 and (strategy == "ps" or rate != "1gbit"):
                    continue
                for bucket in (1 << 20, 4 << 20):
                    share = 1 - (0.02 if nodes == 1 else cost * more * 1.05) - (0.01 if bucket > 1 << 20 else 0)
                    devices = 4 * nodes
                    speed = 74.3 * devices * share
                    step = 1e3 * 128 * devices / speed
                    row = ({"nodes": nodes + (strategy == "ps"), "devices": devices,
                                 "servers": int(strategy == "ps"), "strategy": strategy, "wire": "fp32",
                                 "rate": "" if nodes == 1 else rate, "bucket_bytes": bucket, "step_ms": step,
                                 "compute_ms": step * share, "exposed_ms": step * (1 - share) * 0.9,
                                 "wait_ms": step * (1 - share) * 0.1, "samples_per_s": speed, "efficiency": share,
                                 "bottleneck": "wire" if share < 0.9 else "compute"})
                    if nodes == 1:  # as lockstep plan writes one node: no exchange, waiting not told apart
                        row.update(strategy="local", rate=rate)
                        del row["wait_ms"]
                    rows.append(row)
    return {"format": "lockstep forecast", "version": 2, "model": "resnet18", "batch_per_device": 128, "rows": rows}


def main():
    directory = sys.argv[1]
    for name, make in (("throughput", throughput), ("epochs", epochs), ("walltime", walltime),
                       ("strategies", strategies), ("states", states), ("launches", launches), ("hostile", hostile)):
        os.makedirs(os.path.join(directory, name), exist_ok=True)
        with open(os.path.join(directory, name, "results.json"), "w") as file:
            json.dump(make(), file, indent=1)
    run(os.path.join(directory, "run"))
    with open(os.path.join(directory, "forecast.json"), "w") as file:
        json.dump(forecast(), file)


main()
