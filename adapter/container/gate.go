package container

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	socketDir  = "gate"
	socketName = "api.sock"
	// SocketEnv is the variable with the path of the socket in the container, and SocketURL the
	// address of requests over it.
	SocketEnv = "SELVAGE_API_SOCKET"
	SocketURL = "http://localhost"
	// SocketPath is that path.
	SocketPath = socketAt + "/" + socketName
	// gateConns bounds the connections of one container: each costs the node a
	// goroutine and its buffers.
	gateConns = 64
	// gateHeader bounds the wait for the headers of a request.
	gateHeader = 10 * time.Second
)

// A Gate is the node's API for one container or process, on its own socket. Requests over it have exactly
// the rights of the run or the process; credentials in a request are ignored.
type Gate struct {
	server *http.Server
	dir    *os.File
}

// OpenGate listens in a folder of dir, which [GateMount] brings into the container. The folder is
// accessible to no other user; the socket itself to all, because the container's user can be any.
// Each request has the token, and the headers; may reports whether requests may act now.
func OpenGate(dir string, api func() http.Handler, token string, headers map[string]string,
	may func() bool) (*Gate, error) {
	at := filepath.Join(dir, socketDir)
	if err := os.Mkdir(at, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(at, 0o755); err != nil {
		return nil, err
	}
	d, err := os.Open(at)
	if err != nil {
		return nil, err
	}
	// Socket paths must be short; paths of folders need not be.
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socketName))
	if err != nil {
		d.Close()
		return nil, err
	}
	if err := os.Chmod(filepath.Join(at, socketName), 0o666); err != nil {
		l.Close()
		d.Close()
		return nil, err
	}
	headers = maps.Clone(headers)
	g := &Gate{dir: d}
	g.server = &http.Server{ReadHeaderTimeout: gateHeader, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := api()
			if h == nil || !may() {
				http.Error(w, `{"error":"the node may not act now"}`, http.StatusServiceUnavailable)
				return
			}
			for _, name := range []string{"Cookie", "X-Api-Key", "X-Paperclip-Run-Id", "X-Forwarded-For", "X-Forwarded-Proto",
				"X-Forwarded-Host", "Forwarded", "X-Real-Ip"} {
				r.Header.Del(name)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			for name, value := range headers {
				r.Header.Set(name, value)
			}
			r.RemoteAddr = "127.0.0.1:0"
			h.ServeHTTP(w, r)
		})}
	go func() {
		_ = g.server.Serve(&bounded{Listener: l, room: make(chan struct{}, gateConns)}) // Close ends it
	}()
	return g, nil
}

// SocketIn returns the path of the socket that [OpenGate] makes in dir, for what runs beside the node.
func SocketIn(dir string) string { return filepath.Join(dir, socketDir, socketName) }

// GateMount is the argument of --mount that brings the socket of dir into a container.
func GateMount(dir string) string {
	return "type=bind,source=" + filepath.Join(dir, socketDir) + ",target=" + socketAt + ",readonly"
}

// Close closes the socket and ends requests in progress.
func (g *Gate) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), 0)
	defer stop()
	_ = g.server.Shutdown(ctx)
	return errors.Join(g.server.Close(), g.dir.Close())
}

// bounded limits the number of open connections.
type bounded struct {
	net.Listener
	room chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	b.room <- struct{}{}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.room
		return nil, err
	}
	return &leaving{Conn: c, room: b.room}, nil
}

type leaving struct {
	net.Conn
	room chan struct{}
	once sync.Once
}

func (l *leaving) Close() error {
	l.once.Do(func() { <-l.room })
	return l.Conn.Close()
}
