/* Texts that an operator or a parent process gives a server. Each part is a target of its own:
 * the build compiles this source once for each, with FUZZ_<target> defined. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef FUZZ_arguments
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
    const char *texts[ARGUMENTS_MAX];
    for (size_t i = 0; i < count; i++)
        texts[i] = arguments[i].text;
    expect(oribi_option_places(option, texts, count) <= count);
    int code = oribi_options_set_arguments(&options, ORIBI_FROM_FILE, option->name, arguments, count, error);
    if (code < 0)
        expect(code == ORIBI_EINVAL && error[0] && strlen(error) < sizeof(error) && !strchr(error, '\n'));
    else if (oribi_options_get(&options, option, line, sizeof(line)) < sizeof(line))
        check_print(option, line);
    oribi_options_deinit(&options);
    return 0;
}
#endif

#ifdef FUZZ_inherited
/* The environment of a process: listening sockets in three notations, and the process context of a mold. First byte:
 * which variable; the rest is its value, for LISTEN_FDS with LISTEN_FDNAMES behind a line end.
 *
 * Holds for every input: what is taken are descriptors that are open, each once; a refusal is one line; our own
 * notation written and read again means the same. */
#include "ours.h"

#include "oribi/base/error.h"
#include "oribi/config/listener.h"
#include "oribi/worker/placement/handoff.h"
#include "supervisor/mold.h"

#include <stdio.h>

enum { OWN, STARTER, SYSTEMD, MOLD, KINDS };
enum { POOL_FD = 100 }; /* and the one behind it: a pool, so that a value can name one */

static void start(void)
{
    struct oribi_handoff pool;
    expect(oribi_handoff_create(&pool) == 0);
    expect(dup2(pool.take_fd, POOL_FD) == POOL_FD && dup2(pool.give_fd, POOL_FD + 1) == POOL_FD + 1);
    oribi_handoff_close(&pool);
}

static void check_error(int code, const char *error)
{
    expect(code == ORIBI_EINVAL && error[0] && strlen(error) < ORIBI_ERROR_TEXT_CAP);
}

static void check_items(const struct oribi_inherited *inherited)
{
    expect(inherited->count <= ORIBI_LISTENERS_MAX);
    for (uint32_t i = 0; i < inherited->count; i++) {
        const struct oribi_inherited_item *item = &inherited->items[i];
        expect(fcntl(item->fd, F_GETFD) >= 0);
        expect(strnlen(item->name, sizeof(item->name)) < sizeof(item->name));
        expect(strnlen(item->spec, sizeof(item->spec)) < sizeof(item->spec));
        for (uint32_t k = 0; k < i; k++)
            expect(inherited->items[k].fd != item->fd);
    }
}

static void round_trip(const struct oribi_inherited *inherited)
{
    static struct oribi_listeners listeners;
    static struct oribi_inherited again;
    static char text[ORIBI_INHERITED_TEXT_CAP];
    char error[ORIBI_ERROR_TEXT_CAP];
    listeners.count = inherited->count;
    for (uint32_t i = 0; i < inherited->count; i++) {
        const struct oribi_inherited_item *item = &inherited->items[i];
        listeners.items[i] = (struct oribi_listener){.fd = item->fd, .origin = item->origin};
        memcpy(listeners.items[i].spec, item->spec, sizeof(item->spec));
    }
    expect(oribi_inherited_format(&listeners, text, sizeof(text)) == strlen(text));
    expect(setenv("ORIBI_LISTEN", text, 1) == 0 && oribi_inherited_read(&again, error) == 0);
    expect(again.count == inherited->count);
    for (uint32_t i = 0; i < again.count; i++) {
        expect(again.items[i].fd == inherited->items[i].fd && again.items[i].origin == inherited->items[i].origin);
        expect(strcmp(again.items[i].spec, inherited->items[i].spec) == 0);
    }
}

static void read_sockets(uint8_t kind)
{
    static struct oribi_inherited inherited;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int code = oribi_inherited_read(&inherited, error);
    if (code < 0)
        check_error(code, error);
    else
        check_items(&inherited);
    if (code == 0 && kind == OWN && inherited.count > 0)
        round_trip(&inherited);
}

static void read_context(void)
{
    struct oribi__handed_down from;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int code = oribi__handed_down_read(&from, error);
    if (code < 0) {
        check_error(code, error);
        return;
    }
    const int fds[] = {from.socket_fd, from.message_fd, from.life_fd, from.board_fd, from.handoff.take_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        expect(fcntl(fds[i], F_GETFD) >= 0);
    expect(from.board_count > 0 && from.board_count <= ORIBI_SLOTS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"ORIBI_LISTEN", "SERVER_STARTER_PORT", "LISTEN_FDS", "ORIBI_MOLD"};
    static bool started;
    char pid[16];
    if (!started)
        start();
    started = true;
    if (size < 1 || size > 8192)
        return 0;
    uint8_t kind = data[0] % KINDS;
    char *text = strndup((const char *)data + 1, size - 1);
    char *more = kind == SYSTEMD ? strchr(text, '\n') : NULL;
    oribi_inherited_clear();
    (void)unsetenv("SERVER_STARTER_PORT");
    if (more) {
        *more++ = '\0';
        expect(setenv("LISTEN_FDNAMES", more, 1) == 0);
    }
    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    expect(setenv("LISTEN_PID", pid, 1) == 0 && setenv(names[kind], text, 1) == 0);
    if (kind == MOLD)
        read_context();
    else
        read_sockets(kind);
    free(text);
    return 0;
}
#endif

#ifdef FUZZ_log_format
/* Formats of access log lines, whatever they hold: what is read keeps the rules of its header. */
#include "oribi/base/error.h"
#include "oribi/config/log_format.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void check(const struct oribi_log_format *format)
{
    size_t at = 0;
    assert(format->piece_count > 0 && format->piece_count <= ORIBI_LOG_PIECES_MAX);
    assert(format->text_len <= ORIBI_LOG_FORMAT_BYTES_MAX);
    for (uint16_t i = 0; i < format->piece_count; i++) {
        const struct oribi_log_piece *piece = &format->pieces[i];
        bool named = piece->item == ORIBI_LOG_FIELD || piece->item == ORIBI_LOG_SENT_FIELD;
        assert(piece->item < ORIBI_LOG_ITEM_COUNT && piece->at == at);
        at += piece->n;
        assert(at <= format->text_len && (piece->n > 0) == (named || piece->item == ORIBI_LOG_LITERAL));
        assert(!named || piece->n <= ORIBI_LOG_NAME_BYTES_MAX);
        assert(i == 0 || piece->item != ORIBI_LOG_LITERAL || piece[-1].item != ORIBI_LOG_LITERAL);
    }
    assert(at == format->text_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_log_format format;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    int code = oribi_log_format_read(text, &format, error);
    assert(code == 0 || (code == ORIBI_EINVAL && error[0]));
    if (code == 0)
        check(&format);
    free(text);
    return 0;
}
#endif

#ifdef FUZZ_options
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
#endif
