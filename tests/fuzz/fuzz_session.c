/* Any bytes as what a session's client sends, and as a selector: decoding and checking end, a request is either
 * admitted within all bounds or refused with a known code, and every answer is a frame that decodes. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "runs/protocol.h"
#include "value/random_value.h"

static const char digest[EPG_DIGEST_TEXT] = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool is_known(const char *code)
{
    static const char *const codes[] = {"session_closed",     "protocol_mismatch", "invalid_request",
                                        "episode_limit",      "submission_limit",  "budget_exhausted",
                                        "budget_allocation",  "candidate_limit",   "duplicate_submission",
                                        "unknown_submission", "budget_remaining"};
    for (size_t i = 0; i < EPG_COUNT(codes); i++) {
        if (strcmp(code, codes[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void require_frame(const epg_buffer *frame)
{
    epg_span body = {0};
    require(epg_session_frame(epg_buffer_span(frame), &body) == EPG_FRAME_WHOLE);
    json_t *object = epg_session_decode(body);
    require(object != NULL);
    json_decref(object);
}

static void answer(const epg_session *session, const epg_decision *decision)
{
    epg_buffer frame = {0};
    epg_status_facts facts = {0};
    if (decision->code != NULL) {
        require(is_known(decision->code) && decision->message[0] != '\0' && decision->indices.count == 0);
        epg_response_refused(&frame, decision);
    } else {
        require(decision->method != EPG_METHOD_NONE);
        epg_response_status(&frame, session, &facts);
    }
    require_frame(&frame);
    epg_buffer_free(&frame);
}

static void apply(epg_session *session, const epg_decision *decision)
{
    if (decision->code != NULL) {
        return;
    }
    if (decision->method == EPG_METHOD_SUBMIT) {
        require(decision->indices.count >= 1 && decision->indices.count <= 3);
        require(decision->indices.count <= session->episodes_remaining);
        (void)epg_session_charge(session, &decision->indices, digest);
        epg_session_published(session, 1, 0);
    } else if (decision->method == EPG_METHOD_FINISH) {
        require(decision->candidate_count >= 1 && decision->candidate_count <= 2);
        epg_session_finish(session, decision->candidates, decision->candidate_count);
    }
}

static void try_request(json_t *request)
{
    epg_config config;
    epg_session session;
    epg_config_init(&config);
    config.episode_budget = 6;
    config.max_episodes_per_submission = 3;
    config.validate = true;
    config.episodes_per_candidate = 1;
    config.max_candidates = 2;
    require(epg_config_resolve(&config, NULL) == EPG_OK);
    epg_session_init(&session, &config);
    (void)epg_session_charge(&session, &(epg_indices){(uint64_t[]){0}, 1}, digest);
    epg_session_published(&session, 1, 0);
    for (int i = 0; i < 3; i++) { /* the same again: the second and third find another state */
        epg_decision decision;
        epg_session_check(&session, request, &decision);
        answer(&session, &decision);
        apply(&session, &decision);
        epg_decision_free(&decision);
    }
    epg_session_free(&session);
    epg_config_free(&config);
}

static void try_selector(const uint8_t *data, size_t size)
{
    char *text = epg_strndup((const char *)data, size);
    epg_indices indices = {0};
    epg_indices again = {0};
    if (epg_selector_parse(text, &indices, NULL) == EPG_OK) {
        epg_buffer shortest = {0};
        epg_selector_text(&indices, &shortest);
        require(epg_selector_parse(epg_buffer_cstr(&shortest), &again, NULL) == EPG_OK);
        require(again.count == indices.count &&
                memcmp(again.items, indices.items, indices.count * sizeof *indices.items) == 0);
        epg_buffer_free(&shortest);
    }
    epg_indices_free(&indices);
    epg_indices_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    epg_span body = {0};
    json_t *request = NULL;
    if (epg_session_frame(epg_span_of(data, size), &body) == EPG_FRAME_WHOLE) {
        request = epg_session_decode(body);
    }
    try_request(request);
    json_decref(request);
    try_selector(data, size);
    return 0;
}

static void draw_request(uint64_t *state, epg_buffer *out)
{
    static const char *const methods[] = {"submit", "finish", "status", "wait", "other"};
    static const char *const members[] = {"\"episode_indices\":[0,1]",
                                          "\"episode_indices\":[5]",
                                          "\"episode_indices\":[0,1,2,3]",
                                          "\"submission_ids\":[\"submission-000001\"]",
                                          "\"submission_ids\":[\"submission-000002\",\"submission-000001\"]",
                                          "\"submission_id\":\"submission-000001\"",
                                          "\"extra\":18446744073709551615"};
    epg_buffer body = {0};
    (void)epg_buffer_format(&body, "{\"protocol\":\"agent-session/v3\",\"method\":\"%s\"",
                            methods[draw_below(state, 5)]);
    for (uint64_t i = draw_below(state, 3); i > 0; i--) {
        (void)epg_buffer_format(&body, ",%s", members[draw_below(state, EPG_COUNT(members))]);
    }
    (void)epg_buffer_byte(&body, '}');
    (void)epg_buffer_be32(out, (uint32_t)body.size);
    (void)epg_buffer_append_span(out, epg_buffer_span(&body));
    epg_buffer_free(&body);
}

static void draw_selector(uint64_t *state, epg_buffer *out)
{
    static const char *const parts[] = {"0", "4:8", ",", ":", "10", "18446744073709551615", "18446744073709551616",
                                        " "};
    for (uint64_t i = draw_below(state, 8) + 1; i > 0; i--) {
        (void)epg_buffer_text(out, parts[draw_below(state, EPG_COUNT(parts))]);
    }
}

void epg_fuzz_seed(uint64_t *state, epg_buffer *out)
{
    if (draw_below(state, 3) == 0) {
        draw_selector(state, out);
        return;
    }
    draw_request(state, out);
    if (draw_below(state, 2) == 0) {
        damage(state, out);
    }
}
