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
// The node writes to the shim's standard input, the shim writes to file
// descriptor 3. Both carry frames: 4-byte big-endian length, then that many
// bytes of JSON, at most MaxFrame. A field that a reader does not know is
// ignored; node and shim are the same binary, so there is no version.
//
//	node → shim   {"spec":{"path":…,"args":[…],"dir":…,"env":["K=V",…],"deadline":ns}}   first, once
//	              {"deadline":ns}           the node's authority lasts until then
//	              {"terminate":ms}          TERM to the tree, KILL after ms
//	              {"kill":true}
//	shim → node   {"started":{"pid":n,"pgid":n}}
//	              {"failed":"why the command could not be started"}
//	              {"exited":{"code":n,"signal":"SIGTERM","killed":"deadline"}}   after the whole tree is gone
//
// Deadlines are readings of CLOCK_BOOTTIME in nanoseconds, which both sides see
// alike: a message that waited in the pipe while its sender was stopped can not
// lengthen anything. The run's environment travels in the pipe and never on the
// command line.
package shim

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

const (
	// MaxFrame bounds one message; the largest holds the run's environment.
	MaxFrame = 2 << 20
	// killRounds bounds the passes over the tree; a tree that forks faster than
	// it is stopped is stopped first, so that a few passes are enough.
	killRounds = 200
	// killPause is the wait between two passes, for the kernel to finish.
	killPause = 5 * time.Millisecond
)

// Spec is what the shim starts.
type Spec struct {
	Path string   `json:"path"` // absolute path of the program
	Args []string `json:"args"` // with the program's name first
	Dir  string   `json:"dir"`
	Env  []string `json:"env"`
	// Deadline is the boot-clock reading at which the tree dies unless it is
	// renewed; 0 means that only the pipe counts.
	Deadline time.Duration `json:"deadline,omitempty"`
}

type order struct {
	Spec      *Spec         `json:"spec,omitempty"`
	Deadline  time.Duration `json:"deadline,omitempty"`
	Terminate *int64        `json:"terminate,omitempty"` // grace in ms
	Kill      bool          `json:"kill,omitempty"`
}

type report struct {
	Started *Started `json:"started,omitempty"`
	Failed  string   `json:"failed,omitempty"`
	Exited  *Exit    `json:"exited,omitempty"`
}

// Started tells under which IDs the command runs.
type Started struct {
	PID   int `json:"pid"`
	Group int `json:"pgid"`
}

// Exit is how the command ended. It is sent when the whole tree is gone.
type Exit struct {
	Code   int    `json:"code"`             // exit code; -1 when a signal ended the command
	Signal string `json:"signal,omitempty"` // such as "SIGTERM", when a signal ended it
	// Killed says why the shim killed the tree: "deadline", "pipe", "terminate"
	// or "kill"; empty when the command ended by itself.
	Killed string `json:"killed,omitempty"`
}

func writeFrame(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > MaxFrame {
		return fmt.Errorf("message of %d bytes exceeds %d", len(body), MaxFrame)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
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
