/* Oribi::Redis::Sentinel: whom to ask for the master of a service, and Link#find_master, which does. Several threads
 * may ask at once: what they learn is put into the list while they have the VM's lock. */
#include "link.h"

#include "oribi/redis/sentinel.h"

struct sentinel {
    struct oribi_redis_sentinels list;
    char service[ORIBI_REDIS_SERVICE_MAX + 1];
    VALUE user, password; /* frozen Strings, "" for none; nil before initialize */
};

static void sentinel_mark(void *p)
{
    struct sentinel *sentinel = p;
    rb_gc_mark(sentinel->user);
    rb_gc_mark(sentinel->password);
}

static size_t sentinel_size(const void *p)
{
    return sizeof(struct sentinel);
}

static const rb_data_type_t sentinel_type = {
    .wrap_struct_name = "Oribi::Redis::Sentinel",
    .function = {.dmark = sentinel_mark, .dfree = RUBY_DEFAULT_FREE, .dsize = sentinel_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED};

static VALUE sentinel_alloc(VALUE class)
{
    struct sentinel *sentinel;
    VALUE self = TypedData_Make_Struct(class, struct sentinel, &sentinel_type, sentinel);
    sentinel->user = sentinel->password = Qnil;
    return self;
}

/* nil becomes "". */
static VALUE frozen_text(VALUE value)
{
    return rb_str_new_frozen(NIL_P(value) ? rb_str_new(NULL, 0) : rb_obj_as_string(value));
}

/* Sentinel.new(addresses, service, user, password): ArgumentError for what cannot be. */
static VALUE sentinel_initialize(VALUE self, VALUE addresses, VALUE service, VALUE user, VALUE password)
{
    struct sentinel *sentinel = rb_check_typeddata(self, &sentinel_type);
    if (!RB_TYPE_P(addresses, T_ARRAY) || RARRAY_LEN(addresses) == 0 || NIL_P(service))
        rb_raise(rb_eArgError, "sentinels is an array of addresses, and service the name that they know");
    service = rb_obj_as_string(service);
    if (RSTRING_LEN(service) > ORIBI_REDIS_SERVICE_MAX)
        rb_raise(rb_eArgError, "service has %d bytes at most", ORIBI_REDIS_SERVICE_MAX);
    memcpy(sentinel->service, StringValueCStr(service), (size_t)RSTRING_LEN(service) + 1);
    for (long i = 0; i < RARRAY_LEN(addresses); i++) {
        VALUE address = rb_obj_as_string(RARRAY_AREF(addresses, i));
        struct oribi_slice text = oribi_slice(RSTRING_PTR(address), (size_t)RSTRING_LEN(address));
        const char *wrong = oribi_redis_sentinels_add(&sentinel->list, text);
        RB_GC_GUARD(address);
        if (wrong)
            rb_raise(rb_eArgError, "sentinels: %s", wrong);
    }
    RB_OBJ_WRITE(self, &sentinel->user, frozen_text(user));
    RB_OBJ_WRITE(self, &sentinel->password, frozen_text(password));
    return self;
}

static struct oribi_slice text_of(VALUE string)
{
    return NIL_P(string) ? oribi_slice("", 0) : oribi_slice(RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

/* find_master(sentinel, milliseconds): [host, port]; within so many milliseconds for each connection, and read_ms for
 * each reply. The connection is closed then. Raises by failed. */
static VALUE link_find_master(VALUE self, VALUE asked, VALUE limit_ms)
{
    struct link *link = link_of(self);
    struct sentinel *sentinel = rb_check_typeddata(asked, &sentinel_type);
    struct oribi_redis_asking asking;
    struct oribi_redis_place place, master;
    int code = ORIBI_ESYS;
    oribi_redis_place_init(&master);
    link->conn.connect_ms = NUM2LL(limit_ms);
    oribi_redis_asking_begin(&asking, &sentinel->list, oribi_slice(sentinel->service, strlen(sentinel->service)));
    while (code != 0 && oribi_redis_asking_next(&asking, &place)) {
        code = link_connect_to(link, &place);
        code = oribi_redis_asking_ask(&asking, &link->conn, code, text_of(sentinel->user), text_of(sentinel->password),
                                      &master);
        oribi_redis_conn_close(&link->conn);
    }
    RB_GC_GUARD(asked);
    if (code) {
        oribi_redis_conn_fail(&link->conn, "%s", asking.why);
        return link_fail(link, ORIBI_ESYS, true);
    }
    return rb_ary_new_from_args(2, rb_utf8_str_new_cstr(master.host), INT2FIX(master.port));
}

void sentinel_define(VALUE redis, VALUE link)
{
    VALUE class = rb_define_class_under(redis, "Sentinel", rb_cObject);
    rb_define_alloc_func(class, sentinel_alloc);
    rb_define_method(class, "initialize", sentinel_initialize, 4);
    rb_define_method(link, "find_master", link_find_master, 2);
}
