#include "runs/availability.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runs/session.h"

void epg_availability_free(epg_availability *availability)
{
    for (size_t i = 0; i < availability->count; i++) {
        free(availability->items[i].name);
    }
    free(availability->items);
    *availability = (epg_availability){0};
}

void epg_availability_of(uint64_t number, const epg_feedback *feedback, const char (*hashes)[EPG_SHA256_HEX],
                         epg_availability *out)
{
    *out = (epg_availability){.number = number, .items = epg_alloc_array(feedback->artifact_count, sizeof *out->items)};
    for (size_t i = 0; i < feedback->artifact_count; i++) {
        const epg_artifact *artifact = &feedback->artifacts[i];
        if (artifact->bulk) {
            epg_bulk_item *item = &out->items[out->count++];
            *item =
                (epg_bulk_item){.name = epg_strdup(artifact->name), .size = artifact->content.size, .available = true};
            memcpy(item->sha256, hashes[i], sizeof item->sha256);
        }
    }
}

uint64_t epg_availability_bytes(const epg_availability *availability)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < availability->count; i++) {
        bytes += availability->items[i].available ? availability->items[i].size : 0;
    }
    return bytes;
}

void epg_availability_to_json(const epg_availability *availability, epg_buffer *out)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    size_t available = 0;
    epg_json_writer json;
    epg_submission_id(availability->number, id);
    epg_json_begin(&json, out, 2);
    epg_json_object(&json, NULL);
    epg_json_array(&json, "bulk_artifacts");
    for (size_t i = 0; i < availability->count; i++) {
        const epg_bulk_item *item = &availability->items[i];
        EPG_AUTO_FREE char *path = epg_format("artifacts/%s", item->name);
        available += item->available;
        epg_json_object(&json, NULL);
        epg_json_put_bool(&json, "available", item->available);
        epg_json_put_text(&json, "name", item->name);
        epg_json_put_text(&json, "path", path);
        epg_json_put_text(&json, "sha256", item->sha256);
        epg_json_put_u64(&json, "size", item->size);
        epg_json_end(&json);
    }
    epg_json_end(&json);
    bool all = available == availability->count;
    epg_json_put_text(&json, "bulk_status", all ? "available" : available > 0 ? "partial" : "evicted");
    if (!all) {
        epg_json_put_text(&json, "reason", "run_bulk_feedback_capacity");
    }
    epg_json_put_text(&json, "schema", EPG_AVAILABILITY_SCHEMA);
    epg_json_put_text(&json, "submission_id", id);
    epg_json_end(&json);
    epg_json_finish(&json);
}

/* A relative path without empty, "." and ".." parts: what may be removed below artifacts/. */
static bool is_artifact_name(const char *name)
{
    for (const char *part = name;; part++) {
        size_t size = strcspn(part, "/");
        if (size == 0 || (size <= 2 && strspn(part, ".") >= size) || memchr(part, '\\', size) != NULL) {
            return false;
        }
        part += size;
        if (*part == '\0') {
            return true;
        }
    }
}

static epg_code item_from_json(const json_t *entry, epg_bulk_item *item, epg_error *err)
{
    static const char what[] = "availability.json: bulk artifact";
    const char *name = NULL;
    const char *sha256 = NULL;
    EPG_TRY(epg_json_text(entry, "name", what, &name, err));
    EPG_TRY(epg_json_text(entry, "sha256", what, &sha256, err));
    EPG_TRY(epg_json_u64(entry, "size", what, &item->size, err));
    EPG_TRY(epg_json_bool(entry, "available", what, &item->available, err));
    if (!is_artifact_name(name) || strlen(sha256) != EPG_SHA256_HEX - 1) {
        return epg_fail(err, EPG_ERR_INVALID, "%s: its name or its sha256 is not well-formed", what);
    }
    item->name = epg_strdup(name);
    (void)snprintf(item->sha256, sizeof item->sha256, "%s", sha256);
    return EPG_OK;
}

epg_code epg_availability_from_json(const json_t *document, uint64_t number, epg_availability *out, epg_error *err)
{
    static const char what[] = "availability.json";
    epg_availability found EPG_CLEANUP(epg_availability_free) = {.number = number};
    json_t *items = NULL;
    const char *schema = NULL;
    const char *id = NULL;
    EPG_TRY(epg_json_text(document, "schema", what, &schema, err));
    EPG_TRY(epg_json_text(document, "submission_id", what, &id, err));
    EPG_TRY(epg_json_member(document, "bulk_artifacts", what, JSON_ARRAY, &items, err));
    if (strcmp(schema, EPG_AVAILABILITY_SCHEMA) != 0 || epg_submission_number(id) != number) {
        return epg_fail(err, EPG_ERR_INVALID, "%s: is not the one of submission %llu", what,
                        (unsigned long long)number);
    }
    if (json_array_size(items) > EPG_ARTIFACTS_MAX) {
        return epg_fail(err, EPG_ERR_INVALID, "%s: names more than %d artifacts", what, EPG_ARTIFACTS_MAX);
    }
    found.items = epg_alloc_array(json_array_size(items), sizeof *found.items);
    for (size_t i = 0; i < json_array_size(items); i++) {
        EPG_TRY(item_from_json(json_array_get(items, i), &found.items[i], err));
        found.count++;
    }
    *out = found;
    found = (epg_availability){0};
    return EPG_OK;
}
