/* Media types: a hash table from extensions to texts, both kept in one buffer.
 *
 * types_table.h has one text for each top-level type: `image/avif:avif png:png jpeg:jpe,jpeg,jpg `. */
#include "oribi/files/types.h"

#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/http/scan.h"
#include "files/types_table.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

enum { SLOTS_FIRST = 4096 }; /* a power of two, as all later sizes; the built-in table fills less than half */

enum { RANK_BUILT_IN, RANK_FILE, RANK_OPERATOR = INT_MAX }; /* files have RANK_FILE and up */

struct slot {
    uint32_t name_at; /* in text */
    uint32_t type_at;
    uint16_t name_n; /* 0: nothing is here */
    uint16_t type_n;
    int rank; /* of the layer that has set it */
};

struct oribi_types {
    struct oribi_buf text;
    struct oribi_buf charset; /* "; charset=utf-8", or empty */
    struct slot unknown;
    struct slot *slots;
    uint32_t slot_count;
    uint32_t used;
    int last_rank;
};

/* --- grammar --- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool is_token(struct oribi_slice text)
{
    return oribi_scan_is_token(text.p, text.n);
}

/* `type/subtype`, with parameters of printable characters where they are allowed. */
static bool is_type(struct oribi_slice text, bool parameters)
{
    const char *semicolon = parameters && text.n ? memchr(text.p, ';', text.n) : NULL;
    size_t n = semicolon ? (size_t)(semicolon - text.p) : text.n;
    while (semicolon && n > 0 && text.p[n - 1] == ' ')
        n--;
    const char *slash = n ? memchr(text.p, '/', n) : NULL;
    if (!slash || text.n > ORIBI_TYPE_BYTES_MAX)
        return false;
    for (size_t i = n; i < text.n; i++)
        if (text.p[i] < ' ' || text.p[i] > '~')
            return false;
    size_t top_n = (size_t)(slash - text.p);
    return is_token(oribi_slice(text.p, top_n)) && is_token(oribi_slice(slash + 1, n - top_n - 1));
}

static bool is_extension(struct oribi_slice text)
{
    return text.n <= ORIBI_TYPE_EXTENSION_BYTES_MAX && is_token(text) && !memchr(text.p, '.', text.n);
}

static bool is_text(struct oribi_slice type)
{
    static const struct oribi_slice script = {"application/javascript", sizeof("application/javascript") - 1};
    if (type.n < 5)
        return false;
    return oribi_slice_equal_fold(oribi_slice(type.p, 5), ORIBI_SLICE("text/")) || oribi_slice_equal_fold(type, script);
}

/* --- the table --- */

static struct oribi_slice name_of(const struct oribi_types *types, const struct slot *slot)
{
    return oribi_slice(types->text.p + slot->name_at, slot->name_n);
}

/* Where an extension in lower case is, or would be (FNV-1a; the names are the operator's, not a peer's). */
static struct slot *slot_of(const struct oribi_types *types, struct oribi_slice name)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < name.n; i++)
        hash = (hash ^ (uint8_t)name.p[i]) * 16777619u;
    for (uint32_t i = hash;; i++) {
        struct slot *slot = &types->slots[i & (types->slot_count - 1)];
        if (slot->name_n == 0 || oribi_slice_equal(name_of(types, slot), name))
            return slot;
    }
}

static void make_slots(struct oribi_types *types, uint32_t count)
{
    struct slot *before = types->slots;
    uint32_t before_count = types->slot_count;
    types->slots = oribi_mem_alloc(count, sizeof(*types->slots));
    types->slot_count = count;
    for (uint32_t i = 0; i < before_count; i++)
        if (before[i].name_n)
            *slot_of(types, name_of(types, &before[i])) = before[i];
    oribi_mem_free(before);
}

static uint32_t keep(struct oribi_types *types, struct oribi_slice text)
{
    char *dst = oribi_buf_reserve(&types->text, text.n + 1);
    memcpy(dst, text.p, text.n);
    types->text.len += text.n;
    return (uint32_t)(dst - types->text.p);
}

/* A type as it is sent. */
static void keep_type(struct oribi_types *types, struct oribi_slice type, struct slot *slot)
{
    bool tell = types->charset.len > 0 && is_text(type) && !memchr(type.p, ';', type.n);
    slot->type_at = keep(types, type);
    slot->type_n = (uint16_t)type.n;
    if (!tell)
        return;
    (void)keep(types, oribi_slice(types->charset.p, types->charset.len));
    slot->type_n = (uint16_t)(type.n + types->charset.len);
}

/* `type` says of what type the extension is. ORIBI_AGAIN: this layer or a higher one has said it already. */
static int set(struct oribi_types *types, struct oribi_slice extension, const struct slot *type, int rank)
{
    char small[ORIBI_TYPE_EXTENSION_BYTES_MAX];
    for (size_t i = 0; i < extension.n; i++)
        small[i] = lower(extension.p[i]);
    struct oribi_slice name = oribi_slice(small, extension.n);
    struct slot *slot = slot_of(types, name);
    if (slot->name_n && (slot->rank > rank || (slot->rank == rank && rank != RANK_OPERATOR)))
        return ORIBI_AGAIN;
    if (!slot->name_n) {
        if (types->used == ORIBI_TYPES_MAX)
            return ORIBI_ELIMIT;
        if (++types->used > types->slot_count / 2) {
            make_slots(types, types->slot_count * 2);
            slot = slot_of(types, name);
        }
        slot->name_at = keep(types, name);
        slot->name_n = (uint16_t)name.n;
    }
    slot->type_at = type->type_at;
    slot->type_n = type->type_n;
    slot->rank = rank;
    return 0;
}

/* --- layers --- */

/* `avif:avif,avifs ` behind `image/`; returns what follows. */
static const char *read_built_in(struct oribi_types *types, struct oribi_slice top, const char *p)
{
    char type[ORIBI_TYPE_BYTES_MAX];
    struct slot slot;
    size_t sub_n = strcspn(p, ":");
    memcpy(type, top.p, top.n);
    memcpy(type + top.n, p, sub_n);
    keep_type(types, oribi_slice(type, top.n + sub_n), &slot);
    for (p += sub_n; *p != ' ';) {
        size_t n = strcspn(++p, ", ");
        (void)set(types, oribi_slice(p, n), &slot, RANK_BUILT_IN); /* each is in the table once */
        p += n;
    }
    return p + 1;
}

struct oribi_types *oribi_types_create(const char *charset)
{
    size_t charset_n = charset ? strlen(charset) : 0;
    if (charset_n > ORIBI_TYPE_CHARSET_BYTES_MAX || (charset_n > 0 && !is_token(oribi_slice(charset, charset_n))))
        return NULL;
    struct oribi_types *types = oribi_mem_alloc(1, sizeof(*types));
    make_slots(types, SLOTS_FIRST);
    if (charset_n > 0) {
        size_t cap = sizeof("; charset=") + charset_n;
        types->charset.len = (size_t)snprintf(oribi_buf_reserve(&types->charset, cap), cap, "; charset=%s", charset);
    }
    keep_type(types, ORIBI_SLICE(ORIBI_TYPE_UNKNOWN), &types->unknown);
    for (size_t i = 0; i < sizeof(types_table) / sizeof(types_table[0]); i++) {
        struct oribi_slice top = oribi_slice(types_table[i], strcspn(types_table[i], "/") + 1);
        for (const char *p = types_table[i] + top.n; *p;)
            p = read_built_in(types, top, p);
    }
    types->last_rank = RANK_BUILT_IN;
    return types;
}

void oribi_types_destroy(struct oribi_types *types)
{
    if (!types)
        return;
    oribi_buf_deinit(&types->text);
    oribi_buf_deinit(&types->charset);
    oribi_mem_free(types->slots);
    oribi_mem_free(types);
}

/* The next word of a line, empty at its end; the line loses it. */
static struct oribi_slice next_word(struct oribi_slice *line)
{
    size_t at = 0;
    while (at < line->n && (line->p[at] == ' ' || line->p[at] == '\t' || line->p[at] == '\r'))
        at++;
    size_t end = at;
    while (end < line->n && line->p[end] != ' ' && line->p[end] != '\t' && line->p[end] != '\r')
        end++;
    struct oribi_slice word = oribi_slice(line->p + at, end - at);
    *line = oribi_slice(line->p + end, line->n - end);
    return word;
}

/* How many extensions the line has set. */
static int read_line(struct oribi_types *types, struct oribi_slice line, int rank)
{
    struct slot slot;
    int count = 0;
    const char *comment = line.n ? memchr(line.p, '#', line.n) : NULL;
    if (comment)
        line.n = (size_t)(comment - line.p);
    struct oribi_slice type = next_word(&line);
    if (!is_type(type, false))
        return 0;
    struct oribi_slice extension = next_word(&line);
    if (extension.n > 0)
        keep_type(types, type, &slot);
    for (; extension.n > 0; extension = next_word(&line))
        if (is_extension(extension) && set(types, extension, &slot, rank) == 0)
            count++;
    return count;
}

static int read_text(struct oribi_types *types, const char *p, size_t n)
{
    int count = 0;
    int rank = ++types->last_rank;
    while (n > 0) {
        const char *end = memchr(p, '\n', n);
        size_t len = end ? (size_t)(end - p) : n;
        count += read_line(types, oribi_slice(p, len), rank);
        p += len + (end != NULL);
        n -= len + (end != NULL);
    }
    return count;
}

/* One byte more than there may be is asked for, to see whether it is there. */
static int read_whole(int fd, struct oribi_buf *whole)
{
    for (;;) {
        enum { STEP = 64 * 1024 };
        ssize_t got = oribi_os_read(fd, oribi_buf_reserve(whole, STEP), STEP);
        if (got <= 0)
            return (int)got;
        whole->len += (size_t)got;
        if (whole->len > ORIBI_TYPES_FILE_BYTES_MAX)
            return ORIBI_ELIMIT;
    }
}

int oribi_types_read_file(struct oribi_types *types, const char *path)
{
    struct oribi_buf whole = {0};
    int64_t size;
    int fd;
    int code = oribi_os_open_read(path, &fd);
    if (code < 0)
        return code;
    code = oribi_os_is_file(fd, &size) ? read_whole(fd, &whole) : oribi_os_fail_saying("not a regular file");
    oribi_os_close(fd);
    if (code == 0)
        code = read_text(types, whole.p, whole.len);
    oribi_buf_deinit(&whole);
    return code;
}

int oribi_types_set(struct oribi_types *types, const char *extension, const char *type)
{
    struct oribi_slice name = oribi_slice(extension, strlen(extension));
    struct oribi_slice value = oribi_slice(type, strlen(type));
    struct slot slot = {0};
    if (name.n > 1 && name.p[0] == '.')
        name = oribi_slice(name.p + 1, name.n - 1);
    if (!is_type(value, true) || (name.n > 0 && !is_extension(name)))
        return ORIBI_EINVAL;
    keep_type(types, value, &slot);
    if (name.n > 0)
        return set(types, name, &slot, RANK_OPERATOR);
    types->unknown = slot;
    return 0;
}

struct oribi_slice oribi_types_find(const struct oribi_types *types, const char *path)
{
    char small[ORIBI_TYPE_EXTENSION_BYTES_MAX];
    const struct slot *found = &types->unknown;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t n = dot && dot > name ? strlen(dot + 1) : 0;
    if (n > 0 && n <= sizeof(small)) {
        for (size_t i = 0; i < n; i++)
            small[i] = lower(dot[1 + i]);
        const struct slot *slot = slot_of(types, oribi_slice(small, n));
        found = slot->name_n ? slot : found;
    }
    return oribi_slice(types->text.p + found->type_at, found->type_n);
}
