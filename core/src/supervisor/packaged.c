/* "@board": where the Debian packages have the files of a server, as their unit (packaging/debian) names them. */
#include "oribi/supervisor/packaged.h"

#include "oribi/config/options_names.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os_process.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NAME_CAP = 200,              /* of a name; systemd's unit names end at 255 bytes */
    ENVIRONMENT_CAP = 32 * 1024, /* of what systemctl prints; more of it is not taken over */
    SYSTEMCTL_TIMEOUT_MS = 10000,
};

bool oribi__packaged_is_name(const char *word)
{
    return word[0] == '@';
}

/* The characters that systemd allows in the name of an instance, without those of paths. */
static int check_name(const char *word, char *error)
{
    size_t n = strlen(word + 1);
    size_t good = strspn(word + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.-");
    if (n == 0 || n != good || n >= NAME_CAP || word[1] == '.')
        return oribi__refuse(error, "%.60s: a server of the package is @NAME, as in oribi@NAME.service", word);
    return 0;
}

static const char *program(const struct oribi_options *options)
{
    return options->lang == ORIBI_LANG_PERL ? "oribi-psgi" : "oribi";
}

static int set(struct oribi_options *options, const char *name, const char *value, char *error)
{
    return oribi_options_set(options, name, value, error);
}

int oribi__packaged_control(struct oribi_options *options, const char *word, char *error)
{
    char path[PATH_MAX];
    int code = check_name(word, error);
    if (code < 0)
        return code;
    (void)snprintf(path, sizeof(path), "/run/%s/%s/control", program(options), word + 1); /* the name is short */
    return set(options, "--control", path, error);
}

/* One variable of the text, without its quotes and backslashes, into `dst`, which is as long as the text; returns
 * what follows it. */
static const char *read_word(const char *p, char *dst)
{
    char quote = '\0';
    for (; *p && (quote || (*p != ' ' && *p != '\n')); p++) {
        if (quote ? *p == quote : (*p == '"' || *p == '\''))
            quote = quote ? '\0' : *p;
        else if (*p == '\\' && p[1])
            *dst++ = *++p;
        else
            *dst++ = *p;
    }
    *dst = '\0';
    return p + strspn(p, " \n");
}

void oribi__packaged_take_environment(const char *text)
{
    char *word = oribi_mem_alloc(strlen(text) + 1, 1);
    text += strspn(text, " \n");
    while (*text) {
        text = read_word(text, word);
        char *equals = strchr(word, '=');
        if (!equals || equals == word)
            continue;
        *equals = '\0';
        (void)setenv(word, equals + 1, 1); /* without memory the check sees less */
    }
    oribi_mem_free(word);
}

/* Drop-ins of the operator count, where systemd is there to be asked. */
static bool ask_systemd(const struct oribi_options *options, const char *name)
{
    char unit[NAME_CAP + 32];
    char ignored[ORIBI_ERROR_TEXT_CAP]; /* without systemd it is the package's */
    char *argv[] = {"systemctl", "show", "--property=Environment", "--value", unit, NULL};
    struct oribi_command command = {
        .argv = argv, .input_fd = -1, .timeout_ms = SYSTEMCTL_TIMEOUT_MS, .cap = ENVIRONMENT_CAP - 1};
    if (access("/run/systemd/system", F_OK) != 0)
        return false;
    (void)snprintf(unit, sizeof(unit), "%s@%s.service", program(options), name); /* the name is short */
    command.output = oribi_mem_alloc(ENVIRONMENT_CAP, 1);
    bool told = oribi_os_run_command(&command, ignored) == 0;
    if (told) {
        command.output[command.len] = '\0';
        oribi__packaged_take_environment(command.output);
    }
    oribi_mem_free(command.output);
    return told;
}

static const struct {
    const char *variable;
    const char *above;
} folders[] = {
    {"RUNTIME_DIRECTORY", "/run"}, {"STATE_DIRECTORY", "/var/lib"}, {"LOGS_DIRECTORY", "/var/log"}, {NULL, NULL}};

static void name_folders(const struct oribi_options *options, const char *name)
{
    char path[PATH_MAX];
    for (size_t i = 0; folders[i].variable; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s/%s", folders[i].above, program(options), name); /* short */
        (void)setenv(folders[i].variable, path, 1); /* without memory the check sees less */
    }
}

bool oribi__packaged_makes(const char *folder)
{
    for (size_t i = 0; folders[i].variable; i++) {
        const char *made = getenv(folders[i].variable);
        if (made && strcmp(made, folder) == 0)
            return true;
    }
    return false;
}

bool oribi__packaged_is_entered(const struct oribi_options *options)
{
    const char *folder = getenv("RUNTIME_DIRECTORY");
    size_t n = folder ? strlen(folder) : 0;
    return n > 0 && options->control && strncmp(options->control, folder, n) == 0 && options->control[n] == '/' &&
           options->config && strncmp(options->config, "/etc/oribi", 10) == 0;
}

int oribi__packaged_enter(struct oribi_options *options, const char *word, char *error)
{
    char path[PATH_MAX];
    bool perl = options->lang == ORIBI_LANG_PERL;
    int code = oribi__packaged_control(options, word, error);
    if (code < 0)
        return code;
    (void)snprintf(path, sizeof(path), "/etc/%s/%s.%s", program(options), word + 1, perl ? "pl" : "rb");
    if (access(path, F_OK) != 0)
        return oribi__refuse(error, "%.60s: there is no %.200s", word, path);
    if (!ask_systemd(options, word + 1))
        (void)setenv(perl ? "PLACK_ENV" : "RACK_ENV", "production", 1);
    if ((code = set(options, "--config", path, error)) < 0)
        return code;
    name_folders(options, word + 1);
    (void)snprintf(path, sizeof(path), "/var/lib/%s/%s", program(options), word + 1);
    (void)!chdir(path); /* systemd makes it at the first start; the file's own chdir is seen from there */
    return 0;
}
