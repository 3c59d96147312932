/* Records that are believed. */
#include "supervisor/messages.c"

#include "tap.h"

#include <unistd.h>

/* kill(2) with such a number would signal a group, all processes, init or the supervisor itself. */
static void test_what_is_no_single_other_process_is_believed_by_nobody(void)
{
    struct oribi__context context = {.pid = getpid()};
    const int32_t lies[] = {0, 1, -1, -2, INT32_MIN, getpid()};
    struct oribi_message message = {.kind = ORIBI_MESSAGE_WORKER_READY};
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        message.pid = lies[i];
        ok(!names_a_process(&context, &message));
    }
    message.pid = 2;
    ok(names_a_process(&context, &message));
    message.kind = ORIBI_MESSAGE_WORKER_FORKED;
    message.pid = -1; /* the fork failed */
    ok(names_a_process(&context, &message));
    message.pid = -2;
    ok(!names_a_process(&context, &message));
}

int main(void)
{
    test_what_is_no_single_other_process_is_believed_by_nobody();
    return done_testing();
}
