# SPDX-License-Identifier: BSD-3-Clause
"""Buffers without copies: every send mode, persistent requests, layouts, collectives, windows."""
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size


def values(owner, count):
    return array("d", (owner + 0.5 * i for i in range(count)))


def expect(got, expected, what):
    if got != expected:
        raise AssertionError(f"rank {rank}: {what}: expected {str(expected)[:80]}, got {str(got)[:80]}")


MPI.Attach_buffer(bytearray(4 << 20))
for count in (0, 1, 100, 500, 10000, 200000):
    for start in (world.Isend, world.Issend, world.Ibsend):
        incoming = array("d", [-1.0]) * count
        request = start(values(rank, count), dest=right, tag=3)
        world.Recv(incoming, source=left, tag=3)
        request.Wait()
        expect(incoming, values(left, count), f"{start.__name__} of {count}")

    outgoing, incoming = values(rank, count), array("d", [-1.0]) * count
    pair = [world.Send_init(outgoing, right, 4), world.Recv_init(incoming, MPI.ANY_SOURCE, 4)]
    for turn in range(5):
        for i in range(count):
            outgoing[i] = rank + turn + 0.25 * i
        MPI.Prequest.Startall(pair)
        MPI.Request.Waitall(pair)
        expect(incoming, array("d", (left + turn + 0.25 * i for i in range(count))), "persistent")
        world.Barrier()
    for request in pair:
        request.Free()

    total = array("d", [0.0]) * count
    world.Allreduce(values(rank, count), total)
    expect(total, array("d", (sum(range(size)) + 0.5 * i * size for i in range(count))), "Allreduce")
    everything = array("d", [0.0]) * (count * size)
    world.Iallgather(values(rank, count), everything).Wait()
    for r in range(size):
        expect(everything[r * count:(r + 1) * count], values(r, count), "Iallgather")

column = MPI.DOUBLE.Create_vector(1000, 1, 3).Commit()
matrix = array("d", [-1.0]) * 3000
request = world.Isend(values(rank, 1000), dest=right)
world.Recv([matrix, 1, column], source=left)
request.Wait()
expect(matrix[::3], values(left, 1000), "a strided column")
expect(matrix[1::3], array("d", [-1.0]) * 1000, "the gaps")
column.Free()
MPI.Detach_buffer()
world.Barrier()
if rank == 0:
    print("buffers: ok")
