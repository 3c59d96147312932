/* Oribi::Core::Options' texts: what the command prints instead of serving. */
#include "ext.h"

#include "oribi/base/buf.h"
#include "oribi/config/options.h"
#include "oribi/command/completion.h"
#include "oribi/command/control_command.h"
#include "oribi/command/publish_command.h"

static VALUE taken_text(struct oribi_buf *buf)
{
    VALUE text = rb_utf8_str_new(buf->p, (long)buf->len);
    oribi_buf_deinit(buf);
    return text;
}

/* @param pages [String] the folder of the documents
 * @param all [Boolean] with every option
 * @return [String] the text of --help */
static VALUE options_help(VALUE class, VALUE pages, VALUE all)
{
    struct oribi_buf buf = {0};
    (RTEST(all) ? oribi_options_help_all : oribi_options_help)(&buf, ORIBI_LANG_RUBY, "oribi", StringValueCStr(pages));
    return taken_text(&buf);
}

/* @return [String] the text of `oribi ctl --help` */
static VALUE options_control_help(VALUE class)
{
    struct oribi_buf buf = {0};
    oribi_control_command_help(&buf, "oribi");
    return taken_text(&buf);
}

/* @return [String] the text of `oribi publish --help` */
static VALUE options_publish_help(VALUE class)
{
    struct oribi_buf buf = {0};
    oribi_publish_command_help(&buf, "oribi");
    return taken_text(&buf);
}

/* @param shell [String] bash, zsh or fish
 * @return [String] a script that completes the command's words
 * @raise [Oribi::Error] for another shell */
static VALUE options_completion(VALUE class, VALUE shell)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_buf buf = {0};
    if (oribi_completion(&buf, ORIBI_LANG_RUBY, "oribi", StringValueCStr(shell), error) < 0)
        rb_raise(ext_error, "%s", error);
    return taken_text(&buf);
}

/* @return [String] every option with its value, a line each */
static VALUE options_to_s(VALUE self)
{
    struct oribi_buf buf = {0};
    oribi_options_print(&buf, ext_options_get(self));
    return taken_text(&buf);
}

void ext_texts_init(VALUE options)
{
    rb_define_singleton_method(options, "help_text", options_help, 2);
    rb_define_singleton_method(options, "control_help", options_control_help, 0);
    rb_define_singleton_method(options, "publish_help", options_publish_help, 0);
    rb_define_method(options, "to_s", options_to_s, 0);
    rb_define_singleton_method(options, "completion", options_completion, 1);
}
