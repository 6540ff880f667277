#include "runs/progress.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/options.h"
#include "base/text.h"

static const char schema[] = "evopolicygym/progress/v1";
enum { TIME_COLUMNS = 12 };
static const char clear_line[] = "\r\x1b[K";

epg_code epg_progress_mode_parse(const char *text, epg_progress_mode *out, epg_error *err)
{
    static const char *const names[] = {"auto", "plain", "json", "none"};
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (epg_progress_mode)i;
            return EPG_OK;
        }
    }
    return epg_fail(err, EPG_ERR_USAGE, "--progress takes auto, plain, json or none");
}

/* Waits for a reader that is slow, but once only for one that has stopped: until it reads again, nothing is waited for.
 */
static bool takes_more(epg_progress *progress)
{
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    int64_t deadline = progress->stuck ? 0 : epg_deadline_after_ns(EPG_SECOND);
    int ready = 0;
    do {
        ready = poll(&fd, 1, epg_poll_timeout_ms(deadline));
    } while (ready < 0 && errno == EINTR);
    progress->stuck = ready == 0;
    return ready > 0;
}

/* What can't be written is not written: progress must never stop a Run. */
static void put(epg_progress *progress, const char *text, size_t size)
{
    while (size > 0 && takes_more(progress)) {
        ssize_t wrote = write(STDERR_FILENO, text, size < PIPE_BUF ? size : PIPE_BUF); /* a ready pipe takes so much */
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return;
        }
        text += wrote;
        size -= (size_t)wrote;
    }
}

void epg_progress_open(epg_progress *progress, epg_progress_mode mode)
{
    const char *term = getenv("TERM");
    bool terminal = isatty(STDERR_FILENO) == 1 && (term == NULL || strcmp(term, "dumb") != 0);
    *progress = (epg_progress){.mode = mode == EPG_PROGRESS_AUTO ? EPG_PROGRESS_PLAIN : mode,
                               .live = mode == EPG_PROGRESS_AUTO && terminal,
                               .began = epg_monotonic_ns()};
}

static void hide(epg_progress *progress)
{
    if (progress->shown) {
        put(progress, clear_line, sizeof clear_line - 1);
        progress->shown = false;
    }
}

static void line_json(const char *event, const char *text, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 0);
    epg_json_object(&writer, NULL);
    epg_json_put_text(&writer, "event", event);
    epg_json_put_text(&writer, "schema", schema);
    epg_json_put_text(&writer, "text", text);
    epg_json_put_i64(&writer, "time_unix_ns", epg_unix_ns());
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

char *epg_progress_episodes(uint64_t count, uint64_t failed)
{
    unsigned long long all = count;
    return failed > 0
               ? epg_format("%llu of %llu Episode%s failed", (unsigned long long)failed, all, all == 1 ? "" : "s")
               : epg_format("%llu Episode%s", all, all == 1 ? "" : "s");
}

void epg_progress_line(epg_progress *progress, const char *event, const char *format, ...)
{
    if (progress->mode == EPG_PROGRESS_NONE) {
        return;
    }
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0) {
        return;
    }
    EPG_AUTO_FREE char *safe = epg_printable(text, (size_t)size);
    free(text);
    EPG_AUTO_BUFFER out = {0};
    if (progress->mode == EPG_PROGRESS_JSON) {
        line_json(event, safe, &out);
        (void)epg_buffer_byte(&out, '\n');
    } else {
        EPG_AUTO_FREE char *time = epg_duration_text(epg_monotonic_ns() - progress->began);
        (void)epg_buffer_format(&out, "%10s  ", time);
        epg_fill_text(safe, TIME_COLUMNS, TIME_COLUMNS, &out);
    }
    hide(progress);
    put(progress, epg_buffer_cstr(&out), out.size);
}

static void state_json(const epg_progress_state *state, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 0);
    epg_json_object(&writer, NULL);
    if (state->has_best) {
        epg_json_put_double(&writer, "best_score", state->best);
        epg_json_put_text(&writer, "best_submission", state->best_submission);
    }
    epg_json_put_u64(&writer, "episode_budget", state->budget);
    epg_json_put_u64(&writer, "episodes_completed", state->completed);
    epg_json_put_u64(&writer, "episodes_remaining", state->budget_remaining);
    epg_json_put_u64(&writer, "episodes_total", state->total);
    epg_json_put_text(&writer, "event", "progress");
    epg_json_put_text(&writer, "phase", state->phase);
    epg_json_put_text(&writer, "schema", schema);
    if (state->has_score) {
        epg_json_put_double(&writer, "score", state->score);
    }
    if (state->deadline != EPG_NEVER) {
        int64_t left = state->deadline - epg_monotonic_ns();
        epg_json_put_double(&writer, "seconds_remaining", left > 0 ? (double)left / 1e9 : 0);
    }
    epg_json_put_text(&writer, "submission_id", state->submission);
    epg_json_put_u64(&writer, "submissions", state->submissions);
    epg_json_put_i64(&writer, "time_unix_ns", epg_unix_ns());
    epg_json_end(&writer);
    epg_json_finish(&writer);
    (void)epg_buffer_byte(out, '\n');
}

static void state_text(const epg_progress_state *state, epg_buffer *out)
{
    (void)epg_buffer_format(out, "%s", state->phase);
    if (state->submission != NULL) {
        (void)epg_buffer_format(out, " | %s %llu/%llu", state->submission, (unsigned long long)state->completed,
                                (unsigned long long)state->total);
    } else if (strcmp(state->phase, "agent") == 0) {
        (void)epg_buffer_text(out, " at work");
    }
    if (state->has_score) {
        (void)epg_buffer_format(out, " | score %.5g", state->score);
    }
    if (state->has_best) {
        (void)epg_buffer_format(out, " | best %.5g", state->best);
    }
    (void)epg_buffer_format(out, " | %llu/%llu Episodes left", (unsigned long long)state->budget_remaining,
                            (unsigned long long)state->budget);
    if (state->deadline != EPG_NEVER) {
        int64_t left = state->deadline - epg_monotonic_ns();
        EPG_AUTO_FREE char *text = epg_duration_text(left > 0 ? left / EPG_SECOND * EPG_SECOND : 0);
        (void)epg_buffer_format(out, " | %s left", left >= EPG_SECOND ? text : "0 s");
    }
}

static size_t terminal_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void epg_progress_show(epg_progress *progress, const epg_progress_state *state, bool now)
{
    int64_t period = progress->mode == EPG_PROGRESS_JSON ? EPG_SECOND : EPG_SECOND / 10;
    int64_t time = epg_monotonic_ns();
    if ((!progress->live && progress->mode != EPG_PROGRESS_JSON) || (!now && time - progress->last < period)) {
        return;
    }
    progress->last = time;
    EPG_AUTO_BUFFER out = {0};
    if (progress->mode == EPG_PROGRESS_JSON) {
        state_json(state, &out);
        put(progress, epg_buffer_cstr(&out), out.size);
        return;
    }
    (void)epg_buffer_text(&out, clear_line);
    state_text(state, &out);
    size_t width = terminal_width();
    size_t size = out.size - (sizeof clear_line - 1) < width ? out.size : width - 1 + sizeof clear_line - 1;
    put(progress, epg_buffer_cstr(&out), size);
    progress->shown = true;
}

void epg_progress_close(epg_progress *progress)
{
    hide(progress);
}
