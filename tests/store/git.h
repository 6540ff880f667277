/* Plain git, asked about a repository that the store made. */
#ifndef EPG_TESTS_STORE_GIT_H
#define EPG_TESTS_STORE_GIT_H

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buffer.h"

/* What a shell command prints on stdout; the test fails unless it exits with 0. Caller frees. */
__attribute__((format(printf, 1, 2))) static inline char *epg_test_shell(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *command = NULL;
    ck_assert_int_ge(vasprintf(&command, format, arguments), 0);
    va_end(arguments);
    FILE *pipe = popen(command, "re");
    EPG_AUTO_BUFFER text = {0};
    char chunk[4096];
    size_t got = 0;
    ck_assert_ptr_nonnull(pipe);
    while ((got = fread(chunk, 1, sizeof chunk, pipe)) > 0) {
        (void)epg_buffer_append(&text, chunk, got);
    }
    int status = pclose(pipe);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %d: %s", command, status, epg_buffer_cstr(&text));
    free(command);
    return epg_strdup(epg_buffer_cstr(&text));
}

/* `git ARGUMENTS`, without anybody's configuration. */
static inline char *epg_test_git(const char *repository, const char *arguments)
{
    return epg_test_shell("exec 2>&1; export GIT_CONFIG_NOSYSTEM=1 HOME=/nonexistent LC_ALL=C;"
                          "git -c safe.directory='*' --git-dir='%s' %s",
                          repository, arguments);
}

/* For what it does, not for what it prints. */
static inline void epg_run_git(const char *repository, const char *arguments)
{
    free(epg_test_git(repository, arguments));
}

static inline void epg_assert_git(const char *repository, const char *arguments, const char *expected)
{
    EPG_AUTO_FREE char *text = epg_test_git(repository, arguments);
    ck_assert_str_eq(text, expected);
}

/* git finds no fault; what nothing names is none. */
static inline void epg_assert_sound(const char *repository)
{
    epg_assert_git(repository, "fsck --strict --full --no-dangling", "");
}

#endif
