#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

enum { ROUNDS = 500000 };

/* The input in memory of exactly its size, so that a sanitizer or valgrind sees the first byte past its end. */
static void run(const epg_buffer *input)
{
    EPG_AUTO_FREE uint8_t *exact = epg_alloc(input->size);
    if (input->size > 0) {
        memcpy(exact, input->data, input->size);
    }
    (void)LLVMFuzzerTestOneInput(exact, input->size);
}

static int run_file(const char *path)
{
    EPG_AUTO_BUFFER input = {0};
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    int byte = 0;
    while ((byte = getc(file)) != EOF) {
        (void)epg_buffer_byte(&input, (uint8_t)byte);
    }
    (void)fclose(file);
    run(&input);
    return 0;
}

int main(int argc, char *argv[])
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        failed |= run_file(argv[i]);
    }
    if (argc > 1) {
        return failed;
    }
    uint64_t state = 1;
    EPG_AUTO_BUFFER input = {0};
    for (int i = 0; i < ROUNDS; i++) {
        epg_buffer_clear(&input);
        epg_fuzz_seed(&state, &input);
        run(&input);
    }
    return 0;
}
