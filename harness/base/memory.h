/* Memory and ownership.
 *
 * Allocation never returns NULL: a size must be checked against its bound before it gets here, so running out
 * means that the machine is out of memory; the process says so and aborts, and the Run's record (which is made
 * to survive a kill at any moment) stands. Ownership in a function is told by cleanup attributes. */
#ifndef EPG_BASE_MEMORY_H
#define EPG_BASE_MEMORY_H

#include <stddef.h>

void *epg_alloc(size_t size);                                      /* zeroed; size 0 gives a valid pointer */
void *epg_alloc_array(size_t count, size_t item_size);             /* zeroed; aborts on overflow */
void *epg_grow_array(void *array, size_t count, size_t item_size); /* realloc; new space is not zeroed */
char *epg_strdup(const char *text);
char *epg_strndup(const char *text, size_t size);
char *epg_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For a process that lives long: blocks from a quarter of a megabyte on go back to the machine when they are freed,
 * however large they were. Left to itself, malloc learns from the largest block that it has seen, and keeps as much. */
void epg_return_large_blocks(void);

/* Calls the named cleanup with the variable's address when it leaves its scope. */
#define EPG_CLEANUP(function) __attribute__((cleanup(function)))

/* For `EPG_AUTO_FREE char *text = NULL;` */
void epg_free_cleanup(void *pointer_address);
#define EPG_AUTO_FREE EPG_CLEANUP(epg_free_cleanup)

/* For `EPG_AUTO_CLOSE int fd = -1;`: closed when >= 0. */
void epg_close_cleanup(int *fd);
#define EPG_AUTO_CLOSE EPG_CLEANUP(epg_close_cleanup)

/* Gives the owned pointer or descriptor away and leaves NULL or -1 behind. */
#define EPG_TAKE(pointer)                                                                                              \
    __extension__({                                                                                                    \
        __typeof__(pointer) epg_taken_ = (pointer);                                                                    \
        (pointer) = NULL;                                                                                              \
        epg_taken_;                                                                                                    \
    })
static inline int epg_take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

#define EPG_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
