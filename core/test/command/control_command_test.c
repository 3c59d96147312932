/* The words of `ctl`. What the server answers is tested with a server, in generation_test.c and e2e. */
#include "command/control_command.c"

#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];
static char command[ORIBI_CONTROL_COMMAND_CAP];

#define PARSE(options, ...)                                                                                            \
    oribi_control_command_parse((options), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),                \
                                (const char *const[]){__VA_ARGS__}, command, error)

/* The command that the words become, or their error. */
#define SAID(...) said((const char *const[]){__VA_ARGS__, NULL})

static const char *said(const char *const *words)
{
    struct oribi_options options;
    size_t count = 0;
    while (words[count])
        count++;
    oribi_options_init(&options);
    int code = oribi_control_command_parse(&options, count, words, command, error);
    oribi_options_deinit(&options);
    return code < 0 ? error : command;
}

static void test_words_become_the_servers_commands(void)
{
    is_str(SAID("status"), "status");
    is_str(SAID("status", "--json"), "status json");
    is_str(SAID("--json", "status"), "status json");
    is_str(SAID("top"), "top 1000 0");
    is_str(SAID("top", "--interval", "100ms", "--sort=memory"), "top 100 4");
    is_str(SAID("--sort", "worker", "top", "--interval=1h"), "top 3600000 6");
    is_str(SAID("reload"), "reload");
    is_str(SAID("upgrade"), "upgrade");
    is_str(SAID("stop"), "stop");
    is_str(SAID("stop", "--now"), "stop now");
    is_str(SAID("reopen"), "reopen");
    is_str(SAID("workers", "+1"), "workers +1");
    is_str(SAID("workers", "-2"), "workers -2");
    is_str(SAID("workers", "4"), "workers 4");
    is_str(SAID("workers", "-1234567"), "workers -1234567");
}

static void test_options_stand_anywhere(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "--control", "/run/a", "workers", "--config=x.rb", "-1", "--chdir", "/srv"), 0);
    is_str(command, "workers -1");
    is_str(options.control, "/run/a");
    is_str(options.config, "x.rb");
    is_str(options.chdir, "/srv");
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "-C", "y.rb", "status"), 0);
    is_str(options.config, "y.rb");
    oribi_options_deinit(&options);
}

static void test_help_needs_no_command(void)
{
    struct oribi_options options;
    struct oribi_buf out = {0};
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "-h"), 0);
    ok(options.help);
    oribi_options_deinit(&options);
    oribi_control_command_help(&out, "oribi-psgi");
    ok(oribi_buf_try_append(&out, "", 1) == 0 && strncmp(out.p, "Usage: oribi-psgi ctl ", 22) == 0);
    for (size_t i = 0; i < ORIBI__CONTROL_WORDS; i++)
        ok_named(strstr(out.p, oribi__control_words[i].word), "help says %s", oribi__control_words[i].word);
    oribi_buf_deinit(&out);
}

static void test_mistakes_are_told_in_a_line(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(oribi_control_command_parse(&options, 0, NULL, command, error), ORIBI_EINVAL);
    is_str(error,
           "ctl needs a command: status, top, stacks, sockets, reload, upgrade, stop, workers, certificates or reopen");
    oribi_options_deinit(&options);
    is_str(SAID("relaod"), "ctl: no command relaod; did you mean reload?");
    is_str(SAID("restart-everything"),
           "ctl: no command restart-everything: status, top, stacks, sockets, reload, upgrade, "
           "stop, workers, certificates or reopen");
    is_str(SAID("reload", "--json"), "ctl: reload takes no --json");
    is_str(SAID("status", "--now"), "ctl: status takes no --now");
    is_str(SAID("reload", "now"), "ctl: reload takes no argument");
    is_str(SAID("workers", "1", "2"), "ctl: one word too many: 2");
    is_str(SAID("workers"), "ctl: workers needs a number: +1, -1 or 4");
    is_str(SAID("workers", "many"), "ctl: workers needs a number: +1, -1 or 4");
    is_str(SAID("workers", "+"), "ctl: workers needs a number: +1, -1 or 4");
    is_str(SAID("workers", "123456789"), "ctl: workers needs a number: +1, -1 or 4");
    is_str(SAID("status", "--workers", "4"), "ctl: --workers is not for this: --control, --config, --chdir, --help");
    is_str(SAID("status", "--bogus"), "ctl: --bogus is not for this: --control, --config, --chdir, --help");
    is_str(SAID("status", "-qx"), "ctl: what does -qx mean? oribi ctl --help");
    is_str(SAID("top", "--json"), "ctl: top takes no --json");
    is_str(SAID("top", "now"), "ctl: top takes no argument");
    is_str(SAID("status", "--interval", "1s"), "ctl: status takes no --interval");
    is_str(SAID("reload", "--sort=age"), "ctl: reload takes no --sort");
    is_str(SAID("top", "--interval", "99ms"), "ctl: --interval is a time from 100ms to 1h, not '99ms'");
    is_str(SAID("top", "--interval", "3601s"), "ctl: --interval is a time from 100ms to 1h, not '3601s'");
    is_str(SAID("top", "--interval"), "ctl: --interval is a time from 100ms to 1h, not ''");
    is_str(SAID("top", "--sort", "size"),
           "ctl: --sort is age, state, requests, rate, memory, cpu or worker, not 'size'");
    is_str(SAID("top", "--sorted"), "ctl: --sorted is not for this: --control, --config, --chdir, --help");
    is_str(SAID("status", "--control"), "--control needs a value");
    is_str(SAID("status", "-C"), "-C needs a value");
}

static void test_a_server_must_be_known(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(oribi_options_set(&options, "chdir", "/nonexistent", error), 0); /* in which no server runs */
    ok_eq(chdir("/"), 0);
    ok_eq(oribi_control_command_run(&options, "status", "oribi"), 2);
    ok_eq(oribi_options_set(&options, "control", "/nonexistent/socket", error), 0);
    ok_eq(oribi_control_command_run(&options, "status", "oribi"), 2);
    oribi_options_deinit(&options);
}

int main(void)
{
    test_words_become_the_servers_commands();
    test_options_stand_anywhere();
    test_help_needs_no_command();
    test_mistakes_are_told_in_a_line();
    test_a_server_must_be_known();
    return done_testing();
}
