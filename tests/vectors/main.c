/* epg-vectors DIR: see vectors.h. Exits 0 when all passed, 1 when a vector failed, 2 when nothing could be run. */
#include "vectors/vectors.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"

typedef struct family {
    const char *file;
    void (*run)(const json_t *document, epg_vector_report *report);
} family;

#define FAMILY(name) {#name ".json", epg_vectors_##name},
static const family families[] = {EPG_VECTOR_FAMILIES(FAMILY)};
#undef FAMILY

static void print_failure(const epg_vector_report *report, const char *name, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

static void print_failure(const epg_vector_report *report, const char *name, const char *format, va_list arguments)
{
    printf("  %s: %s: ", report->file, name);
    vprintf(format, arguments);
    putchar('\n');
}

void epg_vector_pass(epg_vector_report *report)
{
    report->passed++;
}

void epg_vector_fail(epg_vector_report *report, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_failure(report, name, format, arguments);
    va_end(arguments);
    report->failed++;
}

bool epg_vector_verdict(epg_vector_report *report, const char *name, bool ok, const char *format, ...)
{
    if (ok) {
        report->passed++;
        return true;
    }
    va_list arguments;
    va_start(arguments, format);
    print_failure(report, name, format, arguments);
    va_end(arguments);
    report->failed++;
    return false;
}

const char *epg_vector_name(const json_t *vector)
{
    const char *name = json_string_value(json_object_get(vector, "name"));
    return name != NULL ? name : "(unnamed)";
}

/* Reads the whole of DIRECTORY/FILE; false, with errno set, when it can't be read. */
static bool read_file(const char *directory, const char *file, epg_buffer *out)
{
    EPG_AUTO_FREE char *path = epg_format("%s/%s", directory, file);
    FILE *stream = fopen(path, "rbe");
    if (stream == NULL) {
        return false;
    }
    char chunk[65536];
    size_t got = 0;
    while ((got = fread(chunk, 1, sizeof chunk, stream)) > 0) {
        (void)epg_buffer_append(out, chunk, got);
    }
    bool failed = ferror(stream) != 0;
    (void)fclose(stream);
    return !failed;
}

static void run_family(const family *which, epg_vector_report *report)
{
    EPG_AUTO_BUFFER text = {0};
    if (!read_file(report->directory, which->file, &text)) {
        epg_vector_fail(report, "(file)", "%s", strerror(errno));
        return;
    }
    EPG_AUTO_JSON *document = NULL;
    epg_error err = {0};
    if (epg_json_parse(epg_buffer_span(&text), which->file, &document, &err) != EPG_OK) {
        epg_vector_fail(report, "(file)", "%s", err.text);
        return;
    }
    which->run(document, report);
    if (report->passed + report->failed == 0) {
        epg_vector_fail(report, "(file)", "holds no vector");
    }
}

static bool is_file(const char *directory, const char *name)
{
    EPG_AUTO_FREE char *path = epg_format("%s/%s", directory, name);
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static const family *known(const char *name)
{
    for (size_t i = 0; i < EPG_COUNT(families); i++) {
        if (strcmp(families[i].file, name) == 0 && families[i].run != NULL) {
            return &families[i];
        }
    }
    return NULL;
}

/* Names what lies in the directory and no family knows; false when the directory can't be read. */
static bool name_skipped(const char *directory)
{
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, NULL, alphasort);
    if (count < 0) {
        fprintf(stderr, "epg-vectors: %s: %s\n", directory, strerror(errno));
        return false;
    }
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (name[0] != '.' && known(name) == NULL) {
            printf("%s: skipped, no such family\n", name);
        }
        free(entries[i]);
    }
    free(entries);
    return true;
}

int main(int argc, char *argv[])
{
    if (argc != 2) {
        fprintf(stderr, "usage: epg-vectors DIR\n");
        return 2;
    }
    if (!name_skipped(argv[1])) {
        return 2;
    }
    size_t ran = 0;
    size_t failed = 0;
    for (size_t i = 0; i < EPG_COUNT(families); i++) {
        if (families[i].run == NULL || !is_file(argv[1], families[i].file)) {
            continue;
        }
        epg_vector_report report = {.directory = argv[1], .file = families[i].file};
        run_family(&families[i], &report);
        printf("%s: %zu passed, %zu failed\n", report.file, report.passed, report.failed);
        ran++;
        failed += report.failed;
    }
    if (ran == 0) {
        fprintf(stderr, "epg-vectors: %s holds no vector file that is known\n", argv[1]);
        return 2;
    }
    return failed == 0 ? 0 : 1;
}
