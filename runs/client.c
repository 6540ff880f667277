#include "runs/client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/text.h"
#include "runs/protocol.h"
#include "system/socket.h"

enum { EXIT_REFUSED = 1, EXIT_CLIENT = 2 };
static const int64_t connect_ns = 30 * EPG_SECOND;
static const int64_t send_ns = 30 * EPG_SECOND;

static const char help[] = "Speaks with the Host of this workspace. Commands are synchronous: wait for one\n"
                           "to end before the next.\n"
                           "\n"
                           "  evopolicygym-session submit program --episodes SELECTOR\n"
                           "      evaluate program/ on Episodes of the pool, as in --episodes 0,4:8\n"
                           "  evopolicygym-session finish ID [ID...]\n"
                           "      hand over candidates and end: submission-000003, 3, best or last\n"
                           "  evopolicygym-session status\n"
                           "      what remains, and what runs now\n"
                           "  evopolicygym-session wait [ID]\n"
                           "      the result of a submit that was cut off\n"
                           "\n";

/* --- What went wrong, told --- */

static int tell_client_error(FILE *diagnostics, const char *text)
{
    EPG_AUTO_BUFFER document = {0};
    epg_json_writer json;
    EPG_AUTO_FREE char *shown = epg_printable(text, strlen(text));
    epg_json_begin(&json, &document, 0);
    epg_json_object(&json, NULL);
    epg_json_object(&json, "error");
    epg_json_put_text(&json, "code", "client_error");
    epg_json_put_text(&json, "message", shown);
    epg_json_end(&json);
    epg_json_put_bool(&json, "ok", false);
    epg_json_end(&json);
    epg_json_finish(&json);
    (void)fprintf(diagnostics, "%s\n", epg_buffer_cstr(&document));
    return EXIT_CLIENT;
}

static int tell_usage(FILE *diagnostics, const char *text)
{
    (void)fprintf(diagnostics, "evopolicygym-session: %s\n", text);
    return EXIT_CLIENT;
}

/* --- The Program --- */

static bool is_below(const char *path, const char *directory)
{
    size_t size = strlen(directory);
    return strncmp(path, directory, size) == 0 && (path[size] == '\0' || path[size] == '/');
}

/* What `path` means when it is taken from the workspace, where the working directory lies inside it; else NULL. */
static char *resolve_from_workspace(const char *path, const char *workspace)
{
    EPG_AUTO_FREE char *here = realpath(".", NULL);
    if (path[0] == '/' || here == NULL || !is_below(here, workspace)) {
        return NULL;
    }
    EPG_AUTO_FREE char *joined = epg_format("%s/%s", workspace, path);
    return realpath(joined, NULL);
}

/* The Host captures the workspace's Program, whatever is named here: so anything else that is named is an error. */
static epg_code check_program(const char *path, epg_error *err)
{
    const char *named = getenv("EVOPOLICYGYM_WORKSPACE");
    if (named == NULL || *named == '\0') {
        return epg_fail(err, EPG_ERR_USAGE, "EVOPOLICYGYM_WORKSPACE is not set: run this inside a session");
    }
    EPG_AUTO_FREE char *workspace = realpath(named, NULL);
    EPG_AUTO_FREE char *joined = epg_format("%s/program", workspace != NULL ? workspace : named);
    EPG_AUTO_FREE char *program = realpath(joined, NULL);
    if (workspace == NULL || program == NULL) {
        return epg_fail(err, EPG_ERR_NOT_FOUND, "the workspace's program directory '%s' is not there", joined);
    }
    EPG_AUTO_FREE char *meant = realpath(path, NULL);
    if (meant == NULL) {
        meant = resolve_from_workspace(path, workspace);
    }
    if (meant == NULL || strcmp(meant, program) != 0) {
        return epg_fail(err, EPG_ERR_USAGE, "only the workspace's program directory can be submitted: name %s", joined);
    }
    return EPG_OK;
}

/* --- One exchange with the Host --- */

static epg_code wait_for(int fd, short events, int64_t deadline, epg_error *err)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = events};
        int ready = poll(&one, 1, epg_poll_timeout_ms(deadline));
        if (ready > 0) {
            return EPG_OK;
        }
        if (ready < 0 && errno != EINTR) {
            return epg_fail_errno(err, errno, "waiting for the Host failed");
        }
        if (ready == 0 && epg_monotonic_ns() >= deadline) {
            return epg_fail(err, EPG_ERR_TIMEOUT,
                            "no answer in time; a submit that was begun goes on: evopolicygym-session wait");
        }
    }
}

static epg_code send_all(int fd, epg_span frame, epg_error *err)
{
    int64_t deadline = epg_deadline_after_ns(send_ns);
    for (size_t sent = 0; sent < frame.size;) {
        EPG_TRY(wait_for(fd, POLLOUT, deadline, err));
        ssize_t put = send(fd, frame.data + sent, frame.size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put >= 0) {
            sent += (size_t)put;
        } else if (errno != EAGAIN && errno != EINTR) {
            return epg_fail_errno(err, errno, "the Host did not take the request");
        }
    }
    return EPG_OK;
}

static epg_code receive_frame(int fd, int64_t deadline, epg_buffer *input, epg_span *body, epg_error *err)
{
    for (;;) {
        switch (epg_session_frame(epg_buffer_span(input), body)) {
        case EPG_FRAME_WHOLE:
            return EPG_OK;
        case EPG_FRAME_INVALID:
            return epg_fail(err, EPG_ERR_PROTOCOL, "the reply is not a frame of %s", EPG_SESSION_PROTOCOL);
        case EPG_FRAME_INCOMPLETE:
            break;
        }
        EPG_TRY(wait_for(fd, POLLIN, deadline, err));
        uint8_t *place = epg_buffer_reserve(input, 4096);
        ssize_t got = recv(fd, place, 4096, 0);
        if (got == 0 || (got < 0 && errno == ECONNRESET)) {
            return epg_fail(err, EPG_ERR_CLOSED, "the Host closed the connection after %zu bytes of its reply",
                            input->size);
        }
        if (got < 0 && errno != EINTR) {
            return epg_fail_errno(err, errno, "the reply could not be read");
        }
        input->size += got > 0 ? (size_t)got : 0;
    }
}

static epg_code exchange(epg_span request, int64_t deadline, epg_buffer *input, epg_span *body, epg_error *err)
{
    const char *path = getenv("EVOPOLICYGYM_SESSION_SOCKET");
    EPG_AUTO_CLOSE int fd = -1;
    if (path == NULL || *path == '\0') {
        return epg_fail(err, EPG_ERR_USAGE, "EVOPOLICYGYM_SESSION_SOCKET is not set: run this inside a session");
    }
    EPG_TRY(epg_socket_connect(path, epg_deadline_after_ns(connect_ns), &fd, err));
    EPG_TRY(send_all(fd, request, err));
    return receive_frame(fd, deadline, input, body, err);
}

/* Whether the reply is one, and what it says. */
static epg_code judge(epg_span body, bool *ok, epg_error *err)
{
    EPG_AUTO_JSON *reply = epg_session_decode(body);
    const char *protocol = json_string_value(json_object_get(reply, "protocol"));
    const json_t *verdict = json_object_get(reply, "ok");
    if (protocol == NULL || strcmp(protocol, EPG_SESSION_PROTOCOL) != 0 || !json_is_boolean(verdict)) {
        return epg_fail(err, EPG_ERR_PROTOCOL, "the reply is not one of %s", EPG_SESSION_PROTOCOL);
    }
    *ok = json_is_true(verdict);
    return EPG_OK;
}

static int speak(epg_span request, int64_t deadline, FILE *out, FILE *diagnostics)
{
    EPG_AUTO_BUFFER input = {0};
    epg_span body = {0};
    epg_error err = {0};
    bool ok = false;
    if (exchange(request, deadline, &input, &body, &err) != EPG_OK || judge(body, &ok, &err) != EPG_OK) {
        return tell_client_error(diagnostics, err.text);
    }
    FILE *where = ok ? out : diagnostics;
    (void)fwrite(body.data, 1, body.size, where);
    (void)fputc('\n', where);
    if (fflush(where) != 0) {
        return tell_client_error(diagnostics, "the reply could not be written out");
    }
    return ok ? EXIT_SUCCESS : EXIT_REFUSED;
}

/* --- Commands --- */

typedef struct command {
    const epg_options *options;
    const char *const *operands; /* after the command's name */
    size_t count;
    int64_t deadline;
    FILE *out;
    FILE *diagnostics;
} command;

static int run_submit(const command *c)
{
    epg_indices indices EPG_CLEANUP(epg_indices_free) = {0};
    EPG_AUTO_BUFFER request = {0};
    epg_error err = {0};
    const char *episodes = epg_option_text(c->options, "episodes");
    if (c->count != 1 || episodes == NULL) {
        return tell_usage(c->diagnostics, "submit needs the Program and Episodes: submit program --episodes 0,4:8");
    }
    if (epg_selector_parse(episodes, &indices, &err) != EPG_OK) {
        EPG_AUTO_FREE char *text = epg_format("--episodes: %s", err.text);
        return tell_usage(c->diagnostics, text);
    }
    if (check_program(c->operands[0], &err) != EPG_OK) {
        return tell_client_error(c->diagnostics, err.text);
    }
    epg_request_submit(&request, &indices);
    return speak(epg_buffer_span(&request), c->deadline, c->out, c->diagnostics);
}

static int run_finish(const command *c)
{
    EPG_AUTO_BUFFER request = {0};
    if (c->count == 0) {
        return tell_usage(c->diagnostics,
                          "finish needs at least one submission: finish submission-000001, 1, best or last");
    }
    for (size_t i = 0; i < c->count; i++) {
        if (!epg_utf8_valid(c->operands[i], strlen(c->operands[i]))) {
            return tell_usage(c->diagnostics, "a submission is named as submission-000001, 1, best or last");
        }
    }
    epg_request_finish(&request, c->operands, c->count);
    if (request.size > EPG_SESSION_FRAME_HEAD + EPG_SESSION_FRAME_MAX) {
        return tell_usage(c->diagnostics, "too many submission ids for one request");
    }
    return speak(epg_buffer_span(&request), c->deadline, c->out, c->diagnostics);
}

static int run_status(const command *c)
{
    EPG_AUTO_BUFFER request = {0};
    if (c->count != 0) {
        return tell_usage(c->diagnostics, "status takes no arguments");
    }
    epg_request_status(&request);
    return speak(epg_buffer_span(&request), c->deadline, c->out, c->diagnostics);
}

static int run_wait(const command *c)
{
    EPG_AUTO_BUFFER request = {0};
    if (c->count > 1 || (c->count == 1 && epg_submission_number(c->operands[0]) == 0)) {
        return tell_usage(c->diagnostics, "wait takes one submission id or nothing: wait submission-000001");
    }
    epg_request_wait(&request, c->count == 1 ? c->operands[0] : NULL);
    return speak(epg_buffer_span(&request), c->deadline, c->out, c->diagnostics);
}

static const struct {
    const char *name;
    int (*run)(const command *c);
} commands[] = {{"submit", run_submit}, {"finish", run_finish}, {"status", run_status}, {"wait", run_wait}};

static int tell_unknown(FILE *diagnostics, const char *name)
{
    const char *known[EPG_COUNT(commands)];
    for (size_t i = 0; i < EPG_COUNT(commands); i++) {
        known[i] = commands[i].name;
    }
    const char *nearest = epg_nearest_word(name, known, EPG_COUNT(commands));
    EPG_AUTO_FREE char *shown = epg_printable(name, strlen(name));
    EPG_AUTO_FREE char *text =
        nearest != NULL
            ? epg_format("no command \"%s\"; did you mean \"%s\"?", shown, nearest)
            : epg_format("no command \"%s\"; there are submit, finish, status and wait; --help explains them", shown);
    return tell_usage(diagnostics, text);
}

static int dispatch(const epg_options *options, FILE *out, FILE *diagnostics)
{
    epg_error err = {0};
    double seconds = 0;
    if (epg_option_given(options, "help")) {
        EPG_AUTO_BUFFER text = {0};
        epg_options_help(options, &text);
        (void)fprintf(out, "%s%s", help, epg_buffer_cstr(&text));
        return EXIT_SUCCESS;
    }
    if (epg_option_seconds(options, "timeout", &seconds, &err) != EPG_OK) {
        return tell_usage(diagnostics, err.text);
    }
    const char *name = options->operand_count > 0 ? options->operands[0] : "";
    for (size_t i = 0; i < EPG_COUNT(commands); i++) {
        if (strcmp(name, commands[i].name) != 0) {
            continue;
        }
        if (i != 0 && epg_option_given(options, "episodes")) {
            return tell_usage(diagnostics, "--episodes belongs to submit");
        }
        command c = {.options = options,
                     .operands = options->operands + 1,
                     .count = options->operand_count - 1,
                     .deadline = seconds > 0 ? epg_deadline_after_seconds(seconds) : EPG_NEVER,
                     .out = out,
                     .diagnostics = diagnostics};
        return commands[i].run(&c);
    }
    if (*name == '\0') {
        return tell_usage(diagnostics, "name a command: submit, finish, status or wait; --help explains them");
    }
    return tell_unknown(diagnostics, name);
}

int epg_client_main(int argc, char *const argv[], FILE *out, FILE *diagnostics)
{
    static const epg_option table[] = {
        {.name = "episodes",
         .kind = EPG_OPTION_VALUE,
         .value_name = "SELECTOR",
         .help = "indices and half-open ranges, increasing: 0,4:8"},
        {.name = "timeout",
         .kind = EPG_OPTION_VALUE,
         .value_name = "SECONDS",
         .help = "give up waiting for the answer (no limit);\na submit goes on, and wait gets its result"},
        {.name = "help", .short_name = 'h', .kind = EPG_OPTION_FLAG, .help = "show this"},
        EPG_OPTIONS_END,
    };
    epg_options options = {0};
    epg_error err = {0};
    epg_options_add(&options, table);
    epg_code code = epg_options_parse(&options, argc > 0 ? argc - 1 : 0, argv + 1, &err);
    int exit_code = code == EPG_OK ? dispatch(&options, out, diagnostics) : tell_usage(diagnostics, err.text);
    epg_options_free(&options);
    return exit_code;
}
