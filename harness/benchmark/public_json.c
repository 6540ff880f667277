#include "benchmark/public_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "value/value.h"

enum { RANK_MAX = 32 };

/* PolicyValues are at most 32 deep; the JSON reader bounds what gets here. */
static epg_code put(const json_t *json, epg_buffer *out, epg_error *err);

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static epg_code put_object(json_t *object, epg_buffer *out, epg_error *err)
{
    size_t count = json_object_size(object);
    EPG_AUTO_FREE const char **keys = epg_alloc_array(count, sizeof *keys);
    size_t filled = 0;
    const char *key = NULL;
    json_t *item = NULL;
    json_object_foreach(object, key, item)
    {
        keys[filled++] = key;
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    epg_value_put_map(out, count);
    for (size_t i = 0; i < count; i++) {
        epg_value_put_key(out, keys[i]);
        EPG_TRY(put(json_object_get(object, keys[i]), out, err));
    }
    return EPG_OK;
}

static epg_code get_base64(const json_t *object, epg_buffer *out, epg_error *err)
{
    const char *text = json_string_value(json_object_get(object, "base64"));
    if (text == NULL || !epg_base64_decode(epg_span_text(text), out)) {
        return epg_fail(err, EPG_ERR_INVALID, "a $type member without right base64");
    }
    return EPG_OK;
}

static epg_code put_tensor(const json_t *object, epg_buffer *out, epg_error *err)
{
    EPG_AUTO_BUFFER data = {0};
    EPG_TRY(get_base64(object, &data, err));
    const char *dtype = json_string_value(json_object_get(object, "dtype"));
    const json_t *shape = json_object_get(object, "shape");
    size_t rank = json_array_size(shape);
    uint64_t sizes[RANK_MAX];
    if (dtype == NULL || !json_is_array(shape) || rank > RANK_MAX) {
        return epg_fail(err, EPG_ERR_INVALID, "a tensor without a right dtype and shape");
    }
    for (size_t i = 0; i < rank; i++) {
        if (!epg_json_is_u64(json_array_get(shape, i), &sizes[i])) {
            return epg_fail(err, EPG_ERR_INVALID, "a tensor's shape must hold non-negative integers");
        }
    }
    epg_value_put_tensor(out, dtype, sizes, rank, epg_buffer_span(&data));
    return EPG_OK;
}

static epg_code put_list(const json_t *array, bool tuple, epg_buffer *out, epg_error *err)
{
    if (!json_is_array(array)) {
        return epg_fail(err, EPG_ERR_INVALID, "a tuple without items");
    }
    if (tuple) {
        epg_value_put_tuple(out, json_array_size(array));
    } else {
        epg_value_put_list(out, json_array_size(array));
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        EPG_TRY(put(json_array_get(array, i), out, err));
    }
    return EPG_OK;
}

static epg_code put_typed(const json_t *object, const char *type, epg_buffer *out, epg_error *err)
{
    if (strcmp(type, "bytes") == 0) {
        EPG_AUTO_BUFFER data = {0};
        EPG_TRY(get_base64(object, &data, err));
        epg_value_put_bytes(out, epg_buffer_span(&data));
        return EPG_OK;
    }
    if (strcmp(type, "tensor") == 0) {
        return put_tensor(object, out, err);
    }
    if (strcmp(type, "tuple") == 0) {
        return put_list(json_object_get(object, "items"), true, out, err);
    }
    return epg_fail(err, EPG_ERR_INVALID, "a $type must be bytes, tensor or tuple");
}

static epg_code put(const json_t *json, epg_buffer *out, epg_error *err)
{
    uint64_t large = 0;
    switch (json_typeof(json)) {
    case JSON_OBJECT: {
        const char *type = json_string_value(json_object_get(json, "$type"));
        if (type != NULL) {
            return put_typed(json, type, out, err);
        }
        EPG_AUTO_JSON *walked = json_copy((json_t *)(uintptr_t)json); /* jansson's iteration takes no const */
        return put_object(walked, out, err);
    }
    case JSON_ARRAY:
        return put_list(json, false, out, err);
    case JSON_STRING:
        if (epg_json_is_u64(json, &large)) { /* an integer that jansson can't hold */
            epg_value_put_u64(out, large);
        } else {
            epg_value_put_string(out, epg_span_of(json_string_value(json), json_string_length(json)));
        }
        return EPG_OK;
    case JSON_INTEGER:
        epg_value_put_i64(out, json_integer_value(json));
        return EPG_OK;
    case JSON_REAL:
        epg_value_put_float(out, json_real_value(json));
        return EPG_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        epg_value_put_bool(out, json_is_true(json));
        return EPG_OK;
    case JSON_NULL:
        epg_value_put_null(out);
        return EPG_OK;
    }
    return EPG_OK;
}

epg_code epg_value_from_public_json(const json_t *json, epg_buffer *out, epg_error *err)
{
    size_t before = out->size;
    EPG_TRY(put(json, out, err));
    epg_span made = epg_span_of(out->data + before, out->size - before);
    return epg_value_check(made, &epg_value_policy_limits, err);
}
