/* What every test program shares. */
#ifndef EPG_TESTS_SUPPORT_H
#define EPG_TESTS_SUPPORT_H

#include <check.h>
#include <stddef.h>

#include "base/error.h"

/* `int main(void) { return epg_test_main(make_suite()); }`: 0 when every check passed. CK_FORK as in the environment.
 */
int epg_test_main(Suite *suite);

/* Fails the test, with the error's text, unless `code` is EPG_OK / `expected`. */
#define epg_assert_ok(expression, err)                                                                                 \
    do {                                                                                                               \
        epg_code epg_code_ = (expression);                                                                             \
        ck_assert_msg(epg_code_ == EPG_OK, "%s: %s: %s", #expression, epg_code_name(epg_code_), (err)->text);          \
    } while (0)
#define epg_assert_code(expression, expected, err)                                                                     \
    do {                                                                                                               \
        epg_code epg_code_ = (expression);                                                                             \
        ck_assert_msg(epg_code_ == (expected), "%s: got %s, not %s: %s", #expression, epg_code_name(epg_code_),        \
                      epg_code_name(expected), epg_code_ == EPG_OK ? "" : (err)->text);                                \
    } while (0)

/* A private temporary directory, removed by epg_test_directory_free with all that is in it. */
char *epg_test_directory(void);
void epg_test_directory_free(char *path);
/* Writes a file below `directory`, making the directories between. */
void epg_test_write(const char *directory, const char *path, const void *data, size_t size);
void epg_test_write_text(const char *directory, const char *path, const char *text);
char *epg_test_read_text(const char *directory, const char *path); /* NULL when it is not there; caller frees */
size_t epg_test_open_descriptors(void);                            /* of this process */

#endif
