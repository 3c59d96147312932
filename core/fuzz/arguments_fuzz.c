/* Words of the configuration file with any arguments: what is accepted is printed as a word of one line in both
 * languages, what is refused says why in one line.
 *
 * The input is texts, separated by NUL: the option by its number, then for each argument a text whose first byte tells
 * its kind: a digit is its place, `k` a keyword with its value behind an equals sign, `h` the same with a key behind a
 * colon, anything else a value that is no text. */
#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/config/arguments.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_CAP = 4096, ARGUMENTS_MAX = 32, LINE_CAP = 64 * 1024 };

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static const struct oribi_option *composed(uint8_t number)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = number % count;; i = (i + 1) % count)
        if (table[i].composed.form)
            return &table[i];
}

/* Reads `text`, which it cuts into its parts. */
static struct oribi_argument argument_of(char *text)
{
    struct oribi_argument argument = {0};
    char kind = *text;
    if (kind >= '0' && kind <= '9') {
        argument.place = (uint32_t)(kind - '0');
        argument.text = text + 1;
    } else if (kind == 'k' || kind == 'h') {
        char *equals = strchr(text, '=');
        argument.keyword = text + 1;
        argument.text = equals ? equals + 1 : NULL;
        char *colon = equals && kind == 'h' ? strchr(equals, ':') : NULL;
        if (equals)
            *equals = '\0';
        if (colon) {
            *colon = '\0';
            argument.key = equals + 1;
            argument.text = colon + 1;
        }
    }
    return argument;
}

static void check_print(const struct oribi_option *option, const char *line)
{
    static const enum oribi_option_lang langs[] = {ORIBI_LANG_RUBY, ORIBI_LANG_PERL};
    for (size_t i = 0; i < 2; i++) {
        struct oribi_buf out = {0};
        oribi_option_print_word(&out, option, line, langs[i]);
        expect(out.len > strlen(option->name) && !memchr(out.p, '\n', out.len) && !memchr(out.p, '\0', out.len));
        oribi_buf_deinit(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char input[INPUT_CAP + 1];
    static char line[LINE_CAP];
    struct oribi_argument arguments[ARGUMENTS_MAX];
    struct oribi_options options;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    size_t count = 0;
    if (size < 2 || size > INPUT_CAP)
        return 0;
    memcpy(input, data, size);
    input[size] = '\0';
    const struct oribi_option *option = composed(data[0]);
    for (char *p = input + 1; p < input + size && count < ARGUMENTS_MAX;) {
        char *next = p + strlen(p) + 1;
        arguments[count++] = argument_of(p);
        p = next;
    }
    oribi_options_init(&options);
    (void)oribi_option_places(option, count > 1 ? arguments[1].text : NULL, count);
    int code = oribi_options_set_arguments(&options, ORIBI_FROM_FILE, option->name, arguments, count, error);
    if (code < 0)
        expect(code == ORIBI_EINVAL && error[0] && strlen(error) < sizeof(error) && !strchr(error, '\n'));
    else if (oribi_options_get(&options, option, line, sizeof(line)) < sizeof(line))
        check_print(option, line);
    oribi_options_deinit(&options);
    return 0;
}
