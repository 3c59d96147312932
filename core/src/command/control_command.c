/* `ctl`: words of a command line into a line for the control socket, and its answer onto the terminal. */
#include "oribi/command/control_command.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/supervisor/control.h"
#include "oribi/config/options_names.h"
#include "oribi/supervisor/control_client.h"
#include "oribi/supervisor/control_words.h"
#include "oribi/supervisor/packaged.h"
#include "command/control_options.h"
#include "command/top.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct oribi__control_word oribi__control_words[] = {
    {"status", "--json", false, "what every process is doing"},
    {"top", NULL, false, "the same live, on a terminal; else once (--interval 1s, --sort age)"},
    {"stacks", "--json", false, "where every call stands now, in the application's code; the calls go on"},
    {"sockets", "--json", false, "every WebSocket: client, state, age, messages, bytes, path, handler"},
    {"reload", NULL, false, "new code and new configuration, rolling; ends when all workers are replaced"},
    {"upgrade", NULL, false, "a successor on the same sockets; ends when it serves"},
    {"stop", "--now", false, "finish what has begun and end; --now: end"},
    {"workers", NULL, true, "+1, -2 or 4: so many workers more, fewer, or in all"},
    {"certificates", "--renew", false,
     "read the files of certificates anew, after a renewal; connections stay. --renew: get failed ones of acme now"},
    {"reopen", NULL, false, "open log files anew, after a rotation"},
};

enum { NO_SERVER = 2 }; /* exit code */

#define ALL "status, top, stacks, sockets, reload, upgrade, stop, workers, certificates or reopen"

static const char help_begin[] = " [@NAME|--control PATH] COMMAND\n"
                                 "\n"
                                 "Tells a running server what to do, and says how it went.\n"
                                 "\n";

static const char help_end[] =
    "\n"
    "  --interval TIME     top: the time between two looks, from 100ms to 1h [1s]\n"
    "  --sort ORDER        top: age (of the call under way), state, requests, rate, memory, cpu or worker "
    "[age]\n" ORIBI__CONTROL_OPTIONS_HELP
    "The exit code is 0 when it is done, 1 when it was refused or has failed, 2 when nobody answers.\n";

/* From oribi_control_command_parse() to oribi_control_command_run(): interval in ms, order. */
#define TOP_FORMAT "top %lld %d"

/* Options of the server that mean something here as well. */
static const char *const own_options[] = {"control", "config", "chdir", "help"};

static bool is_own(const struct oribi_option *option)
{
    for (size_t i = 0; option && i < sizeof(own_options) / sizeof(own_options[0]); i++)
        if (strcmp(option->name, own_options[i]) == 0)
            return true;
    return false;
}

/* --- reading --- */

static const struct oribi__control_word *find(const char *word, const char **nearest)
{
    uint32_t best = UINT32_MAX;
    for (size_t i = 0; i < ORIBI__CONTROL_WORDS; i++) {
        uint32_t distance = oribi_suggest_distance(word, oribi__control_words[i].word);
        if (distance == 0)
            return &oribi__control_words[i];
        if (distance < best && oribi_suggest_likely(word, distance)) {
            best = distance;
            *nearest = oribi__control_words[i].word;
        }
    }
    return NULL;
}

/* Words of other servers' programs: pumactl, passenger-config, nginx -s. */
static const char *const others[][2] = {
    {"restart", "reload, for new code and settings; upgrade, for a new version of the server too"},
    {"phased-restart", "reload, which replaces worker after worker"},
    {"restart-app", "reload"},
    {"hot-restart", "upgrade"},
    {"refork", "reload, which loads the code anew; the option refork_after forks from a warm worker"},
    {"halt", "stop --now"},
    {"quit", "stop"},
    {"shutdown", "stop"},
    {"stats", "status --json"},
    {"thread-backtraces", "stacks"},
    {"reopen-logs", "reopen"},
    {"start", NULL},
};

static int unknown(const char *word, const char *nearest, char *error)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strcmp(word, others[i][0]) != 0)
            continue;
        if (!others[i][1])
            return oribi__refuse(error, "ctl: no command %s: the server is started without ctl and without a word",
                                 word);
        return oribi__refuse(error, "ctl: no command %s: here it is ctl %s", word, others[i][1]);
    }
    if (nearest)
        return oribi__refuse(error, "ctl: no command %.40s; did you mean %s?", word, nearest);
    return oribi__refuse(error, "ctl: no command %.40s: " ALL, word);
}

int oribi__control_option(struct oribi_options *options, const char *command, size_t argc, const char *const *argv,
                          size_t *at, char *error)
{
    const char *word = argv[*at];
    char name[ORIBI__OPTION_NAME_CAP];
    size_t n = strcspn(word, "=");
    /* A flag stands alone, -C file; what is longer after one dash is none of ours. */
    if (n >= sizeof(name) || (word[1] != '-' && n != 2))
        return oribi__refuse(error, "%s: what does %.40s mean? oribi %s --help", command, word, command);
    memcpy(name, word, n);
    name[n] = '\0';
    const struct oribi_option *option = oribi_options_find(word[1] == '-' ? name + 2 : name + 1);
    if (!is_own(option))
        return oribi__refuse(error, "%s: %.40s is not for this: --control, --config, --chdir, --help", command, name);
    bool has_value = option->type != ORIBI_OPTION_BOOL && word[n] != '=';
    if (has_value && *at + 1 >= argc)
        return oribi__refuse(error, "%s needs a value", name);
    int code = oribi_options_parse(options, has_value ? 2 : 1, argv + *at, error);
    *at += has_value;
    return code;
}

struct words {
    const struct oribi__control_word *command;
    const char *flag;
    const char *argument;
    int64_t interval_ms; /* of top; 0: not given */
    int sort;            /* enum oribi__top_sort; -1: not given */
};

static bool is_number(const char *word)
{
    word += *word == '+' || *word == '-';
    return *word && strspn(word, "0123456789") == strlen(word);
}

static bool is_flag(const char *word)
{
    for (size_t i = 0; i < ORIBI__CONTROL_WORDS; i++)
        if (oribi__control_words[i].flag && strcmp(word, oribi__control_words[i].flag) == 0)
            return true;
    return false;
}

static int read_word(struct oribi_options *options, struct words *words, const char *word, char *error)
{
    const char *nearest = NULL;
    if (oribi__packaged_is_name(word))
        return oribi__packaged_control(options, word, error);
    if (!words->command && strcmp(word, "help") == 0) {
        options->help = true;
    } else if (is_flag(word)) {
        words->flag = word;
    } else if (!words->command) {
        words->command = find(word, &nearest);
        if (!words->command)
            return unknown(word, nearest, error);
    } else if (words->argument) {
        return oribi__refuse(error, "ctl: one word too many: %.40s", word);
    } else {
        words->argument = word;
    }
    return 0;
}

/* The value of an option of top's own at argv[*at], which moves to its last word; NULL: it is none. */
static const char *own_value(const char *name, size_t argc, const char *const *argv, size_t *at)
{
    size_t n = strlen(name);
    const char *word = argv[*at];
    if (strncmp(word, name, n) != 0 || (word[n] != '=' && word[n] != '\0'))
        return NULL;
    if (word[n] == '=')
        return word + n + 1;
    return *at + 1 < argc ? argv[++*at] : "";
}

static int read_interval(struct words *words, const char *value, char *error)
{
    if (!oribi__option_read_time(value, &words->interval_ms) || words->interval_ms < ORIBI__TOP_INTERVAL_MS_MIN ||
        words->interval_ms > ORIBI__TOP_INTERVAL_MS_MAX)
        return oribi__refuse(error, "ctl: --interval is a time from 100ms to 1h, not '%.40s'", value);
    return 0;
}

static int read_sort(struct words *words, const char *value, char *error)
{
    for (int i = 0; i < ORIBI__TOP_SORTS; i++)
        if (strcmp(value, oribi__top_sort_name(i)) == 0)
            words->sort = i;
    if (words->sort < 0 || strcmp(value, oribi__top_sort_name(words->sort)) != 0)
        return oribi__refuse(error, "ctl: --sort is age, state, requests, rate, memory, cpu or worker, not '%.40s'",
                             value);
    return 0;
}

/* 1: the word is no option of top's own. */
static int read_own_option(struct words *words, size_t argc, const char *const *argv, size_t *at, char *error)
{
    const char *value = own_value("--interval", argc, argv, at);
    if (value)
        return read_interval(words, value, error);
    value = own_value("--sort", argc, argv, at);
    return value ? read_sort(words, value, error) : 1;
}

static int check(const struct words *words, char *error)
{
    const struct oribi__control_word *command = words->command;
    if (!command)
        return oribi__refuse(error, "ctl needs a command: " ALL);
    bool is_top = strcmp(command->word, "top") == 0;
    if (!is_top && (words->interval_ms || words->sort >= 0))
        return oribi__refuse(error, "ctl: %s takes no %s", command->word, words->interval_ms ? "--interval" : "--sort");
    if (words->flag && (!command->flag || strcmp(words->flag, command->flag) != 0))
        return oribi__refuse(error, "ctl: %s takes no %s", command->word, words->flag);
    if (words->argument && !command->has_number)
        return oribi__refuse(error, "ctl: %s takes no argument", command->word);
    if (command->has_number && (!words->argument || !is_number(words->argument) || strlen(words->argument) > 8))
        return oribi__refuse(error, "ctl: %s needs a number: +1, -1 or 4", command->word);
    return 0;
}

static bool is_option(const char *word)
{
    return word[0] == '-' && !is_number(word) && !is_flag(word);
}

int oribi_control_command_parse(struct oribi_options *options, size_t argc, const char *const *argv,
                                char command[ORIBI_CONTROL_COMMAND_CAP], char *error)
{
    struct words words = {.sort = -1};
    command[0] = '\0';
    for (size_t i = 0; i < argc; i++) {
        const char *word = argv[i];
        int code = read_own_option(&words, argc, argv, &i, error);
        if (code > 0)
            code = is_option(word) ? oribi__control_option(options, "ctl", argc, argv, &i, error)
                                   : read_word(options, &words, word, error);
        if (code < 0)
            return code;
    }
    if (options->help)
        return 0;
    int code = check(&words, error);
    if (code < 0)
        return code;
    if (strcmp(words.command->word, "top") == 0) {
        (void)snprintf(command, ORIBI_CONTROL_COMMAND_CAP, TOP_FORMAT,
                       (long long)(words.interval_ms ? words.interval_ms : ORIBI__TOP_INTERVAL_MS_DEFAULT),
                       words.sort >= 0 ? words.sort : ORIBI__TOP_BY_AGE); /* fits */
        return 0;
    }
    const char *second = words.flag ? words.flag + 2 : words.argument;
    (void)snprintf(command, ORIBI_CONTROL_COMMAND_CAP, "%s%s%s", words.command->word, second ? " " : "",
                   second ? second : ""); /* short words all of them */
    return 0;
}

/* --- telling --- */

enum { HELP_LINE_CAP = 160, HELP_INDENT = 22 };

/* Without memory the rest is missing. */
static void put(struct oribi_buf *out, const char *text)
{
    (void)oribi_buf_try_append(out, text, strlen(text));
}

void oribi_control_command_help(struct oribi_buf *out, const char *program)
{
    put(out, "Usage: ");
    put(out, program);
    put(out, " ctl");
    put(out, help_begin);
    for (size_t i = 0; i < ORIBI__CONTROL_WORDS; i++) {
        const struct oribi__control_word *command = &oribi__control_words[i];
        char line[HELP_LINE_CAP];
        (void)snprintf(line, sizeof(line), "  %s%s%s%s%s", command->word, command->has_number ? " N" : "",
                       command->flag ? " [" : "", command->flag ? command->flag : "", command->flag ? "]" : "");
        put(out, line);
        (void)snprintf(line, sizeof(line), "%*s%s\n", HELP_INDENT - (int)strlen(line), "", command->help);
        put(out, line);
    }
    put(out, help_end);
}

const char *oribi__control_choose(const struct oribi_options *options, struct oribi__control_found *found,
                                  const char *program, const char *command)
{
    if (options->control && strcmp(options->control, "none") != 0)
        return options->control;
    oribi__control_find(ORIBI__CONTROL_ROOT, options, found);
    if (found->count == 1)
        return found->paths[0];
    if (found->count == 0)
        (void)dprintf(STDERR_FILENO,
                      "%s: %s: no server of this user was started in this folder; go to its folder, or give --control "
                      "PATH\n",
                      program, command);
    else
        (void)dprintf(STDERR_FILENO, "%s: %s: %zu servers run in this folder; give one of\n", program, command,
                      found->count);
    for (size_t i = 0; i < found->count && i < ORIBI__CONTROL_FOUND_MAX; i++)
        (void)dprintf(STDERR_FILENO, "  --control %s\n", found->paths[i]);
    return NULL;
}

int oribi_control_command_run(const struct oribi_options *options, const char *command, const char *program)
{
    struct oribi_buf out = {0};
    struct oribi__control_found found;
    const char *path = oribi__control_choose(options, &found, program, "ctl");
    if (!path)
        return NO_SERVER;
    long long interval_ms;
    int sort;
    if (sscanf(command, TOP_FORMAT, &interval_ms, &sort) == 2)
        return oribi__top_run(path, program, interval_ms, (enum oribi__top_sort)sort);
    int code = oribi_control_request(path, command, &out);
    int fd = code == 0 ? STDOUT_FILENO : STDERR_FILENO;
    if (code != 0)
        (void)dprintf(fd, "%s: ", program);
    (void)oribi_os_write_all(fd, out.p, out.len); /* the reader may be gone */
    if (out.len == 0 || out.p[out.len - 1] != '\n')
        (void)oribi_os_write_all(fd, "\n", 1);
    oribi_buf_deinit(&out);
    return code;
}
