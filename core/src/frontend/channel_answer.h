/* Answers on their way from channels to the clients of calls: read as they come, and handed on as the call's ops. */
#ifndef ORIBI_FRONTEND_CHANNEL_ANSWER_H
#define ORIBI_FRONTEND_CHANNEL_ANSWER_H

struct oribi__channel;
struct oribi__frontend;

/* Reads what has come by rings, and on where the last turn has stopped. Takes back what lies in the ring of a worker
 * that does not come to it (untaken.h). */
void oribi__channels_turn(struct oribi__frontend *frontend);

int oribi__channels_wait(const struct oribi__frontend *frontend); /* how many have something in their ring */

/* Goes on with an answer, unless its call is blocked. The call, and the channel, may be over afterwards. */
void oribi__channel_read(struct oribi__channel *channel);

/* The worker has closed its end, or is dead: closes the channel. Its call has ended, goes into the queue again, or
 * fails. */
void oribi__channel_ended(struct oribi__channel *channel);

#endif
