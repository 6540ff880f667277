/* What values cost the Host: checking, measuring and walking canonical bytes, in nanoseconds each. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "value/value.h"

typedef void (*work)(epg_span bytes);

static void do_check(epg_span bytes)
{
    if (epg_value_check(bytes, &epg_value_policy_limits, NULL) != EPG_OK) {
        abort();
    }
}

static void do_length(epg_span bytes)
{
    if (epg_value_length(bytes) != bytes.size) {
        abort();
    }
}

static void do_json(epg_span bytes)
{
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &out, 0);
    epg_value_to_json(bytes, &writer, NULL);
    epg_json_finish(&writer);
}

static double measure(work act, epg_span bytes)
{
    int64_t best = INT64_MAX;
    for (int repeat = 0; repeat < 5; repeat++) {
        int64_t started = epg_monotonic_ns();
        uint64_t rounds = 0;
        while (epg_monotonic_ns() - started < 20 * EPG_MILLISECOND) {
            for (int i = 0; i < 50; i++) {
                act(bytes);
            }
            rounds += 50;
        }
        int64_t each = (epg_monotonic_ns() - started) * 10 / (int64_t)rounds;
        best = each < best ? each : best;
    }
    return (double)best / 10;
}

static void report(const char *name, const epg_buffer *value)
{
    epg_span bytes = epg_buffer_span(value);
    printf("%-24s %8zu bytes   check %10.1f ns   length %10.1f ns   public JSON %12.1f ns\n", name, bytes.size,
           measure(do_check, bytes), measure(do_length, bytes), measure(do_json, bytes));
}

int main(void)
{
    EPG_AUTO_BUFFER out = {0};
    epg_value_put_i64(&out, 1);
    report("int", &out);
    epg_buffer_clear(&out);
    epg_value_put_list(&out, 4);
    for (int i = 0; i < 4; i++) {
        epg_value_put_float(&out, 0.1 * i);
    }
    report("4 floats", &out);
    epg_buffer_clear(&out);
    epg_value_put_map(&out, 2000);
    for (int i = 0; i < 2000; i++) {
        EPG_AUTO_FREE char *key = epg_format("key-%04d", i);
        epg_value_put_key(&out, key);
        epg_value_put_i64(&out, i);
    }
    report("map of 2,000 ints", &out);
    epg_buffer_clear(&out);
    const uint64_t shape[] = {84, 84, 3};
    EPG_AUTO_FREE uint8_t *pixels = epg_alloc((size_t)84 * 84 * 3 * 4);
    epg_value_put_tensor(&out, "uint8", shape, 3, epg_span_of(pixels, (size_t)84 * 84 * 3));
    report("84x84x3 uint8", &out);
    epg_buffer_clear(&out);
    epg_value_put_tensor(&out, "float32", shape, 3, epg_span_of(pixels, (size_t)84 * 84 * 3 * 4));
    report("84x84x3 float32", &out);
    return 0;
}
