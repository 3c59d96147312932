/* Scripts for three shells, from the table of options, the words of ctl and the flags of the sub-commands. Each has the
 * same three questions: which sub-command is the first word, which option stands before, what may follow it. */
#include "oribi/command/completion.h"

#include "oribi/config/options.h"
#include "oribi/config/options_names.h"
#include "oribi/supervisor/control_words.h"
#include "command/completion_script.h"
#include "command/top.h"

/* Options whose values are more than any text, beside those that have choices. */
static const struct {
    const char *option;
    struct oribi__values values;
} known_values[] = {
    {"access_log", {ORIBI__VALUE_FILE, "- off"}},
    {"access_log_format", {ORIBI__VALUE_WORDS, "combined common json"}},
    {"cancel_gone", {ORIBI__VALUE_WORDS, "off on"}},
    {"chdir", {ORIBI__VALUE_FOLDER, NULL}},
    {"compress", {ORIBI__VALUE_WORDS, "gzip zstd br"}},
    {"config", {ORIBI__VALUE_FILE, NULL}},
    {"control", {ORIBI__VALUE_FILE, "none"}},
    {"env", {ORIBI__VALUE_WORDS, "development production test"}},
    {"error_log", {ORIBI__VALUE_FILE, "-"}},
    {"group", {ORIBI__VALUE_GROUP, NULL}},
    {"include", {ORIBI__VALUE_FOLDER, NULL}},
    {"pid_file", {ORIBI__VALUE_FILE, NULL}},
    {"restart_file", {ORIBI__VALUE_FILE, NULL}},
    {"sendfile_root", {ORIBI__VALUE_FOLDER, NULL}},
    {"static", {ORIBI__VALUE_FOLDER, NULL}},
    {"user", {ORIBI__VALUE_USER, NULL}},
    {"workers", {ORIBI__VALUE_WORDS, "auto"}},
};

enum { KNOWN_VALUES = sizeof(known_values) / sizeof(known_values[0]) };

static const struct oribi__flag flags[] = {
    {"ctl", NULL, "control", "PATH", {ORIBI__VALUE_FILE, NULL}, "control socket of the server"},
    {"ctl", "C", "config", "FILE", {ORIBI__VALUE_FILE, NULL}, "configuration file"},
    {"ctl", NULL, "chdir", "DIR", {ORIBI__VALUE_FOLDER, NULL}, "directory to change to first"},
    {"ctl", NULL, "interval", "TIME", {ORIBI__VALUE_ANY, NULL}, "top: the time between two looks"},
    {"ctl", NULL, "sort", "ORDER", {ORIBI__VALUE_WORDS, NULL}, "top: the order"}, /* the words of top.h */
    {"ctl", NULL, "json", NULL, {ORIBI__VALUE_NONE, NULL}, "as JSON"},
    {"ctl", NULL, "now", NULL, {ORIBI__VALUE_NONE, NULL}, "stop at once"},
    {"ctl", "h", "help", NULL, {ORIBI__VALUE_NONE, NULL}, "print the help"},
    {"publish", NULL, "event", "NAME", {ORIBI__VALUE_ANY, NULL}, "name of the event"},
    {"publish", NULL, "binary", NULL, {ORIBI__VALUE_NONE, NULL}, "the message is bytes"},
    {"publish", NULL, "control", "PATH", {ORIBI__VALUE_FILE, NULL}, "control socket of the server"},
    {"publish", "C", "config", "FILE", {ORIBI__VALUE_FILE, NULL}, "configuration file"},
    {"publish", NULL, "chdir", "DIR", {ORIBI__VALUE_FOLDER, NULL}, "directory to change to first"},
    {"publish", "h", "help", NULL, {ORIBI__VALUE_NONE, NULL}, "print the help"},
    {"check", NULL, "json", NULL, {ORIBI__VALUE_NONE, NULL}, "as JSON"},
    {"check", NULL, "strict", NULL, {ORIBI__VALUE_NONE, NULL}, "risks make the exit code 1"},
    {"import", "o", "output", "FILE", {ORIBI__VALUE_FILE, NULL}, "file to write"},
    {"import", NULL, "force", NULL, {ORIBI__VALUE_NONE, NULL}, "overwrite it"},
    {"import", "h", "help", NULL, {ORIBI__VALUE_NONE, NULL}, "print the help"},
    {"init", NULL, "psgi", NULL, {ORIBI__VALUE_NONE, NULL}, "for a PSGI application"},
    {"init", NULL, "rack", NULL, {ORIBI__VALUE_NONE, NULL}, "for a Rack application"},
    {"init", NULL, "pretend", NULL, {ORIBI__VALUE_NONE, NULL}, "write nothing, tell only"},
    {"init", NULL, "force", NULL, {ORIBI__VALUE_NONE, NULL}, "write files that differ anew, keep them as NAME.old"},
    {"init", "h", "help", NULL, {ORIBI__VALUE_NONE, NULL}, "print the help"},
};

enum { FLAGS = sizeof(flags) / sizeof(flags[0]) };

struct oribi__values oribi__values_of(const struct oribi_option *option)
{
    if (option->type == ORIBI_OPTION_BOOL)
        return (struct oribi__values){ORIBI__VALUE_NONE, NULL};
    if (option->choices)
        return (struct oribi__values){ORIBI__VALUE_WORDS, option->choices};
    for (size_t i = 0; i < KNOWN_VALUES; i++)
        if (strcmp(option->name, known_values[i].option) == 0)
            return known_values[i].values;
    return (struct oribi__values){ORIBI__VALUE_ANY, NULL};
}

bool oribi__is_switch(const struct oribi_option *option)
{
    return option->type == ORIBI_OPTION_BOOL && option->group != ORIBI_GROUP_COMMAND;
}

bool oribi__takes_options(const char *command)
{
    return strcmp(command, "check") == 0;
}

void oribi__each_option(struct oribi__script *s, oribi__option_fn fn)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++)
        if (table[i].lang & s->lang)
            fn(s, &table[i]);
}

void oribi__each_flag(struct oribi__script *s, const char *command, oribi__flag_fn fn)
{
    for (size_t i = 0; i < FLAGS; i++)
        if (strcmp(flags[i].command, command) == 0)
            fn(s, &flags[i]);
}

void oribi__put_words(struct oribi__script *s, struct oribi__values values)
{
    if (values.words || values.kind != ORIBI__VALUE_WORDS) {
        put(s, values.words ? values.words : "");
        return;
    }
    for (int i = 0; i < ORIBI__TOP_SORTS; i++) {
        put(s, i ? " " : "");
        put(s, oribi__top_sort_name(i));
    }
}

void oribi__put_subcommands(struct oribi__script *s)
{
    for (size_t i = 0; i < ORIBI__SUBCOMMANDS; i++) {
        put(s, i ? " " : "");
        put(s, oribi__subcommands[i].word);
    }
}

void oribi__put_control_words(struct oribi__script *s, const char *between)
{
    for (size_t i = 0; i < ORIBI__CONTROL_WORDS; i++) {
        put(s, i ? between : "");
        put(s, oribi__control_words[i].word);
    }
}

int oribi_completion(struct oribi_buf *out, enum oribi_option_lang lang, const char *program, const char *shell,
                     char *error)
{
    static const struct {
        const char *name;
        void (*put)(struct oribi__script *s);
    } shells[] = {{"bash", oribi__put_bash}, {"zsh", oribi__put_zsh}, {"fish", oribi__put_fish}};
    struct oribi__script script = {.out = out, .lang = lang, .program = program};
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].put(&script);
            return 0;
        }
    }
    return oribi__refuse(error, "completion is for bash, zsh or fish, not '%.40s'", shell);
}
