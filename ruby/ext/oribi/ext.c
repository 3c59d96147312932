/* Loads the extension. lib/oribi.rb has defined what is written in Ruby and needed here: the error classes,
 * EmptyInput and Stream. */
#include "ext.h"

VALUE ext_module;
VALUE ext_error;
VALUE ext_disconnected;

static VALUE ruby_constant(const char *name)
{
    VALUE value = rb_const_get(ext_module, rb_intern(name));
    rb_gc_register_mark_object(value);
    return value;
}

void Init_oribi(void);

RUBY_FUNC_EXPORTED void Init_oribi(void)
{
    ext_module = rb_define_module("Oribi");
    rb_gc_register_mark_object(ext_module);
    ext_error = ruby_constant("Error");
    ext_disconnected = ruby_constant("DisconnectError");
    ext_fork_setup(); /* before any other fork handler is registered */
    ext_headers_setup();
    ext_env_setup();
    ext_input_setup();
    ext_reply_setup();
    ext_stream_setup();
    ext_websocket_setup();
    ext_events_setup();
    ext_deadline_setup();
    ext_settings_setup();
    ext_worker_setup();
    ext_call_setup();
    ext_threads_setup();
    ext_process_setup();
    ext_multipart_setup();
    ext_metrics_setup();
    ext_publish_setup();
    ext_form_setup();
    ext_http_parser_setup();
    ext_for_rack_setup();
    ext_failure_setup();
}
