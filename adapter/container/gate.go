package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/company"
)

const (
	socketDir  = "gate"
	socketName = "api.sock"
	// gateConns bounds the connections of one container: each costs the node a
	// goroutine and its buffers.
	gateConns = 64
	// gateHeader bounds the wait for the headers of a request.
	gateHeader = 10 * time.Second
)

// A gate is the node's API for one container, on its own socket. Requests over it have exactly
// the rights of the run; credentials in a request are ignored.
type gate struct {
	server *http.Server
	dir    *os.File
}

// openGate listens in the folder socketDir of dir. The folder is accessible to no other user;
// the socket itself to all, because the container's user can be any.
func openGate(dir string, api func() http.Handler, token string, inv company.Invocation) (*gate, error) {
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
	g := &gate{dir: d}
	g.server = &http.Server{ReadHeaderTimeout: gateHeader, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := api()
			if h == nil || !live.MayAct(inv) {
				http.Error(w, `{"error":"the node may not act now"}`, http.StatusServiceUnavailable)
				return
			}
			for _, name := range []string{"Cookie", "X-Api-Key", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host",
				"Forwarded", "X-Real-Ip"} {
				r.Header.Del(name)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("X-Paperclip-Run-Id", inv.Run.ID)
			r.RemoteAddr = "127.0.0.1:0"
			h.ServeHTTP(w, r)
		})}
	go func() {
		_ = g.server.Serve(&bounded{Listener: l, room: make(chan struct{}, gateConns)}) // Close ends it
	}()
	return g, nil
}

// Close closes the socket and ends requests in progress.
func (g *gate) Close() error {
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
