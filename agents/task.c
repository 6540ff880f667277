#include "agents/task.h"

#include <inttypes.h>

#include "base/json.h"

/* Limits of one submit that are facts of the session protocol, and what an example should be where it is free to
 * choose. */
enum { SELECTOR_MAX = 2048, EXAMPLE_SIZE = 8 };

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The largest number of Episodes that one submission can ask for. */
static uint64_t largest_submission(const epg_task *task)
{
    uint64_t cap = task->max_episodes_per_submission;
    return cap == 0 ? task->episode_pool_size : smaller(cap, task->episode_pool_size);
}

/* What the first submission must spend at least, so that the rest can still be spent in the submissions that remain. */
static uint64_t smallest_submission(const epg_task *task)
{
    if (!task->require_budget_exhaustion || task->max_submissions == 0) {
        return 1;
    }
    uint64_t later = 0;
    if (__builtin_mul_overflow(task->max_submissions - 1, largest_submission(task), &later) ||
        later >= task->episode_budget) {
        return 1;
    }
    return task->episode_budget - later;
}

void epg_task_example_selector(const epg_task *task, epg_buffer *out)
{
    uint64_t most = smaller(smaller(largest_submission(task), task->episode_budget), SELECTOR_MAX);
    uint64_t least = smallest_submission(task);
    uint64_t size = smaller(least > EXAMPLE_SIZE ? least : EXAMPLE_SIZE, most);
    if (size <= 1) {
        epg_buffer_text(out, "0");
    } else {
        epg_buffer_format(out, "0:%" PRIu64, size);
    }
}

static void write_program(const epg_task *task, epg_buffer *out)
{
    epg_buffer_text(
        out,
        "# Your task: improve a Policy Program\n"
        "\n"
        "The directory `program/` holds a working Policy Program: ordinary Python whose entry point is the\n"
        "function `make_policy(context)` in `program/policy.py`. It returns an object whose method\n"
        "`act(observation)` gives the Action for each step of an Episode. Change the Program so that its score\n"
        "becomes as good as you can make it, and have it measured through the session described below.\n"
        "\n"
        "`make_policy` is called once for each Episode, in a fresh process. `context` has `observation_space`,\n"
        "`action_space`, `metadata`, `environment_parameters` and `policy_seed`; import `Policy`, `PolicyContext`\n"
        "and `TensorValue` from `evopolicygym.policy`. Nothing that a Program keeps in memory or on disk reaches\n"
        "another Episode. An Action must fit `action_space` exactly: it is never clipped or repaired.\n");
    epg_buffer_format(
        out,
        "\nOne Episode may take up to %.15g seconds of the Program's own time. A Program that raises, is too\n"
        "slow, or gives an invalid Action fails that Episode, and the other Episodes go on.\n",
        task->episode_timeout_seconds);
    if (task->program_max_files > 0) {
        epg_buffer_format(out,
                          "A Program has at most %" PRIu64 " files, %" PRIu64 " bytes in one file and %" PRIu64
                          " bytes in all, no links, and\n`policy.py` at its root.\n",
                          task->program_max_files, task->program_max_file_bytes, task->program_max_bytes);
    }
}

static void write_workspace(const epg_task *task, epg_buffer *out)
{
    epg_buffer_text(out,
                    "\n## Your workspace\n"
                    "\n"
                    "- `program/`: the Program. Only this directory is submitted.\n"
                    "- `analysis/`: yours, for notes, scripts and data. It is kept, and never submitted.\n"
                    "- `feedback/`: evidence of your submissions, read-only. `feedback/latest.json` names the newest;\n"
                    "  each has a directory `feedback/submissions/SUBMISSION-ID/` with `feedback.json`, its artifacts\n"
                    "  and `availability.json`.\n");
    if (task->skill_count > 0) {
        epg_buffer_text(out, "- `skills/`: read-only guidance. Read these before you begin:");
        for (size_t i = 0; i < task->skill_count; i++) {
            epg_buffer_format(out, "%s `skills/%s/SKILL.md`", i == 0 ? "" : ",", task->skills[i]);
        }
        epg_buffer_text(out, ".\n");
    }
    epg_buffer_format(out,
                      "\nLarge (bulk) artifacts of older submissions may be removed once all of them exceed %" PRIu64
                      " bytes;\n`availability.json` tells. The newest submission's are never removed.\n",
                      task->bulk_feedback_retention_bytes);
}

static void write_commands(const epg_task *task, epg_buffer *out)
{
    EPG_AUTO_BUFFER selector = {0};
    epg_task_example_selector(task, &selector);
    epg_buffer_format(
        out,
        "\n## The session\n"
        "\n"
        "These commands, run from inside the workspace, are your only permitted way to interact with the\n"
        "Environment. Do not run it, copy it or look for it in another way, and do not use the network.\n"
        "\n"
        "```sh\n"
        "evopolicygym-session submit program --episodes %s\n"
        "evopolicygym-session status\n"
        "evopolicygym-session wait\n"
        "evopolicygym-session finish SUBMISSION-ID%s\n"
        "```\n"
        "\n"
        "- `submit` freezes `program/` as it is at that moment, runs it on the training Episodes that the selector\n"
        "  names, and prints one JSON object: the submission's id, its score, what remains, and where its Feedback "
        "is.\n"
        "- A selector is a comma-separated list of indices and half-open ranges (`START:END`), strictly increasing,\n"
        "  without overlap or spaces, for example `%s`. Indices go from 0 to %" PRIu64 ". An index always names the\n"
        "  same Episode: repeat indices to compare Programs on equal terms. Every use of an index costs one Episode.\n"
        "- `status` prints what remains of budget, submissions and time, and what is running. It costs nothing.\n"
        "- `wait` waits for a `submit` that is still being evaluated and prints its answer. Use it when `submit` was "
        "cut\n"
        "  off by a time limit of your tools: the evaluation goes on without its client, so never submit again "
        "instead.\n"
        "- `finish` hands over your %s and closes the session. Only published submissions can be\n"
        "  named. Nothing that you do after it counts.\n"
        "- The commands are synchronous: wait for one to end before you start the next, never run two at once and\n"
        "  never put one in the background. Give `submit` a generous time limit where your tools have one.\n"
        "- A refused command prints an `error` with a `code` and a `message` and changes nothing. What an evaluation\n"
        "  was charged is never given back.\n",
        epg_buffer_cstr(&selector),
        task->has_validation && task->validation_max_candidates > 1 ? " [SUBMISSION-ID...]" : "",
        epg_buffer_cstr(&selector), task->episode_pool_size - 1,
        task->has_validation && task->validation_max_candidates > 1 ? "candidates, best first," : "candidate");
}

static void write_budget(const epg_task *task, epg_buffer *out)
{
    epg_buffer_format(
        out,
        "\n## Budget\n"
        "\n"
        "- Episodes in all: %" PRIu64 ". Training pool: %" PRIu64 " Episodes. Submissions: at most %" PRIu64 ".\n"
        "- Episodes in one submission: at most %" PRIu64 ".\n"
        "- Time: %.15g seconds from your start, evaluations included; then you are stopped.\n",
        task->episode_budget, task->episode_pool_size, task->max_submissions,
        smaller(smaller(largest_submission(task), task->episode_budget), SELECTOR_MAX), task->agent_timeout_seconds);
    if (task->require_budget_exhaustion) {
        epg_buffer_text(
            out,
            "- The whole Episode budget must be spent before `finish` is accepted; a submission so small that the\n"
            "  rest could no longer be spent is refused.\n");
    } else {
        epg_buffer_text(out, "- You may `finish` before the budget is spent.\n");
    }
    if (task->has_validation) {
        epg_buffer_format(out,
                          "- `finish` takes at most %" PRIu64
                          " submission ids. Each candidate is then measured on the same %" PRIu64
                          " held-out\n  Validation Episodes, and the best one is selected.\n",
                          task->validation_max_candidates, task->validation_episodes);
    } else {
        epg_buffer_text(out, "- `finish` takes exactly one submission id: the Program that is selected.\n");
    }
    if (task->has_assessment) {
        epg_buffer_format(out,
                          "- The selected Program is at last measured on %" PRIu64
                          " other held-out Assessment Episodes. You never see "
                          "them:\n  aim at Programs that do well on Episodes that they have not met.\n",
                          task->assessment_episodes);
    }
    epg_buffer_text(out, "- Call `finish` before you end: otherwise nothing is selected.");
    if (task->finish_grace_seconds > 0) {
        epg_buffer_format(out, " Then end your turn within %.15g seconds.", task->finish_grace_seconds);
    }
    epg_buffer_byte(out, '\n');
}

static void write_benchmark(const epg_task *task, epg_buffer *out)
{
    epg_buffer_format(
        out,
        "\n## The Benchmark\n"
        "\n"
        "The score is `%s`, to be %sd. In this JSON, bytes, tensors and tuples are marked by `$type`; a Policy\n"
        "gets them as `bytes`, `TensorValue` and `tuple`.\n"
        "\n"
        "```json\n",
        task->spec->primary_metric, epg_direction_name(task->spec->direction));
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_spec_to_json(task->spec, &writer, NULL);
    epg_json_finish(&writer);
    epg_buffer_text(out, "```\n");
}

void epg_task_text(const epg_task *task, epg_buffer *out)
{
    write_program(task, out);
    write_workspace(task, out);
    write_commands(task, out);
    write_budget(task, out);
    write_benchmark(task, out);
}

void epg_task_resume_note(const epg_task_progress *progress, epg_buffer *out)
{
    epg_buffer_text(out, "\n## This Run was interrupted and goes on\n"
                         "\n"
                         "The workspace is as it was. ");
    if (progress->last_submission == NULL) {
        epg_buffer_text(out, "Nothing was published yet.");
    } else {
        epg_buffer_format(out, "Published so far: %" PRIu64 " submissions, the last `%s` with score %.17g.",
                          progress->submissions, progress->last_submission, progress->last_score);
    }
    epg_buffer_format(out,
                      " There remain %" PRIu64 " Episodes, %" PRIu64
                      " submissions and %.0f seconds. Ask `evopolicygym-session status`, and go on from there.\n",
                      progress->episodes_remaining, progress->submissions_remaining, progress->seconds_remaining);
}
