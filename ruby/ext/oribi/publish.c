/* Oribi.publish: what lib/oribi/publish.rb asks of the core; and the words of `oribi publish`. */
#include "ext.h"

#include "oribi/supervisor/publish.h"

#include <ruby/thread.h>

struct publishing {
    struct oribi_publication publication;
    int code;
    char error[ORIBI_ERROR_TEXT_CAP];
};

static void *publish(void *argument)
{
    struct publishing *publishing = argument;
    publishing->code = oribi_publish(NULL, &publishing->publication, publishing->error);
    return NULL;
}

/* publish_bytes(channel, event or nil, data, binary); all are Strings that nobody changes. */
static VALUE publish_bytes(VALUE self, VALUE channel, VALUE event, VALUE data, VALUE binary)
{
    struct publishing publishing = {.publication = {.binary = RTEST(binary)}};
    channel = rb_str_new_frozen(StringValue(channel));
    event = NIL_P(event) ? Qnil : rb_str_new_frozen(StringValue(event));
    data = rb_str_new_frozen(StringValue(data));
    publishing.publication.channel = ext_text(channel);
    publishing.publication.event = ext_text(event);
    publishing.publication.data = ext_text(data);
    rb_nogvl(publish, &publishing, RUBY_UBF_IO, NULL, RB_NOGVL_UBF_ASYNC_SAFE);
    RB_GC_GUARD(channel);
    RB_GC_GUARD(event);
    RB_GC_GUARD(data);
    if (publishing.code < 0)
        rb_raise(ext_error, "publish: %s", publishing.error);
    return Qnil;
}

void ext_publish_setup(void)
{
    VALUE oribi = rb_singleton_class(ext_module);
    rb_define_private_method(oribi, "publish_bytes", publish_bytes, 4);
}
