/* What tests that start processes share. */
#ifndef EPG_TESTS_PROCESSES_H
#define EPG_TESTS_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>

#include "system/process.h"

/* A built program's path, e.g. "epg-test-tree". Caller frees. */
char *epg_test_program(const char *name);

/* A command with its stdout in a pipe of which nobody else holds the other end: the end of file on `out` proves that
 * nothing of its tree is left. */
typedef struct epg_test_command {
    epg_spawn spawn;
    epg_fd_map fds[1];
    const char *argv[8];
    char *program;
    int out;   /* to read */
    int write; /* closed by epg_test_command_started */
} epg_test_command;

/* Words after the program's name end with NULL. */
void epg_test_command_make(epg_test_command *command, const char *program, const char *first, const char *second);
void epg_test_command_started(epg_test_command *command);
void epg_test_command_free(epg_test_command *command);

/* Reads one line (without its end) within a generous limit; false at the end of file. Fails the test at the limit. */
bool epg_test_read_line(int fd, char *line, size_t size);
void epg_test_expect_line(int fd, const char *expected);
/* Reads up to the end of file within a generous limit; fails the test at the limit. */
void epg_test_expect_end(int fd);
bool epg_test_at_end(int fd); /* reads what is there; true when it is the end of file */
void epg_test_no_child_left(void);

#endif
