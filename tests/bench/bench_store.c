/* What keeping a snapshot costs: capture, commit, note and maintenance of a Program with one file changed, over a
 * growing history. `bench_store [FILES] [SUBMISSIONS]` (default 3 and 1000), in $TMPDIR: give it the disk that Runs lie
 * on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "programs/store.h"
#include "support/support.h"

enum { FILE_BYTES = 4096 };

typedef struct series {
    const char *name;
    int64_t *ns;
    size_t count;
} series;

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static double quantile(const series *which, size_t from, size_t to, double part)
{
    EPG_AUTO_FREE int64_t *sorted = epg_alloc_array(to - from, sizeof *sorted);
    memcpy(sorted, which->ns + from, (to - from) * sizeof *sorted);
    qsort(sorted, to - from, sizeof *sorted, by_size);
    return (double)sorted[(size_t)((double)(to - from - 1) * part)] / 1e6;
}

static void print(const series *which)
{
    size_t tenth = which->count / 10 > 0 ? which->count / 10 : 1;
    printf("%-10s %8.2f %8.2f %8.2f   %8.2f %8.2f\n", which->name, quantile(which, 0, which->count, 0.5),
           quantile(which, 0, which->count, 0.95), quantile(which, 0, which->count, 1), quantile(which, 0, tenth, 0.5),
           quantile(which, which->count - tenth, which->count, 0.5));
}

static void check(epg_code code, const epg_error *err)
{
    if (code != EPG_OK) {
        (void)fprintf(stderr, "bench_store: %s\n", err->text);
        exit(1);
    }
}

static epg_code count_entry(void *context, const epg_store_entry *entry, epg_error *err)
{
    (void)entry;
    (void)err;
    ++*(size_t *)context;
    return EPG_OK;
}

static void write_file(const char *source, size_t file, size_t version)
{
    char content[FILE_BYTES];
    EPG_AUTO_FREE char *name = file == 0 ? epg_strdup("policy.py") : epg_format("lib/part%zu.py", file);
    for (size_t i = 0; i < sizeof content; i++) {
        content[i] = "def weights(x): return 0.1 * x + \n"[(i * 7 + file + i / 31) % 34];
    }
    (void)snprintf(content, sizeof content, "# file %zu, version %zu\n", file, version);
    epg_test_write(source, name, content, sizeof content);
}

int main(int argc, char **argv)
{
    size_t files = argc > 1 ? strtoul(argv[1], NULL, 10) : 3;
    size_t submissions = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    char *directory = epg_test_directory();
    EPG_AUTO_FREE char *path = epg_format("%s/programs.git", directory);
    EPG_AUTO_FREE char *program_directory = epg_format("%s/program", directory);
    epg_store *store = NULL;
    epg_error err = {.text = ""};
    series all[] = {{.name = "capture"}, {.name = "commit"}, {.name = "note"}, {.name = "maintain"}, {.name = "sum"}};
    for (size_t i = 0; i < EPG_COUNT(all); i++) {
        all[i].ns = epg_alloc_array(submissions, sizeof *all[i].ns);
    }
    EPG_AUTO_FREE char *make = epg_format("mkdir -p '%s/lib'", program_directory);
    if (system(make) != 0 || files == 0 || submissions == 0) {
        return 2;
    }
    check(epg_store_create(path, &store, &err), &err);
    for (size_t i = 0; i < files; i++) {
        write_file(program_directory, i, 0);
    }
    for (size_t i = 0; i < submissions; i++) {
        epg_program program = {0};
        char id[EPG_OBJECT_ID_TEXT];
        EPG_AUTO_FREE char *name = epg_format("submission-%06zu", i + 1);
        write_file(program_directory, 0, i);
        int64_t times[6];
        times[0] = epg_monotonic_ns();
        check(epg_program_capture_path(program_directory, &epg_program_default_limits, &program, &err), &err);
        times[1] = epg_monotonic_ns();
        check(epg_store_commit(store, &program, name, "Submission", NULL, (int64_t)i, id, &err), &err);
        times[2] = epg_monotonic_ns();
        check(epg_store_note(store, name, "Score: 123.456\nEpisodes: 5\n", (int64_t)i, &err), &err);
        times[3] = epg_monotonic_ns();
        check(epg_store_maintain(store, &err), &err);
        times[4] = epg_monotonic_ns();
        for (size_t k = 0; k < 4; k++) {
            all[k].ns[all[k].count++] = times[k + 1] - times[k];
        }
        all[4].ns[all[4].count++] = times[4] - times[0];
        epg_program_free(&program);
    }
    printf("%zu files of %d bytes, one changed; %zu submissions; milliseconds\n", files, FILE_BYTES, submissions);
    printf("%-10s %8s %8s %8s   %8s %8s\n", "", "median", "95 %", "most", "first", "last tenth");
    for (size_t i = 0; i < EPG_COUNT(all); i++) {
        print(&all[i]);
        free(all[i].ns);
    }
    epg_store_close(store);
    size_t listed = 0;
    int64_t start = epg_monotonic_ns();
    clock_t busy = clock();
    check(epg_store_open(path, &store, &err), &err);
    check(epg_store_each(store, count_entry, &listed, &err), &err);
    printf("listing %zu snapshots with their notes: %.1f ms, %.1f of them busy\n", listed,
           (double)(epg_monotonic_ns() - start) / 1e6, (double)(clock() - busy) * 1e3 / CLOCKS_PER_SEC);
    EPG_AUTO_FREE char *size = epg_format("du -sh '%s' | cut -f1; ls '%s/objects/pack' | wc -l", path, path);
    (void)fflush(stdout);
    (void)!system(size);
    epg_store_close(store);
    epg_test_directory_free(directory);
    return 0;
}
