/* Everything an operator writes: option values, command lines, addresses, trusted peers. What is accepted must be
 * printed as text that is accepted again and means the same; what is refused must say why in one line.
 *
 * The input is words, separated by newlines; first all of them as a command line, then each pair as name and value,
 * then each as an address. */
#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/config/address.h"
#include "oribi/config/trust.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS_MAX = 16, TEXT_CAP = 8192 };

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check_error(int code, const char *error)
{
    expect(code == ORIBI_EINVAL && error[0] && strlen(error) < ORIBI_ERROR_TEXT_CAP && !strchr(error, '\n'));
}

/* Every option's value, printed and set anew, prints the same. */
static void check_round_trip(const struct oribi_options *options)
{
    static char text[TEXT_CAP];
    static char again[TEXT_CAP];
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    struct oribi_options copy;
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++) {
        bool is_list = table[i].type == ORIBI_OPTION_LIST;
        if (oribi_options_source(options, &table[i]) == ORIBI_FROM_DEFAULT)
            continue;
        size_t n = oribi_options_get(options, &table[i], text, sizeof(text));
        if (n == 0 || n >= sizeof(text) || is_list)
            continue;
        oribi_options_init(&copy);
        expect(oribi_options_set(&copy, table[i].name, text, error) == 0);
        expect(oribi_options_get(&copy, &table[i], again, sizeof(again)) == n && strcmp(text, again) == 0);
        oribi_options_deinit(&copy);
    }
}

static void try_command_line(const char *const *words, size_t count)
{
    struct oribi_options options;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    oribi_options_init(&options);
    (void)oribi_options_set(&options, "workers", "1", error); /* spares counting the CPUs */
    int code = oribi_options_parse(&options, count, words, error);
    if (code < 0)
        check_error(code, error);
    else
        check_round_trip(&options);
    error[0] = '\0';
    code = code < 0 ? 0 : oribi_options_finish(&options, error);
    if (code < 0)
        check_error(code, error);
    oribi_options_deinit(&options);
}

static void try_pair(const char *name, const char *value)
{
    struct oribi_options options;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    oribi_options_init(&options);
    int code = oribi_options_set(&options, name, value, error);
    if (code < 0)
        check_error(code, error);
    else
        check_round_trip(&options);
    oribi_options_deinit(&options);
}

/* The canonical text of an address is an address, and the same one. */
static void try_address(const char *text)
{
    struct oribi_address address;
    struct oribi_address again;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int code = oribi_address_parse(text, &address, error);
    if (code < 0) {
        check_error(code, error);
        return;
    }
    expect(strlen(address.text) < sizeof(address.text));
    if (strchr(address.name, '?'))
        return;
    expect(oribi_address_parse(address.text, &again, error) == 0);
    expect(strcmp(address.text, again.text) == 0 && address.type == again.type && address.port == again.port);
}

static void try_trust(char *const *words, size_t count)
{
    static struct oribi_trust trust;
    struct oribi_text_list list = {(char **)words, count};
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int code = oribi_trust_parse(&list, &trust, error);
    if (code < 0)
        check_error(code, error);
    for (size_t i = 0; i < count; i++) {
        struct oribi_slice text = oribi_slice(words[i], strlen(words[i]));
        char room[ORIBI_TRUST_CLIENT_CAP];
        struct oribi_slice client = oribi_trust_client(&trust, text, room);
        bool is_part = client.p >= text.p && client.p + client.n <= text.p + text.n;
        expect(client.n == 0 || is_part || (client.p == room && client.n < sizeof(room)));
        (void)oribi_trust_has(&trust, text); /* for the sanitizers */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *words[WORDS_MAX];
    size_t count = 0;
    if (size > 4096)
        return 0;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *p = text; p && count < WORDS_MAX;) {
        char *end = strchr(p, '\n');
        words[count++] = p;
        if (end)
            *end++ = '\0';
        p = end;
    }
    try_command_line((const char *const *)words, count);
    for (size_t i = 0; i + 1 < count; i += 2)
        try_pair(words[i], words[i + 1]);
    for (size_t i = 0; i < count; i++)
        try_address(words[i]);
    try_trust(words, count);
    free(text);
    return 0;
}
