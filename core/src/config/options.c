/* Options by name: finding what a name in any spelling means, setting it by the rank of its source, and the names
 * of other servers that need more than renaming.
 *
 *   name ──resolve──► option ───────────────► assign (options_value.c) ──► field
 *                └──► alias ──its function──► assign, for one or several options
 */
#include "config/options_private.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os_process.h"
#include "oribi/config/options_names.h"
#include "oribi/base/mem.h"
#include "oribi/files/fixed.h"
#include "oribi/http/response.h"
#include "oribi/http/scan.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int apply_unix_path(struct oribi_options *, enum oribi_option_source, const char *, const char *, char *);
static int apply_io_timeout(struct oribi_options *, enum oribi_option_source, const char *, const char *, char *);
static int apply_requests_min(struct oribi_options *, enum oribi_option_source, const char *, const char *, char *);
static int apply_gc_min(struct oribi_options *, enum oribi_option_source, const char *, const char *, char *);
static int apply_keepalive(struct oribi_options *, enum oribi_option_source, const char *, const char *, char *);
static int apply_ignored_switch(struct oribi_options *, enum oribi_option_source, const char *, const char *, char *);
static int apply_ignored_count(struct oribi_options *, enum oribi_option_source, const char *, const char *, char *);

static const struct oribi_option_alias aliases[] = {
    {"path", "listens on this unix socket, as `bind unix://PATH`", ORIBI_LANG_RUBY, false, apply_unix_path},
    {"socket", "listens on this unix socket, as `bind unix://PATH`", ORIBI_LANG_BOTH, false, apply_unix_path},
    {"socket_path", "listens on this unix socket, as `bind unix://PATH`", ORIBI_LANG_BOTH, false, apply_unix_path},
    {"S", "listens on this unix socket, as `bind unix://PATH`", ORIBI_LANG_PERL, false, apply_unix_path},
    {"timeout",
     "sets `head_timeout`, `body_timeout` and `write_timeout`: time to wait for the client, not for the application",
     ORIBI_LANG_BOTH, false, apply_io_timeout},
    {"min_request_per_child", "lower end of `requests_max`: each worker draws its number from there to `requests_max`",
     ORIBI_LANG_BOTH, false, apply_requests_min},
    {"min_reqs_per_child", "lower end of `requests_max`: each worker draws its number from there to `requests_max`",
     ORIBI_LANG_BOTH, false, apply_requests_min},
    {"min_gc_per_request",
     "lower end of `oob_gc_requests`: each worker draws its number from there to `oob_gc_requests`", ORIBI_LANG_BOTH,
     false, apply_gc_min},
    {"keepalive", "off sets `keepalive_requests_max` to 1; on changes nothing, keep-alive is the default",
     ORIBI_LANG_BOTH, true, apply_keepalive},
    {"chunked_transfer",
     "accepted without effect: answers of unknown length are chunked where the client knows HTTP/1.1", ORIBI_LANG_BOTH,
     true, apply_ignored_switch},
    {"max_readahead_reqs", "accepted without effect: a connection always gives way to the others after one request",
     ORIBI_LANG_BOTH, false, apply_ignored_count},
    {"min_readahead_reqs", "accepted without effect: a connection always gives way to the others after one request",
     ORIBI_LANG_BOTH, false, apply_ignored_count},
};

enum { ALIAS_COUNT = sizeof(aliases) / sizeof(aliases[0]) };

const struct oribi_option_alias *oribi_options_aliases(size_t *count)
{
    *count = ALIAS_COUNT;
    return aliases;
}

/* Names */

/* Lower case without dashes and underscores: head_timeout, head-timeout and HeadTimeout are one name. False when it
 * is too long for any. */
static bool squeeze(const char *name, size_t n, char dst[ORIBI__OPTION_NAME_CAP])
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        if (c == '-' || c == '_')
            continue;
        if (len == ORIBI__OPTION_NAME_CAP - 1)
            return false;
        dst[len++] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
    }
    dst[len] = '\0';
    return len > 0;
}

/* Is the squeezed `name` the word [word, word+n)? Single letters are flags: there the case counts. */
static bool is_name(const char *name, const char *typed, const char *word, size_t n)
{
    char squeezed[ORIBI__OPTION_NAME_CAP];
    if (n == 1 || !typed[1])
        return n == 1 && !typed[1] && typed[0] == word[0];
    return squeeze(word, n, squeezed) && strcmp(name, squeezed) == 0;
}

bool oribi__options_same_name(const char *name, const char *typed)
{
    char squeezed[ORIBI__OPTION_NAME_CAP];
    while (*typed == '-')
        typed++;
    return squeeze(typed, strlen(typed), squeezed) && is_name(squeezed, typed, name, strlen(name));
}

static bool has_name(const struct oribi_option *option, const char *name, const char *typed)
{
    if (is_name(name, typed, option->name, strlen(option->name)))
        return true;
    if (option->short_flag && is_name(name, typed, option->short_flag, 1))
        return true;
    for (const char *p = option->aliases; p && *p;) {
        size_t n = strcspn(p, " ");
        if (is_name(name, typed, p, n))
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

static struct oribi__option_name resolve_exact(const char *name, const char *typed)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++) {
        if (has_name(&table[i], name, typed))
            return (struct oribi__option_name){.option = &table[i], .takes_value = table[i].type != ORIBI_OPTION_BOOL};
    }
    for (size_t i = 0; i < ALIAS_COUNT; i++) {
        if (is_name(name, typed, aliases[i].name, strlen(aliases[i].name)))
            return (struct oribi__option_name){.alias = &aliases[i], .takes_value = !aliases[i].is_switch};
    }
    return (struct oribi__option_name){0};
}

static bool is_known(const struct oribi__option_name *found)
{
    return found->option || found->alias;
}

struct oribi__option_name oribi__options_resolve(const char *name)
{
    static const char *const prefixes[] = {"no", "disable", "enable"};
    char squeezed[ORIBI__OPTION_NAME_CAP];
    while (*name == '-')
        name++;
    if (!squeeze(name, strlen(name), squeezed))
        return (struct oribi__option_name){0};
    struct oribi__option_name found = resolve_exact(squeezed, name);
    for (size_t i = 0; !is_known(&found) && i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t n = strlen(prefixes[i]);
        if (strncmp(squeezed, prefixes[i], n) != 0 || strlen(squeezed) < n + 2)
            continue;
        struct oribi__option_name rest = resolve_exact(squeezed + n, squeezed + n);
        if (!is_known(&rest) || rest.takes_value)
            continue;
        rest.negated = i < 2;
        found = rest;
    }
    return found;
}

const struct oribi_option *oribi_options_find(const char *name)
{
    struct oribi__option_name found = oribi__options_resolve(name);
    return found.negated ? NULL : found.option;
}

/* The nearest word among [words], which are separated by blanks, if it is nearer than `best`. */
static void consider(const char *words, const char *name, char nearest[ORIBI__OPTION_NAME_CAP], uint32_t *best)
{
    for (const char *p = words; p && *p;) {
        char word[ORIBI__OPTION_NAME_CAP];
        size_t n = strcspn(p, " ");
        if (n > 1 && squeeze(p, n, word)) {
            uint32_t distance = oribi_suggest_distance(name, word);
            if (distance < *best) {
                *best = distance;
                memcpy(nearest, p, n);
                nearest[n] = '\0';
            }
        }
        p += n + (p[n] == ' ');
    }
}

/* The name of an option, an alias or a hook that `name` was probably meant for. */
static bool find_nearest(enum oribi_option_lang lang, const char *name, char nearest[ORIBI__OPTION_NAME_CAP])
{
    char squeezed[ORIBI__OPTION_NAME_CAP];
    uint32_t best = UINT32_MAX;
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    if (!squeeze(name, strlen(name), squeezed))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!(table[i].lang & lang))
            continue;
        consider(table[i].name, squeezed, nearest, &best);
        consider(table[i].aliases, squeezed, nearest, &best);
    }
    for (size_t i = 0; i < ALIAS_COUNT; i++)
        consider(aliases[i].name, squeezed, nearest, &best);
    if (name[0] != '-')
        consider(oribi__options_hook_names(), squeezed, nearest, &best);
    return best != UINT32_MAX && oribi_suggest_likely(squeezed, best);
}

bool oribi__options_resembles(enum oribi_option_lang lang, const char *name)
{
    char nearest[ORIBI__OPTION_NAME_CAP] = "";
    char error[ORIBI_ERROR_TEXT_CAP];
    return oribi__options_refuse_foreign(name, error) < 0 || find_nearest(lang, name, nearest);
}

int oribi__options_unknown(enum oribi_option_lang lang, const char *name, char *error)
{
    char nearest[ORIBI__OPTION_NAME_CAP] = "";
    bool as_flag = name[0] == '-';
    int code = oribi__options_refuse_foreign(name, error);
    if (code < 0)
        return code;
    if (!find_nearest(lang, name, nearest))
        return oribi__refuse(error, "unknown option %.60s: see --help all", name);
    for (char *p = nearest; as_flag && *p; p++)
        *p = *p == '_' ? '-' : *p;
    return oribi__refuse(error, "unknown option %.60s: did you mean %s%s?", name, as_flag ? "--" : "", nearest);
}

/* Setting */

static size_t place_of(const struct oribi_option *option)
{
    size_t count;
    return (size_t)(option - oribi_options_table(&count));
}

enum oribi_option_source oribi_options_source(const struct oribi_options *options, const struct oribi_option *option)
{
    return options->source[place_of(option)];
}

/* A letter of the other command may be another server's letter here. */
static int refuse_language(enum oribi_option_lang lang, const char *name, char *error)
{
    int code = oribi__options_refuse_foreign(name, error);
    return code < 0 ? code
                    : oribi__refuse(error, "%s is an option of %s only", name,
                                    lang == ORIBI_LANG_RUBY ? "oribi" : "oribi-psgi");
}

uint8_t *oribi__option_source(struct oribi_options *options, const struct oribi_option *option)
{
    return &options->source[place_of(option)];
}

int oribi__option_set(struct oribi_options *options, enum oribi_option_source source, const struct oribi_option *option,
                      const char *name, const char *value, char *error)
{
    uint8_t *held = oribi__option_source(options, option);
    if (!(option->lang & options->lang))
        return refuse_language(option->lang, name, error);
    if (source == ORIBI_FROM_FILE && option->group == ORIBI_GROUP_COMMAND)
        return oribi__refuse(error, "%s belongs on the command line, not in the configuration file", name);
    if (source < *held)
        return oribi__option_check(option, name, value, error);
    if (source > *held) {
        int code = oribi__option_check(option, name, value, error); /* before the old value goes */
        if (code < 0)
            return code;
        if (option->type == ORIBI_OPTION_LIST)
            oribi__option_clear(options, option);
    }
    int code = oribi__option_assign(options, option, name, value, error);
    if (code == 0)
        *held = (uint8_t)source;
    return code;
}

/* "off" for "on" and so on; anything else stays for the parser to refuse. */
static const char *negate(const char *value)
{
    static const struct oribi_option any_switch = {.type = ORIBI_OPTION_BOOL};
    static const char *const on[] = {"on", "true", "yes", "1"};
    char ignored[ORIBI_ERROR_TEXT_CAP];
    if (oribi__option_check(&any_switch, "", value, ignored) < 0)
        return value;
    for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++) {
        if (strcasecmp(value, on[i]) == 0)
            return "off";
    }
    return "on";
}

/* plackup and rackup hand on the flags that they do not know. A file is written for this server. */
static int meet_unknown(struct oribi_options *options, enum oribi_option_source source, const char *name, char *error)
{
    bool takes_value;
    if (source != ORIBI_FROM_FILE && oribi__options_ignore(options, name, &takes_value))
        return 0;
    return oribi__options_unknown(options->lang, name, error);
}

int oribi_options_set_from(struct oribi_options *options, enum oribi_option_source source, const char *name,
                           const char *value, char *error)
{
    struct oribi__option_name found = oribi__options_resolve(name);
    if (!is_known(&found))
        return meet_unknown(options, source, name, error);
    if (found.negated)
        value = negate(value);
    if (!found.option && !(found.alias->lang & options->lang))
        return refuse_language(found.alias->lang, name, error);
    if (!found.option)
        return found.alias->apply(options, source, name, value, error);
    if (found.option->offset == offsetof(struct oribi_options, port) && strchr(value, '/'))
        return apply_unix_path(options, source, name, value,
                               error); /* one of the servers we succeed takes a path there */
    return oribi__option_set(options, source, found.option, name, value, error);
}

/* Second values that other servers' configuration files have, by the option that they stand in. */
static int refuse_several(const struct oribi_option *option, const char *name, const char *const *values, size_t count,
                          char *error)
{
    if (count == 2 && option && option->offset == offsetof(struct oribi_options, user))
        return oribi__refuse(error, "%s takes one value, not 2: the group has an option of its own, group \"%.60s\"",
                             name, values[1]);
    if (count == 2 && option && option->offset == offsetof(struct oribi_options, port))
        return oribi__refuse(error, "%s takes one value, not 2: the host has an option of its own, host \"%.60s\"",
                             name, values[1]);
    return oribi__refuse(error, "%s takes one value, not %zu: \"%.40s\", \"%.40s\"%s", name, count, values[0],
                         values[1], count > 2 ? ", ..." : "");
}

int oribi_options_set_values(struct oribi_options *options, enum oribi_option_source source, const char *name,
                             const char *const *values, size_t count, char *error)
{
    struct oribi__option_name found = oribi__options_resolve(name);
    bool is_list = (found.option && found.option->type == ORIBI_OPTION_LIST) ||
                   (found.alias && found.alias->apply == apply_unix_path);
    if (!is_known(&found))
        return meet_unknown(options, source, name, error);
    if (count == 0 && found.takes_value)
        return oribi__refuse(error, "%s needs a value", name);
    if (count == 0)
        return oribi_options_set_from(options, source, name, "on", error);
    if (count > 1 && !is_list)
        return refuse_several(found.option, name, values, count, error);
    int code = 0;
    for (size_t i = 0; code == 0 && i < count; i++)
        code = oribi_options_set_from(options, source, name, values[i], error);
    return code;
}

int oribi_options_set(struct oribi_options *options, const char *name, const char *value, char *error)
{
    return oribi_options_set_from(options, ORIBI_FROM_COMMAND, name, value, error);
}

void oribi_options_init(struct oribi_options *options)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    *options = (struct oribi_options){.lang = ORIBI_LANG_BOTH, .helper = true};
    oribi_limits_init(&options->limits);
    for (size_t i = 0; i < count; i++) {
        int code = table[i].default_text ? oribi__option_set(options, ORIBI_FROM_DEFAULT, &table[i], table[i].name,
                                                             table[i].default_text, error)
                                         : 0;
        assert(code == 0); /* the table's own defaults are within its own bounds */
        (void)code;
    }
}

void oribi_options_deinit(struct oribi_options *options)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++)
        oribi__option_clear(options, &table[i]);
    oribi__option_replace_text(&options->app, NULL);
    oribi__option_replace_text(&options->start_dir, NULL);
    oribi__option_replace_text(&options->entered_dir, NULL);
}

/* Names of other servers */

static int set_named(struct oribi_options *options, enum oribi_option_source source, const char *target,
                     const char *name, const char *value, char *error)
{
    const struct oribi_option *option = oribi_options_find(target);
    assert(option);
    return oribi__option_set(options, source, option, name, value, error);
}

static int apply_unix_path(struct oribi_options *options, enum oribi_option_source source, const char *name,
                           const char *value, char *error)
{
    char address[ORIBI_ERROR_TEXT_CAP];
    bool has_scheme = strncmp(value, "unix:", 5) == 0;
    const char *colon = strrchr(value, ':');
    if (!strchr(value, '/') && colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1))
        return oribi__refuse(error, "%s takes the path of a unix socket; for an address use bind: \"%.60s\"", name,
                             value);
    int n = snprintf(address, sizeof(address), "%s%s", has_scheme ? "" : "unix://", value);
    if (n < 0 || (size_t)n >= sizeof(address))
        return oribi__refuse(error, "%s is longer than a socket's path may be", name);
    return set_named(options, source, "bind", name, address, error);
}

static int apply_io_timeout(struct oribi_options *options, enum oribi_option_source source, const char *name,
                            const char *value, char *error)
{
    static const char *const targets[] = {"head_timeout", "body_timeout", "write_timeout"};
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        int code = set_named(options, source, targets[i], name, value, error);
        if (code < 0)
            return code;
    }
    options->timeout_named = true;
    return 0;
}

static int set_lower_end(struct oribi_options *options, enum oribi_option_source source, size_t offset,
                         const char *name, const char *value, char *error)
{
    struct oribi_option_lower_end *end = (struct oribi_option_lower_end *)((char *)options + offset);
    const struct oribi_option field = {.type = ORIBI_OPTION_COUNT,
                                       .max = INT32_MAX,
                                       .offset = (uint16_t)(offset + offsetof(struct oribi_option_lower_end, value)),
                                       .width = sizeof(end->value)};
    if (source < end->source)
        return oribi__option_check(&field, name, value, error);
    int code = oribi__option_assign(options, &field, name, value, error);
    if (code == 0)
        end->source = (uint8_t)source;
    return code;
}

static int apply_requests_min(struct oribi_options *options, enum oribi_option_source source, const char *name,
                              const char *value, char *error)
{
    return set_lower_end(options, source, offsetof(struct oribi_options, requests_min), name, value, error);
}

static int apply_gc_min(struct oribi_options *options, enum oribi_option_source source, const char *name,
                        const char *value, char *error)
{
    return set_lower_end(options, source, offsetof(struct oribi_options, oob_gc_requests_min), name, value, error);
}

static int apply_ignored_switch(struct oribi_options *options, enum oribi_option_source source, const char *name,
                                const char *value, char *error)
{
    static const struct oribi_option any_switch = {.type = ORIBI_OPTION_BOOL};
    return oribi__option_check(&any_switch, name, value, error);
}

static int apply_ignored_count(struct oribi_options *options, enum oribi_option_source source, const char *name,
                               const char *value, char *error)
{
    static const struct oribi_option any_count = {.type = ORIBI_OPTION_COUNT, .max = INT32_MAX};
    return oribi__option_check(&any_count, name, value, error);
}

static int apply_keepalive(struct oribi_options *options, enum oribi_option_source source, const char *name,
                           const char *value, char *error)
{
    int code = apply_ignored_switch(options, source, name, value, error);
    if (code < 0 || strcmp(negate(value), "off") == 0)
        return code;
    return set_named(options, source, "keepalive_requests_max", name, "1", error);
}

uint64_t oribi_options_draw_limit(const struct oribi_options *options)
{
    uint64_t min = options->requests_max.min > 0 ? options->requests_max.min : 1; /* a limit of 0 is none */
    uint64_t max = options->requests_max.max;
    if (max == 0)
        return 0;
    if (min > max)
        min = max;
    uint64_t spread = max - min + options->requests_jitter + 1;
    uint64_t seed = (uint64_t)oribi_clock_us() * 6364136223846793005u + (uint64_t)getpid() * 1442695040888963407u;
    return min + (seed >> 33) % spread;
}

/* The folder of the start, where it has no name but its own and `chdir` names it: by way of a link, later starts follow
 * that to the next release, as they do with PWD. */
static void name_start_dir(struct oribi_options *options, const char *dir)
{
    char here[PATH_MAX];
    if (dir[0] == '/' && getcwd(here, sizeof(here)) && strcmp(here, options->start_dir) == 0)
        oribi__option_replace_text(&options->start_dir, dir);
}

int oribi_options_enter_dir(struct oribi_options *options, char *error)
{
    const char *dir = options->chdir;
    int code = 0;
    if (!dir || (options->entered_dir && strcmp(dir, options->entered_dir) == 0))
        return 0;
    if (!options->start_dir)
        options->start_dir = oribi_process_dir();
    else
        code = oribi_process_enter_dir(options->start_dir, error);
    if (code < 0 || (code = oribi_process_enter_dir(dir, error)) < 0)
        return code;
    name_start_dir(options, dir);
    oribi__option_replace_text(&options->entered_dir, dir);
    return 0;
}

/* ---- options_answers ---- */

/* Options for the server's answers, checked: each line when it is read, and all of them together. */

static int check_fixed(enum oribi_fixed_kind kind, const char *line, char *error)
{
    struct oribi_fixed *fixed = NULL;
    int code = oribi_fixed_read(kind, line, &fixed, error);
    oribi_mem_free(fixed);
    return code;
}

int oribi__option_check_answer(const struct oribi_option *option, const char *line, char *error)
{
    if (option->offset == offsetof(struct oribi_options, answers))
        return check_fixed(ORIBI_FIXED_ANSWER, line, error);
    if (option->offset == offsetof(struct oribi_options, redirects))
        return check_fixed(ORIBI_FIXED_REDIRECT, line, error);
    if (option->offset == offsetof(struct oribi_options, health))
        return check_fixed(ORIBI_FIXED_HEALTH, line, error);
    if (option->offset == offsetof(struct oribi_options, headers))
        return oribi_added_read(line, &(struct oribi_header){0}, error);
    if (option->offset == offsetof(struct oribi_options, error_pages))
        return oribi_error_page_read(line, NULL, &(const char *){NULL}, error);
    return 0;
}

struct oribi_fixed_lines oribi_options_fixed_lines(const struct oribi_options *options)
{
    return (struct oribi_fixed_lines){
        .answers = options->answers.items,
        .redirects = options->redirects.items,
        .health = options->health,
        .answer_count = options->answers.count,
        .redirect_count = options->redirects.count,
    };
}

int oribi__options_check_answers(const struct oribi_options *options, char *error)
{
    const struct oribi_fixed_lines lines = oribi_options_fixed_lines(options);
    struct oribi_fixed_set *set = NULL;
    int code = oribi_fixed_set_create(&lines, &set, error);
    oribi_fixed_set_destroy(set);
    if (code < 0)
        return code;
    struct oribi_added *added = NULL;
    code = oribi_added_create(options->headers.items, options->headers.count, &added, error);
    oribi_mem_free(added);
    return code;
}

/* ---- options_gone ---- */

/* cancel_gone: off, on, or the methods whose calls are ended when their client has gone. */

static const char *const methods_default = "GET,HEAD";

/* The methods, separated by commas or spaces; NULL: none. */
static const char *methods_of(const struct oribi_options *options)
{
    const char *text = options->cancel_gone;
    if (!text || strcmp(text, "off") == 0)
        return NULL;
    return strcmp(text, "on") == 0 ? methods_default : text;
}

/* The next one at *p, which moves behind it; n 0 at the end. */
static struct oribi_slice next_method(const char **p)
{
    *p += strspn(*p, ", ");
    struct oribi_slice method = oribi_slice(*p, strcspn(*p, ", "));
    *p += method.n;
    return method;
}

static bool is_method(struct oribi_slice method)
{
    for (size_t i = 0; i < method.n; i++)
        if (method.p[i] >= 'a' && method.p[i] <= 'z')
            return false; /* methods are case-sensitive (RFC 9110 9.1), and all that are in use are in capitals */
    return method.n <= ORIBI_METHOD_BYTES_MAX && oribi_scan_is_token(method.p, method.n);
}

int oribi__options_check_gone(const struct oribi_options *options, char *error)
{
    const char *methods = methods_of(options);
    if (!methods)
        return 0;
    if (!options->helper)
        return oribi__refuse(error, "cancel_gone needs helper, which notices that a client has left");
    for (struct oribi_slice method; (method = next_method(&methods)).n > 0;)
        if (!is_method(method))
            return oribi__refuse(error,
                                 "cancel_gone takes off, on, or methods in capitals, GET,HEAD for one; not \"%.*s\"",
                                 method.n > 60 ? 60 : (int)method.n, method.p);
    return 0;
}

bool oribi_options_cancels_any(const struct oribi_options *options)
{
    return methods_of(options) != NULL;
}

bool oribi_options_cancels(const struct oribi_options *options, struct oribi_slice method)
{
    const char *methods = methods_of(options);
    if (!methods)
        return false;
    for (struct oribi_slice one; (one = next_method(&methods)).n > 0;)
        if (oribi_slice_equal(one, method))
            return true;
    return false;
}

/* ---- options_environment ---- */

/* Variables of the environment that set options. They are weaker than the configuration file: a variable belongs to a
 * machine or a container, the file to the application. */

static const struct oribi_option_variable variables[] = {
    {"RACK_ENV", "env", ORIBI_LANG_RUBY},
    {"RAILS_ENV", "env", ORIBI_LANG_RUBY},
    {"APP_ENV", "env", ORIBI_LANG_RUBY},
    {"PLACK_ENV", "env", ORIBI_LANG_PERL},
    {"DANCER_ENVIRONMENT", "env", ORIBI_LANG_PERL},
    {"MOJO_MODE", "env", ORIBI_LANG_PERL},
    {"PORT", "port", ORIBI_LANG_BOTH},
    {"WEB_CONCURRENCY", "workers", ORIBI_LANG_RUBY},
    {"RAILS_MAX_THREADS", "threads", ORIBI_LANG_RUBY},
};

const struct oribi_option_variable *oribi_options_variables(size_t *count)
{
    *count = sizeof(variables) / sizeof(variables[0]);
    return variables;
}

/* No value is read where none is needed: a variable that means something else to another program must not keep this one
 * from starting. */
static bool is_wanted(struct oribi_options *options, const struct oribi_option *option)
{
    bool is_port = option->offset == offsetof(struct oribi_options, port);
    if (is_port && *oribi__option_source(options, oribi_options_find("bind")) > ORIBI_FROM_ENVIRONMENT)
        return false;
    return *oribi__option_source(options, option) < ORIBI_FROM_ENVIRONMENT;
}

/* WEB_CONCURRENCY=0 is Puma's word for a server without a cluster: one process. The option's own 0 is one a CPU. */
static const char *value_of(const struct oribi_option_variable *variable)
{
    const char *value = getenv(variable->name);
    bool no_cluster = value && strcmp(value, "0") == 0 && strcmp(variable->option, "workers") == 0;
    return no_cluster ? "1" : value;
}

int oribi__options_read_environment(struct oribi_options *options, char *error)
{
    if (options->ignores_environment)
        return 0;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const struct oribi_option *option = oribi_options_find(variables[i].option);
        const char *value = value_of(&variables[i]);
        char name[64];
        assert(option); /* the table above names those of the options' table */
        if (!(variables[i].lang & options->lang) || !value || !*value || !is_wanted(options, option))
            continue;
        (void)snprintf(name, sizeof(name), "%s in the environment", variables[i].name); /* fits: our own names */
        int code = oribi__option_set(options, ORIBI_FROM_ENVIRONMENT, option, name, value, error);
        if (code < 0)
            return code;
    }
    return 0;
}
