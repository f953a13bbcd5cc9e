// Package cli runs agents that are command lines of model vendors: programs that
// take a prompt, work in a folder, and print what they do as lines of JSON.
//
// It implements what they have in common: the folder, environment and timeout of a process
// (see adapter/process), the prompt on standard input, instructions and skills, the model
// gateway in place of keys, and the session that the next run on the same task resumes. What
// is particular to one program is its [Tool].
//
// # adapterConfig
//
//	command         the program, by path or name; default: the tool's own
//	cwd, env, timeoutSec (900), graceSec (15)   as for a process
//	model           a name that the gateway, or the tool, knows
//	effort          reasoning effort, if the tool has such an option
//	promptTemplate  the prompt; see [company.Invocation.Fill]
//	instructionsFilePath   an absolute path on the node, for agents without instructions in the mesh
//	maxTurnsPerRun  if the tool has such an option
//	dangerouslySkipPermissions   false: the tool asks, and nobody answers; default true
//	gateway         false: the tool calls its vendor with keys of its own
//	extraArgs       more arguments
//	landlock, writable, hidden, limits   as for a process: it can write in its folder, its
//	                agent's, those for temporary files, and where the tool keeps its state
//
// With the gateway the tool gets the run's token and the address of its node. Variables that
// would direct it elsewhere are removed: the agent gets no key, and each call is paid from
// the budget before it is sent.
package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

const (
	// maxLine bounds a line of JSON that is decoded, in bytes; the rest of a longer one is
	// skipped. A tool's result may hold a whole file.
	maxLine = 4 << 20
	// maxInstructions bounds a file of instructions that the mesh does not store, in bytes.
	maxInstructions = 256 << 10
	// maxSummary bounds the agent's last text that is kept, in bytes.
	maxSummary = 16 << 10
	// maxArgs bounds the number of extraArgs.
	maxArgs = 200
)

// A Tool is one command line. It has no state.
type Tool interface {
	// Program is the name of the program to start if no command is configured.
	Program() string
	// Call returns how the tool is started for a run. It may write below r.Home, which
	// several runs of the agent share, and r.Scratch, which belongs to the run.
	Call(r *Run) (Call, error)
	// Read returns a reader of one run's output.
	Read() Reader
}

// A Reader parses a run's standard output, line by line. Result is called once, after the
// last line, with the end of the standard error.
type Reader interface {
	Line(line []byte)
	Result(stderr string) Result
}

// A Call is how a tool is started.
type Call struct {
	Args   []string
	Env    map[string]string // "" removes a variable
	Hidden []string          // values to redact
	Input  string            // its standard input
	// State are folders in the user's home, besides the agent's, in which the tool keeps its
	// state, such as ".cursor".
	State []string

	// Talk is for tools with a conversation: see [process.Job]. Reader replaces the tool's
	// reader.
	Talk   func(w *os.File)
	Over   <-chan struct{}
	Stop   func() time.Duration
	Quiet  bool
	Reader Reader
}

// A Result is what a tool reported about a run.
type Result struct {
	Session string // to resume
	Model   string
	Summary string // the agent's last text
	Usage   *entity.Usage
	// Cumulative says that Usage is that of the whole session, not of this run.
	Cumulative bool
	CostUSD    json.Number // by the tool's calculation; with the gateway, the gateway's is what is paid
	// Subscription says that the tool is signed in with a subscription of its vendor, which
	// covers its usage.
	Subscription bool
	Turns        int
	// Failed says that the run has failed, whatever the exit code; Error and Code say why.
	Failed      bool
	Error, Code string
	Transient   bool // worth a retry
	// Lost says that the session does not exist; the run did nothing.
	Lost bool
}

// Options are the members of adapterConfig that all tools share.
type Options struct {
	Command      string            `json:"command"`
	Model        string            `json:"model"`
	Effort       string            `json:"effort"`
	Prompt       string            `json:"promptTemplate"`
	Instructions string            `json:"instructionsFilePath"`
	MaxTurns     int               `json:"maxTurnsPerRun"`
	Skip         *bool             `json:"dangerouslySkipPermissions"`
	Gateway      *bool             `json:"gateway"`
	Landlock     *bool             `json:"landlock"`
	Extra        []string          `json:"extraArgs"`
	Args         []string          `json:"args"` // likewise
	Raw          json.RawMessage   `json:"-"`
	Env          map[string]string `json:"-"` // as the run has it
}

// Config is what an adapter of command lines needs.
type Config struct {
	// Process starts the programs; all tools share one.
	Process *process.Adapter
	// Dir has the file with the name by which this node recognises its own sessions.
	Dir string
}

// An Adapter runs one tool. It is safe for concurrent use.
type Adapter struct {
	*process.Adapter
	tool  Tool
	place string
}

// New returns the adapter of a tool.
func New(conf Config, tool Tool) (*Adapter, error) {
	if conf.Process == nil || !filepath.IsAbs(conf.Dir) {
		return nil, errors.New("cli adapter: a process adapter and an absolute directory are required")
	}
	place, err := placeOf(filepath.Join(conf.Dir, "place"))
	if err != nil {
		return nil, fmt.Errorf("cli adapter: %w", err)
	}
	return &Adapter{Adapter: conf.Process, tool: tool, place: place}, nil
}

// CheckPlace returns an error if the file with the name of this node's sessions is damaged; a
// node that starts then draws another name. A missing file is no error.
func CheckPlace(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "place"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !isPlace(strings.TrimSpace(string(b))) {
		err = errors.New("the name of this node's sessions is damaged")
	}
	return err
}

// isPlace reports whether a name has the form of those that are drawn.
func isPlace(name string) bool {
	return len(name) == len(rand.Text()) && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// placeOf reads the name of this node's sessions, or draws one. Tools keep sessions on their
// disk, so another node can not resume them.
func placeOf(path string) (string, error) {
	if b, err := os.ReadFile(path); err == nil && isPlace(strings.TrimSpace(string(b))) {
		return strings.TrimSpace(string(b)), nil // a file of another form is damaged; its sessions are not resumed
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	name := rand.Text()
	return name, os.WriteFile(path, []byte(name+"\n"), 0o600)
}

// session is sessionParamsJson: where the session is stored, and its usage.
type session struct {
	ID    string        `json:"sessionId"`
	Dir   string        `json:"cwd"`
	Place string        `json:"placeId,omitempty"`
	Usage *entity.Usage `json:"usage,omitempty"` // so far, for tools with Cumulative
}

// resumable returns the session to resume, or why there is none.
func (a *Adapter) resumable(inv company.Invocation, dir string) (s session, why string) {
	if inv.Resume == nil {
		return s, ""
	}
	if json.Unmarshal(inv.Resume.Params, &s) != nil || s.ID == "" {
		return session{}, "the session that is kept is malformed"
	}
	switch {
	case s.Place != a.place:
		return session{}, "the session is on another node"
	case s.Dir != dir:
		return session{}, "the session was in another folder, " + s.Dir
	}
	return s, ""
}

// Invoke runs the tool and returns when its whole process tree has ended. If the session no
// longer exists, it starts a new one.
func (a *Adapter) Invoke(ctx context.Context, inv company.Invocation) company.Outcome {
	out, lost := a.once(ctx, inv)
	if lost && ctx.Err() == nil && inv.Authority() > 0 {
		inv.Log("system", "[selvage] the session is gone; a new one is begun\n")
		inv.Resume = nil
		out, _ = a.once(ctx, inv)
	}
	return out
}

func (a *Adapter) once(ctx context.Context, inv company.Invocation) (out company.Outcome, lost bool) {
	var (
		reader Reader
		lines  lines
		before session
		dir    string

		gateway = true
	)
	out = a.Carry(ctx, inv, func(p process.Place) (process.Job, error) {
		why := ""
		if before, why = a.resumable(inv, p.Dir); why != "" {
			inv.Log("system", "[selvage] "+why+"; a new one is begun\n")
		}
		dir = p.Dir
		r, err := prepare(inv, p, before.ID)
		if err != nil {
			return process.Job{}, err
		}
		gateway = r.Gateway
		call, err := a.tool.Call(r)
		if err != nil {
			return process.Job{}, err
		}
		job := process.Job{Command: cmp.Or(r.Command, a.tool.Program()), Args: append(append(call.Args, r.Extra...),
			r.Options.Args...), Env: call.Env, Hidden: call.Hidden}
		if job.Env == nil {
			job.Env = map[string]string{}
		}
		if r.Gateway {
			direct(p.Env, job.Env)
		}
		if job.Confine = true; r.Landlock == nil || *r.Landlock {
			job.Writable = r.state(call.State)
		}
		if call.Input != "" {
			// a tool that does not read its input reports that itself
			job.Talk = func(w *os.File) { _, _ = w.WriteString(call.Input) }
		}
		if job.Over, job.Stop, job.Quiet = call.Over, call.Stop, call.Quiet; call.Talk != nil {
			job.Talk = call.Talk
		}
		if reader = call.Reader; reader == nil {
			reader = a.tool.Read()
		}
		lines.to = reader.Line
		job.Hear = lines.add
		return job, nil
	})
	if reader == nil {
		return out, false // the tool was not started
	}
	lines.end()
	stderr := ""
	if out.Stderr != nil {
		stderr = *out.Stderr
	}
	res := reader.Result(stderr)
	if res.Lost && before.ID != "" && out.Status == entity.RunFailed {
		return out, true
	}
	out = a.merge(out, res, before, dir)
	if !gateway {
		out.Cost = a.cost(inv, out, res)
	}
	return out, false
}

// merge combines the program's exit and the tool's report to one outcome.
func (a *Adapter) merge(out company.Outcome, res Result, before session, dir string) company.Outcome {
	out.Usage = res.Usage
	s := session{ID: res.Session, Dir: dir, Place: a.place}
	if res.Cumulative && res.Usage != nil {
		s.Usage = res.Usage
		if before.ID == res.Session && before.Usage != nil {
			out.Usage = less(*res.Usage, *before.Usage)
		}
	}
	if res.Session != "" {
		out.SessionID = res.Session
		out.SessionParams, _ = json.Marshal(s) // never fails
	}
	if out.Status == entity.RunSucceeded && res.Failed {
		out.Status, out.ErrorCode, out.Error = entity.RunFailed, "adapter_failed", "The agent ended without a result"
	}
	if out.Status == entity.RunFailed {
		if res.Code == "" {
			res.Code, res.Transient = Classify(cmp.Or(res.Error, lastLine(out.Stderr, "")))
		}
		out.Transient = res.Transient
		out.ErrorCode = cmp.Or(res.Code, out.ErrorCode)
		out.Error = cmp.Or(head(res.Error), lastLine(out.Stderr, out.Error), out.Error)
	}
	out.Result = a.result(out, res, before)
	return out
}

// result returns resultJson: that of the process without the lines of JSON, and the tool's
// report.
func (a *Adapter) result(out company.Outcome, res Result, before session) json.RawMessage {
	m := map[string]any{}
	if json.Unmarshal(out.Result, &m) != nil {
		m = map[string]any{}
	}
	delete(m, "stdout")
	if len(res.Summary) > maxSummary {
		res.Summary = strings.ToValidUTF8(res.Summary[:maxSummary], "") + "…"
	}
	if out.Status == entity.RunFailed {
		m["stopReason"] = "adapter_failed"
	}
	m["summary"], m["resumed"] = res.Summary, before.ID != "" && before.ID == res.Session
	for k, v := range map[string]string{"model": res.Model, "sessionId": res.Session} {
		if v != "" {
			m[k] = v
		}
	}
	if res.CostUSD != "" {
		m["reportedCostUsd"] = res.CostUSD
	}
	if res.Turns > 0 {
		m["turns"] = res.Turns
	}
	b, err := json.Marshal(m)
	if err != nil || len(b) > company.MaxResult {
		m["summary"], m["stderr"] = head(res.Summary), ""
		delete(m, "reportedCostUsd")
		b, _ = json.Marshal(m) // never fails
	}
	return b
}

// signs are texts in messages of tools and of the gateway, and the reason that they mean.
var signs = []struct {
	code      string
	transient bool
	words     []string
}{
	{"budget_refused", false, []string{"budget_exceeded", "budget_refused", "payment required", "budget hard-stop"}},
	{"auth_required", false, []string{"unauthorized", "api key", "api_key", "not logged in", "run /login", "auth method",
		"authentication", "invalid_key", "not authenticated"}},
	{"transient_upstream", true, []string{"overloaded", "rate limit", "rate_limit", "too many requests",
		"service unavailable", "bad gateway", "gateway timeout",
		"unable to connect", "connection refused", "econnrefused", "econnreset", "etimedout", "stream disconnected",
		"error sending request"}},
}

// Classify returns the code of a failure that a message describes, and whether a retry may
// succeed; "" if the message has no known text.
func Classify(message string) (code string, transient bool) {
	message = strings.ToLower(message)
	for _, s := range signs {
		if slices.ContainsFunc(s.words, func(w string) bool { return strings.Contains(message, w) }) {
			return s.code, s.transient
		}
	}
	return "", false
}

func less(all, before entity.Usage) *entity.Usage {
	return &entity.Usage{InputTokens: max(all.InputTokens-before.InputTokens, 0),
		OutputTokens:      max(all.OutputTokens-before.OutputTokens, 0),
		CachedInputTokens: max(all.CachedInputTokens-before.CachedInputTokens, 0)}
}

// head returns the beginning of a message, short enough for a row.
func head(s string) string {
	const most = 2 << 10
	if s = strings.TrimSpace(s); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// lastLine returns the last line of a program's standard error, after how it ended.
func lastLine(text *string, ended string) string {
	if text == nil {
		return ""
	}
	s := strings.TrimSpace(*text)
	if s = s[strings.LastIndexByte(s, '\n')+1:]; s == "" {
		return ""
	}
	if ended == "" {
		return s
	}
	return head(ended + ": " + s)
}

// lines divides output into lines.
type lines struct {
	to   func([]byte)
	part []byte
	over bool // skipping the rest of a line that is too long
}

func (l *lines) add(piece []byte) {
	for len(piece) > 0 {
		i := bytes.IndexByte(piece, '\n')
		rest := piece
		if i >= 0 {
			rest = piece[:i]
		}
		if !l.over {
			if l.part = append(l.part, rest...); len(l.part) > maxLine {
				l.part, l.over = nil, true
			}
		}
		if i < 0 {
			return
		}
		l.end()
		piece = piece[i+1:]
	}
}

// end passes on an incomplete last line.
func (l *lines) end() {
	if s := bytes.TrimSpace(l.part); len(s) > 0 && l.to != nil {
		l.to(s)
	}
	l.part, l.over = l.part[:0], false
}
