package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"
)

// callTimeout is how long a client waits for an answer.
const callTimeout = 30 * time.Second

// A client speaks HTTP/1.1 over connections that stay open, one request at a time
// on each. The measured clients share the cores with the nodes, and the client of
// the standard library takes 150 µs of them for a request.
type client struct {
	host string

	mu   sync.Mutex
	idle []*clientConn
}

type clientConn struct {
	net.Conn
	r   *bufio.Reader
	buf []byte // the request
}

func (c *client) take(ctx context.Context) (*clientConn, error) {
	c.mu.Lock()
	if n := len(c.idle) - 1; n >= 0 {
		conn := c.idle[n]
		c.idle = c.idle[:n]
		c.mu.Unlock()
		return conn, nil
	}
	c.mu.Unlock()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.host)
	if err != nil {
		return nil, err
	}
	return &clientConn{Conn: conn, r: bufio.NewReader(conn)}, nil
}

// do sends a request and returns its status and, when keep says so, its body. The
// headers are lines with their ends.
func (c *client) do(ctx context.Context, method, path, headers string, body []byte, keep bool) (status int,
	answer []byte, err error) {
	for {
		conn, err := c.take(ctx)
		if err != nil {
			return 0, nil, err
		}
		used := conn.buf != nil
		b := append(conn.buf[:0], method...)
		b = append(append(append(b, ' '), path...), " HTTP/1.1\r\nHost: "...)
		b = append(append(append(b, c.host...), "\r\n"...), headers...)
		b = strconv.AppendInt(append(b, "Content-Length: "...), int64(len(body)), 10)
		conn.buf = append(append(b, "\r\n\r\n"...), body...)
		_ = conn.SetDeadline(time.Now().Add(callTimeout))
		_, err = conn.Write(conn.buf)
		if err == nil {
			_, err = conn.r.Peek(1)
		}
		if err != nil {
			conn.Close()
			if used && errors.Is(err, io.EOF) { // it was closed while nobody used it
				continue
			}
			return 0, nil, err
		}
		status, answer, open, err := readAnswer(conn.r, keep)
		if err != nil || !open {
			conn.Close()
			return status, answer, err
		}
		c.mu.Lock()
		c.idle = append(c.idle, conn)
		c.mu.Unlock()
		return status, answer, nil
	}
}

// readAnswer reads an answer and tells whether the connection stays open.
func readAnswer(r *bufio.Reader, keep bool) (status int, body []byte, open bool, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, nil, false, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return 0, nil, false, fmt.Errorf("not an answer: %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, nil, false, err
	}
	length, open := int64(-1), true
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return status, nil, false, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch len(name) {
		case len("Content-Length"):
			if bytes.EqualFold(name, []byte("Content-Length")) {
				if length, err = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64); err != nil {
					return status, nil, false, err
				}
			}
		case len("Connection"):
			if bytes.EqualFold(name, []byte("Connection")) && bytes.EqualFold(bytes.TrimSpace(value), []byte("close")) {
				open = false
			}
		}
	}
	switch {
	case status == http.StatusNoContent:
		return status, nil, open, nil
	case length < 0: // chunked, or up to the end
		res, err := chunked(r)
		return status, res, open, err
	case keep || status/100 != 2:
		body = make([]byte, length)
		_, err = io.ReadFull(r, body)
	default:
		_, err = r.Discard(int(length))
	}
	return status, body, open, err
}

// chunked reads a body in chunks.
func chunked(r *bufio.Reader) (body []byte, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(string(line)), ";")
		n, err := strconv.ParseInt(size, 16, 32)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			_, err := textproto.NewReader(r).ReadMIMEHeader() // trailers
			return body, err
		}
		at := len(body)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(r, body[at:]); err != nil {
			return nil, err
		}
		if _, err := r.Discard(2); err != nil {
			return nil, err
		}
	}
}

// client returns the client of a node.
func (m *mesh) client(node int) *client {
	host := strings.TrimPrefix(m.nodes[node].HTTP, "http://")
	if c, ok := m.clients.Load(host); ok {
		return c.(*client)
	}
	c, _ := m.clients.LoadOrStore(host, &client{host: host})
	return c.(*client)
}

// call asks a node; path may end in ?read= and a mode.
func (m *mesh) call(ctx context.Context, node int, method, path, token, run string, in, out any) error {
	var body []byte
	var h strings.Builder
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
		h.WriteString("Content-Type: application/json\r\n")
	}
	if token != "" {
		fmt.Fprint(&h, "Authorization: Bearer ", token, "\r\nX-Paperclip-Run-Id: ", run, "\r\n")
	}
	if path == "/mcp" {
		h.WriteString("Accept: application/json, text/event-stream\r\n")
	}
	switch plain, query, asked := strings.Cut(path, "?"); {
	case strings.HasPrefix(query, "read="):
		path = plain
		fmt.Fprint(&h, "X-Selvage-Read: ", query[len("read="):], "\r\n")
	case method == "GET" && !asked:
		h.WriteString("X-Selvage-Read: strong\r\n")
	}
	status, answer, err := m.client(node).do(ctx, method, path, h.String(), body, out != nil)
	switch {
	case err != nil:
		return err
	case status == http.StatusConflict:
		return errConflict
	case status/100 != 2:
		return fmt.Errorf("%s %s: HTTP %d: %.4096s", method, path, status, answer)
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}
