#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "support/support.h"
#include "system/frame.h"

enum { LIMIT = 1000, BIG_LIMIT = 4 * 1024 * 1024 };
static const int64_t long_time = 30 * EPG_SECOND;
static const int64_t short_time = 20 * EPG_MILLISECOND;

/* A channel and the peer's raw ends. */
typedef struct wire {
    epg_channel channel;
    int to_channel;
    int from_channel;
} wire;

static void open_pair(wire *pair, size_t limit)
{
    int in[2];
    int out[2];
    ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    epg_channel_open(&pair->channel, in[0], out[1], limit);
    pair->to_channel = in[1];
    pair->from_channel = out[0];
}

static void close_pair(wire *pair)
{
    epg_channel_close(&pair->channel);
    epg_close_cleanup(&pair->to_channel);
    epg_close_cleanup(&pair->from_channel);
}

static void shut(int *fd)
{
    (void)close(*fd);
    *fd = -1;
}

static void put(const wire *pair, const void *bytes, size_t size)
{
    ck_assert_int_eq(write(pair->to_channel, bytes, size), (ssize_t)size);
}

static int64_t in_time(void)
{
    return epg_deadline_after_ns(long_time);
}

START_TEST(a_frame_has_its_bytes_on_the_wire)
{
    static const uint8_t expected[] = {0, 0, 0, 10, 7, 0x01, 0x02, 0x03, 0x04, 'h', 'e', 'l', 'l', 'o'};
    wire pair;
    epg_error err = {0};
    uint8_t got[64];
    open_pair(&pair, LIMIT);
    epg_assert_ok(
        epg_channel_send2(&pair.channel, 7, 0x01020304, epg_span_text("he"), epg_span_text("llo"), in_time(), &err),
        &err);
    ck_assert_int_eq(read(pair.from_channel, got, sizeof got), sizeof expected);
    ck_assert_mem_eq(got, expected, sizeof expected);
    epg_assert_ok(epg_channel_send(&pair.channel, 255, UINT32_MAX, (epg_span){NULL, 0}, in_time(), &err), &err);
    ck_assert_int_eq(read(pair.from_channel, got, sizeof got), EPG_FRAME_HEAD);
    ck_assert_mem_eq(got, "\0\0\0\5\377\377\377\377\377", EPG_FRAME_HEAD);
    close_pair(&pair);
}
END_TEST

START_TEST(frames_are_received_one_by_one_however_they_are_cut)
{
    static const uint8_t bytes[] = {0, 0, 0, 8, 1, 0, 0, 0, 1, 'a', 'b', 'c', 0, 0, 0,  5,
                                    2, 0, 0, 0, 2, 0, 0, 0, 6, 3,   0,   0,   0, 3, 'z'};
    wire pair;
    epg_error err = {0};
    epg_frame frame;
    epg_frame_fault fault;
    open_pair(&pair, LIMIT);
    size_t cut = (size_t)_i;
    pid_t writer = fork();
    if (writer == 0) {
        /* The second part comes when the first has been taken: the pipe's size says so. */
        put(&pair, bytes, cut);
        (void)usleep(1000);
        put(&pair, bytes + cut, sizeof bytes - cut);
        _exit(0);
    }
    shut(&pair.to_channel);
    static const char *const bodies[] = {"abc", "", "z"};
    for (uint8_t i = 0; i < 3; i++) {
        epg_assert_ok(epg_channel_receive(&pair.channel, &frame, in_time(), &fault, &err), &err);
        ck_assert_int_eq(fault, EPG_FRAME_OK);
        ck_assert_uint_eq(frame.type, i + 1);
        ck_assert_uint_eq(frame.sequence, i + 1U);
        ck_assert(epg_span_equal(frame.body, epg_span_text(bodies[i])));
    }
    epg_assert_code(epg_channel_receive(&pair.channel, &frame, in_time(), &fault, &err), EPG_ERR_CLOSED, &err);
    ck_assert_int_eq(fault, EPG_FRAME_CLOSED);
    ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
    close_pair(&pair);
}
END_TEST

START_TEST(a_body_of_the_bound_passes_and_one_byte_more_does_not)
{
    wire pair;
    epg_error err = {0};
    epg_frame frame;
    epg_frame_fault fault;
    uint8_t head[EPG_FRAME_HEAD] = {0};
    uint8_t body[LIMIT];
    memset(body, 'x', sizeof body);
    open_pair(&pair, LIMIT);
    epg_write_be32(head, 5 + LIMIT);
    put(&pair, head, sizeof head);
    put(&pair, body, sizeof body);
    epg_assert_ok(epg_channel_receive(&pair.channel, &frame, in_time(), &fault, &err), &err);
    ck_assert(epg_span_equal(frame.body, epg_span_of(body, sizeof body)));
    /* The length alone tells: nothing of the body is waited for. */
    epg_write_be32(head, 5 + LIMIT + 1);
    put(&pair, head, 4);
    epg_assert_code(epg_channel_receive(&pair.channel, &frame, in_time(), &fault, &err), EPG_ERR_PROTOCOL, &err);
    ck_assert_int_eq(fault, EPG_FRAME_OVERSIZED);
    close_pair(&pair);

    open_pair(&pair, LIMIT);
    put(&pair, "\377\377\377\377", 4);
    epg_assert_code(epg_channel_receive(&pair.channel, &frame, in_time(), &fault, &err), EPG_ERR_PROTOCOL, &err);
    ck_assert_int_eq(fault, EPG_FRAME_OVERSIZED);
    close_pair(&pair);
}
END_TEST

START_TEST(a_length_too_short_for_a_head_is_malformed)
{
    wire pair;
    epg_error err = {0};
    epg_frame frame;
    epg_frame_fault fault;
    uint8_t length[4];
    open_pair(&pair, LIMIT);
    epg_write_be32(length, (uint32_t)_i);
    put(&pair, length, sizeof length);
    epg_assert_code(epg_channel_receive(&pair.channel, &frame, in_time(), &fault, &err), EPG_ERR_PROTOCOL, &err);
    ck_assert_int_eq(fault, EPG_FRAME_MALFORMED);
    close_pair(&pair);
}
END_TEST

/* The bytes of a frame, cut after _i of them, then the end. */
START_TEST(an_end_inside_a_frame_is_a_partial_frame)
{
    static const uint8_t bytes[] = {0, 0, 0, 8, 1, 0, 0, 0, 1, 'a', 'b', 'c'};
    wire pair;
    epg_error err = {0};
    epg_frame frame;
    epg_frame_fault fault;
    open_pair(&pair, LIMIT);
    put(&pair, bytes, (size_t)_i);
    shut(&pair.to_channel);
    epg_assert_code(epg_channel_receive(&pair.channel, &frame, in_time(), &fault, &err), EPG_ERR_PROTOCOL, &err);
    ck_assert_int_eq(fault, EPG_FRAME_PARTIAL);
    close_pair(&pair);
}
END_TEST

START_TEST(a_deadline_tells_whether_a_frame_had_begun)
{
    wire pair;
    epg_error err = {0};
    epg_frame frame;
    epg_frame_fault fault;
    open_pair(&pair, LIMIT);
    epg_assert_code(epg_channel_receive(&pair.channel, &frame, epg_deadline_after_ns(short_time), &fault, &err),
                    EPG_ERR_TIMEOUT, &err);
    ck_assert_int_eq(fault, EPG_FRAME_OK);
    put(&pair, "\0\0\0\10\1", 5);
    epg_assert_code(epg_channel_receive(&pair.channel, &frame, epg_deadline_after_ns(short_time), &fault, &err),
                    EPG_ERR_TIMEOUT, &err);
    ck_assert_int_eq(fault, EPG_FRAME_PARTIAL);
    /* A frame that is there is taken even when the time is over. */
    put(&pair, "\0\0\0\1abc", 7);
    epg_assert_ok(epg_channel_receive(&pair.channel, &frame, 0, &fault, &err), &err);
    ck_assert(epg_span_equal(frame.body, epg_span_text("abc")));
    close_pair(&pair);
}
END_TEST

/* A byte at a time, for ever, must not stretch the deadline. */
START_TEST(a_peer_that_drips_bytes_runs_into_the_deadline)
{
    wire pair;
    epg_error err = {0};
    epg_frame frame;
    epg_frame_fault fault;
    open_pair(&pair, BIG_LIMIT);
    pid_t writer = fork();
    if (writer == 0) {
        (void)signal(SIGPIPE, SIG_DFL);
        put(&pair, "\0\20\0\0", 4);
        for (;;) {
            put(&pair, "x", 1);
        }
    }
    int64_t deadline = epg_deadline_after_ns(short_time);
    epg_assert_code(epg_channel_receive(&pair.channel, &frame, deadline, &fault, &err), EPG_ERR_TIMEOUT, &err);
    ck_assert_int_eq(fault, EPG_FRAME_PARTIAL);
    ck_assert_int_eq(kill(writer, SIGKILL), 0);
    ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
    close_pair(&pair);
}
END_TEST

/* The peer answers ahead and stops reading: our write ends at its deadline, and the channel is of no more use. */
START_TEST(a_peer_that_stops_reading_cannot_hold_us)
{
    wire pair;
    epg_error err = {0};
    open_pair(&pair, LIMIT);
    put(&pair, "\0\0\0\5\1\0\0\0\1", 9);
    size_t size = BIG_LIMIT;
    EPG_AUTO_FREE uint8_t *body = epg_alloc(size);
    epg_assert_code(
        epg_channel_send(&pair.channel, 1, 1, epg_span_of(body, size), epg_deadline_after_ns(short_time), &err),
        EPG_ERR_TIMEOUT, &err);
    epg_assert_code(epg_channel_send(&pair.channel, 1, 2, epg_span_text("x"), in_time(), &err), EPG_ERR_CLOSED, &err);
    close_pair(&pair);
}
END_TEST

START_TEST(small_frames_to_a_peer_that_stops_reading_end_at_the_deadline_too)
{
    wire pair;
    epg_error err = {0};
    open_pair(&pair, LIMIT);
    epg_code code = EPG_OK;
    int64_t deadline = epg_deadline_after_ns(EPG_SECOND);
    for (uint32_t i = 0; code == EPG_OK && i < 100000; i++) {
        code = epg_channel_send(&pair.channel, 1, i, epg_span_text("a small body"), deadline, &err);
    }
    ck_assert_int_eq(code, EPG_ERR_TIMEOUT);
    close_pair(&pair);
}
END_TEST

/* Much more than a pipe holds goes both ways at once, with a peer that reads slowly. */
START_TEST(a_large_frame_passes_whole_through_a_small_pipe)
{
    wire pair;
    epg_error err = {0};
    open_pair(&pair, BIG_LIMIT);
    size_t size = BIG_LIMIT;
    EPG_AUTO_FREE uint8_t *body = epg_alloc(size);
    for (size_t i = 0; i < size; i++) {
        body[i] = (uint8_t)(i * 2654435761U >> 13);
    }
    pid_t echo = fork();
    if (echo == 0) {
        epg_channel peer;
        epg_frame frame;
        epg_channel_open(&peer, pair.from_channel, pair.to_channel, BIG_LIMIT);
        bool good = epg_channel_receive(&peer, &frame, in_time(), NULL, NULL) == EPG_OK &&
                    epg_channel_send(&peer, frame.type, frame.sequence, frame.body, in_time(), NULL) == EPG_OK;
        _exit(good ? 0 : 1);
    }
    epg_frame frame;
    epg_assert_ok(epg_channel_send2(&pair.channel, 9, 77, epg_span_of(body, 1000),
                                    epg_span_of(body + 1000, size - 1000), in_time(), &err),
                  &err);
    epg_assert_ok(epg_channel_receive(&pair.channel, &frame, in_time(), NULL, &err), &err);
    ck_assert_uint_eq(frame.type, 9);
    ck_assert_uint_eq(frame.sequence, 77);
    ck_assert(epg_span_equal(frame.body, epg_span_of(body, size)));
    ck_assert_int_eq(waitpid(echo, NULL, 0), echo);
    close_pair(&pair);
}
END_TEST

START_TEST(a_peer_that_is_gone_is_an_error_and_not_a_signal)
{
    wire pair;
    epg_error err = {0};
    open_pair(&pair, LIMIT);
    shut(&pair.from_channel);
    epg_assert_code(epg_channel_send(&pair.channel, 1, 1, epg_span_text("x"), in_time(), &err), EPG_ERR_CLOSED, &err);
    close_pair(&pair);
}
END_TEST

START_TEST(a_body_over_what_a_length_can_tell_is_refused)
{
    wire pair;
    epg_error err = {0};
    open_pair(&pair, LIMIT);
    epg_span huge = epg_span_of("", (size_t)UINT32_MAX - 4); /* never read */
    epg_assert_code(epg_channel_send(&pair.channel, 1, 1, huge, in_time(), &err), EPG_ERR_LIMIT, &err);
    epg_assert_code(
        epg_channel_send2(&pair.channel, 1, 1, epg_span_of("", SIZE_MAX - 2), epg_span_of("", 7), in_time(), &err),
        EPG_ERR_LIMIT, &err);
    /* Nothing was sent: the channel is as good as before. */
    epg_assert_ok(epg_channel_send(&pair.channel, 1, 1, epg_span_text("x"), in_time(), &err), &err);
    close_pair(&pair);
}
END_TEST

START_TEST(a_readable_cancel_descriptor_ends_a_wait)
{
    wire pair;
    epg_error err = {0};
    epg_frame frame;
    int cancel[2];
    ck_assert_int_eq(pipe2(cancel, O_CLOEXEC), 0);
    open_pair(&pair, LIMIT);
    pair.channel.cancel = cancel[0];
    ck_assert_int_eq(write(cancel[1], "!", 1), 1);
    epg_assert_code(epg_channel_receive(&pair.channel, &frame, EPG_NEVER, NULL, &err), EPG_ERR_INTERRUPTED, &err);
    EPG_AUTO_FREE uint8_t *body = epg_alloc(BIG_LIMIT);
    epg_assert_code(epg_channel_send(&pair.channel, 1, 1, epg_span_of(body, BIG_LIMIT), EPG_NEVER, &err),
                    EPG_ERR_INTERRUPTED, &err);
    (void)close(cancel[0]);
    (void)close(cancel[1]);
    close_pair(&pair);
}
END_TEST

START_TEST(what_a_peer_says_early_is_pending)
{
    wire pair;
    epg_error err = {0};
    epg_frame frame;
    open_pair(&pair, LIMIT);
    ck_assert(!epg_channel_pending(&pair.channel));
    put(&pair, "\0\0\0\5\1\0\0\0\1", 9);
    ck_assert(epg_channel_pending(&pair.channel)); /* readable, not yet read */
    epg_assert_ok(epg_channel_receive(&pair.channel, &frame, in_time(), NULL, &err), &err);
    ck_assert(!epg_channel_pending(&pair.channel));
    put(&pair, "\0\0\0\5\1\0\0\0\2\0", 10);
    epg_assert_ok(epg_channel_receive(&pair.channel, &frame, in_time(), NULL, &err), &err);
    ck_assert(epg_channel_pending(&pair.channel)); /* read along, one byte of the next */
    close_pair(&pair);

    open_pair(&pair, LIMIT);
    shut(&pair.to_channel);
    ck_assert(!epg_channel_pending(&pair.channel)); /* an end is not speech */
    close_pair(&pair);
}
END_TEST

START_TEST(a_poll_loop_takes_frames_without_waiting)
{
    wire pair;
    epg_error err = {0};
    epg_frame frame;
    bool have = true;
    open_pair(&pair, LIMIT);
    epg_assert_ok(epg_channel_fill(&pair.channel, &err), &err); /* nothing there: no wait, no error */
    epg_assert_ok(epg_channel_next(&pair.channel, &frame, &have, NULL, &err), &err);
    ck_assert(!have);
    put(&pair, "\0\0\0\6\1\0\0\0\1a\0\0\0\6\1\0\0\0\2b\0\0", 22);
    epg_assert_ok(epg_channel_fill(&pair.channel, &err), &err);
    for (uint32_t i = 1; i <= 2; i++) {
        epg_assert_ok(epg_channel_next(&pair.channel, &frame, &have, NULL, &err), &err);
        ck_assert(have);
        ck_assert_uint_eq(frame.sequence, i);
    }
    epg_assert_ok(epg_channel_next(&pair.channel, &frame, &have, NULL, &err), &err);
    ck_assert(!have);
    shut(&pair.to_channel);
    epg_assert_code(epg_channel_fill(&pair.channel, &err), EPG_ERR_CLOSED, &err);
    close_pair(&pair);
}
END_TEST

/* A peer that floods during a slow step of ours fills its pipe, not our memory. */
START_TEST(a_flood_does_not_fill_our_memory)
{
    wire pair;
    epg_error err = {0};
    static uint8_t flood[65536]; /* a frame of the largest size, then rubbish */
    epg_write_be32(flood, 5 + LIMIT);
    open_pair(&pair, LIMIT);
    for (int i = 0; i < 1000; i++) {
        int flags = fcntl(pair.to_channel, F_GETFL);
        ck_assert_int_eq(fcntl(pair.to_channel, F_SETFL, flags | O_NONBLOCK), 0);
        (void)!write(pair.to_channel, flood, sizeof flood);
        epg_assert_ok(epg_channel_fill(&pair.channel, &err), &err);
    }
    ck_assert_uint_le(pair.channel.input.size, EPG_FRAME_HEAD + LIMIT + EPG_FRAME_READ_SIZE);
    close_pair(&pair);
}
END_TEST

START_TEST(one_socket_serves_both_ways)
{
    int ends[2];
    epg_channel here;
    epg_channel there;
    epg_error err = {0};
    epg_frame frame;
    epg_frame_fault fault;
    size_t before = epg_test_open_descriptors();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    epg_channel_open(&here, ends[0], ends[0], LIMIT);
    epg_channel_open(&there, ends[1], ends[1], LIMIT);
    epg_assert_ok(epg_channel_send(&here, 1, 5, epg_span_text("ping"), in_time(), &err), &err);
    epg_assert_ok(epg_channel_receive(&there, &frame, in_time(), NULL, &err), &err);
    ck_assert(epg_span_equal(frame.body, epg_span_text("ping")));
    epg_channel_close(&here);
    epg_assert_code(epg_channel_receive(&there, &frame, in_time(), &fault, &err), EPG_ERR_CLOSED, &err);
    ck_assert_int_eq(fault, EPG_FRAME_CLOSED);
    epg_channel_close(&there);
    epg_channel_close(&there); /* twice is once */
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

static Suite *frame_suite(void)
{
    Suite *suite = suite_create("system frame");
    TCase *tests = tcase_create("frame");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_frame_has_its_bytes_on_the_wire);
    tcase_add_loop_test(tests, frames_are_received_one_by_one_however_they_are_cut, 1, 31);
    tcase_add_test(tests, a_body_of_the_bound_passes_and_one_byte_more_does_not);
    tcase_add_loop_test(tests, a_length_too_short_for_a_head_is_malformed, 0, 5);
    tcase_add_loop_test(tests, an_end_inside_a_frame_is_a_partial_frame, 1, 12);
    tcase_add_test(tests, a_deadline_tells_whether_a_frame_had_begun);
    tcase_add_test(tests, a_peer_that_drips_bytes_runs_into_the_deadline);
    tcase_add_test(tests, a_peer_that_stops_reading_cannot_hold_us);
    tcase_add_test(tests, small_frames_to_a_peer_that_stops_reading_end_at_the_deadline_too);
    tcase_add_test(tests, a_large_frame_passes_whole_through_a_small_pipe);
    tcase_add_test(tests, a_peer_that_is_gone_is_an_error_and_not_a_signal);
    tcase_add_test(tests, a_body_over_what_a_length_can_tell_is_refused);
    tcase_add_test(tests, a_readable_cancel_descriptor_ends_a_wait);
    tcase_add_test(tests, what_a_peer_says_early_is_pending);
    tcase_add_test(tests, a_poll_loop_takes_frames_without_waiting);
    tcase_add_test(tests, a_flood_does_not_fill_our_memory);
    tcase_add_test(tests, one_socket_serves_both_ways);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(frame_suite());
}
