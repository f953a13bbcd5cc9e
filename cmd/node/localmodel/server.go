package localmodel

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// Name is the name of the model.
	Name = "gemma3-270m"
	// Port is the default port of the server.
	Port = 11436
	// Context is the longest context of the model, in tokens; see serve.py.
	Context = 32768

	// maxRestarts bounds the restarts of a server that ended by itself. firstPause is the
	// wait before the first restart; it doubles each time.
	maxRestarts = 5
	firstPause  = time.Second
	// endWait is how long the server has to exit after its input was closed.
	endWait = 5 * time.Second
	// maxServerLog bounds the stored output of the server, in bytes.
	maxServerLog = 1 << 20
)

//go:embed install.sh
var installScript string

//go:embed serve.py
var serveScript string

// A Server is the small model of one directory: the installed files, and the process
// that serves it. The process that calls Run is its parent and stops it. If that parent
// is killed, the server's input is closed and the server exits.
type Server struct {
	Dir  string
	Port int
}

// A record in the directory describes the running server.
type record struct {
	PID   int    `json:"pid"` // of the process that called Run
	Start string `json:"start"`
	URL   string `json:"url"`
}

// Install installs what is missing, and reports its steps to talk.
func (s Server) Install(ctx context.Context, talk io.Writer) error {
	cmd := exec.CommandContext(ctx, "sh", "-s", s.Dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(installScript), talk, talk
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("install the model into %s: %w", s.Dir, err)
	}
	return nil
}

// URL returns the address of the server.
func (s Server) URL() string { return fmt.Sprintf("http://127.0.0.1:%d/v1", s.Port) }

func (s Server) file() string { return filepath.Join(s.Dir, "server.json") }

// Run serves until ctx ends. It restarts a server that ends by itself, at most
// maxRestarts times. It calls ready each time the server listens.
func (s Server) Run(ctx context.Context, log io.Writer, ready func()) error {
	log = &bounded{w: log, left: maxServerLog}
	if r, ok := s.Running(); ok {
		return fmt.Errorf("it runs already, as process %d", r)
	}
	me := os.Getpid()
	b, err := json.Marshal(record{PID: me, Start: startOf(me), URL: s.URL()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.file(), b, 0o600); err != nil {
		return err
	}
	defer os.Remove(s.file())
	pause := firstPause
	for restarts := 0; ; restarts++ {
		err := s.serve(ctx, log, ready)
		if ctx.Err() != nil {
			return nil
		}
		if restarts == maxRestarts {
			return fmt.Errorf("the model's server ended %d times: %w", restarts+1, err)
		}
		fmt.Fprintf(log, "the model's server ended (%v); it is started again in %s\n", err, pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// serve starts the server and waits for its end. When ctx ends it closes the server's
// input, and after endWait it kills the server by its process ID.
func (s Server) serve(ctx context.Context, log io.Writer, ready func()) error {
	cmd := exec.Command(filepath.Join(s.Dir, "v", "bin", "python"), "-c", serveScript, filepath.Join(s.Dir, "model.gguf"),
		strconv.Itoa(s.Port), Name)
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	listened := make(chan struct{})
	go func() { // ends with the process
		defer close(listened)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "listening ") {
				ready()
			}
		}
	}()
	ended := make(chan error, 1)
	go func() {
		<-listened
		ended <- cmd.Wait()
	}()
	select {
	case err := <-ended:
		in.Close()
		if err == nil {
			err = errors.New("without an error")
		}
		return err
	case <-ctx.Done():
	}
	in.Close()
	select {
	case <-ended:
	case <-time.After(endWait):
		_ = cmd.Process.Kill()
		<-ended
	}
	return ctx.Err()
}

// Running returns the process that runs the directory's server. It compares the start
// time, if the system reports it, so that another process with a reused ID does not
// count.
func (s Server) Running() (pid int, ok bool) {
	b, err := os.ReadFile(s.file())
	var r record
	if err != nil || json.Unmarshal(b, &r) != nil || r.PID <= 1 || startOf(r.PID) != r.Start {
		return 0, false
	}
	p, err := os.FindProcess(r.PID)
	return r.PID, err == nil && p.Signal(syscall.Signal(0)) == nil
}

// startOf returns when a process started, in the system's units, "" if unknown.
func startOf(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(b), ") ") // the name may have spaces
	fields := strings.Fields(after)
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// bounded passes on the first bytes and drops the rest.
type bounded struct {
	w    io.Writer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	if n > 0 {
		if _, err := b.w.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
