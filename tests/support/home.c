#include "support/home.h"

#include <fcntl.h>
#include <unistd.h>

#include "support/support.h"

char *home_path;
int home = -1;

void home_set_up(void)
{
    home_path = epg_test_directory();
    home = open(home_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(home, 0);
}

void home_tear_down(void)
{
    (void)close(home);
    epg_test_directory_free(home_path);
}
