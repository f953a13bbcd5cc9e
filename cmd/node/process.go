package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/kernel"
)

const (
	processPath  = "/api/v1/processes"
	declaredPath = "/api/v1/declared-processes"
	processTable = "PID NODE STATE KIND NAME APP AGENT/RUN CPU MEM AGE"
	// topLeast is the shortest interval of top: below it the processor times of the system say
	// nothing.
	topLeast = 200 * time.Millisecond
)

// A processRow is a process of the mesh.
type processRow struct {
	Address  string `json:"address"`
	PID      uint64 `json:"pid"`
	Node     string `json:"node"`
	State    string `json:"state"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Parent   uint64 `json:"parent_pid"`
	App      string `json:"app"`
	Agent    string `json:"agent"`
	Run      string `json:"run"`
	Restarts int    `json:"restarts"`
	Use      struct {
		Memory int64 `json:"memory_bytes"`
		CPU    int64 `json:"cpu_time_ms"`
	} `json:"resource_usage"`
	Age      int64  `json:"age_ms"`
	ExitCode *int   `json:"exit_code"`
	Error    string `json:"error"`
}

// processCommands are the commands about processes.
func processCommands(c *cli.CLI) []*cobra.Command {
	return []*cobra.Command{psCommand(c), topCommand(c), killCommand(c), spawnCommand(c), dmesgCommand(c), processNoun(c)}
}

func processNoun(c *cli.CLI) *cobra.Command {
	return subs(cli.Noun(c, "process", "Processes of the mesh, and declared ones", processVerbs...), elevateCommand(c))
}

var processVerbs = []cli.Verb{
	{Use: "show PROCESS", Short: "Show a process, by node:pid or PID", Path: processPath + "/{1}"},
	{Use: "log PROCESS", Short: "Show the output of a process that was spawned", Path: processPath +
		"/{1}/log", Log: true},
	{Use: "declared", Short: "List the declared processes", Path: declaredPath,
		Columns: "NAME=name BACKEND=backend RUNNING=running REPLICAS=replicas RESTART=restart GENERATION=generation " +
			"APP=app ID=id"},
	{Use: "replicas NAME", Short: "List where the replicas of a declared process run", Path: declaredPath + "/{1}",
		Rows:    "instances",
		Columns: "NODE=node STATE=state PID=pid RESTARTS=restarts FAILOVERS=failovers ERROR=error"},
	{Use: "remove NAME", Short: "Remove a declared process and end its replicas", Method: "DELETE", Path: declaredPath +
		"/{1}", Says: "removed {1}"},
}

func psCommand(c *cli.CLI) *cobra.Command {
	var tree bool
	var of processFilter
	cmd := &cobra.Command{
		Use: "ps", Short: "List the processes of all nodes: runs, services, and what was spawned", Args: cobra.NoArgs,
		Long: `List the processes of the whole mesh. A run is a process while it lives, and so is a
service, a spawned command, module or container, and each node itself (PID 0). CPU is
processor time, MEM what a process shares with no other. A node that does not answer
is shown as unreachable. With --tree children stand below their parents. APP is the app
of which a process is part: the runs of its agents, its services, the programs of its
hooks, and what any of these spawned; --app shows those of one app.`,
		Example: "  selvage ps\n  selvage ps --tree\n  selvage ps --all -o json\n  selvage ps --node n2\n" +
			"  selvage ps --app code-review",
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, raw, err := processRows(c, cmd, of)
			if err != nil {
				return err
			}
			if tree {
				rows = byParent(rows)
			}
			return c.Print(cmd, raw, func(w io.Writer) { printProcesses(w, rows, nil) })
		},
	}
	cmd.Flags().BoolVarP(&of.all, "all", "a", false, "also those that ended lately")
	cmd.Flags().BoolVarP(&tree, "tree", "t", false, "children below their parents")
	of.declare(cmd)
	return cmd
}

// byParent orders processes so that children stand below their parents, indented; those whose
// parent is not in the list stand below the node.
func byParent(rows []processRow) (out []processRow) {
	type key struct {
		node string
		pid  uint64
	}
	listed, below := map[key]bool{}, map[key][]processRow{}
	for _, r := range rows {
		listed[key{r.Node, r.PID}] = true
	}
	var roots []processRow
	for _, r := range rows {
		parent := key{r.Node, r.Parent}
		switch {
		case r.PID == 0:
			roots = append(roots, r)
		case listed[parent]:
			below[parent] = append(below[parent], r)
		case listed[key{r.Node, 0}]:
			below[key{r.Node, 0}] = append(below[key{r.Node, 0}], r)
		default:
			roots = append(roots, r)
		}
	}
	var walk func(r processRow, depth int)
	walk = func(r processRow, depth int) {
		at := key{r.Node, r.PID}
		r.Name = strings.Repeat("  ", depth) + r.Name
		out = append(out, r)
		children := below[at]
		delete(below, at) // each is listed once, whatever the parents say
		for _, child := range children {
			walk(child, depth+1)
		}
	}
	for _, r := range roots {
		walk(r, 0)
	}
	return out
}

// A processFilter says which processes to list.
type processFilter struct {
	all       bool // also those that ended lately
	node, app string
}

func (f *processFilter) declare(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.node, "node", "", "only of this node")
	cmd.Flags().StringVar(&f.app, "app", "", "only what is part of the app of this name")
}

// processRows lists processes.
func processRows(c *cli.CLI, cmd *cobra.Command, of processFilter) (rows []processRow, raw json.RawMessage,
	err error) {
	q := url.Values{}
	if of.all {
		q.Set("all", "true")
	}
	for key, v := range map[string]string{"node": of.node, "app": of.app} {
		if v != "" {
			q.Set(key, v)
		}
	}
	path := processPath
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	var body []byte
	if err := c.Call(cmd.Context(), "GET", path, nil, &body); err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(body, &rows); err != nil {
		return nil, nil, fmt.Errorf("answer of %s: %w", path, err)
	}
	return rows, body, nil
}

// printProcesses writes processes as a table; percent replaces the processor time where it is
// not nil.
func printProcesses(w io.Writer, rows []processRow, percent func(processRow) string) {
	var table [][]string
	for _, r := range rows {
		work := r.Agent
		if r.Run != "" {
			work = strings.TrimPrefix(cli.Short(r.Agent)+"/", "/") + cli.Short(r.Run)
		}
		processor := (time.Duration(r.Use.CPU) * time.Millisecond).Round(10 * time.Millisecond).String()
		if percent != nil {
			processor = percent(r)
		}
		state := r.State
		if r.ExitCode != nil {
			state += "(" + strconv.Itoa(*r.ExitCode) + ")"
		}
		table = append(table, []string{strconv.FormatUint(r.PID, 10), r.Node, state, r.Kind, cli.Dash(r.Name),
			cli.Dash(r.App), cli.Dash(work), processor, mebibytes(r.Use.Memory),
			(time.Duration(r.Age) * time.Millisecond).Round(time.Second).String()})
	}
	cli.Table(w, processTable, table)
}

func mebibytes(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + "M" }

func topCommand(c *cli.CLI) *cobra.Command {
	var times int
	var every time.Duration
	var of processFilter
	cmd := &cobra.Command{
		Use: "top", Short: "Show what the processes of the mesh use now, again and again", Args: cobra.NoArgs,
		Long: `Show the processes of the mesh with what they use, the busiest first, until it is
interrupted. CPU is in percent of one processor, over the interval.`,
		Example: "  selvage top\n  selvage top -n 1\n  selvage top --interval 5s --node n1\n  selvage top --app code-review",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if times < 0 || every < topLeast {
				return cli.Misuse(fmt.Errorf("-n: 0 or more; --interval: at least %s", topLeast))
			}
			before, _, err := processRows(c, cmd, of)
			at := time.Now()
			for n := 0; err == nil && (times == 0 || n < times); n++ {
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(every):
				}
				rows, _, failed := processRows(c, cmd, of)
				if failed != nil {
					return failed
				}
				err = printTop(c, cmd, before, rows, time.Since(at), times != 1)
				before, at = rows, time.Now()
			}
			return err
		},
	}
	cmd.Flags().IntVarP(&times, "times", "n", 0, "show it so many times; 0: until interrupted")
	cmd.Flags().DurationVar(&every, "interval", time.Second, "time between two looks")
	of.declare(cmd)
	return cmd
}

// A topRow is a process with its share of a processor.
type topRow struct {
	processRow
	Percent float64 `json:"cpu_percent"`
}

func printTop(c *cli.CLI, cmd *cobra.Command, before, now []processRow, took time.Duration, again bool) error {
	used := map[string]int64{}
	for _, r := range before {
		used[r.Address] = r.Use.CPU
	}
	rows := make([]topRow, len(now))
	for i, r := range now {
		rows[i].processRow = r
		if was, ok := used[r.Address]; ok && took > 0 {
			rows[i].Percent = float64(max(0, r.Use.CPU-was)) * 100 / float64(took.Milliseconds()+1)
		}
	}
	slices.SortStableFunc(rows, func(a, b topRow) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), cmp.Compare(b.Use.Memory, a.Use.Memory))
	})
	share := map[string]float64{}
	plain := make([]processRow, len(rows))
	for i, r := range rows {
		plain[i], share[r.Address] = r.processRow, r.Percent
	}
	return c.Print(cmd, rows, func(w io.Writer) {
		if f, ok := cmd.OutOrStdout().(*os.File); ok && again && isTerminal(f) {
			fmt.Fprint(w, "\x1b[H\x1b[2J") // to the top, and clear
		}
		printProcesses(w, plain, func(r processRow) string { return strconv.FormatFloat(share[r.Address], 'f', 1, 64) + "%" })
	})
}

// isTerminal reports whether a file is a device that people look at.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// address returns the address of a process that a person names: node:pid as it is, a PID
// alone if one node has it.
func address(c *cli.CLI, cmd *cobra.Command, ref string) (string, error) {
	a, err := kernel.ParseAddress(ref)
	if err != nil {
		return "", cli.Misuse(err)
	}
	if a.Node != "" {
		return url.PathEscape(a.String()), nil
	}
	rows, _, err := processRows(c, cmd, processFilter{})
	if err != nil {
		return "", err
	}
	var found []string
	for _, r := range rows {
		if r.PID == uint64(a.PID) && r.State != "unreachable" {
			found = append(found, r.Address)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no process %s: see selvage ps", ref)
	case 1:
		return url.PathEscape(found[0]), nil
	}
	return "", cli.Misuse(fmt.Errorf("process %s: several nodes have one; give %s", ref, strings.Join(found, " or ")))
}

func killCommand(c *cli.CLI) *cobra.Command {
	var signal string
	cmd := &cobra.Command{
		Use: "kill PROCESS", Short: "End a process, or send it a signal", Args: cobra.ExactArgs(1),
		Long: `Send a signal to a process, which is named by node:pid, or by its PID where one node
alone has it. TERM ends it, with KILL after 5 seconds; STOP and CONT suspend and resume
it. A run is cancelled and a service is stopped, each by its own rules. What a supervisor
keeps running is started again: use selvage process remove NAME.`,
		Example: "  selvage kill n1:12\n  selvage kill 12 --signal KILL\n  selvage kill n2:3 --signal STOP",
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := address(c, cmd, args[0])
			if err != nil {
				return err
			}
			body := map[string]string{}
			if signal != "" {
				body["signal"] = signal
			}
			var r processRow
			return c.Send(cmd, "POST", processPath+"/"+at+"/kill", body, &r, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s %s\n", r.Address, r.State, r.Name)
			})
		},
	}
	cmd.Flags().StringVarP(&signal, "signal", "s", "", "TERM (default), KILL, STOP, CONT, INT, HUP, QUIT, USR1 or USR2")
	return cmd
}

// limitFlags are the flags of a process's limits, with the fields of resource_limits.
type limitFlags struct {
	memory, disk, messages, calls, cost int64
	cpu                                 time.Duration
	network, noSpawn, noIPC             bool
}

func (l *limitFlags) declare(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int64Var(&l.memory, "memory", 256, "MiB of memory; 0: no limit")
	f.DurationVar(&l.cpu, "cpu-time", 5*time.Minute, "processor time; 0: no limit, as for what is declared")
	f.Int64Var(&l.disk, "disk", 100, "MiB of files in its folder; 0: no limit")
	f.Int64Var(&l.messages, "messages", 5000, "messages that it sends; 0: no limit")
	f.Int64Var(&l.calls, "tool-calls", 1000, "calls of tools; 0: no limit")
	f.Int64Var(&l.cost, "cost", 0, "cents; 0: no limit")
	f.BoolVar(&l.network, "network", false, "it may use the network")
	f.BoolVar(&l.noSpawn, "no-spawn", false, "it may not spawn")
	f.BoolVar(&l.noIPC, "no-ipc", false, "it may not send messages")
}

// capabilities returns them as JSON; nil if no flag was given, which leaves them to the parent.
func (l *limitFlags) capabilities(cmd *cobra.Command, always bool) map[string]any {
	given := always
	for _, name := range []string{"memory", "cpu-time", "disk", "messages", "tool-calls", "cost", "network",
		"no-spawn", "no-ipc"} {
		given = given || cmd.Flags().Changed(name)
	}
	if !given {
		return nil
	}
	return map[string]any{"can_network": l.network, "can_spawn": !l.noSpawn, "can_ipc": !l.noIPC, "can_exec_tools": true,
		"ipc_scope": "all",
		"resource_limits": map[string]int64{"max_memory_bytes": l.memory << 20, "max_cpu_time_ms": l.cpu.Milliseconds(),
			"max_disk_bytes": l.disk << 20,
			"max_messages":   l.messages, "max_tool_calls": l.calls, "max_cost_cents": l.cost}}
}

func elevateCommand(c *cli.CLI) *cobra.Command {
	var l limitFlags
	var reason string
	var lasting time.Duration
	cmd := &cobra.Command{
		Use: "elevate PROCESS", Short: "Give a process other limits and capabilities, for a reason", Args: cobra.ExactArgs(1),
		Example: "  selvage process elevate n1:12 --cpu-time 1h --for 2h --reason 'the index is larger than usual'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return cli.Misuse(errors.New("--reason: required"))
			}
			at, err := address(c, cmd, args[0])
			if err != nil {
				return err
			}
			var r processRow
			return c.Send(cmd, "POST", processPath+"/"+at+"/elevate", map[string]any{"capabilities": l.capabilities(cmd, true),
				"seconds": int64(lasting.Seconds()), "reason": reason}, &r, func(w io.Writer) {
				if fmt.Fprintf(w, "%s %s", r.Address, r.State); lasting > 0 {
					fmt.Fprintf(w, ", elevated for %s", lasting)
				}
				fmt.Fprintln(w)
			})
		},
	}
	l.declare(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why; required")
	cmd.Flags().DurationVar(&lasting, "for", 0,
		"after which it has what it had before, such as 2h; 0: as long as it lives")
	return cmd
}

func spawnCommand(c *cli.CLI) *cobra.Command {
	var l limitFlags
	var name, node, restart, group, role, dir, wasm, image, onLimit string
	var env, labels []string
	var replicas int64
	var parent uint64
	cmd := &cobra.Command{
		Use: "spawn [flags] [-- COMMAND [ARG...]]", Short: "Start a process: a command, a module or a container",
		Args: cobra.ArbitraryArgs,
		Long: `Start a process on a node: a command of that machine, a WebAssembly module (--wasm) or
a container (--image). It has limits, it is supervised, and it ends with its node.
With --replicas it is declared instead: the mesh keeps so many of it running, each on
another node where it can, and starts one elsewhere when its node is lost. Declared again
under the same name it is changed. Its variables are stored readable: give no secrets.`,
		Example: `  selvage spawn -- sleep 60
  selvage spawn --node n2 --memory 64 --restart on-failure -- /usr/bin/my-indexer
  selvage spawn --wasm count.wasm -- 100
  selvage spawn --name web --replicas 2 --image docker.io/library/nginx:1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]any{"command": args}
			for key, v := range map[string]string{"name": name, "node": node, "restart": restart, "group": group, "role": role,
				"dir": dir, "image": image, "on_limit": onLimit} {
				if v != "" {
					body[key] = v
				}
			}
			vars := map[string]string{}
			for _, kv := range env {
				k, v, ok := strings.Cut(kv, "=")
				if !ok || k == "" {
					return cli.Misuse(fmt.Errorf("--env %q is not K=V", kv))
				}
				vars[k] = v
			}
			if len(vars) > 0 {
				body["env"] = vars
			}
			if caps := l.capabilities(cmd, false); caps != nil {
				body["capabilities"] = caps
			}
			if len(args) == 0 && wasm == "" && image == "" {
				return cli.Misuse(errors.New("nothing to start: give a command after --, or --wasm, or --image"))
			}
			if wasm != "" {
				if err := storeModule(c, cmd, wasm, body); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("replicas") {
				if name == "" || parent != 0 {
					return cli.Misuse(errors.New("--replicas needs --name, and takes no --parent"))
				}
				body["replicas"] = replicas
				if caps, ok := body["capabilities"].(map[string]any); ok && !cmd.Flags().Changed("cpu-time") {
					delete(caps["resource_limits"].(map[string]int64), "max_cpu_time_ms") // it is to run on
				}
				if len(labels) > 0 {
					body["labels"] = labels
				}
				delete(body, "name")
				return declare(c, cmd, name, body)
			}
			if len(labels) > 0 {
				return cli.Misuse(errors.New("--label is for --replicas; name the node with --node"))
			}
			if parent != 0 {
				body["parent_pid"] = parent
			}
			var r processRow
			return c.Send(cmd, "POST", processPath, body, &r,
				func(w io.Writer) { fmt.Fprintf(w, "%s %s %s\n", r.Address, r.State, r.Name) })
		},
	}
	l.declare(cmd)
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "name (default: after what is started)")
	f.StringVar(&node, "node", "", "the node that runs it (default: the one at --api; with --replicas: any)")
	f.Int64Var(&replicas, "replicas", 1, "declare it: the mesh keeps so many running")
	f.StringArrayVar(&labels, "label", nil, "label that a node needs to run a replica (repeat for more)")
	f.StringVar(&restart, "restart", "",
		"never, on-failure, always, one_for_all or rest_for_one (default: never; with --replicas: always)")
	f.StringVar(&group, "group", "", "group of processes that a supervisor starts again together, such as app/web")
	f.StringVar(&role, "role", "", "supervisor, service, worker, user or custom")
	f.Uint64Var(&parent, "parent", 0, "PID of the parent, on the same node")
	f.StringArrayVar(&env, "env", nil, "a variable, K=V (repeat for more)")
	f.StringVar(&dir, "dir", "", "where a command works, absolute (default: a folder of its own)")
	f.StringVar(&wasm, "wasm", "", "file of a WebAssembly module; the arguments are its own")
	f.StringVar(&image, "image", "", "image of a container")
	f.StringVar(&onLimit, "on-limit", "", "end (default) or suspend: what happens at 100 % of a limit")
	return cmd
}

// storeModule stores the module of a file in the mesh.
func storeModule(c *cli.CLI, cmd *cobra.Command, path string, body map[string]any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	up, err := c.Client()
	if err != nil {
		return err
	}
	var m struct {
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	}
	if err := up.Upload(cmd.Context(), "/api/v1/modules", filepath.Base(path), f, nil, &m); err != nil {
		return c.NoAnswer(err)
	}
	body["module"], body["module_bytes"], body["backend"] = m.SHA256, m.Size, "wasm"
	if body["name"] == nil {
		body["name"] = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return nil
}

// declare declares a process.
func declare(c *cli.CLI, cmd *cobra.Command, name string, body map[string]any) error {
	var d struct {
		Name       string `json:"name"`
		Replicas   int    `json:"replicas"`
		Generation uint64 `json:"generation"`
	}
	return c.Send(cmd, "PUT", declaredPath+"/"+url.PathEscape(name), body, &d, func(w io.Writer) {
		fmt.Fprintf(w, "%s declared, %d replicas, generation %d: see selvage process replicas %s\n", d.Name, d.Replicas,
			d.Generation, d.Name)
	})
}

func dmesgCommand(c *cli.CLI) *cobra.Command {
	var node, level string
	var limit int
	cmd := &cobra.Command{
		Use: "dmesg", Short: "Show the kernel's log of a node: its boot, and what happened to processes", Args: cobra.NoArgs,
		Long: `Show the newest events of a node's kernel, at most 1024: the phases of its boot, and
what began, ended, passed a limit or was started again. Times are seconds since the
node was started.`,
		Example: "  selvage dmesg\n  selvage dmesg --node n2 --level warn --limit 20",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := url.Values{}
			for key, v := range map[string]string{"node": node, "level": level} {
				if v != "" {
					q.Set(key, v)
				}
			}
			if cmd.Flags().Changed("limit") {
				q.Set("limit", strconv.Itoa(limit))
			}
			path := "/api/v1/dmesg"
			if len(q) > 0 {
				path += "?" + q.Encode()
			}
			var events []kernel.Event
			return c.Show(cmd, path, &events, func(w io.Writer) {
				for _, e := range events {
					what := e.Phase.Tag()
					if e.PID != nil {
						what = "[" + e.PID.String() + "]"
					}
					fmt.Fprintf(w, "[%9.3f] %-5s %s %s\n", float64(e.Since)/1000, e.Level, what, cli.Visible(e.Message))
				}
			})
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "of this node (default: the one at --api)")
	cmd.Flags().StringVar(&level, "level", "", "only from this level up: debug, info, warn or error")
	cmd.Flags().IntVar(&limit, "limit", kernel.EventLogSize, "at most so many")
	return cmd
}
