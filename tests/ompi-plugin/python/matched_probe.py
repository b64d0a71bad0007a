# SPDX-License-Identifier: BSD-3-Clause
"""Matched probes of objects and buffers, cancelled receives, truncation as an exception."""
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size


def expect(got, expected, what):
    if got != expected:
        raise AssertionError(f"rank {rank}: {what}: expected {str(expected)[:80]}, got {str(got)[:80]}")


for weight in (1, 3000, 200000):
    requests = [world.isend([i, "y" * weight], dest=right, tag=i) for i in range(8)]
    messages = [world.mprobe(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG) for _ in range(8)]
    expect(world.Iprobe(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG), False, "Iprobe after mprobe")
    world.Barrier()  # Nobody goes on to the next messages before all have looked.
    for i in reversed(range(8)):
        expect(messages[i].recv(), [i, "y" * weight], f"message {i}")
    MPI.Request.waitall(requests)

    request = world.Issend(bytearray(b"z" * weight), dest=right, tag=9)
    status = MPI.Status()
    message = None
    while message is None:
        message = world.Improbe(source=left, tag=9, status=status)
    expect(status.Get_count(MPI.BYTE), weight, "size found by Improbe")
    buffer = bytearray(weight)
    message.Irecv(buffer).Wait()
    request.Wait()
    expect(buffer, bytearray(b"z" * weight), "Irecv of a message")

status = MPI.Status()
request = world.Irecv(bytearray(10), source=left, tag=20)
request.Cancel()
request.Wait(status)
expect(status.Is_cancelled(), True, "a cancelled receive")

# 100 bytes into 10.
request = world.Isend(bytearray(100), dest=right, tag=21)
world.Probe(source=left, tag=21)
try:
    world.Recv(bytearray(10), source=left, tag=21)
    raise AssertionError(f"rank {rank}: expected MPI_ERR_TRUNCATE")
except MPI.Exception as error:
    expect(error.Get_error_class(), MPI.ERR_TRUNCATE, "truncation")
request.Wait()
world.Barrier()
if rank == 0:
    print("matched_probe: ok")
