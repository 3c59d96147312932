/* Publishing a message to the subscribers of a channel, from any process: of a server, or any other one of its user,
 * which finds the server by its control socket as `ctl` does. */
#ifndef ORIBI_SUPERVISOR_PUBLISH_H
#define ORIBI_SUPERVISOR_PUBLISH_H

#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/config/options.h"
#include "oribi/http/publication.h"

/* Publishes; data are here (p not NULL, unless n is 0). In a process of a server, and in what it has forked, by the
 * server's inbox; else by the server whose control socket is `control`. NULL: the one that ORIBI_CONTROL names, or the
 * only one of this user that runs in the working directory. Waits for room a second at most, and for an answer of the
 * control socket five: call it without the VM lock; any thread may.
 * 0, or a code with one line in `error` (ORIBI_ERROR_TEXT_CAP): ORIBI_EINVAL: the message is not possible;
 * ORIBI_ECLOSED: no server answers, or it is not clear which; ORIBI_AGAIN: there is no room; any other: refused. */
int oribi_publish(const char *control, const struct oribi_publication *publication, char *error);

/* Refusals of a server that has no frontend. */
#define ORIBI__PUBLISH_NEEDS "publishing needs tls:// or ?frontend=on in the line of `bind`"

#endif
