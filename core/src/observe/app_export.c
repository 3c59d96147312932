/* The application's metrics as text and JSON. Reading order: gather (what the store has, sorted by family), families as
 * text, families as JSON.
 *
 * The store is written by every process of the application, whose C code may also destroy it. So each number from there
 * is checked, and what a family is comes from a copy. */
#include "observe/status.h"

#include "oribi/base/error.h"
#include "oribi/base/escape.h"
#include "oribi/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_CAP = 32, NONE = UINT32_MAX };

/* A series with what was folded into it of the parts of workers. */
struct entry {
    double folded;
    uint32_t next; /* of the same family; NONE: the last */
    bool is_set;
};

struct family {
    uint32_t first; /* NONE: without series, or not shown */
    uint32_t last;
    bool shown;
};

struct gathered {
    const struct oribi_metric_store *store;
    uint32_t generation;
    struct family *families; /* by number in the store, as are … */
    struct entry *entries;
    struct oribi_buf *out;
    bool open_metrics;
    bool any; /* of JSON: a comma comes before the next family */
};

/* --- gathering --- */

static bool is_sane(const struct oribi_metric *metric)
{
    bool sane = metric->kind <= ORIBI_METRIC_HISTOGRAM && metric->aggregate <= ORIBI_METRIC_MIN &&
                metric->label_count <= ORIBI_METRIC_LABELS_MAX && metric->bound_count <= ORIBI_METRIC_BUCKETS_MAX &&
                metric->name[ORIBI_METRIC_NAME_MAX] == '\0' && metric->help[ORIBI_METRIC_HELP_MAX] == '\0';
    for (uint32_t i = 0; i < ORIBI_METRIC_LABELS_MAX; i++)
        sane = sane && metric->labels[i][ORIBI_METRIC_LABEL_NAME_MAX] == '\0';
    return sane;
}

static void gather_family(void *self, uint32_t number)
{
    struct gathered *g = self;
    g->families[number] = (struct family){.first = NONE, .last = NONE};
    g->families[number].shown =
        is_sane(&g->store->metrics[number].metric) && oribi_metric_store_shows(g->store, number, g->generation);
}

static void append(struct gathered *g, uint32_t number, struct family *family)
{
    g->entries[number].next = NONE;
    if (family->last == NONE)
        family->first = number;
    else
        g->entries[family->last].next = number;
    family->last = number;
}

static void fold(struct entry *entry, uint32_t aggregate, double value)
{
    if (!entry->is_set || aggregate == ORIBI_METRIC_LAST)
        entry->folded = value;
    else if (aggregate == ORIBI_METRIC_SUM)
        entry->folded += value;
    else if (aggregate == ORIBI_METRIC_MAX)
        entry->folded = value > entry->folded ? value : entry->folded;
    else
        entry->folded = value < entry->folded ? value : entry->folded;
    entry->is_set = true;
}

/* A group is published before its parts, so its own entry has been begun by then or begins at zero here. */
static void gather_series(void *self, uint32_t number)
{
    struct gathered *g = self;
    const struct oribi_metric_series *series = &g->store->series[number];
    uint32_t metric = series->metric;
    uint32_t group = series->group;
    double value;
    if (metric >= g->store->max || group >= g->store->max || !g->families[metric].shown)
        return;
    if (series->worker == ORIBI_METRIC_NOBODY)
        append(g, number, &g->families[metric]);
    if (oribi_metric_value(series, &value))
        fold(&g->entries[group], g->store->metrics[metric].metric.aggregate, value);
}

/* False: there is nothing, or memory is out. */
static bool gather(struct gathered *g)
{
    struct oribi_metric_counts counts;
    oribi_metric_store_counts(g->store, &counts);
    if (counts.series == 0)
        return false;
    g->families = oribi_mem_try_alloc(g->store->max, sizeof(*g->families));
    g->entries = oribi_mem_try_alloc(g->store->max, sizeof(*g->entries));
    if (!g->families || !g->entries)
        return false;
    oribi_metric_store_each_metric(g->store, gather_family, g);
    oribi_metric_store_each_series(g->store, gather_series, g);
    return true;
}

static void release(struct gathered *g)
{
    oribi_mem_free(g->families);
    oribi_mem_free(g->entries);
}

/* --- pieces of text --- */

static void put(struct gathered *g, const char *text)
{
    (void)oribi_buf_try_append(g->out, text, strlen(text)); /* where memory is out the rest is missing */
}

static void put_escaped(struct gathered *g, struct oribi_slice text, bool quotes)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        const char *escaped = c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '"' && quotes ? "\\\"" : NULL;
        if (escaped)
            put(g, escaped);
        else
            (void)oribi_buf_try_append(g->out, &c, 1); /* likewise */
    }
}

static struct oribi_slice slice_of(const char *text)
{
    return oribi_slice(text, strlen(text));
}

/* The shortest of the usual lengths that reads back as the same number. A program may have set a language in which
 * numbers have a comma. */
static const char *number_text(double value, char text[NUMBER_CAP])
{
    if (isnan(value))
        return "NaN";
    if (isinf(value))
        return value > 0 ? "+Inf" : "-Inf";
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, NUMBER_CAP, "%.*g", digits, value); /* fits */
        if (strtod(text, NULL) == value)
            break;
    }
    char *comma = strchr(text, ',');
    if (comma)
        *comma = '.';
    return text;
}

/* A bucket's name: "1.0" for 1, as OpenMetrics has it. */
static const char *bound_text(double value, char text[NUMBER_CAP])
{
    const char *number = number_text(value, text);
    if (number == text && !strpbrk(text, ".e"))
        strncat(text, ".0", NUMBER_CAP - 1 - strlen(text));
    return number;
}

static const char *value_text(const struct oribi_metric_series *series, const struct entry *entry,
                              char text[NUMBER_CAP])
{
    uint64_t whole = atomic_load_explicit(&series->whole, memory_order_relaxed);
    if (whole == 0 || entry->folded != (double)whole)
        return number_text(entry->folded, text);
    (void)snprintf(text, NUMBER_CAP, "%llu", (unsigned long long)whole); /* every digit, also above 2^53 */
    return text;
}

static const char *count_text(uint64_t count, char text[NUMBER_CAP])
{
    (void)snprintf(text, NUMBER_CAP, "%llu", (unsigned long long)count); /* fits */
    return text;
}

/* --- Prometheus and OpenMetrics --- */

struct sample {
    const struct oribi_metric *metric;
    const struct oribi_metric_series *series;
    const char *suffix;
    const char *le; /* NULL: none */
};

/* The name and the labels. False: the values are not what the declaration has, and nothing was appended. */
static bool put_sample_name(struct gathered *g, const struct sample *sample)
{
    size_t begin = g->out->len;
    size_t at = 0;
    size_t len = sample->series->values_len;
    struct oribi_slice value;
    const char *open = "{";
    put(g, sample->metric->name);
    put(g, sample->suffix);
    for (uint32_t i = 0; i < sample->metric->label_count; i++, open = ",") {
        if (len > ORIBI_METRIC_VALUES_MAX || !oribi_metric_values_next(sample->series->values, len, &at, &value)) {
            g->out->len = begin;
            return false;
        }
        put(g, open);
        put(g, sample->metric->labels[i]);
        put(g, "=\"");
        put_escaped(g, value, true);
        put(g, "\"");
    }
    if (sample->le) {
        put(g, open);
        put(g, "le=\"");
        put(g, sample->le);
        put(g, "\"");
        open = ",";
    }
    put(g, *open == ',' ? "} " : " ");
    return true;
}

static void put_sample(struct gathered *g, const struct sample *sample, const char *value)
{
    if (!put_sample_name(g, sample))
        return;
    put(g, value);
    put(g, "\n");
}

/* The count is the sum of the buckets, so that both agree while processes add. */
static void put_histogram(struct gathered *g, const struct oribi_metric *metric,
                          const struct oribi_metric_series *series, const struct entry *entry)
{
    uint64_t count = 0;
    char le[NUMBER_CAP];
    char text[NUMBER_CAP];
    for (uint32_t i = 0; i <= metric->bound_count; i++) {
        count += atomic_load_explicit(&series->buckets[i], memory_order_relaxed);
        const char *bound = i < metric->bound_count ? bound_text(metric->bounds[i], le) : "+Inf";
        put_sample(g, &(struct sample){metric, series, "_bucket", bound}, count_text(count, text));
    }
    put_sample(g, &(struct sample){metric, series, "_sum", NULL}, number_text(entry->folded, text));
    put_sample(g, &(struct sample){metric, series, "_count", NULL}, count_text(count, text));
}

static const char *total_of(const struct oribi_metric *metric)
{
    return metric->kind == ORIBI_METRIC_COUNTER ? "_total" : "";
}

static void put_head(struct gathered *g, const char *what, const struct oribi_metric *metric)
{
    put(g, what);
    put(g, metric->name);
    put(g, g->open_metrics ? "" : total_of(metric));
    put(g, " ");
}

static void put_text(struct gathered *g, const struct oribi_metric *metric, uint32_t first)
{
    char text[NUMBER_CAP];
    put_head(g, "# HELP ", metric);
    put_escaped(g, slice_of(metric->help), g->open_metrics);
    put(g, "\n");
    put_head(g, "# TYPE ", metric);
    put(g, oribi_metric_kind_name(metric->kind));
    put(g, "\n");
    for (uint32_t i = first; i != NONE; i = g->entries[i].next) {
        const struct oribi_metric_series *series = &g->store->series[i];
        const struct entry *entry = &g->entries[i];
        if (metric->kind == ORIBI_METRIC_HISTOGRAM)
            put_histogram(g, metric, series, entry);
        else if (entry->is_set || metric->aggregate == ORIBI_METRIC_SUM)
            put_sample(g, &(struct sample){metric, series, total_of(metric), NULL}, value_text(series, entry, text));
    }
}

static void each_family(struct gathered *g, void (*function)(struct gathered *, const struct oribi_metric *, uint32_t))
{
    for (uint32_t i = 0; i < g->store->max; i++) {
        if (!g->families[i].shown || g->families[i].first == NONE)
            continue; /* and its page stays untouched, when no metric was ever there */
        struct oribi_metric metric = g->store->metrics[i].metric;
        if (is_sane(&metric))
            function(g, &metric, g->families[i].first);
    }
}

void oribi__app_export_text(const struct oribi_metric_store *store, uint32_t generation, bool open_metrics,
                            struct oribi_buf *out)
{
    struct gathered g = {.store = store,
                         .generation = oribi_metric_store_generation(store, generation),
                         .open_metrics = open_metrics,
                         .out = out};
    if (gather(&g))
        each_family(&g, put_text);
    release(&g);
}

/* --- JSON --- */

static void put_labels(struct gathered *g, const struct oribi_metric *metric, const struct oribi_metric_series *series)
{
    size_t at = 0;
    size_t len = series->values_len <= ORIBI_METRIC_VALUES_MAX ? series->values_len : 0;
    struct oribi_slice value;
    put(g, "{\"labels\":{");
    for (uint32_t i = 0; i < metric->label_count && oribi_metric_values_next(series->values, len, &at, &value); i++) {
        put(g, i ? "," : "");
        oribi_escape_append_json(g->out, slice_of(metric->labels[i]));
        put(g, ":");
        oribi_escape_append_json(g->out, value);
    }
    put(g, "},");
}

static const char *json_number(const char *text)
{
    return strpbrk(text, "NI") ? "null" : text; /* NaN, Inf */
}

static void put_json_histogram(struct gathered *g, const struct oribi_metric *metric,
                               const struct oribi_metric_series *series, const struct entry *entry)
{
    uint64_t count = 0;
    char text[NUMBER_CAP];
    put(g, "\"buckets\":{");
    for (uint32_t i = 0; i <= metric->bound_count; i++) {
        count += atomic_load_explicit(&series->buckets[i], memory_order_relaxed);
        put(g, i ? ",\"" : "\"");
        put(g, i < metric->bound_count ? bound_text(metric->bounds[i], text) : "+Inf");
        put(g, "\":");
        put(g, count_text(count, text));
    }
    put(g, "},\"count\":");
    put(g, count_text(count, text));
    put(g, ",\"sum\":");
    put(g, json_number(number_text(entry->folded, text)));
}

static void put_object(struct gathered *g, const struct oribi_metric *metric, uint32_t first)
{
    char text[NUMBER_CAP];
    put(g, g->any ? ",{\"name\":\"" : "{\"name\":\"");
    g->any = true;
    put(g, metric->name); /* letters, if nobody has destroyed it */
    put(g, total_of(metric));
    put(g, "\",\"kind\":\"");
    put(g, oribi_metric_kind_name(metric->kind));
    put(g, "\",\"help\":");
    oribi_escape_append_json(g->out, slice_of(metric->help));
    put(g, ",\"series\":[");
    bool any = false;
    for (uint32_t i = first; i != NONE; i = g->entries[i].next) {
        const struct oribi_metric_series *series = &g->store->series[i];
        const struct entry *entry = &g->entries[i];
        bool histogram = metric->kind == ORIBI_METRIC_HISTOGRAM;
        if (!histogram && !entry->is_set && metric->aggregate != ORIBI_METRIC_SUM)
            continue;
        put(g, any ? "," : "");
        any = true;
        put_labels(g, metric, series);
        if (histogram) {
            put_json_histogram(g, metric, series, entry);
        } else {
            put(g, "\"value\":");
            put(g, json_number(value_text(series, entry, text)));
        }
        put(g, "}");
    }
    put(g, "]}");
}

void oribi__app_export_json(const struct oribi_metric_store *store, uint32_t generation, struct oribi_buf *out)
{
    struct gathered g = {.store = store, .generation = oribi_metric_store_generation(store, generation), .out = out};
    struct oribi_metric_counts counts;
    char text[160];
    oribi_metric_store_counts(store, &counts);
    (void)snprintf(
        text, sizeof(text),
        "{\"series\":%u,\"series_max\":%u,\"series_lost\":%u,\"changes_dropped\":%llu,\"metrics\":[", /* fits */
        counts.series, store->max, counts.lost,
        (unsigned long long)(counts.dropped[ORIBI_METRIC_NO_ROOM] + counts.dropped[ORIBI_METRIC_TOO_LONG]));
    put(&g, text);
    if (gather(&g))
        each_family(&g, put_object);
    put(&g, "]}");
    release(&g);
}
