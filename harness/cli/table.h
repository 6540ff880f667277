/* Tables that fit: columns as wide as what stands in them, and no line wider than the terminal.
 *
 * The width is that of COLUMNS, else of the terminal on standard output, else 80. What is too wide gives way in this
 * order: columns that say nothing; the middle of long cells that may be shortened; then, the highest `drop` first,
 * whole columns, which are named below the table (or stand in further blocks below it, when the table is one that
 * wraps). Columns with `drop` 0 always stay. --json has everything. */
#ifndef EPG_CLI_TABLE_H
#define EPG_CLI_TABLE_H

#include "cli/shown.h"

typedef struct epg_column {
    const char *title; /* borrowed */
    bool right;        /* numbers */
    unsigned drop;     /* 0: essential */
    unsigned least;    /* longer cells may be shortened in the middle, down to this width; 0: never */
} epg_column;

typedef struct epg_table_cell {
    char *text;
    size_t width; /* columns on a terminal */
    bool shaded;
    epg_shade shade;
} epg_table_cell;

typedef struct epg_table {
    const epg_column *columns; /* borrowed */
    size_t column_count;
    bool wraps; /* columns that do not fit go into further blocks, each begun by the first column */
    epg_table_cell *cells;
    size_t cell_count, cell_room;
} epg_table;

void epg_table_begin(epg_table *table, const epg_column *columns, size_t count, bool wraps);
void epg_table_free(epg_table *table);
/* The next cell, row by row: any text, made printable; NULL is "-". */
void epg_table_add(epg_table *table, const char *text);
void epg_table_add_u64(epg_table *table, uint64_t number);
void epg_table_add_shaded(epg_table *table, epg_shade shade, const char *text);
void epg_table_put(const epg_table *table, epg_shown *out);

/* How many columns a line may have. */
size_t epg_table_width(void);

/* `text` (printable) in at most `width` columns, its middle replaced by "..". Owned. */
char *epg_table_shortened(const char *text, size_t width);

#endif
