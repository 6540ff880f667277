/* `evopolicygym verify`: was a record changed after the fact? */
#include "runs/verify.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"

#include <string.h>

static const char usage[] =
    "Usage: evopolicygym verify RUN [--json]\n\n"
    "Computes every digest, count, sum, git object and cross reference of a Run's record again and tells what does\n"
    "not fit: a Program that was edited, a score that was altered, an event that was removed. Reads only. Exit\n"
    "code 1 when something does not fit.";
static const char examples[] =
    "  evopolicygym verify out/first\n  evopolicygym verify out/first --json | jq .findings\n";

static void put_json(const char *run, const epg_verification *verification, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_put_u64(&writer, "checks", verification->checks);
    epg_json_array(&writer, "findings");
    for (size_t i = 0; i < verification->findings.count; i++) {
        epg_json_object(&writer, NULL);
        epg_json_put_text(&writer, "path", verification->findings.items[i].path);
        epg_json_put_text(&writer, "what", verification->findings.items[i].what);
        epg_json_end(&writer);
    }
    epg_json_end(&writer);
    epg_json_put_u64(&writer, "omitted", verification->findings.omitted);
    epg_json_put_text(&writer, "run", run);
    epg_json_put_text(&writer, "schema", "evopolicygym/verification/v1");
    epg_json_put_bool(&writer, "sealed", verification->sealed);
    epg_json_put_bool(&writer, "sound", verification->findings.count == 0);
    epg_json_put_text(&writer, "state", verification->state);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static void put_text(const char *run, const epg_verification *verification, epg_buffer *out)
{
    for (size_t i = 0; i < verification->findings.count; i++) {
        const epg_evidence *one = &verification->findings.items[i];
        EPG_AUTO_FREE char *path = epg_printable(one->path, strlen(one->path));
        EPG_AUTO_FREE char *what = epg_printable(one->what, strlen(one->what));
        (void)epg_buffer_format(out, "%s: %s\n", path, what);
    }
    if (verification->findings.omitted > 0) {
        (void)epg_buffer_format(out, "... and %zu more\n", verification->findings.omitted);
    }
    (void)epg_buffer_format(out, "%s (%s): %llu checks, %s%s\n", run, verification->state,
                            (unsigned long long)verification->checks,
                            verification->findings.count == 0 ? "all hold" : "not sound",
                            verification->sealed ? "" : "; its documents are not sealed by its events");
}

static epg_code run_verify(epg_options *options, bool *negative, epg_error *err)
{
    EPG_CLEANUP(epg_verification_free) epg_verification verification = {0};
    EPG_AUTO_BUFFER out = {0};
    if (epg_verify(options->operands[0], &verification, err) != EPG_OK) {
        return err->code == EPG_ERR_USAGE ? EPG_ERR_USAGE : epg_fail_within(err, "%s", options->operands[0]);
    }
    if (epg_option_given(options, "json")) {
        put_json(options->operands[0], &verification, &out);
    } else {
        put_text(options->operands[0], &verification, &out);
    }
    *negative = verification.findings.count > 0;
    return epg_cli_print(&out, err);
}

static const epg_option table[] = {
    EPG_CLI_JSON,
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_verify = {
    .name = "verify",
    .summary = "check a Run's record for what was changed after the fact",
    .usage = usage,
    .examples = examples,
    .wanted = "name one Run: evopolicygym verify RUN",
    .options = {table},
    .least = 1,
    .most = 1,
    .run = run_verify,
};
