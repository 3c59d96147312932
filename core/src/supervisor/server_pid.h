/* The pid file of the server (pid_file.h), under the name of the option; a predecessor's steps aside. */
#ifndef ORIBI_SUPERVISOR_SERVER_PID_H
#define ORIBI_SUPERVISOR_SERVER_PID_H

struct oribi__context;

/* 0, also without the option; or a code with `error`. */
int oribi__server_pid_write(struct oribi__context *context, char *error);

/* Makes room for a successor's; and takes the name back. */
void oribi__server_pid_step_aside(struct oribi__context *context);
void oribi__server_pid_take_back(struct oribi__context *context);

/* Removes the file; or leaves it to the next program, which has this pid. */
void oribi__server_pid_remove(struct oribi__context *context);
void oribi__server_pid_leave(struct oribi__context *context);

#endif
