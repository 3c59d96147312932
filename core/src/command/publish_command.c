/* `publish`: a message from a command line or standard input to the subscribers of a channel. */
#include "oribi/command/publish_command.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/config/options_names.h"
#include "oribi/supervisor/publish.h"
#include "command/control_options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NO_SERVER = 2, READ_BYTES = 64 * 1024 };

static const char help[] =
    " [@NAME|--control PATH] [--event NAME] CHANNEL [DATA]\n"
    "\n"
    "Publishes a message to all who have subscribed to the channel. Without DATA\n"
    "standard input is the message, to its end, as it is.\n"
    "\n"
    "  --event NAME        name of the event, for event streams\n"
    "  --binary            the message is bytes, not text; event streams do not get it\n" ORIBI__CONTROL_OPTIONS_HELP
    "The exit code is 0 when the server has it, 1 when it was refused or has failed, 2 when nobody answers.\n";

/* The value of --event at argv[*at], which moves to its last word; NULL: it is another word. */
static const char *event_of(size_t argc, const char *const *argv, size_t *at)
{
    static const char name[] = "--event";
    const char *word = argv[*at];
    size_t n = sizeof(name) - 1;
    if (strncmp(word, name, n) != 0 || (word[n] != '=' && word[n] != '\0'))
        return NULL;
    if (word[n] == '=')
        return word + n + 1;
    return *at + 1 < argc ? argv[++*at] : "";
}

static int take_word(struct oribi_options *options, struct oribi_publish_words *words, const char *word, char *error)
{
    if (!words->channel && oribi__packaged_is_name(word))
        return oribi__packaged_control(options, word, error);
    if (!words->channel)
        words->channel = word;
    else if (!words->data)
        words->data = word;
    else
        return oribi__refuse(error, "publish: one word too many: %.40s", word);
    return 0;
}

int oribi_publish_command_parse(struct oribi_options *options, size_t argc, const char *const *argv,
                                struct oribi_publish_words *words, char *error)
{
    bool ended = false; /* by -- */
    *words = (struct oribi_publish_words){0};
    for (size_t i = 0; i < argc; i++) {
        const char *word = argv[i];
        const char *event = ended ? NULL : event_of(argc, argv, &i);
        int code = 0;
        if (event)
            words->event = event;
        else if (!ended && strcmp(word, "--") == 0)
            ended = true;
        else if (!ended && strcmp(word, "--binary") == 0)
            words->binary = true;
        else if (!ended && word[0] == '-' && word[1])
            code = oribi__control_option(options, "publish", argc, argv, &i, error);
        else
            code = take_word(options, words, word, error);
        if (code < 0)
            return code;
    }
    if (!options->help && !words->channel)
        return oribi__refuse(error, "publish needs the name of a channel");
    return 0;
}

void oribi_publish_command_help(struct oribi_buf *out, const char *program)
{
    oribi_buf_print(out, "Usage: %s publish%s", program, help);
}

/* All of standard input, or one byte more than a message may have. */
static int read_input(struct oribi_buf *data)
{
    while (data->len <= ORIBI_PUBLICATION_DATA_BYTES_MAX) {
        char *room = oribi_buf_try_reserve(data, READ_BYTES);
        ssize_t n = room ? oribi_os_read(STDIN_FILENO, room, READ_BYTES) : ORIBI_ENOMEM;
        if (n <= 0)
            return (int)n;
        data->len += (size_t)n;
    }
    return 0;
}

int oribi_publish_command_run(const struct oribi_options *options, const struct oribi_publish_words *words,
                              const char *program)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi__control_found found;
    struct oribi_buf input = {0};
    const char *path = oribi__control_choose(options, &found, program, "publish");
    if (!path)
        return NO_SERVER;
    int code = words->data ? 0 : read_input(&input);
    if (code < 0) {
        (void)dprintf(STDERR_FILENO, "%s: publish: standard input: %s\n", program, oribi_os_error_text());
    } else {
        struct oribi_publication publication = {.channel = {words->channel, strlen(words->channel)},
                                                .event = {words->event, words->event ? strlen(words->event) : 0},
                                                .data = words->data ? oribi_slice(words->data, strlen(words->data))
                                                                    : oribi_slice(input.p, input.len),
                                                .binary = words->binary};
        code = oribi_publish(path, &publication, error);
        if (code < 0)
            (void)dprintf(STDERR_FILENO, "%s: publish: %s\n", program, error);
    }
    oribi_buf_deinit(&input);
    return code == 0 ? 0 : code == ORIBI_ECLOSED ? NO_SERVER : 1;
}
