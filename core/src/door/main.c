/* oribi-door: holds the clients of tls:// and of listeners with door=on. The supervisor starts it (config.h). */
#include "door/door_private.h"

#include "oribi/base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* Stops come by the supervisor; a terminal's Ctrl-C reaches the whole group. */
static void settle_signals(void)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGQUIT, SIGHUP,  SIGUSR1,
                                  SIGUSR2, SIGPIPE, SIGTTIN, SIGTTOU, SIGWINCH};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        (void)signal(ignored[i], SIG_IGN); /* cannot fail for these */
}

int main(int argc, char **argv)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    settle_signals();
    (void)prctl(PR_SET_DUMPABLE, 0); /* keys are in this memory: no core file, no ptrace(2) by the same user */
    struct oribi_door_config *config = oribi_mem_alloc(1, sizeof(*config));
    if (oribi_door_config_take(config, error) < 0) {
        if (config->control_fd > 0)
            oribi_door_failed(config, error);
        else
            (void)fprintf(stderr, "oribi-door: %s\n", error);
        return 1;
    }
    struct oribi__door *door = oribi_mem_alloc(1, sizeof(*door));
    if (oribi__door_init(door, config, error) < 0) {
        oribi_door_failed(config, error);
        return 1;
    }
    oribi_door_ready(config);
    oribi__door_run(door);
    oribi__door_deinit(door);
    oribi_mem_free(door);
    return 0;
}
