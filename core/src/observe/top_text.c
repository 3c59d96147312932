/* A snapshot as lines, and back: one table for both directions. Reading order: the tables, writing, reading. */
#include "oribi/observe/top_snapshot.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_CAP = 256 };

struct field {
    const char *name;
    size_t offset;
    size_t text_cap; /* of a string; 0: a number of 64 bits */
};

#define NUMBER(type, member)                                                                                           \
    {                                                                                                                  \
#member, offsetof(struct type, member), 0                                                                      \
    }
#define TEXT(type, member)                                                                                             \
    {                                                                                                                  \
#member, offsetof(struct type, member), sizeof(((struct type *)0)->member)                                     \
    }
#define OF_SERVER(member) NUMBER(oribi__top_snapshot, member)
#define OF_WORKER(member) NUMBER(oribi__top_worker, member)

static const struct field server_fields[] = {
    TEXT(oribi__top_snapshot, program),
    TEXT(oribi__top_snapshot, version),
    TEXT(oribi__top_snapshot, state),
    OF_SERVER(pid),
    OF_SERVER(taken_us),
    OF_SERVER(up_ms),
    OF_SERVER(generation),
    OF_SERVER(serving),
    OF_SERVER(wanted),
    OF_SERVER(deaths),
    OF_SERVER(waiting),
    OF_SERVER(oldest_us),
    OF_SERVER(requests),
    OF_SERVER(uncalled),
    OF_SERVER(cut),
    OF_SERVER(status_4xx),
    OF_SERVER(status_5xx),
    OF_SERVER(refused),
    OF_SERVER(shed),
    OF_SERVER(overdue),
    OF_SERVER(connections),
    OF_SERVER(connections_open),
    OF_SERVER(bytes_in),
    OF_SERVER(bytes_out),
    OF_SERVER(frontends),
    OF_SERVER(frontends_serving),
    OF_SERVER(frontend_clients),
    OF_SERVER(frontend_clients_h2),
    OF_SERVER(frontend_streams),
    OF_SERVER(frontend_calls_out),
    OF_SERVER(websockets),
    OF_SERVER(websocket_messages_in),
    OF_SERVER(websocket_messages_out),
    OF_SERVER(handshakes),
    OF_SERVER(handshakes_resumed),
    OF_SERVER(handshakes_failed),
};

static const struct field worker_fields[] = {
    OF_WORKER(worker),
    OF_WORKER(pid),
    OF_WORKER(generation),
    OF_WORKER(requests),
    OF_WORKER(connections_open),
    OF_WORKER(queued),
    OF_WORKER(threads),
    OF_WORKER(threads_busy),
    OF_WORKER(memory_bytes),
    OF_WORKER(cpu_ms),
    OF_WORKER(up_ms),
    OF_WORKER(call_us),
    TEXT(oribi__top_worker, state),
    TEXT(oribi__top_worker, call),
};

enum {
    SERVER_FIELDS = sizeof(server_fields) / sizeof(server_fields[0]),
    WORKER_FIELDS = sizeof(worker_fields) / sizeof(worker_fields[0]),
};

static const char *const times_names[ORIBI__TOP_TIMES] = {
    [ORIBI__TOP_QUEUE_WAIT] = "queue_wait",
    [ORIBI__TOP_CALL_TIME] = "call_time",
    [ORIBI__TOP_TOTAL_TIME] = "total_time",
};

/* A byte that is no printable ASCII could be a command to a terminal, or end a field. */
static void make_printable(char *text)
{
    for (; *text; text++)
        *text = *text < 0x20 || *text > 0x7e ? '?' : *text;
}

/* --- writing --- */

/* Where memory is out the rest is missing. */
static void put_text(struct oribi_buf *out, const char *text)
{
    (void)oribi_buf_try_append(out, text, strlen(text));
}

static void put_fields(struct oribi_buf *out, const void *values, const struct field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)values + fields[i].offset;
        char text[FIELD_CAP];
        if (fields[i].text_cap > 0) {
            (void)snprintf(text, sizeof(text), "%.*s", (int)fields[i].text_cap, at); /* none is longer */
            make_printable(text);
        } else {
            uint64_t number;
            memcpy(&number, at, sizeof(number));
            if (number == 0)
                continue;
            (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number); /* fits */
        }
        put_text(out, "\t");
        put_text(out, fields[i].name);
        put_text(out, "=");
        put_text(out, text);
    }
    put_text(out, "\n");
}

void oribi__top_write(const struct oribi__top_snapshot *snapshot, struct oribi_buf *out)
{
    put_text(out, "server");
    put_fields(out, snapshot, server_fields, SERVER_FIELDS);
    for (size_t i = 0; i < ORIBI__TOP_TIMES; i++) {
        put_text(out, "times\tof=");
        put_text(out, times_names[i]);
        for (uint32_t k = 0; k < ORIBI_HISTOGRAM_BUCKETS; k++) {
            char text[48];
            if (snapshot->times[i].counts[k] == 0)
                continue;
            (void)snprintf(text, sizeof(text), "\t%u=%llu", k, (unsigned long long)snapshot->times[i].counts[k]);
            put_text(out, text);
        }
        put_text(out, "\n");
    }
    for (size_t i = 0; i < snapshot->count; i++) {
        put_text(out, "worker");
        put_fields(out, &snapshot->workers[i], worker_fields, WORKER_FIELDS);
    }
}

/* --- reading --- */

/* A field of a line: name=value, both NUL-terminated. */
struct pair {
    char name[32];
    char value[FIELD_CAP];
};

/* Takes the next field off the line, whose fields begin behind tabs; false at its end. One that is too long comes cut,
 * one without = has no value. */
static bool next_pair(struct oribi_slice *line, struct pair *pair)
{
    const char *tab = line->n > 0 ? memchr(line->p, '\t', line->n) : NULL;
    if (!tab)
        return false;
    *line = oribi_slice(tab + 1, (size_t)(line->p + line->n - tab - 1));
    tab = line->n > 0 ? memchr(line->p, '\t', line->n) : NULL;
    struct oribi_slice field = oribi_slice(line->p, tab ? (size_t)(tab - line->p) : line->n);
    const char *equals = field.n > 0 ? memchr(field.p, '=', field.n) : NULL;
    struct oribi_slice name = oribi_slice(field.p, equals ? (size_t)(equals - field.p) : field.n);
    struct oribi_slice value = equals ? oribi_slice(equals + 1, field.n - name.n - 1) : oribi_slice(field.p, 0);
    (void)snprintf(pair->name, sizeof(pair->name), "%.*s", (int)(name.n < 64 ? name.n : 64), name.n ? name.p : "");
    (void)snprintf(pair->value, sizeof(pair->value), "%.*s", (int)(value.n < FIELD_CAP ? value.n : FIELD_CAP),
                   value.n ? value.p : "");
    make_printable(pair->value);
    return true;
}

static bool is_number(const char *text)
{
    return *text >= '0' && *text <= '9';
}

/* 0 where there is no number. */
static uint64_t number_of(const char *text)
{
    return is_number(text) ? strtoull(text, NULL, 10) : 0;
}

static void read_fields(struct oribi_slice line, void *values, const struct field *fields, size_t count)
{
    struct pair pair;
    while (next_pair(&line, &pair))
        for (size_t i = 0; i < count; i++) {
            char *at = (char *)values + fields[i].offset;
            uint64_t number = number_of(pair.value);
            if (strcmp(pair.name, fields[i].name) != 0)
                continue;
            if (fields[i].text_cap > 0)
                (void)snprintf(at, fields[i].text_cap, "%s", pair.value); /* cut where it is too long */
            else
                memcpy(at, &number, sizeof(number));
        }
}

static void read_times(struct oribi_slice line, struct oribi__top_snapshot *snapshot)
{
    struct pair pair;
    struct oribi_histogram_sum *times = NULL;
    if (!next_pair(&line, &pair) || strcmp(pair.name, "of") != 0)
        return;
    for (size_t i = 0; i < ORIBI__TOP_TIMES; i++)
        if (strcmp(pair.value, times_names[i]) == 0)
            times = &snapshot->times[i];
    while (times && next_pair(&line, &pair)) {
        uint64_t bucket = number_of(pair.name);
        uint64_t count = number_of(pair.value);
        if (bucket >= ORIBI_HISTOGRAM_BUCKETS || !is_number(pair.name))
            continue;
        times->count += count - times->counts[bucket];
        times->counts[bucket] = count;
    }
}

/* Workers beyond the most there can be are left out. */
static int read_worker(struct oribi_slice line, struct oribi__top_snapshot *snapshot)
{
    if (snapshot->count >= ORIBI_SLOTS_MAX)
        return 0;
    void *resized = oribi_mem_try_resize(snapshot->workers, snapshot->count + 1, sizeof(*snapshot->workers));
    if (!resized)
        return ORIBI_ENOMEM;
    snapshot->workers = resized;
    struct oribi__top_worker *worker = &snapshot->workers[snapshot->count++];
    *worker = (struct oribi__top_worker){0};
    read_fields(line, worker, worker_fields, WORKER_FIELDS);
    return 0;
}

void oribi__top_deinit(struct oribi__top_snapshot *snapshot)
{
    oribi_mem_free(snapshot->workers);
    *snapshot = (struct oribi__top_snapshot){0};
}

static bool is_kind(struct oribi_slice line, const char *word)
{
    size_t n = strlen(word);
    return line.n > n && memcmp(line.p, word, n) == 0 && line.p[n] == '\t';
}

int oribi__top_read(struct oribi__top_snapshot *snapshot, const char *text, size_t len)
{
    const char *end = text + len;
    int code = ORIBI_EBAD;
    oribi__top_deinit(snapshot);
    while (text < end && code != ORIBI_ENOMEM) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        struct oribi_slice line = oribi_slice(text, (size_t)((newline ? newline : end) - text));
        if (is_kind(line, "server")) {
            read_fields(line, snapshot, server_fields, SERVER_FIELDS);
            code = snapshot->pid > 0 ? 0 : ORIBI_EBAD;
        } else if (is_kind(line, "times")) {
            read_times(line, snapshot);
        } else if (is_kind(line, "worker") && read_worker(line, snapshot) < 0) {
            code = ORIBI_ENOMEM;
        }
        text = newline ? newline + 1 : end;
    }
    return code;
}
