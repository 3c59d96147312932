/* Parts that the supervisor keeps of a new generation's configuration. */
#include "supervisor/announced.c"

#include "supervisor/modules.h"
#include "tap.h"

#include <sys/socket.h>

/* A listener that the supervisor cannot hold would be lost with the mold that opened it. */
static void test_a_generation_with_a_listener_too_many_fails(void)
{
    static struct oribi_options options;
    static struct oribi_listeners listeners;
    struct oribi_supervisor *supervisor = modules_create(&oribi__server, &options);
    struct oribi__context *context = &supervisor->context;
    context->process.listeners = &listeners;
    listeners.count = context->announced->adopted_from = ORIBI_LISTENERS_MAX - 1;
    context->policy.next_generation = 2;
    context->policy.config.workers_max = 8;
    struct oribi_message message = {.kind = ORIBI_MESSAGE_MOLD_OPTIONS, .generation = 2, .pid = 4711};
    struct oribi_policy_event event = {.type = ORIBI_EVENT_MOLD_READY, .pid = 4711};
    oribi_message_set_text(&message, "workers=3\nuser=nobody\n", 22);
    oribi__announced_message(context, &message, -1);
    ok(options.user == NULL); /* the running options are not touched, whatever is announced */
    message.kind = ORIBI_MESSAGE_MOLD_LISTENER;
    for (int i = 0; i < 2; i++) {
        oribi__announced_ready(context, &event);
        ok(event.type == ORIBI_EVENT_MOLD_READY && event.config->workers == 3);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ok_eq(listen(fd, 1), 0);
        oribi_message_set_text(&message, "tcp://localhost:0", 17);
        oribi__announced_message(context, &message, fd);
    }
    oribi__announced_ready(context, &event);
    ok_eq(event.type, ORIBI_EVENT_MOLD_FAILED);
    is_str(event.text, "more than 64 listening sockets");
    oribi__announced_drop(context);
    ok_eq(listeners.count, ORIBI_LISTENERS_MAX - 1);
    ok(context->announced->error[0] == '\0' && !context->announced->has_config);
    listeners.count = 0;
    modules_destroy(supervisor, &options);
}

int main(void)
{
    test_a_generation_with_a_listener_too_many_fails();
    return done_testing();
}
