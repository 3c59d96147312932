/* Screen of `ctl top`, shared by its sources: top.c (lines, header) and top_table.c (workers). */
#ifndef ORIBI_COMMAND_TOP_SCREEN_H
#define ORIBI_COMMAND_TOP_SCREEN_H

#include "command/top.h"

#include <stdint.h>

enum {
    LINE_CAP = ORIBI__TOP_COLUMNS_MAX + 1,
    LONG_CALL_US = 1000 * 1000, /* from here on a call, or a wait for one, is shown in another colour */
};

enum color { PLAIN, RED, YELLOW, REVERSE };

/* Figures shown for one worker. */
struct row {
    const struct oribi__top_worker *worker;
    double rate; /* requests a second; negative: not known yet */
    double cpu;  /* percent of a processor; negative: not known yet */
    uint64_t key;
};

struct screen {
    struct oribi_buf *out;
    const struct oribi__top_view *view;
    const struct oribi__top_snapshot *now;
    const struct oribi__top_snapshot *before; /* NULL: there is none of this server */
    double seconds;                           /* between the two */
    struct row *rows;
    uint32_t lines; /* written */
    uint32_t at;    /* columns of the line that are written */
    bool full;      /* the line takes no more parts */
    bool has_part;  /* the next one needs a gap in front */
};

/* Ends the line before, if there is one. */
void oribi__screen_begin_line(struct screen *screen);

/* Appends a text to the line, cut at the screen's edge. */
void oribi__screen_put(struct screen *screen, enum color color, const char *text);

uint32_t oribi__screen_width(const struct screen *screen);

/* Of a counter since the snapshot before; less than nothing is nothing. */
static inline uint64_t grown(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

/* States of workers by their weight: killed, held, draining, busy, starting, idle, and all others with that. */
enum { STATE_KILLED, STATE_HELD, STATES = 6 };
uint32_t oribi__top_state(const struct oribi__top_worker *worker);
const char *oribi__top_state_name(uint32_t state);

/* top_table.c: fills screen->rows and brings them into the view's order. */
void oribi__top_fill_rows(struct screen *screen);

/* Writes the rows as far as the screen has lines, and how many more there are. */
void oribi__top_put_table(struct screen *screen);

/* Numbers for people, short enough for a column. top_format.c. */
enum { ORIBI__TEXT_CAP = 32 };

/* Each writes its number to dst and returns dst. At most 8 columns. */

/* A time: "850 us", "12.3 ms", "1.20 s", "3 m 05 s", "2 h 05 m", "12 d 4 h", "4711 d". */
const char *oribi__text_duration(char dst[ORIBI__TEXT_CAP], uint64_t us);

/* How many: "123456", "12.3M". At most 7 columns. */
const char *oribi__text_count(char dst[ORIBI__TEXT_CAP], uint64_t count);

/* How often: "-" (negative: not known), "0", "0.3", "12.3", "1234", "12.3k", "1.2M". At most 6 columns. */
const char *oribi__text_rate(char dst[ORIBI__TEXT_CAP], double rate);

/* Bytes: "0 B", "12 KB", "1.2 MB", "512 MB", "1.5 GB"; of 1024 each. */
const char *oribi__text_bytes(char dst[ORIBI__TEXT_CAP], double bytes);

#endif
