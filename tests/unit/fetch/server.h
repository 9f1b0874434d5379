/*
 * server.h - a web server of one file for the download tests, on a thread, answering one request at a time.
 */
#ifndef LS_TEST_DATA_SERVER_H
#define LS_TEST_DATA_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum server_mode {
	SERVE_RANGES,
	SERVE_WHOLE,  /* ignores ranges */
	SERVE_HALF,   /* promises all, sends half of what is left, hangs up */
	SERVE_NOTHING /* 404 */
};

typedef struct server {
	int listener;
	char url[64]; /* "http://127.0.0.1:PORT/" */
	pthread_t thread;
	const uint8_t *data; /* what every address gives */
	size_t bytes;
	_Atomic int mode, requests;
	_Atomic size_t sent; /* bytes of the body, all requests together */
} server;

static void server_send(server *s, int fd, const void *data, size_t bytes)
{
	while (bytes) {
		ssize_t part = send(fd, data, bytes, MSG_NOSIGNAL);
		if (part <= 0)
			return;
		data = (const char *)data + part;
		bytes -= (size_t)part;
		s->sent += (size_t)part;
	}
}

static void server_answer(server *s, int fd, const char *request)
{
	char head[512];
	size_t begin = 0;
	const char *range = strstr(request, "Range: bytes=");
	int mode = s->mode, partial = range && mode != SERVE_WHOLE;
	if (partial)
		begin = strtoull(range + 13, NULL, 10);
	if (mode == SERVE_NOTHING)
		snprintf(head, sizeof(head),
			 "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	else if (begin > 0 && begin >= s->bytes)
		snprintf(head, sizeof(head),
			 "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	else if (partial)
		snprintf(head, sizeof(head),
			 "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %zu-%zu/%zu\r\nContent-Length: %zu\r\n"
			 "Connection: close\r\n\r\n",
			 begin, s->bytes - 1, s->bytes, s->bytes - begin);
	else
		snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
			 s->bytes);
	send(fd, head, strlen(head), MSG_NOSIGNAL);
	if (mode == SERVE_NOTHING || begin >= s->bytes)
		return;
	size_t left = s->bytes - begin;
	server_send(s, fd, s->data + begin, mode == SERVE_HALF ? left / 2 : left);
}

static void *server_run(void *argument)
{
	server *s = argument;
	for (;;) {
		char request[4096] = { 0 };
		size_t used = 0;
		int fd = accept(s->listener, NULL, NULL);
		if (fd < 0)
			return NULL;
		while (used < sizeof(request) - 1 && !strstr(request, "\r\n\r\n")) {
			ssize_t part = recv(fd, request + used, sizeof(request) - 1 - used, 0);
			if (part <= 0)
				break;
			used += (size_t)part;
		}
		s->requests++;
		server_answer(s, fd, request);
		close(fd);
	}
}

static int server_start(server *s, const void *data, size_t bytes)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	memset(s, 0, sizeof(*s));
	s->data = data;
	s->bytes = bytes;
	s->listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(s->listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(s->listener, 8) != 0 ||
	    getsockname(s->listener, (struct sockaddr *)&address, &length) != 0)
		return -1;
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d/", ntohs(address.sin_port));
	setenv("no_proxy", "127.0.0.1", 1);
	return pthread_create(&s->thread, NULL, server_run, s);
}

static void server_stop(server *s)
{
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->listener);
}

#endif
