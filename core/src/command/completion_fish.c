/* The script for fish: a complete command for each word. */
#include "command/completion_script.h"

#include "oribi/config/options_names.h"
#include "oribi/supervisor/control_words.h"

static const char fish_special[] = "\\";

static void put_fish_begin(struct oribi__script *s, const char *condition, const char *words)
{
    put(s, "complete -c ");
    put(s, s->program);
    put(s, " -n '");
    put(s, condition);
    put(s, words);
    put(s, "'");
}

static void put_fish_help(struct oribi__script *s, const char *help)
{
    put(s, " -d '");
    put_quoted(s, help, fish_special);
    put(s, "'\n");
}

static void put_fish_spec(struct oribi__script *s, const char *short_flag, const char *name,
                          struct oribi__values values, const char *help)
{
    static const char *const actions[] = {
        [ORIBI__VALUE_NONE] = "",
        [ORIBI__VALUE_ANY] = " -x",
        [ORIBI__VALUE_FILE] = " -r -F",
        [ORIBI__VALUE_FOLDER] = " -x -a '(__fish_complete_directories)'",
        [ORIBI__VALUE_USER] = " -x -a '(__fish_complete_users)'",
        [ORIBI__VALUE_GROUP] = " -x -a '(__fish_complete_groups)'",
        [ORIBI__VALUE_WORDS] = " -x",
    };
    if (short_flag)
        put_option(s, " -s ", short_flag);
    put_option(s, " -l ", name);
    put(s, actions[values.kind]);
    if (values.kind == ORIBI__VALUE_WORDS || values.words) {
        put(s, " -a '");
        oribi__put_words(s, values);
        put(s, "'");
    }
    put_fish_help(s, help);
}

static const char fish_seen[] = "__fish_seen_subcommand_from ";

/* Options of a start stand behind no sub-command but those that take them. */
static void put_fish_without(struct oribi__script *s)
{
    put(s, "complete -c ");
    put(s, s->program);
    put(s, " -n 'not __fish_seen_subcommand_from");
    for (size_t i = 0; i < ORIBI__SUBCOMMANDS; i++) {
        if (oribi__takes_options(oribi__subcommands[i].word))
            continue;
        put(s, " ");
        put(s, oribi__subcommands[i].word);
    }
    put(s, "'");
}

static void put_fish_option(struct oribi__script *s, const struct oribi_option *option)
{
    put_fish_without(s);
    put_fish_spec(s, option->short_flag, option->name, oribi__values_of(option), option->help);
    if (oribi__is_switch(option)) {
        put_fish_without(s);
        put_option(s, " -l no-", option->name);
        put_fish_help(s, option->help);
    }
}

static void put_fish_flag(struct oribi__script *s, const struct oribi__flag *flag)
{
    put_fish_begin(s, fish_seen, flag->command);
    put_fish_spec(s, flag->short_flag, flag->name, flag->values, flag->help);
}

void oribi__put_fish(struct oribi__script *s)
{
    for (size_t i = 0; i < ORIBI__SUBCOMMANDS; i++) {
        put_fish_begin(s, "__fish_use_subcommand", "");
        put(s, " -a ");
        put(s, oribi__subcommands[i].word);
        put_fish_help(s, oribi__subcommands[i].help);
        oribi__each_flag(s, oribi__subcommands[i].word, put_fish_flag);
    }
    for (size_t i = 0; i < ORIBI__CONTROL_WORDS; i++) {
        put_fish_begin(s, "__fish_seen_subcommand_from ctl; and not __fish_seen_subcommand_from ", "");
        s->out->len--; /* the quote: the list goes on */
        oribi__put_control_words(s, " ");
        put(s, "' -f -a ");
        put(s, oribi__control_words[i].word);
        put_fish_help(s, oribi__control_words[i].help);
    }
    oribi__each_option(s, put_fish_option);
}
