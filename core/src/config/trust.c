/* Trusted peers. Addresses are compared as IPv6 bits, so that 10.0.0.1 and ::ffff:10.0.0.1 are one. */
#include "oribi/config/trust.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/config/options.h"
#include "oribi/config/options_names.h"
#include "oribi/http/syntax.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Numeric text to 16 bytes; *is_v4 tells how it was written. */
static bool read_addr(struct oribi_slice text, uint8_t addr[16], bool *is_v4)
{
    char copy[INET6_ADDRSTRLEN];
    if (text.n == 0 || text.n >= sizeof(copy) || memchr(text.p, '\0', text.n))
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    *is_v4 = inet_pton(AF_INET, copy, addr + 12) == 1;
    if (*is_v4) {
        memcpy(addr, mapped, sizeof(mapped));
        return true;
    }
    return inet_pton(AF_INET6, copy, addr) == 1;
}

static bool covers(const struct oribi_trust_range *range, const uint8_t addr[16])
{
    size_t whole = range->bits / 8;
    uint32_t left = range->bits % 8;
    if (memcmp(range->addr, addr, whole) != 0)
        return false;
    return left == 0 || (range->addr[whole] ^ addr[whole]) >> (8 - left) == 0;
}

bool oribi_trust_has(const struct oribi_trust *trust, struct oribi_slice addr)
{
    uint8_t bytes[16];
    bool is_v4;
    if (addr.n == 0)
        return trust->unix_peers;
    if (trust->count == 0 || !read_addr(addr, bytes, &is_v4))
        return false;
    for (uint32_t i = 0; i < trust->count; i++)
        if (covers(&trust->ranges[i], bytes))
            return true;
    return false;
}

/* ---- the option ---- */

/* Digits alone, at most `max`; -1 for anything else. */
static int read_bits(struct oribi_slice text, int max)
{
    int bits = 0;
    if (text.n == 0 || text.n > 3)
        return -1;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return -1;
        bits = bits * 10 + (text.p[i] - '0');
    }
    return bits <= max ? bits : -1;
}

static bool add_range(struct oribi_trust *trust, struct oribi_slice item)
{
    struct oribi_trust_range range = {.bits = 128};
    const char *slash = memchr(item.p, '/', item.n);
    bool is_v4;
    if (!read_addr(oribi_slice(item.p, slash ? (size_t)(slash - item.p) : item.n), range.addr, &is_v4))
        return false;
    if (slash) {
        int bits = read_bits(oribi_slice(slash + 1, (size_t)(item.p + item.n - slash - 1)), is_v4 ? 32 : 128);
        if (bits < 0)
            return false;
        range.bits = (uint8_t)(is_v4 ? bits + 96 : bits);
    }
    trust->ranges[trust->count++] = range;
    return true;
}

static int add_item(struct oribi_trust *trust, struct oribi_slice item, char *error)
{
    if (oribi_slice_equal(item, ORIBI_SLICE("unix"))) {
        trust->unix_peers = true;
        return 0;
    }
    if (trust->count == ORIBI_TRUST_RANGES_MAX)
        return oribi__refuse(error, "trusted_proxies has more than %d addresses", ORIBI_TRUST_RANGES_MAX);
    if (!add_range(trust, item))
        return oribi__refuse(error, "trusted_proxies takes addresses such as 10.0.0.0/8, ::1 or unix, not \"%.*s\"",
                             item.n > 60 ? 60 : (int)item.n, item.p);
    return 0;
}

int oribi_trust_parse(const struct oribi_text_list *list, struct oribi_trust *trust, char *error)
{
    *trust = (struct oribi_trust){0};
    for (size_t i = 0; i < list->count; i++) {
        for (const char *p = list->items[i]; *p;) {
            size_t n = strcspn(p, ", ");
            int code = n > 0 ? add_item(trust, oribi_slice(p, n), error) : 0;
            if (code < 0)
                return code;
            p += n + strspn(p + n, ", ");
        }
    }
    return 0;
}

/* ---- X-Forwarded-For ---- */

static struct oribi_slice trim(struct oribi_slice text)
{
    while (text.n && (*text.p == ' ' || *text.p == '\t'))
        text = oribi_slice(text.p + 1, text.n - 1);
    while (text.n && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\t'))
        text.n--;
    return text;
}

/* "1.2.3.4:5678" and "[::1]:5678" are written by some; the address alone counts. */
static struct oribi_slice without_port(struct oribi_slice text)
{
    const char *close_mark = text.n && *text.p == '[' ? memchr(text.p, ']', text.n) : NULL;
    if (close_mark)
        return oribi_slice(text.p + 1, (size_t)(close_mark - text.p - 1));
    const char *colon = text.n ? memchr(text.p, ':', text.n) : NULL;
    bool one_colon = colon && !memchr(colon + 1, ':', (size_t)(text.p + text.n - colon - 1));
    return one_colon ? oribi_slice(text.p, (size_t)(colon - text.p)) : text;
}

/* ::ffff:a.b.c.d as a.b.c.d, in `room`; any other address as it was written. */
static struct oribi_slice unmapped(struct oribi_slice text, const uint8_t addr[16], bool is_v4, char *room)
{
    if (is_v4 || memcmp(addr, mapped, sizeof(mapped)) != 0)
        return text;
    return oribi_slice(room, put_ipv4(room, addr + 12));
}

struct oribi_slice oribi_trust_client(const struct oribi_trust *trust, struct oribi_slice forwarded_for,
                                      char room[ORIBI_TRUST_CLIENT_CAP])
{
    struct oribi_slice client = {NULL, 0};
    struct oribi_slice left = forwarded_for;
    bool more = left.n > 0;
    while (more) {
        const char *comma = left.n ? oribi_os_memrchr(left.p, ',', left.n) : NULL;
        const char *start = comma ? comma + 1 : left.p;
        struct oribi_slice one = trim(oribi_slice(start, (size_t)(left.p + left.n - start)));
        uint8_t addr[16];
        bool is_v4;
        left.n = comma ? (size_t)(comma - left.p) : 0;
        more = comma != NULL;
        if (one.n == 0) /* an empty element of a list says nothing (RFC 9110 5.6.1.2) */
            continue;
        one = without_port(one);
        if (!read_addr(one, addr, &is_v4))
            break;
        client = unmapped(one, addr, is_v4, room);
        if (!oribi_trust_has(trust, one))
            break;
    }
    return client;
}
