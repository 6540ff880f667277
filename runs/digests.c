#include "runs/digests.h"

#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "runs/kept_records.h"
#include "system/files.h"
#include "system/io.h"
#include "value/value.h"

#define MAGIC "evopolicygym/step-digests/v1\n"
enum { HALF = 4, ITEM = 2 * HALF };

static void hash_half(epg_sha256 *hash, uint8_t *out)
{
    uint8_t whole[EPG_SHA256_SIZE];
    epg_sha256_finish(hash, whole);
    memcpy(out, whole, HALF);
}

static void item_of_start(epg_span observation, uint8_t item[ITEM])
{
    epg_sha256 *hash = epg_sha256_new();
    memset(item, 0, HALF);
    epg_sha256_update(hash, observation.data, observation.size);
    hash_half(hash, item + HALF);
}

static void item_of_step(const epg_transition *step, uint8_t item[ITEM])
{
    uint64_t reward = 0;
    memcpy(&reward, &step->reward, sizeof reward);
    epg_sha256 *hash = epg_sha256_new();
    epg_sha256_update(hash, step->action.data, step->action.size);
    hash_half(hash, item);
    hash = epg_sha256_new();
    epg_sha256_prefixed(hash, step->observation.data, step->observation.size);
    epg_sha256_prefixed(hash, step->metrics.data, step->metrics.size);
    epg_sha256_be64(hash, reward);
    epg_sha256_be64(hash, (step->terminated ? 1U : 0U) + (step->truncated ? 2U : 0U));
    hash_half(hash, item + HALF);
}

/* Called for each item; false stops. */
typedef bool item_visit(void *context, uint64_t number, const uint8_t item[ITEM], epg_span action,
                        epg_span observation);

static epg_code walk(const epg_records *records, item_visit *visit, void *context, epg_error *err)
{
    epg_record_head head;
    epg_transition step;
    uint8_t item[ITEM];
    bool have = false;
    EPG_TRY(records->next_record(records->context, &head, &have, err));
    if (!have || !head.has_observation) {
        return EPG_OK;
    }
    item_of_start(head.initial_observation, item);
    bool going = visit(context, 0, item, epg_span_of(NULL, 0), head.initial_observation);
    for (uint64_t number = 1; going; number++) {
        EPG_TRY(records->next_step(records->context, &step, &have, err));
        if (!have) {
            break;
        }
        item_of_step(&step, item);
        going = visit(context, number, item, step.action, step.observation);
    }
    return EPG_OK;
}

/* --- writing --- */

static bool add_item(void *context, uint64_t number, const uint8_t item[ITEM], epg_span action, epg_span observation)
{
    (void)number;
    (void)action;
    (void)observation;
    return epg_buffer_append(context, item, ITEM);
}

static epg_code gather(const epg_records *records, const epg_evaluation_result *result, epg_buffer *out, epg_error *err)
{
    (void)epg_buffer_text(out, MAGIC);
    for (size_t i = 0; i < result->count; i++) {
        EPG_AUTO_BUFFER items = {0};
        EPG_TRY(walk(records, add_item, &items, err));
        (void)epg_buffer_be64(out, result->episodes[i].index);
        (void)epg_buffer_be64(out, items.size / ITEM);
        (void)epg_buffer_append_span(out, epg_buffer_span(&items));
    }
    return EPG_OK;
}

epg_code epg_digests_write(int traces, int records, const char *name, const epg_evaluation_result *result,
                           epg_error *err)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < result->count; i++) {
        bytes += result->episodes[i].record_size;
    }
    if (bytes > EPG_DIGESTS_RECORDS_MAX) {
        return EPG_OK;
    }
    EPG_AUTO_BUFFER file = {0};
    EPG_CLEANUP(epg_kept_records_close) epg_kept_records kept = {0};
    epg_kept_records_open(&kept, records, name, result->episodes, result->count);
    EPG_TRY(gather(&kept.records, result, &file, err));
    EPG_AUTO_FREE char *file_name = epg_format("%s.digests", name);
    epg_code code = epg_file_write_atomic(traces, file_name, epg_buffer_span(&file), 0400, err);
    if (code != EPG_OK) { /* it may be there, though not durable */
        (void)epg_io_unlink(traces, file_name, 0);
    }
    return code;
}

/* --- comparing --- */

/* The items of an Episode in a file; false: it holds none. */
static bool find_items(epg_span file, uint64_t index, epg_span *items)
{
    size_t at = sizeof MAGIC - 1;
    if (file.size < at || memcmp(file.data, MAGIC, at) != 0) {
        return false;
    }
    while (file.size - at >= 16) {
        uint64_t found = epg_read_be64(file.data + at);
        uint64_t count = epg_read_be64(file.data + at + 8);
        at += 16;
        if (count > (file.size - at) / ITEM) {
            return false;
        }
        if (found == index) {
            *items = epg_span_of(file.data + at, (size_t)count * ITEM);
            return true;
        }
        at += (size_t)count * ITEM;
    }
    return false;
}

typedef struct comparison {
    epg_span recorded;
    uint64_t count; /* replayed items */
    epg_digest_difference *out;
} comparison;

static void tell(epg_digest_difference *out, uint64_t step, const char *what, epg_span value)
{
    epg_json_writer writer;
    EPG_AUTO_BUFFER text = {0};
    epg_json_begin(&writer, &text, 0);
    epg_value_to_json(value, &writer, NULL);
    epg_json_finish(&writer);
    *out = (epg_digest_difference){true, step, what, epg_buffer_take_text(&text)};
}

static bool compare_item(void *context, uint64_t number, const uint8_t item[ITEM], epg_span action,
                         epg_span observation)
{
    comparison *self = context;
    self->count = number + 1;
    if (number >= self->recorded.size / ITEM) {
        tell(self->out, number - 1, "action", action); /* the recorded Episode was over */
        return false;
    }
    const uint8_t *before = self->recorded.data + (size_t)number * ITEM;
    if (memcmp(before, item, HALF) != 0) {
        tell(self->out, number - 1, "action", action);
    } else if (memcmp(before + HALF, item + HALF, HALF) != 0) {
        tell(self->out, number, "observation", observation);
    }
    return !self->out->found;
}

epg_code epg_digests_compare(epg_span file, int records, const char *name, const epg_episode_result *episode,
                             epg_digest_difference *out, epg_error *err)
{
    comparison self = {.out = out};
    if (!find_items(file, episode->index, &self.recorded) || self.recorded.size == 0) {
        return EPG_OK;
    }
    EPG_CLEANUP(epg_kept_records_close) epg_kept_records kept = {0};
    epg_kept_records_open(&kept, records, name, episode, 1);
    epg_code code = walk(&kept.records, compare_item, &self, err);
    if (code == EPG_OK && !out->found && self.count > 0 && self.count < self.recorded.size / ITEM) {
        *out = (epg_digest_difference){true, self.count - 1, "action", NULL}; /* the replayed Episode was over */
    }
    return code;
}
