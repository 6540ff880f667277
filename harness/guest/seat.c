/* Policy processes before an Episode takes them and after it let them go.
 *
 * The next process is asked for as soon as one was taken, so making it overlaps with the Episode. The server's answer
 * is waited for only when the process is wanted. Trouble with the server (a Policy of the same user may have killed it)
 * means one new server and one more try; then it is a fault of execution. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "guest/internal.h"
#include "system/children.h"
#include "system/socket.h"

enum { PREPARE_SECONDS = 60, REAP_SECONDS = 10, END_SECONDS = 10 };

const epg_seat epg_no_seat = {
    .process = {.pid = -1, .pidfd = -1}, .ready = -1, .receive = -1, .send = -1, .output = -1};

void epg_seat_close(epg_seat *seat)
{
    epg_close_cleanup(&seat->receive);
    epg_close_cleanup(&seat->send);
    epg_close_cleanup(&seat->output);
    epg_close_cleanup(&seat->process.pidfd);
    epg_close_cleanup(&seat->ready);
    (void)epg_execution_release(seat->hold, &(epg_guest_end){.ended = true});
    epg_execution_leave(seat->ground);
    *seat = epg_no_seat;
}

static void close_theirs(int (*descriptors)[EPG_SEAT_FDS])
{
    for (size_t i = 0; i < EPG_SEAT_FDS; i++) {
        if ((*descriptors)[i] >= 0) {
            (void)close((*descriptors)[i]);
        }
    }
}

/* Our ends into `seat`, theirs into `theirs` (read, write, output, ready). */
static epg_code make_pipes(epg_seat *seat, int theirs[EPG_SEAT_FDS], epg_error *err)
{
    int to_them[2] = {-1, -1};
    int from_them[2] = {-1, -1};
    int output[2] = {-1, -1};
    int ready = -1;
    bool made = pipe2(to_them, O_CLOEXEC) == 0 && pipe2(from_them, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC) == 0 &&
                epg_socket_pair(&seat->ready, &ready) == 0;
    int error = errno;
    theirs[0] = to_them[0];
    theirs[1] = from_them[1];
    theirs[2] = output[1];
    theirs[3] = ready;
    seat->send = to_them[1];
    seat->receive = from_them[0];
    seat->output = output[0];
    return made ? EPG_OK : epg_fail_errno(err, error, "can't make the pipes of a Policy process");
}

static epg_code start_plain(const epg_execution *execution, epg_seat *seat, const int theirs[EPG_SEAT_FDS],
                            epg_error *err)
{
    const epg_fd_map fds[] = {{theirs[0], 3}, {theirs[1], 4}, {theirs[2], 5}, {theirs[2], 1}, {theirs[2], 2}};
    return epg_execution_launch(execution, EPG_GUEST_PLAIN, fds, EPG_COUNT(fds), &seat->process, &seat->ground, err);
}

/* Makes the spare, or has it made. */
static epg_code ask(epg_guest *guest, epg_error *err)
{
    EPG_CLEANUP(close_theirs) int theirs[EPG_SEAT_FDS] = {-1, -1, -1, -1};
    epg_seat seat = epg_no_seat;
    epg_code code = EPG_OK;
    if (!guest->plain && guest->server.control < 0) {
        code = epg_server_start(&guest->execution, &guest->server, err);
    }
    if (code == EPG_OK) {
        code = make_pipes(&seat, theirs, err);
    }
    if (code == EPG_OK && guest->plain) {
        code = start_plain(&guest->execution, &seat, theirs, err);
    } else if (code == EPG_OK) {
        code = epg_server_ask(&guest->server, theirs, err);
    }
    if (code != EPG_OK) {
        epg_seat_close(&seat);
        return code;
    }
    guest->spare = seat;
    guest->spare_state = guest->plain ? EPG_SPARE_READY : EPG_SPARE_ASKED;
    guest->stats.spawned += guest->plain;
    return EPG_OK;
}

/* From now on each process is started anew: it can't be forked, or not confined. */
static epg_code go_plain(epg_guest *guest, epg_error *err)
{
    guest->plain = true;
    epg_server_end(&guest->server);
    epg_seat_close(&guest->spare);
    guest->spare_state = EPG_SPARE_NONE;
    return ask(guest, err);
}

/* Takes the server's answer to what was asked. */
static epg_code take_answer(epg_guest *guest, int cancel, epg_error *err)
{
    int64_t deadline = epg_deadline_after_seconds(PREPARE_SECONDS);
    EPG_TRY(epg_server_forked(&guest->server, cancel, deadline, &guest->spare.name, err));
    guest->spare_state = EPG_SPARE_FORKED;
    return guest->spare.name == 0 ? go_plain(guest, err) : EPG_OK;
}

/* Who said it, by our own count of processes. 0: nobody, and nobody will. -1: nothing was said yet. */
static pid_t hear_ready(int fd)
{
    char byte = 0;
    pid_t who = 0;
    ssize_t got = epg_socket_receive(fd, &byte, sizeof byte, &who);
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? -1 : who;
}

/* Waits until the forked process is confined and itself says so. It is not reaped before we ask for that, so its number
 * is still its own when we take hold of it. */
static epg_code await_ready(epg_guest *guest, epg_error *err)
{
    int64_t deadline = epg_deadline_after_seconds(PREPARE_SECONDS);
    pid_t pid = -1;
    while ((pid = hear_ready(guest->spare.ready)) < 0) {
        struct pollfd ready[2] = {{.fd = guest->spare.ready, .events = POLLIN},
                                  {.fd = guest->cancel, .events = POLLIN}};
        int count = poll(ready, EPG_COUNT(ready), epg_poll_timeout_ms(deadline));
        if (count > 0 && ready[1].revents != 0) {
            return epg_fail(err, EPG_ERR_INTERRUPTED, "stopped while a Policy process was made");
        }
        if (count == 0 && epg_monotonic_ns() >= deadline) {
            return epg_fail(err, EPG_ERR_EXECUTION, "a Policy process was not ready in time");
        }
    }
    if (pid == 0) { /* killed by somebody, once; or it can't be confined, ever */
        return guest->unready++ > 0 ? go_plain(guest, err)
                                    : epg_fail(err, EPG_ERR_EXECUTION, "a Policy process ended before it was used");
    }
    guest->unready = 0;
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) {
        return epg_fail_errno(err, errno, "can't hold a Policy process");
    }
    (void)close(epg_take_fd(&guest->spare.ready));
    guest->spare.process = (epg_process){.pid = pid, .pidfd = pidfd};
    guest->spare.forked = true;
    guest->spare_state = EPG_SPARE_READY;
    guest->stats.forked++;
    return EPG_OK;
}

/* Makes the spare ready, with its limits. */
static epg_code prepare(epg_guest *guest, epg_error *err)
{
    epg_code code = EPG_OK;
    if (guest->spare_state == EPG_SPARE_NONE) {
        code = ask(guest, err);
    }
    if (code == EPG_OK && guest->spare_state == EPG_SPARE_ASKED) {
        code = take_answer(guest, guest->cancel, err);
    }
    if (code == EPG_OK && guest->spare_state == EPG_SPARE_FORKED) {
        code = await_ready(guest, err);
    }
    if (code == EPG_OK) {
        epg_seat *spare = &guest->spare;
        epg_guest_mode mode = spare->forked ? EPG_GUEST_SERVER : EPG_GUEST_PLAIN;
        epg_ground *ground = spare->forked ? guest->server.ground : spare->ground;
        code = epg_execution_confine(&guest->execution, mode, ground, &spare->process, &spare->hold, err);
    }
    if (code == EPG_OK && !epg_process_running(&guest->spare.process)) {
        code = epg_fail(err, EPG_ERR_EXECUTION, "a Policy process ended before it was used");
    }
    return code;
}

/* A child of ours: started plainly, or left to us by a server that is gone. */
static void reap_own(pid_t pid, epg_reaped *out)
{
    struct rusage usage = {0};
    int status = 0;
    pid_t got = 0;
    do {
        got = wait4(pid, &status, 0, &usage);
    } while (got < 0 && errno == EINTR);
    if (got != pid) {
        out->exit = (epg_exit){.code = -1};
        return;
    }
    out->exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out->exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    out->max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    out->cpu_ns = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * EPG_SECOND +
                  (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

/* Kills, reaps and closes the spare, whose parent we are now. */
static void discard_spare(epg_guest *guest)
{
    epg_reaped ignored = {0};
    epg_process_signal(&guest->spare.process, SIGKILL);
    reap_own(guest->spare.process.pid, &ignored);
}

void epg_seats_end(epg_guest *guest)
{
    epg_server_end(&guest->server);
    if (guest->spare_state == EPG_SPARE_READY) {
        discard_spare(guest);
    }
    epg_seat_close(&guest->spare);
    guest->spare_state = EPG_SPARE_NONE;
}

void epg_seat_park(epg_guest *guest)
{
    if (guest->spare_state == EPG_SPARE_NONE && ask(guest, NULL) != EPG_OK) {
        epg_seats_end(guest);
    }
}

epg_code epg_seat_take(epg_guest *guest, epg_seat *out, epg_error *err)
{
    bool parked = guest->spare_state != EPG_SPARE_NONE;
    epg_code code = prepare(guest, err);
    if (code == EPG_ERR_INTERRUPTED) {
        return code;
    }
    if (code != EPG_OK) {
        parked = false;
        epg_seats_end(guest);
        code = prepare(guest, err);
    }
    if (code != EPG_OK) {
        if (code != EPG_ERR_INTERRUPTED) {
            epg_seats_end(guest);
            code = epg_fail_as(err, EPG_ERR_EXECUTION, "preparing a Policy process");
        }
        return code;
    }
    *out = guest->spare;
    guest->spare = epg_no_seat;
    guest->spare_state = EPG_SPARE_NONE;
    guest->stats.parked_hits += parked;
    return EPG_OK;
}

void epg_seat_reap(epg_guest *guest, epg_seat *seat, epg_reaped *out)
{
    if (seat->forked) {
        /* Answers come in order: one that is still due comes first. */
        bool works = guest->spare_state != EPG_SPARE_ASKED || take_answer(guest, -1, NULL) == EPG_OK;
        int64_t deadline = epg_deadline_after_seconds(REAP_SECONDS);
        if (works && epg_server_reap(&guest->server, seat->name, deadline, out, NULL) == EPG_OK) {
            return;
        }
        seat->forked = false;
        epg_seats_end(guest); /* ends the server: its children are ours now */
    }
    reap_own(seat->process.pid, out);
}

static bool listed(const epg_pid_list *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->pids[i] == pid) {
            return true;
        }
    }
    return false;
}

/* When a Policy's process is gone, all that it left is below children of ours that we did not start. */
static bool have_strays(const epg_pid_list *known)
{
    EPG_AUTO_PIDS children = {0};
    epg_children_list(getpid(), &children);
    for (size_t i = 0; i < children.count; i++) {
        if (!listed(known, children.pids[i])) {
            return true;
        }
    }
    return false;
}

epg_code epg_guest_end_strays(epg_guest *guest, epg_ended *out, epg_error *err)
{
    EPG_AUTO_PIDS known = {0};
    *out = (epg_ended){.complete = true};
    epg_pid_list_add(&known, guest->spare.process.pid);
    size_t kept = known.count;
    epg_pid_list_add(&known, guest->server.process.pid);
    for (size_t i = 0; i < guest->kept_count; i++) {
        epg_pid_list_add(&known, guest->kept[i]);
    }
    if (!have_strays(&known)) {
        return EPG_OK;
    }
    /* What is below a kept process is its own affair; below the server there are only the spare and what a sandbox is
     * made of. */
    for (; kept < known.count; kept++) {
        epg_children_list(known.pids[kept], &known);
    }
    epg_descendants_end(known.pids, known.count, 0, epg_deadline_after_seconds(END_SECONDS), out);
    return out->complete ? EPG_OK : epg_fail(err, EPG_ERR_EXECUTION, "a process that a Policy started can't be ended");
}
