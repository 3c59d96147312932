/* Oribi::Metrics: the application's own metrics, over app_metrics.h. An object is a metric, or with `with` one of its
 * series; only a series can be changed without naming labels. Reading order: make, with, changes. */
#include "ext.h"

#include "oribi/worker/app_metrics.h"

struct ext_metric {
    struct oribi_app_series series; /* of one with labels: without their values, only the metric counts */
    bool bound;                     /* it is a series */
    VALUE labels;                   /* Array of Symbols */
};

static VALUE metrics_module;
static VALUE classes[3]; /* by enum oribi_metric_kind */
static ID id_by;
static ID id_labels;

static void metric_mark(void *p)
{
    rb_gc_mark(((struct ext_metric *)p)->labels);
}

static size_t metric_size(const void *p)
{
    return sizeof(struct ext_metric);
}

static const rb_data_type_t metric_type = {
    .wrap_struct_name = "Oribi::Metrics",
    .function = {.dmark = metric_mark, .dfree = RUBY_DEFAULT_FREE, .dsize = metric_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static struct ext_metric *get(VALUE self)
{
    return rb_check_typeddata(self, &metric_type);
}

static const struct oribi_metric *declaration(const struct ext_metric *metric)
{
    return oribi_app_metric_declaration(metric->series.metric);
}

static struct oribi_slice text(VALUE string)
{
    return oribi_slice(RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

/* --- making --- */

static VALUE wrap(VALUE class, struct oribi_app_metric *metric, VALUE labels, bool bound)
{
    struct ext_metric *new;
    VALUE self = TypedData_Make_Struct(class, struct ext_metric, &metric_type, new);
    oribi_app_series_begin(&new->series, metric);
    new->labels = labels;
    new->bound = bound;
    return self;
}

static void check(int code, const char *error)
{
    if (code < 0)
        rb_raise(rb_eArgError, "%s", error);
}

/* make(kind, name, help, [label], [bound] or nil, aggregate or nil); lib/oribi/app_metrics.rb has made the types so. */
static VALUE metrics_make(VALUE self, VALUE kind, VALUE name, VALUE help, VALUE labels, VALUE bounds, VALUE aggregate)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_metric wanted;
    struct oribi_app_metric *metric;
    help = rb_str_export_to_enc(help, rb_utf8_encoding());
    check(oribi_metric_begin(&wanted, text(kind), text(name), text(help), error), error);
    VALUE symbols = rb_ary_new();
    for (long i = 0; i < RARRAY_LEN(labels); i++) {
        VALUE label = rb_ary_entry(labels, i);
        check(oribi_metric_add_label(&wanted, text(label), error), error);
        rb_ary_push(symbols, rb_str_intern(label));
    }
    for (long i = 0; !NIL_P(bounds) && i < RARRAY_LEN(bounds); i++)
        check(oribi_metric_add_bound(&wanted, NUM2DBL(rb_ary_entry(bounds, i)), error), error);
    if (!NIL_P(aggregate))
        check(oribi_metric_set_aggregate(&wanted, text(aggregate), error), error);
    oribi_metric_end(&wanted);
    check(oribi_app_metric_declare(&wanted, &metric, error), error);
    RB_GC_GUARD(help);
    return wrap(classes[wanted.kind], metric, rb_ary_freeze(symbols), wanted.label_count == 0);
}

/* --- labels --- */

static VALUE value_of(VALUE hash, VALUE symbol)
{
    VALUE value = rb_hash_lookup2(hash, symbol, Qundef);
    if (value == Qundef)
        value = rb_hash_lookup2(hash, rb_sym2str(symbol), Qundef);
    if (value == Qundef)
        rb_raise(rb_eArgError, "the label %" PRIsVALUE " is missing", symbol);
    if (SYMBOL_P(value))
        value = rb_sym2str(value);
    return rb_str_export_to_enc(rb_obj_as_string(value), rb_utf8_encoding());
}

/* Begins the series that `hash` names. Raises for labels other than the declared ones. */
static void name_series(const struct ext_metric *metric, struct oribi_app_series *series, VALUE hash)
{
    long count = RARRAY_LEN(metric->labels);
    if (NIL_P(hash))
        rb_raise(rb_eArgError, "%s has labels: %" PRIsVALUE, declaration(metric)->name,
                 rb_ary_join(metric->labels, rb_str_new_cstr(", ")));
    Check_Type(hash, T_HASH);
    oribi_app_series_begin(series, metric->series.metric);
    for (long i = 0; i < count; i++) {
        VALUE value = value_of(hash, RARRAY_AREF(metric->labels, i));
        oribi_app_series_add(series, text(value));
        RB_GC_GUARD(value);
    }
    if ((long)RHASH_SIZE(hash) != count)
        rb_raise(rb_eArgError, "%s has no other labels than %" PRIsVALUE, declaration(metric)->name,
                 rb_ary_join(metric->labels, rb_str_new_cstr(", ")));
}

/* The series that is meant: the object's own, or the one that `labels` names, in `room`. */
static struct oribi_app_series *place(struct ext_metric *metric, VALUE labels, struct oribi_app_series *room)
{
    if (!metric->bound) {
        name_series(metric, room, labels);
        return room;
    }
    if (!NIL_P(labels) && (!RB_TYPE_P(labels, T_HASH) || RHASH_SIZE(labels) > 0))
        rb_raise(rb_eArgError, "%s: this object takes no labels", declaration(metric)->name);
    return &metric->series;
}

/* with(shop: "north"): the series with these values, which appears with the value 0. The hash may also stand for
 * itself, as in Prometheus' own client. */
static VALUE metric_with(int argc, VALUE *argv, VALUE self)
{
    struct ext_metric *metric = get(self);
    rb_check_arity(argc, 0, 1);
    VALUE hash = argc > 0 ? argv[0] : Qnil;
    if (metric->bound) {
        struct oribi_app_series unused;
        (void)place(metric, hash, &unused); /* raises where there are labels */
        return self;
    }
    VALUE other = wrap(rb_obj_class(self), metric->series.metric, metric->labels, true);
    name_series(metric, &get(other)->series, hash);
    oribi_app_series_touch(&get(other)->series);
    return other;
}

/* --- changes --- */

/* Takes by: and labels:, or labels: alone. */
static VALUE options_of(VALUE options, VALUE *by)
{
    VALUE values[2] = {Qundef, Qundef};
    ID names[2] = {id_labels, id_by};
    if (!NIL_P(options))
        rb_get_kwargs(options, names, 0, by ? 2 : 1, values);
    if (by && values[1] != Qundef)
        *by = values[1];
    return values[0] == Qundef ? Qnil : values[0];
}

static VALUE change(VALUE self, enum oribi_app_change which, VALUE value, VALUE labels)
{
    struct oribi_app_series room;
    struct ext_metric *metric = get(self);
    double number = NUM2DBL(value);
    const char *wrong = oribi_app_series_change(place(metric, labels, &room), which, number);
    if (wrong)
        rb_raise(rb_eArgError, "%s: %s", declaration(metric)->name, wrong);
    return Qnil;
}

static VALUE change_by(int argc, VALUE *argv, VALUE self, enum oribi_app_change which)
{
    VALUE options;
    VALUE by = INT2FIX(1);
    rb_scan_args(argc, argv, "0:", &options);
    VALUE labels = options_of(options, &by);
    return change(self, which, by, labels);
}

static VALUE metric_increment(int argc, VALUE *argv, VALUE self)
{
    struct ext_metric *metric = get(self);
    if (argc > 0 || !metric->bound)
        return change_by(argc, argv, self, ORIBI_APP_INCREMENT);
    (void)oribi_app_series_increment(&metric->series); /* by 1 is right for every kind that has it */
    return Qnil;
}

static VALUE metric_decrement(int argc, VALUE *argv, VALUE self)
{
    return change_by(argc, argv, self, ORIBI_APP_DECREMENT);
}

static VALUE change_to(int argc, VALUE *argv, VALUE self, enum oribi_app_change which)
{
    VALUE value;
    VALUE options;
    rb_scan_args(argc, argv, "1:", &value, &options);
    return change(self, which, value, options_of(options, NULL));
}

static VALUE metric_set(int argc, VALUE *argv, VALUE self)
{
    return change_to(argc, argv, self, ORIBI_APP_SET);
}

static VALUE metric_observe(int argc, VALUE *argv, VALUE self)
{
    return change_to(argc, argv, self, ORIBI_APP_OBSERVE);
}

/* --- reading --- */

/* Cumulated counts by upper bound, and the sum, as Prometheus' own client for Ruby gives them. */
static VALUE buckets_of(const struct ext_metric *metric, double sum, const uint64_t *buckets)
{
    uint64_t count = 0;
    VALUE hash = rb_hash_new();
    const struct oribi_metric *declared = declaration(metric);
    for (uint32_t i = 0; i <= declared->bound_count; i++) {
        count += buckets[i];
        VALUE bound =
            i < declared->bound_count ? rb_obj_as_string(DBL2NUM(declared->bounds[i])) : rb_str_new_cstr("+Inf");
        rb_hash_aset(hash, bound, DBL2NUM((double)count));
    }
    rb_hash_aset(hash, rb_str_new_cstr("sum"), DBL2NUM(sum));
    return hash;
}

/* get(labels: {}): the value, of all processes together; of a gauge with a value for each worker: this one's. */
static VALUE metric_get(int argc, VALUE *argv, VALUE self)
{
    VALUE options;
    uint64_t buckets[ORIBI_METRIC_BUCKETS_MAX + 1];
    struct oribi_app_series room;
    struct ext_metric *metric = get(self);
    rb_scan_args(argc, argv, "0:", &options);
    double value = oribi_app_series_value(place(metric, options_of(options, NULL), &room), buckets);
    return declaration(metric)->kind == ORIBI_METRIC_HISTOGRAM ? buckets_of(metric, value, buckets) : DBL2NUM(value);
}

static VALUE metric_name(VALUE self)
{
    const struct oribi_metric *declared = declaration(get(self));
    return rb_str_intern(rb_sprintf("%s%s", declared->name, declared->kind == ORIBI_METRIC_COUNTER ? "_total" : ""));
}

static VALUE metric_help(VALUE self)
{
    return rb_utf8_str_new_cstr(declaration(get(self))->help);
}

static VALUE metric_labels(VALUE self)
{
    return get(self)->labels;
}

static VALUE metric_type_of(VALUE self)
{
    return ID2SYM(rb_intern(oribi_metric_kind_name(declaration(get(self))->kind)));
}

static VALUE class_under(VALUE base, const char *name)
{
    VALUE class = rb_define_class_under(metrics_module, name, base);
    rb_undef_alloc_func(class);
    return class;
}

void ext_metrics_setup(void)
{
    id_by = rb_intern("by");
    id_labels = rb_intern("labels");
    metrics_module = rb_define_module_under(ext_module, "Metrics");
    VALUE base = class_under(rb_cObject, "Metric");
    classes[ORIBI_METRIC_COUNTER] = class_under(base, "Counter");
    classes[ORIBI_METRIC_GAUGE] = class_under(base, "Gauge");
    classes[ORIBI_METRIC_HISTOGRAM] = class_under(base, "Histogram");
    rb_define_private_method(rb_singleton_class(metrics_module), "make", metrics_make, 6);
    rb_define_method(base, "name", metric_name, 0);
    rb_define_method(base, "help", metric_help, 0);
    rb_define_method(base, "type", metric_type_of, 0);
    rb_define_method(base, "labels", metric_labels, 0);
    rb_define_method(base, "with", metric_with, -1);
    rb_define_method(base, "with_labels", metric_with, -1); /* the names of Prometheus' own client … */
    rb_define_method(base, "init_label_set", metric_with, -1);
    rb_define_method(base, "get", metric_get, -1);
    for (int kind = ORIBI_METRIC_COUNTER; kind <= ORIBI_METRIC_GAUGE; kind++)
        rb_define_method(classes[kind], "increment", metric_increment, -1);
    rb_define_method(classes[ORIBI_METRIC_GAUGE], "decrement", metric_decrement, -1);
    rb_define_method(classes[ORIBI_METRIC_GAUGE], "set", metric_set, -1);
    rb_define_method(classes[ORIBI_METRIC_HISTOGRAM], "observe", metric_observe, -1);
}
