/* Option values: text to field and back. Parsing is strict, since a value that is silently read as something else is
 * found out in production: no signs, no blanks, no leftovers, no overflow. */
#include "config/options_private.h"

#include "oribi/config/history.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/config/acme.h"
#include "oribi/config/address.h"
#include "oribi/config/log_format.h"
#include "oribi/files/mount.h"
#include "oribi/http/scan.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct unit {
    char suffix[3]; /* lower case */
    int64_t factor;
};

/* Largest first, for writing. */
static const struct unit size_units[] = {{"g", 1 << 30}, {"m", 1 << 20}, {"k", 1 << 10}, {"", 1}};
static const struct unit time_units[] = {{"h", 3600 * 1000}, {"m", 60 * 1000}, {"s", 1000}, {"ms", 1}};

int oribi__refuse(char *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error, ORIBI_ERROR_TEXT_CAP, format, args); /* cut where a user's text is long */
    va_end(args);
    return ORIBI_EINVAL;
}

const char *oribi__option_quote(const char *value, char dst[OPTION_QUOTE_CAP])
{
    size_t n = 0;
    for (; value[n] && n < OPTION_QUOTE_CAP - 4; n++)
        dst[n] = (unsigned char)value[n] < 0x20 || value[n] == 0x7f ? '?' : value[n];
    memcpy(dst + n, value[n] ? "..." : "", value[n] ? 4 : 1);
    return dst;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool equal_fold(const char *text, const char *lower_word)
{
    while (*text && lower(*text) == *lower_word) {
        text++;
        lower_word++;
    }
    return *text == *lower_word;
}

/* Reads digits at *p and moves behind them. False when there are none or they pass INT64_MAX. */
static bool take_digits(const char **p, int64_t *out)
{
    int64_t value = 0;
    const char *start = *p;
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, (int64_t)(**p - '0'), &value))
            return false;
    }
    if (*p == start)
        return false;
    *out = value;
    return true;
}

static bool find_unit(const struct unit *units, size_t count, const char *suffix, int64_t *factor)
{
    for (size_t i = 0; i < count; i++) {
        if (equal_fold(suffix, units[i].suffix)) {
            *factor = units[i].factor;
            return true;
        }
    }
    return false;
}

static bool parse_count(const char *text, int64_t *out)
{
    return take_digits(&text, out) && *text == '\0';
}

static bool parse_size(const char *text, int64_t *out)
{
    int64_t value;
    int64_t factor;
    return take_digits(&text, &value) &&
           find_unit(size_units, sizeof(size_units) / sizeof(size_units[0]), text, &factor) &&
           !__builtin_mul_overflow(value, factor, out);
}

/* Seconds without a suffix. What is more than nothing but less than a millisecond counts as one: 0 often means
 * "none". */
bool oribi__option_read_time(const char *text, int64_t *out)
{
    int64_t whole;
    int64_t fraction = 0; /* in billionths of the unit; digits beyond the ninth only tell it from nothing */
    bool more_than_nothing = false;
    int64_t factor = 1000;
    if (!take_digits(&text, &whole))
        return false;
    if (*text == '.') {
        int64_t place = 100 * 1000 * 1000;
        if (text[1] < '0' || text[1] > '9')
            return false;
        for (text++; *text >= '0' && *text <= '9'; text++, place /= 10) {
            fraction += (*text - '0') * place;
            more_than_nothing = more_than_nothing || *text != '0';
        }
    }
    if (*text && !find_unit(time_units, sizeof(time_units) / sizeof(time_units[0]), text, &factor))
        return false;
    if (__builtin_mul_overflow(whole, factor, out))
        return false;
    int64_t part = fraction * factor / 1000000000; /* < 1e9 * 3.6e6: far from overflow */
    if (__builtin_add_overflow(*out, part, out))
        return false;
    if (*out == 0 && more_than_nothing)
        *out = 1;
    return true;
}

static bool parse_range(const char *text, struct oribi_range *out)
{
    int64_t min;
    int64_t max;
    if (!take_digits(&text, &min))
        return false;
    max = min;
    if (text[0] == '.' && text[1] == '.') {
        text += 2;
        if (!take_digits(&text, &max) || min == 0)
            return false;
    }
    if (*text || max > UINT32_MAX || min > max)
        return false;
    *out = (struct oribi_range){(uint32_t)min, (uint32_t)max};
    return true;
}

/* "0:5", as Puma writes a pool that grows: here all of them are there from the start, so the second number is the
 * one that counts. */
static bool parse_threads(const char *text, int64_t *out)
{
    int64_t min;
    int64_t max;
    if (!take_digits(&text, &min) || *text++ != ':' || !take_digits(&text, &max) || *text || min > max)
        return false;
    *out = max;
    return true;
}

bool oribi__option_read_switch(const char *text, bool *out)
{
    static const char *const words[2][6] = {{"off", "false", "no", "0", "", NULL}, {"on", "true", "yes", "1", NULL}};
    for (int value = 0; value < 2; value++) {
        for (size_t i = 0; words[value][i]; i++) {
            if (equal_fold(text, words[value][i])) {
                *out = value == 1;
                return true;
            }
        }
    }
    return false;
}

void oribi__option_format_number(enum oribi_option_type type, int64_t value, char dst[OPTION_NUMBER_CAP])
{
    const struct unit *units = type == ORIBI_OPTION_TIME ? time_units : size_units;
    size_t place = 0;
    if ((type != ORIBI_OPTION_TIME && type != ORIBI_OPTION_SIZE) || value == 0) {
        (void)snprintf(dst, OPTION_NUMBER_CAP, "%lld", (long long)value); /* 20 digits at most */
        return;
    }
    while (value % units[place].factor != 0)
        place++; /* the last factor is 1 */
    int n = snprintf(dst, OPTION_NUMBER_CAP, "%lld%s", (long long)(value / units[place].factor), units[place].suffix);
    if (type == ORIBI_OPTION_SIZE && n > 0 && dst[n - 1] > '9')
        dst[n - 1] = (char)(dst[n - 1] - ('a' - 'A')); /* sizes are written 64K, times 10s */
}

static bool is_choice(const char *choices, const char *value)
{
    size_t n = strlen(value);
    for (const char *p = choices; *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && memcmp(p, value, n) == 0)
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

static int refuse_bounds(const struct oribi_option *option, const char *name, const char *value, char *error)
{
    char min[OPTION_NUMBER_CAP];
    char max[OPTION_NUMBER_CAP];
    char quoted[OPTION_QUOTE_CAP];
    const char *what = "";
    const char *example = "";
    oribi__option_format_number(option->type, option->min, min);
    oribi__option_format_number(option->type, option->max, max);
    switch (option->type) {
    case ORIBI_OPTION_COUNT:
        what = "a whole number";
        break;
    case ORIBI_OPTION_SIZE:
        what = "a size";
        example = ", such as 64K or 1M";
        break;
    case ORIBI_OPTION_TIME:
        what = "a time";
        example = ", such as 10 (seconds), 250ms or 1.5m";
        break;
    case ORIBI_OPTION_RANGE:
        what = "N or N..M";
        break;
    default:
        assert(0); /* the others have no bounds */
    }
    return oribi__refuse(error, "%s must be %s from %s to %s%s, not \"%s\"", name, what, min, max, example,
                         oribi__option_quote(value, quoted));
}

/* Words for a text that its option does not take, or NULL. */
static const char *text_fault(const struct oribi_option *option, const char *value)
{
    if (option->type == ORIBI_OPTION_CODE)
        return NULL;
    bool has_lines = option->composed.arguments && strchr(option->composed.arguments, '*');
    for (const char *p = value; *p; p++) {
        if (((unsigned char)*p < 0x20 && !(has_lines && strchr("\t\n", *p))) || *p == 0x7f)
            return "must not contain control characters";
        if (option->offset == offsetof(struct oribi_options, server_header) && (unsigned char)*p > 0x7e)
            return "must be plain ASCII"; /* it stands in a header field, RFC 9110 5.5 */
    }
    return NULL;
}

static int check_map(const char *value, char *error)
{
    struct oribi_slice prefix;
    const char *folder;
    return oribi_mount_map_read("sendfile_map", value, &prefix, &folder, error);
}

static int check_mount(const char *value, char *error)
{
    struct oribi_mount mount;
    return oribi_mount_read(value, &mount, error);
}

/* A token, and none of the fields that the server writes by itself. */
static bool may_carry_id(const char *name)
{
    static const char *const own[] = {"connection", "content-length",    "date",   "keep-alive",
                                      "server",     "transfer-encoding", "upgrade"};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (equal_fold(name, own[i]))
            return false;
    return strlen(name) <= ORIBI_LOG_NAME_BYTES_MAX && oribi_scan_is_token(name, strlen(name));
}

static int check_log_format(const char *value, char *error)
{
    struct oribi_log_format format;
    return oribi_log_format_read(value, &format, error);
}

static int check_history(const char *value, char *error)
{
    struct oribi_history history;
    return oribi_history_read(value, &history, error);
}

static int parse_text(const struct oribi_option *option, const char *name, const char *value, char *error)
{
    char quoted[OPTION_QUOTE_CAP];
    struct oribi_address address;
    const char *fault = text_fault(option, value);
    if (fault)
        return oribi__refuse(error, "%s %s: \"%s\"", name, fault, oribi__option_quote(value, quoted));
    if (strlen(value) > ORIBI_OPTION_TEXT_MAX)
        return oribi__refuse(error, "%s is longer than %d bytes", name, ORIBI_OPTION_TEXT_MAX);
    if (option->offset == offsetof(struct oribi_options, access_log_format) && *value &&
        !is_choice("common combined json dev", value))
        return check_log_format(value, error);
    if (option->offset == offsetof(struct oribi_options, request_id_header) && *value && !may_carry_id(value))
        return oribi__refuse(error, "%s must be the name of a header that is not the server's own, not \"%s\"", name,
                             oribi__option_quote(value, quoted));
    if (option->offset == offsetof(struct oribi_options, access_log_skip) && *value != '/')
        return oribi__refuse(error, "%s takes paths such as /up or /health/*, not \"%s\"", name,
                             oribi__option_quote(value, quoted));
    if (option->choices && *value && !is_choice(option->choices, value))
        return oribi__refuse(error, "%s must be one of: %s; not \"%s\"", name, option->choices,
                             oribi__option_quote(value, quoted));
    if (option->type == ORIBI_OPTION_LIST && !*value)
        return oribi__refuse(error, "%s must not be empty", name);
    if (option->offset == offsetof(struct oribi_options, bind))
        return oribi_address_parse(value, &address, error);
    if (option->offset == offsetof(struct oribi_options, certificates))
        return oribi_certificate_check(value, error);
    if (option->offset == offsetof(struct oribi_options, acme))
        return oribi_acme_check_line(value, error);
    if (option->offset == offsetof(struct oribi_options, history))
        return check_history(value, error);
    if (option->offset == offsetof(struct oribi_options, mounts))
        return check_mount(value, error);
    if (option->offset == offsetof(struct oribi_options, sendfile_map))
        return check_map(value, error);
    if (option->offset == offsetof(struct oribi_options, sendfile_root) && strlen(value) >= PATH_MAX)
        return oribi__refuse(error, "%s has a folder of more than %d bytes", name, PATH_MAX - 1);
    return *value ? oribi__option_check_answer(option, value, error) : 0;
}

/* A parsed value; text stays where it is. */
struct parsed {
    int64_t number;
    struct oribi_range range;
    bool on;
};

static int parse(const struct oribi_option *option, const char *name, const char *value, struct parsed *out,
                 char *error)
{
    char quoted[OPTION_QUOTE_CAP];
    bool fits = false;
    switch (option->type) {
    case ORIBI_OPTION_TEXT:
    case ORIBI_OPTION_CODE:
    case ORIBI_OPTION_LIST:
        return parse_text(option, name, value, error);
    case ORIBI_OPTION_BOOL:
        if (oribi__option_read_switch(value, &out->on))
            return 0;
        return oribi__refuse(error, "%s must be on or off, not \"%s\"", name, oribi__option_quote(value, quoted));
    case ORIBI_OPTION_COUNT:
        fits = parse_count(value, &out->number);
        if (!fits && option->offset == offsetof(struct oribi_options, workers) && equal_fold(value, "auto")) {
            out->number = 0;
            fits = true;
        }
        if (!fits && option->offset == offsetof(struct oribi_options, threads))
            fits = parse_threads(value, &out->number);
        break;
    case ORIBI_OPTION_SIZE:
        fits = parse_size(value, &out->number);
        break;
    case ORIBI_OPTION_TIME:
        fits = oribi__option_read_time(value, &out->number);
        break;
    case ORIBI_OPTION_RANGE:
        fits = parse_range(value, &out->range);
        out->number = out->range.max;
        break;
    }
    int64_t threads;
    if (!fits && option->offset == offsetof(struct oribi_options, call_timeout_ms) && parse_threads(value, &threads))
        return oribi__refuse(error, "%s is the time that a call may take; Puma's -t %.20s is --threads %.20s", name,
                             value, value);
    if (!fits || out->number < option->min || out->number > option->max)
        return refuse_bounds(option, name, value, error);
    return 0;
}

int oribi__option_check(const struct oribi_option *option, const char *name, const char *value, char *error)
{
    struct parsed ignored;
    return parse(option, name, value, &ignored, error);
}

void oribi__option_replace_text(char **field, const char *value)
{
    char *copy = NULL;
    if (value) {
        size_t n = strlen(value) + 1;
        copy = oribi_mem_alloc(n, 1);
        memcpy(copy, value, n);
    }
    oribi_mem_free(*field); /* last: value may be the text that stood there */
    *field = copy;
}

static size_t items_max(const struct oribi_option *option)
{
    return option->max ? (size_t)option->max : ORIBI_OPTION_ITEMS_MAX;
}

static void add_item(const struct oribi_option *option, struct oribi_text_list *list, const char *value)
{
    if (!list->items)
        list->items = oribi_mem_alloc(items_max(option), sizeof(*list->items));
    assert(list->count < items_max(option));
    oribi__option_replace_text(&list->items[list->count], value);
    list->count++;
}

static void store_number(void *field, uint16_t width, int64_t value)
{
    if (width == sizeof(uint32_t)) {
        assert(value >= 0 && value <= UINT32_MAX); /* the table's bounds */
        *(uint32_t *)field = (uint32_t)value;
    } else {
        assert(width == sizeof(int64_t));
        *(int64_t *)field = value;
    }
}

int oribi__option_assign(struct oribi_options *options, const struct oribi_option *option, const char *name,
                         const char *value, char *error)
{
    struct parsed parsed = {0};
    void *field = (char *)options + option->offset;
    int code = parse(option, name, value, &parsed, error);
    if (code < 0)
        return code;
    switch (option->type) {
    case ORIBI_OPTION_TEXT:
    case ORIBI_OPTION_CODE:
        oribi__option_replace_text(field, *value ? value : option->default_text); /* empty: as if not given */
        break;
    case ORIBI_OPTION_LIST:
        if (((struct oribi_text_list *)field)->count >= items_max(option))
            return oribi__refuse(error, "%s is given more than %zu times", name, items_max(option));
        add_item(option, field, value);
        break;
    case ORIBI_OPTION_BOOL:
        *(bool *)field = parsed.on;
        break;
    case ORIBI_OPTION_RANGE:
        *(struct oribi_range *)field = parsed.range;
        break;
    case ORIBI_OPTION_COUNT:
    case ORIBI_OPTION_SIZE:
    case ORIBI_OPTION_TIME:
        store_number(field, option->width, parsed.number);
        break;
    }
    return 0;
}

void oribi__option_clear(struct oribi_options *options, const struct oribi_option *option)
{
    void *field = (char *)options + option->offset;
    if (option->type == ORIBI_OPTION_TEXT || option->type == ORIBI_OPTION_CODE) {
        oribi__option_replace_text(field, NULL);
    } else if (option->type == ORIBI_OPTION_LIST) {
        struct oribi_text_list *list = field;
        for (size_t i = 0; i < list->count; i++)
            oribi_mem_free(list->items[i]);
        oribi_mem_free(list->items);
        *list = (struct oribi_text_list){0};
    }
}

/* Appends to dst as far as there is room; len counts on. */
static size_t append(char *dst, size_t cap, size_t len, const char *text)
{
    size_t n = strlen(text);
    if (len < cap) {
        size_t room = cap - 1 - len;
        size_t copied = n < room ? n : room;
        memcpy(dst + len, text, copied);
        dst[len + copied] = '\0';
    }
    return len + n;
}

size_t oribi_options_get(const struct oribi_options *options, const struct oribi_option *option, char *dst, size_t cap)
{
    const void *field = (const char *)options + option->offset;
    char number[2 * OPTION_NUMBER_CAP];
    const char *text = number;
    size_t len = 0;
    assert(cap > 0);
    dst[0] = '\0';
    if (option->type == ORIBI_OPTION_LIST) {
        const struct oribi_text_list *list = field;
        for (size_t i = 0; i < list->count; i++) {
            len = append(dst, cap, len, i > 0 ? "\n" : "");
            len = append(dst, cap, len, list->items[i]);
        }
        return len;
    }
    if (option->type == ORIBI_OPTION_TEXT || option->type == ORIBI_OPTION_CODE) {
        text = *(char *const *)field ? *(char *const *)field : "";
    } else if (option->type == ORIBI_OPTION_BOOL) {
        text = *(const bool *)field ? "on" : "off";
    } else if (option->type == ORIBI_OPTION_RANGE) {
        const struct oribi_range *range = field;
        bool single = range->min == range->max;
        (void)snprintf(number, sizeof(number), single ? "%u" : "%u..%u", range->min, range->max); /* two numbers fit */
    } else {
        int64_t value = option->width == sizeof(uint32_t) ? *(const uint32_t *)field : *(const int64_t *)field;
        oribi__option_format_number(option->type, value, number);
    }
    return append(dst, cap, 0, text);
}
