/* Scripts for three shells, from the same two tables. Each has the same three questions: is ctl the first word, which
 * option stands before, what may it be followed by. */
#include "oribi/process/completion.h"

#include "config/options_private.h"
#include "process/control_words.h"
#include "process/top.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What may follow an option. */
enum value { VALUE_NONE, VALUE_ANY, VALUE_FILE, VALUE_FOLDER, VALUE_WORDS };

struct script {
    struct oribi_buf *out;
    enum oribi_option_lang lang;
    const char *program;
};

static bool is_among(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static enum value value_of(const struct oribi_option *option)
{
    static const char *const files[] = {"access_log", "config", "control", "error_log", "pid_file"};
    static const char *const folders[] = {"chdir", "include", "sendfile_root"};
    if (option->type == ORIBI_OPTION_BOOL)
        return VALUE_NONE;
    if (option->choices)
        return VALUE_WORDS;
    if (is_among(option->name, files, sizeof(files) / sizeof(files[0])))
        return VALUE_FILE;
    return is_among(option->name, folders, sizeof(folders) / sizeof(folders[0])) ? VALUE_FOLDER : VALUE_ANY;
}

static bool is_switch(const struct oribi_option *option)
{
    return option->type == ORIBI_OPTION_BOOL && option->group != ORIBI_GROUP_COMMAND;
}

/* --- writing --- */

static void put(struct script *s, const char *text)
{
    oribi_buf_append(s->out, text, strlen(text));
}

static void put_option(struct script *s, const char *before, const char *name)
{
    put(s, before);
    for (; *name; name++)
        oribi_buf_append(s->out, *name == '_' ? "-" : name, 1);
}

/* The program's name as a part of a function's: oribi_psgi. */
static void put_identifier(struct script *s)
{
    for (const char *p = s->program; *p; p++)
        oribi_buf_append(s->out, *p == '-' ? "_" : p, 1);
}

/* Inside of single quotes, where `special` have a backslash in front. The quotes of the shells differ in how they are
 * left, so an apostrophe becomes a typographic one. */
static void put_quoted(struct script *s, const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text))
            put(s, "\\");
        if (*text == '\'')
            put(s, "\xe2\x80\x99");
        else
            oribi_buf_append(s->out, text, 1);
    }
}

typedef void (*option_fn)(struct script *s, const struct oribi_option *option);

static void each_option(struct script *s, option_fn fn)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++)
        if (table[i].lang & s->lang)
            fn(s, &table[i]);
}

static void put_sort_words(struct script *s)
{
    for (int i = 0; i < ORIBI__TOP_SORTS; i++) {
        put(s, i ? " " : "");
        put(s, oribi__top_sort_name(i));
    }
}

/* --- bash --- */

static void put_bash_names(struct script *s, const struct oribi_option *option)
{
    if (option->short_flag)
        put_option(s, " -", option->short_flag);
    put_option(s, " --", option->name);
    if (is_switch(option))
        put_option(s, " --no-", option->name);
}

/* A pattern of case for each option with a value. */
static void put_bash_case(struct script *s, const struct oribi_option *option)
{
    enum value value = value_of(option);
    if (value == VALUE_NONE)
        return;
    put(s, "        ");
    if (option->short_flag)
        put_option(s, "-", option->short_flag);
    put_option(s, option->short_flag ? "|--" : "--", option->name);
    switch (value) {
    case VALUE_FILE:
        put(s, ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
        break;
    case VALUE_FOLDER:
        put(s, ") COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n");
        break;
    case VALUE_WORDS:
        put(s, ") COMPREPLY=($(compgen -W '");
        put(s, option->choices);
        put(s, "' -- \"$word\")); return ;;\n");
        break;
    default:
        put(s, ") return ;;\n");
    }
}

static void put_subcommands(struct script *s)
{
    for (size_t i = 0; i < ORIBI__SUBCOMMANDS; i++) {
        put(s, i ? " " : "");
        put(s, oribi__subcommands[i].word);
    }
}

static void put_bash_ctl(struct script *s)
{
    put(s, "    if [[ ${COMP_WORDS[1]} == ctl && $COMP_CWORD -gt 1 ]]; then\n"
           "        case $before in\n"
           "        --control|-C|--config) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
           "        --chdir) COMPREPLY=($(compgen -d -- \"$word\")) ;;\n"
           "        --sort) COMPREPLY=($(compgen -W '");
    put_sort_words(s);
    put(s, "' -- \"$word\")) ;;\n"
           "        --interval) ;;\n"
           "        *) COMPREPLY=($(compgen -W '--control --config --chdir --interval --sort --json --now --help");
    for (size_t i = 0; i < ORIBI__CONTROL_WORDS; i++) {
        put(s, " ");
        put(s, oribi__control_words[i].word);
    }
    put(s, "' -- \"$word\")) ;;\n"
           "        esac\n"
           "        return\n"
           "    fi\n");
}

static void put_bash(struct script *s)
{
    put(s, "_");
    put_identifier(s);
    put(s, "() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    COMPREPLY=()\n");
    put_bash_ctl(s);
    put(s, "    case $before in\n");
    each_option(s, put_bash_case);
    put(s, "    esac\n"
           "    if [[ $word == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W '");
    each_option(s, put_bash_names);
    put(s,
        "' -- \"$word\"))\n"
        "        [[ ${COMP_WORDS[1]} == check ]] && COMPREPLY+=($(compgen -W '--json --strict' -- \"$word\"))\n"
        "        [[ ${COMP_WORDS[1]} == import ]] && COMPREPLY=($(compgen -W '--output --force --help' -- \"$word\"))\n"
        "    else\n"
        "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
        "        [[ $COMP_CWORD -eq 1 ]] && COMPREPLY+=($(compgen -W '");
    put_subcommands(s);
    put(s, "' -- \"$word\"))\n"
           "    fi\n"
           "}\n"
           "complete -o filenames -F _");
    put_identifier(s);
    put(s, " ");
    put(s, s->program);
    put(s, "\n");
}

/* --- zsh --- */

static const char zsh_special[] = "[]:\\";

static void put_zsh_value(struct script *s, const struct oribi_option *option)
{
    enum value value = value_of(option);
    if (value == VALUE_NONE)
        return;
    put(s, ":");
    put_quoted(s, option->argument ? option->argument : "value", zsh_special);
    put(s, value == VALUE_FILE ? ":_files" : value == VALUE_FOLDER ? ":_files -/" : value == VALUE_ANY ? ":" : ":(");
    if (value == VALUE_WORDS) {
        put(s, option->choices);
        put(s, ")");
    }
}

/* One specification of _arguments; a list may come again, which a star says. */
static void put_zsh_spec(struct script *s, const struct oribi_option *option, const char *before, const char *name)
{
    put(s, option->type == ORIBI_OPTION_LIST ? "        '*" : "        '");
    put_option(s, before, name);
    put(s, "[");
    put_quoted(s, option->help, zsh_special);
    put(s, "]");
    put_zsh_value(s, option);
    put(s, "' \\\n");
}

static void put_zsh_option(struct script *s, const struct oribi_option *option)
{
    if (option->short_flag)
        put_zsh_spec(s, option, "-", option->short_flag);
    put_zsh_spec(s, option, "--", option->name);
    if (is_switch(option))
        put_zsh_spec(s, option, "--no-", option->name);
}

static void put_zsh(struct script *s)
{
    put(s, "#compdef ");
    put(s, s->program);
    put(s, "\n_");
    put_identifier(s);
    put(s, "() {\n"
           "    if [[ $words[2] == ctl ]] && (( CURRENT > 2 )); then\n"
           "        local -a commands=(\n");
    for (size_t i = 0; i < ORIBI__CONTROL_WORDS; i++) {
        put(s, "            '");
        put(s, oribi__control_words[i].word);
        put(s, ":");
        put_quoted(s, oribi__control_words[i].help, zsh_special);
        put(s, "'\n");
    }
    put(s, "        )\n"
           "        _arguments \\\n"
           "            '1:word:' '2:command:{_describe command commands}' '3:number:' \\\n"
           "            '--control[control socket of the server]:PATH:_files' \\\n"
           "            '(-C --config)'{-C,--config}'[configuration file]:FILE:_files' \\\n"
           "            '--chdir[directory to change to first]:DIR:_files -/' \\\n"
           "            '--interval[top\\: the time between two looks]:TIME:' \\\n"
           "            '--sort[top\\: the order]:ORDER:(");
    put_sort_words(s);
    put(s, ")' \\\n"
           "            '--json[as JSON]' '--now[stop at once]' '--help[print the help]'\n"
           "        return\n"
           "    fi\n"
           "    _arguments \\\n");
    each_option(s, put_zsh_option);
    put(s, "        '--json[check\\: as JSON]' '--strict[check\\: risks make the exit code 1]' \\\n"
           "        '--output[import\\: file to write]:FILE:_files' '--force[import\\: overwrite it]' \\\n"
           "        '*:application:{_alternative \"commands:command:(");
    put_subcommands(s);
    put(s, ")\" \"files:application:_files\"}'\n"
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

/* --- fish --- */

static const char fish_special[] = "\\";

static void put_fish_begin(struct script *s, bool is_ctl)
{
    put(s, "complete -c ");
    put(s, s->program);
    put(s, is_ctl ? " -n '__fish_seen_subcommand_from ctl'" : " -n 'not __fish_seen_subcommand_from ctl'");
}

static void put_fish_help(struct script *s, const char *help)
{
    put(s, " -d '");
    put_quoted(s, help, fish_special);
    put(s, "'\n");
}

static void put_fish_option(struct script *s, const struct oribi_option *option)
{
    enum value value = value_of(option);
    put_fish_begin(s, false);
    if (option->short_flag)
        put_option(s, " -s ", option->short_flag);
    put_option(s, " -l ", option->name);
    if (value == VALUE_FILE)
        put(s, " -r -F");
    else if (value == VALUE_FOLDER)
        put(s, " -x -a '(__fish_complete_directories)'");
    else if (value != VALUE_NONE)
        put(s, " -x");
    if (value == VALUE_WORDS) {
        put(s, " -a '");
        put(s, option->choices);
        put(s, "'");
    }
    put_fish_help(s, option->help);
    if (is_switch(option)) {
        put_fish_begin(s, false);
        put_option(s, " -l no-", option->name);
        put_fish_help(s, option->help);
    }
}

static void put_fish(struct script *s)
{
    for (size_t i = 0; i < ORIBI__SUBCOMMANDS; i++) {
        put(s, "complete -c ");
        put(s, s->program);
        put(s, " -n __fish_use_subcommand -a ");
        put(s, oribi__subcommands[i].word);
        put_fish_help(s, oribi__subcommands[i].help);
    }
    put(s, "complete -c ");
    put(s, s->program);
    put(s, " -n '__fish_seen_subcommand_from check' -l json -d 'as JSON'\n");
    put(s, "complete -c ");
    put(s, s->program);
    put(s, " -n '__fish_seen_subcommand_from check' -l strict -d 'risks make the exit code 1'\n");
    put(s, "complete -c ");
    put(s, s->program);
    put(s, " -n '__fish_seen_subcommand_from import' -s o -l output -r -F -d 'file to write'\n");
    put(s, "complete -c ");
    put(s, s->program);
    put(s, " -n '__fish_seen_subcommand_from import' -l force -d 'overwrite it'\n");
    for (size_t i = 0; i < ORIBI__CONTROL_WORDS; i++) {
        put_fish_begin(s, true);
        put(s, " -f -a ");
        put(s, oribi__control_words[i].word);
        put_fish_help(s, oribi__control_words[i].help);
    }
    put_fish_begin(s, true);
    put(s, " -l control -r -F -d 'control socket of the server'\n");
    put_fish_begin(s, true);
    put(s, " -s C -l config -r -F -d 'configuration file'\n");
    put_fish_begin(s, true);
    put(s, " -l chdir -x -a '(__fish_complete_directories)' -d 'directory to change to first'\n");
    put_fish_begin(s, true);
    put(s, " -l interval -x -d 'top: the time between two looks'\n");
    put_fish_begin(s, true);
    put(s, " -l sort -x -a '");
    put_sort_words(s);
    put(s, "' -d 'top: the order'\n");
    put_fish_begin(s, true);
    put(s, " -l json -d 'as JSON'\n");
    put_fish_begin(s, true);
    put(s, " -l now -d 'stop at once'\n");
    each_option(s, put_fish_option);
}

int oribi_completion(struct oribi_buf *out, enum oribi_option_lang lang, const char *program, const char *shell,
                     char *error)
{
    static const struct {
        const char *name;
        void (*put)(struct script *s);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    struct script script = {.out = out, .lang = lang, .program = program};
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].put(&script);
            return 0;
        }
    }
    return oribi__refuse(error, "completion is for bash, zsh or fish, not '%.40s'", shell);
}
