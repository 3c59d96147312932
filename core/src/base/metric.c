/* Declarations of an application's metrics. Reading order: oribi_metric_begin and what adds to it, then the rules. */
#include "oribi/base/metric.h"

#include "oribi/base/error.h"
#include "oribi/base/escape.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[] = {"counter", "gauge", "histogram"};
static const char *const aggregate_names[] = {"last", "sum", "max", "min"};

enum { KINDS = 3, AGGREGATES = 4, SUFFIXES = 5 };

static const char *const suffixes[KINDS][SUFFIXES] = {
    [ORIBI_METRIC_COUNTER] = {"", "_total", "_created"},
    [ORIBI_METRIC_GAUGE] = {""},
    [ORIBI_METRIC_HISTOGRAM] = {"", "_bucket", "_sum", "_count", "_created"},
};

/* Buckets of Prometheus' clients for other languages, in seconds: 5 ms to 10 s. */
static const double usual_bounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

__attribute__((format(printf, 2, 3))) static int refuse(char *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error, ORIBI_ERROR_TEXT_CAP, format, args); /* cut where names are long */
    va_end(args);
    return ORIBI_EINVAL;
}

/* Room for a faulty text in an error: it may be anything, so it is cut, and shows nothing that a terminal would
 * obey. */
enum { SHOWN_CAP = 48 };

static const char *shown(struct oribi_slice text, char dst[SHOWN_CAP])
{
    size_t n = text.n < SHOWN_CAP - 1 ? text.n : SHOWN_CAP - 1;
    for (size_t i = 0; i < n; i++)
        dst[i] = text.p[i] < 0x20 || text.p[i] > 0x7e ? '?' : text.p[i];
    dst[n] = '\0';
    return dst;
}

static int find(const char *const *names, int count, struct oribi_slice word)
{
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == word.n && memcmp(names[i], word.p, word.n) == 0)
            return i;
    return -1;
}

/* --- names --- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* [a-zA-Z_][a-zA-Z0-9_]*, with colons where `colons` says so. */
static bool is_name(struct oribi_slice text, bool colons)
{
    for (size_t i = 0; i < text.n; i++) {
        bool digit = i > 0 && text.p[i] >= '0' && text.p[i] <= '9';
        if (!is_letter(text.p[i]) && !digit && !(colons && text.p[i] == ':'))
            return false;
    }
    return text.n > 0;
}

static bool begins_with(struct oribi_slice text, const char *prefix)
{
    size_t n = strlen(prefix);
    return text.n >= n && memcmp(text.p, prefix, n) == 0;
}

static bool ends_in(struct oribi_slice text, const char *end)
{
    size_t n = strlen(end);
    return text.n > n && memcmp(text.p + text.n - n, end, n) == 0;
}

/* Copies with question marks in the place of bytes that are no UTF-8, and of NUL. */
static void copy_text(char *dst, struct oribi_slice text)
{
    for (size_t i = 0; i < text.n;) {
        size_t n = oribi_utf8_len(text.p + i, text.n - i);
        bool ascii = text.p[i] && (unsigned char)text.p[i] < 0x80;
        if (n == 0)
            dst[i] = ascii ? text.p[i] : '?';
        else
            memcpy(dst + i, text.p + i, n);
        i += n ? n : 1;
    }
}

int oribi_metric_begin(struct oribi_metric *metric, struct oribi_slice kind, struct oribi_slice name,
                       struct oribi_slice help, char *error)
{
    char text[SHOWN_CAP];
    int which = find(kind_names, KINDS, kind);
    memset(metric, 0, sizeof(*metric));
    if (which < 0)
        return refuse(error, "a metric is a counter, a gauge or a histogram, not \"%s\"", shown(kind, text));
    if (!is_name(name, true))
        return refuse(error,
                      "\"%s\" is no name of a metric: letters, digits, underscores and colons, and no digit first",
                      shown(name, text));
    if (begins_with(name, "oribi_"))
        return refuse(error, "%s: names that begin with oribi_ are the server's own", shown(name, text));
    if (which == ORIBI_METRIC_COUNTER && ends_in(name, "_total"))
        name.n -= strlen("_total");
    if (name.n > ORIBI_METRIC_NAME_MAX)
        return refuse(error, "%s…: a metric's name has at most %d bytes", shown(name, text), ORIBI_METRIC_NAME_MAX);
    if (help.n == 0 || help.n > ORIBI_METRIC_HELP_MAX)
        return refuse(error, "%s: the help text has 1 to %d bytes", shown(name, text), ORIBI_METRIC_HELP_MAX);
    metric->kind = (uint16_t)which;
    memcpy(metric->name, name.p, name.n);
    copy_text(metric->help, help);
    return 0;
}

int oribi_metric_add_label(struct oribi_metric *metric, struct oribi_slice name, char *error)
{
    char text[SHOWN_CAP];
    if (!is_name(name, false))
        return refuse(error, "%s: \"%s\" is no name of a label: letters, digits and underscores, and no digit first",
                      metric->name, shown(name, text));
    if (begins_with(name, "__"))
        return refuse(error, "%s: labels that begin with __ are Prometheus' own: %s", metric->name, shown(name, text));
    if (metric->kind == ORIBI_METRIC_HISTOGRAM && oribi_slice_equal(name, ORIBI_SLICE("le")))
        return refuse(error, "%s: a histogram's buckets have the label le", metric->name);
    if (name.n > ORIBI_METRIC_LABEL_NAME_MAX)
        return refuse(error, "%s: a label's name has at most %d bytes: %s…", metric->name, ORIBI_METRIC_LABEL_NAME_MAX,
                      shown(name, text));
    for (uint32_t i = 0; i < metric->label_count; i++)
        if (strlen(metric->labels[i]) == name.n && memcmp(metric->labels[i], name.p, name.n) == 0)
            return refuse(error, "%s: the label %s is there twice", metric->name, shown(name, text));
    if (metric->label_count == ORIBI_METRIC_LABELS_MAX)
        return refuse(error, "%s: a metric has at most %d labels", metric->name, ORIBI_METRIC_LABELS_MAX);
    memcpy(metric->labels[metric->label_count++], name.p, name.n);
    return 0;
}

int oribi_metric_add_bound(struct oribi_metric *metric, double bound, char *error)
{
    if (metric->kind != ORIBI_METRIC_HISTOGRAM)
        return refuse(error, "%s: a %s has no buckets", metric->name, kind_names[metric->kind]);
    if (isinf(bound) && bound > 0)
        return 0; /* every histogram has it */
    if (!isfinite(bound))
        return refuse(error, "%s: a bucket's upper bound is a number", metric->name);
    if (metric->bound_count == ORIBI_METRIC_BUCKETS_MAX)
        return refuse(error, "%s: a histogram has at most %d buckets and +Inf", metric->name, ORIBI_METRIC_BUCKETS_MAX);
    if (metric->bound_count > 0 && bound <= metric->bounds[metric->bound_count - 1])
        return refuse(error, "%s: each bucket's upper bound is more than the one before; %g is not", metric->name,
                      bound);
    metric->bounds[metric->bound_count++] = bound == 0 ? 0 : bound; /* no -0, which differs in its bytes */
    return 0;
}

int oribi_metric_set_aggregate(struct oribi_metric *metric, struct oribi_slice word, char *error)
{
    char text[SHOWN_CAP];
    int which = find(aggregate_names, AGGREGATES, word);
    if (metric->kind != ORIBI_METRIC_GAUGE)
        return refuse(error, "%s: aggregate is a gauge's, and this is a %s", metric->name, kind_names[metric->kind]);
    if (which < 0)
        return refuse(error, "%s: aggregate takes last, sum, max or min, not \"%s\"", metric->name, shown(word, text));
    metric->aggregate = (uint16_t)which;
    return 0;
}

void oribi_metric_end(struct oribi_metric *metric)
{
    if (metric->kind != ORIBI_METRIC_HISTOGRAM || metric->bound_count > 0)
        return;
    memcpy(metric->bounds, usual_bounds, sizeof(usual_bounds));
    metric->bound_count = sizeof(usual_bounds) / sizeof(usual_bounds[0]);
}

/* --- reading --- */

bool oribi_metric_equal(const struct oribi_metric *a, const struct oribi_metric *b)
{
    return memcmp(a, b, offsetof(struct oribi_metric, help)) == 0;
}

int oribi_metric_compare(const struct oribi_metric *metric, const struct oribi_metric *other, char *error)
{
    char labels[96] = "";
    size_t n = 0;
    if (oribi_metric_equal(metric, other))
        return 0;
    for (uint32_t i = 0; i < other->label_count && n < sizeof(labels); i++)
        n += (size_t)snprintf(labels + n, sizeof(labels) - n, "%s %s", i ? "," : " with", other->labels[i]);
    const char *differs = "";
    if (strcmp(metric->name, other->name) == 0 && metric->kind == other->kind &&
        metric->label_count == other->label_count && memcmp(metric->labels, other->labels, sizeof(metric->labels)) == 0)
        differs = metric->kind == ORIBI_METRIC_HISTOGRAM ? ", with other buckets" : ", with another aggregate";
    return refuse(error, "%.80s: there is a %s %.60s%s%s already", metric->name, oribi_metric_kind_name(other->kind),
                  other->name, labels, differs);
}

bool oribi_metric_is_per_worker(const struct oribi_metric *metric)
{
    return metric->aggregate != ORIBI_METRIC_LAST;
}

const char *oribi_metric_kind_name(uint32_t kind)
{
    return kind_names[kind < KINDS ? kind : 0];
}

const char *oribi_metric_aggregate_name(uint32_t aggregate)
{
    return aggregate_names[aggregate < AGGREGATES ? aggregate : 0];
}

const char *oribi_metric_suffix(uint32_t kind, uint32_t i)
{
    return kind < KINDS && i < SUFFIXES ? suffixes[kind][i] : NULL;
}

uint32_t oribi_metric_bucket(const struct oribi_metric *metric, double value)
{
    uint32_t i = 0;
    while (i < metric->bound_count && value > metric->bounds[i])
        i++;
    return i;
}

/* --- values of labels --- */

int oribi_metric_values_add(struct oribi_metric_values *values, struct oribi_slice value)
{
    size_t room = ORIBI_METRIC_VALUES_MAX - values->len;
    if (room < 2 || value.n > room - 2)
        return ORIBI_ELIMIT;
    uint16_t n = (uint16_t)value.n;
    memcpy(values->bytes + values->len, &n, 2);
    copy_text(values->bytes + values->len + 2, value);
    values->len = (uint16_t)(values->len + 2 + n);
    values->count++;
    return 0;
}

bool oribi_metric_values_next(const char *bytes, size_t len, size_t *at, struct oribi_slice *value)
{
    uint16_t n;
    if (len < 2 || *at > len - 2)
        return false;
    memcpy(&n, bytes + *at, 2);
    if (n > len - 2 - *at)
        return false;
    *value = oribi_slice(bytes + *at + 2, n);
    *at += 2u + n;
    return true;
}
