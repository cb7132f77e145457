/* SPDX-License-Identifier: MIT */
/* tests/headers/all.c - the public names beside those of POSIX and Windows.
 *
 * Windows headers define short words as macros; a header that uses one as an
 * identifier breaks there.
 */
#include <aio.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What <windows.h> and its like leave behind. */
#define ABSOLUTE 1
#define ALTERNATE 1
#define BOOL int
#define CALLBACK
#define CONST const
#define DELETE 0x00010000
#define DIFFERENCE 11
#define DOMAIN 1
#define ERROR 0
#define FALSE 0
#define FAR
#define IGNORE 0
#define IN
#define INFINITE 0xFFFFFFFF
#define NEAR
#define NO_ERROR 0
#define OPTIONAL
#define OUT
#define OVERFLOW 3
#define PASCAL
#define STRICT 1
#define TRUE 1
#define UNDERFLOW 4
#define VOID void
#define Yield()
#define far
#define huge
#define interface struct
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define near
#define pascal
#define small char

#include <pirn/pirn.h>

/* Twice is as good as once. */
#include <pirn/pirn.h>
