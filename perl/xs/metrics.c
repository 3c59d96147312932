/* Oribi::Metrics: the application's own metrics, over app_metrics.h. An object is a metric, or with `with` one of its
 * series; only a series can be changed without naming labels. */
#include "xs/binding.h"

#include "oribi/worker/app_metrics.h"

/* Arguments, copied: what turns them into text may be Perl code, which may move the stack that they stand on. */
struct arguments {
    I32 count;
    SV *at[2 * ORIBI_METRIC_LABELS_MAX];
};

struct psgi_metric {
    struct oribi_app_series series; /* of one with labels: without their values, only the metric counts */
    bool bound;                     /* it is a series */
};

/* Characters as UTF-8, bytes as they are. */
static struct oribi_slice text(pTHX_ SV *sv)
{
    STRLEN n;
    const char *p = SvPV(sv, n);
    return oribi_slice(p, n);
}

/* The text of a value, as of text(); NULL: it is undef. */
static struct oribi_slice text_or_none(pTHX_ SV *sv)
{
    STRLEN n;
    SvGETMAGIC(sv);
    if (!SvOK(sv))
        return oribi_slice(NULL, 0);
    const char *p = SvPV_nomg_const(sv, n);
    return oribi_slice(p, n);
}

static const struct oribi_metric *declaration(const struct psgi_metric *metric)
{
    return oribi_app_metric_declaration(metric->series.metric);
}

/* An object's or a tied variable's own code may free the others. */
static void keep(pTHX_ const struct arguments *arguments)
{
    bool live = false;
    for (I32 i = 0; i < arguments->count; i++)
        live = live || SvROK(arguments->at[i]) || SvGMAGICAL(arguments->at[i]);
    for (I32 i = 0; live && i < arguments->count; i++)
        sv_2mortal(SvREFCNT_inc_simple_NN(arguments->at[i]));
}

static struct arguments copied(pTHX_ SV **from, I32 count)
{
    struct arguments arguments = {.count = count};
    if (count > 2 * ORIBI_METRIC_LABELS_MAX || count % 2 != 0)
        croak("Oribi::Metrics: options come in pairs, as by => 2, labels => {...}, and labels as name => value");
    for (I32 i = 0; i < count; i++)
        arguments.at[i] = from[i];
    keep(aTHX_ & arguments);
    return arguments;
}

static SV *wrap(pTHX_ const char *class, struct oribi_app_metric *metric, bool bound, struct psgi_metric **out)
{
    struct psgi_metric *new;
    Newx(new, 1, struct psgi_metric);
    oribi_app_series_begin(&new->series, metric);
    new->bound = bound;
    *out = new;
    return sv_bless(newRV_noinc(newSViv(PTR2IV(new))), gv_stashpv(class, GV_ADD));
}

/* Also of an object that says what number it is, as Math::BigInt's do. */
static double number(pTHX_ SV *sv)
{
    SV *plain = NULL;
    SvGETMAGIC(sv);
    if (SvAMAGIC(sv))
        plain = AMG_CALLunary(sv, numer_amg);
    if (!plain || SvROK(plain))
        plain = sv;
    if (SvROK(plain) || !looks_like_number(plain))
        croak("Oribi::Metrics: this is no number: %s", SvOK(plain) ? SvPV_nomg_nolen(plain) : "undef");
    return SvNV_nomg(plain);
}

/* A mistake of the program is told with the line that made it. */
static void check(pTHX_ int code, const char *error)
{
    if (code < 0)
        croak("%s", error);
}

static AV *list(pTHX_ SV *sv, const char *what)
{
    SvGETMAGIC(sv);
    if (!SvROK(sv) || SvTYPE(SvRV(sv)) != SVt_PVAV)
        croak("%s takes a reference to an array", what);
    return (AV *)SvRV(sv);
}

SV *psgi_metric_make(pTHX_ SV *kind, SV *name, SV *help, SV *labels, SV *buckets, SV *aggregate)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_metric wanted;
    struct oribi_app_metric *metric;
    struct psgi_metric *unused;
    check(aTHX_ oribi_metric_begin(&wanted, text(aTHX_ kind), text(aTHX_ name), text(aTHX_ help), error), error);
    AV *names = SvOK(labels) ? list(aTHX_ labels, "labels") : NULL;
    for (SSize_t i = 0; names && i <= av_len(names); i++) {
        SV **label = av_fetch(names, i, 0);
        check(aTHX_ oribi_metric_add_label(&wanted, label ? text(aTHX_ * label) : oribi_slice("", 0), error), error);
    }
    AV *bounds = SvOK(buckets) ? list(aTHX_ buckets, "buckets") : NULL;
    for (SSize_t i = 0; bounds && i <= av_len(bounds); i++) {
        SV **bound = av_fetch(bounds, i, 0);
        check(aTHX_ oribi_metric_add_bound(&wanted, number(aTHX_ bound ? *bound : &PL_sv_undef), error), error);
    }
    if (SvOK(aggregate))
        check(aTHX_ oribi_metric_set_aggregate(&wanted, text(aTHX_ aggregate), error), error);
    oribi_metric_end(&wanted);
    check(aTHX_ oribi_app_metric_declare(&wanted, &metric, error), error);
    static const char *const classes[] = {"Oribi::Metrics::Counter", "Oribi::Metrics::Gauge",
                                          "Oribi::Metrics::Histogram"};
    return wrap(aTHX_ classes[wanted.kind], metric, wanted.label_count == 0, &unused);
}

static struct psgi_metric *get(pTHX_ SV *self)
{
    if (!SvROK(self) || !sv_derived_from(self, "Oribi::Metrics::Metric"))
        croak("Oribi::Metrics: this is no metric");
    struct psgi_metric *metric = INT2PTR(struct psgi_metric *, SvIV(SvRV(self)));
    if (!metric)
        croak("Oribi::Metrics: this metric was freed");
    return metric;
}

void psgi_metric_free(pTHX_ SV *self)
{
    Safefree(get(aTHX_ self));
    sv_setiv(SvRV(self), 0);
}

/* --- labels --- */

static void wrong_labels(pTHX_ const struct oribi_metric *declared)
{
    SV *names = sv_2mortal(newSVpvs(""));
    for (uint32_t i = 0; i < declared->label_count; i++)
        sv_catpvf(names, "%s%s", i ? ", " : "", declared->labels[i]);
    croak("%s: it has these labels, each with a value, and no others: %s", declared->name, SvPV_nolen(names));
}

/* Begins the series that names and values from `first` on tell. */
static void name_series(pTHX_ const struct psgi_metric *metric, struct oribi_app_series *series,
                        const struct arguments *pairs)
{
    const struct oribi_metric *declared = declaration(metric);
    oribi_app_series_begin(series, metric->series.metric);
    if (pairs->count != 2 * declared->label_count)
        wrong_labels(aTHX_ declared);
    for (uint32_t i = 0; i < declared->label_count; i++) {
        struct oribi_slice name = oribi_slice(declared->labels[i], strlen(declared->labels[i]));
        I32 at = 0;
        while (at < pairs->count && !oribi_slice_equal(text(aTHX_ pairs->at[at]), name))
            at += 2;
        struct oribi_slice value = at < pairs->count ? text_or_none(aTHX_ pairs->at[at + 1]) : oribi_slice(NULL, 0);
        if (!value.p)
            wrong_labels(aTHX_ declared);
        oribi_app_series_add(series, value);
    }
}

/* Names the series by a hash of labels; NULL: there is none. */
static void name_series_by_hash(pTHX_ const struct psgi_metric *metric, struct oribi_app_series *series, SV *labels)
{
    struct arguments pairs = {.count = 0};
    HE *entry;
    if (!labels || !SvROK(labels) || SvTYPE(SvRV(labels)) != SVt_PVHV)
        wrong_labels(aTHX_ declaration(metric));
    HV *hash = (HV *)SvRV(labels);
    hv_iterinit(hash);
    while ((entry = hv_iternext(hash))) {
        if (pairs.count == 2 * ORIBI_METRIC_LABELS_MAX)
            wrong_labels(aTHX_ declaration(metric));
        pairs.at[pairs.count++] = hv_iterkeysv(entry);
        pairs.at[pairs.count++] = hv_iterval(hash, entry);
    }
    keep(aTHX_ & pairs);
    name_series(aTHX_ metric, series, &pairs);
}

/* The series that is meant: the object's own, or the one that `labels` names, in `room`. */
static struct oribi_app_series *place(pTHX_ struct psgi_metric *metric, SV *labels, struct oribi_app_series *room)
{
    if (!metric->bound) {
        name_series_by_hash(aTHX_ metric, room, labels);
        return room;
    }
    if (labels)
        croak("%s: this object takes no labels", declaration(metric)->name);
    return &metric->series;
}

SV *psgi_metric_with(pTHX_ SV *self, SV **pairs, I32 count)
{
    struct psgi_metric *metric = get(aTHX_ self);
    struct psgi_metric *other;
    struct oribi_app_series series;
    const struct arguments arguments = copied(aTHX_ pairs, count);
    if (metric->bound && count == 0)
        return SvREFCNT_inc(self);
    if (metric->bound)
        croak("%s: this object takes no labels", declaration(metric)->name);
    name_series(aTHX_ metric, &series, &arguments);
    oribi_app_series_touch(&series);
    SV *object = wrap(aTHX_ sv_reftype(SvRV(self), 1), series.metric, true, &other);
    other->series = series;
    return object;
}

/* --- changes --- */

/* Takes by => N where `by` is there, and labels => {}. */
static SV *options_of(pTHX_ SV **from, I32 count, SV **by)
{
    SV *labels = NULL;
    const struct arguments options = copied(aTHX_ from, count);
    for (I32 i = 0; i < count; i += 2) {
        if (oribi_slice_equal(text(aTHX_ options.at[i]), ORIBI_SLICE("labels")))
            labels = options.at[i + 1];
        else if (by && oribi_slice_equal(text(aTHX_ options.at[i]), ORIBI_SLICE("by")))
            *by = options.at[i + 1];
        else
            croak("Oribi::Metrics: no option is called %s", SvPV_nolen(options.at[i]));
    }
    return labels;
}

void psgi_metric_change(pTHX_ SV *self, int change, SV *value, SV **options, I32 count)
{
    struct oribi_app_series room;
    struct psgi_metric *metric = get(aTHX_ self);
    SV *labels = options_of(aTHX_ options, count, value ? NULL : &value);
    double by = value ? number(aTHX_ value) : 1;
    struct oribi_app_series *series = place(aTHX_ metric, labels, &room);
    const char *wrong = oribi_app_series_change(series, (enum oribi_app_change)change, by);
    if (wrong)
        croak("%s: %s", declaration(metric)->name, wrong);
}

void psgi_metric_increment(pTHX_ SV *self, SV **options, I32 count)
{
    struct psgi_metric *metric = get(aTHX_ self);
    const char *wrong = NULL;
    if (count > 0 || !metric->bound)
        psgi_metric_change(aTHX_ self, ORIBI_APP_INCREMENT, NULL, options, count);
    else
        wrong = oribi_app_series_increment(&metric->series);
    if (wrong)
        croak("%s: %s", declaration(metric)->name, wrong);
}

/* --- reading --- */

SV *psgi_metric_get(pTHX_ SV *self, SV **options, I32 count)
{
    uint64_t buckets[ORIBI_METRIC_BUCKETS_MAX + 1];
    struct oribi_app_series room;
    struct psgi_metric *metric = get(aTHX_ self);
    const struct oribi_metric *declared = declaration(metric);
    SV *labels = options_of(aTHX_ options, count, NULL);
    double value = oribi_app_series_value(place(aTHX_ metric, labels, &room), buckets);
    if (declared->kind != ORIBI_METRIC_HISTOGRAM)
        return newSVnv(value);
    UV sum = 0;
    HV *hash = newHV();
    for (uint32_t i = 0; i <= declared->bound_count; i++) {
        SV *bound = i < declared->bound_count ? newSVnv(declared->bounds[i]) : newSVpvs("+Inf");
        sum += (UV)buckets[i];
        (void)hv_store_ent(hash, sv_2mortal(bound), newSVuv(sum), 0);
    }
    (void)hv_stores(hash, "sum", newSVnv(value));
    return newRV_noinc((SV *)hash);
}

SV *psgi_metric_about(pTHX_ SV *self, int what)
{
    const struct oribi_metric *declared = declaration(get(aTHX_ self));
    AV *labels;
    switch (what) {
    case PSGI_METRIC_NAME:
        return newSVpvf("%s%s", declared->name, declared->kind == ORIBI_METRIC_COUNTER ? "_total" : "");
    case PSGI_METRIC_HELP:
        return newSVpvn_utf8(declared->help, strlen(declared->help), 1);
    case PSGI_METRIC_TYPE:
        return newSVpv(oribi_metric_kind_name(declared->kind), 0);
    default:
        labels = newAV();
        for (uint32_t i = 0; i < declared->label_count; i++)
            av_push(labels, newSVpv(declared->labels[i], 0));
        return newRV_noinc((SV *)labels);
    }
}
