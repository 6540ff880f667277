/* Channels that wait in the read itself: everything that another wait would notice is noticed all the same. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/support.h"
#include "system/frame.h"

enum { BODY_LIMIT = 1024, ASIDE_SIZE = 1024 * 1024 };

typedef struct peer {
    epg_channel channel;
    pid_t pid;
    int aside;
    size_t served; /* bytes that came aside */
} peer;

/* What a peer does with each frame of ours, before it gives it back. */
typedef void work(int aside);

static void serve(void *context)
{
    char chunk[65536];
    peer *self = context;
    ssize_t got = read(self->aside, chunk, sizeof chunk);
    ck_assert_int_ge(got, 0);
    self->served += (size_t)got;
    if (got == 0) {
        self->channel.aside.fd = -1;
    }
}

static void echo(int in, int out, int aside, work *does)
{
    char frame[BODY_LIMIT];
    ssize_t got = 0;
    while ((got = read(in, frame, sizeof frame)) > 0) {
        does(aside);
        if (write(out, frame, (size_t)got) != got) {
            _exit(1);
        }
    }
    _exit(0);
}

static void start(peer *self, work *does)
{
    int to[2];
    int from[2];
    int aside[2];
    *self = (peer){.pid = -1};
    ck_assert_int_eq(pipe2(to, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(from, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(aside, O_CLOEXEC), 0);
    self->pid = fork();
    ck_assert_int_ge(self->pid, 0);
    if (self->pid == 0) {
        (void)close(to[1]);
        (void)close(from[0]);
        (void)close(aside[0]);
        echo(to[0], from[1], aside[1], does);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    (void)close(aside[1]);
    self->aside = aside[0];
    epg_channel_open(&self->channel, from[0], to[1], BODY_LIMIT);
    epg_channel_be_patient(&self->channel);
    ck_assert_ptr_nonnull(self->channel.patience);
    self->channel.aside = (epg_aside){.fd = aside[0], .serve = serve, .context = self};
}

static void end(peer *self)
{
    int status = 0;
    epg_channel_close(&self->channel);
    (void)kill(self->pid, SIGKILL);
    ck_assert_int_eq(waitpid(self->pid, &status, 0), self->pid);
    (void)close(self->aside);
}

static epg_code exchange(peer *self, uint32_t number, int64_t deadline, epg_error *err)
{
    epg_frame frame;
    epg_assert_ok(epg_channel_send(&self->channel, 'q', number, epg_span_text("body"), deadline, err), err);
    epg_code code = epg_channel_receive(&self->channel, &frame, deadline, NULL, err);
    if (code == EPG_OK) {
        ck_assert_uint_eq(frame.sequence, number);
        ck_assert(epg_span_equal(frame.body, epg_span_text("body")));
    }
    return code;
}

static void at_once(int aside)
{
    (void)aside;
}

static void late(int aside)
{
    (void)aside;
    (void)usleep(15000); /* longer than a read waits */
}

static void never(int aside)
{
    (void)aside;
    for (;;) {
        (void)pause();
    }
}

static void talkative(int aside)
{
    static const char text[ASIDE_SIZE]; /* far more than a pipe holds */
    for (size_t at = 0; at < sizeof text;) {
        ssize_t wrote = write(aside, text + at, sizeof text - at);
        if (wrote < 0) {
            _exit(1);
        }
        at += (size_t)wrote;
    }
}

START_TEST(answers_come_at_once_and_late)
{
    static work *const kinds[] = {at_once, late};
    static const uint32_t rounds[] = {20000, 20}; /* the first take longer than a read waits, together */
    for (size_t kind = 0; kind < EPG_COUNT(kinds); kind++) {
        epg_error err = {.text = ""};
        peer self;
        start(&self, kinds[kind]);
        for (uint32_t i = 0; i < rounds[kind]; i++) {
            epg_assert_ok(exchange(&self, i, epg_deadline_after_seconds(60), &err), &err);
        }
        end(&self);
    }
}
END_TEST

START_TEST(a_deadline_ends_the_wait)
{
    epg_error err = {.text = ""};
    peer self;
    start(&self, never);
    int64_t deadline = epg_deadline_after_ns(50 * EPG_MILLISECOND);
    epg_assert_code(exchange(&self, 1, deadline, &err), EPG_ERR_TIMEOUT, &err);
    ck_assert(epg_monotonic_ns() >= deadline);
    end(&self);
}
END_TEST

START_TEST(being_told_to_stop_ends_the_wait)
{
    epg_error err = {.text = ""};
    int stop[2];
    peer self;
    start(&self, never);
    ck_assert_int_eq(pipe2(stop, O_CLOEXEC), 0);
    ck_assert_int_eq(write(stop[1], "x", 1), 1);
    self.channel.cancel = stop[0];
    epg_assert_code(exchange(&self, 1, EPG_NEVER, &err), EPG_ERR_INTERRUPTED, &err);
    end(&self);
    (void)close(stop[0]);
    (void)close(stop[1]);
}
END_TEST

START_TEST(the_end_of_the_peer_ends_the_wait)
{
    epg_error err = {.text = ""};
    epg_frame frame;
    peer self;
    start(&self, at_once);
    ck_assert_int_eq(kill(self.pid, SIGKILL), 0);
    epg_assert_code(epg_channel_receive(&self.channel, &frame, EPG_NEVER, NULL, &err), EPG_ERR_CLOSED, &err);
    end(&self);
}
END_TEST

START_TEST(what_comes_aside_never_stops_a_peer)
{
    enum { ROUNDS = 5 };
    epg_error err = {.text = ""};
    peer self;
    start(&self, talkative);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        epg_assert_ok(exchange(&self, i, epg_deadline_after_seconds(60), &err), &err);
    }
    while (self.served < (size_t)ROUNDS * ASIDE_SIZE) {
        serve(&self);
    }
    ck_assert_uint_eq(self.served, (size_t)ROUNDS * ASIDE_SIZE);
    end(&self);
}
END_TEST

START_TEST(a_fill_never_waits)
{
    epg_error err = {.text = ""};
    epg_frame frame;
    bool have = true;
    peer self;
    start(&self, at_once);
    epg_assert_ok(exchange(&self, 1, epg_deadline_after_seconds(60), &err), &err); /* its reads wait now */
    epg_assert_ok(epg_channel_fill(&self.channel, &err), &err);
    epg_assert_ok(epg_channel_next(&self.channel, &frame, &have, NULL, &err), &err);
    ck_assert(!have);
    epg_assert_ok(exchange(&self, 2, epg_deadline_after_seconds(60), &err), &err);
    end(&self);
}
END_TEST

START_TEST(other_code_can_be_spared_the_signal)
{
    epg_error err = {.text = ""};
    peer self;
    start(&self, at_once);
    epg_assert_ok(exchange(&self, 1, epg_deadline_after_seconds(60), &err), &err);
    epg_patience_hush(true);
    ck_assert_int_eq(usleep(100000), 0); /* else it would be interrupted */
    epg_patience_hush(false);
    epg_assert_ok(exchange(&self, 2, epg_deadline_after_seconds(60), &err), &err);
    end(&self);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("patience");
    TCase *tests = tcase_create("patience");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, answers_come_at_once_and_late);
    tcase_add_test(tests, a_deadline_ends_the_wait);
    tcase_add_test(tests, being_told_to_stop_ends_the_wait);
    tcase_add_test(tests, the_end_of_the_peer_ends_the_wait);
    tcase_add_test(tests, what_comes_aside_never_stops_a_peer);
    tcase_add_test(tests, a_fill_never_waits);
    tcase_add_test(tests, other_code_can_be_spared_the_signal);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(make_suite());
}
