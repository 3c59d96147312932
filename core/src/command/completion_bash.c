/* The script for bash: a function that fills COMPREPLY. */
#include "command/completion_script.h"

#include "oribi/config/options_names.h"
#include "oribi/supervisor/control_words.h"

/* A call of the function that adds what compgen finds. */
static void put_bash_offer(struct oribi__script *s, const char *indent, const char *what)
{
    put(s, indent);
    put(s, "_");
    put_identifier(s);
    put(s, "_offer ");
    put(s, what);
}

static void put_bash_names(struct oribi__script *s, const struct oribi_option *option)
{
    if (option->short_flag)
        put_option(s, " -", option->short_flag);
    put_option(s, " --", option->name);
    if (oribi__is_switch(option))
        put_option(s, " --no-", option->name);
}

static void put_bash_flag(struct oribi__script *s, const struct oribi__flag *flag)
{
    put_option(s, " --", flag->name);
}

/* A pattern of case, for what takes a value. */
static void put_bash_case(struct oribi__script *s, const char *short_flag, const char *name,
                          struct oribi__values values)
{
    static const char *const actions[] = {[ORIBI__VALUE_FILE] = "-f",
                                          [ORIBI__VALUE_FOLDER] = "-d",
                                          [ORIBI__VALUE_USER] = "-u",
                                          [ORIBI__VALUE_GROUP] = "-g"};
    if (values.kind == ORIBI__VALUE_NONE)
        return;
    put(s, "        ");
    if (short_flag)
        put_option(s, "-", short_flag);
    put_option(s, short_flag ? "|--" : "--", name);
    put(s, ")");
    if (values.kind == ORIBI__VALUE_WORDS || values.words) {
        put_bash_offer(s, " ", "-W '");
        oribi__put_words(s, values);
        put(s, "';");
    }
    if (values.kind != ORIBI__VALUE_WORDS && values.kind != ORIBI__VALUE_ANY) {
        put_bash_offer(s, " ", actions[values.kind]);
        put(s, ";");
    }
    put(s, " return ;;\n");
}

static void put_bash_option_case(struct oribi__script *s, const struct oribi_option *option)
{
    put_bash_case(s, option->short_flag, option->name, oribi__values_of(option));
}

static void put_bash_flag_case(struct oribi__script *s, const struct oribi__flag *flag)
{
    put_bash_case(s, flag->short_flag, flag->name, flag->values);
}

static void put_bash_control_words(struct oribi__script *s)
{
    put(s, "        local earlier=\" ${COMP_WORDS[*]:2:COMP_CWORD-2} \"\n"
           "        [[ $earlier =~ \\ (");
    oribi__put_control_words(s, "|");
    put(s, ")\\  ]] ||");
    put_bash_offer(s, " ", "-W '");
    oribi__put_control_words(s, " ");
    put(s, "'\n");
}

/* A sub-command that takes its own flags alone ends the function. */
static void put_bash_subcommand(struct oribi__script *s, const char *command)
{
    put(s, "    if [[ ${COMP_WORDS[1]} == ");
    put(s, command);
    put(s, " && $COMP_CWORD -gt 1 ]]; then\n");
    if (oribi__takes_options(command)) {
        put_bash_offer(s, "        [[ $word != -* ]] || ", "-W '");
        oribi__each_flag(s, command, put_bash_flag);
        put(s, "'\n    fi\n");
        return;
    }
    put(s, "        case $before in\n");
    oribi__each_flag(s, command, put_bash_flag_case);
    put(s, "        esac\n");
    put_bash_offer(s, "        [[ $word != -* ]] || ", "-W '");
    oribi__each_flag(s, command, put_bash_flag);
    put(s, "'\n");
    if (strcmp(command, "ctl") == 0)
        put_bash_control_words(s);
    else
        put_bash_offer(s, "        [[ $word == -* ]] || ", "-f\n");
    put(s, "        return\n"
           "    fi\n");
}

/* Where = is among COMP_WORDBREAKS, --name=value is three words. */
void oribi__put_bash(struct oribi__script *s)
{
    put(s, "_");
    put_identifier(s);
    put(s, "_offer() {\n"
           "    local line\n"
           "    while IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen \"$@\" -- \"$word\")\n"
           "}\n"
           "_");
    put_identifier(s);
    put(s, "() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    COMPREPLY=()\n"
           "    if [[ $word == = ]]; then word=\n"
           "    elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}\n"
           "    fi\n");
    for (size_t i = 0; i < ORIBI__SUBCOMMANDS; i++)
        put_bash_subcommand(s, oribi__subcommands[i].word);
    put(s, "    case $before in\n");
    oribi__each_option(s, put_bash_option_case);
    put(s, "    esac\n"
           "    if [[ $word == -* ]]; then\n");
    put_bash_offer(s, "        ", "-W '");
    oribi__each_option(s, put_bash_names);
    put(s, "'\n"
           "    else\n");
    put_bash_offer(s, "        ", "-f\n");
    put_bash_offer(s, "        [[ $COMP_CWORD -ne 1 ]] || ", "-W '");
    oribi__put_subcommands(s);
    put(s, "'\n"
           "    fi\n"
           "}\n"
           "complete -o filenames -F _");
    put_identifier(s);
    put(s, " ");
    put(s, s->program);
    put(s, "\n");
}
