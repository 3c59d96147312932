/* sendfile - files that the application names in a header of its answer, for the server to send: X-Sendfile (and
 * X-Lighttpd-Send-File) with the absolute path of a file in a folder of `sendfile_root`, X-Accel-Redirect with an
 * internal path that `sendfile_map` maps to one. All with the reactor. */
#ifndef ORIBI_WORKER_SENDFILE_H
#define ORIBI_WORKER_SENDFILE_H

#include "oribi/config/options.h"
#include "oribi/http/response.h"

#include <stdbool.h>

struct oribi__sendfile;

/* Gives what these options allow, NULL where they allow nothing. Opens the folders; one that is missing is logged, and
 * looked for once a second while files are named. Borrows the options. destroy: takes it, and NULL. */
struct oribi__sendfile *oribi__sendfile_create(const struct oribi_options *options);
void oribi__sendfile_destroy(struct oribi__sendfile *sendfile);

/* Closes the descriptors in a child that the application forked. NULL is allowed. */
void oribi__sendfile_abandon(struct oribi__sendfile *sendfile);

#endif
