package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// natsVersion is the rival of messages between processes.
const natsVersion = "v2.15.2"

var processLines = []fromRoom{
	{"SpawnModule", "ns/op", "a life of a WASM process: spawned, executed, ended", 1e-6, "%.3f ms", "≤ 1 ms"},
	{"ProcessesAtRest", "MiB", "10,000 WASM processes that wait in _start, memory", 1, "%.0f MiB", ""},
	{"ProcessesAtRest", "%core", "the same, processor", 1, "%.2f %% of a core", "< 1 %"},
}

// handlerLines are of a whole node, with logs and inboxes.
var handlerLines = []fromRoom{
	{"AtRest/handler", "MB", "10,000 WASM processes at rest, called once each (on_message), memory", 1, "%.0f MB",
		"≤ 100 MB"},
	{"AtRest/handler", "%core", "the same, processor, beyond that of the node without them", 1, "%.2f %% of a core",
		"< 1 %"},
	{"AtRest/handler", "%own", "the node without them, processor", 1, "%.2f %% of a core", ""},
	{"AtRest/fresh", "MB", "the same before their first message, memory", 1, "%.0f MB", ""},
}

var messageLines = []fromRoom{
	{"Messages/request/near", "p50-µs", "request and reply within a node, p50", 1, "%.1f µs", "≤ 5 µs"},
	{"Messages/request/near", "p99-µs", "the same, p99", 1, "%.0f µs", ""},
	{"Messages/send/near", "msgs/s", "messages within a node", 1, "%.0f/s", "≥ 500,000/s"},
	{"Messages/request/far", "p50-µs", "request and reply between two nodes, p50", 1, "%.0f µs", "≤ 300 µs"},
	{"Messages/request/far", "p99-µs", "the same, p99", 1, "%.0f µs", ""},
	{"Messages/send/far", "msgs/s", "messages between two nodes", 1, "%.0f/s", "≥ 20,000/s"},
}

// kernelPart measures processes and messages, beside nats-server's request and reply in the same run.
func kernelPart(ctx context.Context, b *bench) error {
	if err := ofRoom(ctx, "./adapter/spawn", "^Benchmark(SpawnModule|ProcessesAtRest)$", processLines); err != nil {
		return err
	}
	if err := ofRoom(ctx, "./testnet/testkit", "^BenchmarkAtRest$", handlerLines); err != nil {
		return err
	}
	if err := ofRoom(ctx, "./testnet/testkit", "^BenchmarkMessages$", messageLines); err != nil {
		return err
	}
	if err := besideNATS(ctx, b); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", "^TestProcessesOfAMesh$", "./testnet")
	cmd.Dir, cmd.Env, cmd.Stderr = "..", append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	out, err := cmd.Output()
	took := regexp.MustCompile(`failed over in ([0-9.]+m?s)`).FindSubmatch(out)
	if err != nil || took == nil {
		return fmt.Errorf("failover of a declared process: %w\n%s", orUntold(err), out)
	}
	row("a declared process runs elsewhere after its node was killed", string(took[1]), "≤ 8 s")
	return nil
}

// orUntold is why a test that ran tells no time.
func orUntold(err error) error {
	if err == nil {
		return errors.New("its time is not told")
	}
	return err
}

// besideNATS measures request and reply of two nats-servers in a cluster, by connections of their own
// protocol without a library: to the server of the one who asks, and across to the other.
func besideNATS(ctx context.Context, b *bench) error {
	dir := filepath.Join(b.Dir, "nats")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	bin := os.Getenv("NATS_BIN")
	if bin == "" {
		bin = filepath.Join(os.TempDir(), "selvage-bench-nats-"+natsVersion, "nats-server")
	}
	if _, err := os.Stat(bin); err != nil {
		cmd := exec.CommandContext(ctx, "go", "install", "github.com/nats-io/nats-server/v2@"+natsVersion)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOBIN="+filepath.Dir(bin), "GOFLAGS=", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build nats-server: %w\n%s", err, out)
		}
	}
	var addrs []string
	for i := range 2 {
		addr := fmt.Sprintf("127.0.0.1:%d", 24811+i)
		conf := filepath.Join(dir, fmt.Sprintf("n%d.conf", i))
		text := fmt.Sprintf("server_name: n%d\nlisten: %s\n"+
			"cluster { name: c, listen: 127.0.0.1:%d, routes: [nats://127.0.0.1:24821] }\n", i, addr, 24821+i)
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			return err
		}
		cmd := exec.Command(bin, "-c", conf)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		addrs = append(addrs, addr)
	}
	for _, w := range []struct{ at, what string }{{addrs[0], "nats-server, one server"},
		{addrs[1], "nats-server, across two"}} {
		if err := natsRequests(ctx, b.Seconds, addrs[0], w.at, w.what); err != nil {
			return fmt.Errorf("%s: %w", w.what, err)
		}
	}
	return nil
}

// A natsConn is a connection to a server.
type natsConn struct {
	net.Conn
	r *bufio.Reader
}

func dialNATS(ctx context.Context, addr string) (*natsConn, error) {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			if time.Now().After(deadline) || ctx.Err() != nil {
				return nil, err
			}
			continue
		}
		n := &natsConn{c, bufio.NewReader(c)}
		if _, err := n.r.ReadString('\n'); err != nil { // INFO
			return nil, err
		}
		_, err = io.WriteString(c, "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n")
		return n, err
	}
}

// next returns the reply subject of the next message, "" for a message without one.
func (n *natsConn) next() (string, error) {
	for {
		line, err := n.r.ReadBytes('\n')
		if err != nil {
			return "", err
		}
		f := strings.Fields(string(line))
		switch {
		case bytes.HasPrefix(line, []byte("PING")):
			if _, err := io.WriteString(n, "PONG\r\n"); err != nil {
				return "", err
			}
		case bytes.HasPrefix(line, []byte("MSG")) && len(f) >= 4:
			size, err := strconv.Atoi(f[len(f)-1])
			if err == nil {
				_, err = n.r.Discard(size + 2)
			}
			if len(f) == 5 {
				return f[3], err
			}
			return "", err
		case bytes.HasPrefix(line, []byte("-ERR")):
			return "", errors.New(strings.TrimSpace(string(line)))
		}
	}
}

// natsRequests measures requests of one client to a responder at another server, and then messages of
// one sender.
func natsRequests(ctx context.Context, d time.Duration, at, to, what string) error {
	asker, err := dialNATS(ctx, at)
	if err != nil {
		return err
	}
	defer asker.Close()
	responder, err := dialNATS(ctx, to)
	if err != nil {
		return err
	}
	defer responder.Close()
	if _, err := io.WriteString(responder, "SUB ask 1\r\n"); err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer responder.Close()
	wg.Go(func() {
		for {
			reply, err := responder.next()
			if err != nil {
				return
			}
			if reply == "" {
				continue
			}
			if _, err := io.WriteString(responder, "PUB "+reply+" 5\r\nworld\r\n"); err != nil {
				return
			}
		}
	})
	if _, err := io.WriteString(asker, "SUB in 1\r\n"); err != nil {
		return err
	}
	ask := func(wait time.Duration) error {
		if err := asker.SetReadDeadline(time.Now().Add(wait)); err != nil {
			return err
		}
		if _, err := io.WriteString(asker, "PUB ask in 5\r\nhello\r\n"); err != nil {
			return err
		}
		_, err := asker.next()
		return err
	}
	for deadline := time.Now().Add(20 * time.Second); ; { // until the servers know each other's subscriptions
		err := ask(time.Second)
		if err == nil {
			break
		}
		if n := net.Error(nil); !errors.As(err, &n) || !n.Timeout() || time.Now().After(deadline) {
			return err
		}
	}
	var took []time.Duration
	for until := time.Now().Add(d); time.Now().Before(until) && ctx.Err() == nil; {
		began := time.Now()
		if err := ask(10 * time.Second); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	if len(took) == 0 {
		return ctx.Err()
	}
	row(what+": request and reply, p50", fmt.Sprintf("%d µs", took[len(took)/2].Microseconds()), "")
	row("the same, p99", fmt.Sprintf("%d µs", took[len(took)*99/100].Microseconds()), "")
	return nil
}
