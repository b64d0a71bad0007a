# SPDX-License-Identifier: BSD-3-Clause
"""Pickled Python objects: blocking, nonblocking, wildcards, and collectives."""
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size


def thing(owner, weight):
    return {"owner": owner, "text": "x" * weight, "numbers": list(range(weight % 1000))}


def expect(got, expected, what):
    if got != expected:
        raise AssertionError(f"rank {rank}: {what}: expected {str(expected)[:80]}, got {str(got)[:80]}")


for weight in (0, 1, 100, 4000, 70000, 1000000):
    request = world.isend(thing(rank, weight), dest=right, tag=11)
    expect(world.recv(source=left, tag=11), thing(left, weight), "recv")
    request.wait()

    request = world.issend(thing(rank, weight), dest=right, tag=12)
    status = MPI.Status()
    expect(world.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status), thing(left, weight),
           "recv from any source")
    expect((status.Get_source(), status.Get_tag()), (left, 12), "status")
    request.wait()

    got = world.sendrecv(thing(rank, weight), dest=right, sendtag=13, source=left, recvtag=13)
    expect(got, thing(left, weight), "sendrecv")

    expect(world.bcast(thing(0, weight) if rank == 0 else None), thing(0, weight), "bcast")
    expect(world.allgather(thing(rank, weight)), [thing(r, weight) for r in range(size)], "allgather")
    expect(world.alltoall([(rank, r, weight) for r in range(size)]),
           [(r, rank, weight) for r in range(size)], "alltoall")
    expect(world.allreduce(rank + weight), sum(range(size)) + weight * size, "allreduce")
    gathered = world.gather(thing(rank, weight), root=size - 1)
    if rank == size - 1:
        expect(gathered, [thing(r, weight) for r in range(size)], "gather")
    expect(world.scatter([thing(r, weight) for r in range(size)] if rank == 0 else None),
           thing(rank, weight), "scatter")

# Many small objects, received through any source in the order of each sender.
requests = [world.isend((rank, i), dest=d, tag=1) for i in range(200) for d in range(size)]
seen = [0] * size
for _ in range(200 * size):
    source, number = world.recv(source=MPI.ANY_SOURCE, tag=1)
    expect(number, seen[source], f"number {seen[source]} of rank {source}")
    seen[source] += 1
MPI.Request.waitall(requests)
world.Barrier()
if rank == 0:
    print("objects: ok")
