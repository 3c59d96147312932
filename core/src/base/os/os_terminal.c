/* Terminals by termios(3); see the header. */
#include "oribi/base/os/os_terminal.h"

#include "oribi/base/os/os.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool oribi_terminal_is(int fd)
{
    return isatty(fd);
}

bool oribi_terminal_shows_colours(int fd)
{
    const char *refused = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    return isatty(fd) && !(refused && *refused) && !(kind && strcmp(kind, "dumb") == 0);
}

void oribi_terminal_size(int fd, uint32_t *rows, uint32_t *columns)
{
    struct winsize size = {0};
    (void)ioctl(fd, TIOCGWINSZ, &size); /* a size of 0 where it fails */
    *rows = size.ws_row ? size.ws_row : 24;
    *columns = size.ws_col ? size.ws_col : 80;
}

bool oribi_terminal_has_input(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    return poll(&polled, 1, 0) > 0;
}

static bool takes_output(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLOUT};
    return poll(&polled, 1, 0) > 0 && (polled.revents & POLLOUT);
}

bool oribi_terminal_ready(int fd)
{
    if (takes_output(fd))
        return true;
    (void)tcflush(fd, TCOFLUSH); /* as the next two: fails where the terminal is gone */
    (void)tcflow(fd, TCOOFF);    /* on alone takes back an off, but no Ctrl-S */
    (void)tcflow(fd, TCOON);
    return takes_output(fd);
}

int oribi_terminal_begin(struct oribi_terminal *terminal)
{
    struct termios now;
    if (tcgetattr(terminal->fd, &now) < 0)
        return oribi_os_fail();
    if (!terminal->is_saved)
        terminal->saved = now;
    terminal->is_saved = true;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    return tcsetattr(terminal->fd, TCSANOW, &now) < 0 ? oribi_os_fail() : 0;
}

void oribi_terminal_end(struct oribi_terminal *terminal)
{
    if (terminal->is_saved)
        (void)tcsetattr(terminal->fd, TCSANOW, &terminal->saved); /* fails where the terminal is gone */
    terminal->is_saved = false;
}

void oribi_terminal_stop(void)
{
    (void)raise(SIGTSTP);
}
