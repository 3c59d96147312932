/* Texts about the options for people: --help, --print-config, and doc/options.md, which must agree with the table. */
#include "config/options_text.c"

#include "tap.h"

#include <stdlib.h>

#define MARK_BEGIN "<!-- options: begin -->\n\n"
#define MARK_END   "\n<!-- options: end -->"

enum { PAGE_CAP = 1 << 20 };

static char *text_of(struct oribi_buf *buf)
{
    *oribi_buf_reserve(buf, 1) = '\0';
    return buf->p;
}

static bool has_line(const char *text, const char *line)
{
    size_t n = strlen(line);
    for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        if (strncmp(p, line, n) == 0 && (p[n] == '\n' || p[n] == '\0'))
            return true;
    }
    return false;
}

static void check_help(enum oribi_option_lang lang, const char *usage, const char *pages)
{
    struct oribi_buf buf = {0};
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    oribi_options_help_all(&buf, lang, lang == ORIBI_LANG_RUBY ? "oribi" : "oribi-psgi", "/pages");
    ok(strstr(text_of(&buf), "\n  /pages/options.md\n") != NULL);
    ok(has_line(text_of(&buf), pages));
    char *help = text_of(&buf);
    ok_named(has_line(help, usage), "%s", usage);
    for (size_t i = 0; i < count; i++) {
        char name[64] = "--";
        bool is_switch = table[i].type == ORIBI_OPTION_BOOL && table[i].group != ORIBI_GROUP_COMMAND;
        size_t len = (size_t)snprintf(name, sizeof(name), "--%s%s", is_switch ? "[no-]" : "", table[i].name);
        for (char *p = name; *p; p++)
            *p = *p == '_' ? '-' : *p;
        const char *at = strstr(help, name);
        while (at && !strchr(" \n", at[len]))
            at = strstr(at + 1, name);
        ok_named((at != NULL) == ((table[i].lang & lang) != 0), "%s", name);
    }
    size_t widest = 0;
    for (const char *p = help; *p; p += strcspn(p, "\n"), p += *p == '\n')
        widest = strcspn(p, "\n") > widest ? strcspn(p, "\n") : widest;
    ok_named(widest <= HELP_WIDTH, "no line is wider than 100 columns: %zu", widest);
    ok(strstr(help, " \n") == NULL);
    oribi_buf_deinit(&buf);
}

static void test_help_fits_a_screen(void)
{
    static const enum oribi_option_lang langs[] = {ORIBI_LANG_RUBY, ORIBI_LANG_PERL};
    for (size_t i = 0; i < 2; i++) {
        struct oribi_buf buf = {0};
        oribi_options_help(&buf, langs[i], i == 0 ? "oribi" : "oribi-psgi", "/pages");
        size_t lines = 0;
        size_t widest = 0;
        for (const char *p = text_of(&buf); *p; p += strcspn(p, "\n"), p += *p == '\n') {
            lines++;
            widest = strcspn(p, "\n") > widest ? strcspn(p, "\n") : widest;
        }
        ok_named(lines >= 24 && lines <= 40, "%zu lines", lines);
        ok_named(widest <= HELP_WIDTH, "%zu columns", widest);
        ok(has_line(text_of(&buf), "  -h, --help                    print this text; --help all: every option"));
        oribi_buf_deinit(&buf);
    }
    for (size_t i = 0; i < sizeof(frequent) / sizeof(frequent[0]); i++)
        ok_named(oribi_options_find(frequent[i].name) != NULL, "%s", frequent[i].name);
}

static void test_help_has_every_option_of_its_language(void)
{
    check_help(ORIBI_LANG_RUBY, "Usage: oribi [options] [config.ru]",
               "Manual pages: oribi(1), oribi-ctl(1), oribi.rb(5).");
    check_help(ORIBI_LANG_PERL, "Usage: oribi-psgi [options] [app.psgi]",
               "Manual pages: oribi-psgi(1), oribi-psgi-ctl(1), oribi.pl(5).");
}

static void test_print_config_shows_what_is_set(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_buf buf = {0};
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_PERL;
    ok_eq(oribi_options_set(&options, "bind", ":1", error), 0);
    ok_eq(oribi_options_set(&options, "bind", "/a b", error), 0);
    ok_eq(oribi_options_set(&options, "idle_timeout", "90s", error), 0);
    oribi_options_print(&buf, &options);
    char *text = text_of(&buf);
    ok(has_line(text, "bind = :1") && has_line(text, "bind = /a b"));
    ok(has_line(text, "idle_timeout = 90s"));
    ok(has_line(text, "preload = on"));
    ok(has_line(text, "pid_file = "));
    ok_named(strstr(text, "threads") == NULL && strstr(text, "print_config") == NULL,
             "nothing of the other language, no commands");
    oribi_buf_deinit(&buf);
    oribi_options_deinit(&options);
}

/* The page beside the core in the source tree; a packaged core has none. Runs from the top of the tree or from
 * core/. */
static char *read_page(void)
{
    static const char *const places[] = {"doc/options.md", "../doc/options.md"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        FILE *file = fopen(places[i], "r");
        if (!file)
            continue;
        char *page = calloc(1, PAGE_CAP);
        size_t n = fread(page, 1, PAGE_CAP - 1, file);
        (void)n;
        fclose(file);
        return page;
    }
    return NULL;
}

static void test_the_page_says_what_the_table_says(void)
{
    struct oribi_buf buf = {0};
    char *page = read_page();
    if (!page) {
        tap_skip(1, "no doc/options.md here");
        return;
    }
    oribi_options_doc(&buf);
    char *tables = text_of(&buf);
    char *begin = strstr(page, MARK_BEGIN);
    char *end = begin ? strstr(begin, MARK_END) : NULL;
    if (begin && end) {
        begin += strlen(MARK_BEGIN);
        *end = '\0';
    }
    if (!ok_named(begin && end && strcmp(begin, tables) == 0,
                  "doc/options.md is up to date (tools/options-doc writes it)") &&
        begin && end) {
        size_t same = 0;
        while (begin[same] && begin[same] == tables[same])
            same++;
        diag("the page differs at: %.80s", begin + same);
    }
    free(page);
    oribi_buf_deinit(&buf);
}

static void test_types_and_sources_have_names(void)
{
    is_str(oribi_option_type_name(ORIBI_OPTION_TEXT), "text");
    is_str(oribi_option_type_name(ORIBI_OPTION_RANGE), "range");
    ok_eq(oribi_option_source_named("launcher"), ORIBI_FROM_LAUNCHER);
    ok_eq(oribi_option_source_named("command"), ORIBI_FROM_COMMAND);
    ok_eq(oribi_option_source_named("somebody"), ORIBI_FROM_DEFAULT);
}

/* ORIBI_ACCESS_LOG_FORMAT= of a container, for one. */
static void test_an_empty_text_is_as_if_not_given(void)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    size_t count;
    size_t tried = 0;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++) {
        struct oribi_options options;
        if (table[i].type != ORIBI_OPTION_TEXT)
            continue;
        oribi_options_init(&options);
        char **field = (char **)((char *)&options + table[i].offset);
        ok_named((*field == NULL) == (table[i].default_text == NULL), "%s has its default", table[i].name);
        ok_named(oribi_options_set(&options, table[i].name, "", error) == 0, "%s may be empty: %s", table[i].name,
                 error);
        if (table[i].default_text)
            is_str(*field, table[i].default_text);
        else
            ok(*field == NULL);
        tried++;
        oribi_options_deinit(&options);
    }
    ok(tried > 10);
}

int main(void)
{
    test_an_empty_text_is_as_if_not_given();
    test_types_and_sources_have_names();
    test_help_fits_a_screen();
    test_help_has_every_option_of_its_language();
    test_print_config_shows_what_is_set();
    test_the_page_says_what_the_table_says();
    return done_testing();
}
