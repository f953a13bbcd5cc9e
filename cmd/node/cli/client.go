// Package cli is what the commands of the program are made of: verbs, which are one
// request each and are written as rows of tables, and for the others the client, the
// nouns that arguments name, tables and refusals.
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage-mesh/selvage/api/client"
)

const (
	defaultAPI = "http://127.0.0.1:3100"
	// callTimeout bounds one request of the command line.
	CallTimeout = 30 * time.Second
	// maxAnswer bounds what is read of an answer, in bytes.
	MaxAnswer = 64 << 20
)

// CLI is what all commands share: where the API is, who asks, and how answers
// are printed.
type CLI struct {
	api     string
	Output  format // of answers
	Company string // --company: ID, prefix or name

	ca           string   // file of certificates that vouch for nodes
	fingerprints []string // of nodes' certificates
	kept         *Credential
	named        string // what an argument named: the names of its row
	carrier      *http.Transport

	read   string    // how fresh answers must be; "": as the command needs it
	Reads  bool      // the command changes nothing
	height uint64    // that the newest answer reflected
	Talk   io.Writer // standard error
	warned bool      // it has been said that the node hears no leader

	Made *[]Verb // of which commands were made, for who asks
}

// Flags adds the flags that all commands share.
func (c *CLI) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.api, "api", "", "URL of any node's API (default $SELVAGE_API_URL, $PAPERCLIP_API_URL, else "+defaultAPI+")")
	f.StringVar(&c.ca, "ca", "", "PEM file of certificates that vouch for the node's (default $SELVAGE_CA, else the machine's)")
	f.StringArrayVar(&c.fingerprints, "fingerprint", nil, "SHA-256 of the node's certificate, which is trusted then (repeat for more; default $SELVAGE_FINGERPRINT)")
	c.Output = format(formats[0])
	f.VarP(&c.Output, "output", "o", oneOf(formats))
	f.StringVar(&c.read, "read", "", "how fresh answers must be: default (what this node has, its own writes among it), strong (all that the mesh has acknowledged) or stale")
	f.StringVarP(&c.Company, "company", "c", "", "company ID, prefix or name (default: $SELVAGE_COMPANY, that of company use, else the only one)")
}

// Prepare looks at the flags that all commands share, before one runs.
func (c *CLI) Prepare(cmd *cobra.Command) error {
	if err := cmd.ValidateRequiredFlags(); err != nil {
		return Misuse(err)
	}
	if c.read != "" && !slices.Contains(freshnesses, c.read) {
		return Misuse(fmt.Errorf("--read is %q: want %s", c.read, strings.Join(freshnesses, ", ")))
	}
	c.Reads = cmd.Annotations[changesNothing] != "" || slices.Contains(readers, cmd.Name())
	return nil
}

// URL is where the API is, without the /api that some write behind it.
func (c *CLI) URL() string {
	at := strings.TrimSuffix(cmp.Or(c.api, os.Getenv("SELVAGE_API_URL"), os.Getenv("PAPERCLIP_API_URL"), defaultAPI), "/")
	return strings.TrimSuffix(at, "/api") // as some write it
}

// Call makes one call of the API and decodes the answer into out: a pointer, a *[]byte
// for the bytes as they are, or nil. The key comes from the environment or what auth
// login has kept, never from the arguments. While the mesh elects, it is asked again.
// What a command reads before it changes something is all that the mesh knows; without
// a quorum the node says what it has.
func (c *CLI) Call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	b, err := c.ask(ctx, c.freshness(method), method, path, in)
	if no, ok := errors.AsType[*client.Error](err); ok && c.read == "" && method == http.MethodGet && no.CutOff && no.Status == http.StatusServiceUnavailable {
		b, err = c.ask(ctx, "default", method, path, in)
	}
	if err != nil {
		return c.NoAnswer(err)
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
func (c *CLI) freshness(method string) string {
	switch {
	case c.read != "":
		return c.read
	case c.Reads && method == http.MethodGet:
		return "default"
	}
	return "strong"
}

func (c *CLI) ask(ctx context.Context, read, method, path string, in any) ([]byte, error) {
	asks, err := c.Reading(read)
	if err != nil {
		return nil, err
	}
	asks.Since(c.height)
	b, err := asks.Raw(ctx, method, path, in)
	c.height = asks.Height()
	return b, err
}

// cutOff says once that the node that answers hears no leader.
func (c *CLI) cutOff(s client.Standing) {
	if c.warned || c.Talk == nil {
		return
	}
	c.warned = true
	fmt.Fprintf(c.Talk, "%s hears no leader; this is what it knew %s ago\n", s.Node, s.Age.Round(time.Second))
}

// changesNothing marks commands whose row says that they only read.
const changesNothing = "changes nothing"

var freshnesses = []string{"default", "strong", "stale"}

// readers are the last words of commands that change nothing, beside those whose row
// says so.
var readers = strings.Fields(`activity asked attachments catalogue catalog dashboard debug doctor download events explain gates get incidents interactions list list-peers log
members monitor pending raft relations requests revisions runs service-log show signups state stats status tail usage versions whoami`)

// NoAnswer tells a no of a node from no answer.
func (c *CLI) NoAnswer(err error) error {
	if no, ok := errors.AsType[*client.Error](err); ok {
		return refusedBy(no)
	}
	return c.unreachable(err)
}

// Show reads path and prints it: as it came for -o json, else through human,
// which sees row filled in.
func (c *CLI) Show(cmd *cobra.Command, path string, row any, human func(io.Writer)) error {
	return c.Send(cmd, "GET", path, nil, row, human)
}

// Send makes a request and prints its answer: as it came for -o json, else through
// human, which sees row filled in.
func (c *CLI) Send(cmd *cobra.Command, method, path string, in, row any, human func(io.Writer)) error {
	var raw []byte
	if err := c.Call(cmd.Context(), method, path, in, &raw); err != nil {
		return err
	}
	if len(raw) == 0 { // 204: done, with nothing to say
		raw = []byte("{}")
	}
	if err := json.Unmarshal(raw, row); err != nil {
		return fmt.Errorf("answer of %s: %w", path, err)
	}
	return c.Print(cmd, json.RawMessage(raw), human)
}

// CompanyID resolves --company, else $SELVAGE_COMPANY, else what company use has kept;
// without any of them the only company is meant.
func (c *CLI) CompanyID(cmd *cobra.Command) (string, error) {
	want, from := cmp.Or(c.Company, os.Getenv("SELVAGE_COMPANY"), os.Getenv("PAPERCLIP_COMPANY_ID")), ""
	if want == "" {
		mine, err := c.Mine()
		if err != nil {
			return "", err
		}
		want, from = mine.Company, " (chosen with selvage company use)"
	}
	var rows []struct{ ID, Name, IssuePrefix string }
	if err := c.Call(cmd.Context(), "GET", "/api/companies", nil, &rows); err != nil {
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
		return "", fmt.Errorf("no company %q%s: see selvage company list", want, from)
	case len(found) == 0:
		return "", errors.New("there is no company yet: selvage company create NAME")
	default:
		return "", Misuse(ErrWhichCompany)
	}
}

// ErrWhichCompany: there are several companies, and none was named.
var ErrWhichCompany = errors.New("more than one company matches: name one with --company, or for good with selvage company use (selvage company list shows them)")

// AgentNames maps agent IDs to names, also of agents that were terminated or deleted.
func (c *CLI) AgentNames(cmd *cobra.Command, company string) (map[string]string, error) {
	var rows []struct{ ID, Name, Status string }
	err := c.Call(cmd.Context(), "GET", "/api/companies/"+company+"/agents?includeTerminated=true", nil, &rows)
	names := make(map[string]string, len(rows))
	for _, r := range rows {
		if names[r.ID] = r.Name; r.Status == "terminated" {
			names[r.ID] += " (terminated)"
		}
	}
	var gone []struct {
		EntityID string
		Details  struct{ Name string }
	}
	if err == nil && c.Call(cmd.Context(), "GET", "/api/companies/"+company+"/activity?action=agent.deleted&limit=500", nil, &gone) == nil {
		for _, r := range gone {
			names[r.EntityID] = r.Details.Name + " (deleted)"
		}
	}
	return names, err
}

// UUIDLen is the length of an ID.
const UUIDLen = 36

// followEvery is how often a log that grows is asked for more.
const followEvery = 300 * time.Millisecond

// Log prints a log from its beginning, page by page; with ended until that says so.
func (c *CLI) Log(cmd *cobra.Command, path string, ended func() (bool, error)) error {
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
		if err := c.Call(cmd.Context(), "GET", fmt.Sprintf("%s?offset=%d&limitBytes=262144", path, offset), nil, &page); err != nil && over {
			return err
		}
		if follow { // a line that is being written comes whole the next time
			page.Content = page.Content[:strings.LastIndexByte(page.Content, '\n')+1]
		}
		for line := range strings.Lines(page.Content) {
			var l struct {
				Stream, Chunk string
			}
			if c.Output == "json" || json.Unmarshal([]byte(line), &l) != nil {
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
