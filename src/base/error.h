/* SPDX-License-Identifier: MIT */
/* src/base/error.h - the table of every code that a call may return.
 *
 * One row a code: the code, its name, a sentence, its category (see
 * pirn/base.h).  The errno values are those that Linux's socket, file, process
 * and thread calls give.  A value that two names share stands once.
 */
#ifndef PIRN_BASE_ERROR_H
#define PIRN_BASE_ERROR_H

#include <errno.h>

#include <pirn/base.h>

/* Rows of PIRN__ERROR_TABLE for codes that errno has a name for. */
#define PIRN__ERRNO_TABLE(X) \
    X(-ECANCELED, "ECANCELED", "the task was cancelled", CANCELLED) \
    X(-ETIMEDOUT, "ETIMEDOUT", "the deadline passed", TIMED_OUT) \
    X(-ETIME, "ETIME", "the timer expired", TIMED_OUT) \
    X(-EPIPE, "EPIPE", "the reader is gone", CLOSED) \
    X(-ECONNRESET, "ECONNRESET", "the peer reset the connection", CLOSED) \
    X(-ECONNABORTED, "ECONNABORTED", "the connection was aborted", CLOSED) \
    X(-ENOTCONN, "ENOTCONN", "the socket is not connected", CLOSED) \
    X(-ESHUTDOWN, "ESHUTDOWN", "the socket was shut down", CLOSED) \
    X(-ENETRESET, "ENETRESET", "the network dropped the connection", CLOSED) \
    X(-ECONNREFUSED, "ECONNREFUSED", "nobody listens there", REFUSED) \
    X(-EACCES, "EACCES", "permission denied", REFUSED) \
    X(-EPERM, "EPERM", "not permitted here or to this caller", REFUSED) \
    X(-EROFS, "EROFS", "the file system is read-only", REFUSED) \
    X(-ETXTBSY, "ETXTBSY", "the program file is in use", REFUSED) \
    X(-ENOMEM, "ENOMEM", "out of memory", RESOURCE) \
    X(-EAGAIN, "EAGAIN", "not possible at the moment, or full", RESOURCE) \
    X(-EMFILE, "EMFILE", "the process has no descriptor left", RESOURCE) \
    X(-ENFILE, "ENFILE", "the system has no descriptor left", RESOURCE) \
    X(-ENOBUFS, "ENOBUFS", "out of buffer space", RESOURCE) \
    X(-ENOSPC, "ENOSPC", "no space left", RESOURCE) \
    X(-EDQUOT, "EDQUOT", "the quota is used up", RESOURCE) \
    X(-EUSERS, "EUSERS", "too many users", RESOURCE) \
    X(-ENOLCK, "ENOLCK", "no locks left", RESOURCE) \
    X(-EFBIG, "EFBIG", "the file would be too large", RESOURCE) \
    X(-EMLINK, "EMLINK", "too many links", RESOURCE) \
    X(-EINVAL, "EINVAL", "invalid argument", USAGE) \
    X(-EBADF, "EBADF", "not an open descriptor of the right mode", USAGE) \
    X(-EFAULT, "EFAULT", "bad address", USAGE) \
    X(-EDEADLK, "EDEADLK", "waiting here would deadlock", USAGE) \
    X(-EBUSY, "EBUSY", "in use by another caller", USAGE) \
    X(-ESRCH, "ESRCH", "it no longer exists", USAGE) \
    X(-EALREADY, "EALREADY", "already under way", USAGE) \
    X(-EINPROGRESS, "EINPROGRESS", "still under way", USAGE) \
    X(-EISCONN, "EISCONN", "the socket is connected already", USAGE) \
    X(-ENOTSOCK, "ENOTSOCK", "not a socket", USAGE) \
    X(-EDESTADDRREQ, "EDESTADDRREQ", "a destination is needed", USAGE) \
    X(-EMSGSIZE, "EMSGSIZE", "the message is too long", USAGE) \
    X(-EPROTOTYPE, "EPROTOTYPE", "wrong protocol for the socket", USAGE) \
    X(-ENOPROTOOPT, "ENOPROTOOPT", "no such protocol option", USAGE) \
    X(-EPROTONOSUPPORT, "EPROTONOSUPPORT", "unsupported protocol", USAGE) \
    X(-ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT", "unsupported socket type", USAGE) \
    X(-EOPNOTSUPP, "EOPNOTSUPP", "operation not supported", USAGE) \
    X(-EPFNOSUPPORT, "EPFNOSUPPORT", "unsupported protocol family", USAGE) \
    X(-EAFNOSUPPORT, "EAFNOSUPPORT", "unsupported address family", USAGE) \
    X(-E2BIG, "E2BIG", "the argument list is too long", USAGE) \
    X(-ENAMETOOLONG, "ENAMETOOLONG", "the name is too long", USAGE) \
    X(-ENOTTY, "ENOTTY", "not possible on this descriptor", USAGE) \
    X(-ESPIPE, "ESPIPE", "this descriptor cannot seek", USAGE) \
    X(-EDOM, "EDOM", "argument out of domain", USAGE) \
    X(-ERANGE, "ERANGE", "result out of range", USAGE) \
    X(-EOVERFLOW, "EOVERFLOW", "the value does not fit", USAGE) \
    X(-ENOSYS, "ENOSYS", "this system lacks the function", USAGE) \
    X(-EADDRINUSE, "EADDRINUSE", "the address is in use", SYSTEM) \
    X(-EADDRNOTAVAIL, "EADDRNOTAVAIL", "not an address of this host", SYSTEM) \
    X(-ENETDOWN, "ENETDOWN", "the network is down", SYSTEM) \
    X(-ENETUNREACH, "ENETUNREACH", "the network is unreachable", SYSTEM) \
    X(-EHOSTDOWN, "EHOSTDOWN", "the host is down", SYSTEM) \
    X(-EHOSTUNREACH, "EHOSTUNREACH", "the host is unreachable", SYSTEM) \
    X(-ENONET, "ENONET", "the machine is not on a network", SYSTEM) \
    X(-EPROTO, "EPROTO", "protocol error", SYSTEM) \
    X(-EINTR, "EINTR", "interrupted by a signal", SYSTEM) \
    X(-EIO, "EIO", "input or output error", SYSTEM) \
    X(-EREMOTEIO, "EREMOTEIO", "remote input or output error", SYSTEM) \
    X(-ENOENT, "ENOENT", "no such file or directory", SYSTEM) \
    X(-EEXIST, "EEXIST", "the file exists", SYSTEM) \
    X(-ENOTDIR, "ENOTDIR", "not a directory", SYSTEM) \
    X(-EISDIR, "EISDIR", "is a directory", SYSTEM) \
    X(-ENOTEMPTY, "ENOTEMPTY", "the directory is not empty", SYSTEM) \
    X(-ELOOP, "ELOOP", "too many symbolic links", SYSTEM) \
    X(-EXDEV, "EXDEV", "another file system", SYSTEM) \
    X(-ENXIO, "ENXIO", "no such device or address", SYSTEM) \
    X(-ENODEV, "ENODEV", "no such device", SYSTEM) \
    X(-ENOTBLK, "ENOTBLK", "not a block device", SYSTEM) \
    X(-ENOEXEC, "ENOEXEC", "not a program this system can run", SYSTEM) \
    X(-ECHILD, "ECHILD", "no such child process", SYSTEM) \
    X(-ESTALE, "ESTALE", "the file handle is stale", SYSTEM) \
    X(-EBADMSG, "EBADMSG", "malformed data", SYSTEM) \
    X(-ENODATA, "ENODATA", "no data", SYSTEM) \
    X(-EILSEQ, "EILSEQ", "malformed character sequence", SYSTEM) \
    X(-EIDRM, "EIDRM", "the identifier was removed", SYSTEM) \
    X(-EOWNERDEAD, "EOWNERDEAD", "the owner has died", SYSTEM) \
    X(-ENOTRECOVERABLE, "ENOTRECOVERABLE", "state not recoverable", SYSTEM)

/* Rows for codes of our own. */
#define PIRN__OWN_ERROR_TABLE(X) \
    X(PIRN_ECLOSED, "PIRN_ECLOSED", "the object was closed", CLOSED) \
    X(PIRN_ESHUTDOWN, "PIRN_ESHUTDOWN", "the runtime is stopping or gone", \
      CLOSED) \
    X(PIRN_ENORUNTIME, "PIRN_ENORUNTIME", "no runtime is current", USAGE) \
    X(PIRN_EEOF, "PIRN_EEOF", "the stream ended too early", CLOSED) \
    X(PIRN_EABORTED, "PIRN_EABORTED", "the task was aborted", CANCELLED) \
    X(PIRN_EPANIC, "PIRN_EPANIC", "the task panicked", INTERNAL) \
    X(PIRN_EFAILED, "PIRN_EFAILED", "the task failed", INTERNAL) \
    X(PIRN_EFORKED, "PIRN_EFORKED", "the runtime is the parent process's", \
      USAGE)

#define PIRN__ERROR_TABLE(X) \
    PIRN__ERRNO_TABLE(X) \
    PIRN__OWN_ERROR_TABLE(X)

#endif /* PIRN_BASE_ERROR_H */
