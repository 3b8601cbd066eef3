/* raw is the floor of a fan-out: an epoll loop that accepts, answers the
 * handshake, and writes what it reads on its standard input to every socket.
 * It has no timers, no order to keep, no state but the sockets, and it neither
 * checks what clients say nor finishes what a socket does not take.
 *
 * Standard input: a length, 4 bytes little-endian, and so many bytes, again and
 * again. Standard output: the port, once. Its only argument is the answer to a
 * handshake. It ends with its input. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 65536 };

static int fds[MOST], place[MOST], count; /* fds of sessions; place of an fd among them, plus one */

static void leave(int fd) {
	if (place[fd]) {
		int last = fds[--count];
		fds[place[fd] - 1] = last;
		place[last] = place[fd];
		place[fd] = 0;
	}
	close(fd);
}

static void fan_out(const char *bytes, uint32_t n) {
	for (int i = count - 1; i >= 0; i--) {
		ssize_t sent = send(fds[i], bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent != (ssize_t)n && !(sent < 0 && errno == EAGAIN)) leave(fds[i]);
	}
}

static int read_fully(void *into, size_t n) {
	for (size_t at = 0; at < n;) {
		ssize_t got = read(0, (char *)into + at, n - at);
		if (got <= 0) return 0;
		at += (size_t)got;
	}
	return 1;
}

int main(int argc, char **argv) {
	if (argc != 2) return 2;
	int one = 1, ep = epoll_create1(0), ln = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	setsockopt(ln, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(ln, (struct sockaddr *)&at, size) || listen(ln, 4096) || getsockname(ln, (struct sockaddr *)&at, &size)) {
		perror("raw: listen");
		return 1;
	}
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	struct epoll_event e = {.events = EPOLLIN, .data.fd = ln}, in = {.events = EPOLLIN, .data.fd = 0}, got[256];
	epoll_ctl(ep, EPOLL_CTL_ADD, ln, &e);
	epoll_ctl(ep, EPOLL_CTL_ADD, 0, &in);
	char ask[8192], *bytes = NULL;
	for (;;) {
		int n = epoll_wait(ep, got, 256, -1);
		for (int i = 0; i < n; i++) {
			int fd = got[i].data.fd;
			if (fd == 0) {
				uint32_t len;
				if (!read_fully(&len, sizeof len)) return 0;
				bytes = realloc(bytes, len);
				if (!bytes || !read_fully(bytes, len)) return 0;
				fan_out(bytes, len);
			} else if (fd == ln) {
				int fresh;
				while ((fresh = accept4(ln, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
					if (fresh >= MOST) {
						close(fresh);
						continue;
					}
					setsockopt(fresh, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
					struct epoll_event s = {.events = EPOLLIN, .data.fd = fresh};
					epoll_ctl(ep, EPOLL_CTL_ADD, fresh, &s);
				}
			} else {
				ssize_t r = recv(fd, ask, sizeof ask, MSG_DONTWAIT);
				if (r == 0 || (r < 0 && errno != EAGAIN)) {
					leave(fd);
				} else if (r > 0 && !place[fd]) { /* the whole request, on the loopback */
					send(fd, argv[1], strlen(argv[1]), MSG_DONTWAIT | MSG_NOSIGNAL);
					fds[count] = fd;
					place[fd] = ++count;
				}
			}
		}
	}
}
