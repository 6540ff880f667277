#include "system/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "system/io.h"

enum { BLOCK = 64 * 1024 };

epg_code epg_output_begin(epg_output *output, int dir, const char *name, epg_error *err)
{
    int fd = epg_io_open(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0) {
        epg_code code = errno == EEXIST ? EPG_ERR_EXISTS : EPG_ERR_IO;
        (void)epg_fail_errno(err, errno, "can't create '%s'", name);
        if (err != NULL) {
            err->code = code;
        }
        return code;
    }
    *output = (epg_output){.dir = dir, .name = epg_strdup(name), .fd = fd};
    return EPG_OK;
}

static void write_out(epg_output *output, epg_span bytes)
{
    if (output->why == 0 && bytes.size > 0 && epg_io_write_all(output->fd, bytes.data, bytes.size) != 0) {
        output->why = errno;
    }
}

void epg_output_put(epg_output *output, epg_span bytes)
{
    if (output->waiting.size + bytes.size > BLOCK) {
        write_out(output, epg_buffer_span(&output->waiting));
        epg_buffer_clear(&output->waiting);
    }
    if (bytes.size > BLOCK) {
        write_out(output, bytes);
    } else {
        (void)epg_buffer_append_span(&output->waiting, bytes);
    }
}

static int finish(epg_output *output, mode_t mode, bool sync)
{
    write_out(output, epg_buffer_span(&output->waiting));
    if (output->why != 0) {
        return output->why;
    }
    if (epg_io_fchmod(output->fd, mode) != 0 || (sync && epg_io_fsync(output->fd) != 0)) {
        return errno;
    }
    return close(epg_take_fd(&output->fd)) == 0 ? 0 : errno; /* network file systems tell a full disk here */
}

epg_code epg_output_end(epg_output *output, mode_t mode, bool sync, epg_error *err)
{
    int why = finish(output, mode, sync);
    if (why == 0) {
        free(EPG_TAKE(output->name));
        epg_output_free(output);
        return EPG_OK;
    }
    (void)epg_fail_errno(err, why, "can't write '%s'", output->name);
    epg_output_free(output);
    return EPG_ERR_IO;
}

void epg_output_free(epg_output *output)
{
    if (output->name != NULL) {
        epg_close_cleanup(&output->fd);
        (void)epg_io_unlink(output->dir, output->name, 0);
        free(output->name);
    }
    epg_buffer_free(&output->waiting);
    *output = (epg_output){.fd = -1};
}
