/* The addresses of the status listener and of the agent: who may ask there must be known before they are opened. */
#include "config/options_private.h"

#include "oribi/config/address.h"

#include <arpa/inet.h>
#include <string.h>

bool oribi__options_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (strcmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static bool is_number(const char *host)
{
    struct in6_addr any;
    return strcmp(host, "localhost") == 0 || inet_pton(AF_INET, host, &any) == 1 ||
           inet_pton(AF_INET6, host, &any) == 1;
}

/* An address that the supervisor can open: no descriptor, no name that must be looked up. */
static int check_side(const char *option, const char *text, struct oribi_address *address, char *error)
{
    int code = oribi_address_parse(text, address, error);
    if (code < 0)
        return code;
    if (address->type == ORIBI_ADDRESS_FD || address->proxy)
        return oribi__refuse(error, "%s takes host:port or the path of a unix socket, without ?proxy", option);
    if (address->type != ORIBI_ADDRESS_UNIX && !is_number(address->name))
        return oribi__refuse(error, "%s takes an address in numbers, or localhost: %.80s is a name", option,
                             address->name);
    return 0;
}

int oribi__options_check_status(const struct oribi_options *options, char *error)
{
    struct oribi_address address;
    int code = options->agent ? check_side("agent", options->agent, &address, error) : 0;
    if (code < 0)
        return code;
    if (!options->status)
        return options->status_token ? oribi__refuse(error, "status_token needs status") : 0;
    code = check_side("status", options->status, &address, error);
    if (code < 0 || address.type == ORIBI_ADDRESS_UNIX)
        return code;
    if (!oribi__options_is_loopback(address.name) && !options->status_token)
        return oribi__refuse(error,
                             "status on %.100s can be reached from elsewhere and needs status_token; without it "
                             "only loopback addresses and unix sockets are allowed",
                             address.text);
    return 0;
}
