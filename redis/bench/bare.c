/* The reference of redis/bench: GETs over hiredis, one after the other, and nothing else.
 *   bare PATH|PORT KEY COUNT     prints seconds and seconds of CPU */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM = 1000 }; /* GETs before those that are measured */

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    redisContext *c =
        strchr(argv[1], '/') ? redisConnectUnix(argv[1]) : redisConnect("127.0.0.1", (int)strtol(argv[1], NULL, 10));
    if (!c || c->err)
        return 1;
    long count = strtol(argv[3], NULL, 10);
    const char *words[] = {"GET", argv[2]};
    double wall = 0;
    double cpu = 0;
    for (long i = -WARM; i < count; i++) {
        if (i == 0) {
            wall = now(CLOCK_MONOTONIC);
            cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        }
        redisReply *reply = redisCommandArgv(c, 2, words, NULL);
        if (!reply || reply->type != REDIS_REPLY_STRING)
            return 1;
        freeReplyObject(reply);
    }
    printf("%.6f %.6f\n", now(CLOCK_MONOTONIC) - wall, now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    redisFree(c);
    return 0;
}
