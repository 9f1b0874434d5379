"""The PyTorch side of bench/serve: FastAPI under uvicorn, with requests that wait collected into batches.

One process. A request puts its images into a queue and waits; a task takes what is in the queue, up to MAX_BATCH images, and runs
the model in a thread, so that requests are read meanwhile. Answers have the form of `lockstep serve`.
"""
import argparse
import asyncio
import os
import socket
import sys

import numpy
import torch
import uvicorn
from fastapi import FastAPI, Request
from safetensors.torch import load_file

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch_models import build

MAX_BATCH = 64  # images, as `lockstep serve` has it
MEAN, DEVIATION = 0.1307, 0.3081


def predict(model, images):
    with torch.inference_mode():
        pixels = torch.from_numpy(images).reshape(-1, 1, 28, 28)
        chances = torch.softmax(model((pixels / 255 - MEAN) / DEVIATION), 1)
        best = chances.max(1)
    return best.indices.tolist(), best.values.tolist()


async def batches(model, queue):
    loop = asyncio.get_running_loop()
    while True:
        waiting = [await queue.get()]
        while not queue.empty() and sum(len(images) for images, _ in waiting) < MAX_BATCH:
            waiting.append(queue.get_nowait())
        try:
            labels, chances = await loop.run_in_executor(None, predict, model, numpy.concatenate([i for i, _ in waiting]))
        except Exception as error:  # noqa: BLE001: passed on to those who asked
            for _, answer in waiting:
                answer.set_exception(error)
            continue
        at = 0
        for images, answer in waiting:
            answer.set_result((labels[at:at + len(images)], chances[at:at + len(images)]))
            at += len(images)


def make_app(model):
    app = FastAPI()
    queue = asyncio.Queue()
    tasks = []

    @app.post("/predict")
    async def answer(request: Request):
        if not tasks:
            tasks.append(asyncio.create_task(batches(model, queue)))
        images = numpy.array((await request.json())["inputs"], dtype=numpy.float32)
        future = asyncio.get_running_loop().create_future()
        await queue.put((images, future))
        labels, chances = await future
        return {"predictions": [{"label": l, "probability": c} for l, c in zip(labels, chances)]}

    return app


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's own choice")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    model = build(options.model).eval()
    model.load_state_dict(load_file(options.weights))
    # asyncio turns Nagle's delay off only where the socket says that it is TCP: otherwise answers wait 40 ms for an ACK.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    print(f"listening on http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    server = uvicorn.Server(uvicorn.Config(make_app(model), log_level="error", access_log=False, timeout_graceful_shutdown=5))
    server.run(sockets=[listening])


main()
