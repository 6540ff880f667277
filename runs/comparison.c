#include "runs/comparison.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { VALUES_MAX = 10000, DEPTH_MAX = 32 };

static void free_rows(epg_pair_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(rows[i].name);
    }
    free(rows);
}

void epg_pair_free(epg_pair *pair)
{
    free_rows(pair->episodes, pair->episode_count);
    free_rows(pair->values, pair->value_count);
    *pair = (epg_pair){0};
}

static void add_row(epg_pair_row **rows, size_t *count, char *name, const json_t *a, const json_t *b)
{
    *rows = epg_grow_array(*rows, *count + 1, sizeof **rows);
    (*rows)[(*count)++] = (epg_pair_row){.name = name, .a = a, .b = b};
}

static json_int_t index_of(const json_t *episodes, size_t at)
{
    return json_integer_value(json_object_get(json_array_get(episodes, at), "episode_index"));
}

/* Both lists rise by index. */
static void pair_episodes(const json_t *a, const json_t *b, epg_pair *out)
{
    size_t i = 0;
    size_t j = 0;
    while (i < json_array_size(a) || j < json_array_size(b)) {
        bool only_a = j == json_array_size(b) || (i < json_array_size(a) && index_of(a, i) < index_of(b, j));
        bool only_b = i == json_array_size(a) || (j < json_array_size(b) && index_of(b, j) < index_of(a, i));
        char *name = epg_format("%lld", (long long)(only_b ? index_of(b, j) : index_of(a, i)));
        add_row(&out->episodes, &out->episode_count, name, only_b ? NULL : json_array_get(a, i),
                only_a ? NULL : json_array_get(b, j));
        i += !only_b;
        j += !only_a;
    }
}

static bool is_scalar(const json_t *value)
{
    return value == NULL || !(json_is_object(value) || json_is_array(value));
}

static void pair_values(const json_t *a, const json_t *b, const char *prefix, unsigned depth, epg_pair *out);

static void pair_member(const json_t *a, const json_t *b, const char *prefix, const char *key, unsigned depth,
                        epg_pair *out)
{
    EPG_AUTO_FREE char *name = prefix[0] != '\0' ? epg_format("%s.%s", prefix, key) : epg_strdup(key);
    if (is_scalar(a) && is_scalar(b)) {
        if (out->value_count < VALUES_MAX) {
            add_row(&out->values, &out->value_count, EPG_TAKE(name), a, b);
        }
    } else {
        pair_values(a, b, name, depth + 1, out);
    }
}

static void pair_values(const json_t *a, const json_t *b, const char *prefix, unsigned depth, epg_pair *out)
{
    const char *key = NULL;
    json_t *value = NULL;
    if (depth >= DEPTH_MAX) {
        return;
    }
    void *of_a; /* jansson's macro takes no const */
    memcpy(&of_a, &a, sizeof of_a);
    void *of_b;
    memcpy(&of_b, &b, sizeof of_b);
    json_object_foreach((json_t *)of_a, key, value)
    {
        pair_member(value, json_object_get(b, key), prefix, key, depth, out);
    }
    json_object_foreach((json_t *)of_b, key, value)
    {
        if (json_object_get(a, key) == NULL) {
            pair_member(NULL, value, prefix, key, depth, out);
        }
    }
}

void epg_pair_feedback(const json_t *a, const json_t *b, epg_pair *out)
{
    *out = (epg_pair){0};
    pair_episodes(json_object_get(a, "episodes"), json_object_get(b, "episodes"), out);
    pair_values(json_object_get(a, "content"), json_object_get(b, "content"), "", 0, out);
}
