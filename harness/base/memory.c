#include "base/memory.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void out_of_memory(size_t size)
{
    char text[80];
    int length = snprintf(text, sizeof text, "evopolicygym: out of memory (%zu bytes)\n", size);
    if (length > 0) {
        ssize_t ignored = write(STDERR_FILENO, text, (size_t)length);
        (void)ignored;
    }
    abort();
}

void *epg_alloc(size_t size)
{
    void *memory = calloc(1, size > 0 ? size : 1);
    if (memory == NULL) {
        out_of_memory(size);
    }
    return memory;
}

void *epg_alloc_array(size_t count, size_t item_size)
{
    size_t size = 0;
    if (__builtin_mul_overflow(count, item_size, &size)) {
        out_of_memory(SIZE_MAX);
    }
    return epg_alloc(size);
}

void *epg_grow_array(void *array, size_t count, size_t item_size)
{
    size_t size = 0;
    if (__builtin_mul_overflow(count, item_size, &size)) {
        out_of_memory(SIZE_MAX);
    }
    void *memory = realloc(array, size > 0 ? size : 1);
    if (memory == NULL) {
        out_of_memory(size);
    }
    return memory;
}

char *epg_strdup(const char *text)
{
    return epg_strndup(text, strlen(text));
}

char *epg_strndup(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    char *copy = epg_alloc(length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *epg_format(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0) {
        out_of_memory(0);
    }
    return text;
}

void epg_return_large_blocks(void)
{
    enum { LARGE = 256 * 1024 };
    (void)mallopt(M_MMAP_THRESHOLD, LARGE);
    (void)mallopt(M_TRIM_THRESHOLD, LARGE);
}

void epg_free_cleanup(void *pointer_address)
{
    void *pointer = NULL;
    memcpy(&pointer, pointer_address, sizeof pointer);
    free(pointer);
}

void epg_close_cleanup(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        (void)close(*fd);
        errno = saved;
    }
}
