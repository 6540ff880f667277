/* epg-replay-session SESSIONS NAME: an Agent that replays the exchanges of one recorded session from within a Run's
 * workspace, and writes to analysis/replay.txt one line for each answer that is not what was recorded.
 *
 * Two recorded sessions need a Host that fails. This Agent brings that about as a hostile one could: where a
 * publication must fail, it puts an obstacle in its way and a file where obstacles are moved to; where the Host itself
 * must fail, it takes the Run's git store away. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "runs/protocol.h"
#include "system/socket.h"

static FILE *findings;

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c - 'a' + 10;
}

static void from_hex(const char *hex, epg_buffer *out)
{
    for (; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
        (void)epg_buffer_byte(out, (uint8_t)(nibble(hex[0]) << 4 | nibble(hex[1])));
    }
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        (void)fprintf(findings, "can't write %s: %s\n", path, strerror(errno));
    }
}

static void build_request(const json_t *exchange, epg_buffer *out)
{
    const char *hex = json_string_value(json_object_get(exchange, "request_hex"));
    if (hex != NULL) {
        from_hex(hex, out);
        return;
    }
    epg_indices indices = {epg_alloc_array(2049, sizeof(uint64_t)), 2049};
    for (size_t i = 0; i < indices.count; i++) {
        indices.items[i] = i;
    }
    epg_request_submit(out, &indices);
    epg_indices_free(&indices);
}

static void talk(epg_span request, epg_buffer *reply)
{
    epg_error err = {0};
    EPG_AUTO_CLOSE int fd = -1;
    const char *path = getenv("EVOPOLICYGYM_SESSION_SOCKET");
    if (epg_socket_connect(path != NULL ? path : "", epg_deadline_after_ns(30 * EPG_SECOND), &fd, &err) != EPG_OK) {
        (void)fprintf(findings, "%s\n", err.text);
        return;
    }
    (void)send(fd, request.data, request.size, MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    for (;;) {
        uint8_t *place = epg_buffer_reserve(reply, 4096);
        ssize_t got = recv(fd, place, 4096, 0);
        if (got <= 0) {
            return;
        }
        reply->size += (size_t)got;
    }
}

/* {"method":"status"} is a request of ours that the recorded Host did not know. */
static bool is_status(const json_t *exchange)
{
    const char *method = json_string_value(json_object_get(json_object_get(exchange, "request"), "method"));
    return method != NULL && strcmp(method, "status") == 0;
}

static bool as_recorded(const json_t *exchange, epg_span reply)
{
    epg_span body = {0};
    EPG_AUTO_BUFFER expected = {0};
    const char *hex = json_string_value(json_object_get(exchange, "response_hex"));
    if (hex != NULL) {
        from_hex(hex, &expected);
        return epg_span_equal(epg_buffer_span(&expected), reply);
    }
    EPG_AUTO_JSON *object = epg_session_frame(reply, &body) == EPG_FRAME_WHOLE ? epg_session_decode(body) : NULL;
    if (is_status(exchange)) {
        return json_is_true(json_object_get(object, "ok"));
    }
    (void)json_object_del(json_object_get(object, "error"), "message");
    return object != NULL && json_equal(object, json_object_get(exchange, "response")) != 0;
}

static void sabotage(const char *name)
{
    if (strcmp(name, "publication-failed") == 0) {
        (void)mkdir("feedback/submissions/submission-000001", 0700);
        write_text("../displaced", "");
    } else if (strcmp(name, "session-failed") == 0) {
        (void)rename("../history.git", "../taken.git");
    }
}

static void replay(const json_t *vector, const char *name)
{
    const json_t *exchanges = json_object_get(vector, "exchanges");
    sabotage(name);
    for (size_t i = 0; i < json_array_size(exchanges); i++) {
        const json_t *exchange = json_array_get(exchanges, i);
        const char *policy = json_string_value(json_object_get(exchange, "policy_source_before"));
        EPG_AUTO_BUFFER request = {0};
        EPG_AUTO_BUFFER reply = {0};
        if (policy != NULL) {
            write_text("program/policy.py", policy);
        }
        build_request(exchange, &request);
        talk(epg_buffer_span(&request), &reply);
        if (!as_recorded(exchange, epg_buffer_span(&reply))) {
            (void)fprintf(findings, "exchange %zu: %s\n", i,
                          reply.size > 4 ? epg_buffer_cstr(&reply) + 4 : "no answer");
        }
    }
}

int main(int argc, char *argv[])
{
    EPG_AUTO_JSON *document = argc == 3 ? json_load_file(argv[1], 0, NULL) : NULL;
    findings = fopen("analysis/replay.txt", "we");
    if (document == NULL || findings == NULL) {
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < json_array_size(document); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(document, i), "name"));
        if (name != NULL && strcmp(name, argv[2]) == 0) {
            replay(json_array_get(document, i), name);
        }
    }
    return fclose(findings) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
