/* Counters that outlive workers, and over an upgrade the supervisor. The mapping of an upgrade is a directory of names,
 * then the numbers. All counters of struct oribi__totals are 64-bit numbers behind each other, those of a slot among
 * them; a run is what has one name there. */
#include "oribi/observe/totals.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/policy/policy.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const char *const names[ORIBI__EXIT_REASONS] = {
    "asked", "recycled", "call_deadline", "boot_timeout", "shutdown_timeout", "signal", "exit_code", "other"};

/* The beginnings of the policy's lines: the first that fits counts. */
static const struct {
    const char *line;
    enum oribi__exit_reason reason;
} lines[] = {
    {oribi__cause_asked, ORIBI__EXIT_ASKED},
    {"exit code 0", ORIBI__EXIT_RECYCLED},
    {oribi__cause_age_max, ORIBI__EXIT_RECYCLED},
    {oribi__cause_memory_max, ORIBI__EXIT_RECYCLED},
    {oribi__cause_refork, ORIBI__EXIT_RECYCLED},
    {oribi__cause_call_deadline, ORIBI__EXIT_CALL_DEADLINE},
    {oribi__cause_hang, ORIBI__EXIT_CALL_DEADLINE},
    {oribi__cause_boot_timeout, ORIBI__EXIT_BOOT_TIMEOUT},
    {oribi__cause_shutdown_timeout, ORIBI__EXIT_SHUTDOWN_TIMEOUT},
    {"signal ", ORIBI__EXIT_SIGNAL},
    {"exit code ", ORIBI__EXIT_CODE},
    {"", ORIBI__EXIT_OTHER},
};

const char *oribi__exit_reason_name(uint32_t i)
{
    return names[i];
}

void oribi__totals_exit(struct oribi__totals *totals, const struct oribi_slot *slot, const char *reason)
{
    size_t i = 0;
    while (strncmp(reason, lines[i].line, strlen(lines[i].line)) != 0)
        i++; /* the last one fits every line */
    totals->exits[lines[i].reason]++;
    oribi_slot_fold(totals->ended, slot);
}

uint64_t oribi__totals_exits(const struct oribi__totals *totals)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < ORIBI__EXIT_REASONS; i++)
        count += totals->exits[i];
    return count;
}

void oribi__totals_reloading(struct oribi__totals *totals, int64_t now_ms)
{
    totals->reload_began_ms = now_ms;
}

void oribi__totals_reloaded(struct oribi__totals *totals, bool failed, int64_t now_ms)
{
    if (failed)
        totals->reloads_failed++;
    else
        totals->reloads_done++;
    totals->reload_ms = totals->reload_began_ms ? now_ms - totals->reload_began_ms : 0;
    totals->reload_began_ms = 0;
}

/* --- the mapping of an upgrade --- */

enum {
    MAGIC = 0x6f726275, /* another layout of the page has another one */
    RUNS_MAX = 96,
    NAME_CAP = 32,
    COUNTERS_MAX = 8192, /* of a predecessor, which may be of a later version */
    OURS = (offsetof(struct oribi__totals, reload_ms) - offsetof(struct oribi__totals, ended)) / sizeof(uint64_t),
};

_Static_assert(OURS <= COUNTERS_MAX, "a page has room for all counters");
_Static_assert(offsetof(struct oribi__totals, ended) == 0, "the counters stand at the beginning");

struct oribi__totals_page {
    _Atomic uint32_t magic; /* written last */
    uint32_t run_count;
    struct {
        char name[NAME_CAP];
        uint32_t at; /* index of the first counter */
        uint32_t count;
    } runs[RUNS_MAX];
    _Atomic uint64_t counters[COUNTERS_MAX];
};

/* How a run may differ from version to version. A name never changes its meaning, and no place in a run does. */
enum grows {
    GROWS_AT_END,     /* new counters stand at the end */
    GROWS_BEFORE_END, /* new counters stand before the last, which counts all that has none of its own */
    GROWS_NOT,        /* of another length it is something else: a histogram */
};

/* A field of a slot, or of the supervisor's own totals. New ones are added here. */
#define SLOT_AT(field)                                                                                                 \
    ((offsetof(struct oribi_slot, field) - offsetof(struct oribi_slot, request_count)) / sizeof(uint64_t))
#define SLOT_RUN(field, how)                                                                                           \
    {                                                                                                                  \
#field, SLOT_AT(field), sizeof(((struct oribi_slot *)0)->field) / sizeof(uint64_t), how                        \
    }
#define TOTALS_RUN(field, how)                                                                                         \
    {                                                                                                                  \
#field, offsetof(struct oribi__totals, field) / sizeof(uint64_t),                                              \
            sizeof(((struct oribi__totals *)0)->field) / sizeof(uint64_t), how                                         \
    }
#define FRONTEND_AT(field)                                                                                             \
    (offsetof(struct oribi__totals, frontends) / sizeof(uint64_t) +                                                    \
     (offsetof(struct oribi_frontend_slot, field) - offsetof(struct oribi_frontend_slot, uncalled_count)) /            \
         sizeof(uint64_t))
#define FRONTEND_RUN(field, how)                                                                                       \
    {                                                                                                                  \
        "frontend." #field, FRONTEND_AT(field), sizeof(((struct oribi_frontend_slot *)0)->field) / sizeof(uint64_t),   \
            how                                                                                                        \
    }
#define FRONTEND(field)  FRONTEND_RUN(field, GROWS_AT_END)
#define SLOT(field)      SLOT_RUN(field, GROWS_AT_END)
#define HISTOGRAM(field) SLOT_RUN(field, GROWS_NOT)
#define TOTALS(field)    TOTALS_RUN(field, GROWS_AT_END)

static const struct run {
    const char *name;
    uint32_t at;
    uint32_t count;
    enum grows grows;
} runs[] = {
    SLOT(request_count),
    SLOT(uncalled_count),
    SLOT(connection_count),
    SLOT(bytes_in),
    SLOT(bytes_out),
    SLOT(status_class),
    SLOT_RUN(method_count, GROWS_BEFORE_END),
    SLOT(refusals),
    SLOT(bad_requests),
    SLOT(timeouts),
    SLOT(shed_count),
    SLOT(gone_count),
    SLOT(cancelled_count),
    SLOT(passed_count),
    SLOT(taken_count),
    SLOT(evicted_count),
    SLOT(lost_count),
    SLOT(overdue_count),
    SLOT(temp_file_count),
    SLOT(temp_file_written_bytes),
    SLOT(unlogged_count),
    SLOT(gc_count),
    SLOT(gc_us),
    HISTOGRAM(queue_wait),
    HISTOGRAM(call_time),
    HISTOGRAM(total_time),
    TOTALS_RUN(exits, GROWS_BEFORE_END),
    TOTALS(reloads_done),
    TOTALS(reloads_failed),
    TOTALS(frontend_exits),
    TOTALS(acme_orders),
    TOTALS(acme_failures),
    FRONTEND(uncalled_count),
    FRONTEND(connection_count),
    FRONTEND(status_class),
    FRONTEND_RUN(method_count, GROWS_BEFORE_END),
    FRONTEND(refusals),
    FRONTEND(timeouts),
    FRONTEND(shed_count),
    FRONTEND(gone_count),
    FRONTEND(evicted_count),
    FRONTEND(passed_count),
    FRONTEND(handshakes),
    FRONTEND(handshake_failures),
    FRONTEND(requests),
    FRONTEND(local_count),
    FRONTEND(call_count),
    FRONTEND(posted_count),
    FRONTEND(reset_count),
    FRONTEND(bytes_in),
    FRONTEND(bytes_out),
    FRONTEND(websocket_count),
    FRONTEND(websocket_closed),
    FRONTEND(websocket_messages),
    FRONTEND(websocket_bytes),
    FRONTEND(event_stream_count),
    FRONTEND(event_streams_ended),
    FRONTEND(event_count),
    FRONTEND(event_bytes),
    FRONTEND(event_resets),
    FRONTEND(publish_count),
    FRONTEND(publish_refused),
    FRONTEND(delivered_count),
    FRONTEND(resumed_count),
    FRONTEND(resume_reset_count),
    FRONTEND(history_dropped),
};

enum { RUNS = sizeof(runs) / sizeof(runs[0]) };

_Static_assert((int)RUNS <= (int)RUNS_MAX, "a page has room for all names");

/* All of them behind each other. */
static uint64_t *counters_of(const struct oribi__totals *totals)
{
    return (uint64_t *)(uintptr_t)totals;
}

static struct oribi__totals_page *map_page(int fd, int protection)
{
    void *page = mmap(NULL, sizeof(struct oribi__totals_page), protection, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

/* --- the predecessor's side --- */

int oribi__inherited_totals_make(struct oribi__inherited_totals *inherited)
{
    int code = inherited->to_fd >= 0 ? 0 : oribi_process_shared_memory(sizeof(*inherited->to), &inherited->to_fd);
    if (code < 0)
        return code;
    oribi__inherited_totals_drop(inherited);
    inherited->to = map_page(inherited->to_fd, PROT_READ | PROT_WRITE);
    if (!inherited->to) {
        oribi__inherited_totals_given(inherited);
        return ORIBI_ENOMEM;
    }
    for (uint32_t i = 0; i < RUNS; i++) {
        memcpy(inherited->to->runs[i].name, runs[i].name, strlen(runs[i].name)); /* zeroed by the kernel */
        inherited->to->runs[i].at = runs[i].at;
        inherited->to->runs[i].count = runs[i].count;
    }
    inherited->to->run_count = RUNS;
    return 0;
}

void oribi__inherited_totals_drop(struct oribi__inherited_totals *inherited)
{
    if (inherited->to)
        (void)munmap(inherited->to, sizeof(*inherited->to)); /* fails for wrong arguments only */
    inherited->to = NULL;
}

void oribi__inherited_totals_given(struct oribi__inherited_totals *inherited)
{
    oribi_os_close(inherited->to_fd);
    inherited->to_fd = -1;
}

void oribi__inherited_totals_write(const struct oribi__inherited_totals *inherited, const struct oribi__totals *totals)
{
    const uint64_t *counters = counters_of(totals);
    if (!inherited->to)
        return;
    for (uint32_t i = 0; i < OURS; i++)
        atomic_store_explicit(&inherited->to->counters[i], counters[i], memory_order_relaxed);
    atomic_store_explicit(&inherited->to->magic, MAGIC, memory_order_release);
}

/* --- the successor's side --- */

static const struct oribi__totals_page *take(const char *text)
{
    char *end = NULL;
    long fd = strtol(text, &end, 10);
    struct stat info;
    if (fd < 0 || fd > INT_MAX || *end || fstat((int)fd, &info) < 0 || !S_ISREG(info.st_mode) ||
        info.st_size < (off_t)sizeof(struct oribi__totals_page))
        return NULL;
    const struct oribi__totals_page *page = map_page((int)fd, PROT_READ);
    oribi_os_close((int)fd);
    return page;
}

void oribi__inherited_totals_take(struct oribi__inherited_totals *inherited)
{
    const char *text = getenv("ORIBI_TOTALS");
    if (text && *text) {
        inherited->from = take(text);
        if (!inherited->from || atomic_load_explicit(&inherited->from->magic, memory_order_acquire) != MAGIC)
            oribi_log(ORIBI_LOG_WARN, "the predecessor's counters cannot be read; all counters begin at 0");
    }
    (void)unsetenv("ORIBI_TOTALS"); /* fails for names with `=` only */
}

/* Where counter k of theirs, of a run with `count` of them, belongs in ours; UINT32_MAX: nowhere. */
static uint32_t place_in(const struct run *ours, uint32_t k, uint32_t count)
{
    if (count == ours->count)
        return k;
    if (ours->grows == GROWS_BEFORE_END)
        return k == count - 1 || k >= ours->count - 1 ? ours->count - 1 : k;
    return ours->grows == GROWS_AT_END && k < ours->count ? k : UINT32_MAX;
}

static void add_run(const struct oribi__totals_page *from, uint32_t which, uint64_t *counters)
{
    uint32_t at = from->runs[which].at;
    uint32_t count = from->runs[which].count;
    if (count > COUNTERS_MAX || at > COUNTERS_MAX - count)
        return;
    for (uint32_t i = 0; i < RUNS; i++) {
        if (strncmp(from->runs[which].name, runs[i].name, NAME_CAP) != 0)
            continue;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t to = place_in(&runs[i], k, count);
            if (to != UINT32_MAX)
                counters[runs[i].at + to] += atomic_load_explicit(&from->counters[at + k], memory_order_relaxed);
        }
    }
}

void oribi__inherited_totals_add(const struct oribi__inherited_totals *inherited, struct oribi__totals *totals)
{
    const struct oribi__totals_page *from = inherited->from;
    if (!from || atomic_load_explicit(&from->magic, memory_order_acquire) != MAGIC)
        return;
    for (uint32_t i = 0; i < from->run_count && i < RUNS_MAX; i++)
        add_run(from, i, counters_of(totals));
}

void oribi__inherited_totals_close(struct oribi__inherited_totals *inherited)
{
    oribi__inherited_totals_given(inherited);
    oribi__inherited_totals_drop(inherited);
    if (inherited->from)
        (void)munmap((void *)(uintptr_t)inherited->from, sizeof(*inherited->from));
    *inherited = (struct oribi__inherited_totals){.to_fd = -1};
}
