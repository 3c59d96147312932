/* The workers on the screen of `ctl top`. Where it is too narrow, whole columns are dropped in the order of `drops`
 * below, until the request has REQUEST_MIN columns. Reading order: columns, the table, rows and their order. */

#include "command/top_screen.h"
#include "oribi/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUEST_MIN = 20 };

/* In the order of their weight: a state that is not here counts as the last. */
static const char *const states[STATES] = {"killed", "held", "draining", "busy", "starting", "idle"};

_Static_assert(STATES == sizeof(states) / sizeof(states[0]), "a name for each");

uint32_t oribi__top_state(const struct oribi__top_worker *worker)
{
    uint32_t i = 0;
    while (i < STATES - 1 && strcmp(worker->state, states[i]) != 0)
        i++;
    return i;
}

const char *oribi__top_state_name(uint32_t state)
{
    return states[state];
}

/* --- columns --- */

static void write_state(char dst[ORIBI__TEXT_CAP], const struct row *row)
{
    (void)snprintf(dst, ORIBI__TEXT_CAP, "%s", row->worker->state); /* fits */
}

static void write_call(char dst[ORIBI__TEXT_CAP], const struct row *row)
{
    if (row->worker->call_us > 0)
        (void)oribi__text_duration(dst, row->worker->call_us);
}

static void write_rate(char dst[ORIBI__TEXT_CAP], const struct row *row)
{
    if (row->rate >= 0)
        (void)oribi__text_rate(dst, row->rate);
}

static void write_cpu(char dst[ORIBI__TEXT_CAP], const struct row *row)
{
    if (row->cpu >= 0)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%.1f", row->cpu); /* fits */
}

static void write_busy(char dst[ORIBI__TEXT_CAP], const struct row *row)
{
    (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu/%llu", (unsigned long long)row->worker->threads_busy,
                   (unsigned long long)row->worker->threads); /* fits */
}

static void write_memory(char dst[ORIBI__TEXT_CAP], const struct row *row)
{
    (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu", (unsigned long long)row->worker->memory_bytes >> 20); /* fits */
}

static void write_up(char dst[ORIBI__TEXT_CAP], const struct row *row)
{
    if (row->worker->up_ms > 0)
        (void)oribi__text_duration(dst, row->worker->up_ms * 1000);
}

/* In the order of the screen. The request follows behind the last. */
static const struct column {
    const char *head;
    int width;      /* negative: aligned left */
    uint32_t drops; /* as the how-manieth it is dropped; 0: never */
    size_t offset;  /* of a number of the worker's, where `write` is NULL */
    /* writes the column, may leave it empty; NULL: the column is the number at `offset` */
    void (*write)(char dst[ORIBI__TEXT_CAP], const struct row *row);
} columns[] = {
    {"WORKER", 6, 0, offsetof(struct oribi__top_worker, worker), NULL},
    {"PID", 7, 7, offsetof(struct oribi__top_worker, pid), NULL},
    {"GEN", 3, 2, offsetof(struct oribi__top_worker, generation), NULL},
    {"STATE", -8, 0, 0, write_state},
    {"CALL", 8, 0, 0, write_call},
    {"REQ/S", 7, 8, 0, write_rate},
    {"REQUESTS", 9, 4, offsetof(struct oribi__top_worker, requests), NULL},
    {"OPEN", 5, 5, offsetof(struct oribi__top_worker, connections_open), NULL},
    {"WAIT", 4, 6, offsetof(struct oribi__top_worker, queued), NULL},
    {"BUSY", 5, 3, 0, write_busy},
    {"MB", 6, 10, 0, write_memory},
    {"CPU%", 5, 9, 0, write_cpu},
    {"UP", 8, 1, 0, write_up},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static bool is_threaded(const struct oribi__top_snapshot *now)
{
    for (size_t i = 0; i < now->count; i++)
        if (now->workers[i].threads > 1)
            return true;
    return false;
}

static void choose_columns(const struct screen *screen, bool shown[COLUMNS])
{
    uint32_t used = REQUEST_MIN;
    for (size_t i = 0; i < COLUMNS; i++) {
        shown[i] = columns[i].write != write_busy || is_threaded(screen->now);
        used += shown[i] ? (uint32_t)abs(columns[i].width) + 1 : 0;
    }
    for (uint32_t next = 1; next <= COLUMNS && used > oribi__screen_width(screen); next++)
        for (size_t i = 0; i < COLUMNS; i++)
            if (shown[i] && columns[i].drops == next) {
                shown[i] = false;
                used -= (uint32_t)abs(columns[i].width) + 1;
            }
}

/* --- the table --- */

/* The table's head, without a row. */
static void put_row(struct screen *screen, const bool shown[COLUMNS], const struct row *row)
{
    char line[LINE_CAP];
    size_t n = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        char cell[ORIBI__TEXT_CAP] = "";
        if (!shown[i])
            continue;
        if (!row)
            (void)snprintf(cell, sizeof(cell), "%s", columns[i].head); /* fits */
        else if (columns[i].write)
            columns[i].write(cell, row);
        else
            oribi__text_count(cell, *(const uint64_t *)((const char *)row->worker + columns[i].offset));
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%*s ", columns[i].width, cell); /* a third of it, together */
    }
    (void)snprintf(line + n, sizeof(line) - n, "%s", row ? row->worker->call : "REQUEST"); /* the same */
    for (n = strlen(line); n > 0 && line[n - 1] == ' '; n--)
        line[n - 1] = '\0';
    oribi__screen_begin_line(screen);
    oribi__screen_put(screen,
                      !row                                          ? REVERSE
                      : oribi__top_state(row->worker) <= STATE_HELD ? RED
                      : row->worker->call_us >= LONG_CALL_US        ? YELLOW
                                                                    : PLAIN,
                      line);
}

void oribi__top_put_table(struct screen *screen)
{
    bool shown[COLUMNS];
    uint32_t rows = screen->view->rows;
    size_t count = screen->now->count;
    choose_columns(screen, shown);
    if (!rows || rows > screen->lines + 4) /* else each line is dear */
        oribi__screen_begin_line(screen);
    put_row(screen, shown, NULL);
    size_t room = rows ? (rows > screen->lines ? rows - screen->lines : 0) : count;
    size_t fit = count <= room ? count : room > 0 ? room - 1 : 0;
    for (size_t i = 0; i < fit; i++)
        put_row(screen, shown, &screen->rows[i]);
    if (fit == count || room == 0)
        return;
    char line[64];
    (void)snprintf(line, sizeof(line), "and %zu more worker%s", count - fit, oribi_log_plural(count - fit)); /* fits */
    oribi__screen_begin_line(screen);
    oribi__screen_put(screen, PLAIN, line);
}

/* --- rows and their order --- */

static const struct {
    const char *name;
    char key;
} sorts[ORIBI__TOP_SORTS] = {
    [ORIBI__TOP_BY_AGE] = {"age", 'a'},           [ORIBI__TOP_BY_STATE] = {"state", 's'},
    [ORIBI__TOP_BY_REQUESTS] = {"requests", 'n'}, [ORIBI__TOP_BY_RATE] = {"rate", 'r'},
    [ORIBI__TOP_BY_MEMORY] = {"memory", 'm'},     [ORIBI__TOP_BY_CPU] = {"cpu", 'c'},
    [ORIBI__TOP_BY_WORKER] = {"worker", 'w'},
};

const char *oribi__top_sort_name(enum oribi__top_sort sort)
{
    return sorts[sort].name;
}

char oribi__top_sort_key(enum oribi__top_sort sort)
{
    return sorts[sort].key;
}

/* Values beyond 1e15, which no server reaches, count as 1e15; unknown ones as 0. */
static uint64_t thousandths(double value)
{
    return value <= 0 ? 0 : (uint64_t)((value < 1e15 ? value : 1e15) * 1000);
}

/* The larger, the higher up. */
static uint64_t key_of(const struct row *row, enum oribi__top_sort sort)
{
    switch (sort) {
    case ORIBI__TOP_BY_STATE:
        return STATES - oribi__top_state(row->worker);
    case ORIBI__TOP_BY_REQUESTS:
        return row->worker->requests;
    case ORIBI__TOP_BY_RATE:
        return thousandths(row->rate);
    case ORIBI__TOP_BY_MEMORY:
        return row->worker->memory_bytes;
    case ORIBI__TOP_BY_CPU:
        return thousandths(row->cpu);
    case ORIBI__TOP_BY_WORKER:
        return ~row->worker->worker;
    case ORIBI__TOP_BY_AGE:
    case ORIBI__TOP_SORTS:
        break;
    }
    return row->worker->call_us;
}

static int compare(const void *a, const void *b)
{
    const struct row *one = a;
    const struct row *other = b;
    if (one->key != other->key)
        return one->key > other->key ? -1 : 1;
    return (one->worker->worker > other->worker->worker) - (one->worker->worker < other->worker->worker);
}

static const struct oribi__top_worker *find(const struct oribi__top_snapshot *before,
                                            const struct oribi__top_worker *worker)
{
    for (size_t i = 0; before && i < before->count; i++)
        if (before->workers[i].worker == worker->worker && before->workers[i].pid == worker->pid)
            return &before->workers[i];
    return NULL;
}

void oribi__top_fill_rows(struct screen *screen)
{
    for (size_t i = 0; i < screen->now->count; i++) {
        const struct oribi__top_worker *worker = &screen->now->workers[i];
        const struct oribi__top_worker *was = find(screen->before, worker);
        struct row *row = &screen->rows[i];
        *row = (struct row){.worker = worker, .rate = -1, .cpu = -1};
        if (was) {
            row->rate = (double)grown(worker->requests, was->requests) / screen->seconds;
            row->cpu = (double)grown(worker->cpu_ms, was->cpu_ms) / 10 / screen->seconds;
        }
        row->key = key_of(row, screen->view->sort);
        row->key = screen->view->reverse ? ~row->key : row->key;
    }
    qsort(screen->rows, screen->now->count, sizeof(*screen->rows), compare);
}

/* --- numbers for people --- */

/* One digit behind the point below 10 000 of the unit, none from 100 on. */
static void write_scaled(char dst[ORIBI__TEXT_CAP], double value, const char *unit)
{
    (void)snprintf(dst, ORIBI__TEXT_CAP, value < 99.95 ? "%.1f%s" : "%.0f%s", value, unit); /* units are short */
}

const char *oribi__text_duration(char dst[ORIBI__TEXT_CAP], uint64_t us)
{
    unsigned long long s = us / 1000000;
    if (us < 1000)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu us", (unsigned long long)us); /* as all of them: fits */
    else if (us < 1000000)
        write_scaled(dst, (double)(us < 999000 ? us : 999000) / 1e3, " ms");
    else if (us < 60000000)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu.%02llu s", s, (unsigned long long)us / 10000 % 100);
    else if (s < 3600)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu m %02llu s", s / 60, s % 60);
    else if (s < 86400)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu h %02llu m", s / 3600, s / 60 % 60);
    else if (s < 86400 * 100)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu d %02llu h", s / 86400, s / 3600 % 24);
    else if (s / 86400 < 1000000)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu d", s / 86400);
    else
        (void)snprintf(dst, ORIBI__TEXT_CAP, "ages");
    return dst;
}

/* In steps of a thousand or of 1024; what is beyond all units is of no server. */
static const char *in_steps(char dst[ORIBI__TEXT_CAP], double value, double step, const char *const *units,
                            unsigned count)
{
    unsigned i = 0;
    for (; value >= step && i + 1 < count; i++)
        value /= step;
    write_scaled(dst, value < 9999 ? value : 9999, units[i]);
    return dst;
}

const char *oribi__text_count(char dst[ORIBI__TEXT_CAP], uint64_t count)
{
    static const char *const units[] = {"M", "G", "T", "P", "E"};
    if (count >= 10000000)
        return in_steps(dst, (double)count / 1e6, 1000, units, 5);
    (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu", (unsigned long long)count); /* fits */
    return dst;
}

const char *oribi__text_rate(char dst[ORIBI__TEXT_CAP], double rate)
{
    static const char *const units[] = {"k", "M", "G", "T", "P"};
    if (rate >= 9999.5)
        return in_steps(dst, rate / 1e3, 1000, units, 5);
    if (rate <= 0)
        (void)snprintf(dst, ORIBI__TEXT_CAP, rate < 0 ? "-" : "0"); /* fits */
    else
        write_scaled(dst, rate, "");
    return dst;
}

const char *oribi__text_bytes(char dst[ORIBI__TEXT_CAP], double bytes)
{
    static const char *const units[] = {" KB", " MB", " GB", " TB", " PB"};
    if (bytes >= 1024)
        return in_steps(dst, bytes / 1024, 1024, units, 5);
    (void)snprintf(dst, ORIBI__TEXT_CAP, "%.0f B", bytes > 0 ? bytes : 0); /* fits */
    return dst;
}
