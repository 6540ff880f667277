/* Drawing Actions from an action space as specs write them.
 *
 * A space is free-form; what is understood is a map with a "type":
 *   discrete            one of "values"
 *   int, integer        from "minimum" to "maximum"
 *   float, number       from "minimum" to "maximum"
 *   bool, boolean
 *   string              one of "values"
 *   null
 *   list, array, vector, tuple     of "length" (or "shape": [n]) items of "items", or of floats from "minimum" to
 *                                  "maximum"; a tuple or list may give each item's space in "items": [...]
 *   object, map         of "fields": {name: space}
 * anything may have "values" instead of bounds. */
#ifndef EPG_BENCHMARK_DRAW_H
#define EPG_BENCHMARK_DRAW_H

#include "value/value.h"

/* Appends an Action drawn by `state` (advanced; any number to begin with). USAGE when the space isn't understood,
 * and `out` is as it was. */
epg_code epg_draw_action(epg_span space, uint64_t *state, epg_buffer *out, epg_error *err);

#endif
