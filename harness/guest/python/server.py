"""The fork server of Policy processes, and the plain guest where forking is impossible.

How it works. The Host starts this file with a clean environment and descriptor 3 as a SOCK_SEQPACKET control socket.
The server loads what every Policy process needs, then waits. A request FORK carries three descriptors (where the child
reads, where it writes, where its stdout and stderr go); the server forks and answers with the child's process id as it
knows it and, where it can, a pidfd, for the Host may count processes in another namespace. A request REAP asks for the end of one
child: only then is the child waited for, so that a process id never names another process. The server never runs code
of a Program and stays single-threaded. When a preloaded library has started threads, a fork would copy its locks in any
state; and in a sandbox a fork fails when the child can't be confined. FORK is refused then, and the Host starts this
file anew for each Policy (`plain`), with the three descriptors as 3, 4 and 5.

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


def fork(control, guest, descriptors):
    """Forks one Policy process and answers. In the child it never returns."""
    try:
        pid = -1 if len(os.listdir("/proc/self/task")) != 1 else os.fork()
    except OSError:
        pid = -1
    if pid < 0:
        control.send(REFUSED)
        return
    if pid == 0:
        try:
            control.close()
            gc.enable()
            guest.run(*descriptors)
        finally:
            os._exit(guest.EXIT_FAULT)
    answer = FORKED + pid.to_bytes(4, "big")
    if not hasattr(os, "pidfd_open"):  # an interpreter that was built on an old system
        control.send(answer)
        return
    pidfd = os.pidfd_open(pid)
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, pidfd.to_bytes(4, sys.byteorder))
    control.sendmsg([answer], [rights])
    os.close(pidfd)


def reap(pid):
    ended, status, usage = os.wait4(pid, os.WNOHANG)
    if ended == 0:
        return RUNNING
    cpu = int((usage.ru_utime + usage.ru_stime) * 1e9)
    return ENDED + status.to_bytes(4, "big") + (usage.ru_maxrss * 1024).to_bytes(8, "big") + cpu.to_bytes(8, "big")


def serve(control, guest):
    while True:
        request, ancillary, _, _ = control.recvmsg(64, _socket.CMSG_SPACE(3 * 4))
        if not request:
            return
        if request[:1] == FORK:
            descriptors = received(ancillary)
            fork(control, guest, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
        else:
            control.send(reap(int.from_bytes(request[1:5], "big")))


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
