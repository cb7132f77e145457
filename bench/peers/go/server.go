// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
)

const response = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" +
	"Content-Length: 6\r\n\r\nhello\n"

func listen() net.Listener {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fail(err.Error())
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	return listener
}

func serve(session func(conn net.Conn)) {
	listener := listen()
	for {
		conn, err := listener.Accept()
		if err != nil {
			fail(err.Error())
		}
		go session(conn)
	}
}

func echo(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		if _, err = conn.Write(buf[:n]); err != nil {
			return
		}
	}
}

// A request ends with an empty line; no body is expected.
func hello(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, 4096)
	answer := []byte(response)
	end := []byte("\r\n\r\n")
	filled := 0
	for filled < len(buf) {
		n, err := conn.Read(buf[filled:])
		if err != nil {
			return
		}
		filled += n
		if !bytes.HasSuffix(buf[:filled], end) {
			continue
		}
		filled = 0
		if _, err = conn.Write(answer); err != nil {
			return
		}
	}
}

func serveEcho()  { serve(echo) }
func serveHello() { serve(hello) }

// What Go users do use for HTTP.
func serveNetHTTP() {
	body := []byte("hello\n")
	http.Serve(listen(), http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Write(body)
		}))
}
