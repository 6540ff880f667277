"""The fork server of Policy processes, and the plain guest where forking is impossible.

How it works. The Host starts this file with a clean environment and descriptor 3 as a SOCK_SEQPACKET control socket.
The server loads what every Policy process needs, then waits. A request FORK carries four descriptors (where the child
reads, where it writes, where its stdout and stderr go, where it says that it is ready); the server forks and answers
with the child's process id as it knows it. The child says one byte on a socket that tells the Host who sent it, for the
Host may count processes in another namespace. A request REAP asks for the end of one child: only then is the child
waited for, so that a process id never names another process. The server never runs code of a Program and stays
single-threaded. When a preloaded library has started threads, a fork would copy its locks in any state, so FORK is
refused; and in a sandbox a child that can't be confined ends without a word. In both cases the Host starts this file
anew for each Policy (`plain`), with the first three descriptors as 3, 4 and 5.

The server ends when the control socket does. This file's directory leaves sys.path before anything else happens: no
import of a Program is ever answered from it.
"""

import sys

ROOT = sys.path.pop(0)

import gc
import os

import _socket

FORK, REAP = b"F", b"R"  # requests
FORKED, REFUSED, ENDED, RUNNING = b"P", b"T", b"E", b"A"  # answers
READY = b"C"  # from a child


def load(names):
    """Imports the guest package by its own directory, and the modules that the user wants to have ready."""
    sys.path.insert(0, ROOT)
    from evopolicygym import _guest

    del sys.path[0]
    for name in names:
        __import__(name)
    return _guest


def received(ancillary):
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            return [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data) - 3, 4)]
    return []


def fork(control, guest, ready, *channel):
    """Forks one Policy process; returns the answer. In the child it never returns."""
    if len(os.listdir("/proc/self/task")) != 1:
        return REFUSED
    try:
        pid = os.fork()
    except OSError:
        return REFUSED
    if pid == 0:
        try:
            control.close()
            gc.enable()
            os.write(ready, READY)
            guest.run(*channel)
        finally:
            os._exit(guest.EXIT_FAULT)
    return FORKED + pid.to_bytes(4, "big")


def reap(pid):
    ended, status, usage = os.wait4(pid, os.WNOHANG)
    if ended == 0:
        return RUNNING
    cpu = int((usage.ru_utime + usage.ru_stime) * 1e9)
    return ENDED + status.to_bytes(4, "big") + (usage.ru_maxrss * 1024).to_bytes(8, "big") + cpu.to_bytes(8, "big")


def serve(control, guest):
    while True:
        request, ancillary, _, _ = control.recvmsg(64, _socket.CMSG_SPACE(4 * 4))
        if not request:
            return
        if request[:1] == FORK:
            *channel, ready = received(ancillary)
            answer = fork(control, guest, ready, *channel)
            for descriptor in channel:
                os.close(descriptor)
            os.close(ready)
        else:
            answer = reap(int.from_bytes(request[1:5], "big"))
        control.send(answer)


def main(mode, *preload):
    guest = load(preload)
    if mode == "plain":
        guest.run(3, 4, 5)
    control = _socket.socket(fileno=3)
    gc.collect()
    gc.freeze()
    gc.disable()
    serve(control, guest)


if __name__ == "__main__":
    main(*sys.argv[1:])
