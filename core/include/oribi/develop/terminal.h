/* terminal - what a developer sees who has started the server in a terminal: the address as a link, and what Ctrl-C
 * waits for. For development alone: oribi_options_at_terminal(). */
#ifndef ORIBI_DEVELOP_TERMINAL_H
#define ORIBI_DEVELOP_TERMINAL_H

#include "oribi/policy/policy.h"

struct oribi_listener;
struct oribi_supervisor;

/* The server is up for the first time: a line with its address, and with `open` the browser is started. */
void oribi__terminal_up(struct oribi_supervisor *supervisor);

/* Is this signal the Ctrl-C of a developer? Then `event` is what follows, and the log says what is waited for. */
bool oribi__terminal_interrupt(const struct oribi_supervisor *supervisor, int number, struct oribi_policy_event *event);

/* Writes the link to a listener, "http://127.0.0.1:9292", to dst. One that listens on every address has a loopback
 * link. False: it has none, as a unix socket. */
bool oribi__terminal_link(const struct oribi_listener *listener, char *dst, size_t cap);

#endif
