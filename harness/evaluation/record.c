#include "evaluation/record.h"

#include <stdlib.h>
#include <string.h>

enum { FLAG_TERMINATED = 1, FLAG_TRUNCATED = 2, HEAD_SIZE = 21, OBSERVATION_HEAD = 5, STEP_HEAD = 22, END_SIZE = 18 };

static uint64_t double_bits(double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double bits_double(uint64_t bits)
{
    double value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void epg_record_put_head(epg_buffer *out, const epg_episode_spec *spec, uint64_t policy_seed)
{
    (void)epg_buffer_byte(out, 'H');
    (void)epg_buffer_be64(out, spec->environment_seed);
    (void)epg_buffer_be64(out, policy_seed);
    (void)epg_buffer_be32(out, (uint32_t)spec->scenario.size);
    (void)epg_buffer_append_span(out, epg_buffer_span(&spec->scenario));
}

void epg_record_put_observation(epg_buffer *out, epg_span observation)
{
    (void)epg_buffer_byte(out, 'O');
    (void)epg_buffer_be32(out, (uint32_t)observation.size);
    (void)epg_buffer_append_span(out, observation);
}

void epg_record_put_step(epg_buffer *out, epg_span action, const epg_step *step)
{
    (void)epg_buffer_byte(out, 'T');
    (void)epg_buffer_be32(out, (uint32_t)action.size);
    (void)epg_buffer_be32(out, (uint32_t)step->observation.size);
    (void)epg_buffer_be32(out, (uint32_t)step->metrics.size);
    (void)epg_buffer_be64(out, double_bits(step->reward));
    (void)epg_buffer_byte(out,
                          (uint8_t)((step->terminated ? FLAG_TERMINATED : 0) | (step->truncated ? FLAG_TRUNCATED : 0)));
    (void)epg_buffer_append_span(out, action);
    (void)epg_buffer_append_span(out, epg_buffer_span(&step->observation));
    (void)epg_buffer_append_span(out, epg_buffer_span(&step->metrics));
}

void epg_record_put_end(epg_buffer *out, const epg_record_end *end)
{
    (void)epg_buffer_byte(out, 'Z');
    (void)epg_buffer_byte(out, (uint8_t)end->failure);
    (void)epg_buffer_be64(out, end->steps);
    (void)epg_buffer_be64(out, double_bits(end->reward));
}

struct epg_record_reader {
    epg_record_source *source;
    void *context;
    uint64_t count;
    uint64_t next;    /* the record to open next */
    uint64_t fetched; /* bytes of the open record that the source has given */
    uint64_t size;    /* of the open record */
    epg_buffer window;
    size_t at; /* first byte in `window` not yet handed out */
    epg_buffer scenario;
    epg_buffer observation;
};

epg_record_reader *epg_record_reader_new(epg_record_source *source, void *context, uint64_t count)
{
    epg_record_reader *reader = epg_alloc(sizeof *reader);
    *reader = (epg_record_reader){.source = source, .context = context, .count = count};
    return reader;
}

void epg_record_reader_free(epg_record_reader *reader)
{
    if (reader != NULL) {
        epg_buffer_free(&reader->window);
        epg_buffer_free(&reader->scenario);
        epg_buffer_free(&reader->observation);
        free(reader);
    }
}

/* Makes at least `size` bytes stand at reader->at, fetching pieces; a record that ends before is damaged. */
static epg_code want(epg_record_reader *reader, size_t size, epg_record_end *end, epg_error *err)
{
    while (reader->window.size - reader->at < size) {
        if (reader->fetched > 0 && reader->fetched >= reader->size) {
            return epg_fail(err, EPG_ERR_INTERNAL, "record %llu is cut short", (unsigned long long)reader->next - 1);
        }
        epg_buffer_drop_front(&reader->window, reader->at);
        reader->at = 0;
        size_t before = reader->window.size;
        EPG_TRY(reader->source(reader->context, reader->next - 1, reader->fetched, &reader->window, &reader->size, end,
                               err));
        if (reader->window.size == before) {
            return epg_fail(err, EPG_ERR_INTERNAL, "record %llu is cut short", (unsigned long long)reader->next - 1);
        }
        reader->fetched += reader->window.size - before;
    }
    return EPG_OK;
}

static const uint8_t *front(const epg_record_reader *reader)
{
    return reader->window.data + reader->at;
}

static epg_code unexpected(const epg_record_reader *reader, epg_error *err)
{
    return epg_fail(err, EPG_ERR_INTERNAL, "record %llu holds an unexpected item",
                    (unsigned long long)reader->next - 1);
}

static epg_code next_record(void *context, epg_record_head *head, bool *have, epg_error *err)
{
    epg_record_reader *reader = context;
    if (reader->next == reader->count) {
        *have = false;
        return EPG_OK;
    }
    reader->next++;
    reader->fetched = 0;
    reader->at = 0;
    epg_buffer_clear(&reader->window);
    epg_record_end end = {0};
    EPG_TRY(want(reader, HEAD_SIZE, &end, err));
    const uint8_t *bytes = front(reader);
    if (bytes[0] != 'H') {
        return unexpected(reader, err);
    }
    epg_record_head out = {.environment_seed = epg_read_be64(bytes + 1),
                           .policy_seed = epg_read_be64(bytes + 9),
                           .failure = end.failure,
                           .steps = end.steps,
                           .reward = end.reward};
    size_t size = epg_read_be32(bytes + 17);
    EPG_TRY(want(reader, HEAD_SIZE + size, &end, err));
    epg_buffer_clear(&reader->scenario);
    (void)epg_buffer_append(&reader->scenario, front(reader) + HEAD_SIZE, size);
    reader->at += HEAD_SIZE + size;
    EPG_TRY(want(reader, 1, &end, err));
    epg_buffer_clear(&reader->observation);
    if (front(reader)[0] == 'O') {
        EPG_TRY(want(reader, OBSERVATION_HEAD, &end, err));
        size = epg_read_be32(front(reader) + 1);
        EPG_TRY(want(reader, OBSERVATION_HEAD + size, &end, err));
        (void)epg_buffer_append(&reader->observation, front(reader) + OBSERVATION_HEAD, size);
        reader->at += OBSERVATION_HEAD + size;
        out.has_observation = true;
    }
    out.scenario = epg_buffer_span(&reader->scenario);
    out.initial_observation = epg_buffer_span(&reader->observation);
    *head = out;
    *have = true;
    return EPG_OK;
}

static epg_code next_step(void *context, epg_transition *step, bool *have, epg_error *err)
{
    epg_record_reader *reader = context;
    epg_record_end end = {0};
    EPG_TRY(want(reader, 1, &end, err));
    if (front(reader)[0] == 'Z') {
        *have = false;
        return EPG_OK;
    }
    if (front(reader)[0] != 'T') {
        return unexpected(reader, err);
    }
    EPG_TRY(want(reader, STEP_HEAD, &end, err));
    const uint8_t *bytes = front(reader);
    size_t action = epg_read_be32(bytes + 1);
    size_t observation = epg_read_be32(bytes + 5);
    size_t metrics = epg_read_be32(bytes + 9);
    EPG_TRY(want(reader, STEP_HEAD + action + observation + metrics, &end, err));
    bytes = front(reader);
    const uint8_t *values = bytes + STEP_HEAD;
    *step = (epg_transition){.action = epg_span_of(values, action),
                             .observation = epg_span_of(values + action, observation),
                             .metrics = epg_span_of(values + action + observation, metrics),
                             .reward = bits_double(epg_read_be64(bytes + 13)),
                             .terminated = (bytes[21] & FLAG_TERMINATED) != 0,
                             .truncated = (bytes[21] & FLAG_TRUNCATED) != 0};
    reader->at += STEP_HEAD + action + observation + metrics;
    *have = true;
    return EPG_OK;
}

void epg_record_reader_records(epg_record_reader *reader, epg_records *out)
{
    *out = (epg_records){.context = reader, .count = reader->count, .next_record = next_record, .next_step = next_step};
}
