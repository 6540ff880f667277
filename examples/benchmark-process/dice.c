/* A Benchmark as an executable of its own, in plain C, without this project's headers: roll a die at most six times and
 * stop when the last roll is good enough; the last roll is the reward.
 *
 *     cc examples/benchmark-process/dice.c -o dice
 *     evopolicygym benchmark check 'cmd:./dice --sides 6'
 *
 * docs/benchmark-protocol.md tells the frames. This is all of it: read a question from descriptor 3, write an answer
 * that repeats its sequence number to descriptor 4. Whatever is printed to stdout is only printed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 9, ROOM = 1 << 20 };

static uint8_t in[ROOM], out[ROOM];
static size_t size, used;

static uint64_t big(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

/* --- Writing canonical values (value by value, map keys in order) --- */

static void put(const void *data, size_t count)
{
    memcpy(out + HEAD + used, data, count);
    used += count;
}

static void put_number(uint64_t value)
{
    for (int i = 7; i >= 0; i--) {
        out[HEAD + used++] = (uint8_t)(value >> (8 * i));
    }
}

static void put_kind(char kind, uint64_t count)
{
    put(&kind, 1);
    put_number(count);
}

static void put_text(char kind, const char *text) /* 'S' string, 'I' int as decimal text, 0: a map's key */
{
    if (kind != 0) {
        put(&kind, 1);
    }
    put_number(strlen(text));
    put(text, strlen(text));
}

static void put_int(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    put_text('I', text);
}

static void put_float(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_kind('F', bits);
}

static void put_bool(const char *key, int value)
{
    put_text(0, key);
    put(value ? "B1" : "B0", 2);
}

/* --- Frames --- */

/* Reads exactly `count` bytes; the end of the channel is the end of us. */
static void take(uint8_t *to, size_t count)
{
    while (count > 0) {
        ssize_t got = read(3, to, count);
        if (got <= 0) {
            exit(0);
        }
        to += got;
        count -= (size_t)got;
    }
}

static void answer(char type)
{
    uint32_t length = (uint32_t)(5 + used);
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(length >> (24 - 8 * i));
    }
    out[4] = (uint8_t)type;
    memcpy(out + 5, in + 5, 4); /* the question's sequence number */
    for (size_t at = 0; at < HEAD + used;) {
        ssize_t wrote = write(4, out + at, HEAD + used - at);
        if (wrote <= 0) {
            exit(1);
        }
        at += (size_t)wrote;
    }
    used = 0;
}

static char question(void)
{
    take(in, 4);
    size = (size_t)big(in, 4) - 5;
    if (size > ROOM - HEAD) {
        exit(1);
    }
    take(in + 4, 5 + size);
    return (char)in[4];
}

/* The int behind a key of the question's map. A key never stands in another value of these questions. */
static uint64_t number_of(const char *key)
{
    size_t length = strlen(key);
    for (size_t at = HEAD; at + length < HEAD + size; at++) {
        if (memcmp(in + at, key, length) == 0 && in[at + length] == 'I') {
            return strtoull((const char *)in + at + length + 9, NULL, 10);
        }
    }
    return 0;
}

/* --- The game --- */

static uint64_t sides = 6, state, last;
static int rolls;

static uint64_t roll(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return 1 + (state >> 33) % sides;
}

static void spec(void)
{
    put_kind('M', 9);
    put_text(0, "action_space");
    put_kind('M', 2);
    put_text(0, "type");
    put_text('S', "discrete");
    put_text(0, "values");
    put_kind('L', 2);
    put_int(0);
    put_int(1);
    put_text(0, "description");
    put_text('S', "A die is rolled. Action 1 keeps the roll, which is the reward, and ends the Episode; 0 rolls again, "
                  "at most five times. The observation is the last roll.");
    put_text(0, "environment_parameters");
    put_kind('M', 1);
    put_text(0, "sides");
    put_int(sides);
    put_text(0, "id");
    put_text('S', "example/dice");
    put_text(0, "max_episode_steps");
    put_int(6);
    put_text(0, "metadata");
    put_kind('M', 0);
    put_text(0, "observation_space");
    put_kind('M', 1);
    put_text(0, "type");
    put_text('S', "int");
    put_text(0, "primary_metric");
    put_text('S', "mean_roll");
    put_text(0, "score_direction");
    put_text('S', "maximize");
    answer('s');
}

static void episodes(void)
{
    uint64_t count = number_of("count"), seed = number_of("seed");
    for (uint64_t i = 0; i < count; i++) { /* as many as one likes in a frame; here one */
        put_kind('L', 1);
        put_kind('M', 2);
        put_text(0, "environment_seed");
        put_int(seed * UINT64_C(0x9e3779b97f4a7c15) + i);
        put_text(0, "scenario");
        put("N", 1);
        answer('e');
    }
    answer('d');
}

static void step(void)
{
    int keep = size == 10 && in[HEAD + 9] == '1'; /* the int 1 is 'I', be64(1), "1" */
    if (size != 10 || in[HEAD] != 'I' || (in[HEAD + 9] != '0' && !keep)) {
        put_text('S', "the Action must be 0 or 1");
        answer('i');
        return;
    }
    last = keep ? last : roll();
    rolls++;
    put_kind('M', 5);
    put_text(0, "metrics");
    put("N", 1);
    put_text(0, "observation");
    put_int(last);
    put_text(0, "reward");
    put_float(keep ? (double)last : 0.0);
    put_bool("terminated", keep);
    put_bool("truncated", !keep && rolls == 6);
    answer('a');
}

/* The mean over Episodes of the rewards that the Host summed; failed ones count nothing. */
static void feedback(void)
{
    double sum = 0;
    uint64_t count = 0;
    for (;;) {
        answer('n');
        if (question() != 'N' || (size == 1 && in[HEAD] == 'N')) {
            break;
        }
        count++;
        for (size_t at = HEAD; at + 7 + 8 < HEAD + size; at++) {
            if (memcmp(in + at, "\6rewardF", 8) == 0) {
                uint64_t bits = big(in + at + 8, 8);
                double reward;
                memcpy(&reward, &bits, sizeof reward);
                sum += reward;
            }
        }
    }
    put_kind('M', 4);
    put_text(0, "content");
    put_kind('Y', 14);
    put("mean_roll told", 14);
    put_text(0, "media_type");
    put_text('S', "text/plain");
    put_text(0, "name");
    put_text('S', "note.txt");
    put_text(0, "retention");
    put_text('S', "permanent");
    answer('m');
    put_kind('M', 2);
    put_text(0, "content");
    put_kind('M', 1);
    put_text(0, "episodes");
    put_int(count);
    put_text(0, "score");
    put_float(count > 0 ? sum / (double)count : 0);
    answer('f');
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--sides") == 0) {
        sides = strtoull(argv[2], NULL, 10);
    }
    for (;;) {
        switch (question()) {
        case 'S':
            spec();
            break;
        case 'E':
            episodes();
            break;
        case 'O':
            state = number_of("environment_seed");
            rolls = 0;
            answer('o');
            break;
        case 'R':
            last = roll();
            put_int(last);
            answer('r');
            break;
        case 'A':
            step();
            break;
        case 'C':
            answer('c');
            break;
        case 'F':
            feedback();
            break;
        default:
            put_text('S', "this Benchmark does not do that");
            answer('x');
        }
    }
}
