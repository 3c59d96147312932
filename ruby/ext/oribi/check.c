/* `oribi check`: the core's list of findings as arrays of strings; and `oribi init`. */
#include "ext.h"

#include "oribi/base/buf.h"
#include "oribi/command/check.h"
#include "oribi/command/init.h"

enum { FINDING_WORDS = 5 }; /* level, id, what, why, what to do */

/* Reads a command line of `oribi check`.
 *
 * @param argv [Array<String>] what follows the word check
 * @return [Array<Boolean>] json, strict
 * @raise [Oribi::Error] */
static VALUE options_parse_check(VALUE self, VALUE argv)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_check_asked asked;
    struct ext_words words;
    ext_words_take(&words, argv);
    int code = oribi_check_parse(ext_options_get(self), words.count, words.texts, &asked, error);
    RB_GC_GUARD(words.holder);
    RB_GC_GUARD(words.copies);
    if (code < 0)
        rb_raise(ext_error, "%s", error);
    return rb_ary_new_from_args(2, asked.json ? Qtrue : Qfalse, asked.strict ? Qtrue : Qfalse);
}

static VALUE findings_of(const struct oribi_check *check)
{
    VALUE findings = rb_ary_new();
    for (size_t i = 0; i < check->count; i++) {
        const struct oribi_finding *finding = &check->findings[i];
        const char *words[FINDING_WORDS] = {oribi_check_level_name(finding->level), finding->id, finding->what,
                                            finding->why, finding->todo};
        for (int j = 0; j < FINDING_WORDS; j++)
            rb_ary_push(findings, rb_utf8_str_new_cstr(words[j]));
    }
    return findings;
}

/* Findings about the machine and the settings, after #finish.
 *
 * @return [Array<String>] five for each finding: "wrong" or "risk", id, what, why, what to do */
static VALUE options_check_machine(VALUE self)
{
    struct oribi_check *check = oribi_check_create();
    oribi_check_machine(check, ext_options_get(self));
    VALUE findings = findings_of(check);
    oribi_check_destroy(check);
    return findings;
}

/* For --check: certificates of tls:// addresses.
 *
 * @return [String] lines of advice
 * @raise [Oribi::Error] */
static VALUE options_check_certificates(VALUE self)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_buf advice = {0};
    int code = oribi_check_certificates(ext_options_get(self), &advice, error);
    VALUE text = rb_utf8_str_new(advice.p, (long)advice.len);
    oribi_buf_deinit(&advice);
    if (code < 0)
        rb_raise(ext_error, "%s", error);
    return text;
}

/* @param findings [Array<String>] as #check_machine gives them
 * @param versions [Array<String>] name, version, name, version
 * @return [Array] the report, and the exit code */
static VALUE options_check_report(VALUE class, VALUE findings, VALUE versions, VALUE json, VALUE strict)
{
    struct ext_words found;
    struct ext_words named;
    struct oribi_buf out = {0};
    const struct oribi_check_asked asked = {RTEST(json), RTEST(strict)};
    ext_words_take(&found, findings);
    ext_words_take(&named, versions);
    struct oribi_check *check = oribi_check_create();
    for (size_t i = 0; i + FINDING_WORDS <= found.count; i += FINDING_WORDS)
        oribi_check_add(check, oribi_check_level_named(found.texts[i]), found.texts[i + 1], found.texts[i + 2],
                        found.texts[i + 3], found.texts[i + 4]);
    /* pairs of pointers, as they lie there */
    int code = oribi_check_report(check, &out, asked, "oribi", (const struct oribi_check_version *)named.texts,
                                  named.count / 2);
    oribi_check_destroy(check);
    VALUE text = rb_utf8_str_new(out.p, (long)out.len);
    oribi_buf_deinit(&out);
    RB_GC_GUARD(found.holder);
    RB_GC_GUARD(found.copies);
    RB_GC_GUARD(named.holder);
    RB_GC_GUARD(named.copies);
    return rb_ary_new_from_args(2, text, INT2NUM(code));
}

/* @return [String] the text of `oribi check --help` */
static VALUE options_check_help(VALUE class)
{
    struct oribi_buf out = {0};
    oribi_check_help(&out, "oribi");
    VALUE text = rb_utf8_str_new(out.p, (long)out.len);
    oribi_buf_deinit(&out);
    return text;
}

/* Does what `oribi init` is asked for.
 *
 * @param argv [Array<String>] what follows the word init
 * @return [Array] what is to be printed, and nil or what went wrong */
static VALUE options_init_files(VALUE class, VALUE argv)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_buf out = {0};
    struct ext_words words;
    ext_words_take(&words, argv);
    int code = oribi_init_run(ORIBI_LANG_RUBY, "oribi", words.count, words.texts, &out, error);
    RB_GC_GUARD(words.holder);
    RB_GC_GUARD(words.copies);
    VALUE text = rb_utf8_str_new(out.p, (long)out.len);
    oribi_buf_deinit(&out);
    return rb_ary_new_from_args(2, text, code < 0 ? rb_utf8_str_new_cstr(error) : Qnil);
}

void ext_check_init(VALUE options)
{
    rb_define_method(options, "parse_check", options_parse_check, 1);
    rb_define_method(options, "check_machine", options_check_machine, 0);
    rb_define_method(options, "check_certificates", options_check_certificates, 0);
    rb_define_singleton_method(options, "check_report", options_check_report, 4);
    rb_define_singleton_method(options, "check_help", options_check_help, 0);
    rb_define_singleton_method(options, "init_files", options_init_files, 1);
}
