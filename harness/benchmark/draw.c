#include "benchmark/draw.h"

#include <math.h>
#include <string.h>

enum { DEPTH_MAX = 8, LENGTH_MAX = 4096 };

/* SplitMix64: small, and the same everywhere. */
static uint64_t draw_u64(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = *state;
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

static double draw_unit(uint64_t *state)
{
    return (double)(draw_u64(state) >> 11) * 0x1p-53;
}

static epg_code not_understood(epg_error *err)
{
    return epg_fail(err, EPG_ERR_USAGE,
                    "Actions can't be drawn from this action space: give them with --actions FILE, a JSON "
                    "list of Episodes, each a list of Actions");
}

static bool is_one_of(epg_span text, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        if (epg_span_equal(text, epg_span_text(names[i]))) {
            return true;
        }
    }
    return false;
}

static bool get_number(epg_span space, const char *key, double *out)
{
    epg_span value;
    int64_t whole = 0;
    if (!epg_value_lookup(space, key, &value)) {
        return false;
    }
    if (epg_value_get_i64(value, &whole)) {
        *out = (double)whole;
        return true;
    }
    return epg_value_get_float(value, out);
}

static bool draw_value(epg_span values, uint64_t *state, epg_buffer *out)
{
    epg_value_cursor cursor;
    epg_span item = {0};
    if (!epg_value_enter(values, &cursor) || cursor.is_map || cursor.left == 0) {
        return false;
    }
    uint64_t chosen = draw_u64(state) % cursor.left;
    for (uint64_t i = 0; i <= chosen; i++) {
        (void)epg_value_next(&cursor, NULL, &item);
    }
    (void)epg_buffer_append_span(out, item);
    return true;
}

static bool draw_float(epg_span space, uint64_t *state, epg_buffer *out)
{
    double low = 0.0;
    double high = 0.0;
    if (!get_number(space, "minimum", &low) || !get_number(space, "maximum", &high) || low > high ||
        !isfinite(high - low)) {
        return false;
    }
    double value = low + (high - low) * draw_unit(state);
    epg_value_put_float(out, value > high ? high : value);
    return true;
}

static bool draw_int(epg_span space, uint64_t *state, epg_buffer *out)
{
    epg_span low_value;
    epg_span high_value;
    int64_t low = 0;
    int64_t high = 0;
    if (!epg_value_lookup(space, "minimum", &low_value) || !epg_value_get_i64(low_value, &low) ||
        !epg_value_lookup(space, "maximum", &high_value) || !epg_value_get_i64(high_value, &high) || low > high) {
        return false;
    }
    uint64_t span = (uint64_t)high - (uint64_t)low + 1;
    uint64_t offset = span == 0 ? draw_u64(state) : draw_u64(state) % span;
    epg_value_put_i64(out, (int64_t)((uint64_t)low + offset));
    return true;
}

static bool draw_from(epg_span space, unsigned depth, uint64_t *state, epg_buffer *out);

/* The length that a space tells: "length", or the first of "shape". */
static bool get_length(epg_span space, uint64_t *out)
{
    epg_span value;
    epg_value_cursor cursor;
    if (epg_value_lookup(space, "length", &value)) {
        return epg_value_get_u64(value, out) && *out <= LENGTH_MAX;
    }
    return epg_value_lookup(space, "shape", &value) && epg_value_enter(value, &cursor) && cursor.left == 1 &&
           epg_value_next(&cursor, NULL, &value) && epg_value_get_u64(value, out) && *out <= LENGTH_MAX;
}

static bool draw_items(epg_span space, bool tuple, unsigned depth, uint64_t *state, epg_buffer *out)
{
    epg_span items = {0};
    epg_value_cursor cursor;
    bool has_items = epg_value_lookup(space, "items", &items);
    bool each = has_items && epg_value_enter(items, &cursor) && !cursor.is_map;
    uint64_t count = each ? cursor.left : 0;
    if (!each && !get_length(space, &count)) {
        return false;
    }
    if (tuple) {
        epg_value_put_tuple(out, count);
    } else {
        epg_value_put_list(out, count);
    }
    for (uint64_t i = 0; i < count; i++) {
        epg_span item = items;
        if (each) {
            (void)epg_value_next(&cursor, NULL, &item);
        }
        if (!(has_items ? draw_from(item, depth + 1, state, out) : draw_float(space, state, out))) {
            return false;
        }
    }
    return true;
}

static bool draw_fields(epg_span space, unsigned depth, uint64_t *state, epg_buffer *out)
{
    epg_span fields;
    epg_span key;
    epg_span field;
    epg_value_cursor cursor;
    if (!epg_value_lookup(space, "fields", &fields) || !epg_value_enter(fields, &cursor) || !cursor.is_map) {
        return false;
    }
    epg_value_put_map(out, cursor.left);
    while (epg_value_next(&cursor, &key, &field)) {
        epg_value_put_key_span(out, key);
        if (!draw_from(field, depth + 1, state, out)) {
            return false;
        }
    }
    return true;
}

static bool draw_from(epg_span space, unsigned depth, uint64_t *state, epg_buffer *out)
{
    static const char *const ints[] = {"int", "integer", "discrete", NULL};
    static const char *const floats[] = {"float", "number", "continuous", NULL};
    static const char *const bools[] = {"bool", "boolean", NULL};
    static const char *const lists[] = {"list", "array", "vector", "box", NULL};
    static const char *const maps[] = {"object", "map", "dict", NULL};
    epg_span type_value;
    epg_span type;
    epg_span values;
    if (depth > DEPTH_MAX || epg_value_kind(space) != 'M' || !epg_value_lookup(space, "type", &type_value) ||
        !epg_value_get_string(type_value, &type)) {
        return false;
    }
    if (epg_value_lookup(space, "values", &values)) {
        return draw_value(values, state, out);
    }
    if (is_one_of(type, ints)) {
        return draw_int(space, state, out);
    }
    if (is_one_of(type, floats)) {
        return draw_float(space, state, out);
    }
    if (is_one_of(type, bools)) {
        epg_value_put_bool(out, (draw_u64(state) & 1) != 0);
        return true;
    }
    if (epg_span_equal(type, epg_span_text("null"))) {
        epg_value_put_null(out);
        return true;
    }
    if (is_one_of(type, lists) || epg_span_equal(type, epg_span_text("tuple"))) {
        return draw_items(space, epg_span_equal(type, epg_span_text("tuple")), depth, state, out);
    }
    return is_one_of(type, maps) && draw_fields(space, depth, state, out);
}

epg_code epg_draw_action(epg_span space, uint64_t *state, epg_buffer *out, epg_error *err)
{
    EPG_AUTO_BUFFER drawn = {0};
    if (!draw_from(space, 0, state, &drawn) ||
        epg_value_check(epg_buffer_span(&drawn), &epg_value_policy_limits, NULL) != EPG_OK) {
        return not_understood(err);
    }
    (void)epg_buffer_append_span(out, epg_buffer_span(&drawn));
    return EPG_OK;
}
