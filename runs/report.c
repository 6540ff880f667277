#include "runs/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runs/report_parts.h"

#define GENERATOR "<meta name=\"generator\" content=\"evopolicygym\">"
enum { FINDINGS_SHOWN = 50, FINDING_SIZE = 1000, HEAD_LOOKED_AT = 1024 };

extern const char epg_report_css[];
extern const char epg_report_kit_js[];
extern const char epg_report_worlds_js[];
extern const char epg_report_strip_js[];
extern const char epg_report_timeline_js[];
extern const char epg_report_js[];

/* In the order in which they need each other. */
static const char *const scripts[] = {epg_report_kit_js, epg_report_worlds_js, epg_report_strip_js,
                                      epg_report_timeline_js, epg_report_js};

/* Shares of the page. With the page's own text they come to less than EPG_REPORT_BYTES. */
static const epg_report_room whole = {.submissions = 1000,
                                      .diffs = 1000 * 1000,
                                      .feedback = 800 * 1000,
                                      .episodes = 700 * 1000,
                                      .replays = 800 * 1000,
                                      .timeline = 600 * 1000};

static epg_report_room share(size_t runs)
{
    return (epg_report_room){.submissions = whole.submissions / runs,
                             .diffs = whole.diffs / runs,
                             .feedback = whole.feedback / runs,
                             .episodes = whole.episodes / runs,
                             .replays = whole.replays / runs,
                             .timeline = whole.timeline / runs};
}

/* --- texts --- */

static size_t byte_cost(uint8_t byte)
{
    if (byte == '<') {
        return 6;
    }
    if (byte == '"' || byte == '\\' || byte == '\n' || byte == '\t' || byte == '\r') {
        return 2;
    }
    return byte < 0x20 || byte == 0x7f ? 6 : 1;
}

size_t epg_report_cost(epg_span text)
{
    size_t cost = 0;
    for (size_t i = 0; i < text.size; i++) {
        cost += byte_cost(text.data[i]);
    }
    return cost;
}

/* Bytes of the character that begins here; 0: none does. */
static size_t character_size(epg_span text, size_t at)
{
    for (size_t size = 1; size <= 4 && at + size <= text.size; size++) {
        if (epg_utf8_valid(text.data + at, size)) {
            return size;
        }
    }
    return 0;
}

size_t epg_report_text(epg_span text, size_t room, epg_buffer *out)
{
    size_t at = 0;
    while (at < text.size) {
        size_t size = character_size(text, at);
        size_t cost = size > 0 ? epg_report_cost(epg_span_of(text.data + at, size)) : sizeof "\\\\xNN" - 1;
        if (cost > room) {
            break;
        }
        room -= cost;
        if (size > 0) {
            (void)epg_buffer_append(out, text.data + at, size);
            at += size;
        } else {
            (void)epg_buffer_format(out, "\\x%02x", text.data[at++]);
        }
    }
    return text.size - at;
}

size_t epg_report_put_text(epg_json_writer *writer, const char *key, epg_span text, size_t room)
{
    EPG_AUTO_BUFFER kept = {0};
    size_t left = epg_report_text(text, room, &kept);
    epg_json_object(writer, key);
    epg_json_put_u64(writer, "left", left);
    epg_json_put_text(writer, "text", epg_buffer_cstr(&kept));
    epg_json_end(writer);
    return left;
}

double epg_report_round(double value)
{
    char text[EPG_DOUBLE_TEXT];
    (void)snprintf(text, sizeof text, "%.5g", value);
    double rounded = strtod(text, NULL);
    return isfinite(rounded) ? rounded : 0;
}

/* --- one Run --- */

static void put_member(epg_json_writer *writer, const char *key, const json_t *value)
{
    if (value != NULL) {
        epg_json_put_json(writer, key, value);
    } else {
        epg_json_put_null(writer, key);
    }
}

/* From the record, or from the request of a Run that has none. */
static void put_contained(const epg_history *history, epg_json_writer *writer)
{
    const json_t *host = json_object_get(history->record, "host");
    const json_t *policies = json_object_get(host, "execution");
    const json_t *agent = json_object_get(host, "agent_execution");
    if (policies == NULL) {
        policies = json_object_get(history->request, "execution");
        agent = json_object_get(history->request, "agent");
    }
    epg_json_object(writer, "contained");
    put_member(writer, "agent", json_object_get(agent, "profile"));
    put_member(writer, "policies", json_object_get(policies, "profile"));
    put_member(writer, "tree", json_object_get(host, "agent_tree"));
    epg_json_end(writer);
}

static void put_without(const epg_report_room *room, epg_json_writer *writer)
{
    epg_json_object(writer, "without");
    epg_json_put_u64(writer, "diffs", room->diffs_cut);
    epg_json_put_u64(writer, "episodes", room->episodes_left);
    epg_json_put_u64(writer, "events", room->events_left);
    epg_json_put_u64(writer, "feedback", room->feedback_cut);
    epg_json_put_u64(writer, "replays", room->replays_left);
    epg_json_put_u64(writer, "submissions", room->submissions_left);
    epg_json_end(writer);
}

/* What verification found: nothing, or what was altered after the fact. */
static void put_verification(const epg_verification *verification, epg_json_writer *writer)
{
    if (verification == NULL) {
        epg_json_put_null(writer, "verification");
        return;
    }
    size_t count = verification->findings.count;
    epg_json_object(writer, "verification");
    epg_json_put_u64(writer, "checks", verification->checks);
    epg_json_array(writer, "findings");
    for (size_t i = 0; i < count && i < FINDINGS_SHOWN; i++) {
        EPG_AUTO_FREE char *text =
            epg_format("%s: %s", verification->findings.items[i].path, verification->findings.items[i].what);
        EPG_AUTO_FREE char *safe = epg_printable(text, strnlen(text, FINDING_SIZE));
        epg_json_put_text(writer, NULL, safe);
    }
    epg_json_end(writer);
    epg_json_put_u64(writer, "more", count > FINDINGS_SHOWN ? count - FINDINGS_SHOWN : 0);
    epg_json_end(writer);
}

/* Of the Environment, by which some pictures are drawn: from the record, or from the request where there is none. */
static const json_t *parameters_of(const epg_history *history)
{
    const json_t *recorded = json_object_get(json_object_get(history->record, "benchmark"), "environment");
    const json_t *parameters = json_object_get(recorded, "parameters");
    return parameters != NULL ? parameters
                              : json_object_get(json_object_get(history->request, "benchmark"), "parameters");
}

static void put_run(const epg_report_run *run, epg_report_room room, epg_json_writer *writer)
{
    const epg_reading *reading = run->reading;
    const epg_history *history = &reading->history;
    epg_json_object(writer, NULL);
    put_member(writer, "agent_error", json_object_get(json_object_get(history->record, "host"), "agent_error"));
    epg_config_to_json(&history->config, writer, "config");
    put_contained(history, writer);
    epg_report_put_held_out(reading, &room, writer);
    put_member(writer, "parameters", parameters_of(history));
    epg_summary_run_json(reading, writer, "run");
    epg_report_put_submissions(reading, &room, writer);
    epg_report_put_timeline(reading, &room, writer);
    put_verification(run->verification, writer);
    put_without(&room, writer);
    epg_json_end(writer);
}

/* --- the page --- */

static void put_hash(epg_buffer *out, const char *text)
{
    uint8_t hash[EPG_SHA256_SIZE];
    epg_sha256_once(text, strlen(text), hash);
    (void)epg_buffer_text(out, "'sha256-");
    epg_base64_encode(epg_span_of(hash, sizeof hash), out);
    (void)epg_buffer_text(out, "'");
}

/* In JSON a `<` can only stand in a text. */
static void put_escaped(epg_buffer *out, epg_span document)
{
    size_t from = 0;
    for (size_t i = 0; i < document.size; i++) {
        if (document.data[i] == '<') {
            (void)epg_buffer_append(out, document.data + from, i - from);
            (void)epg_buffer_text(out, "\\u003c");
            from = i + 1;
        }
    }
    (void)epg_buffer_append(out, document.data + from, document.size - from);
}

static void put_page(epg_span document, epg_buffer *out)
{
    (void)epg_buffer_text(out,
                          "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" GENERATOR "\n"
                          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src ");
    for (size_t i = 0; i < EPG_COUNT(scripts); i++) {
        (void)epg_buffer_text(out, i > 0 ? " " : "");
        put_hash(out, scripts[i]);
    }
    (void)epg_buffer_text(out, "; style-src ");
    put_hash(out, epg_report_css);
    (void)epg_buffer_text(out, "; base-uri 'none'; form-action 'none'\">\n"
                               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                               "<meta name=\"color-scheme\" content=\"light dark\">\n"
                               "<title>EvoPolicyGym report</title>\n<style>");
    (void)epg_buffer_text(out, epg_report_css);
    (void)epg_buffer_text(out, "</style>\n</head>\n<body>\n<noscript>This report draws itself: let its script run. All "
                               "data stands in this file.</noscript>\n<main id=\"page\"></main>\n"
                               "<script type=\"application/json\" id=\"document\">");
    put_escaped(out, document);
    (void)epg_buffer_text(out, "</script>\n");
    for (size_t i = 0; i < EPG_COUNT(scripts); i++) {
        (void)epg_buffer_text(out, "<script>");
        (void)epg_buffer_text(out, scripts[i]);
        (void)epg_buffer_text(out, "</script>\n");
    }
    (void)epg_buffer_text(out, "</body>\n</html>\n");
}

bool epg_report_is_page(epg_span text)
{
    size_t size = text.size < HEAD_LOOKED_AT ? text.size : HEAD_LOOKED_AT;
    return text.size > 0 && memmem(text.data, size, GENERATOR, sizeof GENERATOR - 1) != NULL;
}

epg_code epg_report_page(const epg_report_run *runs, size_t count, epg_buffer *out, epg_error *err)
{
    if (count == 0 || count > EPG_REPORT_RUNS) {
        return epg_fail(err, EPG_ERR_USAGE, "a report holds 1 to %d Runs, not %zu", EPG_REPORT_RUNS, count);
    }
    EPG_AUTO_BUFFER document = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &document, 0);
    epg_json_object(&writer, NULL);
    epg_json_array(&writer, "runs");
    for (size_t i = 0; i < count; i++) {
        put_run(&runs[i], share(count), &writer);
    }
    epg_json_end(&writer);
    epg_json_put_text(&writer, "schema", "evopolicygym/report/v1");
    epg_json_put_text(&writer, "version", EPG_VERSION);
    epg_json_end(&writer);
    epg_json_finish(&writer);
    put_page(epg_buffer_span(&document), out);
    return EPG_OK;
}
