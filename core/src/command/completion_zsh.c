/* The script for zsh: specifications of _arguments. */
#include "command/completion_script.h"

#include "oribi/config/options_names.h"
#include "oribi/supervisor/control_words.h"

static const char zsh_special[] = "[]:\\";

/* ":argument:action" */
static void put_zsh_value(struct oribi__script *s, const char *argument, struct oribi__values values)
{
    static const char *const actions[] = {[ORIBI__VALUE_FILE] = "_files",
                                          [ORIBI__VALUE_FOLDER] = "_files -/",
                                          [ORIBI__VALUE_USER] = "_users",
                                          [ORIBI__VALUE_GROUP] = "_groups"};
    put(s, ":");
    put_quoted(s, argument ? argument : "value", zsh_special);
    put(s, ":");
    if (values.kind == ORIBI__VALUE_ANY)
        return;
    bool both = values.kind != ORIBI__VALUE_WORDS && values.words;
    put(s, both ? "{_alternative \"words\\:word\\:(" : values.kind == ORIBI__VALUE_WORDS ? "(" : "");
    oribi__put_words(s, values);
    put(s, both ? ")\" \"files\\:file\\:" : values.kind == ORIBI__VALUE_WORDS ? ")" : "");
    if (values.kind != ORIBI__VALUE_WORDS)
        put(s, actions[values.kind]);
    put(s, both ? "\"}" : "");
}

/* One specification of _arguments. A value may stand in the same word, behind = or a short flag; a list may come again,
 * which a star says. */
static void put_zsh_spec(struct oribi__script *s, const char *before, const char *name, const char *help,
                         const char *argument, struct oribi__values values)
{
    bool is_short = before[strcspn(before, "-")] && !strstr(before, "--");
    put(s, "        '");
    put_option(s, before, name);
    put(s, values.kind == ORIBI__VALUE_NONE ? "[" : is_short ? "+[" : "=[");
    put_quoted(s, help, zsh_special);
    put(s, "]");
    if (values.kind != ORIBI__VALUE_NONE)
        put_zsh_value(s, argument, values);
    put(s, "' \\\n");
}

static void put_zsh_option(struct oribi__script *s, const struct oribi_option *option)
{
    struct oribi__values values = oribi__values_of(option);
    bool is_list = option->type == ORIBI_OPTION_LIST;
    if (option->short_flag)
        put_zsh_spec(s, is_list ? "*-" : "-", option->short_flag, option->help, option->argument, values);
    put_zsh_spec(s, is_list ? "*--" : "--", option->name, option->help, option->argument, values);
    if (oribi__is_switch(option))
        put_zsh_spec(s, "--no-", option->name, option->help, NULL, values);
}

static void put_zsh_flag(struct oribi__script *s, const struct oribi__flag *flag)
{
    if (flag->short_flag)
        put_zsh_spec(s, "-", flag->short_flag, flag->help, flag->argument, flag->values);
    put_zsh_spec(s, "--", flag->name, flag->help, flag->argument, flag->values);
}

static void put_zsh_commands(struct oribi__script *s)
{
    put(s, "        local -a commands=(\n");
    for (size_t i = 0; i < ORIBI__CONTROL_WORDS; i++) {
        put(s, "            '");
        put(s, oribi__control_words[i].word);
        put(s, ":");
        put_quoted(s, oribi__control_words[i].help, zsh_special);
        put(s, "'\n");
    }
    put(s, "        )\n");
}

static void put_zsh_subcommand(struct oribi__script *s, const char *command)
{
    bool is_ctl = strcmp(command, "ctl") == 0;
    put(s, "    if [[ $words[2] == ");
    put(s, command);
    put(s, " ]] && (( CURRENT > 2 )); then\n");
    if (oribi__takes_options(command)) {
        put(s, "        more=( \\\n");
        oribi__each_flag(s, command, put_zsh_flag);
        put(s, "        )\n    fi\n");
        return;
    }
    if (is_ctl)
        put_zsh_commands(s);
    put(s, "        _arguments \\\n");
    oribi__each_flag(s, command, put_zsh_flag);
    put(s, is_ctl ? "        '1:word:' '2:command:{_describe command commands}' '3:number:'\n"
                  : "        '1:word:' '*:file:_files'\n");
    put(s, "        return\n"
           "    fi\n");
}

void oribi__put_zsh(struct oribi__script *s)
{
    put(s, "#compdef ");
    put(s, s->program);
    put(s, "\n_");
    put_identifier(s);
    put(s, "() {\n"
           "    local -a more\n");
    for (size_t i = 0; i < ORIBI__SUBCOMMANDS; i++)
        put_zsh_subcommand(s, oribi__subcommands[i].word);
    put(s, "    _arguments $more \\\n");
    oribi__each_option(s, put_zsh_option);
    put(s, "        '1:application:{_alternative \"commands:command:(");
    oribi__put_subcommands(s);
    put(s, ")\" \"files:application:_files\"}' '*:application:_files'\n"
           "}\n"
           "if [[ $funcstack[1] == _");
    put_identifier(s);
    put(s, " ]]; then _");
    put_identifier(s);
    put(s, " \"$@\"; else compdef _");
    put_identifier(s);
    put(s, " ");
    put(s, s->program);
    put(s, "; fi\n");
}
