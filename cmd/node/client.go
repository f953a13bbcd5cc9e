package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage-mesh/selvage/api/client"
)

const (
	defaultAPI = "http://127.0.0.1:3100"
	// callTimeout bounds one request of the command line.
	callTimeout = 30 * time.Second
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 64 << 20
)

// cli is what all commands share: where the API is, who asks, and how answers
// are printed.
type cli struct {
	api     string
	output  format
	company string

	ca           string   // file of certificates that vouch for nodes
	fingerprints []string // of nodes' certificates
	kept         *credential
	carrier      *http.Transport

	read   string    // how fresh answers must be; "": as the command needs it
	reads  bool      // the command changes nothing
	height uint64    // that the newest answer reflected
	talk   io.Writer // standard error
	warned bool      // it has been said that the node hears no leader

	made *[]verb // of which commands were made, for who asks
}

func (c *cli) flags(f *pflag.FlagSet) {
	f.StringVar(&c.api, "api", "", "URL of any node's API (default $SELVAGE_API_URL, $PAPERCLIP_API_URL, else "+defaultAPI+")")
	f.StringVar(&c.ca, "ca", "", "PEM file of certificates that vouch for the node's (default $SELVAGE_CA, else the machine's)")
	f.StringArrayVar(&c.fingerprints, "fingerprint", nil, "SHA-256 of the node's certificate, which is trusted then (repeat for more; default $SELVAGE_FINGERPRINT)")
	c.output = format(formats[0])
	f.VarP(&c.output, "output", "o", strings.Join(formats, " or "))
	f.StringVar(&c.read, "read", "", "how fresh answers must be: default (what this node has, its own writes among it), strong (all that the mesh has acknowledged) or stale")
	f.StringVarP(&c.company, "company", "c", "", "company ID, prefix or name (default: the only one)")
}

func (c *cli) url() string {
	at := strings.TrimSuffix(cmp.Or(c.api, os.Getenv("SELVAGE_API_URL"), os.Getenv("PAPERCLIP_API_URL"), defaultAPI), "/")
	return strings.TrimSuffix(at, "/api") // as some write it
}

// call makes one call of the API and decodes the answer into out: a pointer, a *[]byte
// for the bytes as they are, or nil. The key comes from the environment or what auth
// login has kept, never from the arguments. While the mesh elects, it is asked again.
// What a command reads before it changes something is all that the mesh knows; without
// a quorum the node says what it has.
func (c *cli) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	b, err := c.ask(ctx, c.freshness(method), method, path, in)
	if no, ok := errors.AsType[*client.Error](err); ok && c.read == "" && method == http.MethodGet && no.CutOff && no.Status == http.StatusServiceUnavailable {
		b, err = c.ask(ctx, "default", method, path, in)
	}
	if err != nil {
		return c.noAnswer(err)
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *[]byte:
		*out = b
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("answer of %s %s: %w", method, path, err)
	}
	return nil
}

// freshness is how fresh an answer must be.
func (c *cli) freshness(method string) string {
	switch {
	case c.read != "":
		return c.read
	case c.reads && method == http.MethodGet:
		return "default"
	}
	return "strong"
}

func (c *cli) ask(ctx context.Context, read, method, path string, in any) ([]byte, error) {
	asks, err := c.reading(read)
	if err != nil {
		return nil, err
	}
	asks.Since(c.height)
	b, err := asks.Raw(ctx, method, path, in)
	c.height = asks.Height()
	return b, err
}

// cutOff says once that the node that answers hears no leader.
func (c *cli) cutOff(s client.Standing) {
	if c.warned || c.talk == nil {
		return
	}
	c.warned = true
	fmt.Fprintf(c.talk, "%s hears no leader; this is what it knew %s ago\n", s.Node, s.Age.Round(time.Second))
}

// changesNothing marks commands whose row says that they only read.
const changesNothing = "changes nothing"

var freshnesses = []string{"default", "strong", "stale"}

// readers are the last words of commands that change nothing, beside those whose row
// says so.
var readers = strings.Fields(`activity asked attachments catalogue catalog dashboard debug doctor download events explain gates get incidents interactions list list-peers log
members monitor pending raft relations requests revisions runs service-log show signups state stats status tail usage versions whoami`)

// noAnswer tells a no of a node from no answer.
func (c *cli) noAnswer(err error) error {
	if no, ok := errors.AsType[*client.Error](err); ok {
		return refusedBy(no)
	}
	return c.unreachable(err)
}

// show reads path and prints it: as it came for -o json, else through human,
// which sees row filled in.
func (c *cli) show(cmd *cobra.Command, path string, row any, human func(io.Writer)) error {
	return c.send(cmd, "GET", path, nil, row, human)
}

func (c *cli) send(cmd *cobra.Command, method, path string, in, row any, human func(io.Writer)) error {
	var raw []byte
	if err := c.call(cmd.Context(), method, path, in, &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, row); err != nil {
		return fmt.Errorf("answer of %s: %w", path, err)
	}
	return c.print(cmd, json.RawMessage(raw), human)
}

// companyID resolves --company; without it the only company is meant.
func (c *cli) companyID(cmd *cobra.Command) (string, error) {
	want := cmp.Or(c.company, os.Getenv("PAPERCLIP_COMPANY_ID"))
	var rows []companyRow
	if err := c.call(cmd.Context(), "GET", "/api/companies", nil, &rows); err != nil {
		return "", err
	}
	var found []string
	for _, r := range rows {
		if want == "" || r.ID == want || strings.EqualFold(r.IssuePrefix, want) || strings.EqualFold(r.Name, want) {
			found = append(found, r.ID)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case want != "" && len(found) == 0:
		return "", fmt.Errorf("no company %q: see selvage company list", want)
	case len(found) == 0:
		return "", errors.New("there is no company yet: selvage company create NAME")
	default:
		return "", misuse{errors.New("more than one company matches: name one with --company (selvage company list shows them)")}
	}
}

func (c *cli) agents(cmd *cobra.Command, company string) (rows []agentRow, err error) {
	return rows, c.call(cmd.Context(), "GET", "/api/companies/"+company+"/agents", nil, &rows)
}

// agentNames maps agent IDs to names.
func (c *cli) agentNames(cmd *cobra.Command, company string) (map[string]string, error) {
	rows, err := c.agents(cmd, company)
	names := make(map[string]string, len(rows))
	for _, r := range rows {
		names[r.ID] = r.Name
	}
	return names, err
}

const uuidLen = 36

// followEvery is how often a log that grows is asked for more.
const followEvery = 300 * time.Millisecond

// runLog prints a run's log; with follow until the run is over.
func (c *cli) runLog(cmd *cobra.Command, id string, follow bool) error {
	if !follow {
		return c.log(cmd, "/api/heartbeat-runs/"+id+"/log", nil)
	}
	return c.log(cmd, "/api/heartbeat-runs/"+id+"/log", func() (over bool, err error) {
		var run runRow
		err = c.call(cmd.Context(), "GET", "/api/heartbeat-runs/"+id, nil, &run)
		return run.Status != "queued" && run.Status != "running" && run.Status != "scheduled_retry", err
	})
}

// logCommand prints a log that is found by its ID.
func logCommand(c *cli, use, short, path string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := c.filled(cmd, path, args)
			if err != nil {
				return err
			}
			return c.log(cmd, at, nil)
		},
	}
}

// log prints a log from its beginning, page by page; with ended until that says so.
func (c *cli) log(cmd *cobra.Command, path string, ended func() (bool, error)) error {
	out, follow := cmd.OutOrStdout(), ended != nil
	for offset := int64(0); ; {
		over := true
		if follow { // asked before the log, so that nothing is missed
			var err error
			if over, err = ended(); err != nil {
				return err
			}
		}
		var page struct {
			Content    string `json:"content"`
			NextOffset *int64 `json:"nextOffset"`
		}
		if err := c.call(cmd.Context(), "GET", fmt.Sprintf("%s?offset=%d&limitBytes=262144", path, offset), nil, &page); err != nil && over {
			return err
		}
		if follow { // a line that is being written comes whole the next time
			page.Content = page.Content[:strings.LastIndexByte(page.Content, '\n')+1]
		}
		for line := range strings.Lines(page.Content) {
			var l struct {
				Stream, Chunk string
			}
			if c.output == "json" || json.Unmarshal([]byte(line), &l) != nil {
				fmt.Fprint(out, line)
			} else {
				fmt.Fprint(out, l.Chunk)
			}
		}
		switch {
		case follow && len(page.Content) > 0:
			offset += int64(len(page.Content))
		case follow && over:
			return nil
		case follow:
			select {
			case <-time.After(followEvery):
			case <-cmd.Context().Done():
				return cmd.Context().Err()
			}
		case page.NextOffset == nil || *page.NextOffset <= offset:
			return nil
		default:
			offset = *page.NextOffset
		}
	}
}
