/* The documents of a Run: directory layout, run.json and the reports (CONTRACTS section 9).
 *
 * Each document has the keys of the published schemas; what is ours in addition stands under a key of its own, so that
 * readers of those schemas find all they know. All are written atomically (system/files.h), mode 0400. */
#ifndef EPG_RUNS_RECORDS_H
#define EPG_RUNS_RECORDS_H

#include "evaluation/evaluation.h"
#include "programs/skill.h"
#include "runs/session.h"

#define EPG_RUN_SCHEMA "evopolicygym/run-record/v8"
#define EPG_VALIDATION_SCHEMA "evopolicygym/validation-report/v2"
#define EPG_ASSESSMENT_SCHEMA "evopolicygym/assessment-report/v2"

/* --- Layout --- */

/* Makes the Run directory, which must not exist and whose parent must, and in it: agent, initial, staging, submissions,
 * workspace/{program,analysis,feedback/submissions,skills}, all durable. initial/program (mode 0400 in 0500) and
 * workspace/program (0644 in 0755, itself 0700) hold `initial`; workspace/skills the skills. USAGE when the
 * path can't be used; nothing is left behind on failure. *run: the directory, open. */
epg_code epg_run_directory_create(const char *path, const epg_program *initial, const epg_skill *skills,
                                  size_t skill_count, int *run, epg_error *err);
typedef enum epg_directory_state {
    EPG_DIRECTORY_RUN,
    EPG_DIRECTORY_UNFINISHED,     /* a Host died or failed before the first event */
    EPG_DIRECTORY_WITHOUT_EVENTS, /* of a Run that had some */
    EPG_DIRECTORY_OTHER
} epg_directory_state;
epg_directory_state epg_run_directory_state(int directory);
/* Opens an existing one. USAGE when it is not there or is no Run directory. */
epg_code epg_run_directory_open(const char *path, int *run, epg_error *err);
/* Removes the temporary files of a Host that died. */
epg_code epg_run_directory_recover(int run, epg_error *err);
/* Removes what only a Run in progress needs: RUN/staging and RUN/records. */
epg_code epg_run_directory_tidy(int run, epg_error *err);

/* --- Who the Agent was --- */
typedef struct epg_identity {
    const char *name;  /* "provider", "model", ... */
    const char *value; /* NULL is written as null */
} epg_identity;

/* --- Validation and Assessment reports --- */
typedef struct epg_candidate_result {
    uint64_t number; /* submission */
    char program_digest[EPG_DIGEST_TEXT];
    double score;
    uint64_t episodes;
    uint64_t policy_failures;
    epg_buffer content; /* Feedback content, canonical; owned by who made it */
} epg_candidate_result;
void epg_candidate_result_free(epg_candidate_result *result);

/* Best score in the direction, then fewer policy failures, then finish order. Index into `results` (count > 0). */
size_t epg_select_candidate(const epg_candidate_result *results, size_t count, epg_direction direction);

/* Write validation/report.json and assessment/report.json (their directories become 0500). */
epg_code epg_validation_report_write(int run, const epg_config *config, const epg_spec *spec,
                                     const epg_candidate_result *results, size_t count, size_t selected,
                                     epg_error *err);
epg_code epg_assessment_report_write(int run, const epg_config *config, const epg_spec *spec,
                                     const epg_candidate_result *result, epg_error *err);

/* A phase's report ("validation", "assessment"); NULL when there is none that can be read. Caller owns it. */
json_t *epg_report_read(int run, const char *phase);

/* --- run.json: as long as its submissions are many, a line for each Episode of each --- */
enum { EPG_RUN_RECORD_MAX = 1024 * 1024 * 1024 };
typedef struct epg_run_record {
    const epg_config *config;
    const epg_spec *spec;
    const epg_session *session;
    const epg_identity *identity;
    size_t identity_count;
    bool agent_start_failed;
    bool agent_has_returncode;
    int agent_returncode; /* the exit code, or -signal */
    bool agent_stopped_after_terminal;
    bool agent_timed_out;
    bool has_validation_report;
    bool has_assessment_report;
    uint64_t final_submission; /* number; 0: none */
    const char *initial_program_digest;
    const epg_skill *skills;
    size_t skill_count;
    const char *terminal_reason;
    json_t *host; /* ours: written under "host"; NULL: none. See docs/run-directory.md */
    /* Puts the items of "host"."usage_by_submission"; NULL: there is no such list. */
    void (*put_intervals)(const void *context, epg_json_writer *json);
    const void *intervals; /* its context */
} epg_run_record;
void epg_run_record_to_json(const epg_run_record *record, epg_buffer *out);
epg_code epg_run_record_write(int run, const epg_run_record *record, epg_error *err);
/* run.json seals itself: "host"."seal" is the SHA-256 of the document with zeros in place of these digits. `host` must
 * have EPG_RUN_UNSEALED there. holds: false for a document that was altered or has no seal. */
#define EPG_RUN_UNSEALED "0000000000000000000000000000000000000000000000000000000000000000"
bool epg_run_record_seal_holds(epg_span document);
/* Reads run.json of a Run (schema checked; INVALID for another or a newer one). Caller owns *out. */
epg_code epg_run_record_read(int run, json_t **out, epg_error *err);

#endif
