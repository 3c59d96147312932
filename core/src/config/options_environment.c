/* Variables of the environment that set options. They are weaker than the configuration file: a variable belongs to a
 * machine or a container, the file to the application. */
#include "config/options_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
