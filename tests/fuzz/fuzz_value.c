/* epg_value_check on any bytes: it ends, reads nothing past their end, and takes exactly what comes back through the
 * node form as the same bytes. Reading without a check before it must be safe, too. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "value/random_value.h"
#include "value/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    epg_span bytes = epg_span_of(data, size);
    epg_value_cursor cursor;
    epg_span key = {0};
    epg_span item = {0};
    if (epg_value_enter(bytes, &cursor)) {
        while (epg_value_next(&cursor, &key, &item)) {
            (void)epg_value_kind(item);
        }
    }
    if (epg_value_check(bytes, &epg_value_policy_limits, NULL) == EPG_OK &&
        (epg_value_length(bytes) != size || !comes_back(bytes, &epg_value_policy_limits))) {
        abort();
    }
    return 0;
}

void epg_fuzz_seed(uint64_t *state, epg_buffer *out)
{
    draw_value(state, 6, out);
    if (draw_below(state, 8) != 0) {
        damage(state, out);
    }
}
