package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const etcdVersion = "v3.7.3"

// etcd is three members on loopback, every write synced (its default).
type etcd struct {
	cmds   []*exec.Cmd
	client *clientv3.Client
	once   sync.Once
	start  int64
}

// startEtcd builds the server from its module (its go.mod has replace
// directives, so `go install module@version` refuses) and starts three members.
func startEtcd(ctx context.Context, dir string) (*etcd, error) {
	bin := os.Getenv("ETCD_BIN")
	if bin == "" {
		bin = filepath.Join(os.TempDir(), "selvage-bench-etcd-"+etcdVersion)
	}
	if _, err := os.Stat(bin); err != nil {
		build := filepath.Join(dir, "build")
		if err := os.MkdirAll(build, 0o755); err != nil {
			return nil, err
		}
		for _, argv := range [][]string{
			{"go", "mod", "init", "etcdbuild"},
			{"go", "get", "go.etcd.io/etcd/server/v3@" + etcdVersion},
			{"go", "build", "-o", bin, "go.etcd.io/etcd/server/v3"},
		} {
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			cmd.Dir = build
			if out, err := cmd.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
			}
		}
	}
	e := &etcd{start: time.Now().UnixNano()}
	var cluster, endpoints []string
	for i := range 3 {
		cluster = append(cluster, fmt.Sprintf("m%d=http://127.0.0.1:%d", i, 24801+i))
		endpoints = append(endpoints, fmt.Sprintf("http://127.0.0.1:%d", 24791+i))
	}
	for i := range 3 {
		peer, client := fmt.Sprintf("http://127.0.0.1:%d", 24801+i), endpoints[i]
		cmd := exec.Command(bin, "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(dir, fmt.Sprintf("m%d", i)),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(cluster, ","), "--log-level", "error")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			e.stop()
			return nil, err
		}
		e.cmds = append(e.cmds, cmd)
	}
	var err error
	if e.client, err = clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 10 * time.Second}); err != nil {
		e.stop()
		return nil, err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		put, cancel := context.WithTimeout(ctx, time.Second)
		_, err = e.client.Put(put, "warm", "up")
		cancel()
		if err == nil {
			return e, nil
		}
		if time.Now().After(deadline) {
			e.stop()
			return nil, fmt.Errorf("etcd does not answer: %w", err)
		}
	}
}

// claim is create-if-absent of a distinct key: what a checkout is in etcd's terms.
func (e *etcd) claim(round int) op {
	return func(ctx context.Context, w, i int) error {
		k := fmt.Sprintf("claim/%d/%d/%d/%d", e.start, round, w, i)
		r, err := e.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(k), "=", 0)).
			Then(clientv3.OpPut(k, fmt.Sprint("agent", w))).Commit()
		if err == nil && !r.Succeeded {
			return errConflict
		}
		return err
	}
}

// get is a linearizable read of a key that was claimed.
func (e *etcd) get(ctx context.Context, w, i int) error {
	_, err := e.client.Get(ctx, fmt.Sprintf("claim/%d/0/%d/%d", e.start, w, i%100))
	return err
}

func (e *etcd) stop() {
	e.once.Do(func() {
		if e.client != nil {
			e.client.Close()
		}
		for _, c := range e.cmds {
			c.Process.Kill()
			c.Wait()
		}
	})
}
