/* Policies that try what they must not, in the sandbox. Each attempt is one act of one Policy in one Episode; its
 * expected end is an answer (the errno that it met with), or a failure with what the Host knows of it. */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "execution/cgroup.h"
#include "support/guests.h"
#include "support/support.h"

static epg_test_guest host;
static char *tools;
static char *secret_directory;
static int abstract_listener;
static char abstract_name[64];
static size_t descriptors;

static void listen_abstract(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(abstract_name, sizeof abstract_name, "epg-hostile-%d", (int)getpid());
    memcpy(address.sun_path + 1, abstract_name, strlen(abstract_name));
    abstract_listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(abstract_name));
    ck_assert_int_eq(bind(abstract_listener, (const struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(abstract_listener, 8), 0);
}

static void open_host(void)
{
    descriptors = epg_test_open_descriptors();
    const char *source = getenv("EPG_SOURCE");
    tools = epg_test_read_text(source != NULL ? source : EPG_TEST_SOURCE, "tests/hostile/policy_tools.py");
    ck_assert_ptr_nonnull(tools);
    secret_directory = epg_test_directory();
    epg_test_write_text(secret_directory, "secret", "secret");
    listen_abstract();
    epg_test_guest_prepare(&host);
    ck_assert_int_eq(chmod(host.directory, 0755), 0);
    host.execution.profile = EPG_PROFILE_SANDBOX;
    host.execution.scratch = host.directory;
    host.execution.limits.memory_bytes = UINT64_C(192) << 20;
    host.execution.limits.processes = 32;
    host.execution.limits.cpu_seconds = 5; /* a slow machine must meet the other limits first */
    host.execution.limits.descriptors = 300;
    host.execution.limits.file_bytes = UINT64_C(4) << 20;
    host.execution.limits.scratch_bytes = UINT64_C(8) << 20;
    host.execution.limits.scratch_inodes = 200;
    epg_test_guest_start(&host, -1);
}

static void close_host(void)
{
    epg_test_guest_close(&host);
    (void)close(abstract_listener);
    epg_test_directory_free(secret_directory);
    free(tools);
    ck_assert_uint_eq(epg_test_open_descriptors(), descriptors);
}

static epg_policy *start_with(const char *body)
{
    EPG_AUTO_FREE char *source = epg_format("%s\n"
                                            "HOST, HOST_PID, ABSTRACT = '%s', %d, '%s'\n"
                                            "class P:\n"
                                            "    turn = 0\n"
                                            "    def act(self, observation):\n"
                                            "        self.turn += 1\n"
                                            "        %s\n"
                                            "def make_policy(context):\n"
                                            "    return P()\n",
                                            tools, secret_directory, (int)getpid(), abstract_name, body);
    epg_policy *policy = epg_test_policy_begin(&host, source);
    epg_policy_reply reply = epg_test_policy_start(policy, 7, 60);
    ck_assert_msg(reply.failure == EPG_POLICY_OK, "%s: %s", epg_policy_cause_name(reply.cause), reply.detail);
    return policy;
}

/* The Episode's own directory goes, as an Episode's does. */
static void finish(epg_policy *policy, epg_policy_end *end)
{
    epg_test_policy_finish(policy, end);
    EPG_AUTO_FREE char *command = epg_format("rm -rf %s/%u", host.directory, host.episodes);
    ck_assert_int_eq(system(command), 0);
}

static void serve_one(void)
{
    epg_policy *policy = start_with("return 'well'");
    EPG_AUTO_FREE char *answer = epg_test_policy_ask(policy);
    ck_assert_str_eq(answer, "well");
    finish(policy, NULL);
}

/* --- Attempts that are answered. --- */

typedef struct attempt {
    const char *body;
    const char *expected; /* one of several, parted by '|' */
} attempt;

static const attempt answered[] = {
    /* Files of the Host. */
    {"return attempt(lambda: read('/etc/shadow'))", "ENOENT"},
    {"return attempt(lambda: read(HOST + '/secret'))", "ENOENT"},
    {"return attempt(lambda: os.listdir(HOST))", "ENOENT"},
    {"return attempt(lambda: os.listdir('/home')) + attempt(lambda: os.listdir('/' + 'root' + '/.ssh'))",
     "ENOENTENOENT"},
    {"return attempt(lambda: os.listdir('/var')) + attempt(lambda: os.listdir('/srv'))", "ENOENTENOENT"},
    {"return attempt(lambda: os.listdir('/sys')) + attempt(lambda: os.listdir('/boot'))", "ENOENTENOENT"},
    {"return str(sorted(os.listdir('/etc')))[:1] + str(len([f for f in os.listdir('/etc') if 'shadow' in f]))", "[0"},
    {"return str([n for n in os.listdir('/policy') if n != os.path.basename(os.path.dirname(os.getcwd()))])", "[]"},
    {"os.symlink(HOST, '/tmp/way'); return attempt(lambda: os.listdir('/tmp/way'))", "ENOENT"},
    {"return attempt(lambda: os.listdir('/proc/1/' + 'root' + HOST)) + attempt(lambda: "
     "os.listdir('/proc/self/cwd/../../..' "
     "+ "
     "HOST))",
     "ENOENTENOENT"},
    {"os.chdir('/'); f = os.open('.', os.O_RDONLY); [os.chdir('..') for _ in range(30)]; os.fchdir(f); return "
     "str(os.path.exists('.' + HOST))",
     "False"},
    {"return str([f for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + f) and "
     "os.path.isdir('/proc/self/fd/' + f) and os.readlink('/proc/self/fd/' + f) not in ('/proc', '/') and not "
     "os.readlink('/proc/self/fd/' + f).startswith('/proc/')])",
     "[]"},
    {"return ' '.join(sorted({os.readlink('/proc/self/fd/' + f).split(':')[0] for f in os.listdir('/proc/self/fd') if "
     "os.path.lexists('/proc/self/fd/' + f)}))",
     "/dev/null pipe"},
    {"return str([v for v in os.environ if v not in ('PATH', 'LANG', 'HOME', 'TMPDIR', 'PYTHONHASHSEED', 'PYTHONUTF8', "
     "'PYTHONDONTWRITEBYTECODE', 'PYTHONNOUSERSITE', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', "
     "'PWD')])",
     "[]"},
    /* Writing. */
    {"return attempt(lambda: write('policy.py')) + attempt(lambda: write('../x')) + attempt(lambda: write('new'))",
     "EROFSEROFSEROFS"},
    {"return attempt(lambda: os.chmod('policy.py', 0o777)) + attempt(lambda: os.unlink('policy.py')) + attempt(lambda: "
     "os.rename('policy.py', 'x'))",
     "EROFSEROFSEROFS"},
    {"return attempt(lambda: write('/x')) + attempt(lambda: write('/usr/x')) + attempt(lambda: write('/etc/passwd')) + "
     "attempt(lambda: write('/run/evopolicygym/x')) + attempt(lambda: write('/dev/x'))",
     "EROFSEROFSEROFSEROFSEROFS"},
    {"return attempt(lambda: write('/run/evopolicygym/guest/server.py'))", "EROFS"},
    {"return attempt(lambda: write('/proc/self/' + 'root' + '/usr/x'))", "EROFS"},
    {"return attempt(lambda: os.link('policy.py', '/tmp/p'))", "EXDEV|EPERM"},
    {"return attempt(lambda: os.utime('policy.py'))", "EROFS"},
    {"return attempt(lambda: os.setxattr('policy.py', 'user.x', b'x'))", "EROFS"},
    {"return attempt(lambda: write('/tmp/x')) + attempt(lambda: write('/dev/shm/x'))", "workedworked"},
    /* Devices. */
    {"return attempt(lambda: os.mknod('/tmp/disk', 0o60600, os.makedev(254, 0)))", "EPERM"},
    {"return attempt(lambda: os.mknod('/tmp/mem', 0o20600, os.makedev(1, 1)))", "EPERM"},
    {"return attempt(lambda: read('/dev/kmsg')) + attempt(lambda: read('/dev/mem')) + attempt(lambda: "
     "read('/dev/vda')) + attempt(lambda: read('/dev/tty'))",
     "ENOENTENOENTENOENTENOENT"},
    {"return ' '.join(sorted(os.listdir('/dev')))", "fd full null random shm stderr stdin stdout urandom zero"},
    /* The network. */
    {"return ' '.join({attempt(lambda: socket.socket(f, t)) for f in range(2, 46) for t in (1, 2, 3)})",
     "EAFNOSUPPORT"},
    {"return attempt(lambda: socket.create_connection(('127.0.0.1', 22), 1))", "EAFNOSUPPORT"},
    {"return attempt(lambda: socket.socket(40, 1))", "EAFNOSUPPORT"},
    {"return attempt(lambda: connect('\\0' + ABSTRACT))", "ECONNREFUSED"},
    {"return attempt(lambda: connect('/run/dbus/system_bus_socket')) + attempt(lambda: "
     "connect('/var/run/docker.sock'))",
     "ENOENTENOENT"},
    {"return ' '.join(l.split(':')[0].strip() for l in open('/proc/self/net/dev').readlines()[2:])", "lo"},
    {"a, b = socket.socketpair(); a.send(b'own'); return b.recv(9).decode()", "own"},
    /* Other processes. */
    {"return attempt(lambda: os.kill(HOST_PID, 9)) if HOST_PID > 9 else 'ESRCH'", "ESRCH"},
    {"return str(os.getpid()) + str(os.getppid()) + str([p for p in os.listdir('/proc') if p.isdigit()])", "10['1']"},
    {"return attempt(lambda: os.kill(-1, 9))", "ESRCH"},
    {"return attempt(lambda: call('pidfd_open', HOST_PID, 0))", "ESRCH"},
    {"return calls('ptrace', 'process_vm_readv', 'process_vm_writev', 'kcmp', 'pidfd_getfd')", ""},
    {"return attempt(lambda: os.setpriority(os.PRIO_USER, 0, -20)) + attempt(lambda: os.nice(-5))",
     "EACCESEPERM|EPERMEPERM|EACCESEACCES"},
    {"return attempt(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))", "EPERM"},
    /* Privileges. */
    {"return attempt(lambda: os.setuid(0)) + attempt(lambda: os.setgid(0)) + attempt(lambda: os.setgroups([0]))",
     "EINVALEINVALEPERM|EPERMEPERMEPERM"},
    {"return calls('capset', 'seccomp', 'setns', 'unshare')", ""},
    {"return str({attempt(lambda: call('unshare', f)) for f in (0x10000000, 0x20000, 0x20000000, 0x40000000, "
     "0x8000000, "
     "0x4000000, 0x2000000, 0x80)})",
     "{'EPERM'}"},
    {"return attempt(lambda: call('clone', 0x10000000 | 17, 0, 0, 0, 0)) + attempt(lambda: call('clone', 0x20000 | 17, "
     "0, "
     "0, 0, 0))",
     "EPERMEPERM"},
    {"return attempt(lambda: call('clone3', 0, 0))", "ENOSYS"},
    {"open('/tmp/su', 'wb').write(read('/bin/true')); os.chmod('/tmp/su', 0o6755); return str([subprocess.run([p, "
     "'-c', "
     "'id -u'], capture_output=True, stdin=subprocess.DEVNULL).stdout for p in ('/bin/su',) if os.path.exists(p)] in "
     "([], [b'']))",
     "True"},
    {"return subprocess.run(['sh', '-c', 'grep -c NoNewPrivs:.*1 /proc/self/status'], "
     "capture_output=True).stdout.decode().strip()",
     "1"},
    {"return attempt(lambda: write('/proc/self/uid_map', b'0 0 1')) + attempt(lambda: write('/proc/self/setgroups', "
     "b'allow'))",
     "EPERMEPERM|EPERMEACCES|EACCESEACCES"},
    /* The kernel. */
    {"return calls('mount', 'umount2', 'pivot_root', 'chroot', 'open_tree', 'move_mount', 'fsopen', 'mount_setattr', "
     "'fsconfig')",
     ""},
    {"return calls('io_uring_setup', 'bpf', 'userfaultfd', 'perf_event_open')", ""},
    {"return calls('keyctl', 'add_key', 'request_key')", ""},
    {"return calls('init_module', 'finit_module', 'delete_module', 'kexec_load', 'reboot', 'swapon', 'acct', 'syslog', "
     "'quotactl', 'vhangup', 'mbind', 'lookup_dcookie')",
     ""},
    {"return calls('name_to_handle_at', 'open_by_handle_at', 'fanotify_init', 'sethostname', 'setdomainname')", ""},
    {"return calls('settimeofday', 'clock_settime', 'adjtimex')", ""},
    {"return attempt(lambda: time.clock_settime(time.CLOCK_REALTIME, 1.0))", "EPERM"},
    {"return attempt(lambda: call('personality', 0x0040000))", "ENOSYS"},
    {"return attempt(lambda: call('memfd_secret', 0)) + attempt(lambda: call('landlock_create_ruleset', 0, 0, 1))",
     "ENOSYSENOSYS"},
    {"return str(libc.syscall(ctypes.c_long(1000))) + errno.errorcode[ctypes.get_errno()]", "-1ENOSYS"},
    /* /proc. */
    {"return str({attempt(lambda: write(p)) for p in ('/proc/sys/kernel/hostname', '/proc/sys/kernel/core_pattern', "
     "'/proc/sys/vm/drop_caches', '/proc/sysrq-trigger', '/proc/sys/kernel/randomize_va_space')} <= {'ENOENT', "
     "'EACCES', 'EROFS', 'EPERM'})",
     "True"},
    {"return str({attempt(lambda: read(p)) for p in ('/proc/kcore', '/proc/kmsg', '/proc/kallsyms', '/proc/keys', "
     "'/proc/timer_list')} <= {'ENOENT', 'EACCES', 'EPERM'} or 'open')",
     "True"},
    {"return attempt(lambda: write('/proc/self/oom_score_adj', b'-1000'))", "EACCES|EPERM"},
    {"return attempt(lambda: write('/proc/1/mem'))", "worked|EIO|EINVAL|EFAULT"},
    {"return socket.gethostname()", "policy"},
    /* Limits that are met with an error. */
    {"return attempt(lambda: [write('/tmp/f%d' % i, bytes(1 << 20)) for i in range(64)])", "ENOSPC"},
    {"return attempt(lambda: [write('/dev/shm/f%d' % i, bytes(1 << 20)) for i in range(64)])", "ENOSPC"},
    {"return attempt(lambda: [write('/tmp/f%d' % i, b'') for i in range(100000)])", "ENOSPC"},
    {"signal.signal(signal.SIGXFSZ, signal.SIG_IGN); return attempt(lambda: write('/tmp/big', bytes(6 << 20)))",
     "EFBIG"},
    {"return attempt(lambda: [os.pipe() for _ in range(10000)])", "EMFILE"},
    {"return attempt(lambda: [os.fork() or hang() for _ in range(10000)])", "EAGAIN"},
    {"def flood():\n"
     "            while True: threading.Thread(target=hang, daemon=True).start()\n"
     "        try: flood()\n"
     "        except RuntimeError as error: return str(error)",
     "can't start new thread"},
    {"try: resource.setrlimit(resource.RLIMIT_NOFILE, (100000, 100000)); return 'worked'\n"
     "        except ValueError as error: return str(error)",
     "not allowed to raise maximum limit"},
    {"return str(resource.getrlimit(resource.RLIMIT_CORE))", "(0, 0)"},
    {"print('x' * (16 << 20)); return 'printed'", "printed"},
};

static bool one_of(const char *answer, const char *expected)
{
    EPG_AUTO_FREE char *all = epg_strdup(expected);
    char *rest = all;
    for (const char *one = strsep(&rest, "|"); one != NULL; one = strsep(&rest, "|")) {
        if (strcmp(one, answer) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(an_attempt_comes_to_its_expected_end)
{
    for (size_t i = (size_t)_i; i < EPG_COUNT(answered); i += 8) {
        epg_policy_end end;
        epg_policy *policy = start_with(answered[i].body);
        epg_policy_reply reply = epg_test_policy_act(policy, epg_span_text("N"), 60);
        ck_assert_msg(reply.failure == EPG_POLICY_OK, "%s\n-> %s: %s", answered[i].body,
                      epg_policy_cause_name(reply.cause), reply.detail);
        epg_span text;
        ck_assert(epg_value_get_string(reply.action, &text));
        EPG_AUTO_FREE char *answer = epg_strndup((const char *)text.data, text.size);
        ck_assert_msg(one_of(answer, answered[i].expected), "%s\n-> %s", answered[i].body, answer);
        finish(policy, &end);
        ck_assert(end.ended.complete);
        ck_assert_uint_le(end.log.size, host.execution.limits.log_bytes + 100);
        ck_assert_ptr_null(end.killed_by);
        epg_policy_end_free(&end);
    }
}
END_TEST

/* --- Attempts that are the Policy's end. --- */

typedef struct fatal {
    const char *body;
    epg_policy_cause cause;
    const char *killed_by; /* NULL: nothing; one of several, parted by '|', "-" for nothing */
    bool counted;          /* only where control groups can be had */
} fatal;

static const fatal fatals[] = {
#ifdef __x86_64__
    {"return machine_code(bytes.fromhex('b814000000cd80c3'))", EPG_CAUSE_DIED, "seccomp", false}, /* int 0x80: getpid */
    {"return machine_code(bytes.fromhex('b8270000400f05c3'))", EPG_CAUSE_DIED, "seccomp", false}, /* x32's getpid */
#endif
    {"hog = []\n"
     "        while True: hog.append(bytearray(8 << 20))",
     EPG_CAUSE_DIED, "memory", true},
    {"f = os.memfd_create('x')\n"
     "        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
     "        keep = []\n"
     "        while True:\n"
     "            keep.append(os.memfd_create('x')); os.write(keep[-1], bytes(4 << 20))",
     EPG_CAUSE_DIED, "memory", true},
    {"keep = []\n"
     "        while True:\n"
     "            keep.append(mmap.mmap(-1, 8 << 20)); keep[-1].write(b'x' * (8 << 20))",
     EPG_CAUSE_DIED, "memory", true},
    {"[os.fork() or hang() for _ in range(1000)]", EPG_CAUSE_ACT, "processes", false},
    {"write('/tmp/a', bytes(4 << 20)); write('/tmp/b', bytes(4 << 20)); write('/tmp/c', bytes(1 << 20))", EPG_CAUSE_ACT,
     "disk", false},
    {"[write('/tmp/%d' % i, b'') for i in range(1000)]", EPG_CAUSE_ACT, "disk", false},
    {"while True: pass", EPG_CAUSE_DIED, "cpu", false},
    {"ctypes.string_at(0)", EPG_CAUSE_DIED, "signal", false},
    {"signal.signal(signal.SIGXFSZ, signal.SIG_DFL); f = open('/tmp/x', 'wb', 0)\n"
     "        while True: f.write(bytes(1 << 20))",
     EPG_CAUSE_ACT, "-|disk", false},
    {"os._exit(0)", EPG_CAUSE_DIED, NULL, false},
    {"os._exit(137)", EPG_CAUSE_DIED, NULL, false},
    {"os.close(250); os.close(251); hang()", EPG_CAUSE_DIED, NULL, false},
    {"os.abort()", EPG_CAUSE_DIED, "signal", false},
    {"return open(HOST + '/secret').read()", EPG_CAUSE_ACT, NULL, false},
    {"threading.stack_size(1 << 28); sys.setrecursionlimit(1 << 30)\n"
     "        def deep(n): return deep(n + 1) + 1\n"
     "        t = threading.Thread(target=lambda: deep(0)); t.start(); t.join(); raise ValueError('survived')",
     EPG_CAUSE_ACT, "-|signal|memory", false},
};

START_TEST(a_fatal_attempt_is_told_for_what_it_is)
{
    const fatal *one = &fatals[_i];
    const epg_cgroup_places *places = epg_cgroup_find();
    epg_policy_end end;
    epg_policy *policy = start_with(one->body);
    epg_policy_reply reply = epg_test_policy_act(policy, epg_span_text("N"), 60);
    ck_assert_int_ne(reply.failure, EPG_POLICY_OK);
    finish(policy, &end);
    ck_assert(end.ended.complete);
    const char *killed_by = end.killed_by != NULL ? end.killed_by : "-";
    if (!one->counted || (places->memory != NULL)) {
        bool open_end = one->killed_by != NULL && strchr(one->killed_by, '|') != NULL;
        ck_assert_msg(one_of(killed_by, one->killed_by != NULL ? one->killed_by : "-"), "%s\n-> %s (%s)", one->body,
                      killed_by, epg_policy_cause_name(reply.cause));
        ck_assert_msg(open_end || reply.cause == one->cause, "%s\n-> %s: %s", one->body,
                      epg_policy_cause_name(reply.cause), reply.detail);
    }
    epg_policy_end_free(&end);
    serve_one();
}
END_TEST

/* --- From one Episode to the next. --- */

static const struct {
    const char *leave; /* returns 'left' */
    const char *look;  /* returns 'gone' */
} remains[] = {
    {"write('/tmp/mark'); write('/dev/shm/mark2'); return 'left'",
     "return str(os.listdir('/tmp') + os.listdir('/dev/shm')).replace('[]', 'gone')"},
    {"daemon(hang); return 'left'",
     "return str([p for p in os.listdir('/proc') if p.isdigit()]).replace(\"['1']\", 'gone')"},
    {"attempt(lambda: call('shmget', 4711, 4096, 0o1666)); return 'left'",
     "return attempt(lambda: call('shmget', 4711, 4096, 0)).replace('ENOENT', 'gone').replace('ENOSYS', 'gone')"},
    {"attempt(lambda: call('msgget', 4711, 0o1666)); return 'left'",
     "return attempt(lambda: call('msgget', 4711, 0)).replace('ENOENT', 'gone').replace('ENOSYS', 'gone')"},
    {"self.s = socket.socket(socket.AF_UNIX); self.s.bind('\\0mark'); self.s.listen(1); daemon(hang); return 'left'",
     "return attempt(lambda: connect('\\0mark')).replace('ECONNREFUSED', 'gone')"},
    {"os.environ['MARK'] = 'x'; sys.modules['mark'] = os; os.umask(0o123); return 'left'",
     "return 'gone' if 'MARK' not in os.environ and 'mark' not in sys.modules and os.umask(0) == 0o22 else 'there'"},
    {"signal.alarm(1000); signal.signal(signal.SIGUSR1, signal.SIG_IGN); return 'left'",
     "return 'gone' if signal.alarm(0) == 0 and signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL else 'there'"},
    {"call('mq_open', b'mark', 0o102, 0o666, 0); return 'left'",
     "return attempt(lambda: call('mq_open', b'mark', 0o2, 0, 0)).replace('ENOENT', 'gone')"},
};

START_TEST(nothing_is_left_for_the_next_episode)
{
    for (size_t i = 0; i < EPG_COUNT(remains); i++) {
        epg_policy *policy = start_with(remains[i].leave);
        EPG_AUTO_FREE char *left = epg_test_policy_ask(policy);
        ck_assert_str_eq(left, "left");
        finish(policy, NULL);
        policy = start_with(remains[i].look);
        EPG_AUTO_FREE char *gone = epg_test_policy_ask(policy);
        ck_assert_msg(strcmp(gone, "gone") == 0, "%s\n-> %s", remains[i].leave, gone);
        finish(policy, NULL);
    }
}
END_TEST

START_TEST(every_namespace_is_fresh_in_every_episode)
{
    static const char look[] =
        "return ' '.join(os.readlink('/proc/self/ns/' + n) for n in ('pid', 'mnt', 'ipc', 'uts', "
        "'net', 'user'))";
    static const char *const kinds[] = {"pid", "mnt", "ipc", "uts", "net", "user"};
    for (int episode = 0; episode < 3; episode++) {
        epg_policy *policy = start_with(look);
        EPG_AUTO_FREE char *answer = epg_test_policy_ask(policy);
        char *rest = answer;
        for (const char *one = strsep(&rest, " "); one != NULL; one = strsep(&rest, " ")) {
            /* An inode may be used again when its namespace is gone, but not one of the Host's that lives. */
            for (size_t i = 0; i < EPG_COUNT(kinds); i++) {
                char own[64] = "";
                EPG_AUTO_FREE char *path = epg_format("/proc/self/ns/%s", kinds[i]);
                ck_assert_int_gt(readlink(path, own, sizeof own - 1), 0);
                ck_assert_str_ne(own, one);
            }
        }
        finish(policy, NULL);
    }
}
END_TEST

START_TEST(two_living_episodes_share_no_namespace)
{
    static const char look[] =
        "return ' '.join(os.readlink('/proc/self/ns/' + n) for n in ('pid', 'mnt', 'ipc', 'uts', "
        "'net', 'user'))";
    epg_policy *first = start_with(look);
    epg_policy *second = start_with(look);
    EPG_AUTO_FREE char *one = epg_test_policy_ask(first);
    EPG_AUTO_FREE char *two = epg_test_policy_ask(second);
    char *rest = one;
    for (const char *name = strsep(&rest, " "); name != NULL; name = strsep(&rest, " ")) {
        ck_assert_ptr_null(strstr(two, name));
    }
    finish(second, NULL);
    epg_test_policy_finish(first, NULL);
}
END_TEST

START_TEST(a_policy_never_runs_as_root_on_the_host)
{
    struct stat info;
    epg_policy *policy = start_with("return 'here'");
    EPG_AUTO_FREE char *answer = epg_test_policy_ask(policy);
    ck_assert_str_eq(answer, "here");
    /* Of all processes below us, none that has the guest's namespaces is root's: looked at by the owner of /proc/PID.
     */
    EPG_AUTO_FREE char *command =
        epg_format("for p in $(ps -o pid= --ppid %d); do for q in $(ps -o pid= --ppid $p); do for r in $(ps -o pid= "
                   "--ppid $q); do for s in $(ps -o pid= --ppid $r); do stat -c %%u /proc/$s; done; done; done; done "
                   "2>/dev/null | sort -u > %s/owners",
                   (int)getpid(), secret_directory);
    ck_assert_int_eq(system(command), 0);
    EPG_AUTO_FREE char *owners = epg_test_read_text(secret_directory, "owners");
    ck_assert_ptr_nonnull(owners);
    ck_assert_msg(strlen(owners) > 1 && strncmp(owners, "0\n", 2) != 0, "%s", owners);
    finish(policy, NULL);
    ck_assert_int_eq(stat(secret_directory, &info), 0);
}
END_TEST

START_TEST(the_spares_came_from_cells)
{
    epg_guest_stats stats;
    for (int i = 0; i < 5; i++) {
        serve_one();
    }
    epg_guest_statistics(host.guest, &stats);
    ck_assert_uint_eq(stats.spawned, 0);
    ck_assert_uint_ge(stats.parked_hits, 4);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("hostile policies");
    TCase *tests = tcase_create("policies");
    tcase_set_timeout(tests, 200);
    tcase_add_checked_fixture(tests, open_host, close_host);
    tcase_add_loop_test(tests, an_attempt_comes_to_its_expected_end, 0, 8);
    tcase_add_loop_test(tests, a_fatal_attempt_is_told_for_what_it_is, 0, EPG_COUNT(fatals));
    tcase_add_test(tests, nothing_is_left_for_the_next_episode);
    tcase_add_test(tests, every_namespace_is_fresh_in_every_episode);
    tcase_add_test(tests, two_living_episodes_share_no_namespace);
    tcase_add_test(tests, a_policy_never_runs_as_root_on_the_host);
    tcase_add_test(tests, the_spares_came_from_cells);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    (void)epg_test_python();
    return epg_test_main(make_suite());
}
