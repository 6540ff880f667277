#include "cli/shown.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"

void epg_shown_begin(epg_shown *shown)
{
    *shown = (epg_shown){.colour = epg_cli_is_terminal(STDOUT_FILENO), .terminal = isatty(STDOUT_FILENO) == 1};
}

void epg_shown_free(epg_shown *shown)
{
    epg_buffer_free(&shown->text);
}

static const char *code_of(epg_shade shade)
{
    static const char *const codes[] = {"\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[1m"};
    return codes[shade];
}

void epg_shown_shade(epg_shown *shown, epg_shade shade, const char *text)
{
    if (shown->colour) {
        (void)epg_buffer_format(&shown->text, "%s%s\x1b[0m", code_of(shade), text);
    } else {
        (void)epg_buffer_text(&shown->text, text);
    }
}

void epg_shown_line(epg_shown *shown, const char *text)
{
    EPG_AUTO_FREE char *safe = text != NULL ? epg_printable(text, strlen(text)) : epg_strdup("-");
    (void)epg_buffer_text(&shown->text, safe);
}

/* One line without its newline; tabs stay. */
static void put_safe(epg_shown *shown, const char *line, size_t size)
{
    if (!shown->terminal) {
        (void)epg_buffer_append(&shown->text, line, size);
        return;
    }
    while (size > 0) {
        const char *tab = memchr(line, '\t', size);
        size_t part = tab != NULL ? (size_t)(tab - line) : size;
        EPG_AUTO_FREE char *safe = epg_printable(line, part);
        (void)epg_buffer_text(&shown->text, safe);
        if (tab != NULL) {
            (void)epg_buffer_byte(&shown->text, '\t');
            part++;
        }
        line += part;
        size -= part;
    }
}

void epg_shown_text(epg_shown *shown, const char *text, size_t size, const char *indent)
{
    while (size > 0) {
        const char *newline = memchr(text, '\n', size);
        size_t part = newline != NULL ? (size_t)(newline - text) : size;
        (void)epg_buffer_text(&shown->text, indent);
        put_safe(shown, text, part);
        (void)epg_buffer_byte(&shown->text, '\n');
        part += newline != NULL;
        text += part;
        size -= part;
    }
}

static const char *diff_colour(const char *line, size_t size)
{
    if (size >= 3 && (memcmp(line, "+++", 3) == 0 || memcmp(line, "---", 3) == 0)) {
        return code_of(EPG_SHADE_STRONG);
    }
    if (size >= 2 && memcmp(line, "@@", 2) == 0) {
        return code_of(EPG_SHADE_FAINT);
    }
    return size > 0 && line[0] == '+'   ? code_of(EPG_SHADE_GOOD)
           : size > 0 && line[0] == '-' ? code_of(EPG_SHADE_BAD)
                                        : NULL;
}

void epg_shown_diff(epg_shown *shown, epg_span diff)
{
    const char *text = (const char *)diff.data;
    size_t size = diff.size;
    if (!shown->terminal) {
        (void)epg_buffer_append_span(&shown->text, diff); /* to the byte, so that it can be applied */
        return;
    }
    while (size > 0) {
        const char *newline = memchr(text, '\n', size);
        size_t part = newline != NULL ? (size_t)(newline - text) : size;
        const char *colour = shown->colour ? diff_colour(text, part) : NULL;
        (void)epg_buffer_text(&shown->text, colour != NULL ? colour : "");
        put_safe(shown, text, part);
        (void)epg_buffer_text(&shown->text, colour != NULL ? "\x1b[0m\n" : "\n");
        part += newline != NULL;
        text += part;
        size -= part;
    }
}

void epg_shown_run(epg_shown *shown, const epg_reading *reading)
{
    const epg_history *history = &reading->history;
    epg_summary summary;
    epg_summary_of(reading, &summary);
    epg_shown_line(shown, reading->path);
    (void)epg_buffer_text(&shown->text, ": ");
    epg_shown_shade(shown, EPG_SHADE_STRONG, summary.state);
    (void)epg_buffer_text(&shown->text, !history->has_record ? " (no run.json)" : "");
    (void)epg_buffer_text(&shown->text, ", ");
    epg_shown_line(shown, history->benchmark_id);
    (void)epg_buffer_text(&shown->text, ", Agent ");
    epg_shown_line(shown, history->provider);
    if (history->model != NULL) {
        (void)epg_buffer_text(&shown->text, " ");
        epg_shown_line(shown, history->model);
    }
    EPG_AUTO_FREE char *submissions = epg_shown_count(summary.submissions, "submission");
    (void)epg_buffer_format(&shown->text, "\n%s, %llu of %llu Episodes", submissions,
                            (unsigned long long)summary.episodes_used,
                            (unsigned long long)history->config.episode_budget);
    if (history->metric != NULL && history->direction_known) {
        (void)epg_buffer_text(&shown->text, ", score: ");
        epg_shown_line(shown, history->metric);
        (void)epg_buffer_format(&shown->text, ", %s", epg_direction_name(history->direction));
    }
    (void)epg_buffer_text(&shown->text, "\n");
}

char *epg_shown_count(uint64_t count, const char *noun)
{
    return epg_format("%llu %s%s", (unsigned long long)count, noun, count == 1 ? "" : "s");
}

void epg_shown_seconds(bool known, double seconds, char out[EPG_SHOWN_NUMBER])
{
    EPG_AUTO_FREE char *text =
        known && seconds >= 0 && seconds < 9e9 ? epg_duration_text((int64_t)(seconds * 1e9)) : epg_strdup("-");
    (void)snprintf(out, EPG_SHOWN_NUMBER, "%s", text);
}

void epg_shown_tokens(bool known, uint64_t tokens, char out[EPG_SHOWN_NUMBER])
{
    double number = (double)tokens;
    if (!known) {
        (void)snprintf(out, EPG_SHOWN_NUMBER, "-");
    } else if (number < 10000) {
        (void)snprintf(out, EPG_SHOWN_NUMBER, "%llu", (unsigned long long)tokens);
    } else if (number < 1e6) {
        (void)snprintf(out, EPG_SHOWN_NUMBER, "%.1fk", number / 1e3);
    } else {
        (void)snprintf(out, EPG_SHOWN_NUMBER, "%.2fM", number / 1e6);
    }
}

void epg_shown_cost(bool known, double dollars, char out[EPG_SHOWN_NUMBER])
{
    if (known) {
        (void)snprintf(out, EPG_SHOWN_NUMBER, dollars < 1 ? "$%.4f" : "$%.2f", dollars);
    } else {
        (void)snprintf(out, EPG_SHOWN_NUMBER, "-");
    }
}

void epg_shown_score(bool known, double score, char out[EPG_SHOWN_NUMBER])
{
    if (known) {
        (void)snprintf(out, EPG_SHOWN_NUMBER, "%.6g", score);
    } else {
        (void)snprintf(out, EPG_SHOWN_NUMBER, "-");
    }
}

void epg_shown_change(bool known, double change, char out[EPG_SHOWN_NUMBER])
{
    if (known) {
        (void)snprintf(out, EPG_SHOWN_NUMBER, change == 0 ? "0" : "%+.6g", change);
    } else {
        (void)snprintf(out, EPG_SHOWN_NUMBER, "-");
    }
}
