#include "support/support.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

int epg_test_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

char *epg_test_directory(void)
{
    const char *base = getenv("TMPDIR");
    char *path = epg_format("%s/epg-test-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(path) == NULL) {
        perror(path);
        abort();
    }
    return path;
}

static int open_up(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)walk;
    if (type == FTW_D) {
        (void)chmod(path, 0700);
    }
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    (void)remove(path);
    return 0;
}

void epg_test_directory_free(char *path)
{
    if (path == NULL) {
        return;
    }
    (void)nftw(path, open_up, 16, FTW_PHYS);
    (void)nftw(path, remove_one, 16, FTW_PHYS | FTW_DEPTH);
    free(path);
}

void epg_test_write(const char *directory, const char *path, const void *data, size_t size)
{
    EPG_AUTO_FREE char *whole = epg_format("%s/%s", directory, path);
    for (char *slash = whole + strlen(directory) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        if (mkdir(whole, 0755) != 0 && errno != EEXIST) {
            perror(whole);
            abort();
        }
        *slash = '/';
    }
    FILE *file = fopen(whole, "wbe");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        perror(whole);
        abort();
    }
}

void epg_test_write_text(const char *directory, const char *path, const char *text)
{
    epg_test_write(directory, path, text, strlen(text));
}

char *epg_test_read_text(const char *directory, const char *path)
{
    EPG_AUTO_FREE char *whole = epg_format("%s/%s", directory, path);
    FILE *file = fopen(whole, "rbe");
    if (file == NULL) {
        return NULL;
    }
    char *text = epg_alloc(1);
    size_t size = 0;
    char chunk[4096];
    size_t got = 0;
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0) {
        text = epg_grow_array(text, size + got + 1, 1);
        memcpy(text + size, chunk, got);
        size += got;
    }
    text[size] = '\0';
    (void)fclose(file);
    return text;
}

size_t epg_test_open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;
    while (directory != NULL && readdir(directory) != NULL) {
        count++;
    }
    (void)closedir(directory);
    return count - 3; /* ".", ".." and the directory's own */
}
