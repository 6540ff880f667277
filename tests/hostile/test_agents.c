/* Agents that try what they must not. Each attempt is a script in a box as a Run makes it; what it prints is what came
 * of it. The Host's side of the test checks that nothing happened there. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "execution/agent_sandbox.h"
#include "support/guests.h"
#include "support/support.h"
#include "system/owner.h"

enum { OUTPUT_LIMIT = 65536 };

static const char tools[] =
    "import ctypes, errno, os, signal, socket, subprocess, sys, time\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "def call(name, *arguments):\n"
    "    if getattr(libc, name)(*arguments) < 0:\n"
    "        raise OSError(ctypes.get_errno(), 'call')\n"
    "    return 'worked'\n"
    "def attempt(work):\n"
    "    try:\n"
    "        return str(work())\n"
    "    except OSError as error:\n"
    "        return errno.errorcode.get(error.errno, str(error.errno))\n"
    "def write(path):\n"
    "    with open(path, 'w') as file:\n"
    "        file.write('x')\n"
    "    return 'worked'\n"
    "def connect(family, address):\n"
    "    with socket.socket(family) as peer:\n"
    "        peer.settimeout(5)\n"
    "        peer.connect(address)\n"
    "        return peer.recv(64).decode()\n"
    "run, host_pid, port, abstract = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]\n"
    "home, session = os.environ['HOME'], os.environ['SESSION']\n";

/* The Host's side: a Run directory, something secret beside it, and a few things that listen. */
static struct {
    char *directory;
    char *run;
    char *workspace;
    char *home;
    char *session;
    char *abstract;
    int listener, session_listener, abstract_listener;
    uint16_t port;
    size_t descriptors;
} host;

static void listen_tcp(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    host.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(host.listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(host.listener, 8), 0);
    ck_assert_int_eq(getsockname(host.listener, (struct sockaddr *)&address, &size), 0);
    host.port = ntohs(address.sin_port);
}

static int listen_unix(const char *name, bool is_abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    memcpy(address.sun_path + is_abstract, name, length);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + is_abstract + length + !is_abstract);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

static void open_host(void)
{
    host.descriptors = epg_test_open_descriptors();
    host.directory = epg_test_directory();
    host.run = epg_format("%s/run", host.directory);
    host.workspace = epg_format("%s/workspace", host.run);
    host.home = epg_format("%s/agent/home", host.run);
    host.session = epg_format("%s/session", host.directory);
    host.abstract = epg_format("epg-hostile-%d", (int)getpid());
    epg_test_write_text(host.directory, "benchmark/answers", "secret");
    epg_test_write_text(host.directory, "other-run/workspace/program/policy.py", "secret");
    epg_test_write_text(host.directory, "run/run.json", "{}");
    epg_test_write_text(host.directory, "run/agent/home/login", "token");
    epg_test_write_text(host.directory, "run/workspace/program/policy.py", "pass\n");
    epg_test_write_text(host.directory, "run/workspace/analysis/notes", "none\n");
    epg_test_write_text(host.directory, "run/workspace/feedback/latest.json", "{}");
    (void)chmod(host.run, 0700);
    (void)chmod(host.workspace, 0700);
    (void)chmod(host.home, 0700);
    listen_tcp();
    host.session_listener = listen_unix(host.session, false);
    (void)chmod(host.session, 0600);
    host.abstract_listener = listen_unix(host.abstract, true);
}

static void close_host(void)
{
    (void)close(host.listener);
    (void)close(host.session_listener);
    (void)close(host.abstract_listener);
    free(host.run);
    free(host.workspace);
    free(host.home);
    free(host.session);
    free(host.abstract);
    epg_test_directory_free(host.directory);
    ck_assert_uint_eq(epg_test_open_descriptors(), host.descriptors);
}

typedef struct outcome {
    char text[OUTPUT_LIMIT]; /* its stdout, without the last newline */
    epg_exit exit;
    const char *ended_by;
    bool complete;
} outcome;

/* Serves whoever connects to the Host while the Agent works. */
static void serve(int fd, const char *word)
{
    int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (client >= 0) {
        (void)!write(client, word, strlen(word));
        (void)close(client);
    }
}

static void watch(epg_owned *owned, int out, outcome *result, double seconds)
{
    size_t size = 0;
    int64_t deadline = epg_deadline_after_seconds(seconds);
    epg_error err = {0};
    while (!owned->finished && epg_monotonic_ns() < deadline) {
        struct pollfd ready[5] = {{.fd = owned->report, .events = POLLIN},
                                  {.fd = out, .events = POLLIN},
                                  {.fd = host.listener, .events = POLLIN},
                                  {.fd = host.session_listener, .events = POLLIN},
                                  {.fd = host.abstract_listener, .events = POLLIN}};
        (void)poll(ready, EPG_COUNT(ready), epg_poll_timeout_ms(deadline));
        if (ready[1].revents != 0) {
            char spill[4096];
            bool room = size + 1 < sizeof result->text;
            ssize_t got = read(out, room ? result->text + size : spill, room ? sizeof result->text - 1 - size : 4096);
            size += got > 0 && room ? (size_t)got : 0;
            if (got == 0) {
                out = -1;
            }
        }
        if (ready[2].revents != 0) {
            serve(host.listener, "tcp");
        }
        if (ready[3].revents != 0) {
            serve(host.session_listener, "session");
        }
        if (ready[4].revents != 0) {
            serve(host.abstract_listener, "abstract");
        }
        (void)epg_owned_poll(owned, &err);
    }
    (void)epg_owned_finish(owned, epg_deadline_after_seconds(30), &err);
    ssize_t got = 0;
    while (out >= 0 && (got = read(out, result->text + size, sizeof result->text - 1 - size)) > 0) {
        size += (size_t)got;
    }
    while (size > 0 && result->text[size - 1] == '\n') {
        size--;
    }
    result->text[size] = '\0';
}

static void box_of(epg_agent_sandbox *what, const char *const *argv, char **paths, const char *const *environment)
{
    static const char *const writable[] = {"program", "analysis", NULL};
    *what = (epg_agent_sandbox){.workspace = host.workspace,
                                .writable = writable,
                                .home = host.home,
                                .session_socket = host.session,
                                .read_only = (const char *const *)paths,
                                .limits = epg_agent_default_limits,
                                .argv = argv,
                                .environment = environment,
                                .search_path = "/usr/local/bin:/usr/bin:/bin"};
    what->limits.memory_bytes = UINT64_C(256) << 20;
    what->limits.processes = 64;
    what->limits.scratch_bytes = UINT64_C(8) << 20;
    what->limits.descriptors = 256;
}

static void run_box(epg_agent_sandbox *what, double seconds, outcome *result)
{
    int ends[2];
    epg_error err = {0};
    epg_owned owned;
    epg_agent_box *box = NULL;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    const epg_fd_map fds[] = {{ends[1], 1}, {STDERR_FILENO, 2}};
    what->fds = fds;
    what->fd_count = EPG_COUNT(fds);
    epg_assert_ok(epg_agent_box_open(what, &box, &err), &err);
    epg_assert_ok(epg_owned_start(epg_agent_box_spawn(box), &owned, &err), &err);
    (void)close(ends[1]);
    epg_assert_ok(epg_agent_box_started(box, epg_deadline_after_seconds(60), &err), &err);
    watch(&owned, ends[0], result, seconds);
    (void)close(ends[0]);
    result->exit = owned.exit;
    result->complete = owned.ended.complete;
    result->ended_by = epg_agent_box_ended_by(box, &owned.exit);
    epg_agent_box_close(box);
}

/* Runs `body` in Python; `seconds`: then it is killed. */
static void run_script(const char *body, const char *network, double seconds, outcome *result)
{
    epg_error err = {0};
    char **paths = NULL;
    char pid[16];
    char port[16];
    epg_agent_sandbox what;
    EPG_AUTO_FREE char *script = epg_format("%s%s\n", tools, body);
    EPG_AUTO_FREE char *home = epg_format("HOME=%s", host.home);
    EPG_AUTO_FREE char *session = epg_format("SESSION=%s", host.session);
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    (void)snprintf(port, sizeof port, "%u", host.port);
    const char *argv[] = {epg_test_python(), "-s", "-c", script, host.directory, pid, port, host.abstract, NULL};
    const char *environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", home, session, NULL};
    *result = (outcome){.exit = {.code = -1}};
    epg_assert_ok(epg_installation_find(argv[0], NULL, &paths, &err), &err);
    box_of(&what, argv, paths, environment);
    epg_assert_ok(epg_network_parse(network, &what.network, &err), &err);
    run_box(&what, seconds, result);
    epg_paths_free(paths);
}

typedef struct try_it {
    const char *body; /* prints one line */
    const char *expected;
    const char *network;
} try_it;

static const try_it attempts[] = {
    /* What it may do. */
    {"print(attempt(lambda: write('program/new.py')), attempt(lambda: write('analysis/a')), attempt(lambda: write(home "
     "+ "
     "'/x')), attempt(lambda: write('/tmp/x')))",
     "worked worked worked worked", "none"},
    {"print(os.getcwd() == run + '/run/workspace', open('program/policy.py').read().strip(), open(home + "
     "'/login').read())",
     "True pass token", "none"},
    {"print(attempt(lambda: connect(socket.AF_UNIX, session)))", "session", "none"},
    {"print(subprocess.run(['sh', '-c', 'echo from a shell'], capture_output=True).stdout.decode().strip())",
     "from a shell", "none"},
    {"print(os.stat('program').st_uid == os.getuid() == 1000)", "True", "none"},
    /* The Host's files. */
    {"print(attempt(lambda: open(run + '/run/run.json').read()))", "ENOENT", "none"},
    {"print(sorted(os.listdir(run)), os.listdir(run + '/run/agent'))", "['run', 'session'] ['home']", "none"},
    {"print(attempt(lambda: open(run + '/benchmark/answers').read()))", "ENOENT", "none"},
    {"print(attempt(lambda: open(run + '/other-run/workspace/program/policy.py').read()))", "ENOENT", "none"},
    {"print(attempt(lambda: open('/etc/shadow').read()))", "ENOENT", "none"},
    {"os.symlink(run + '/benchmark', 'analysis/way'); print(attempt(lambda: os.listdir('analysis/way')))", "ENOENT",
     "none"},
    {"print(attempt(lambda: os.listdir('/proc/1/' + 'root' + run + '/benchmark')) in ('ENOENT', 'EACCES'))", "True",
     "none"},
    {"print(attempt(lambda: os.listdir('/var/lib')), attempt(lambda: os.listdir('/sys')))", "ENOENT ENOENT", "none"},
    /* What it may read and not write. */
    {"print(attempt(lambda: write('feedback/latest.json')), attempt(lambda: write('x')))", "EROFS EROFS", "none"},
    {"print(attempt(lambda: os.rename('program', 'gone')))", "EROFS", "none"},
    {"print(attempt(lambda: os.rmdir('analysis')) in ('EROFS', 'EBUSY'))", "True", "none"},
    {"print(attempt(lambda: write('/usr/bin/x')), attempt(lambda: write('/etc/passwd')), attempt(lambda: "
     "write('/run/x')), attempt(lambda: write('/run/evopolicygym/x')))",
     "EROFS EROFS EROFS EROFS", "none"},
    {"print(attempt(lambda: os.unlink(session)) in ('EROFS', 'EBUSY'))", "True", "none"},
    {"print(attempt(lambda: os.chmod('feedback', 0o777)))", "EROFS", "none"},
    /* The network. */
    {"print(attempt(lambda: connect(socket.AF_INET, ('127.0.0.1', port))))", "ECONNREFUSED", "none"},
    {"print(attempt(lambda: connect(socket.AF_INET, ('192.0.2.1', 80))))", "ENETUNREACH", "none"},
    {"print(attempt(lambda: connect(socket.AF_UNIX, '\\0' + abstract)))", "ECONNREFUSED", "none"},
    {"print(attempt(lambda: connect(socket.AF_INET, ('127.0.0.1', port))))", "tcp", "host"},
    {"print(attempt(lambda: socket.socket(40, 1)), attempt(lambda: socket.socket(38, 5)), attempt(lambda: "
     "socket.socket(17, 3)))",
     "EAFNOSUPPORT EAFNOSUPPORT EAFNOSUPPORT", "host"},
    {"print(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)))", "EPERM", "none"},
    /* Processes. */
    {"print(attempt(lambda: os.kill(host_pid, 9)) if host_pid > 100 else 'ESRCH')", "ESRCH", "none"},
    {"signal.signal(15, signal.SIG_IGN); print(attempt(lambda: os.kill(-1, 15)))", "ESRCH", "none"},
    {"print([p for p in os.listdir('/proc') if p.isdigit()].__len__() <= 3)", "True", "none"},
    {"print(attempt(lambda: call('ptrace', 16, 1, 0, 0)), attempt(lambda: call('ptrace', 0, 0, 0, 0)))", "EPERM EPERM",
     "none"},
    /* The kernel. */
    {"print(attempt(lambda: call('unshare', 0x10000000)), attempt(lambda: call('mount', b'x', b'/tmp', b'tmpfs', 0, "
     "0)), attempt(lambda: call('chroot', b'/tmp')))",
     "EPERM EPERM EPERM", "none"},
    {"print(attempt(lambda: call('settimeofday', ctypes.create_string_buffer(16), 0)))", "EPERM", "none"},
    {"print(attempt(lambda: write('/proc/sys/kernel/hostname')) in ('EACCES', 'ENOENT', 'EROFS', 'EPERM'))", "True",
     "none"},
    {"print(attempt(lambda: os.setuid(0)) in ('EPERM', 'EINVAL'))", "True", "none"},
    {"print(subprocess.run(['su', '-c', 'id'], capture_output=True).returncode != 0)", "True", "none"},
    /* Limits. */
    {"def fill():\n"
     "    with open('/tmp/big', 'wb') as file:\n"
     "        while True:\n"
     "            file.write(bytes(1 << 20))\n"
     "print(attempt(fill))",
     "ENOSPC", "none"},
    {"print(attempt(lambda: [os.pipe() for _ in range(1000)]))", "EMFILE", "none"},
    {"def bomb():\n"
     "    while True:\n"
     "        if os.fork() == 0:\n"
     "            time.sleep(1000)\n"
     "print(attempt(bomb))",
     "EAGAIN", "none"},
};

START_TEST(an_attempt_comes_to_its_expected_end)
{
    static outcome result;
    run_script(attempts[_i].body, attempts[_i].network, 60, &result);
    ck_assert_msg(strcmp(result.text, attempts[_i].expected) == 0, "%s\n-> %s (exit %d)", attempts[_i].body,
                  result.text, result.exit.code);
    ck_assert(result.complete);
    EPG_AUTO_FREE char *feedback = epg_test_read_text(host.workspace, "feedback/latest.json");
    ck_assert_str_eq(feedback, "{}");
    struct stat info;
    ck_assert_int_eq(stat(host.session, &info), 0);
    ck_assert_uint_eq(info.st_uid, getuid());
}
END_TEST

START_TEST(what_the_agent_wrote_is_ours_on_disk)
{
    static outcome result;
    struct stat info;
    run_script("os.makedirs('program/deep/er'); write('program/deep/er/file'); os.chmod('program/deep', 0o700)", "none",
               60, &result);
    EPG_AUTO_FREE char *path = epg_format("%s/program/deep/er/file", host.workspace);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_uid, getuid());
}
END_TEST

START_TEST(a_memory_hog_is_killed_and_told_of)
{
    static outcome result;
    run_script("hog = []\nwhile True: hog.append(bytearray(16 << 20))", "none", 60, &result);
    ck_assert_int_ne(result.exit.code, 0);
    ck_assert(result.ended_by == NULL || strcmp(result.ended_by, "memory") == 0);
    ck_assert(result.complete);
}
END_TEST

START_TEST(a_daemon_ends_with_the_agent)
{
    static outcome result;
    run_script("if os.fork() == 0:\n"
               "    os.setsid()\n"
               "    if os.fork() == 0:\n"
               "        while True:\n"
               "            time.sleep(0.01)\n"
               "            write('program/late')\n"
               "    os._exit(0)\n"
               "os.wait()\n"
               "print('left')",
               "none", 60, &result);
    ck_assert_str_eq(result.text, "left");
    ck_assert_int_eq(result.exit.code, 0);
    ck_assert(result.complete);
    EPG_AUTO_FREE char *path = epg_format("%s/program/late", host.workspace);
    (void)unlink(path);
    (void)usleep(200000);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(an_exit_code_is_the_agents_own)
{
    static outcome result;
    run_script("os._exit(7)", "none", 60, &result);
    ck_assert_int_eq(result.exit.code, 7);
    run_script("os.kill(os.getpid(), 9)", "none", 60, &result);
    ck_assert_int_eq(result.exit.code, 128 + 9);
    ck_assert_ptr_null(result.ended_by);
}
END_TEST

START_TEST(an_agent_that_will_not_end_is_ended)
{
    static outcome result;
    run_script("for s in range(1, 32):\n"
               "    attempt(lambda: signal.signal(s, signal.SIG_IGN))\n"
               "while True: time.sleep(1)",
               "none", 2, &result);
    ck_assert(result.complete);
}
END_TEST

START_TEST(an_agent_that_is_asked_to_end_has_its_time)
{
    int ends[2];
    char text[64] = "";
    epg_error err = {0};
    epg_owned owned;
    epg_agent_box *box = NULL;
    epg_agent_sandbox what;
    const char *argv[] = {
        "sh", "-c", "trap 'sleep 0.2; echo ended well; exit 3' TERM; echo ready; while :; do sleep 0.05; done", NULL};
    box_of(&what, argv, NULL, NULL);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    const epg_fd_map fds[] = {{ends[1], 1}};
    what.fds = fds;
    what.fd_count = 1;
    epg_assert_ok(epg_agent_box_open(&what, &box, &err), &err);
    epg_assert_ok(epg_owned_start(epg_agent_box_spawn(box), &owned, &err), &err);
    (void)close(ends[1]);
    epg_assert_ok(epg_agent_box_started(box, epg_deadline_after_seconds(60), &err), &err);
    ck_assert_int_eq(read(ends[0], text, sizeof text - 1), 6);
    epg_owned_terminate(&owned, 60 * EPG_SECOND);
    ssize_t got = read(ends[0], text, sizeof text - 1);
    ck_assert_int_gt(got, 0);
    text[got] = '\0';
    ck_assert_str_eq(text, "ended well\n");
    for (int i = 0; i < 3000 && !owned.finished; i++) {
        epg_assert_ok(epg_owned_poll(&owned, &err), &err);
        (void)usleep(10000);
    }
    ck_assert_int_eq(owned.exit.code, 3);
    (void)epg_owned_finish(&owned, epg_deadline_after_seconds(30), &err);
    (void)close(ends[0]);
    epg_agent_box_close(box);
}
END_TEST

/* The one address, and nothing beside it. */
START_TEST(a_proxy_is_all_that_can_be_reached)
{
    static outcome result;
    EPG_AUTO_FREE char *network = epg_format("proxy=127.0.0.1:%u", host.port);
    run_script("print(attempt(lambda: connect(socket.AF_INET, ('127.0.0.1', port))),\n"
               "      attempt(lambda: connect(socket.AF_INET, ('127.0.0.1', port + 1))),\n"
               "      attempt(lambda: connect(socket.AF_INET, ('192.0.2.1', 80))),\n"
               "      attempt(lambda: connect(socket.AF_UNIX, '\\0' + abstract)),\n"
               "      os.environ['HTTPS_PROXY'] == 'http://127.0.0.1:%d' % port)",
               network, 60, &result);
    ck_assert_str_eq(result.text, "tcp ECONNREFUSED ENETUNREACH ECONNREFUSED True");
}
END_TEST

START_TEST(what_can_not_be_started_is_told_at_once)
{
    epg_error err = {0};
    epg_owned owned;
    epg_agent_box *box = NULL;
    epg_agent_sandbox what;
    const char *nowhere[] = {"no-such-command", NULL};
    box_of(&what, nowhere, NULL, NULL);
    epg_assert_code(epg_agent_box_open(&what, &box, &err), EPG_ERR_NOT_FOUND, &err);
    /* It is there on the Host, and not shown. */
    epg_test_write_text(host.directory, "hidden", "#!/bin/sh\n");
    EPG_AUTO_FREE char *hidden = epg_format("%s/hidden", host.directory);
    (void)chmod(hidden, 0755);
    const char *unseen[] = {hidden, NULL};
    box_of(&what, unseen, NULL, NULL);
    epg_assert_ok(epg_agent_box_open(&what, &box, &err), &err);
    epg_assert_ok(epg_owned_start(epg_agent_box_spawn(box), &owned, &err), &err);
    epg_assert_code(epg_agent_box_started(box, epg_deadline_after_seconds(60), &err), EPG_ERR_NOT_FOUND, &err);
    ck_assert_ptr_nonnull(strstr(err.text, hidden));
    (void)epg_owned_finish(&owned, epg_deadline_after_seconds(30), &err);
    epg_agent_box_close(box);
}
END_TEST

START_TEST(networks_are_read_strictly)
{
    static const char *const wrong[] = {"",          "None",         "proxy",           "proxy=",
                                        "proxy=:80", "proxy=host",   "proxy=host:0",    "proxy=host:99999",
                                        "hostile",   "proxy=a b:80", "proxy=u@host:80", "proxy=http://host:80"};
    static const char *const right[] = {"none", "host", "proxy=127.0.0.1:3128", "proxy=[::1]:80", "proxy=a.example:1"};
    epg_network network;
    epg_error err = {0};
    for (size_t i = 0; i < EPG_COUNT(wrong); i++) {
        epg_assert_code(epg_network_parse(wrong[i], &network, &err), EPG_ERR_USAGE, &err);
    }
    for (size_t i = 0; i < EPG_COUNT(right); i++) {
        epg_assert_ok(epg_network_parse(right[i], &network, &err), &err);
        EPG_AUTO_FREE char *text = epg_network_text(&network);
        ck_assert_str_eq(text, right[i]);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("hostile agents");
    TCase *tests = tcase_create("agents");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, open_host, close_host);
    tcase_add_loop_test(tests, an_attempt_comes_to_its_expected_end, 0, EPG_COUNT(attempts));
    tcase_add_test(tests, what_the_agent_wrote_is_ours_on_disk);
    tcase_add_test(tests, a_memory_hog_is_killed_and_told_of);
    tcase_add_test(tests, a_daemon_ends_with_the_agent);
    tcase_add_test(tests, an_exit_code_is_the_agents_own);
    tcase_add_test(tests, an_agent_that_will_not_end_is_ended);
    tcase_add_test(tests, an_agent_that_is_asked_to_end_has_its_time);
    tcase_add_test(tests, a_proxy_is_all_that_can_be_reached);
    tcase_add_test(tests, what_can_not_be_started_is_told_at_once);
    tcase_add_test(tests, networks_are_read_strictly);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "monitor") == 0) {
        return epg_monitor_main(argc, argv);
    }
    (void)epg_test_python();
    return epg_test_main(make_suite());
}
