/* Random canonical values and damage to them, the same for a seed everywhere: for the property test and the fuzz
 * target. */
#ifndef EPG_TESTS_VALUE_RANDOM_VALUE_H
#define EPG_TESTS_VALUE_RANDOM_VALUE_H

#include <stdint.h>
#include <string.h>

#include "value/value.h"

static inline uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t draw_below(uint64_t *state, uint64_t bound)
{
    return draw(state) % bound;
}

static inline void draw_tensor(uint64_t *state, epg_buffer *out)
{
    static const struct {
        const char *dtype;
        size_t size;
    } types[] = {{"bool", 1},    {"uint8", 1},   {"int16", 2}, {"float16", 2},
                 {"float32", 4}, {"float64", 8}, {"uint64", 8}};
    uint64_t shape[3];
    uint8_t data[3 * 3 * 3 * 8] = {0};
    uint64_t which = draw_below(state, EPG_COUNT(types));
    size_t rank = (size_t)draw_below(state, 4);
    size_t size = types[which].size;
    for (size_t i = 0; i < rank; i++) {
        shape[i] = draw_below(state, 4);
        size *= (size_t)shape[i];
    }
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)draw_below(state, 2); /* admissible for every type */
    }
    epg_value_put_tensor(out, types[which].dtype, shape, rank, epg_span_of(data, size));
}

static inline void draw_scalar(uint64_t *state, epg_buffer *out)
{
    static const char *const texts[] = {"", "a", "\xc3\xa9", "\xf0\x9f\x98\x80", "\"\\\n"};
    static const double reals[] = {0.0, -0.0, 0.1, -1.5e300, 5e-324};
    switch (draw_below(state, 8)) {
    case 0:
        epg_value_put_null(out);
        break;
    case 1:
        epg_value_put_bool(out, draw_below(state, 2) == 1);
        break;
    case 2:
        epg_value_put_i64(out, (int64_t)draw(state) >> draw_below(state, 64));
        break;
    case 3:
        epg_value_put_u64(out, draw(state) >> draw_below(state, 64));
        break;
    case 4:
        epg_value_put_float(out, reals[draw_below(state, EPG_COUNT(reals))]);
        break;
    case 5:
        epg_value_put_text(out, texts[draw_below(state, EPG_COUNT(texts))]);
        break;
    case 6:
        epg_value_put_bytes(out, epg_span_of("\x00\xff\x10", (size_t)draw_below(state, 4)));
        break;
    default:
        draw_tensor(state, out);
        break;
    }
}

static inline void draw_value(uint64_t *state, unsigned depth, epg_buffer *out)
{
    uint64_t kind = draw_below(state, 6);
    uint64_t count = draw_below(state, 4);
    if (depth == 0 || kind < 3) {
        draw_scalar(state, out);
        return;
    }
    if (kind == 3) {
        epg_value_put_list(out, count);
    } else if (kind == 4) {
        epg_value_put_tuple(out, count);
    } else {
        epg_value_put_map(out, count);
    }
    for (uint64_t i = 0; i < count; i++) {
        if (kind == 5) {
            char key[2] = {(char)('a' + 3 * i + draw_below(state, 3)), '\0'};
            epg_value_put_key(out, key);
        }
        draw_value(state, depth - 1, out);
    }
}

/* One to three changes: a bit, a byte that means something, a cut, bytes taken out. */
static inline void damage(uint64_t *state, epg_buffer *bytes)
{
    static const char meanings[] = {'N', 'B', 'I', 'F', 'S', 'Y',  'T',  'L',
                                    'U', 'M', '0', '1', '-', '\0', '\1', '\x7f'};
    for (uint64_t changes = 1 + draw_below(state, 3); changes > 0 && bytes->size > 1; changes--) {
        size_t at = (size_t)draw_below(state, bytes->size);
        size_t cut = 1 + (size_t)draw_below(state, bytes->size - at);
        switch (draw_below(state, 4)) {
        case 0:
            bytes->data[at] ^= (uint8_t)(1U << draw_below(state, 8));
            break;
        case 1:
            bytes->data[at] = (uint8_t)meanings[draw_below(state, sizeof meanings)];
            break;
        case 2:
            bytes->size = at;
            break;
        default:
            memmove(bytes->data + at, bytes->data + at + cut, bytes->size - at - cut);
            bytes->size -= cut;
            break;
        }
    }
}

/* True when the node form of checked bytes is read back as the same bytes. (A string that starts with the reader's mark
 * for large integers is the one thing that JSON reading refuses.) */
static inline bool comes_back(epg_span bytes, const epg_value_limits *limits)
{
    static const char mark[] = {'\0', 'u', '6', '4', ':'};
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_BUFFER again = {0};
    EPG_AUTO_JSON *node = NULL;
    epg_json_writer writer;
    epg_json_begin(&writer, &text, 0);
    epg_value_to_node(bytes, &writer, NULL);
    epg_json_finish(&writer);
    if (epg_json_parse(epg_buffer_span(&text), "node", &node, NULL) != EPG_OK) {
        return memmem(bytes.data, bytes.size, mark, sizeof mark) != NULL;
    }
    return epg_value_from_node(node, limits, &again, NULL) == EPG_OK && epg_span_equal(bytes, epg_buffer_span(&again));
}

#endif
