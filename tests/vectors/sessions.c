/* sessions.json: recorded exchanges between a client and a Host, replayed over a real socket against gateway, session,
 * ledger and publication (support/host.h). An answer with ok: true must be the same bytes, an error the same but for
 * its message, and the ledger must gain the same events with the same fields.
 *
 * One exchange differs on purpose: {"method":"status"} is a request of ours that the recorded Host did not know. */
#include <string.h>
#include <sys/socket.h>

#include "support/host.h"
#include "support/support.h"
#include "vectors/vectors.h"

static const char first_policy[] = "class P:\n    def act(self, o):\n        return 1\ndef make_policy(context):\n"
                                   "    return P()\n";

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

static void build_request(const json_t *exchange, epg_buffer *out)
{
    const char *hex = json_string_value(json_object_get(exchange, "request_hex"));
    if (hex != NULL) {
        from_hex(hex, out);
        return;
    }
    epg_indices indices = {epg_alloc_array(2049, sizeof(uint64_t)),
                           2049}; /* the one that is too long to be written out */
    for (size_t i = 0; i < indices.count; i++) {
        indices.items[i] = i;
    }
    epg_request_submit(out, &indices);
    epg_indices_free(&indices);
}

/* --- Comparing --- */

static bool same_reply(const json_t *exchange, epg_span reply, json_t *object)
{
    const char *hex = json_string_value(json_object_get(exchange, "response_hex"));
    if (hex != NULL) {
        EPG_AUTO_BUFFER expected = {0};
        from_hex(hex, &expected);
        return epg_span_equal(epg_buffer_span(&expected), reply);
    }
    json_t *error = json_object_get(object, "error");
    const char *message = json_string_value(json_object_get(error, "message"));
    bool told = message != NULL && *message != '\0';
    (void)json_object_del(error, "message");
    return told && json_equal(object, json_object_get(exchange, "response")) != 0;
}

typedef struct event_check {
    const json_t *expected;
    size_t skip; /* lines that were there before */
    size_t seen;
    bool same;
} event_check;

static epg_code check_event(void *context, const epg_ledger_line *line, epg_error *err)
{
    static const char *const own[] = {"schema", "previous", "time_unix_ns", "monotonic_ns"};
    event_check *check = context;
    (void)err;
    if (line->number <= check->skip) {
        return EPG_OK;
    }
    EPG_AUTO_JSON *copy = json_copy((json_t *)(uintptr_t)line->object);
    for (size_t i = 0; i < EPG_COUNT(own); i++) {
        (void)json_object_del(copy, own[i]);
    }
    check->same = check->same && line->chained && json_equal(copy, json_array_get(check->expected, check->seen)) != 0;
    check->seen++;
    return EPG_OK;
}

static bool same_events(test_host *host, const json_t *exchange, size_t before)
{
    event_check check = {json_object_get(exchange, "events"), before, 0, true};
    epg_error err = {0};
    return epg_ledger_read(host->run, check_event, &check, NULL, NULL, NULL, &err) == EPG_OK && check.same &&
           check.seen == json_array_size(check.expected);
}

/* --- Replaying --- */

static bool is_our_status(const json_t *exchange)
{
    const char *method = json_string_value(json_object_get(json_object_get(exchange, "request"), "method"));
    return method != NULL && strcmp(method, "status") == 0;
}

static void replay_exchange(test_host *host, const json_t *exchange, const char *name, epg_vector_report *report)
{
    EPG_AUTO_BUFFER request = {0};
    EPG_AUTO_BUFFER reply = {0};
    EPG_AUTO_JSON *object = NULL;
    epg_span body = {0};
    size_t before = epg_ledger_count(host->ledger);
    const char *policy = json_string_value(json_object_get(exchange, "policy_source_before"));
    if (policy != NULL) {
        epg_test_write_text(host->path, "workspace/program/policy.py", policy);
    }
    build_request(exchange, &request);
    if ((json_int_t)request.size != json_integer_value(json_object_get(exchange, "request_length"))) {
        epg_vector_fail(report, name, "the request has %zu bytes", request.size);
        return;
    }
    int fd = test_connect(host);
    test_send(fd, epg_buffer_span(&request));
    (void)shutdown(fd, SHUT_WR);
    test_receive(host, fd, &reply);
    if (epg_session_frame(epg_buffer_span(&reply), &body) == EPG_FRAME_WHOLE) {
        object = epg_session_decode(body);
    }
    EPG_AUTO_FREE char *got = object != NULL ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    bool same = is_our_status(exchange) ? json_is_true(json_object_get(object, "ok"))
                                        : same_reply(exchange, epg_buffer_span(&reply), object);
    epg_vector_verdict(report, name, same && same_events(host, exchange, before), "%s to %s",
                       got != NULL ? got : "nothing",
                       request.size < 200 ? epg_buffer_cstr(&request) + (request.size > 4 ? 4 : 0) : "a long request");
}

static void replay(const json_t *vector, epg_vector_report *report)
{
    const char *name = epg_vector_name(vector);
    test_host host;
    epg_config config;
    epg_error err = {0};
    epg_config_init(&config);
    if (epg_config_from_json(&config, json_object_get(vector, "config"), name, &err) != EPG_OK) {
        epg_vector_fail(report, name, "%s", err.text);
        epg_config_free(&config);
        return;
    }
    test_host_open(&host, &config, first_policy, NULL);
    host.fail_session = strcmp(name, "session-failed") == 0;
    host.fail_publication = strcmp(name, "publication-failed") == 0;
    const json_t *exchanges = json_object_get(vector, "exchanges");
    for (size_t i = 0; i < json_array_size(exchanges); i++) {
        EPG_AUTO_FREE char *label = epg_format("%s %zu", name, i);
        replay_exchange(&host, json_array_get(exchanges, i), label, report);
    }
    bool closed = host.session.end != EPG_SESSION_OPEN;
    bool failed = json_is_string(json_object_get(vector, "session_terminal_reason"));
    epg_vector_verdict(report, name,
                       closed == json_is_true(json_object_get(vector, "authority_closed")) &&
                           failed == (host.session.end == EPG_SESSION_FAILED),
                       "the session ended as %d", (int)host.session.end);
    test_host_close(&host);
}

void epg_vectors_sessions(const json_t *document, epg_vector_report *report)
{
    for (size_t i = 0; i < json_array_size(document); i++) {
        replay(json_array_get(document, i), report);
    }
}
