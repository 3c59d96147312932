/* terminal - lines for a developer who has started the server in a terminal: the address as a link, and the calls that
 * Ctrl-C waits for. For development alone: oribi_options_at_terminal(). */
#ifndef ORIBI_DEVELOP_TERMINAL_H
#define ORIBI_DEVELOP_TERMINAL_H

#include "oribi/config/options.h"
#include "oribi/policy/policy.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>

struct oribi_listener;
struct oribi_listeners;

/* The server is up for the first time: a line with its address, and with `open` the browser is started. */
void oribi__terminal_up(const struct oribi_options *options, const struct oribi_listeners *listeners);

/* Is this signal the Ctrl-C of a developer? Then `event` is what follows, and the log names the calls that are waited
 * for. For a server that is not a library's. */
bool oribi__terminal_interrupt(const struct oribi_options *options, const struct oribi_policy *policy,
                               const struct oribi_scoreboard *board, int number, struct oribi_policy_event *event);

/* Writes the link to a listener, "http://127.0.0.1:9292", to dst. One that listens on every address has a loopback
 * link. False: it has none, as a unix socket. */
bool oribi__terminal_link(const struct oribi_listener *listener, char *dst, size_t cap);

#endif
