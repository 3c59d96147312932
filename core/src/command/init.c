/* init: what is asked for, what is there, and what is done, in order. Reading order: oribi_init_run, parse, find_app,
 * make_all. */
#include "command/init_private.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static int refuse(struct oribi__init *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(run->error, ORIBI_ERROR_TEXT_CAP, format, args);
    va_end(args);
    return ORIBI_EINVAL;
}

/* --- the application that is there --- */

/* The only file of the folder whose name ends so; "" when there is none, or several. */
static void only_one(const struct oribi__init *run, const char *below, const char *end, char dst[NAME_MAX + 1])
{
    char path[PATH_MAX];
    size_t found = 0;
    dst[0] = '\0';
    if (snprintf(path, sizeof(path), "%s%s%s", run->folder, *below ? "/" : "", below) >= (int)sizeof(path))
        return;
    DIR *dir = opendir(path);
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        size_t n = strlen(entry->d_name);
        size_t m = strlen(end);
        if (entry->d_name[0] == '.' || n <= m || strcmp(entry->d_name + n - m, end) != 0)
            continue;
        found++;
        (void)snprintf(dst, NAME_MAX + 1, "%s", entry->d_name); /* no name is longer */
    }
    if (dir)
        (void)closedir(dir);
    if (found != 1)
        dst[0] = '\0';
}

static bool has_text(struct oribi__init *run, const char *path, const char *word)
{
    struct oribi_buf text = {0};
    bool found = oribi__init_read(run, path, &text) == 0 && oribi_os_memmem(text.p, text.len, word, strlen(word));
    oribi_buf_deinit(&text);
    return found;
}

static int take_app(struct oribi__init *run, const char *below, const char *name)
{
    (void)snprintf(run->app, sizeof(run->app), "%s%s", below, name); /* fits: a name, and a folder of ours */
    return 0;
}

/* Plack's own name, Dancer2's, Catalyst's (my_app.psgi), and the script of Mojolicious. */
static int find_psgi(struct oribi__init *run)
{
    char name[NAME_MAX + 1];
    if (oribi__init_has(run, "app.psgi"))
        return take_app(run, "", "app.psgi");
    if (oribi__init_has(run, "bin/app.psgi"))
        return take_app(run, "bin/", "app.psgi");
    only_one(run, "", ".psgi", name);
    if (name[0])
        return take_app(run, "", name);
    only_one(run, "script", "", name);
    if (name[0]) {
        (void)take_app(run, "script/", name);
        if (has_text(run, run->app, "Mojo"))
            return 0;
    }
    return refuse(run, "no PSGI application in %.120s: neither app.psgi, bin/app.psgi nor one other .psgi file",
                  run->folder);
}

static int find_app(struct oribi__init *run)
{
    if (run->lang == ORIBI_LANG_PERL)
        return find_psgi(run);
    if (!oribi__init_has(run, "config.ru"))
        return refuse(run, "no config.ru in %.120s: init is for the folder of a Rack application%s", run->folder,
                      oribi__init_has(run, "app.psgi") ? "; for this one: oribi init --psgi" : "");
    run->is_rails = oribi__init_has(run, "config/application.rb");
    return take_app(run, "", "config.ru");
}

/* --- lines in files --- */

/* Whether a line begins with `word`, then perhaps a bracket, then `name` in quotes: gem "oribi", requires 'Oribi'. */
static bool names_it(const char *p, size_t n, const char *word, const char *name)
{
    const char *end = p + n;
    size_t word_len = strlen(word);
    size_t name_len = strlen(name);
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if ((size_t)(end - p) < word_len || memcmp(p, word, word_len) != 0)
        return false;
    p += word_len;
    while (p < end && (*p == ' ' || *p == '\t' || *p == '('))
        p++;
    return (size_t)(end - p) >= name_len + 2 && (*p == '"' || *p == '\'') && memcmp(p + 1, name, name_len) == 0 &&
           p[name_len + 1] == *p;
}

static bool any_names_it(const struct oribi_buf *text, const char *word, const char *name)
{
    for (size_t at = 0; at < text->len;) {
        const char *end = memchr(text->p + at, '\n', text->len - at);
        size_t n = end ? (size_t)(end - text->p) - at : text->len - at;
        if (names_it(text->p + at, n, word, name))
            return true;
        at += n + 1;
    }
    return false;
}

/* True where a line says what the web process is. */
static bool has_web(const struct oribi_buf *text)
{
    for (size_t at = 0; at < text->len;) {
        const char *end = memchr(text->p + at, '\n', text->len - at);
        size_t left = text->len - at;
        if (left >= 4 && memcmp(text->p + at, "web:", 4) == 0)
            return true;
        at += end ? (size_t)(end - text->p) - at + 1 : left;
    }
    return false;
}

static bool mentions(const struct oribi_buf *text, const char *word)
{
    return text->len > 0 && oribi_os_memmem(text->p, text->len, word, strlen(word));
}

/* The file that names what the application needs. `*added`: it needs to be installed. */
static int depend(struct oribi__init *run, bool *added)
{
    bool perl = run->lang == ORIBI_LANG_PERL;
    const char *path = perl ? "cpanfile" : oribi__init_has(run, "Gemfile") ? "Gemfile" : "gems.rb";
    struct oribi_buf text = {0};
    int code = oribi__init_read(run, path, &text);
    if (code == 0 && any_names_it(&text, perl ? "requires" : "gem", perl ? "Oribi" : "oribi")) {
        oribi__init_say(run, "identical", path);
    } else if (code == 0) {
        *added = true;
        code = oribi__init_append(run, path, &text, perl ? "requires 'Oribi';" : "gem \"oribi\"");
    }
    oribi_buf_deinit(&text);
    return code == ORIBI__INIT_NONE ? 0 : code;
}

static int procfile(struct oribi__init *run)
{
    struct oribi_buf text = {0};
    struct oribi_buf line = {0};
    int code = oribi__init_read(run, "Procfile.dev", &text);
    oribi__init_web(run, &line);
    if (code == 0 && has_web(&text)) {
        oribi__init_say(run, mentions(&text, "oribi") ? "identical" : "keep", "Procfile.dev");
    } else if (code == 0) {
        oribi_buf_append(&line, "", 1);
        code = oribi__init_append(run, "Procfile.dev", &text, line.p);
    } else if (code == ORIBI__INIT_NONE) {
        oribi_buf_append(&line, "\n", 1);
        code = oribi__init_make(run, "Procfile.dev", &line, false);
    }
    oribi_buf_deinit(&text);
    oribi_buf_deinit(&line);
    return code;
}

/* --- what is told --- */

static void tell_of(struct oribi__init *run, const char *path, const char *what)
{
    oribi_buf_print(run->out, "%12s  %s: %s\n", "note", path, what);
}

static void tell_of_other_servers(struct oribi__init *run)
{
    static const char *const ruby[] = {"config/puma.rb",           "config/unicorn.rb", "config/pitchfork.rb",
                                       "config/pitchfork.conf.rb", "config/rhebok.rb",  "Passengerfile.json"};
    static const char *const perl[] = {"uwsgi.ini"};
    bool is_perl = run->lang == ORIBI_LANG_PERL;
    const char *const *paths = is_perl ? perl : ruby;
    size_t count = is_perl ? sizeof(perl) / sizeof(perl[0]) : sizeof(ruby) / sizeof(ruby[0]);
    for (size_t i = 0; i < count; i++) {
        char text[256];
        if (!oribi__init_has(run, paths[i]))
            continue;
        (void)snprintf(text, sizeof(text), "%s import %s -o config/oribi.%s --force takes its settings over",
                       run->program, paths[i], is_perl ? "pl" : "rb");
        tell_of(run, paths[i], text);
    }
}

static void tell_of_starts(struct oribi__init *run)
{
    static const char *const paths[] = {"Procfile", "Procfile.dev", "Dockerfile"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct oribi_buf text = {0};
        bool rails_server = run->is_rails;
        if (oribi__init_read(run, paths[i], &text) == 0 && !mentions(&text, "oribi") &&
            !(rails_server && mentions(&text, "rails") && mentions(&text, "server")) && text.len > 0)
            tell_of(run, paths[i], "starts another server; the line for Oribi is below");
        oribi_buf_deinit(&text);
    }
}

/* --- all --- */

static int make_all(struct oribi__init *run, bool *needs_install)
{
    bool perl = run->lang == ORIBI_LANG_PERL;
    struct oribi_buf config = {0};
    struct oribi_buf command = {0};
    oribi__init_config(run, &config);
    oribi__init_command(&command);
    int code = oribi__init_make(run, perl ? "config/oribi.pl" : "config/oribi.rb", &config, false);
    if (code == 0 && !perl && run->has_bundle)
        code = oribi__init_make(run, "bin/oribi", &command, true);
    if (code == 0)
        code = depend(run, needs_install);
    if (code == 0)
        code = procfile(run);
    oribi_buf_deinit(&config);
    oribi_buf_deinit(&command);
    return code;
}

static int parse(struct oribi__init *run, size_t argc, const char *const *argv, bool *help)
{
    for (size_t i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--psgi") == 0)
            run->lang = ORIBI_LANG_PERL;
        else if (strcmp(word, "--rack") == 0)
            run->lang = ORIBI_LANG_RUBY;
        else if (strcmp(word, "--pretend") == 0 || strcmp(word, "--dry-run") == 0)
            run->pretend = true;
        else if (strcmp(word, "--force") == 0)
            run->force = true;
        else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            *help = true;
        else if (word[0] == '-')
            return refuse(run, "init: unknown option %.80s (see --help)", word);
        else if (strcmp(run->folder, ".") != 0)
            return refuse(run, "init: one folder at a time, not %.60s and %.60s", run->folder, word);
        else
            run->folder = word;
    }
    return 0;
}

int oribi_init_run(enum oribi_option_lang lang, const char *program, size_t argc, const char *const *argv,
                   struct oribi_buf *out, char *error)
{
    struct oribi__init run = {.lang = lang, .folder = ".", .out = out, .error = error};
    bool help = false;
    bool needs_install = false;
    int code = parse(&run, argc, argv, &help);
    if (code == 0 && help) {
        oribi__init_help(out, program);
        return 0;
    }
    run.program = run.lang == ORIBI_LANG_PERL ? "oribi-psgi" : "oribi";
    if (code == 0)
        code = find_app(&run);
    if (code < 0)
        return code;
    run.has_bundle =
        run.lang == ORIBI_LANG_PERL ? oribi__init_has(&run, "cpanfile.snapshot") : oribi__init_has(&run, "Gemfile");
    code = make_all(&run, &needs_install);
    if (code < 0)
        return code;
    tell_of_other_servers(&run);
    tell_of_starts(&run);
    oribi__init_next(&run, needs_install, out);
    return 0;
}
