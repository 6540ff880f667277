/* Agent Skill snapshots (CONTRACTS section 3): captured like a Program, executable bits kept, SKILL.md with a name. */
#ifndef EPG_PROGRAMS_SKILL_H
#define EPG_PROGRAMS_SKILL_H

#include "programs/program.h"

typedef struct epg_skill {
    char *name;
    epg_program files; /* `digest` is the skill's digest */
} epg_skill;
void epg_skill_free(epg_skill *skill);

epg_code epg_skill_capture(const char *path, epg_skill *out, epg_error *err);
/* At most 16 skills, 2,048 files, 64 MiB together, unique names: LIMIT or INVALID. */
epg_code epg_skills_check(const epg_skill *skills, size_t count, epg_error *err);
/* Writes the skill's directory `name` below `directory`: files 0400, executables 0500, directories 0500. */
epg_code epg_skill_materialise(const epg_skill *skill, int directory, epg_error *err);

#endif
