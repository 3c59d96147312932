/* Event streams: env["oribi.events"] of a GET that accepts text/event-stream. What an application sees is
 * lib/oribi/events.rb; here is what that asks of the core. */
#include "ext.h"

#include "oribi/http/event_stream.h"
#include "oribi/worker/events.h"

static VALUE events_class;
static VALUE key_events;
static ID id_last;
static ID id_tie;

void ext_events_offer(struct ext_call *call)
{
    struct oribi_slice last = oribi_events_last_id(call->req);
    VALUE events = rb_obj_alloc(events_class);
    rb_ivar_set(events, id_tie, call->tie);
    rb_ivar_set(events, id_last, last.n ? rb_utf8_str_new(last.p, (long)last.n) : Qnil);
    rb_hash_aset(call->env, key_events, events);
}

/* channels: an Array of Strings; retry: milliseconds or nil; since: a String or nil. */
static VALUE stream_as(VALUE self, VALUE channels, VALUE retry, VALUE since)
{
    struct oribi_slice names[ORIBI_EVENT_CHANNELS_MAX];
    char error[ORIBI_ERROR_TEXT_CAP];
    int64_t retry_ms = NIL_P(retry) ? -1 : NUM2LL(retry);
    struct ext_call *call = ext_tied_call(rb_ivar_get(self, id_tie));
    if (!call || !call->req)
        rb_raise(ext_error, "the call has ended: no event stream can begin outside of it");
    Check_Type(channels, T_ARRAY);
    long count = RARRAY_LEN(channels);
    for (long i = 0; i < count && i < ORIBI_EVENT_CHANNELS_MAX; i++)
        names[i] = ext_text(RARRAY_AREF(channels, i));
    const struct oribi_events_wish wish = {
        .channels = names,
        .channel_count = (uint32_t)count,
        .retry_ms = retry_ms < 0 && !NIL_P(retry) ? -2 : retry_ms,
        .since = ext_text(since),
    };
    int code = oribi_events_stream(call->req, &wish, error);
    RB_GC_GUARD(channels);
    RB_GC_GUARD(since);
    if (code == ORIBI_EINVAL)
        rb_raise(ext_error, "%s", error);
    if (code < 0)
        rb_memerror();
    return Qnil;
}

void ext_events_setup(void)
{
    key_events = rb_enc_interned_str_cstr("oribi.events", rb_utf8_encoding());
    rb_gc_register_mark_object(key_events);
    id_last = rb_intern("@last_event_id");
    id_tie = rb_intern("@tie");
    events_class = rb_define_class_under(ext_module, "Events", rb_cObject);
    rb_gc_register_mark_object(events_class);
    rb_define_private_method(events_class, "stream_as", stream_as, 3);
}
