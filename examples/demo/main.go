// Command demo founds the demo company on a running mesh (a CEO, two workers,
// one goal, one issue) and shows what happens. It uses the same HTTP API that
// any client has, spread over all nodes, and can be run again: what exists is kept.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const companyName = "Acme Survey"

// What the command line assumes where nothing is given.
const (
	usualAPI = "http://127.0.0.1:3100"
	usualDir = ".run/mesh"
)

func main() {
	api := flag.String("api", usualAPI, "URL of the first node")
	nodes := flag.Int("nodes", 3, "number of nodes, on consecutive ports")
	bin := flag.String("bin", "bin", "folder of the example agents")
	repo := flag.String("repo", ".", "Git checkout that the company surveys")
	dir := flag.String("dir", usualDir, "where the local mesh lives, for the commands that are printed")
	wait := flag.Duration("wait", 4*time.Minute, "how long to watch the company work")
	flag.Parse()
	if err := run(*api, *nodes, *bin, *repo, *dir, *wait); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// A board talks to the mesh as its operator, to another node each time.
type board struct {
	urls []string
	next int
	http http.Client
}

func (b *board) call(method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	b.next++
	target := b.urls[b.next%len(b.urls)] + path
	req, err := http.NewRequest(method, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Selvage-Read", "strong") // another node each time, and still our own writes
	res, err := b.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: HTTP %d: %s", method, target, res.StatusCode, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

type named struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Identifier  string `json:"identifier"`
	IssuePrefix string `json:"issuePrefix"`
	Status      string `json:"status"`
	Title       string `json:"title"`
}

func run(api string, nodes int, bin, repo, dir string, wait time.Duration) error {
	urls, err := nodeURLs(api, nodes)
	if err != nil {
		return err
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	if repo, err = filepath.Abs(repo); err != nil {
		return err
	}
	b := &board{urls: urls, http: http.Client{Timeout: 30 * time.Second}}
	company, issue, err := found(b, bin, repo)
	if err != nil {
		return err
	}
	fmt.Printf("\nCompany %q (%s) is at work on %s.\nWatch it: %s/%s\n\n", company.Name, company.IssuePrefix,
		issue.Identifier, urls[0], company.IssuePrefix)
	t := newTour(urls[0], dir)
	if err := t.watch(b, company, issue, wait); err != nil {
		return err
	}
	t.print(urls, company, issue)
	return nil
}

func nodeURLs(api string, nodes int) ([]string, error) {
	u, err := url.Parse(api)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return nil, fmt.Errorf("--api %q needs a port", api)
	}
	var urls []string
	for i := range nodes {
		urls = append(urls, fmt.Sprintf("%s://%s:%d", u.Scheme, u.Hostname(), port+i))
	}
	return urls, nil
}

// found makes the company and its first issue, or finds them.
func found(b *board, bin, repo string) (company, issue named, err error) {
	var companies []named
	if err := b.call("GET", "/api/companies", nil, &companies); err != nil {
		return company, issue, err
	}
	for _, c := range companies {
		if c.Name == companyName {
			var issues []named
			if err := b.call("GET", "/api/companies/"+c.ID+"/issues?sortField=created&sortDir=asc&limit=1", nil,
				&issues); err != nil {
				return company, issue, err
			}
			if len(issues) > 0 {
				return c, issues[0], nil
			}
		}
	}
	if err := b.call("POST", "/api/companies", map[string]any{
		"name": companyName, "description": "Surveys a Go repository", "budgetMonthlyCents": 5000,
	}, &company); err != nil {
		return company, issue, err
	}
	in := "/api/companies/" + company.ID
	var goal, ceo, worker named
	if err := b.call("POST", in+"/goals", map[string]any{"title": "Know the state of the code at any time",
		"level": "company", "status": "active"}, &goal); err != nil {
		return company, issue, err
	}
	agent := func(name, role, program, reportsTo string, heartbeatSec int) map[string]any {
		m := map[string]any{
			"name": name, "role": role, "adapterType": "process",
			"adapterConfig": map[string]any{
				"command": filepath.Join(bin, program), "timeoutSec": 900, "graceSec": 5,
				"env": map[string]any{"SURVEY_REPO": repo},
			},
			"runtimeConfig": map[string]any{"heartbeat": map[string]any{"enabled": heartbeatSec > 0,
				"intervalSec": max(heartbeatSec, 30), "wakeOnDemand": true, "maxConcurrentRuns": 2}},
			"budgetMonthlyCents": 1000,
		}
		if reportsTo != "" {
			m["reportsTo"] = reportsTo
		}
		return m
	}
	if err := b.call("POST", in+"/agents", agent("Cleo", "ceo", "example-ceo", "", 30), &ceo); err != nil {
		return company, issue, err
	}
	for _, name := range []string{"Wes", "Ursa"} {
		if err := b.call("POST", in+"/agents", agent(name, "engineer", "example-surveyor", ceo.ID, 0), &worker); err != nil {
			return company, issue, err
		}
	}
	err = b.call("POST", in+"/issues", map[string]any{
		"title": "Survey the repository", "description": "Formatting, comments and open markers of " +
			filepath.Base(repo) + ".",
		"status": "todo", "priority": "high", "goalId": goal.ID, "assigneeAgentId": ceo.ID,
	}, &issue)
	return company, issue, err
}

// decide approves the strategies that wait for the board, as its operator would
// after reading them.
func decide(b *board, company named) error {
	var waiting []struct {
		ID      string `json:"id"`
		Payload struct {
			Plan string `json:"plan"`
		} `json:"payload"`
	}
	if err := b.call("GET", "/api/companies/"+company.ID+"/approvals?status=pending&type=approve_ceo_strategy", nil,
		&waiting); err != nil {
		return err
	}
	for _, a := range waiting {
		fmt.Printf("  the CEO proposes: %s\n", a.Payload.Plan)
		if err := b.call("POST", "/api/approvals/"+a.ID+"/approve", map[string]any{"decisionNote": "Go ahead."},
			nil); err != nil {
			return err
		}
		fmt.Printf("  the board approves\n")
	}
	return nil
}

// watch prints the issues as they change, and decides what waits for the board,
// until the first one is done.
func (t tour) watch(b *board, company, issue named, wait time.Duration) error {
	seen := map[string]string{}
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		var issues []named
		if err := b.call("GET", "/api/companies/"+company.ID+"/issues?sortField=created&sortDir=asc", nil,
			&issues); err != nil {
			fmt.Println("  (", err, ")")
			continue
		}
		if err := decide(b, company); err != nil {
			fmt.Println("  (", err, ")")
			continue
		}
		for _, i := range issues {
			if seen[i.ID] != i.Status {
				seen[i.ID] = i.Status
				fmt.Printf("  %-8s %-12s %s\n", i.Identifier, i.Status, i.Title)
			}
		}
		if seen[issue.ID] == "done" {
			return nil
		}
	}
	return fmt.Errorf("%s is still %s after %s: look at `%s run list`", issue.Identifier, seen[issue.ID], wait, t.selvage)
}

// A tour prints commands as they have to be typed for this mesh.
type tour struct{ selvage, testnet string }

// newTour gives the commands the address and the directory where those are not the usual ones.
func newTour(api, dir string) tour {
	t := tour{"bin/selvage", "bin/selvage testnet"}
	if api != usualAPI {
		t.selvage += " --api " + api
	}
	if dir != usualDir {
		t.testnet += " --dir " + dir
	}
	return t
}

func (t tour) print(urls []string, company, issue named) {
	fmt.Printf("\nThe company did its first piece of work. Where to look:\n\n")
	for _, line := range [][2]string{
		{"in a browser", fmt.Sprintf("%s/%s", urls[0], company.IssuePrefix)},
		{"nodes", fmt.Sprint(urls)},
		{"issues", t.selvage + " issue list"},
		{"the result", t.selvage + " issue show " + issue.Identifier},
		{"runs and logs", t.selvage + " run list; " + t.selvage + " run log RUN"},
		{"the board's say", t.selvage + " approval list"},
		{"money", t.selvage + " cost summary"},
		{"members and raft", t.selvage + " members; " + t.selvage + " raft"},
		{"the chain", t.selvage + " ledger tail; " + t.selvage + " ledger verify"},
		{"over HTTP", fmt.Sprintf("curl %s/api/companies/%s/dashboard", urls[0], company.ID)},
		{"kill any node", t.testnet + " kill n2 (and: " + t.testnet + " start n2)"},
		{"a company of yours", t.selvage + " onboard"},
		{"stop", t.stop()},
	} {
		fmt.Printf("  %-19s%s\n", line[0], line[1])
	}
	fmt.Println()
}

func (t tour) stop() string {
	if dir, other := strings.CutPrefix(t.testnet, "bin/selvage testnet --dir "); other {
		return "make down RUN=" + dir
	}
	return "make down"
}
