#include "runs/selector.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runs/config.h"

void epg_indices_free(epg_indices *indices)
{
    free(indices->items);
    *indices = (epg_indices){0};
}

void epg_indices_copy(const epg_indices *from, epg_indices *out)
{
    *out = (epg_indices){epg_alloc_array(from->count, sizeof *from->items), from->count};
    if (from->count > 0) {
        memcpy(out->items, from->items, from->count * sizeof *from->items);
    }
}

/* Seven bits a byte, lowest first; the top bit tells that more come. */
static void put_number(epg_buffer *out, uint64_t value)
{
    for (; value > 0x7f; value >>= 7) {
        (void)epg_buffer_byte(out, (uint8_t)(value | 0x80U));
    }
    (void)epg_buffer_byte(out, (uint8_t)value);
}

static bool take_number(epg_span *bytes, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; bytes->size > 0 && shift < 64; shift += 7) {
        uint8_t byte = *bytes->data;
        *bytes = epg_span_of(bytes->data + 1, bytes->size - 1);
        *value |= (uint64_t)(byte & 0x7fU) << shift;
        if ((byte & 0x80U) == 0) {
            return true;
        }
    }
    return false;
}

/* How many there are; then for each run of neighbours how far it begins after the end of the last, and its length. */
void epg_indices_pack(const epg_indices *indices, epg_buffer *out)
{
    uint64_t end = 0;
    put_number(out, indices->count);
    for (size_t i = 0; i < indices->count;) {
        size_t next = i + 1;
        while (next < indices->count && indices->items[next] == indices->items[next - 1] + 1) {
            next++;
        }
        put_number(out, indices->items[i] - end);
        put_number(out, next - i);
        end = indices->items[next - 1] + 1;
        i = next;
    }
}

bool epg_indices_unpack(epg_span bytes, epg_indices *out)
{
    uint64_t count = 0;
    uint64_t at = 0;
    if (!take_number(&bytes, &count) || count > EPG_SUBMIT_INDICES_MAX) {
        return false;
    }
    epg_indices indices EPG_CLEANUP(epg_indices_free) = {epg_alloc_array(count, sizeof *indices.items), 0};
    while (indices.count < count) {
        uint64_t gap = 0;
        uint64_t length = 0;
        if (!take_number(&bytes, &gap) || !take_number(&bytes, &length) || length == 0 ||
            length > count - indices.count) {
            return false;
        }
        at += gap;
        for (uint64_t i = 0; i < length; i++) {
            indices.items[indices.count++] = at++;
        }
    }
    *out = indices;
    indices = (epg_indices){0};
    return true;
}

/* A range's last index from the text of its END, which may be 2^64 (and no more): one past the last index there is. */
static bool parse_last(const char *text, size_t size, uint64_t *last)
{
    static const char past_all[] = "18446744073709551616";
    uint64_t end = 0;
    if (epg_parse_u64(text, size, UINT64_MAX, &end)) {
        *last = end - 1;
        return end > 0;
    }
    while (size > 0 && *text == '0') {
        text++;
        size--;
    }
    *last = UINT64_MAX;
    return size == sizeof past_all - 1 && memcmp(text, past_all, size) == 0;
}

/* One part between commas: an index or START:END. */
static epg_code parse_part(const char *part, size_t size, uint64_t *first, uint64_t *last, epg_error *err)
{
    const char *colon = memchr(part, ':', size);
    size_t first_size = colon != NULL ? (size_t)(colon - part) : size;
    bool fits = epg_parse_u64(part, first_size, UINT64_MAX, first);
    if (fits && colon == NULL) {
        *last = *first;
        return EPG_OK;
    }
    EPG_AUTO_FREE char *shown = epg_printable(part, size);
    if (!fits || !parse_last(colon + 1, size - first_size - 1, last)) {
        return epg_fail(err, EPG_ERR_INVALID, "\"%s\" is neither an index nor START:END, as in 0,4:8", shown);
    }
    if (*last < *first) {
        return epg_fail(err, EPG_ERR_INVALID, "range \"%s\" is empty: its END must be over its START", shown);
    }
    return EPG_OK;
}

static epg_code add_range(epg_indices *indices, uint64_t first, uint64_t last, epg_error *err)
{
    if (indices->count > 0 && first <= indices->items[indices->count - 1]) {
        return epg_fail(err, EPG_ERR_INVALID, "indices must increase: %llu stands after %llu",
                        (unsigned long long)first, (unsigned long long)indices->items[indices->count - 1]);
    }
    if (last - first >= EPG_SUBMIT_INDICES_MAX - indices->count) {
        return epg_fail(err, EPG_ERR_LIMIT, "more than %d indices in one submission", EPG_SUBMIT_INDICES_MAX);
    }
    for (uint64_t i = 0; i <= last - first; i++) {
        indices->items[indices->count++] = first + i;
    }
    return EPG_OK;
}

static epg_code parse_all(const char *text, epg_indices *indices, epg_error *err)
{
    for (const char *part = text;; part++) {
        size_t size = strcspn(part, ",");
        uint64_t first = 0;
        uint64_t last = 0;
        EPG_TRY(parse_part(part, size, &first, &last, err));
        EPG_TRY(add_range(indices, first, last, err));
        part += size;
        if (*part == '\0') {
            return EPG_OK;
        }
    }
}

epg_code epg_selector_parse(const char *text, epg_indices *out, epg_error *err)
{
    uint64_t room[EPG_SUBMIT_INDICES_MAX];
    epg_indices indices = {room, 0};
    EPG_TRY(parse_all(text, &indices, err));
    epg_indices_copy(&indices, out);
    return EPG_OK;
}

void epg_indices_text(const epg_indices *indices, epg_buffer *out)
{
    for (size_t i = 0; i < indices->count; i++) {
        (void)epg_buffer_format(out, "%s%llu", i > 0 ? "," : "", (unsigned long long)indices->items[i]);
    }
}

void epg_selector_text(const epg_indices *indices, epg_buffer *out)
{
    for (size_t i = 0; i < indices->count;) {
        size_t next = i + 1;
        while (next < indices->count && indices->items[next] == indices->items[next - 1] + 1) {
            next++;
        }
        unsigned long long first = indices->items[i];
        const char *comma = i > 0 ? "," : "";
        if (next - i < 3) { /* "4,5" is as short as "4:6" and plainer */
            (void)epg_buffer_format(out, "%s%llu", comma, first);
            i++;
        } else if (indices->items[next - 1] == UINT64_MAX) {
            (void)epg_buffer_format(out, "%s%llu:18446744073709551616", comma, first);
            i = next;
        } else {
            (void)epg_buffer_format(out, "%s%llu:%llu", comma, first, (unsigned long long)indices->items[next - 1] + 1);
            i = next;
        }
    }
}
