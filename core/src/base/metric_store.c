/* The shared table of an application's metrics. Reading order: the head, records and their publication,
 * oribi_metric_store_declare, oribi_metric_store_series, readers.
 *
 * The memory is every worker's, and an application's own C code may write anything into it. Readers, of whom the
 * supervisor is one, therefore use no number or length from there unchecked.
 *
 * Label values may come from clients. Who finds many that share a hash makes a search as long as there are series,
 * which metrics_max bounds. */
#include "oribi/base/metric.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { INDEX_ENTRIES = 2 }; /* for each record: a search ends after few steps */

/* Records given out, and those that came back: the number of the first, plus one, and above it a count of changes, by
 * which a compare-and-swap notices that the list was another meanwhile. */
struct pool {
    _Atomic uint64_t free;
    _Atomic uint32_t used;
};

struct oribi_metric_head {
    struct pool metrics;
    struct pool series;
    _Atomic uint32_t servers; /* that have followed on the first */
    _Atomic uint32_t parts;   /* workers' parts of gauges there are; 0: nothing to do when a worker ends */
    _Atomic uint64_t dropped[ORIBI_METRIC_DROPS];
};

/* ---- metric_servers ---- */

/* Servers that follow on each other in upgrades and share one store, and the workers of each. */

enum {
    SERVER_GENERATIONS = 1 << 20, /* more than a server has */
    SERVER_SLOTS = 1 << 16,       /* likewise */
    SERVERS = 2,                  /* at a time: a third one takes the numbers of the first, which has ended */
};

uint32_t oribi_metric_store_generation(const struct oribi_metric_store *store, uint32_t generation)
{
    return store->server * SERVER_GENERATIONS + generation;
}

int32_t oribi_metric_store_worker(const struct oribi_metric_store *store, int32_t slot)
{
    return slot == ORIBI_METRIC_NOBODY ? slot : (int32_t)(store->server % SERVERS) * SERVER_SLOTS + slot;
}

/* Ends the parts of all workers with numbers from `first` to `last`. */
static void end_workers(const struct oribi_metric_store *store, int32_t first, int32_t last)
{
    if (!store->head || !atomic_load_explicit(&store->head->parts, memory_order_relaxed))
        return;
    for (uint32_t i = 0; i < store->max * INDEX_ENTRIES; i++) {
        uint32_t at = atomic_load_explicit(&store->series_index[i], memory_order_acquire);
        if (at && at <= store->max && store->series[at - 1].worker >= first && store->series[at - 1].worker <= last)
            oribi_metric_unset(&store->series[at - 1]);
    }
}

void oribi_metric_store_worker_ended(const struct oribi_metric_store *store, int32_t worker)
{
    end_workers(store, worker, worker);
}

void oribi_metric_store_take_over(struct oribi_metric_store *store)
{
    store->server = atomic_fetch_add(&store->head->servers, 1) + 1;
    int32_t first = oribi_metric_store_worker(store, 0);
    end_workers(store, first, first + SERVER_SLOTS - 1); /* of a supervisor that was killed, for one */
}

/* ---- metric_value ---- */

/* The numbers of a series. Each change is one atomic operation, or one that is repeated while others are faster. */

/* A quiet NaN of a pattern of its own: no value. Other NaNs are stored as the one that NAN is. */
static const uint64_t unset = 0x7ff8000000a5e7aa;

static double to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint64_t to_bits(double value)
{
    uint64_t bits;
    double plain = isnan(value) ? (double)NAN : value;
    memcpy(&bits, &plain, sizeof(bits));
    return bits;
}

void oribi_metric_count(struct oribi_metric_series *series, uint64_t n)
{
    atomic_fetch_add_explicit(&series->whole, n, memory_order_relaxed);
}

void oribi_metric_add(struct oribi_metric_series *series, double value)
{
    uint64_t before = atomic_load_explicit(&series->rest, memory_order_relaxed);
    uint64_t after;
    do
        after = to_bits((before == unset ? 0 : to_double(before)) + value);
    while (!atomic_compare_exchange_weak_explicit(&series->rest, &before, after, memory_order_relaxed,
                                                  memory_order_relaxed));
}

void oribi_metric_set(struct oribi_metric_series *series, double value)
{
    atomic_store_explicit(&series->rest, to_bits(value), memory_order_relaxed);
}

void oribi_metric_unset(struct oribi_metric_series *series)
{
    atomic_store_explicit(&series->rest, unset, memory_order_relaxed);
}

/* A process that is killed between the two has counted what its sum lacks. */
void oribi_metric_observe(struct oribi_metric_series *series, uint32_t bucket, double value)
{
    atomic_fetch_add_explicit(&series->buckets[bucket], 1, memory_order_relaxed);
    oribi_metric_add(series, value);
}

bool oribi_metric_value(const struct oribi_metric_series *series, double *value)
{
    uint64_t rest = atomic_load_explicit(&series->rest, memory_order_relaxed);
    if (rest == unset)
        return false;
    *value = (double)atomic_load_explicit(&series->whole, memory_order_relaxed) + to_double(rest);
    return true;
}

/* ---- metric_store ---- */

enum {
    HEAD_BYTES = 256,
    ALIGNMENT = 128,
    EACH = sizeof(struct oribi_metric_record) + sizeof(struct oribi_metric_series) + 2 * INDEX_ENTRIES * 4,
};

_Static_assert(sizeof(struct oribi_metric_head) <= HEAD_BYTES, "the head fits");
_Static_assert(sizeof(struct oribi_metric_series) == 640, "doc/monitoring.md says what a series takes");
_Static_assert(sizeof(struct oribi_metric_record) == 1408, "doc/monitoring.md says what a metric takes");

/* --- memory --- */

size_t oribi_metric_store_bytes(uint32_t series_max)
{
    return series_max ? HEAD_BYTES + ALIGNMENT + (size_t)series_max * EACH : 0;
}

uint32_t oribi_metric_store_max(size_t bytes)
{
    size_t max = bytes > HEAD_BYTES + ALIGNMENT ? (bytes - HEAD_BYTES - ALIGNMENT) / EACH : 0;
    return max <= ORIBI_METRIC_SERIES_MAX ? (uint32_t)max : ORIBI_METRIC_SERIES_MAX;
}

void oribi_metric_store_at(struct oribi_metric_store *store, void *memory, uint32_t series_max)
{
    *store = (struct oribi_metric_store){.head = NULL};
    if (!memory || series_max == 0)
        return;
    size_t index_bytes = (size_t)series_max * INDEX_ENTRIES * 4;
    size_t records = (HEAD_BYTES + 2 * index_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *base = memory;
    store->head = memory;
    store->series_index = (_Atomic uint32_t *)(base + HEAD_BYTES);
    store->metric_index = (_Atomic uint32_t *)(base + HEAD_BYTES + index_bytes);
    store->metrics = (struct oribi_metric_record *)(base + records);
    store->series = (struct oribi_metric_series *)(store->metrics + series_max);
    store->max = series_max;
}

uint32_t oribi_metric_store_layout(void)
{
    return 1u << 28 ^ (uint32_t)sizeof(struct oribi_metric_record) << 14 ^ (uint32_t)sizeof(struct oribi_metric_series);
}

/* FNV-1a, and a last step that spreads it: the place in an index comes from the upper bits. */
static uint32_t hash_of(uint32_t seed, const char *p, size_t n)
{
    uint32_t hash = 2166136261u ^ seed;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)p[i]) * 16777619u;
    hash = (hash ^ (hash >> 16)) * 0x85ebca6bu;
    return hash ^ (hash >> 13);
}

/* --- records --- */

static _Atomic uint32_t *next_of(const struct oribi_metric_store *store, const struct pool *pool, uint32_t number)
{
    return pool == &store->head->series ? &store->series[number].next_free : &store->metrics[number].next_free;
}

/* A record for this process alone: its number plus one; 0: there is none left. */
static uint32_t take(const struct oribi_metric_store *store, struct pool *pool)
{
    uint64_t free = atomic_load(&pool->free);
    while ((uint32_t)free) {
        uint64_t next = atomic_load(next_of(store, pool, (uint32_t)free - 1));
        if (atomic_compare_exchange_weak(&pool->free, &free, ((free >> 32) + 1) << 32 | next))
            return (uint32_t)free;
    }
    uint32_t used = atomic_load(&pool->used);
    while (used < store->max)
        if (atomic_compare_exchange_weak(&pool->used, &used, used + 1))
            return used + 1;
    return 0;
}

static void give_back(const struct oribi_metric_store *store, struct pool *pool, uint32_t record)
{
    uint64_t free = atomic_load(&pool->free);
    do
        atomic_store(next_of(store, pool, record - 1), (uint32_t)free);
    while (!atomic_compare_exchange_weak(&pool->free, &free, ((free >> 32) + 1) << 32 | record));
}

/* --- an index --- */

struct search {
    const struct oribi_metric_store *store;
    _Atomic uint32_t *index;
    uint32_t at;    /* place in the index */
    uint32_t steps; /* that are left */
};

static struct search search_from(const struct oribi_metric_store *store, _Atomic uint32_t *index, uint32_t hash)
{
    uint32_t size = store->max * INDEX_ENTRIES;
    return (struct search){store, index, (uint32_t)(((uint64_t)hash * size) >> 32), size};
}

/* The next record of this search, plus one; 0: the search has come to an entry that is empty, and stays there. */
static uint32_t next(struct search *search)
{
    uint32_t size = search->store->max * INDEX_ENTRIES;
    if (search->steps == 0)
        return 0;
    uint32_t record = atomic_load_explicit(&search->index[search->at], memory_order_acquire);
    if (!record || record > search->store->max)
        return 0;
    search->steps--;
    search->at = search->at + 1 < size ? search->at + 1 : 0;
    return record;
}

/* Publishes a filled record where the search has ended. False: another process was faster, and the search goes on.
 * There is always an empty entry, since there are more of them than records. */
static bool publish(struct search *search, uint32_t record)
{
    uint32_t empty = 0;
    assert(search->steps > 0);
    return atomic_compare_exchange_strong_explicit(&search->index[search->at], &empty, record, memory_order_acq_rel,
                                                   memory_order_acquire);
}

/* --- metrics --- */

static uint32_t name_hash(const char *name, size_t n)
{
    return hash_of(0, name, n);
}

static bool has_name(const struct oribi_metric_record *record, uint32_t hash, const char *name, size_t n)
{
    return record->hash == hash && strnlen(record->metric.name, sizeof(record->metric.name)) == n &&
           memcmp(record->metric.name, name, n) == 0;
}

static bool has_suffix(uint32_t kind, const char *suffix)
{
    const char *one;
    for (uint32_t i = 0; (one = oribi_metric_suffix(kind, i)); i++)
        if (strcmp(one, suffix) == 0)
            return true;
    return false;
}

/* A question about records that cannot stand beside `metric`. */
struct question {
    const struct oribi_metric *metric;
    bool (*is_it)(const struct question *, const struct oribi_metric_record *);
    uint32_t generation;
    uint32_t last_generation;
    const struct oribi_metric_record *self;
};

/* Looks at all records of this name whose kind has the suffix. */
static const struct oribi_metric_record *named(const struct oribi_metric_store *store, const struct question *question,
                                               const char *name, size_t n, const char *suffix)
{
    uint32_t hash = name_hash(name, n);
    struct search search = search_from(store, store->metric_index, hash);
    for (uint32_t at; (at = next(&search));) {
        const struct oribi_metric_record *record = &store->metrics[at - 1];
        if (has_name(record, hash, name, n) && has_suffix(record->metric.kind, suffix) &&
            !oribi_metric_equal(&record->metric, question->metric) && question->is_it(question, record))
            return record;
    }
    return NULL;
}

/* The first record with another declaration of the name, or with samples that would have the names of this one's, of
 * which the question is true; NULL: none. */
static const struct oribi_metric_record *rival(const struct oribi_metric_store *store, const struct question *question)
{
    const char *name = question->metric->name;
    size_t n = strlen(name);
    const char *suffix;
    const struct oribi_metric_record *found = NULL;
    for (uint32_t i = 0; !found && (suffix = oribi_metric_suffix(question->metric->kind, i)); i++) {
        char longer[ORIBI_METRIC_NAME_MAX + 16];
        int len = snprintf(longer, sizeof(longer), "%s%s", name, suffix); /* fits: suffixes are short */
        found = named(store, question, longer, (size_t)len, "");
    }
    for (uint32_t kind = 0; kind <= ORIBI_METRIC_HISTOGRAM; kind++)
        for (uint32_t i = 1; !found && (suffix = oribi_metric_suffix(kind, i)); i++) {
            size_t end = strlen(suffix);
            if (n > end && memcmp(name + n - end, suffix, end) == 0)
                found = named(store, question, name, n - end, suffix);
        }
    return found;
}

static bool is_of_generation(const struct question *question, const struct oribi_metric_record *record)
{
    return atomic_load(&record->last_generation) == question->generation;
}

static void note_generation(struct oribi_metric_record *record, uint32_t generation)
{
    uint32_t first = atomic_load(&record->first_generation);
    uint32_t last = atomic_load(&record->last_generation);
    while (generation < first && !atomic_compare_exchange_weak(&record->first_generation, &first, generation))
        ;
    while (generation > last && !atomic_compare_exchange_weak(&record->last_generation, &last, generation))
        ;
}

static uint32_t new_metric(const struct oribi_metric_store *store, const struct oribi_metric *metric, uint32_t hash,
                           uint32_t generation)
{
    uint32_t fresh = take(store, &store->head->metrics);
    if (!fresh)
        return 0;
    struct oribi_metric_record *record = &store->metrics[fresh - 1];
    record->metric = *metric;
    record->hash = hash;
    atomic_store(&record->first_generation, generation);
    atomic_store(&record->last_generation, generation);
    return fresh;
}

int oribi_metric_store_declare(const struct oribi_metric_store *store, const struct oribi_metric *metric,
                               uint32_t generation, uint32_t *number, char *error)
{
    const struct question question = {.metric = metric, .is_it = is_of_generation, .generation = generation};
    const struct oribi_metric_record *other = rival(store, &question);
    if (other)
        return oribi_metric_compare(metric, &other->metric, error);
    size_t n = strlen(metric->name);
    uint32_t hash = name_hash(metric->name, n);
    uint32_t fresh = 0;
    uint32_t at;
    struct search search = search_from(store, store->metric_index, hash);
    for (;;) {
        while ((at = next(&search)))
            if (has_name(&store->metrics[at - 1], hash, metric->name, n) &&
                oribi_metric_equal(&store->metrics[at - 1].metric, metric))
                break;
        if (at)
            break;
        if (!fresh && !(fresh = new_metric(store, metric, hash, generation)))
            return ORIBI_ELIMIT;
        if (publish(&search, fresh)) {
            at = fresh;
            break;
        }
    }
    if (fresh && fresh != at)
        give_back(store, &store->head->metrics, fresh);
    note_generation(&store->metrics[at - 1], generation);
    *number = at - 1;
    return 0;
}

/* A later declaration counts; of two of the same generation, which two processes made in one moment, the first. */
static bool prevails(const struct question *question, const struct oribi_metric_record *record)
{
    uint32_t last = atomic_load(&record->last_generation);
    return atomic_load(&record->first_generation) <= question->generation &&
           (last > question->last_generation || (last == question->last_generation && record < question->self));
}

bool oribi_metric_store_shows(const struct oribi_metric_store *store, uint32_t number, uint32_t generation)
{
    const struct oribi_metric_record *record = &store->metrics[number];
    struct oribi_metric metric = record->metric; /* which then stays as it is */
    metric.name[ORIBI_METRIC_NAME_MAX] = '\0';
    const struct question question = {.metric = &metric,
                                      .is_it = prevails,
                                      .generation = generation,
                                      .last_generation = atomic_load(&record->last_generation),
                                      .self = record};
    return atomic_load(&record->first_generation) <= generation && !rival(store, &question);
}

/* --- series --- */

static uint32_t series_hash(uint32_t metric, int32_t worker, const struct oribi_metric_values *values)
{
    return hash_of(metric * 31 + (uint32_t)worker, values->bytes, values->len);
}

static bool is_series(const struct oribi_metric_series *series, uint32_t hash, uint32_t metric, int32_t worker,
                      const struct oribi_metric_values *values)
{
    return series->hash == hash && series->metric == metric && series->worker == worker &&
           series->values_len == values->len && memcmp(series->values, values->bytes, values->len) == 0;
}

static uint32_t new_series(const struct oribi_metric_store *store, uint32_t hash, uint32_t metric, int32_t worker,
                           uint32_t group, const struct oribi_metric_values *values)
{
    uint32_t fresh = take(store, &store->head->series);
    if (!fresh)
        return 0;
    struct oribi_metric_series *series = &store->series[fresh - 1];
    series->hash = hash;
    series->metric = metric;
    series->worker = worker;
    series->group = group ? group - 1 : fresh - 1;
    series->values_len = values->len;
    memcpy(series->values, values->bytes, values->len);
    atomic_store(&series->whole, 0);
    atomic_store(&series->rest, 0);
    if (oribi_metric_is_per_worker(&store->metrics[metric].metric))
        oribi_metric_unset(series);
    for (uint32_t i = 0; i <= ORIBI_METRIC_BUCKETS_MAX; i++)
        atomic_store_explicit(&series->buckets[i], 0, memory_order_relaxed);
    return fresh;
}

/* The record, plus one; 0: the search has come to its end without one. */
static uint32_t seek(struct search *search, uint32_t hash, uint32_t metric, int32_t worker,
                     const struct oribi_metric_values *values)
{
    uint32_t at;
    while ((at = next(search)))
        if (is_series(&search->store->series[at - 1], hash, metric, worker, values))
            break;
    return at;
}

/* The record of this worker's part, plus one; 0: there is no room. */
static uint32_t find_or_add(const struct oribi_metric_store *store, uint32_t metric, int32_t worker, uint32_t group,
                            const struct oribi_metric_values *values)
{
    uint32_t hash = series_hash(metric, worker, values);
    uint32_t fresh = 0;
    uint32_t at;
    struct search search = search_from(store, store->series_index, hash);
    while (!(at = seek(&search, hash, metric, worker, values))) {
        if (!fresh && !(fresh = new_series(store, hash, metric, worker, group, values)))
            return 0;
        if (publish(&search, fresh))
            return fresh;
    }
    if (fresh)
        give_back(store, &store->head->series, fresh);
    return at;
}

struct oribi_metric_series *oribi_metric_store_series(const struct oribi_metric_store *store, uint32_t metric,
                                                      int32_t worker, const struct oribi_metric_values *values)
{
    uint32_t at = find_or_add(store, metric, ORIBI_METRIC_NOBODY, 0, values);
    if (at && worker != ORIBI_METRIC_NOBODY && oribi_metric_is_per_worker(&store->metrics[metric].metric)) {
        atomic_store_explicit(&store->head->parts, 1, memory_order_relaxed);
        at = find_or_add(store, metric, worker, at, values);
    }
    return at ? &store->series[at - 1] : NULL;
}

struct oribi_metric_series *oribi_metric_store_find(const struct oribi_metric_store *store, uint32_t metric,
                                                    int32_t worker, const struct oribi_metric_values *values)
{
    int32_t owner = oribi_metric_is_per_worker(&store->metrics[metric].metric) ? worker : ORIBI_METRIC_NOBODY;
    uint32_t hash = series_hash(metric, owner, values);
    struct search search = search_from(store, store->series_index, hash);
    uint32_t at = seek(&search, hash, metric, owner, values);
    return at ? &store->series[at - 1] : NULL;
}

bool oribi_metric_store_drop(const struct oribi_metric_store *store, enum oribi_metric_drop why)
{
    return atomic_fetch_add(&store->head->dropped[why], 1) == 0;
}

/* --- readers --- */

static uint32_t used_of(const struct oribi_metric_store *store, const struct pool *pool)
{
    uint32_t used = atomic_load(&pool->used);
    return used < store->max ? used : store->max;
}

static void each(const struct oribi_metric_store *store, _Atomic uint32_t *index, const struct pool *pool,
                 void (*function)(void *, uint32_t), void *self)
{
    uint32_t used = used_of(store, pool);
    bool *published = used ? oribi_mem_try_alloc(used, sizeof(bool)) : NULL; /* where memory is out, nothing is shown */
    if (!published)
        return;
    for (uint32_t i = 0; i < store->max * INDEX_ENTRIES; i++) {
        uint32_t at = atomic_load_explicit(&index[i], memory_order_acquire);
        if (at && at <= used)
            published[at - 1] = true;
    }
    for (uint32_t i = 0; i < used; i++)
        if (published[i])
            function(self, i);
    oribi_mem_free(published);
}

void oribi_metric_store_each_metric(const struct oribi_metric_store *store, void (*function)(void *, uint32_t),
                                    void *self)
{
    if (store->head)
        each(store, store->metric_index, &store->head->metrics, function, self);
}

void oribi_metric_store_each_series(const struct oribi_metric_store *store, void (*function)(void *, uint32_t),
                                    void *self)
{
    if (store->head)
        each(store, store->series_index, &store->head->series, function, self);
}

static void count(void *self, uint32_t number)
{
    ++*(uint32_t *)self;
}

/* The list may change while it is read; it is no longer than there are records. */
static uint32_t length(const struct oribi_metric_store *store, const struct pool *pool)
{
    uint32_t n = 0;
    uint32_t used = used_of(store, pool);
    for (uint32_t at = (uint32_t)atomic_load(&pool->free); at && at <= used && n < used; n++)
        at = atomic_load(next_of(store, pool, at - 1));
    return n;
}

void oribi_metric_store_counts(const struct oribi_metric_store *store, struct oribi_metric_counts *counts)
{
    *counts = (struct oribi_metric_counts){.series = 0};
    if (!store->head)
        return;
    const struct pool *pool = &store->head->series;
    oribi_metric_store_each_metric(store, count, &counts->metrics);
    oribi_metric_store_each_series(store, count, &counts->series);
    uint32_t accounted = counts->series + length(store, pool);
    uint32_t used = used_of(store, pool);
    counts->lost = used > accounted ? used - accounted : 0;
    for (int i = 0; i < ORIBI_METRIC_DROPS; i++)
        counts->dropped[i] = atomic_load(&store->head->dropped[i]);
}
