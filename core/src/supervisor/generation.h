/* Molds: the first is forked by the language, later ones are started by exec so that new code counts; and the command
 * sockets of all of them, at whose end a mold leaves. ORIBI_MOLD (generation.c) begins with the layout. */
#ifndef ORIBI_SUPERVISOR_GENERATION_H
#define ORIBI_SUPERVISOR_GENERATION_H

#include "oribi/policy/policy.h"
#include "oribi/supervisor/message.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi__context;

enum {
    ORIBI__PROTOCOL = 2,
    /* Builds that lay out shared memory differently must not share it. */
    ORIBI__LAYOUT = ORIBI__PROTOCOL << 28 ^ (int)sizeof(struct oribi_slot) << 14 ^
                    (int)sizeof(struct oribi_stacks) << 1 ^ (int)sizeof(struct oribi_stack) << 5 ^
                    (int)sizeof(struct oribi_message),
};

/* True: MOLD_STARTED follows at once, in `event`. False: the language is to fork, and oribi__mold_started() gives the
 * event after that. */
bool oribi__start_mold(struct oribi__context *context, uint32_t generation, bool fresh,
                       struct oribi_policy_event *event);
bool oribi__mold_is_starting(const struct oribi__context *context);

/* pid < 0: the system's words for the reason are in oribi_os_error_text(). */
struct oribi_policy_event oribi__mold_started(struct oribi__context *context, pid_t pid);

/* In the child that the language has forked: gives the mold's end of its command socket, which stays open. */
int oribi__mold_take_over(struct oribi__context *context, uint32_t *generation);

/* Takes passed. */
bool oribi__mold_promoted(struct oribi__context *context, const struct oribi_message *message, int passed);

/* False: it takes no commands. */
bool oribi__mold_send(struct oribi__context *context, int32_t pid, struct oribi_message *message);

bool oribi__mold_has_socket(struct oribi__context *context, int32_t pid);
void oribi__mold_socket_close(struct oribi__context *context, int32_t pid); /* its order to leave */

/* ORIBI_LISTEN and its descriptors (room for ORIBI_LISTENERS_MAX), which are counted. */
size_t oribi__listeners_to_keep(struct oribi__context *context, char *listen, size_t cap, int *keep);

#endif
