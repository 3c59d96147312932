/* Texts about the options for people: --help, --print-config and the tables of doc/options.md, all from the one
 * table. */
#include "config/options_private.h"
#include "oribi/config/options_names.h"

#include "oribi/base/buf.h"
#include "oribi/config/arguments.h"
#include "oribi/config/log_format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    HELP_WIDTH = 100,
    FREQUENT_INDENT = 32,
    HELP_INDENT = 34, /* where the explanations stand */
    PIECE_CAP = 1024,
};

static const char *const group_titles[ORIBI_GROUP_COUNT] = {
    [ORIBI_GROUP_LISTEN] = "Listening",
    [ORIBI_GROUP_PROCESS] = "Processes",
    [ORIBI_GROUP_TIMEOUT] = "Timeouts",
    [ORIBI_GROUP_LIMIT] = "Limits",
    [ORIBI_GROUP_WEBSOCKET] = "WebSockets",
    [ORIBI_GROUP_RECYCLE] = "Replacing workers, garbage collection",
    [ORIBI_GROUP_LOG] = "Logs",
    [ORIBI_GROUP_APP] = "Application",
    [ORIBI_GROUP_COMMAND] = "Command",
};

const char *oribi_option_type_name(enum oribi_option_type type)
{
    static const char *const names[] = {
        [ORIBI_OPTION_TEXT] = "text", [ORIBI_OPTION_CODE] = "code",   [ORIBI_OPTION_LIST] = "list",
        [ORIBI_OPTION_BOOL] = "bool", [ORIBI_OPTION_COUNT] = "count", [ORIBI_OPTION_SIZE] = "size",
        [ORIBI_OPTION_TIME] = "time", [ORIBI_OPTION_RANGE] = "range",
    };
    return names[type];
}

enum oribi_option_source oribi_option_source_named(const char *name)
{
    static const char *const names[] = {
        [ORIBI_FROM_LAUNCHER] = "launcher",
        [ORIBI_FROM_ENVIRONMENT] = "environment",
        [ORIBI_FROM_FILE] = "file",
        [ORIBI_FROM_COMMAND] = "command",
    };
    for (int i = ORIBI_FROM_LAUNCHER; i <= ORIBI_FROM_COMMAND; i++)
        if (strcmp(names[i], name) == 0)
            return (enum oribi_option_source)i;
    return ORIBI_FROM_DEFAULT;
}

__attribute__((format(printf, 2, 3))) static void put_format(struct oribi_buf *out, const char *format, ...)
{
    char piece[PIECE_CAP];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(piece, sizeof(piece), format, args);
    va_end(args);
    if (n > 0)
        oribi_buf_append(out, piece, (size_t)n < sizeof(piece) ? (size_t)n : sizeof(piece) - 1);
}

static void put_spaces(struct oribi_buf *out, size_t n)
{
    while (n-- > 0)
        oribi_buf_append(out, " ", 1);
}

/* Name as the command line writes it. */
static void put_dashed(struct oribi_buf *out, const char *name)
{
    for (; *name; name++)
        oribi_buf_append(out, *name == '_' ? "-" : name, 1);
}

/* Breaks `text` at blanks so that no line passes HELP_WIDTH; lines after the first start at HELP_INDENT. */
static void put_wrapped(struct oribi_buf *out, const char *text)
{
    size_t column = HELP_INDENT;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column > HELP_INDENT) {
            bool fits = column + 1 + n <= HELP_WIDTH;
            oribi_buf_append(out, fits ? " " : "\n", 1);
            column = fits ? column + 1 : HELP_INDENT;
            if (!fits)
                put_spaces(out, HELP_INDENT);
        }
        oribi_buf_append(out, text, n);
        column += n;
        text += n;
        text += strspn(text, " ");
    }
    oribi_buf_append(out, "\n", 1);
}

static const char *shown_default(const struct oribi_option *option)
{
    if (option->default_note)
        return option->default_note;
    if (option->group == ORIBI_GROUP_COMMAND)
        return NULL;
    return option->default_text;
}

/* "RACK_ENV, RAILS_ENV, APP_ENV, else development" */
void oribi_options_default_text(const struct oribi_option *option, enum oribi_option_lang lang, char *dst, size_t cap)
{
    size_t count;
    const struct oribi_option_variable *variables = oribi_options_variables(&count);
    const char *shown = shown_default(option);
    size_t len = 0;
    dst[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (len < cap && (variables[i].lang & lang) && strcmp(variables[i].option, option->name) == 0)
            len += (size_t)snprintf(dst + len, cap - len, "%s, ", variables[i].name);
    }
    if (len < cap)
        (void)snprintf(dst + len, cap - len, "%s%s", len > 0 && shown ? "else " : "", shown ? shown : ""); /* cut */
}

static void put_help_option(struct oribi_buf *out, const struct oribi_option *option, enum oribi_option_lang lang)
{
    size_t start = out->len;
    char text[2 * PIECE_CAP];
    char shown[PIECE_CAP];
    bool is_switch = option->type == ORIBI_OPTION_BOOL && option->group != ORIBI_GROUP_COMMAND;
    put_format(out, "  %s%s%s--%s", option->short_flag ? "-" : "  ", option->short_flag ? option->short_flag : "",
               option->short_flag ? ", " : "  ", is_switch ? "[no-]" : "");
    put_dashed(out, option->name);
    if (option->argument)
        put_format(out, " %s", option->argument);
    size_t width = out->len - start;
    if (width + 2 > HELP_INDENT) {
        oribi_buf_append(out, "\n", 1);
        width = 0;
    }
    put_spaces(out, HELP_INDENT - width);
    oribi_options_default_text(option, lang, shown, sizeof(shown));
    if (*shown)
        (void)snprintf(text, sizeof(text), "%s [%s]", option->help, shown); /* both are the table's short lines */
    else
        (void)snprintf(text, sizeof(text), "%s", option->help);
    put_wrapped(out, text);
}

const char *oribi_options_group_title(enum oribi_option_group group)
{
    return group_titles[group];
}

const struct oribi__subcommand oribi__subcommands[] = {
    {"ctl", "status|top|stacks|sockets|reload|upgrade|stop|workers|certificates|reopen",
     "tells a running server what to do"},
    {"publish", "[OPTIONS] [--event NAME] CHANNEL [DATA]", "sends a message to who has subscribed to a channel"},
    {"check", "[--json] [--strict] [options] [@NAME|application]",
     "tells everything that is wrong or risky, starts nothing"},
    {"import", "[-o FILE [--force]] FILE|-|-- COMMAND", "prints a configuration file made from another server's"},
    {"init", "[--psgi|--rack] [--pretend] [--force] [FOLDER]",
     "makes a configuration file, and what else a folder's application needs"},
};

/* The options that are given most often, in words that fit a line; names are the table's. */
static const struct {
    const char *name;
    const char *help;
} frequent[] = {
    {"bind", "host:port, unix:///path, tls://host:port?certificate=FILE&key=FILE"},
    {"port", "the port alone [9292]"},
    {"env", "production listens on every address [development]"},
    {"config", NULL}, /* the file's name is the language's */
    {"workers", "worker processes [one for each CPU]"},
    {"threads", "calls at a time in a worker [1; 3 in development]"},
    {"call_timeout", "how long a request may take in the application [60s]"},
    {"shutdown_timeout", "how long a stop waits for requests [30s]"},
    {"memory_max", "replace a worker that is larger"},
    {"static", "send files without the application: /assets=public/assets"},
    {"compress", "answers of the application: gzip zstd br [off]"},
    {"health", "a path that the server itself answers, such as /up"},
    {"status", "address of metrics and a live page: 127.0.0.1:9394"},
    {"access_log", "FILE, - or off [- in development, off in production]"},
    {"trusted_proxies", "proxies whose X-Forwarded-For counts: 127.0.0.1, unix"},
    {"user", "become this user, when started as root"},
    {"daemonize", "go to the background"},
    {"version", "print version, compression and TLS of this build"},
    {"help", "print this text; --help all: every option"},
};

static void put_frequent(struct oribi_buf *out, enum oribi_option_lang lang)
{
    for (size_t i = 0; i < sizeof(frequent) / sizeof(frequent[0]); i++) {
        const struct oribi_option *option = oribi_options_find(frequent[i].name);
        size_t start = out->len;
        if (!(option->lang & lang))
            continue;
        put_format(out, "  %s%s%s--", option->short_flag ? "-" : "  ", option->short_flag ? option->short_flag : "",
                   option->short_flag ? ", " : "  ");
        put_dashed(out, option->name);
        put_format(out, "%s%s", option->argument ? " " : "", option->argument ? option->argument : "");
        put_spaces(out, out->len - start < FREQUENT_INDENT ? FREQUENT_INDENT - (out->len - start) : 1);
        put_format(out, "%s\n",
                   frequent[i].help         ? frequent[i].help
                   : lang & ORIBI_LANG_PERL ? "configuration file [config/oribi.pl]"
                                            : "configuration file [config/oribi.rb]");
    }
}

static void put_usage(struct oribi_buf *out, bool ruby, const char *command)
{
    put_format(out, "Usage: %s [options] [%s]\n", command, ruby ? "config.ru" : "app.psgi");
    for (size_t i = 0; i < ORIBI__SUBCOMMANDS; i++)
        put_format(out, "       %s %s %s\n", command, oribi__subcommands[i].word, oribi__subcommands[i].arguments);
    put_format(out, "\nServes a %s application; or\n", ruby ? "Rack" : "PSGI");
    for (size_t i = 0; i < ORIBI__SUBCOMMANDS; i++)
        put_format(out, "  %-8s  %s\n", oribi__subcommands[i].word, oribi__subcommands[i].help);
}

void oribi_options_help(struct oribi_buf *out, enum oribi_option_lang lang, const char *command, const char *pages)
{
    put_usage(out, lang == ORIBI_LANG_RUBY, command);
    put_format(out, "\nOptions that are used most; the configuration file has the same names with underscores:\n");
    put_frequent(out, lang);
    put_format(out, "\nPages: %s\n", pages);
}

void oribi_options_help_all(struct oribi_buf *out, enum oribi_option_lang lang, const char *command, const char *pages)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    bool ruby = lang == ORIBI_LANG_RUBY;
    put_usage(out, ruby, command);
    for (int group = 0; group < ORIBI_GROUP_COUNT; group++) {
        put_format(out, "\n%s\n", group_titles[group]);
        for (size_t i = 0; i < count; i++) {
            if ((int)table[i].group == group && (table[i].lang & lang))
                put_help_option(out, &table[i], lang);
        }
    }
    put_format(out,
               "\nTimes take ms, s, m or h (plain numbers are seconds), sizes K, M or G. In square brackets: defaults\n"
               "and variables of the environment. The command line wins over the configuration file, the file over\n"
               "the environment, the environment over defaults. The configuration file uses the same names with\n"
               "underscores.\n\n"
               "Manual pages: %s(1), %s-ctl(1), oribi.%s(5).\n"
               "All details, and the names of other servers' options that are understood:\n  %s/options.md\n",
               command, command, ruby ? "rb" : "pl", pages);
}

static void print_words(struct oribi_buf *out, const struct oribi_options *options, const struct oribi_option *option)
{
    const void *field = (const char *)options + option->offset;
    const struct oribi_text_list one = {(char **)field, 1};
    const struct oribi_text_list *list = option->type == ORIBI_OPTION_LIST ? field : &one;
    for (size_t i = 0; i < list->count; i++) {
        oribi_option_print_word(out, option, list->items[i], options->lang);
        oribi_buf_append(out, "\n", 1);
    }
}

void oribi_options_print(struct oribi_buf *out, const struct oribi_options *options)
{
    char value[PIECE_CAP];
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++) {
        if (!(table[i].lang & options->lang) || table[i].group == ORIBI_GROUP_COMMAND)
            continue;
        if (table[i].composed.form && !oribi_option_takes_lines(&table[i]) &&
            oribi_options_source(options, &table[i]) > ORIBI_FROM_DEFAULT) {
            print_words(out, options, &table[i]);
            continue;
        }
        (void)oribi_options_get(options, &table[i], value, sizeof(value)); /* longer ones are cut: this is for eyes */
        if (table[i].secret && *value)
            (void)snprintf(value, sizeof(value), "(not shown)");
        char *line = value;
        do {
            size_t n = strcspn(line, "\n");
            put_format(out, "%s = %.*s\n", table[i].name, (int)n, line);
            line += n + (line[n] == '\n');
        } while (*line);
    }
}

/* A table cell: these characters would be taken for markup. */
static void put_cell(struct oribi_buf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("|\\`", *text))
            oribi_buf_append(out, "\\", 1);
        if (*text == '<')
            oribi_buf_append(out, "&lt;", 4);
        else
            oribi_buf_append(out, text, 1);
    }
}

const char *oribi_option_value_text(const struct oribi_option *option, char dst[ORIBI_OPTION_VALUE_TEXT_CAP])
{
    static const char *const words[] = {
        [ORIBI_OPTION_TEXT] = "text",  [ORIBI_OPTION_CODE] = "source text",
        [ORIBI_OPTION_LIST] = "list",  [ORIBI_OPTION_BOOL] = "on, off",
        [ORIBI_OPTION_COUNT] = "",     [ORIBI_OPTION_SIZE] = "size ",
        [ORIBI_OPTION_TIME] = "time ", [ORIBI_OPTION_RANGE] = "N or N..M, ",
    };
    char min[OPTION_NUMBER_CAP];
    char max[OPTION_NUMBER_CAP];
    if (option->choices)
        return option->choices;
    if (option->type <= ORIBI_OPTION_BOOL)
        return words[option->type];
    oribi__option_format_number(option->type, option->min, min);
    oribi__option_format_number(option->type, option->max, max);
    (void)snprintf(dst, ORIBI_OPTION_VALUE_TEXT_CAP, "%s%s..%s", words[option->type], min, max); /* short */
    return dst;
}

static const char *only_words(enum oribi_option_lang lang)
{
    static const char *const words[] = {
        [ORIBI_LANG_RUBY] = " (oribi only)", [ORIBI_LANG_PERL] = " (oribi-psgi only)", [ORIBI_LANG_BOTH] = ""};
    return words[lang];
}

static void put_doc_option(struct oribi_buf *out, const struct oribi_option *option)
{
    char type[ORIBI_OPTION_VALUE_TEXT_CAP];
    const char *shown = shown_default(option);
    bool restarts = !option->reloads && option->group != ORIBI_GROUP_COMMAND;
    put_format(out, "| `%s`%s%s%s | %s | ", option->name, option->short_flag ? " `-" : "",
               option->short_flag ? option->short_flag : "", option->short_flag ? "`" : "",
               oribi_option_value_text(option, type));
    put_cell(out, shown ? shown : "");
    oribi_buf_append(out, " | ", 3);
    put_cell(out, option->help);
    put_format(out, "%s%s |\n", only_words(option->lang), restarts ? " (restart)" : "");
}

static void put_words(struct oribi_buf *out)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    put_format(out,
               "### Words with several arguments, in the configuration file\n\n"
               "Square brackets: may be left out. Settings are keywords: `cache: \"no-cache\"` in Ruby, `cache =>\n"
               "'no-cache'` in Perl; in the line they follow a question mark, joined with `&`. The word takes the\n"
               "line instead of the arguments, too.\n\n"
               "| word | as one line | settings |\n|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        const struct oribi_option_composed *composed = &table[i].composed;
        if (!composed->form)
            continue;
        oribi_buf_append(out, "| `", 3);
        oribi_option_print_signature(out, &table[i]);
        put_format(out, "` | `%s` | ", table[i].argument);
        for (const char *p = composed->settings; p && *p; p++)
            if (*p != '?')
                oribi_buf_append(out, *p == ' ' ? ", " : p, *p == ' ' ? 2 : 1);
        oribi_buf_append(out, " |\n", 3);
    }
    oribi_buf_append(out, "\n", 1);
}

static void put_variables(struct oribi_buf *out)
{
    static const char *const commands[] = {
        [ORIBI_LANG_RUBY] = "oribi", [ORIBI_LANG_PERL] = "oribi-psgi", [ORIBI_LANG_BOTH] = "both"};
    size_t count;
    const struct oribi_option_variable *variables = oribi_options_variables(&count);
    put_format(out, "### Variables of the environment\n\n| variable | sets | in |\n|---|---|---|\n");
    for (size_t i = 0; i < count; i++)
        put_format(out, "| `%s` | `%s` | %s |\n", variables[i].name, variables[i].option, commands[variables[i].lang]);
    oribi_buf_append(out, "\n", 1);
}

/* A name of one letter is a flag. */
static void put_name(struct oribi_buf *out, const char *name, size_t n)
{
    put_format(out, "`%s%.*s`", n == 1 ? "-" : "", (int)n, name);
}

static void put_aliases(struct oribi_buf *out)
{
    size_t count;
    const struct oribi_option_alias *aliases = oribi_options_aliases(&count);
    put_format(out, "### Names that do more than rename\n\n| name | effect |\n|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        bool begins = i == 0 || strcmp(aliases[i].effect, aliases[i - 1].effect) != 0;
        put_format(out, begins ? "| " : ", ");
        put_name(out, aliases[i].name, strlen(aliases[i].name));
        put_format(out, "%s", only_words(aliases[i].lang));
        if (i + 1 == count || strcmp(aliases[i].effect, aliases[i + 1].effect) != 0)
            put_format(out, " | %s |\n", aliases[i].effect);
    }
}

/* The names of other servers that are answered with `here`, an option or a hook. */
static void put_foreign_names(struct oribi_buf *out, const char *here)
{
    size_t count;
    size_t found = 0;
    const struct oribi__foreign_name *names = oribi__options_foreign(&count);
    for (size_t i = 0; i < count; i++) {
        if (!names[i].here || strcmp(names[i].here, here) != 0)
            continue;
        put_format(out, found++ ? " " : "");
        put_name(out, names[i].name, strlen(names[i].name));
    }
}

static bool is_foreign(const char *here)
{
    size_t count;
    const struct oribi__foreign_name *names = oribi__options_foreign(&count);
    for (size_t i = 0; i < count; i++) {
        if (names[i].here && strcmp(names[i].here, here) == 0)
            return true;
    }
    return false;
}

static void put_names(struct oribi_buf *out)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    put_format(
        out, "\n### Names of other servers\n\n| here | accepted, too | answered with the name here |\n|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        if (!table[i].aliases && !is_foreign(table[i].name))
            continue;
        put_format(out, "| `%s` | ", table[i].name);
        for (const char *p = table[i].aliases; p && *p;) {
            size_t n = strcspn(p, " ");
            put_format(out, p == table[i].aliases ? "" : " ");
            put_name(out, p, n);
            p += n + (p[n] == ' ');
        }
        put_format(out, " | ");
        put_foreign_names(out, table[i].name);
        put_format(out, " |\n");
    }
    for (const char *p = oribi__options_hook_names(); *p;) {
        char hook[ORIBI__OPTION_NAME_CAP];
        size_t n = strcspn(p, " ");
        (void)snprintf(hook, sizeof(hook), "%.*s", (int)n, p); /* the list's names are shorter */
        if (is_foreign(hook)) {
            put_format(out, "| `%s` | | ", hook);
            put_foreign_names(out, hook);
            put_format(out, " |\n");
        }
        p += n + (p[n] == ' ');
    }
}

void oribi_options_doc(struct oribi_buf *out)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (int group = 0; group < ORIBI_GROUP_COUNT; group++) {
        put_format(out, "### %s\n\n| option | value | default | meaning |\n|---|---|---|---|\n", group_titles[group]);
        for (size_t i = 0; i < count; i++) {
            if ((int)table[i].group == group)
                put_doc_option(out, &table[i]);
        }
        oribi_buf_append(out, "\n", 1);
    }
    put_words(out);
    oribi_log_format_doc(out);
    put_variables(out);
    put_aliases(out);
    put_names(out);
}
