"""What the hostile Policies of test_policies.c have at hand. It stands before their own code."""

import ctypes, errno, mmap, os, platform, resource, signal, socket, subprocess, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)

# Numbers of system calls: x86-64, then those of the newer architectures.
NUMBERS = {
    "io_uring_setup": (425, 425), "bpf": (321, 280), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "userfaultfd": (323, 282), "perf_event_open": (298, 241), "clone": (56, 220),
    "clone3": (435, 435), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "mount_setattr": (442, 442), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "reboot": (169, 142), "swapon": (167, 224), "acct": (163, 89), "syslog": (103, 116), "quotactl": (179, 60),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "settimeofday": (170, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "sethostname": (170, 161),
    "capset": (126, 91), "seccomp": (317, 277), "memfd_create": (319, 279), "personality": (135, 92),
    "mbind": (237, 235), "lookup_dcookie": (212, 18), "vhangup": (153, 58), "memfd_secret": (447, 447),
    "fsconfig": (431, 431), "landlock_create_ruleset": (444, 444), "setdomainname": (171, 162),
    "shmget": (29, 194), "shmat": (30, 196), "msgget": (68, 186), "mq_open": (240, 180),
}
NUMBERS["settimeofday"] = (164, 170)
COLUMN = 0 if platform.machine() == "x86_64" else 1


def call(name, *arguments):
    words = [a if isinstance(a, bytes) else ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(NUMBERS[name][COLUMN]), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return "worked"


def attempt(work):
    try:
        return str(work())
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    except MemoryError:
        return "MemoryError"


def calls(*names):
    """Every one of these must be refused; tells the ones that end in another way."""
    zeros = [0] * 6
    return " ".join(n + ":" + attempt(lambda: call(n, *zeros)) for n in names if attempt(lambda: call(n, *zeros)) != "EPERM")


def read(path):
    with open(path, "rb") as file:
        return file.read(100)


def write(path, data=b"x"):
    with open(path, "wb") as file:
        file.write(data)
    return "worked"


def connect(address):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(address)
    return "worked"


def child(work):
    """The end of a child that does this: its exit code, or minus its signal."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(99)
    status = os.waitpid(pid, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


def machine_code(code):
    """Calls these bytes as a function."""
    area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    return ctypes.CFUNCTYPE(ctypes.c_long)(address)()


def daemon(work):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
        os._exit(0)
    os.wait()


def hang():
    while True:
        time.sleep(1)
