/* Stands in for transcript.c until that lands; delete this file in the commit that brings it. */
#include "agents/transcript.h"
struct epg_transcript {
    int x;
};
epg_transcript *epg_transcript_new(const epg_adapter *a, const epg_redactor *r, epg_buffer *o)
{
    (void)a;
    (void)r;
    (void)o;
    return NULL;
}
void epg_transcript_free(epg_transcript *t)
{
    (void)t;
}
void epg_transcript_stdout(epg_transcript *t, epg_span b, epg_buffer *o)
{
    (void)t;
    (void)b;
    (void)o;
}
void epg_transcript_stderr(epg_transcript *t, epg_span b, epg_buffer *o)
{
    (void)t;
    (void)b;
    (void)o;
}
void epg_transcript_end(epg_transcript *t, int e, int s, epg_buffer *o)
{
    (void)t;
    (void)e;
    (void)s;
    (void)o;
}
epg_usage epg_transcript_usage(const epg_transcript *t)
{
    (void)t;
    return (epg_usage){0};
}
void epg_usage_write(const epg_usage *u, epg_json_writer *w, const char *k)
{
    (void)u;
    (void)w;
    (void)k;
}
const epg_agent_error *epg_transcript_error(const epg_transcript *t)
{
    (void)t;
    return NULL;
}
