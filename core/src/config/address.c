/* Parses listening addresses. The scheme may be left out: a slash makes it a path, otherwise it is TCP. */
#include "oribi/config/address.h"

#include "oribi/base/error.h"
#include "oribi/config/options.h"
#include "oribi/http/syntax.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rest of the text, taken from the front or the end. */
struct cursor {
    const char *p;
    size_t n;
};

__attribute__((format(printf, 3, 4))) static int refuse(char *error, const char *text, const char *format, ...)
{
    char what[96];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args); /* our own short words: they fit */
    va_end(args);
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "address \"%.120s\" %s", text, what); /* a long address is cut */
    return ORIBI_EINVAL;
}

static bool take_prefix(struct cursor *in, const char *prefix)
{
    size_t n = strlen(prefix);
    if (in->n < n || memcmp(in->p, prefix, n) != 0)
        return false;
    in->p += n;
    in->n -= n;
    return true;
}

/* Digits in `base`, nothing else, at most `max`. */
static bool parse_number(struct cursor in, uint32_t base, uint32_t max, uint32_t *out)
{
    uint64_t value = 0;
    if (in.n == 0)
        return false;
    for (size_t i = 0; i < in.n; i++) {
        uint32_t digit = (uint32_t)(unsigned char)in.p[i] - '0';
        if (digit >= base)
            return false;
        value = value * base + digit;
        if (value > max)
            return false;
    }
    *out = (uint32_t)value;
    return true;
}

static bool is_word(struct cursor in, const char *word)
{
    return in.n == strlen(word) && memcmp(in.p, word, in.n) == 0;
}

static struct oribi_slice *file_of(struct oribi_address *address, struct cursor key)
{
    static const char *const words[] = {"certificate", "key", "ocsp"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (is_word(key, words[i]))
            return &address->files[i];
    return NULL;
}

static int parse_one_query(struct oribi_address *address, struct cursor key, struct cursor value, const char *text,
                           char *error)
{
    uint32_t mode = 0;
    bool is_unix = address->type == ORIBI_ADDRESS_UNIX;
    if (is_unix && is_word(key, "umask")) {
        if (!parse_number(value, 8, 0777, &address->umask))
            return refuse(error, text, "needs an octal umask from 0 to 777");
    } else if (is_unix && is_word(key, "mode")) {
        if (!parse_number(value, 8, 0777, &mode))
            return refuse(error, text, "needs an octal mode from 0 to 777");
        address->umask = 0777 & ~mode;
    } else if (is_word(key, "backlog") && address->type != ORIBI_ADDRESS_FD) {
        if (!parse_number(value, 10, ORIBI_ADDRESS_BACKLOG_MAX, &address->backlog) || address->backlog == 0)
            return refuse(error, text, "needs a backlog of at least 1");
    } else if (is_word(key, "frontend") && address->type != ORIBI_ADDRESS_FD && !address->tls) {
        address->frontend = is_word(value, "on");
        if (!address->frontend && !is_word(value, "off"))
            return refuse(error, text, "needs frontend to be on or off");
    } else if (address->tls && file_of(address, key)) {
        if (value.n == 0)
            return refuse(error, text, "needs a file for %.*s", (int)key.n, key.p);
        if (!oribi_certificate_is_file(oribi_slice(value.p, value.n)))
            return refuse(error, text, "has no file's name for %.*s; a %% in it is written %%25", (int)key.n, key.p);
        *file_of(address, key) = oribi_slice(value.p, value.n);
    } else if (is_word(key, "ipv6only") && address->type == ORIBI_ADDRESS_TCP) {
        address->ipv6_only = is_word(value, "on");
        if (!address->ipv6_only && !is_word(value, "off"))
            return refuse(error, text, "needs ipv6only to be on or off");
    } else if (is_word(key, "proxy")) {
        address->proxy = is_word(value, "on");
        if (!address->proxy && !is_word(value, "off"))
            return refuse(error, text, "needs proxy to be on or off");
    } else {
        const char *known = is_unix        ? "umask, mode, backlog, frontend and proxy"
                            : address->tls ? "certificate, key, ocsp, backlog, ipv6only and proxy"
                                           : "backlog, frontend, ipv6only and proxy";
        if (address->type == ORIBI_ADDRESS_FD)
            known = "proxy";
        return refuse(error, text, "has an unknown option \"%.*s\" (known: %s)", key.n > 24 ? 24 : (int)key.n, key.p,
                      known);
    }
    return 0;
}

/* Cuts the options off the end of `in` and parses them. */
static int parse_query(struct oribi_address *address, struct cursor *in, const char *text, char *error)
{
    const char *mark = memchr(in->p, '?', in->n);
    if (!mark)
        return 0;
    const char *end = in->p + in->n;
    in->n = (size_t)(mark - in->p);
    for (const char *p = mark + 1; p <= end;) {
        const char *stop = memchr(p, '&', (size_t)(end - p));
        if (!stop)
            stop = end;
        const char *equals = memchr(p, '=', (size_t)(stop - p));
        struct cursor key = {p, (size_t)((equals ? equals : stop) - p)};
        struct cursor value = {equals ? equals + 1 : stop, equals ? (size_t)(stop - equals - 1) : 0};
        int code = parse_one_query(address, key, value, text, error);
        if (code < 0)
            return code;
        p = stop + 1;
    }
    return 0;
}

static int parse_unix(struct oribi_address *address, struct cursor in, const char *text, char *error)
{
    address->type = ORIBI_ADDRESS_UNIX;
    int code = parse_query(address, &in, text, error);
    if (code < 0)
        return code;
    if (in.n == 0)
        return refuse(error, text, "has no path");
    if (in.n > ORIBI_ADDRESS_PATH_MAX)
        return refuse(error, text, "has a path of more than %d bytes", ORIBI_ADDRESS_PATH_MAX);
    if (in.p[in.n - 1] == '/')
        return refuse(error, text, "is a directory, not a socket's path");
    memcpy(address->name, in.p, in.n);
    (void)snprintf(address->text, sizeof(address->text), "unix://%s", address->name); /* 7 + 107 fit */
    return 0;
}

static int parse_fd(struct oribi_address *address, struct cursor in, const char *text, char *error)
{
    address->type = ORIBI_ADDRESS_FD;
    int code = parse_query(address, &in, text, error);
    if (code < 0)
        return code;
    if (in.n == 0 || in.n > ORIBI_ADDRESS_HOST_MAX)
        return refuse(error, text, "needs a descriptor's number or name");
    memcpy(address->name, in.p, in.n);
    (void)snprintf(address->text, sizeof(address->text), "fd://%s", address->name);
    return 0;
}

/* Splits "host:port", "[v6]:port", ":port" or "port"; the host may stay empty. */
static bool split_host(struct cursor in, struct cursor *host, struct cursor *port)
{
    if (in.n > 0 && in.p[0] == '[') {
        const char *close_mark = memchr(in.p, ']', in.n);
        if (!close_mark || close_mark + 1 >= in.p + in.n || close_mark[1] != ':')
            return false;
        *host = (struct cursor){in.p + 1, (size_t)(close_mark - in.p - 1)};
        *port = (struct cursor){close_mark + 2, (size_t)(in.p + in.n - close_mark - 2)};
        return host->n > 0;
    }
    const char *colon = memchr(in.p, ':', in.n);
    if (!colon) {
        *host = (struct cursor){in.p, 0};
        *port = in;
        return true;
    }
    *host = (struct cursor){in.p, (size_t)(colon - in.p)};
    *port = (struct cursor){colon + 1, (size_t)(in.p + in.n - colon - 1)};
    return !memchr(port->p, ':', port->n); /* an IPv6 address needs its brackets: 1::2:80 could be read in two ways */
}

static bool is_host(struct cursor host)
{
    for (size_t i = 0; i < host.n; i++) {
        char c = host.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && !strchr(".-_:%", c))
            return false;
    }
    return true;
}

static int parse_tcp(struct oribi_address *address, struct cursor in, const char *text, char *error)
{
    struct cursor host;
    struct cursor port;
    uint32_t number = 0;
    address->type = ORIBI_ADDRESS_TCP;
    int code = parse_query(address, &in, text, error);
    if (code < 0)
        return code;
    if (!split_host(in, &host, &port))
        return refuse(error, text, "must be host:port, with brackets around an IPv6 address");
    if (!parse_number(port, 10, UINT16_MAX, &number))
        return refuse(error, text, "needs a port from 0 to 65535");
    if (is_word(host, "*") || host.n == 0)
        host = (struct cursor){"0.0.0.0", 7};
    if (host.n > ORIBI_ADDRESS_HOST_MAX)
        return refuse(error, text, "has a host of more than %d bytes", ORIBI_ADDRESS_HOST_MAX);
    if (!is_host(host))
        return refuse(error, text, "has a host that is neither a name nor a number");
    address->port = (uint16_t)number;
    memcpy(address->name, host.p, host.n);
    (void)oribi_address_format_tcp(address->name, address->port, address->text, sizeof(address->text));
    if (address->ipv6_only && !oribi_address_is_every(address))
        return refuse(error, text, "is not [::], so that ipv6only says nothing");
    return 0;
}

bool oribi_address_is_every(const struct oribi_address *address)
{
    struct in6_addr addr;
    return address->type == ORIBI_ADDRESS_TCP && inet_pton(AF_INET6, address->name, &addr) == 1 &&
           IN6_IS_ADDR_UNSPECIFIED(&addr);
}

/* Puma's ssl://..., Starman's host:port:ssl. */
static bool asks_for_tls(const char *text)
{
    size_t n = strlen(text);
    return strncmp(text, "ssl://", 6) == 0 || strncmp(text, "https://", 8) == 0 ||
           (n > 4 && strcmp(text + n - 4, ":ssl") == 0);
}

int oribi_address_parse(const char *text, struct oribi_address *address, char *error)
{
    struct cursor in = {text, strlen(text)};
    struct oribi_address parsed = {0};
    int code;

    for (size_t i = 0; i < in.n; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return refuse(error, "", "has a control character");
    }
    if (in.n == 0)
        return refuse(error, text, "is empty");
    if (take_prefix(&in, "tcp://")) {
        code = parse_tcp(&parsed, in, text, error);
    } else if (take_prefix(&in, "tls://")) {
        parsed.tls = parsed.frontend = true;
        code = parse_tcp(&parsed, in, text, error);
    } else if (take_prefix(&in, "unix://") || take_prefix(&in, "unix:"))
        code = parse_unix(&parsed, in, text, error);
    else if (take_prefix(&in, "fd://"))
        code = parse_fd(&parsed, in, text, error);
    else if (asks_for_tls(text))
        code = refuse(error, text, "asks for TLS: say tls://host:port, and where the certificate is");
    else if (strstr(text, "://"))
        code = refuse(error, text, "has an unknown scheme (known: tcp, tls, unix and fd)");
    else if (memchr(text, '/', strcspn(text, "?")))
        code = parse_unix(&parsed, in, text, error);
    else
        code = parse_tcp(&parsed, in, text, error);
    if (code == 0)
        *address = parsed;
    return code;
}

const char *oribi_address_shown(const char *text, bool tls, char room[ORIBI_ADDRESS_TEXT_CAP])
{
    if (!tls || strncmp(text, "tcp://", 6) != 0)
        return text;
    (void)snprintf(room, ORIBI_ADDRESS_TEXT_CAP, "tls%s", text + 3); /* as long as before */
    return room;
}

size_t oribi_address_format_tcp(const char *host, uint16_t port, char *dst, size_t cap)
{
    bool is_v6 = strchr(host, ':') != NULL;
    int n = snprintf(dst, cap, "tcp://%s%s%s:%u", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
    if (n < 0)
        return 0;
    return (size_t)n < cap ? (size_t)n : cap - 1;
}

bool oribi_address_numbers(const struct sockaddr *address, socklen_t n, char host[ORIBI_ADDRESS_HOST_MAX + 1],
                           uint16_t *port)
{
    char digits[8];
    if (getnameinfo(address, n, host, ORIBI_ADDRESS_HOST_MAX + 1, digits, sizeof(digits),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    *port = (uint16_t)strtoul(digits, NULL, 10);
    return true;
}

void oribi_address_of_client(const struct sockaddr_storage *from, char *addr, uint8_t *addr_len, char *port,
                             uint8_t *port_len)
{
    uint16_t number;
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)from;
        *addr_len = (uint8_t)put_ipv4(addr, (const uint8_t *)&in->sin_addr);
        number = ntohs(in->sin_port);
    } else if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)from;
        *addr_len = (uint8_t)put_ipv6(addr, in->sin6_addr.s6_addr);
        number = ntohs(in->sin6_port);
    } else {
        return;
    }
    *port_len = (uint8_t)put_digits(port, number);
}
