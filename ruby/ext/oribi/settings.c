/* Options, listeners and logs: the core's modules as Ruby objects, nothing more. */
#include "ext.h"

#include "oribi/base/buf.h"
#include "oribi/base/log.h"
#include "oribi/config/arguments.h"
#include "oribi/command/control_command.h"
#include "oribi/command/publish_command.h"

/* --- Oribi::Options --- */

static void options_free(void *p)
{
    oribi_options_deinit(p);
    xfree(p);
}

static size_t options_size(const void *p)
{
    return sizeof(struct oribi_options);
}

static const rb_data_type_t options_type = {
    .wrap_struct_name = "Oribi::Options",
    .function = {.dfree = options_free, .dsize = options_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

struct oribi_options *ext_options_get(VALUE self)
{
    return rb_check_typeddata(self, &options_type);
}

static VALUE options_alloc(VALUE class)
{
    struct oribi_options *options;
    VALUE self = TypedData_Make_Struct(class, struct oribi_options, &options_type, options);
    oribi_options_init(options);
    options->lang = ORIBI_LANG_RUBY;
    return self;
}

static VALUE text_or_nil(const char *text)
{
    return text ? rb_enc_interned_str_cstr(text, rb_utf8_encoding()) : Qnil;
}

static VALUE entry_hash(const struct oribi_option *option)
{
    VALUE hash = rb_hash_new();
    rb_hash_aset(hash, ID2SYM(rb_intern("name")), text_or_nil(option->name));
    rb_hash_aset(hash, ID2SYM(rb_intern("short")), text_or_nil(option->short_flag));
    rb_hash_aset(hash, ID2SYM(rb_intern("argument")), text_or_nil(option->argument));
    rb_hash_aset(hash, ID2SYM(rb_intern("help")), text_or_nil(option->help));
    rb_hash_aset(hash, ID2SYM(rb_intern("default")), text_or_nil(option->default_text));
    rb_hash_aset(hash, ID2SYM(rb_intern("note")), text_or_nil(option->default_note));
    rb_hash_aset(hash, ID2SYM(rb_intern("aliases")),
                 rb_str_split(rb_utf8_str_new_cstr(option->aliases ? option->aliases : ""), " "));
    rb_hash_aset(hash, ID2SYM(rb_intern("command")), option->group == ORIBI_GROUP_COMMAND ? Qtrue : Qfalse);
    rb_hash_aset(hash, ID2SYM(rb_intern("type")), ID2SYM(rb_intern(oribi_option_type_name(option->type))));
    return rb_obj_freeze(hash);
}

/* Every option that the Ruby commands have, in the order of the table.
 *
 * @return [Array<Hash>] with the keys :name, :short, :argument, :help, :default, :note, :aliases, :command (not for
 *   config files), :type */
static VALUE options_table(VALUE class)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    VALUE entries = rb_ary_new();
    for (size_t i = 0; i < count; i++) {
        if (table[i].lang & ORIBI_LANG_RUBY)
            rb_ary_push(entries, entry_hash(&table[i]));
    }
    return entries;
}

/* The name in the table for any spelling of an option (underscores, dashes, CamelCase, another server's name).
 *
 * @return [String, nil] */
static VALUE options_find(VALUE class, VALUE name)
{
    const struct oribi_option *option = oribi_options_find(StringValueCStr(name));
    return option && (option->lang & ORIBI_LANG_RUBY) ? text_or_nil(option->name) : Qnil;
}

/* The option here for another server's name.
 *
 * @return [Hash, nil] with the keys :server, :here (option or hook, or nil), :advice (where there is none) */
static VALUE options_find_foreign(VALUE class, VALUE name)
{
    struct oribi_option_foreign found;
    if (!oribi_options_find_foreign(StringValueCStr(name), &found))
        return Qnil;
    VALUE hash = rb_hash_new();
    rb_hash_aset(hash, ID2SYM(rb_intern("server")), text_or_nil(found.server));
    rb_hash_aset(hash, ID2SYM(rb_intern("here")), text_or_nil(found.here));
    rb_hash_aset(hash, ID2SYM(rb_intern("advice")), text_or_nil(found.advice));
    return hash;
}

static VALUE check(int result, const char *error)
{
    if (result < 0)
        rb_raise(ext_error, "%s", error);
    return Qnil;
}

static enum oribi_option_source source_of(VALUE name)
{
    Check_Type(name, T_SYMBOL);
    enum oribi_option_source source = oribi_option_source_named(rb_id2name(rb_sym2id(name)));
    if (source == ORIBI_FROM_DEFAULT)
        rb_raise(rb_eArgError, "no such source: %" PRIsVALUE, rb_inspect(name));
    return source;
}

void ext_words_take(struct ext_words *words, VALUE argv)
{
    Check_Type(argv, T_ARRAY);
    long count = RARRAY_LEN(argv);
    words->copies = rb_ary_new_capa(count); /* converting runs Ruby code, which may change the array and its strings */
    words->holder = rb_str_buf_new((long)((size_t)(count + 1) * sizeof(char *)));
    words->count = (size_t)count;
    words->texts = (const char **)RSTRING_PTR(words->holder);
    for (long i = 0; i < count; i++)
        rb_ary_push(words->copies, rb_str_new_frozen(rb_String(rb_ary_entry(argv, i))));
    for (long i = 0; i < count; i++) {
        VALUE text = rb_ary_entry(words->copies, i);
        words->texts[i] = StringValueCStr(text);
    }
    words->texts[count] = NULL;
}

/* Sets one option from texts: several for a list, one for all others, none for a switch.
 *
 * @param source [Symbol] :launcher, :environment, :file or :command; a later one of these stands, whichever is read
 *   first
 * @raise [Oribi::Error] one line: an unknown name with what is meant, a bad value with what is allowed */
static VALUE options_set_texts(VALUE self, VALUE name, VALUE values, VALUE source)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct ext_words words;
    ext_words_take(&words, values);
    int result = oribi_options_set_values(ext_options_get(self), source_of(source), StringValueCStr(name), words.texts,
                                          words.count, error);
    RB_GC_GUARD(words.holder);
    RB_GC_GUARD(words.copies);
    check(result, error);
    return self;
}

/* Does the option's word take several arguments, which #set_arguments composes into one line? */
static VALUE options_composed(VALUE class, VALUE name)
{
    const struct oribi_option *option = oribi_options_find(StringValueCStr(name));
    return option && option->composed.form ? Qtrue : Qfalse;
}

static const char *argument_text(VALUE argument, long at)
{
    VALUE text = rb_ary_entry(argument, at);
    return NIL_P(text) ? NULL : StringValueCStr(text);
}

/* Sets one option from the arguments of its word.
 *
 * @param given [Array<Array>] keyword, key, text and place of each: strings or nil, and an Integer
 * @raise [Oribi::Error] one line that names the word and the argument */
static VALUE options_set_arguments(VALUE self, VALUE name, VALUE given, VALUE source)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_argument *arguments;
    VALUE holder;
    long count = RARRAY_LEN(given);
    arguments = ALLOCV_N(struct oribi_argument, holder, count + 1);
    for (long i = 0; i < count; i++) {
        VALUE argument = rb_ary_entry(given, i);
        arguments[i] = (struct oribi_argument){argument_text(argument, 0), argument_text(argument, 1),
                                               argument_text(argument, 2), NUM2UINT(rb_ary_entry(argument, 3))};
    }
    int result = oribi_options_set_arguments(ext_options_get(self), source_of(source), StringValueCStr(name), arguments,
                                             (size_t)count, error);
    ALLOCV_END(holder);
    RB_GC_GUARD(given);
    check(result, error);
    return self;
}

/* Reads a command line.
 *
 * @param argv [Array<String>] without the command's own name
 * @raise [Oribi::Error] */
static VALUE options_parse(VALUE self, VALUE argv)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct ext_words words;
    ext_words_take(&words, argv);
    int result = oribi_options_parse(ext_options_get(self), words.count, words.texts, error);
    RB_GC_GUARD(words.holder);
    RB_GC_GUARD(words.copies);
    check(result, error);
    return self;
}

/* Reads a command line of `oribi ctl`.
 *
 * @param argv [Array<String>] what follows the word ctl
 * @return [String] the command for #control
 * @raise [Oribi::Error] */
static VALUE options_parse_control(VALUE self, VALUE argv)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    char command[ORIBI_CONTROL_COMMAND_CAP];
    struct ext_words words;
    ext_words_take(&words, argv);
    int result = oribi_control_command_parse(ext_options_get(self), words.count, words.texts, command, error);
    RB_GC_GUARD(words.holder);
    RB_GC_GUARD(words.copies);
    check(result, error);
    return rb_utf8_str_new_cstr(command);
}

/* Asks the server at the option `control` and prints what it answers. Signals end the process meanwhile only if they
 * do so without Ruby.
 *
 * @return [Integer] exit code */
static VALUE options_control(VALUE self, VALUE command)
{
    return INT2NUM(oribi_control_command_run(ext_options_get(self), StringValueCStr(command), "oribi"));
}

static void publish_words(VALUE self, VALUE argv, struct ext_words *words, struct oribi_publish_words *publish)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    ext_words_take(words, argv);
    check(oribi_publish_command_parse(ext_options_get(self), words->count, words->texts, publish, error), error);
}

/* Reads a command line of `oribi publish`, for its options.
 *
 * @param argv [Array<String>] what follows the word publish
 * @raise [Oribi::Error] */
static VALUE options_parse_publish(VALUE self, VALUE argv)
{
    struct ext_words words;
    struct oribi_publish_words publish;
    publish_words(self, argv, &words, &publish);
    RB_GC_GUARD(words.holder);
    RB_GC_GUARD(words.copies);
    return self;
}

/* Publishes what the command line says. Signals as with #control.
 *
 * @return [Integer] exit code */
static VALUE options_publish(VALUE self, VALUE argv)
{
    struct ext_words words;
    struct oribi_publish_words publish;
    publish_words(self, argv, &words, &publish);
    int code = oribi_publish_command_run(ext_options_get(self), &publish, "oribi");
    RB_GC_GUARD(words.holder);
    RB_GC_GUARD(words.copies);
    return INT2NUM(code);
}

/* The present value as text that #set accepts; list items are separated by newlines.
 *
 * @return [String, nil] nil for an unknown name */
static VALUE options_get(VALUE self, VALUE name)
{
    char text[1024];
    const struct oribi_option *option = oribi_options_find(StringValueCStr(name));
    if (!option)
        return Qnil;
    size_t len = oribi_options_get(ext_options_get(self), option, text, sizeof(text));
    if (len < sizeof(text))
        return rb_utf8_str_new(text, (long)len);
    VALUE string = rb_utf8_str_new(NULL, (long)len);
    oribi_options_get(ext_options_get(self), option, RSTRING_PTR(string), len + 1);
    return string;
}

/* @return [String, nil] the one argument of the command line that is no option */
static VALUE options_app(VALUE self)
{
    const char *app = ext_options_get(self)->app;
    return app ? rb_external_str_new_cstr(app) : Qnil;
}

static VALUE texts_of(const struct oribi_text_list *list)
{
    VALUE texts = rb_ary_new();
    for (size_t i = 0; i < list->count; i++)
        rb_ary_push(texts, rb_external_str_new_cstr(list->items[i]));
    return texts;
}

/* @return [Array<String>] directories for $LOAD_PATH */
static VALUE options_include(VALUE self)
{
    return texts_of(&ext_options_get(self)->include);
}

/* @return [Array<String>] libraries to load before the application */
static VALUE options_require(VALUE self)
{
    return texts_of(&ext_options_get(self)->require);
}

/* Changes the working directory to `chdir` where that is set and has not been entered yet.
 *
 * @raise [Oribi::Error] */
static VALUE options_enter_dir(VALUE self)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    check(oribi_options_enter_dir(ext_options_get(self), error), error);
    return self;
}

/* Fills in what depends on the machine or on other options, and checks combinations.
 *
 * @raise [Oribi::Error] */
static VALUE options_finish(VALUE self)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    check(oribi_options_finish(ext_options_get(self), error), error);
    return self;
}

/* Looks at the folders that the options name, and warns of mounts with one prefix; a start does so by itself.
 *
 * @raise [Oribi::Error] */
static VALUE options_check_files(VALUE self)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    check(oribi_options_check_files(ext_options_get(self), error), error);
    oribi_options_warn_of_files(ext_options_get(self));
    return self;
}

/* --- Oribi::Listeners --- */

static void listeners_free(void *p)
{
    oribi_listeners_close(p, false);
    xfree(p);
}

static size_t listeners_size(const void *p)
{
    return sizeof(struct oribi_listeners);
}

static const rb_data_type_t listeners_type = {
    .wrap_struct_name = "Oribi::Listeners",
    .function = {.dfree = listeners_free, .dsize = listeners_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

struct oribi_listeners *ext_listeners_get(VALUE self)
{
    return rb_check_typeddata(self, &listeners_type);
}

static VALUE listeners_alloc(VALUE class)
{
    struct oribi_listeners *listeners;
    return TypedData_Make_Struct(class, struct oribi_listeners, &listeners_type, listeners);
}

/* Opens every address of `bind`, taking over sockets that the environment hands down.
 *
 * @param options [Oribi::Options] after #finish
 * @raise [Oribi::Error] one line, such as an address in use */
static VALUE listeners_initialize(VALUE self, VALUE options)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    if (oribi_listeners_open(ext_listeners_get(self), ext_options_get(options), error) < 0)
        rb_raise(ext_error, "%s", error);
    return self;
}

/* @return [Array<String>] such as "tcp://127.0.0.1:9292", with the port that was really opened */
static VALUE listeners_addresses(VALUE self)
{
    struct oribi_listeners *listeners = ext_listeners_get(self);
    VALUE addresses = rb_ary_new();
    for (uint32_t i = 0; i < listeners->count; i++)
        rb_ary_push(addresses, rb_utf8_str_new_cstr(listeners->items[i].text));
    return addresses;
}

static VALUE listeners_close(int argc, VALUE *argv, VALUE self)
{
    VALUE unlink_paths;
    rb_scan_args(argc, argv, "01", &unlink_paths);
    oribi_listeners_close(ext_listeners_get(self), RTEST(unlink_paths));
    return Qnil;
}

/* --- Oribi::AccessLog --- */

static void access_log_free(void *p)
{
    oribi_access_log_close(p);
}

static const rb_data_type_t access_log_type = {
    .wrap_struct_name = "Oribi::AccessLog",
    .function = {.dfree = access_log_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

struct oribi_access_log *ext_access_log_get(VALUE self)
{
    return NIL_P(self) ? NULL : rb_check_typeddata(self, &access_log_type);
}

static VALUE access_log_alloc(VALUE class)
{
    return TypedData_Wrap_Struct(class, &access_log_type, NULL);
}

/* @param path [String] "-" is standard output
 * @param format [String] common, combined or json */
static VALUE access_log_initialize(VALUE self, VALUE path, VALUE format)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_access_log *log;
    if (DATA_PTR(self))
        rb_raise(ext_error, "the access log is open already");
    if (oribi_access_log_open(StringValueCStr(path), StringValueCStr(format), NULL, &log, error) < 0)
        rb_raise(ext_error, "%s", error);
    DATA_PTR(self) = log;
    return self;
}

static VALUE access_log_flush(VALUE self)
{
    oribi_access_log_flush(ext_access_log_get(self));
    return self;
}

/* --- the error log --- */

static enum oribi_log_level level_of(VALUE name)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    Check_Type(name, T_SYMBOL);
    for (int i = 0; i < 4; i++) {
        if (rb_sym2id(name) == rb_intern(names[i]))
            return (enum oribi_log_level)i;
    }
    rb_raise(rb_eArgError, "no such level: %" PRIsVALUE, rb_inspect(name));
}

/* One line in the error log.
 *
 * @param level [Symbol] :debug, :info, :warn or :error
 * @param text [String] control characters are escaped
 * @param block [String, nil] lines that follow, such as a backtrace */
static VALUE module_log(int argc, VALUE *argv, VALUE module)
{
    VALUE level, text, block;
    rb_scan_args(argc, argv, "21", &level, &text, &block);
    text = rb_str_new_frozen(rb_obj_as_string(text));
    if (NIL_P(block)) {
        oribi_log(level_of(level), "%.*s", (int)RSTRING_LEN(text), RSTRING_PTR(text));
    } else {
        StringValue(block);
        VALUE head = rb_str_export(text);
        oribi_log_block(level_of(level), StringValueCStr(head), RSTRING_PTR(block), (uint32_t)RSTRING_LEN(block));
        RB_GC_GUARD(head);
    }
    RB_GC_GUARD(text);
    RB_GC_GUARD(block);
    return Qnil;
}

void ext_settings_setup(void)
{
    VALUE options = rb_define_class_under(ext_module, "Options", rb_cObject);
    rb_define_alloc_func(options, options_alloc);
    rb_define_singleton_method(options, "table", options_table, 0);
    rb_define_singleton_method(options, "find", options_find, 1);
    rb_define_singleton_method(options, "find_foreign", options_find_foreign, 1);
    ext_texts_init(options);
    ext_check_init(options);
    rb_define_private_method(options, "set_texts", options_set_texts, 3);
    rb_define_singleton_method(options, "composed?", options_composed, 1);
    rb_define_private_method(options, "set_arguments", options_set_arguments, 3);
    rb_define_method(options, "parse", options_parse, 1);
    rb_define_method(options, "parse_control", options_parse_control, 1);
    rb_define_method(options, "control", options_control, 1);
    rb_define_method(options, "parse_publish", options_parse_publish, 1);
    rb_define_method(options, "publish", options_publish, 1);
    rb_define_method(options, "app", options_app, 0);
    rb_define_method(options, "include", options_include, 0);
    rb_define_method(options, "require", options_require, 0);
    rb_define_method(options, "[]", options_get, 1);
    rb_define_method(options, "enter_dir", options_enter_dir, 0);
    rb_define_method(options, "finish", options_finish, 0);
    rb_define_method(options, "check_files", options_check_files, 0);

    VALUE listeners = rb_define_class_under(ext_module, "Listeners", rb_cObject);
    rb_define_alloc_func(listeners, listeners_alloc);
    rb_define_method(listeners, "initialize", listeners_initialize, 1);
    rb_define_method(listeners, "addresses", listeners_addresses, 0);
    rb_define_method(listeners, "close", listeners_close, -1);

    VALUE access_log = rb_define_class_under(ext_module, "AccessLog", rb_cObject);
    rb_define_alloc_func(access_log, access_log_alloc);
    rb_define_method(access_log, "initialize", access_log_initialize, 2);
    rb_define_method(access_log, "flush", access_log_flush, 0);

    rb_define_module_function(ext_module, "log", module_log, -1);
}
