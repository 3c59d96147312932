/* See book.h. */
#define _GNU_SOURCE
#include "book.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTS_PER_OCTET = 512, OCTETS_MAX = 100, LISTS_MAX = LISTS_PER_OCTET * OCTETS_MAX, NAME_BYTES = 64 };

struct book {
    char *text;
    struct user *users;
    size_t count;
    uint32_t *table; /* login -> index + 1, open addressing */
    size_t table_size;
    struct address *lists[LISTS_MAX];
    int list_count;
    char reason[160];
};

static void die(const char *path, const char *why)
{
    fprintf(stderr, "driver: %s: %s\n", path, why);
    exit(2);
}

static void *memory(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p)
        die("memory", "none left");
    return p;
}

static uint32_t hash(const char *text, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        die(path, "cannot be read");
    size_t len = (size_t)ftell(file);
    rewind(file);
    char *text = memory(len + 1, 1);
    if (fread(text, 1, len, file) != len)
        die(path, "cannot be read");
    fclose(file);
    return text;
}

/* id login password password_hash salt locked, between tabs. */
static void read_user(struct book *book, char *line, const char *path)
{
    char *fields[6];
    size_t n = 0;
    for (char *field; n < 6 && (field = strsep(&line, "\t")); n++)
        fields[n] = field;
    if (n != 6)
        die(path, "a line has too few fields");
    book->users[book->count++] =
        (struct user){.login = fields[1], .password = fields[2], .failures = fields[5][0] == '1' ? LOCK_THRESHOLD : 0};
}

static void index_users(struct book *book)
{
    for (book->table_size = 64; book->table_size < book->count * 2;)
        book->table_size *= 2;
    book->table = memory(book->table_size, sizeof(*book->table));
    for (size_t i = 0; i < book->count; i++) {
        const char *login = book->users[i].login;
        size_t at = hash(login, strlen(login)) & (book->table_size - 1);
        while (book->table[at])
            at = (at + 1) & (book->table_size - 1);
        book->table[at] = (uint32_t)i + 1;
    }
}

struct book *book_read(const char *path)
{
    struct book *book = memory(1, sizeof(*book));
    book->text = read_all(path);
    size_t lines = 0;
    for (const char *at = book->text; (at = strchr(at, '\n')); at++)
        lines++;
    book->users = memory(lines + 1, sizeof(*book->users));
    char *rest = book->text;
    for (char *line; (line = strsep(&rest, "\n")) && *line;)
        read_user(book, line, path);
    if (book->count == 0)
        die(path, "has no users");
    index_users(book);
    return book;
}

size_t book_users(const struct book *book)
{
    return book->count;
}

struct user *book_user(struct book *book, size_t index)
{
    return &book->users[index % book->count];
}

struct address *book_new_list(struct book *book)
{
    int n = book->list_count++;
    if (n >= LISTS_MAX)
        die("addresses", "used up");
    struct address *list = memory(LIST_ADDRESSES, sizeof(*list));
    for (int i = 0; i < LIST_ADDRESSES; i++)
        snprintf(list[i].text, sizeof(list[i].text), "127.%u.%u.%u", (uint8_t)(1 + n / LISTS_PER_OCTET),
                 (uint8_t)(n / 2 % 256), (uint8_t)(n % 2 * 128 + i + 1));
    book->lists[n] = list;
    return list;
}

static struct user *find_user(struct book *book, const char *login, size_t len)
{
    size_t at = hash(login, len) & (book->table_size - 1);
    for (; book->table[at]; at = (at + 1) & (book->table_size - 1)) {
        struct user *user = &book->users[book->table[at] - 1];
        if (strlen(user->login) == len && memcmp(user->login, login, len) == 0)
            return user;
    }
    return NULL;
}

static struct address *find_address(struct book *book, const char *text)
{
    unsigned a, b, c;
    if (sscanf(text, "127.%u.%u.%u", &a, &b, &c) != 3 || a < 1 || b > 255 || c < 1 || c > 255)
        return NULL;
    size_t n = (size_t)(a - 1) * LISTS_PER_OCTET + b * 2 + c / 128;
    if (n >= (size_t)book->list_count || c % 128 == 0)
        return NULL;
    struct address *address = &book->lists[n][c % 128 - 1];
    return strcmp(address->text, text) == 0 ? address : NULL;
}

static const char *wrong(struct book *book, const char *what, const char *name)
{
    snprintf(book->reason, sizeof(book->reason), "%s: %s", what, name);
    return book->reason;
}

static const char *list_address(struct book *book, const char *text, size_t len)
{
    (void)len;
    struct address *address = find_address(book, text);
    if (!address)
        return wrong(book, "an address that never came is listed as banned", text);
    if (address->listed)
        return wrong(book, "an address is listed twice", text);
    if (address->failures < BAN_THRESHOLD && !address->unsure)
        return wrong(book, "an address is listed as banned and is not", text);
    address->listed = true;
    return NULL;
}

static const char *list_user(struct book *book, const char *text, size_t len)
{
    struct user *user = find_user(book, text, len);
    if (!user)
        return wrong(book, "an unknown user is listed as locked", text);
    if (user->listed)
        return wrong(book, "a user is listed twice", text);
    if (user->failures < LOCK_THRESHOLD && !user->unsure)
        return wrong(book, "a user is listed as locked and is not", text);
    user->listed = true;
    return NULL;
}

/* Reads the strings of the array behind `key`; logins and addresses need no escapes, so one in them is no name that
 * we know. */
static const char *read_names(struct book *book, const char *json, const char *key,
                              const char *(*list)(struct book *, const char *, size_t))
{
    const char *at = strstr(json, key);
    at = at ? strpbrk(at + strlen(key), "[{") : NULL;
    if (!at || *at != '[')
        return wrong(book, "the report has no list", key);
    for (at += 1 + strspn(at + 1, " \r\n\t,"); *at == '"'; at += strspn(at, " \r\n\t,")) {
        const char *end = strchr(++at, '"');
        char name[NAME_BYTES];
        if (!end || (size_t)(end - at) >= sizeof(name))
            return wrong(book, "the report cannot be read", key);
        snprintf(name, sizeof(name), "%.*s", (int)(end - at), at);
        const char *reason = list(book, name, (size_t)(end - at));
        if (reason)
            return reason;
        at = end + 1;
    }
    return *at == ']' ? NULL : wrong(book, "the report cannot be read", key);
}

static const char *check_all_listed(struct book *book)
{
    for (int n = 0; n < book->list_count; n++)
        for (int i = 0; i < LIST_ADDRESSES; i++) {
            const struct address *address = &book->lists[n][i];
            if (address->failures >= BAN_THRESHOLD && !address->listed && !address->unsure)
                return wrong(book, "a banned address is not listed", address->text);
        }
    for (size_t i = 0; i < book->count; i++) {
        const struct user *user = &book->users[i];
        if (user->failures >= LOCK_THRESHOLD && !user->listed && !user->unsure)
            return wrong(book, "a locked user is not listed", user->login);
    }
    return NULL;
}

/* `json` is NUL-terminated behind its length. */
const char *book_check_report(struct book *book, const char *json, size_t len)
{
    if (strlen(json) != len)
        return wrong(book, "the report has a NUL", "");
    const char *reason = read_names(book, json, "\"banned_ips\"", list_address);
    if (!reason)
        reason = read_names(book, json, "\"locked_users\"", list_user);
    return reason ? reason : check_all_listed(book);
}

size_t book_banned(const struct book *book)
{
    size_t found = 0;
    for (int n = 0; n < book->list_count; n++)
        for (int i = 0; i < LIST_ADDRESSES; i++)
            found += book->lists[n][i].failures >= BAN_THRESHOLD;
    return found;
}

size_t book_locked(const struct book *book)
{
    size_t found = 0;
    for (size_t i = 0; i < book->count; i++)
        found += book->users[i].failures >= LOCK_THRESHOLD;
    return found;
}
