#include "cli/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

enum { GAP = 2, NARROWEST = 20, WIDEST = 10000, USUAL = 80 };

/* --- widths of texts --- */

static size_t text_width(const char *text)
{
    size_t size = strlen(text);
    size_t total = 0;
    while (size > 0) {
        size_t width = 0;
        size_t taken = epg_utf8_next(text, size, &width);
        total += width;
        text += taken;
        size -= taken;
    }
    return total;
}

char *epg_table_shortened(const char *text, size_t width)
{
    size_t whole = text_width(text);
    if (whole <= width || width < 4) {
        return epg_strdup(text);
    }
    size_t tail = (width - 2) / 2 + (width - 2) % 2; /* the end of a path tells more than its beginning */
    size_t head = width - 2 - tail;
    EPG_AUTO_BUFFER out = {0};
    size_t size = strlen(text);
    size_t at = 0;
    bool cut = false;
    while (size > 0) {
        size_t columns = 0;
        size_t taken = epg_utf8_next(text, size, &columns);
        if (at + columns <= head && !cut) {
            (void)epg_buffer_append(&out, text, taken);
        } else if (!cut) {
            (void)epg_buffer_text(&out, "..");
            cut = true;
        }
        if (cut && at >= whole - tail) {
            (void)epg_buffer_append(&out, text, taken);
        }
        at += columns;
        text += taken;
        size -= taken;
    }
    return epg_buffer_take_text(&out);
}

size_t epg_table_width(void)
{
    uint64_t columns = 0;
    const char *asked = getenv("COLUMNS"); /* NOLINT(concurrency-mt-unsafe): there are no threads */
    if (asked != NULL && epg_parse_u64(asked, strlen(asked), WIDEST, &columns) && columns >= NARROWEST) {
        return (size_t)columns;
    }
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= NARROWEST) {
        return size.ws_col;
    }
    return USUAL;
}

/* --- filling --- */

void epg_table_begin(epg_table *table, const epg_column *columns, size_t count, bool wraps)
{
    *table = (epg_table){.columns = columns, .column_count = count, .wraps = wraps};
}

void epg_table_free(epg_table *table)
{
    for (size_t i = 0; i < table->cell_count; i++) {
        free(table->cells[i].text);
    }
    free(table->cells);
    *table = (epg_table){0};
}

static epg_table_cell *add(epg_table *table, char *text)
{
    if (table->cell_count == table->cell_room) {
        table->cell_room = table->cell_room == 0 ? 64 : 2 * table->cell_room;
        table->cells = epg_grow_array(table->cells, table->cell_room, sizeof *table->cells);
    }
    epg_table_cell *cell = &table->cells[table->cell_count++];
    *cell = (epg_table_cell){.text = text, .width = text_width(text)};
    return cell;
}

void epg_table_add(epg_table *table, const char *text)
{
    (void)add(table, text != NULL ? epg_printable(text, strlen(text)) : epg_strdup("-"));
}

void epg_table_add_u64(epg_table *table, uint64_t number)
{
    (void)add(table, epg_format("%llu", (unsigned long long)number));
}

void epg_table_add_shaded(epg_table *table, epg_shade shade, const char *text)
{
    epg_table_cell *cell = add(table, epg_printable(text, strlen(text)));
    cell->shaded = true;
    cell->shade = shade;
}

/* --- fitting --- */

typedef struct fit {
    size_t width; /* 0: not shown in this block */
    bool done;    /* shown, or dropped */
} fit;

static const epg_table_cell *cell_at(const epg_table *table, size_t row, size_t column)
{
    return &table->cells[row * table->column_count + column];
}

static size_t row_count(const epg_table *table)
{
    return table->column_count > 0 ? table->cell_count / table->column_count : 0;
}

static bool says_nothing(const epg_table *table, size_t column)
{
    for (size_t row = 0; row < row_count(table); row++) {
        const char *text = cell_at(table, row, column)->text;
        if (*text != '\0' && strcmp(text, "-") != 0) {
            return false;
        }
    }
    return true;
}

static size_t natural_width(const epg_table *table, size_t column)
{
    size_t width = text_width(table->columns[column].title);
    for (size_t row = 0; row < row_count(table); row++) {
        const epg_table_cell *cell = cell_at(table, row, column);
        width = cell->width > width ? cell->width : width;
    }
    return width;
}

static size_t total_width(const fit *fits, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += fits[i].width > 0 ? fits[i].width + (total > 0 ? (size_t)GAP : 0) : 0;
    }
    return total;
}

/* How much narrower the table can get without losing a column. */
static size_t slack(const epg_table *table, const fit *fits)
{
    size_t sum = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        size_t least = table->columns[i].least;
        sum += least > 0 && fits[i].width > least ? fits[i].width - least : 0;
    }
    return sum;
}

/* Takes from the widest that may be shortened, a column at a time. */
static void shorten(const epg_table *table, fit *fits, size_t width)
{
    while (total_width(fits, table->column_count) > width) {
        fit *widest = NULL;
        for (size_t i = 0; i < table->column_count; i++) {
            size_t least = table->columns[i].least;
            if (least > 0 && fits[i].width > least && (widest == NULL || fits[i].width > widest->width)) {
                widest = &fits[i];
            }
        }
        if (widest == NULL) {
            return;
        }
        widest->width--;
    }
}

/* The column to do without next; column_count: none. Of equals the last. */
static size_t next_to_drop(const epg_table *table, const fit *fits)
{
    size_t found = table->column_count;
    for (size_t i = 0; i < table->column_count; i++) {
        if (fits[i].width > 0 && table->columns[i].drop > 0 &&
            (found == table->column_count || table->columns[i].drop >= table->columns[found].drop)) {
            found = i;
        }
    }
    return found;
}

/* Chooses what stands in this block: `fits` holds natural widths of all that is left. */
static void choose(const epg_table *table, fit *fits, size_t width)
{
    size_t count = table->column_count;
    bool narrow = total_width(fits, count) > width;
    for (size_t i = 0; narrow && i < count; i++) {
        if (table->columns[i].drop > 0 && fits[i].width > 0 && says_nothing(table, i)) {
            fits[i] = (fit){.width = 0, .done = true}; /* nobody misses it */
        }
    }
    while (total_width(fits, count) - slack(table, fits) > width) {
        size_t drop = next_to_drop(table, fits);
        if (drop == count) {
            break;
        }
        fits[drop].width = 0;
    }
    shorten(table, fits, width);
}

/* --- printing --- */

static void put_spaces(epg_shown *out, size_t count)
{
    (void)epg_buffer_format(&out->text, "%*s", (int)count, "");
}

static void put_cell(const epg_table_cell *cell, const epg_column *column, size_t width, bool last, epg_shown *out)
{
    EPG_AUTO_FREE char *shorter =
        cell->width > width && column->least > 0 ? epg_table_shortened(cell->text, width) : NULL;
    const char *text = shorter != NULL ? shorter : cell->text;
    size_t columns = shorter != NULL ? text_width(shorter) : cell->width;
    size_t blank = columns < width ? width - columns : 0;
    if (column->right) {
        put_spaces(out, blank);
    }
    if (cell->shaded) {
        epg_shown_shade(out, cell->shade, text);
    } else {
        (void)epg_buffer_text(&out->text, text);
    }
    if (!column->right && !last) {
        put_spaces(out, blank);
    }
}

/* Row -1 is the titles. No line ends in spaces. */
static void put_row(const epg_table *table, const fit *fits, ptrdiff_t row, epg_shown *out)
{
    size_t begin = out->text.size;
    bool first = true;
    size_t last = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        last = fits[i].width > 0 ? i : last;
    }
    for (size_t i = 0; i <= last; i++) {
        if (fits[i].width == 0) {
            continue;
        }
        put_spaces(out, first ? 0 : GAP);
        first = false;
        epg_table_cell title = {.text = (char *)(uintptr_t)table->columns[i].title,
                                .width = text_width(table->columns[i].title)};
        put_cell(row < 0 ? &title : cell_at(table, (size_t)row, i), &table->columns[i], fits[i].width, i == last, out);
    }
    while (out->text.size > begin && out->text.data[out->text.size - 1] == ' ') {
        out->text.size--;
    }
    (void)epg_buffer_byte(&out->text, '\n');
}

static void put_block(const epg_table *table, const fit *fits, epg_shown *out)
{
    put_row(table, fits, -1, out);
    for (size_t row = 0; row < row_count(table); row++) {
        put_row(table, fits, (ptrdiff_t)row, out);
    }
}

static void put_missing(const epg_table *table, const fit *fits, epg_shown *out)
{
    const char *before = "left out: ";
    for (size_t i = 0; i < table->column_count; i++) {
        if (fits[i].width == 0 && !fits[i].done && natural_width(table, i) > 0) {
            const char *title = table->columns[i].title;
            (void)epg_buffer_format(&out->text, "%s%s", before, *title != '\0' ? title : "notes");
            before = ", ";
        }
    }
    (void)epg_buffer_text(&out->text, *before == ',' ? " (see --json)\n" : "");
}

void epg_table_put(const epg_table *table, epg_shown *out)
{
    size_t count = table->column_count;
    size_t width = epg_table_width();
    EPG_AUTO_FREE fit *fits = epg_alloc_array(count, sizeof *fits);
    EPG_AUTO_FREE fit *block = epg_alloc_array(count, sizeof *block);
    for (size_t i = 0; i < count; i++) {
        fits[i].width = natural_width(table, i);
    }
    for (bool first = true, left = true; left; first = false) {
        memcpy(block, fits, count * sizeof *fits);
        choose(table, block, width);
        (void)epg_buffer_text(&out->text, first ? "" : "\n");
        put_block(table, block, out);
        if (!table->wraps) {
            put_missing(table, block, out);
            return;
        }
        left = false;
        size_t shown = 0;
        for (size_t i = 1; i < count; i++) { /* the first column begins every block */
            shown += block[i].width > 0;
            fits[i].width = block[i].width > 0 || block[i].done ? 0 : fits[i].width;
            left = left || fits[i].width > 0;
        }
        left = left && shown > 0;
    }
}
