// Package cli runs agents that are command lines of model vendors: programs that
// take a prompt, work in a folder, and print what they do as lines of JSON.
//
// What they have in common is here: the folder, variables and time of a process
// (see adapter/process), the prompt on standard input, instructions and skills,
// the model gateway in place of keys, and the session that the next run on the
// same task goes on with. What is particular to one of them is its [Tool].
//
// # adapterConfig
//
//	command         the program, by path or name; default: the tool's own
//	cwd, env, timeoutSec (900), graceSec (15)   as for a process
//	model           as the gateway, or the tool, knows it
//	effort          how hard the model thinks, where the tool can be told
//	promptTemplate  what the agent is told; see [company.Invocation.Fill]
//	instructionsFilePath   an absolute path on the node, for agents without instructions in the mesh
//	maxTurnsPerRun  where the tool can be told
//	dangerouslySkipPermissions   false: the tool asks, and nobody answers; default true
//	gateway         false: the tool calls its vendor with keys of its own
//	extraArgs       more arguments
//	landlock, writable, hidden, limits   as for a process: it writes in its folder, its
//	                agent's, those for temporary files, and where the tool keeps its state
//
// With the gateway the tool gets the run's token and the address of its node, and
// variables that would lead it elsewhere are taken away: no key reaches the agent,
// and each call is paid from the budget before it leaves.
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
	// maxLine bounds a line of JSON that is understood; the rest of a longer one
	// is passed over. A tool's result may hold a whole file.
	maxLine = 4 << 20
	// maxInstructions bounds a file of instructions that is not in the mesh.
	maxInstructions = 256 << 10
	// maxSummary bounds what is kept of what the agent said last.
	maxSummary = 16 << 10
	// maxArgs bounds extraArgs.
	maxArgs = 200
)

// A Tool is one command line. It holds no state.
type Tool interface {
	// Program is what it is called where no command is configured.
	Program() string
	// Call says how it is started for a run. It may write below r.Home, which
	// several runs of the agent share, and r.Scratch, which is the run's.
	Call(r *Run) (Call, error)
	// Read returns what makes sense of one run's output.
	Read() Reader
}

// A Reader takes a run's standard output line by line. Result is asked once,
// after the last line, with the end of the standard error.
type Reader interface {
	Line(line []byte)
	Result(stderr string) Result
}

// A Call is how a tool is started.
type Call struct {
	Args   []string
	Env    map[string]string // "" takes a variable away
	Hidden []string          // values that nobody may see
	Input  string            // its standard input
	// State are folders of the user's home that it keeps things in, beside those of
	// the agent, such as ".cursor".
	State []string

	// For tools that are talked to: see [process.Job]. Reader takes the place of
	// the tool's.
	Talk   func(w *os.File)
	Over   <-chan struct{}
	Stop   func() time.Duration
	Quiet  bool
	Reader Reader
}

// A Result is what a tool told of a run.
type Result struct {
	Session string // to go on with
	Model   string
	Summary string // what the agent said last
	Usage   *entity.Usage
	// Cumulative says that Usage is of the whole session, not of this run.
	Cumulative bool
	CostUSD    json.Number // as the tool reckons; the gateway's is what is paid
	// Subscription says that the tool is signed in with a plan of its vendor, which
	// covers what it used.
	Subscription bool
	Turns        int
	// Failed says that the run did not do its work, whatever the exit code; Error
	// and Code say why.
	Failed      bool
	Error, Code string
	Transient   bool // worth a retry
	// Lost says that there is no such session; nothing was done.
	Lost bool
}

// Options are those of adapterConfig that all tools share.
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
	// Process starts the programs; one serves all types.
	Process *process.Adapter
	// Dir holds a file by which this node's sessions are known as its own.
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

// CheckPlace returns an error when the name of this node's sessions in dir is damaged; a
// node that starts draws another. One that is not there is fine.
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

// isPlace reports whether a name can be one that was drawn.
func isPlace(name string) bool {
	return len(name) == len(rand.Text()) && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// placeOf reads the name of this node's sessions, which it makes once: tools keep
// them on their disk, so another node can not go on with them.
func placeOf(path string) (string, error) {
	if b, err := os.ReadFile(path); err == nil && isPlace(strings.TrimSpace(string(b))) {
		return strings.TrimSpace(string(b)), nil // another one is damaged; sessions begin anew
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	name := rand.Text()
	return name, os.WriteFile(path, []byte(name+"\n"), 0o600)
}

// session is sessionParamsJson: where the session lies, and what it came to.
type session struct {
	ID    string        `json:"sessionId"`
	Dir   string        `json:"cwd"`
	Place string        `json:"placeId,omitempty"`
	Usage *entity.Usage `json:"usage,omitempty"` // so far, of tools that tell only that
}

// resumable returns the session to go on with, or why there is none to.
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

// Invoke runs the tool until its whole tree is gone. A session that the tool does
// not have any more is begun anew.
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
		job := process.Job{Command: cmp.Or(r.Command, a.tool.Program()), Args: append(append(call.Args, r.Extra...), r.Options.Args...), Env: call.Env, Hidden: call.Hidden}
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
			job.Talk = func(w *os.File) { _, _ = w.WriteString(call.Input) } // a tool that does not listen tells otherwise
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
		return out, false // it was not started
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

// merge makes one outcome of how the program ended and what it told.
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
		out.SessionParams, _ = json.Marshal(s) // always encodes
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

// result is resultJson: that of the process without the lines of JSON, and what
// the tool told.
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
		b, _ = json.Marshal(m) // always encodes
	}
	return b
}

// signs are what messages of tools and of the gateway say of why a call failed.
var signs = []struct {
	code      string
	transient bool
	words     []string
}{
	{"budget_refused", false, []string{"budget_exceeded", "budget_refused", "payment required", "budget hard-stop"}},
	{"auth_required", false, []string{"unauthorized", "api key", "api_key", "not logged in", "run /login", "auth method", "authentication", "invalid_key", "not authenticated"}},
	{"transient_upstream", true, []string{"overloaded", "rate limit", "rate_limit", "too many requests", "service unavailable", "bad gateway", "gateway timeout",
		"unable to connect", "connection refused", "econnrefused", "econnreset", "etimedout", "stream disconnected", "error sending request"}},
}

// Classify tells from a message why a run failed, and whether a retry is worth
// it; "" when it does not say.
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
	return &entity.Usage{InputTokens: max(all.InputTokens-before.InputTokens, 0), OutputTokens: max(all.OutputTokens-before.OutputTokens, 0),
		CachedInputTokens: max(all.CachedInputTokens-before.CachedInputTokens, 0)}
}

// head is the beginning of a message, for a row.
func head(s string) string {
	const most = 2 << 10
	if s = strings.TrimSpace(s); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// lastLine is the last line of what a program wrote to its standard error, with
// how it ended before it.
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

// lines cuts output into lines.
type lines struct {
	to   func([]byte)
	part []byte
	over bool // the rest of a line that was too long
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

// end hands over the line that is there.
func (l *lines) end() {
	if s := bytes.TrimSpace(l.part); len(s) > 0 && l.to != nil {
		l.to(s)
	}
	l.part, l.over = l.part[:0], false
}
