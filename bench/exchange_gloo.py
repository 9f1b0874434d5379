#!/usr/bin/env python3
"""exchange_gloo.py BYTES REPEATS: PyTorch's all_reduce over Gloo between two local processes; prints median seconds.

Each repeat takes the time of the slower process; two repeats of warm-up are not counted. bench/exchange runs this.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist


def work(rank, size, nbytes, repeats, rendezvous):
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % len(os.sched_getaffinity(0))]})
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=size)
    values = torch.zeros(nbytes // 4)
    taken = []
    for _ in range(repeats + 2):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(values)
        slowest = torch.tensor([time.perf_counter() - start], dtype=torch.float64)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        taken.append(slowest.item())
    if rank == 0:
        print(statistics.median(taken[2:]), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    import tempfile

    import torch.multiprocessing as processes
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(work, (2, int(sys.argv[1]), int(sys.argv[2]), os.path.join(folder, "rendezvous")), nprocs=2)
