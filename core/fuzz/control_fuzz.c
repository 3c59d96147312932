/* The control socket's client: what an operator writes behind `ctl`, and what a server answers. Both are the input;
 * words of the command line end at line ends. (What clients send to the server is part of the target `supervision`.)
 *
 * Holds for every input: a command line is refused in one line or becomes a command that the server knows; an answer
 * keeps every byte behind its first word. */
#include "oribi/supervisor/control_client.h"

#include "ours.h"

#include "oribi/command/control_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS_MAX = 8 };

static bool is_known(const char *command_text)
{
    static const char *const known[] = {"status",  "status json", "stacks",   "stacks json", "reload",
                                        "upgrade", "stop",        "stop now", "reopen"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(command_text, known[i]) == 0)
            return true;
    char *end;
    long long interval_ms;
    int sort;
    if (sscanf(command_text, "top %lld %d", &interval_ms, &sort) == 2)
        return interval_ms >= 100 && interval_ms <= 3600 * 1000 && sort >= 0;
    if (strncmp(command_text, "workers ", 8) != 0)
        return false;
    (void)strtol(command_text + 8, &end, 10);
    return end > command_text + 8 && *end == '\0';
}

static void check_line(const char *const *words, size_t count)
{
    struct oribi_options options;
    char line[ORIBI_CONTROL_COMMAND_CAP];
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    oribi_options_init(&options);
    int code = oribi_control_command_parse(&options, count, words, line, error);
    if (code < 0)
        expect(code == ORIBI_EINVAL && error[0] && strlen(error) < sizeof(error) && !strchr(error, '\n'));
    else
        expect(options.help || is_known(line));
    oribi_options_deinit(&options);
}

static void check_answer(const char *text, size_t n)
{
    struct oribi_buf out = {0};
    static const char before[] = "before";
    (void)oribi_buf_try_append(&out, before, sizeof(before) - 1);
    expect(oribi_buf_try_append(&out, text, n) == 0);
    int code = oribi__control_judge(&out, sizeof(before) - 1, "ctl.sock");
    size_t cut = code == 0 ? 3 : code == 1 ? 6 : 0;
    expect(code >= 0 && code <= 2 && out.len == sizeof(before) - 1 + n - cut);
    expect(memcmp(out.p, before, sizeof(before) - 1) == 0);
    expect(memcmp(out.p + sizeof(before) - 1, text + cut, n - cut) == 0);
    oribi_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *words[WORDS_MAX];
    size_t count = 0;
    if (size < 1 || size > 4096)
        return 0;
    check_answer((const char *)data, size);
    char *text = strndup((const char *)data, size);
    char *rest = text;
    while (rest && count < WORDS_MAX)
        words[count++] = strsep(&rest, "\n");
    check_line(words, count);
    free(text);
    return 0;
}
