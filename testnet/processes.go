package testnet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Node is one process of a local mesh, as `selvage testnet status -o json` shows it.
type Node struct {
	Name  string `json:"name"`
	ID    string `json:"id"`   // NodeID, once the node has answered
	HTTP  string `json:"http"` // URL of its API
	Mesh  string `json:"mesh"` // UDP address of its peer port
	PID   int    `json:"pid"`
	Dir   string `json:"dir"`
	Role  string `json:"role"`  // leader, voter, non-voter, or "" when it does not answer
	Alive bool   `json:"alive"` // the process exists (a paused one does too)
}

// Processes is a mesh of real processes, described by <dir>/testnet.json.
type Processes struct {
	Nodes []Node `json:"nodes"`
	Bin   string `json:"bin"`
	dir   string
}

// Options says what mesh Up starts.
type Options struct {
	Dir      string // data, logs and pids; made when absent
	Bin      string // the selvage binary
	N        int    // nodes, 1..MaxNodes
	HTTPPort int    // node i serves HTTP on HTTPPort+i
	MeshPort int    // and its peers on MeshPort+i
	Args     []string
	Log      io.Writer // what is going on, a line each
}

func stateFile(dir string) string { return filepath.Join(dir, "testnet.json") }

// Load reads the mesh that lives in dir.
func Load(dir string) (*Processes, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(stateFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no testnet in %s: start one with selvage testnet up --dir %s", dir, dir)
	} else if err != nil {
		return nil, err
	}
	p := &Processes{dir: dir}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("%s: %w", stateFile(dir), err)
	}
	return p, nil
}

func (p *Processes) save() error {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	tmp := stateFile(p.dir) + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, stateFile(p.dir))
}

// Up starts a mesh, or the nodes of an existing one that do not run. The first
// node founds the mesh, the others join with a token.
func Up(ctx context.Context, o Options) (*Processes, error) {
	if o.N < 1 || o.N > MaxNodes {
		return nil, fmt.Errorf("a testnet has 1 to %d nodes, not %d", MaxNodes, o.N)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p, err := Load(dir)
	if err != nil {
		p = &Processes{dir: dir}
	}
	p.Bin = o.Bin
	for i := len(p.Nodes); i < o.N; i++ {
		name := "n" + strconv.Itoa(i+1)
		p.Nodes = append(p.Nodes, Node{
			Name: name, Dir: filepath.Join(dir, name),
			HTTP: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(o.HTTPPort+i)),
			Mesh: net.JoinHostPort("127.0.0.1", strconv.Itoa(o.MeshPort+i)),
		})
	}
	if err := p.save(); err != nil {
		return nil, err
	}
	// Nodes that were members before start together: none may need another to be up.
	var fresh []string
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if _, err := os.Stat(filepath.Join(n.Dir, "membership")); err != nil && i > 0 {
			fresh = append(fresh, n.Name)
			continue
		}
		if err := p.start(n, "", o.Args); err != nil {
			return p, err
		}
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; !slices.Contains(fresh, n.Name) {
			if err := p.waitReady(ctx, n); err != nil {
				return p, err
			}
			fmt.Fprintf(o.Log, "%s serves on %s\n", n.Name, n.HTTP)
		}
	}
	for _, name := range fresh {
		n, _ := p.node(name)
		token, err := p.token(ctx)
		if err != nil {
			return p, fmt.Errorf("make a join token for %s: %w", name, err)
		}
		if err := p.start(n, token, o.Args); err != nil {
			return p, err
		}
		if err := p.waitReady(ctx, n); err != nil {
			return p, err
		}
		fmt.Fprintf(o.Log, "%s serves on %s\n", n.Name, n.HTTP)
	}
	if err := p.waitVoters(ctx, o.Log); err != nil {
		return p, err
	}
	return p, p.save()
}

// waitVoters returns once losing one node would stop nothing: enough nodes have
// been well for long enough to vote. With fewer than three there is nothing to
// wait for.
func (p *Processes) waitVoters(ctx context.Context, log io.Writer) error {
	if len(p.Nodes) < 3 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	fmt.Fprintln(log, "waiting until three nodes vote, so that any one may die")
	for {
		var mesh struct{ Voters int }
		err := get(ctx, p.Nodes[0].HTTP+"/api/v1/mesh?read=stale", &mesh)
		if err == nil && mesh.Voters >= 3 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d nodes vote after %s, want 3 (%w)", mesh.Voters, readyTimeout, err)
		case <-time.After(pollInterval):
		}
	}
}

// Node is a node by its name, or by the beginning of its ID.
func (p *Processes) Node(name string) (Node, error) {
	n, err := p.node(name)
	if err != nil {
		return Node{}, err
	}
	return *n, nil
}

func (p *Processes) node(name string) (*Node, error) {
	var names []string
	for i := range p.Nodes {
		if p.Nodes[i].Name == name || p.Nodes[i].ID != "" && strings.HasPrefix(p.Nodes[i].ID, name) {
			return &p.Nodes[i], nil
		}
		names = append(names, p.Nodes[i].Name)
	}
	return nil, fmt.Errorf("no node %q: there are %s", name, strings.Join(names, ", "))
}

func (p *Processes) faultFile() string { return filepath.Join(p.dir, "links.json") }

// start runs the node's process in a group of its own, with its output in
// <dir>/<name>.log. A token travels in a file, never in the arguments.
func (p *Processes) start(n *Node, token string, args []string) error {
	if p.alive(n) {
		return nil
	}
	if err := n.portsFree(); err != nil {
		return err
	}
	argv := append([]string{"up", "--dir", n.Dir, "--name", n.Name, "--http", strings.TrimPrefix(n.HTTP, "http://"),
		"--mesh", n.Mesh, "--faults", p.faultFile()}, args...)
	if token != "" {
		if err := os.MkdirAll(n.Dir, 0o700); err != nil {
			return err
		}
		path := filepath.Join(n.Dir, "join-token")
		if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
			return err
		}
		argv = append(argv, "--join", "@"+path)
	}
	log, err := os.OpenFile(p.logFile(n), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.Bin, argv...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	n.PID = cmd.Process.Pid
	// The daemon outlives this command; when it does not (a test), reap it.
	go cmd.Wait()
	return p.save()
}

// portsFree refuses a node whose ports somebody else listens on. Who answers there might be
// a node of another mesh, which would take the others in. What a node that was just killed
// listened on is free after a moment.
func (n *Node) portsFree() error {
	for _, port := range []struct{ network, at, flag string }{
		{"tcp", strings.TrimPrefix(n.HTTP, "http://"), "--http-port"}, {"udp", n.Mesh, "--mesh-port"},
	} {
		for began := time.Now(); !isFree(port.network, port.at); time.Sleep(pollInterval) {
			if time.Since(began) > portTimeout {
				return fmt.Errorf("%s can not listen on %s %s, which is taken: choose other ports with %s", n.Name,
					port.network, port.at, port.flag)
			}
		}
	}
	return nil
}

// alive reports whether the process that was started for n still exists. A
// recycled pid is told apart by its arguments, which a process that is just
// beginning or ending does not show.
func (p *Processes) alive(n *Node) bool {
	if n.PID == 0 {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", n.PID))
	return err == nil && (len(b) == 0 || bytes.Contains(b, []byte("\x00"+n.Dir+"\x00"))) && !p.zombie(n)
}

// zombie reports whether a process is gone but for its exit status. Its sockets and
// locks are held until its last thread has ended, on a busy machine some time after
// the first, by whose state the process is known.
func (p *Processes) zombie(n *Node) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.PID))
	if err != nil {
		return true
	}
	_, rest, _ := bytes.Cut(b, []byte(") "))
	if !bytes.HasPrefix(rest, []byte("Z")) {
		return false
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", n.PID))
	return err != nil || len(threads) <= 1
}

func (p *Processes) logFile(n *Node) string { return filepath.Join(p.dir, n.Name+".log") }

// lastLine is the last thing that a node said.
func (p *Processes) lastLine(n *Node) string {
	b, err := os.ReadFile(p.logFile(n))
	if err != nil {
		return err.Error()
	}
	b = bytes.TrimSpace(b)
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}

func (p *Processes) waitReady(ctx context.Context, n *Node) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := get(ctx, n.HTTP+"/readyz", nil)
		if err == nil {
			if n.ID, n.Role, err = whoami(ctx, *n); err == nil {
				return nil
			}
		}
		if !p.alive(n) {
			return fmt.Errorf("%s ended while starting: %s (see %s)", n.Name, p.lastLine(n), p.logFile(n))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s (%w): see %s", n.Name, readyTimeout, err, p.logFile(n))
		case <-time.After(pollInterval):
		}
	}
}

// whoami asks a node for its ID and its role in consensus.
func whoami(ctx context.Context, n Node) (id, role string, err error) {
	var mesh struct{ Node, Leader string }
	if err := get(ctx, n.HTTP+"/api/v1/mesh?read=stale", &mesh); err != nil {
		return "", "", err
	}
	if mesh.Node == mesh.Leader {
		return mesh.Node, "leader", nil
	}
	var raft struct{ Voter bool }
	if err := get(ctx, n.HTTP+"/api/v1/mesh/raft", &raft); err != nil {
		return "", "", err
	}
	if raft.Voter {
		return mesh.Node, "voter", nil
	}
	return mesh.Node, "non-voter", nil
}

func get(ctx context.Context, url string, out any) error {
	_, err := call(ctx, http.MethodGet, url, nil, out)
	return err
}

// Call makes a call to the node's API, with a strong read, and decodes the
// answer into out unless that is nil. in is sent as JSON, nil as no body; header
// is names and values in turn. Whatever is not 2xx is an error beside its
// status; without an answer the status is 0.
func (n Node) Call(ctx context.Context, method, path string, in, out any, header ...string) (status int, err error) {
	return call(ctx, method, n.HTTP+path, in, out, append([]string{"X-Selvage-Read", "strong"}, header...)...)
}

func call(ctx context.Context, method, url string, in, out any, header ...string) (status int, err error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return 0, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return res.StatusCode, err
	case res.StatusCode/100 != 2:
		return res.StatusCode, fmt.Errorf("HTTP %d: %s", res.StatusCode, bytes.TrimSpace(b))
	case out == nil:
		return res.StatusCode, nil
	}
	return res.StatusCode, json.Unmarshal(b, out)
}

// token asks any live node for a one-time join token.
func (p *Processes) token(ctx context.Context) (string, error) {
	err := errors.New("no node is alive")
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if !p.alive(n) || n.ID == "" {
			continue
		}
		var answer struct {
			Token string `json:"token"`
		}
		if _, err = call(ctx, http.MethodPost, n.HTTP+"/api/v1/mesh/tokens", map[string]any{"uses": 1, "ttlSeconds": 600},
			&answer); err == nil {
			return answer.Token, nil
		}
	}
	return "", err
}

// Status fills in what the processes say of themselves.
func (p *Processes) Status(ctx context.Context) []Node {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		n.Alive, n.Role = p.alive(n), ""
		if !n.Alive {
			continue
		}
		ask, cancel := context.WithTimeout(ctx, time.Second)
		if id, role, err := whoami(ask, *n); err == nil {
			n.ID, n.Role = id, role
		}
		cancel()
	}
	return p.Nodes
}

func (p *Processes) signal(name string, sig syscall.Signal) error {
	n, err := p.node(name)
	if err != nil {
		return err
	}
	if !p.alive(n) {
		return fmt.Errorf("%s does not run", n.Name)
	}
	return syscall.Kill(n.PID, sig)
}

// Kill ends a node without warning (SIGKILL) and waits until it is gone.
func (p *Processes) Kill(name string) error {
	if err := p.signal(name, syscall.SIGKILL); err != nil {
		return err
	}
	n, _ := p.node(name)
	return p.waitGone(n, stopTimeout)
}

// Stop ends a node in order (SIGTERM) and waits until it is gone.
func (p *Processes) Stop(name string) error {
	if err := p.signal(name, syscall.SIGTERM); err != nil {
		return err
	}
	n, _ := p.node(name)
	return p.waitGone(n, stopTimeout)
}

// Pause stops a node's process (SIGSTOP); Resume lets it go on.
func (p *Processes) Pause(name string) error  { return p.signal(name, syscall.SIGSTOP) }
func (p *Processes) Resume(name string) error { return p.signal(name, syscall.SIGCONT) }

// Start runs a node again on its old data and ports, and waits until it is ready.
func (p *Processes) Start(ctx context.Context, name string, args ...string) error {
	n, err := p.node(name)
	if err != nil {
		return err
	}
	if err := p.start(n, "", args); err != nil {
		return err
	}
	return p.waitReady(ctx, n)
}

func (p *Processes) waitGone(n *Node, within time.Duration) error {
	for deadline := time.Now().Add(within); p.alive(n); time.Sleep(pollInterval / 4) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s (pid %d) is still there after %s", n.Name, n.PID, within)
		}
	}
	return nil
}

// Partition splits the mesh into groups of names; nodes that no group names
// form one more. Links within a group work, all others are cut.
func (p *Processes) Partition(groups [][]string) error {
	groupOf := make(map[string]int, len(p.Nodes))
	for g, names := range groups {
		for _, name := range names {
			n, err := p.node(name)
			if err != nil {
				return err
			}
			groupOf[n.Name] = g + 1
		}
	}
	return p.fault(func(f *Faults) {
		f.Cuts = map[string][]string{}
		for _, a := range p.Nodes {
			for _, b := range p.Nodes {
				if groupOf[a.Name] != groupOf[b.Name] {
					f.Cuts[a.Mesh] = append(f.Cuts[a.Mesh], b.Mesh)
				}
			}
		}
	})
}

// Heal mends all links.
func (p *Processes) Heal() error { return p.fault(func(f *Faults) { f.Cuts = nil }) }

// Stall keeps the syncs of a node's disk from finishing until Unstall, as a
// dying disk does. The process itself goes on.
func (p *Processes) Stall(name string) error {
	n, err := p.node(name)
	if err != nil {
		return err
	}
	return p.fault(func(f *Faults) { f.Stalled = append(f.Stalled, n.Mesh) })
}

// Unstall lets all disks finish their syncs.
func (p *Processes) Unstall() error { return p.fault(func(f *Faults) { f.Stalled = nil }) }

// fault changes the fault file and returns when the change is in force.
func (p *Processes) fault(change func(*Faults)) error {
	f, err := ReadFaults(p.faultFile())
	if err != nil {
		return err
	}
	change(&f)
	if err := f.Write(p.faultFile()); err != nil {
		return err
	}
	time.Sleep(2 * pollInterval) // until every node has looked at it
	return nil
}

// End is Down at the end of a test, and shows what each node of a failed one has
// said, and what its goroutines waited for: on standard error, for what a test logs
// itself is printed after it has ended, and so the reason why it failed comes last.
// p may be nil: a mesh that never was.
func (p *Processes) End(t interface {
	Error(args ...any)
	Failed() bool
	Name() string
}) {
	if p == nil {
		return
	}
	if t.Failed() {
		p.autopsy()
	}
	if err := p.Down(); err != nil {
		t.Error("down:", err)
	}
	if !t.Failed() {
		return
	}
	for i := range p.Nodes {
		fmt.Fprintf(os.Stderr, "%s, %s:\n%s\n", t.Name(), p.Nodes[i].Name, lastWords(p.logFile(&p.Nodes[i])))
	}
}

// Down stops all nodes in order (SIGTERM), those that do not end in time by SIGKILL.
func (p *Processes) Down() error {
	var errs []error
	for i := range p.Nodes {
		if n := &p.Nodes[i]; p.alive(n) {
			syscall.Kill(n.PID, syscall.SIGCONT)
			errs = append(errs, syscall.Kill(n.PID, syscall.SIGTERM))
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if err := p.waitGone(n, stopTimeout); err != nil {
			syscall.Kill(n.PID, syscall.SIGKILL)
			errs = append(errs, p.waitGone(n, stopTimeout))
		}
		n.PID = 0
	}
	return errors.Join(append(errs, p.save())...)
}
