// Package shim is the small process that stands between a node and a run's
// children, and kills the whole tree when the node may no longer answer for it.
//
// Every run's command is started by a shim (`selvage run-shim`, the same
// binary). The shim leads a session of its own, adopts every orphan below it
// (subreaper), gives nobody new privileges, and holds a deadline on the
// boot-time clock that the node renews over a pipe. It kills the tree when the
// deadline passes, when the pipe closes, or when it is told to; so a node that
// is stopped, killed or restarted leaves nothing behind. A child that has left
// its process group or session is still a descendant and dies too.
//
// # Protocol
//
// The node writes to the shim's standard input, a socket, the shim writes to file
// descriptor 3. Both carry frames: 4-byte big-endian length, then that many
// bytes of JSON, at most MaxFrame. A field that a reader does not know is
// ignored; node and shim are the same binary, so there is no version. With the
// first byte of the specification come three file descriptors, which are the
// command's input, output and error output.
//
//	node → shim   {"spec":{"path":…,"args":[…],"dir":…,"env":["K=V",…],"deadline":ns,
//	               "limits":{…},"guard":{…}}}   first, once
//	              {"deadline":ns}           the node's authority lasts until then
//	              {"terminate":ms}          TERM to the tree, KILL after ms
//	              {"kill":true}
//	              {"signal":"SIGHUP"}       to the command; SIGSTOP and SIGCONT to the whole tree
//	shim → node   {"started":{"pid":n,"pgid":n,"notes":["what could not be done",…]}}
//	              {"failed":"why the command could not be started"}
//	              {"exited":{"code":n,"signal":"SIGTERM","killed":"deadline"}}   after the whole tree is gone
//
// Deadlines are readings of CLOCK_BOOTTIME in nanoseconds, which both sides see
// alike: a message that waited in the pipe while its sender was stopped can not
// lengthen anything. The run's environment travels in the pipe and never on the
// command line.
//
// # What the tree may use and reach
//
// [Limits] bound a tree, [Guard] says which files it reaches. What holds for
// every tree of a node is on the shim's command line, from [Floor]:
//
//	run-shim [--hide DIR]… [--cgroup DIR] [--nodes DIR]
//
// What the machine can not do is told in the notes of Started, never hidden.
//
// A tree stands behind the node: it has a nice value, a low class of disk access,
// a smaller weight where cgroups have one, and is the first to go when memory runs
// out. The shim itself has the node's priority, because it has to kill in time.
package shim

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

const (
	// MaxFrame bounds one message, in bytes; the largest has the run's environment.
	MaxFrame = 2 << 20
	// killRounds bounds the passes over the tree. All processes are stopped before they are
	// killed, so a few passes are enough even if the tree forks constantly.
	killRounds = 200
	// killPause is the time between two passes, for the kernel to finish.
	killPause = 5 * time.Millisecond
	// lastWait bounds the last command: a hanging engine must not keep the shim alive.
	lastWait = 15 * time.Second
)

// Spec is what the shim starts.
type Spec struct {
	Path string   `json:"path"` // absolute path of the program
	Args []string `json:"args"` // with the program's name first
	Dir  string   `json:"dir"`
	Env  []string `json:"env"`
	// Deadline is the boot-clock time at which the tree is killed unless it is renewed; 0 means
	// that only closing the pipe kills it.
	Deadline time.Duration `json:"deadline,omitempty"`
	// Limits limit the tree; Guard restricts its file access. With a nil Guard only the
	// restrictions on the shim's command line apply.
	Limits Limits `json:"limits,omitzero"`
	Guard  *Guard `json:"guard,omitempty"`
	// Tool says that the command is the node's own, such as a container engine: it keeps the
	// node's privileges, and neither floor nor guard applies to it.
	Tool bool `json:"tool,omitempty"`
	// Last is a command line, by absolute path, that cleans up what the tree left elsewhere.
	// The shim runs it after it had to kill the tree, also if the node is gone; lastWait
	// bounds it.
	Last []string `json:"last,omitempty"`
}

// Limits limit a process tree. Zero means no limit of ours. Core dumps are never written: they
// would contain the tree's secrets.
//
// If the node has its own cgroup (version 2), the kernel counts memory and processes of the
// whole tree. Otherwise the kernel limits the memory of each process (private writable memory
// that it requested), and the shim checks memory and processes of the tree periodically: it
// kills a tree that is above a limit at a check.
type Limits struct {
	MemoryMB  int64 `json:"memoryMb,omitempty"` // MiB, of the whole tree
	Processes int64 `json:"processes,omitempty"`
	// Tasks limits processes and threads together if there is a cgroup, which can not count
	// them separately; 0: the value of Processes.
	Tasks     int64 `json:"tasks,omitempty"`
	OpenFiles int64 `json:"openFiles,omitempty"` // of each process
	CPUSec    int64 `json:"cpuSec,omitempty"`    // seconds of CPU time, of each process
	FileMB    int64 `json:"fileMb,omitempty"`    // MiB, of each file that is written
}

// NoCgroup is the note for a tree whose memory is limited without a cgroup.
const NoCgroup = "the node has no cgroup to divide: memory is bounded for each process, and for all together looked " +
	"at every 250ms"

// A Guard restricts the file access of a tree, and its connections, by Landlock. Paths are absolute.
type Guard struct {
	// Hide are folders that can be neither read nor written. If the shim may not give the tree
	// its own view of the files (see veil), names in them can still be listed, and a note says
	// so. Show are folders inside them that are accessible.
	Hide []string `json:"hide,omitempty"`
	Show []string `json:"show,omitempty"`
	// Confine says that only paths below Write can be written, and the devices that every
	// program expects.
	Confine bool     `json:"confine,omitempty"`
	Write   []string `json:"write,omitempty"`
	// HoldNet says that TCP connections are made to Port alone, of any host, 0: to none, and that nothing else is
	// sent: no UDP, no raw packets. A kernel before 6.7 can not tell ports apart: there TCP is refused as a whole
	// if Socket says that the tree has a socket to its node, and else not held, which a note says. Listening for
	// TCP and sockets in files are not held.
	HoldNet bool   `json:"holdNet,omitempty"`
	Port    uint16 `json:"port,omitempty"`
	Socket  bool   `json:"socket,omitempty"`
}

// notApart is the argument that tells a shim why it has no namespace of its own.
const notApart = "--not-apart"

// Temporary are the folders where every program may write.
var Temporary = []string{"/tmp", "/var/tmp"}

// A Floor is the restrictions of every tree of a node, whatever its spec says.
type Floor struct {
	Hide   []string // as in a Guard
	Cgroup string   // a folder from [OpenCgroup]; "": none
	// Nodes is the folder of [Register]. When a tree starts, the data of the nodes that are
	// registered there is hidden from it. "": no other node's data is.
	Nodes string

	open string // why there can be no view of the files, from notApart; "": no reason known
}

// keyFile is a file that is in every node's data directory.
const keyFile = "identity.key"

// beside returns the data directories of nodes that are next to the hidden ones.
func (f Floor) beside() (out []string) {
	for _, own := range f.Hide {
		keys, _ := filepath.Glob(filepath.Join(filepath.Dir(own), "*", keyFile))
		for _, key := range keys {
			out = append(out, filepath.Dir(key))
		}
	}
	return out
}

// Args returns the arguments of a shim, after "run-shim".
func (f Floor) Args() (args []string) {
	for _, d := range f.Hide {
		args = append(args, "--hide", d)
	}
	if f.Cgroup != "" {
		args = append(args, "--cgroup", f.Cgroup)
	}
	if f.Nodes != "" {
		args = append(args, "--nodes", f.Nodes)
	}
	return args
}

// floorOf parses what Args returned; it ignores arguments that it does not know.
func floorOf(args []string) (f Floor) {
	for ; len(args) > 1; args = args[2:] {
		switch args[0] {
		case "--hide":
			f.Hide = append(f.Hide, args[1])
		case "--cgroup":
			f.Cgroup = args[1]
		case "--nodes":
			f.Nodes = args[1]
		case notApart:
			f.open = args[1]
		}
	}
	return f
}

type order struct {
	Spec      *Spec         `json:"spec,omitempty"`
	Deadline  time.Duration `json:"deadline,omitempty"`
	Terminate *int64        `json:"terminate,omitempty"` // grace in ms
	Kill      bool          `json:"kill,omitempty"`
	Signal    string        `json:"signal,omitempty"`
}

type report struct {
	Started *Started `json:"started,omitempty"`
	Late    bool     `json:"late,omitempty"` // the deadline passed before the command was started
	Failed  string   `json:"failed,omitempty"`
	Exited  *Exit    `json:"exited,omitempty"`
}

// ErrLate says that the deadline passed before the command was started.
var ErrLate = errors.New("the node's lease ended before it began")

// Started has the IDs of the running command.
type Started struct {
	PID   int `json:"pid"`
	Group int `json:"pgid"`
	// Notes say which limits and restrictions this machine can not enforce.
	Notes []string `json:"notes,omitempty"`
}

// Exit is how the command ended. It is sent when the whole tree has ended.
type Exit struct {
	Code   int    `json:"code"`             // exit code; -1 when a signal ended the command
	Signal string `json:"signal,omitempty"` // such as "SIGTERM", when a signal ended it
	// Killed is why the tree was killed: "deadline", "pipe", "terminate" or "kill", or "memory"
	// or "processes" if it exceeded that limit; empty if the command ended by itself.
	Killed string `json:"killed,omitempty"`
}

// A Use is what a tree uses and has used.
type Use struct {
	Memory    int64 // bytes in memory that its processes share with nobody
	CPU       time.Duration
	Processes int
}

func frame(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(body) > MaxFrame {
		return nil, fmt.Errorf("message of %d bytes exceeds %d", len(body), MaxFrame)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), nil
}

func writeFrame(w io.Writer, v any) error {
	b, err := frame(v)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func readFrame(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxFrame {
		return fmt.Errorf("message of %d bytes exceeds %d", n, MaxFrame)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}
