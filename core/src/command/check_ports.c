/* Can each address be listened on? A socket is bound and closed again, and never listens. */
#include "command/check_private.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/config/address.h"
#include "oribi/config/listener.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WRONG ORIBI_CHECK_WRONG

enum { PRIVILEGED_PORTS = 1024 };

static const char no_start[] = "The server does not start";

static void say_in_use(struct oribi_check *check, const char *option, const char *address, bool is_running)
{
    if (is_running) {
        oribi__check_say(check, ORIBI_CHECK_NOTE, "address-in-use",
                         "A reload and an upgrade of that server keep its sockets; a second server does not start",
                         "nothing, unless another program has the address: ctl status tells",
                         "%s %s: in use, while the server of this configuration runs", option, address);
        return;
    }
    oribi__check_say(check, WRONG, "address-in-use", no_start,
                     "stop the server that is there, or choose another address", "%s %s: a server is there already",
                     option, address);
}

static void say_refused(struct oribi_check *check, const char *option, const struct oribi_address *address)
{
    bool is_privileged = address->type == ORIBI_ADDRESS_TCP && address->port && address->port < PRIVILEGED_PORTS;
    oribi__check_say(check, WRONG, "address", no_start,
                     is_privileged ? "ports below 1024 need root or CAP_NET_BIND_SERVICE: take a higher one, or set "
                                     "AmbientCapabilities=CAP_NET_BIND_SERVICE in systemd"
                                   : "correct the address",
                     "%s %s: %s", option, address->text, oribi_os_error_text());
}

/* A name may have several addresses, of which one is enough; those that this machine lacks are left out. */
static void look_at_tcp(struct oribi_check *check, const struct oribi_options *options, const char *option,
                        const struct oribi_address *address, bool is_running)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    bool every = strcmp(option, "bind") == 0 && oribi_listeners_take_ipv4_too(options, address);
    int code = getaddrinfo(every ? NULL : address->name, every ? "0" : NULL, &hints, &found); /* NULL: of both kinds */
    bool any = false;
    if (code != 0) {
        (void)oribi_os_fail_saying("%s", gai_strerror(code));
        say_refused(check, option, address);
        return;
    }
    for (const struct addrinfo *info = found; info; info = info->ai_next) {
        code = oribi_os_may_bind(info, address->port, options->reuse_port);
        any |= code == 0;
        if (code < 0 && !oribi_os_address_missing())
            break;
    }
    if (code == ORIBI_ELIMIT)
        say_in_use(check, option, address->text, is_running);
    else if (code < 0 && code != ORIBI_ELIMIT && !(any && oribi_os_address_missing()))
        say_refused(check, option, address);
    freeaddrinfo(found);
}

static void look_at_unix(struct oribi_check *check, const char *option, const char *path, bool is_running)
{
    struct stat info;
    if (!oribi__check_folder_of(check, option, path) || lstat(path, &info) < 0)
        return;
    if (!S_ISSOCK(info.st_mode)) {
        oribi__check_say(check, WRONG, "address", no_start, "remove the file, or choose another path",
                         "%s %s: there is a file that is not a socket", option, path);
        return;
    }
    int answers = oribi_os_unix_answers(path);
    if (answers < 0)
        oribi__check_say(check, WRONG, "address", no_start, "remove the file, or choose another path", "%s %s: %s",
                         option, path, oribi_os_error_text());
    else if (answers && !(is_running && strcmp(option, "control") == 0)) /* that one tells that it runs */
        say_in_use(check, option, path, is_running);
}

static void look_at(struct oribi_check *check, const struct oribi_options *options, const char *option,
                    const char *text, bool is_running)
{
    struct oribi_address address;
    char error[ORIBI_ERROR_TEXT_CAP];
    if (oribi_address_parse(text, &address, error) < 0)
        oribi__check_say(check, WRONG, "address", no_start, "correct the address", "%s: %s", option, error);
    else if (address.type == ORIBI_ADDRESS_TCP)
        look_at_tcp(check, options, option, &address, is_running);
    else if (address.type == ORIBI_ADDRESS_UNIX)
        look_at_unix(check, option, address.name, is_running);
}

/* Sockets that start_server or systemd hands down are open already, and bind may mean them. */
static bool is_handed_down(void)
{
    return getenv("SERVER_STARTER_PORT") || getenv("LISTEN_FDS");
}

void oribi__check_ports(struct oribi_check *check, const struct oribi_options *options, bool is_running)
{
    for (size_t i = 0; !is_handed_down() && i < options->bind.count; i++)
        look_at(check, options, "bind", options->bind.items[i], is_running);
    if (options->status)
        look_at(check, options, "status", options->status, is_running);
    if (options->agent)
        look_at(check, options, "agent", options->agent, is_running);
    if (options->control && strlen(options->control) <= ORIBI_ADDRESS_PATH_MAX)
        look_at_unix(check, "control", options->control, is_running);
}
