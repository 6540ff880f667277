/* From public JSON (CONTRACTS section 1) to a value: the way back of epg_value_to_json, for what people write by hand
 * (Actions to replay, literals of specs). A JSON integer is an int, a number with a point or an exponent a float, an
 * object with "$type" a bytes, tensor or tuple value. */
#ifndef EPG_BENCHMARK_PUBLIC_JSON_H
#define EPG_BENCHMARK_PUBLIC_JSON_H

#include <jansson.h>

#include "base/buffer.h"
#include "base/error.h"

/* Appends the value to `out`; INVALID when it is none (out then holds a part). */
epg_code epg_value_from_public_json(const json_t *json, epg_buffer *out, epg_error *err);

#endif
