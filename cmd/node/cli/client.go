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
	// socketEnv is the variable with the socket on which a process without a network has the API, and
	// socketAPI the address of requests over it: the node says who asks, whatever their credential is.
	socketEnv = "SELVAGE_API_SOCKET"
	socketAPI = "http://localhost"
	// CallTimeout bounds one request of the command line.
	CallTimeout = 30 * time.Second
	// MaxAnswer bounds what is read of an answer, in bytes.
	MaxAnswer = 64 << 20
)

// CLI is shared by all commands: the address of the API, the credential, and the output
// format.
type CLI struct {
	api     string
	Output  format // of answers
	Company string // --company: ID, prefix or name

	ca           string   // file of certificate authorities for nodes
	fingerprints []string // of nodes' certificates
	kept         *Credential
	named        string // name of the row that an argument matched
	carrier      *http.Transport

	read   string    // required freshness of answers; "": chosen by the command
	Reads  bool      // the command makes no changes
	height uint64    // highest height that an answer reflected
	Talk   io.Writer // standard error
	warned bool      // the warning that the node hears no leader was printed

	Made *[]Verb // verbs of the created commands, for tests
}

// Flags adds the flags that all commands share.
func (c *CLI) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.api, "api", "",
		"URL of any node's API (default the socket $SELVAGE_API_SOCKET, $SELVAGE_API_URL, $PAPERCLIP_API_URL, else "+
			defaultAPI+")")
	f.StringVar(&c.ca, "ca", "", "PEM file of certificates that vouch for the node's (default $SELVAGE_CA, else the "+
		"machine's)")
	f.StringArrayVar(&c.fingerprints, "fingerprint", nil,
		"SHA-256 of the node's certificate, which is trusted then (repeat for more; default $SELVAGE_FINGERPRINT)")
	c.Output = format(formats[0])
	f.VarP(&c.Output, "output", "o", oneOf(formats))
	f.StringVar(&c.read, "read", "",
		"how fresh answers must be: default (what this node has, its own writes among it), strong (all that the mesh has "+
			"acknowledged) or stale")
	f.StringVarP(&c.Company, "company", "c", "",
		"company ID, prefix or name (default: $SELVAGE_COMPANY, that of company use, else the only one)")
}

// Prepare validates the shared flags before a command runs.
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

// URL returns the address of the API, without a trailing /api.
func (c *CLI) URL() string {
	if c.socket() != "" {
		return socketAPI
	}
	at := strings.TrimSuffix(cmp.Or(c.api, os.Getenv("SELVAGE_API_URL"), os.Getenv("PAPERCLIP_API_URL"), defaultAPI), "/")
	return strings.TrimSuffix(at, "/api") // some addresses end with it
}

// socket returns the path of the socket over which the API is asked, "" for none. A URL that was given wins.
func (c *CLI) socket() string {
	if c.api != "" {
		return ""
	}
	return os.Getenv(socketEnv)
}

// Call makes one call of the API and decodes the answer into out: a pointer, a *[]byte
// for the raw bytes, or nil. The key comes from the environment or from auth login,
// never from arguments. During an election it retries. Commands that make changes use
// strong reads; a read that fails with 503 is retried as a default read.
func (c *CLI) Call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	b, err := c.ask(ctx, c.freshness(method), method, path, in)
	if no, ok := errors.AsType[*client.Error](err); ok && c.read == "" && method == http.MethodGet && no.CutOff &&
		no.Status == http.StatusServiceUnavailable {
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

// freshness returns the required freshness of an answer.
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

// cutOff warns once that the answering node hears no leader.
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

// readers are the last words of commands that only read, besides those whose row says
// so.
var readers = strings.Fields(`activity asked attachments catalogue catalog dashboard debug doctor download events
	explain gates get incidents interactions list list-peers log members monitor pending raft relations requests
	revisions runs service-log show signups state stats status tail usage versions whoami`)

// NoAnswer distinguishes a refusal by a node from a missing answer.
func (c *CLI) NoAnswer(err error) error {
	if no, ok := errors.AsType[*client.Error](err); ok {
		return refusedBy(no)
	}
	return c.unreachable(err)
}

// Show reads path and prints the answer: unchanged with -o json, else through human
// after decoding it into row.
func (c *CLI) Show(cmd *cobra.Command, path string, row any, human func(io.Writer)) error {
	return c.Send(cmd, "GET", path, nil, row, human)
}

// Send makes a request and prints the answer: unchanged with -o json, else through human
// after decoding it into row.
func (c *CLI) Send(cmd *cobra.Command, method, path string, in, row any, human func(io.Writer)) error {
	var raw []byte
	if err := c.Call(cmd.Context(), method, path, in, &raw); err != nil {
		return err
	}
	if len(raw) == 0 { // 204: done, without a body
		raw = []byte("{}")
	}
	if err := json.Unmarshal(raw, row); err != nil {
		return fmt.Errorf("answer of %s: %w", path, err)
	}
	return c.Print(cmd, json.RawMessage(raw), human)
}

// CompanyID resolves --company, else $SELVAGE_COMPANY, else the default set by company
// use, else the only company.
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

// ErrWhichCompany says that there are several companies and none was selected.
var ErrWhichCompany = errors.New("more than one company matches: name one with --company, or for good with selvage " +
	"company use (selvage company list shows them)")

// AgentNames returns agents' names by ID, also of terminated and deleted agents.
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
	if err == nil && c.Call(cmd.Context(), "GET", "/api/companies/"+company+"/activity?action=agent.deleted&limit=500",
		nil, &gone) == nil {
		for _, r := range gone {
			names[r.EntityID] = r.Details.Name + " (deleted)"
		}
	}
	return names, err
}

// UUIDLen is the length of an ID.
const UUIDLen = 36

// followEvery is the polling interval of a growing log.
const followEvery = 300 * time.Millisecond

// Log prints a log page by page from its beginning; with ended, it continues until ended
// returns true.
func (c *CLI) Log(cmd *cobra.Command, path string, ended func() (bool, error)) error {
	out, follow := cmd.OutOrStdout(), ended != nil
	for offset := int64(0); ; {
		over := true
		if follow { // checked before the log is read, so that nothing is missed
			var err error
			if over, err = ended(); err != nil {
				return err
			}
		}
		content, next, err := c.LogPage(cmd.Context(), path, "", offset)
		if err != nil && over {
			return err
		}
		if follow { // an incomplete line is read again as a whole
			content = content[:strings.LastIndexByte(content, '\n')+1]
		}
		for line := range strings.Lines(content) {
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
		case follow && len(content) > 0:
			offset += int64(len(content))
		case follow && over:
			return nil
		case follow:
			select {
			case <-time.After(followEvery):
			case <-cmd.Context().Done():
				return cmd.Context().Err()
			}
		case next == 0:
			return nil
		default:
			offset = next
		}
	}
}

// LogPage reads a page of a log from an offset, with a query of its own or "", and returns where the
// next one begins; 0: there is none yet.
func (c *CLI) LogPage(ctx context.Context, path, query string, offset int64) (content string, next int64, err error) {
	var page struct {
		Content    string `json:"content"`
		NextOffset *int64 `json:"nextOffset"`
	}
	err = c.Call(ctx, "GET", fmt.Sprintf("%s?offset=%d&limitBytes=262144%s", path, offset, query), nil, &page)
	if page.NextOffset != nil && *page.NextOffset > offset {
		next = *page.NextOffset
	}
	return page.Content, next, err
}
